"""The sentences a person reads: the plan, each attempt, and what happened when nothing worked."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from textwrap import indent

from airflow_accel_provider.core.failures import Failure, FailureKind
from airflow_accel_provider.core.record import Attempt, Outcome, PlannedPlace, Record
from airflow_accel_provider.core.search import blocked_by

_ADVICE = {
    FailureKind.STOCKOUT: "Add a place to fallback=, or try again later.",
    FailureKind.QUOTA: "Raise a quota above, or add a place to fallback=.",
    FailureKind.NOT_OFFERED: "Choose a place that offers the accelerator, or add one to fallback=.",
}


def plan_table(places: Sequence[PlannedPlace]) -> str:
    """Return the plan as an aligned table, one candidate a line."""
    rows = [(f"{n}.", str(place.placement), _verdict(place)) for n, place in enumerate(places, 1)]
    width = max((len(text) for _, text, _ in rows), default=0)
    return "\n".join(f"{number:>3} {text:<{width}}  {verdict}" for number, text, verdict in rows)


def _verdict(place: PlannedPlace) -> str:
    if place.rejected:
        return f"skipped, {place.rejected.explanation}"
    return "ready" + "".join(f"; {warning}" for warning in place.warnings)


def report(task_id: str, record: Record | None, failure: Failure) -> str:
    """Return the whole story of a task that failed, in the same words for log, exception and UI."""
    last = record.current if record else None
    if record and last and (last.is_proven or failure.kind not in _ADVICE):
        return _ended(task_id, record, last, failure)
    if record is None or failure.kind is FailureKind.TIMEOUT:
        return f"{task_id} failed, {failure.kind}: {failure.explanation} before anything was started."
    return _nowhere(task_id, record, failure)


def _nowhere(task_id: str, record: Record, failure: Failure) -> str:
    lines = _lines(record)
    tried = len(record.this_round)
    head = f"No place could run {task_id}. Tried {tried}, skipped {len(lines) - tried}."
    kinds = [a.failure.kind for a in record.this_round if a.failure] + [
        p.rejected.kind for p in record.plan if p.rejected
    ]
    advice = _ADVICE[FailureKind.QUOTA] if FailureKind.QUOTA in kinds else _ADVICE.get(failure.kind, "")
    return "\n\n".join(part for part in (head, "\n".join(lines), " ".join((advice, *_asks(record))).strip()) if part)


def _asks(record: Record) -> list[str]:
    """Return how to ask for more of what places were put aside for, each thing once."""
    said = [place.rejected.advice for place in record.plan if place.rejected and place.rejected.advice]
    return [f"{each[0].upper()}{each[1:]}." for each in dict.fromkeys(said)]


def _ended(task_id: str, record: Record, last: Attempt, failure: Failure) -> str:
    job = f" (job {last.job_id})" if last.job_id else ""
    kind = failure.kind.replace("_", " ")
    stop = "" if failure.explanation.endswith("?") else "."
    head = f"{task_id} failed on {last.placement}{job}, {kind}: {failure.explanation}{stop}"
    lines = "\n".join(_lines(record)) if len(record.this_round) > 1 else ""
    # Set in, so that what others said cannot pass for the report's own lines.
    said = indent(failure.evidence, "  ", lambda _: True)
    return "\n\n".join(part for part in (head, lines, said) if part)


def _lines(record: Record) -> list[str]:
    """Return one line a candidate, or one a try where a candidate was tried more than once."""
    lines = []
    for index, place in enumerate(record.plan):
        tries = [attempt for attempt in record.this_round if attempt.candidate == index]
        lines += [f"{record.label(attempt)}. {attempt_line(attempt)}" for attempt in tries]
        if not tries:
            lines.append(f"{index + 1}. {place.placement}: {_why_skipped(record, place)}.")
    return lines


def _why_skipped(record: Record, place: PlannedPlace) -> str:
    if place.rejected:
        return f"skipped, {place.rejected.explanation}"
    by = blocked_by(record, place)
    return f"skipped, ruled out by {record.label(by)}" if by else "not tried"


def attempt_line(attempt: Attempt) -> str:
    """Return one attempt as one line: its place, how it ended, why, and after how long."""
    if attempt.outcome is Outcome.DONE and attempt.failure is None:
        return f"{attempt.placement}: done{_proven(attempt)}."
    if attempt.outcome is Outcome.RUNNING:
        return f"{attempt.placement}: left running{_proven(attempt)}."
    if attempt.failure is None:
        return f"{attempt.placement}: {attempt.outcome}."
    failure = attempt.failure
    where = f" in {failure.zone}" if failure.zone else ""
    kind = failure.kind.replace("_", " ")
    return f"{attempt.placement}: {kind}{where} ({failure.explanation}{_after(attempt)})."


def _proven(attempt: Attempt) -> str:
    proof = attempt.proof
    if proof is None:
        return ""
    if proof.status == "seen":
        if not proof.accelerator:
            return ", worker seen"
        count = f"{proof.count} x " if proof.count else ""
        return f", {count}{proof.accelerator} seen{f' in {proof.zone}' if proof.zone else ''}"
    return f", accelerator {proof.status.replace('_', ' ')}"


def _after(attempt: Attempt) -> str:
    if attempt.submitted_at is None or attempt.ended_at is None:
        return ""
    return f", after {duration(attempt.ended_at - attempt.submitted_at)}"


def duration(span: timedelta) -> str:
    """Return a span as people say it: ``40 s``, ``4 min``, ``2 h 5 min``."""
    seconds = round(span.total_seconds())
    if seconds < 100:
        return f"{seconds} s"
    minutes = round(seconds / 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min"
