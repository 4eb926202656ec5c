"""What an error means: one table of the service's words, read from top to bottom, first match wins.

Texts are those seen in job messages of 2019-2026 and on Google's troubleshooting pages; each row names its source. User
code can print anything, so what it printed is cut away before the service's rows are asked.
"""

from __future__ import annotations

from airflow_accel_provider.core.classification._judge import SHORTAGES, classify
from airflow_accel_provider.core.classification._launch import classify_launch
from airflow_accel_provider.core.classification._rule import Meaning, Rule
from airflow_accel_provider.core.classification._signals import Signals
from airflow_accel_provider.core.classification._table import RULES
from airflow_accel_provider.core.classification._verdict import NextStep, Verdict, judge, next_step
from airflow_accel_provider.core.jobs import Service

__all__ = [
    "RULES",
    "SHORTAGES",
    "Meaning",
    "NextStep",
    "Rule",
    "Service",
    "Signals",
    "Verdict",
    "classify",
    "classify_launch",
    "judge",
    "next_step",
]
