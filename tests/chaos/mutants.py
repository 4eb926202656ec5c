"""The product with one of its guards taken out, to see that the stories would notice."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from airflow.sdk import BaseOperator

from airflow_accel_provider.core import decisions, fallback, search
from airflow_accel_provider.core import record as core_record
from airflow_accel_provider.core.fallback import decide
from airflow_accel_provider.core.jobs import Snapshot
from airflow_accel_provider.core.record import Outcome, Record
from airflow_accel_provider.exceptions import AcceleratorSupersededError
from airflow_accel_provider.hooks import ending, spark
from airflow_accel_provider.hooks._tokens import Tokens
from airflow_accel_provider.hooks.submission import _templates
from airflow_accel_provider.operators import _beam, _context
from airflow_accel_provider.operators._beam import BeamPipelineOperator
from airflow_accel_provider.operators._job import AcceleratorJobOperator
from airflow_accel_provider.operators.dataproc import DataprocGpuBatchOperator
from airflow_accel_provider.triggers import _follow
from airflow_accel_provider.triggers.job import AcceleratorJobTrigger, _Notes
from tests.chaos.clock import everywhere

_AFTER = fallback._after

_OPERATORS = (BeamPipelineOperator, DataprocGpuBatchOperator)


def _no_intent() -> Iterator[Any]:
    """Write nothing before a submission."""
    save = AcceleratorJobOperator._save

    def after(self: Any, context: Any, record: Record) -> None:
        if record.open is None or record.open.outcome is not Outcome.INTENT:
            save(self, context, record)

    yield patch.object(AcceleratorJobOperator, "_save", after)


def _no_look_up() -> Iterator[Any]:
    """Submit a job without a look whether it is there."""
    for operator in _OPERATORS:
        yield patch.object(operator, "find", lambda *_: None)


def _no_ownership() -> Iterator[Any]:
    """Take whatever has the name for the task's own."""
    from airflow_accel_provider.core import spark as core_spark

    yield patch.object(_beam, "owns", lambda *_: True)
    yield patch.object(core_spark, "owns_batch", lambda *_: True)


def _no_stale_end() -> Iterator[Any]:
    """Begin a new life without a thought of the old one's job."""
    yield patch.object(_context, "resume", lambda *args, **said: (core_record.resume(*args, **said)[0], ()))


def _stale_end_unseen() -> Iterator[Any]:
    """Ask the old life's job to end, and do not wait for that."""

    def ask(self: Any, session: Any, record: Record, attempt: Any) -> None:
        found = self.find(session, attempt)
        if found:
            self.cancel(session, replace(found, outcome=Outcome.CANCELLING))

    yield patch.object(AcceleratorJobOperator, "_end_stale", ask)


def _stale_forgotten_early() -> Iterator[Any]:
    """Write the new life down before the old one's job has ended."""
    opened = _context.open_record

    def early(context: Any, **said: Any) -> Any:
        record, stale = opened(context, **said)
        _context.store(context, record)
        return record, stale

    yield from everywhere("open_record", early)


def _done_runs_again() -> Iterator[Any]:
    """Forget what was reached when a try begins after the end."""

    def resume(record: Record, **said: Any) -> Any:
        if record.ended and said["max_tries"] == record.max_tries and not record.killed:
            return replace(record, round=record.round + 1, ended=False), ()
        return core_record.resume(record, **said)

    yield patch.object(_context, "resume", resume)


def _retry_is_a_new_life() -> Iterator[Any]:
    """Take every try for a clear, and leave the job of the one before alone."""

    def resume(record: Record, **said: Any) -> Any:
        fresh, _ = core_record.resume(replace(record, killed=True), **said)
        return fresh, ()

    yield patch.object(_context, "resume", resume)


