"""All that can be asked, and how a question is stored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any

from airflow_accel_provider.core.waiting.proof import ProofQuestion
from airflow_accel_provider.core.waiting.quota import QuotaQuestion
from airflow_accel_provider.core.waiting.reservation import ReservationQuestion
from airflow_accel_provider.core.waiting.utilization import UtilizationQuestion

Question = QuotaQuestion | ProofQuestion | ReservationQuestion | UtilizationQuestion

_KINDS: Mapping[str, type[Question]] = {
    "quota": QuotaQuestion,
    "proof": ProofQuestion,
    "reservation": ReservationQuestion,
    "utilization": UtilizationQuestion,
}


def question_to_json(question: Question) -> dict[str, Any]:
    """Return a question as plain JSON."""
    name = next(name for name, kind in _KINDS.items() if type(question) is kind)
    said = {key: list(value) if isinstance(value, tuple) else value for key, value in asdict(question).items()}
    return {"about": name, **said}


def question_from_json(value: Mapping[str, Any]) -> Question:
    """Return the question that :func:`question_to_json` wrote."""
    kind = _KINDS[value["about"]]
    told = {spec.name: value[spec.name] for spec in fields(kind) if spec.name in value}
    said: dict[str, Any] = {name: tuple(item) if isinstance(item, list) else item for name, item in told.items()}
    return kind(**said)
