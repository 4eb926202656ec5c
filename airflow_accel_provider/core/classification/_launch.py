"""What it means that a launcher on the Airflow worker ended and left no job."""

from __future__ import annotations

import re
from collections.abc import Sequence

from airflow_accel_provider.core.classification._texts import tail
from airflow_accel_provider.core.failures import Failure, FailureKind, Scope

_REFUSALS: tuple[tuple[re.Pattern[str], FailureKind, str], ...] = (
    (
        re.compile(r"HttpForbiddenError|\bstatus'?: '?403\b|PERMISSION_DENIED|api_core\.exceptions\.\w+: 40[13]\b"),
        FailureKind.PERMISSION,
        "the service refused the caller",
    ),
    (
        re.compile(
            r"HttpBadRequestError|\bstatus'?: '?400\b|INVALID_ARGUMENT|api_core\.exceptions\.\w+: 4(?:00|04|12)\b"
        ),
        FailureKind.CONFIGURATION,
        "the service refused the job",
    ),
    (
        re.compile(r"Http\w*Error|\bstatus'?: '?(?:429|5\d\d)\b|api_core\.exceptions\.\w+: (?:429|5\d\d)\b"),
        FailureKind.SERVICE,
        "the service did not take the job",
    ),
)
"""How Google's clients word a refused call in a launcher's output: apitools, gRPC, and google.api_core.

The last is what Beam 2.77 submits jobs with; its exceptions print as ``….exceptions.Forbidden: 403 POST …``.
"""

_TRACEBACK = "Traceback (most recent call last)"


def classify_launch(exit_code: int, last_lines: Sequence[str]) -> Failure:
    """Return what it means that a launcher ended and left no job.

    None of it speaks about places: nothing was asked of one yet.
    """
    text = "\n".join(last_lines)
    if exit_code == 0:
        said = "the launcher ended without making the job; does the pipeline pass its arguments on to PipelineOptions?"
        return Failure(kind=FailureKind.CONFIGURATION, scope=Scope.JOB, explanation=said, evidence=tail(text))
    # What was printed before the launcher's last error did not end it.
    last = text[max(text.rfind(_TRACEBACK), 0) :]
    for pattern, kind, explanation in _REFUSALS:
        if pattern.search(last):
            return Failure(kind=kind, scope=Scope.JOB, explanation=explanation, evidence=tail(text))
    said = f"the launcher ended with exit code {exit_code} before there was a job"
    return Failure(kind=FailureKind.USER_CODE, scope=Scope.JOB, explanation=said, evidence=tail(text))