def _moves_at_once() -> Iterator[Any]:
    """Take a job that was asked to end for one that has ended."""

    def hasty(record: Record, snapshot: Any, policy: Any, now: Any) -> Any:
        attempt = record.open
        if attempt and attempt.outcome.is_ending and attempt.job_id:
            closed = replace(attempt, outcome=Outcome.CANCELLED, ended_at=now)
            return decisions.Wait(record.with_attempt(closed))
        return decide(record, snapshot, policy, now)

    yield patch.object(_follow, "decide", hasty)


def _moved_trigger_kills() -> Iterator[Any]:
    """End the job with its trigger, without asking whether the task still waits."""

    async def never(*_: Any) -> None:
        return None

    yield patch.object(AcceleratorJobTrigger, "_why_not", never)


def _deaf_trigger() -> Iterator[Any]:
    """Do nothing in a trigger whose task is ended or cleared."""

    async def nothing(_: Any) -> None:
        return None

    yield patch.object(AcceleratorJobTrigger, "on_kill", nothing)


def _deaf_worker() -> Iterator[Any]:
    """Do nothing on a worker whose task is killed."""
    yield patch.object(AcceleratorJobOperator, "on_kill", lambda _: None)


def _no_ended_mark() -> Iterator[Any]:
    """Do not write down that an outcome was reported."""
    save = AcceleratorJobOperator._save

    def unmarked(self: Any, context: Any, record: Record) -> None:
        save(self, context, replace(record, ended=False))

    yield patch.object(AcceleratorJobOperator, "_save", unmarked)


def _names_by_chance() -> Iterator[Any]:
    """Give each submission a name, and the request an id, of its own."""
    dice = iter(range(10**9))
    for operator in _OPERATORS:
        submit = operator.submit

        def named(self: Any, session: Any, attempt: Any, labels: Any, submit: Any = submit) -> Any:
            return submit(self, session, replace(attempt, job_name=f"{attempt.job_name}-{next(dice)}"), labels)

        yield patch.object(operator, "submit", named)
    yield patch.object(DataprocGpuBatchOperator, "_request_id", lambda *_: f"accel-{next(dice)}")


def _refusal_is_final() -> Iterator[Any]:
    """Take a launch that is refused for one that made no job, whatever became of those before."""
    yield patch.object(_templates, "_is_unclear", lambda _: False)


def _lists_are_at_once() -> Iterator[Any]:
    """Take a job that is not listed yet for none."""
    yield patch.object(AcceleratorJobOperator, "listed_within", timedelta())


def _hasty_kill() -> Iterator[Any]:
    """Go on after a kill as if the older life's job had ended."""
    yield patch.object(AcceleratorJobOperator, "_leave_stale_if_killed", lambda *_: None)


def _no_word_of_a_clear() -> Iterator[Any]:
    """Leave the next try no word of a clear that ended this one."""
    yield from everywhere("mark_cleared", lambda _: False)


def _no_end() -> Iterator[Any]:
    """Ask no service to end a job."""
    yield patch.object(ending.DataflowHook, "cancel", lambda *_: None)
    yield patch.object(spark.SparkHook, "cancel", lambda *_: None)


def _no_deadline() -> Iterator[Any]:
    """Forget that a try has an end."""
    yield from everywhere("deadline_of", lambda *_: None)


def _crash_is_final() -> Iterator[Any]:
    """Leave a trigger that crashes, or of which nothing is heard, to Airflow."""
    yield patch.object(AcceleratorJobOperator, "resume_execution", BaseOperator.resume_execution)


def _token_is_for_ever() -> Iterator[Any]:
    """Take the refusal of a token for final."""
    yield patch.object(Tokens, "change", lambda _, refused, *_args, **_said: refused)


def _no_naming() -> Iterator[Any]:
    """Do not say which job may go on."""
    yield from everywhere("alive_attempt", lambda _: None)


def _dead_goes_on() -> Iterator[Any]:
    """Act on a worker whose try is over as if Airflow had said nothing of it."""
    store = _context.store

    def stubborn(context: Any, record: Record) -> None:
        with suppress(AcceleratorSupersededError):
            store(context, record)

    yield from everywhere("store", stubborn)
    yield from everywhere("check_current", lambda _: None)


