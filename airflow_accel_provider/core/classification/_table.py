"""The whole table, read from top to bottom: first match wins, so the order is part of the meaning."""

from __future__ import annotations

from airflow_accel_provider.core.classification._capacity_rows import AMBIGUOUS_ROWS, CAPACITY_ROWS
from airflow_accel_provider.core.classification._configuration_rows import (
    ACCELERATOR_ROWS,
    NETWORK_ROWS,
    REQUEST_ROWS,
)
from airflow_accel_provider.core.classification._general_rows import GENERAL_ROWS
from airflow_accel_provider.core.classification._launcher_rows import LAUNCHER_ROWS
from airflow_accel_provider.core.classification._policy_rows import POLICY_ROWS
from airflow_accel_provider.core.classification._quota_rows import QUOTA_ROWS
from airflow_accel_provider.core.classification._rule import Rule
from airflow_accel_provider.core.classification._worker_rows import IMAGE_ROWS, WORKER_ROWS

RULES: tuple[Rule, ...] = (
    *LAUNCHER_ROWS,
    *ACCELERATOR_ROWS,
    *NETWORK_ROWS,
    *POLICY_ROWS,
    *REQUEST_ROWS,
    *IMAGE_ROWS,
    *QUOTA_ROWS,
    *CAPACITY_ROWS,
    *AMBIGUOUS_ROWS,
    *WORKER_ROWS,
    *GENERAL_ROWS,
)
