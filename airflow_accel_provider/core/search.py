"""Which place comes next: the first, in the user's order, that nothing yet learnt rules out."""

from __future__ import annotations

from airflow_accel_provider.core.failures import Failure, FailureKind, Resource, Scope
from airflow_accel_provider.core.locations import region_of
from airflow_accel_provider.core.placement import Placement
from airflow_accel_provider.core.policy import Policy
from airflow_accel_provider.core.record import Attempt, Outcome, PlannedPlace, Record
from airflow_accel_provider.core.reservations import ANY


def may_move(attempt: Attempt, policy: Policy) -> bool:
    """Tell whether another place may be tried after this attempt.

    Never once the accelerator was seen, or the work done: the place was right, whatever failed later. Never after
    somebody cancelled, or when the time is over.
    """
    if attempt.failure is None or attempt.is_proven or attempt.outcome is Outcome.DONE:
        return False
    if attempt.failure.kind in {FailureKind.CANCELLED, FailureKind.TIMEOUT}:
        return False
    return attempt.failure.kind in policy.fallback_on


def is_searching(record: Record, policy: Policy) -> bool:
    """Tell whether the next decision is about where to go, so that a fresh plan is worth its calls."""
    last = record.current
    return record.open is None and (last is None or may_move(last, policy) or is_of_past_time(last, policy))


def is_of_past_time(attempt: Attempt, policy: Policy) -> bool:
    """Tell whether an attempt was ended since the time of an earlier try was over: this one has all of its own.

    A try asks for its job's end for that only once its time is over, by the clock that both were read from.
    """
    is_out_of_time = attempt.failure is not None and attempt.failure.kind is FailureKind.TIMEOUT
    asked = attempt.cancel_requested_at
    if not is_out_of_time or attempt.outcome is not Outcome.CANCELLED or asked is None:
        return False
    return policy.deadline is None or asked < policy.deadline.at


def exhausted(record: Record) -> Failure:
    """Return the failure of a search that found no place: that of the last attempt, else of the first rejection."""
    tried = [attempt.failure for attempt in record.this_round if attempt.failure]
    skipped = [place.rejected for place in record.plan if place.rejected]
    reasons = tried[::-1] + skipped
    nothing = Failure(kind=FailureKind.CONFIGURATION, scope=Scope.NONE, explanation="there is no candidate")
    return reasons[0] if reasons else nothing


def next_place(record: Record, policy: Policy) -> tuple[int, Placement] | None:
    """Return the first candidate, in the user's order, that is neither rejected, tried nor ruled out by a failure."""
    hinted = _hinted(record, policy)
    if hinted:
        return hinted
    tried = {attempt.candidate for attempt in record.this_round}
    for index, place in enumerate(record.plan):
        if index not in tried and place.rejected is None and blocked_by(record, place) is None:
            return index, place.placement
    return None


def _hinted(record: Record, policy: Policy) -> tuple[int, Placement] | None:
    """Return a second try of the same candidate, pinned to a zone of its region that the stockout itself named."""
    last = record.current
    if last is None or last.failure is None or last.placement.zone or not may_move(last, policy):
        return None
    if record.service == "dataproc":
        # A batch has no field for a zone.
        return None
    if last.failure.kind is not FailureKind.STOCKOUT or _is_put_aside(record, last.candidate):
        return None
    zones = [zone for zone in last.failure.hint_zones if region_of(zone) == last.placement.region]
    fresh = [zone for zone in zones if zone != last.failure.zone]
    return (last.candidate, last.placement.pinned(fresh[0])) if fresh else None


def _is_put_aside(record: Record, candidate: int) -> bool:
    return candidate < len(record.plan) and record.plan[candidate].rejected is not None


def blocked_by(record: Record, place: PlannedPlace) -> Attempt | None:
    """Return the attempt of this round whose failure also speaks about this place, if any."""
    about = (attempt for attempt in record.this_round if not _is_apart(record, attempt, place))
    return next((attempt for attempt in about if _speaks_of(attempt, place.placement)), None)


def _is_apart(record: Record, attempt: Attempt, place: PlannedPlace) -> bool:
    """Tell whether an attempt was short of machines of another pool than the place draws on.

    A named reservation is a pool of its own. A place that may use any is as one on demand once it was tried.
    """
    failure = attempt.failure
    if failure is None or failure.kind not in _SHORTAGES or failure.resource not in _OF_MACHINES:
        return False
    tried = record.plan[attempt.candidate].reservation if attempt.candidate < len(record.plan) else None
    return (None if tried == ANY else tried) != place.reservation


_SHORTAGES = frozenset({FailureKind.STOCKOUT, FailureKind.QUOTA})
_OF_MACHINES = frozenset({Resource.ACCELERATOR, Resource.CPU, None})


def _speaks_of(attempt: Attempt, placement: Placement) -> bool:
    failure = attempt.failure
    if failure is None:
        return False
    same_accelerator = _type(attempt.placement) == _type(placement)
    if failure.scope is Scope.PROJECT:
        # What caps all GPUs of a project says nothing of its TPUs, and the other way round.
        return isinstance(placement.accelerator, type(attempt.placement.accelerator))
    if failure.scope is Scope.REGION:
        short_of_accelerator = failure.resource in {Resource.ACCELERATOR, None}
        return failure.region == placement.region and (same_accelerator or not short_of_accelerator)
    if failure.scope is Scope.ZONE:
        same_shape = same_accelerator and attempt.placement.machine_type == placement.machine_type
        return same_shape and placement.zone is not None and placement.zone == failure.zone
    return False


def _type(placement: Placement) -> str:
    return str(getattr(placement.accelerator, "type", "cpu"))