def _owner_from_ids() -> Iterator[Any]:
    """Give the same owner to all that has the same ids."""
    yield patch.object(_context, "uuid", SimpleNamespace(uuid4=lambda: SimpleNamespace(hex="f" * 32)))


def _item_is_its_index() -> Iterator[Any]:
    """Take what stands at the same index for the same."""
    yield patch.object(Record, "is_about_another", lambda *_: False)


def _no_notes() -> Iterator[Any]:
    """Forget why a job was asked to end when its trigger or worker is gone."""

    async def unchanged(_: Any, attempt: Any) -> Any:
        return attempt

    async def nothing(*_: Any) -> None:
        return None

    yield patch.object(_Notes, "recall", unchanged)
    yield patch.object(_Notes, "write", nothing)
    yield from everywhere("noted", lambda _, record: record)


def _unheard_end() -> Iterator[Any]:
    """Let the next try take the end that its own trigger asked for, for somebody else's."""
    yield patch.object(_context, "heard", lambda record, _: record)


def _past_time_counts() -> Iterator[Any]:
    """Fail a try since the time of the one before was over."""
    for module in (fallback, search):
        yield patch.object(module, "is_of_past_time", lambda *_: False)


def _cancels_late() -> Iterator[Any]:
    """Wait ten minutes before a job is asked to end."""
    since: dict[str, Any] = {}

    def patient(record: Record, snapshot: Any, policy: Any, now: Any) -> Any:
        decision = decide(record, snapshot, policy, now)
        attempt = record.open
        if not isinstance(decision, decisions.Cancel) or attempt is None:
            return decision
        begun = since.setdefault(attempt.job_name, now)
        return decision if now - begun >= timedelta(minutes=10) else decisions.Wait(record)

    yield patch.object(_follow, "decide", patient)


def _waits_out_shortages() -> Iterator[Any]:
    """Leave a job that the service says is short of machines alone until the time for its start is over."""
    yield patch.object(fallback, "next_place", lambda *_: None)
    yield patch.object(fallback, "_after", _after_with_places)


def _after_with_places(record: Record, policy: Any, now: Any) -> Any:
    with patch.object(fallback, "next_place", search.next_place):
        return _AFTER(record, policy, now)


def _moves_from_an_end() -> Iterator[Any]:
    """Go to the next place also when somebody has ended the job."""
    for module in (fallback, search):
        yield patch.object(module, "may_move", lambda attempt, _: attempt.failure is not None)


def _own_clock() -> Iterator[Any]:
    """Measure by the clock of whoever looks how long a job has been waiting for machines."""
    yield patch.object(Snapshot, "age", property(lambda _: None))


MUTANTS: Mapping[str, Callable[[], Iterator[Any]]] = {
    mutant.__name__.lstrip("_"): mutant
    for mutant in (
        _no_intent,
        _no_look_up,
        _no_ownership,
        _no_stale_end,
        _stale_end_unseen,
        _stale_forgotten_early,
        _done_runs_again,
        _retry_is_a_new_life,
        _moves_at_once,
        _moved_trigger_kills,
        _deaf_trigger,
        _deaf_worker,
        _no_ended_mark,
        _names_by_chance,
        _refusal_is_final,
        _lists_are_at_once,
        _hasty_kill,
        _no_word_of_a_clear,
        _no_end,
        _no_deadline,
        _crash_is_final,
        _token_is_for_ever,
        _no_naming,
        _dead_goes_on,
        _owner_from_ids,
        _item_is_its_index,
        _no_notes,
        _unheard_end,
        _past_time_counts,
        _cancels_late,
        _waits_out_shortages,
        _moves_from_an_end,
        _own_clock,
    )
}


@contextmanager
def without(guard: str) -> Iterator[None]:
    """Take a guard out."""
    with ExitStack() as stack:
        for change in MUTANTS[guard]():
            stack.enter_context(change)
        yield
