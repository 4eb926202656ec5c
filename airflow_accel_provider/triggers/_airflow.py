"""What a trigger asks of Airflow, and keeps there, about the task instance that it waits for."""

from __future__ import annotations

from typing import Any

from airflow_accel_provider.core.notes import NOTE_KEY, note_of, word_of
from airflow_accel_provider.core.record import Attempt


class AirflowSilentError(Exception):
    """Airflow could not be asked, or gave no usable answer."""


async def task_state(ti: Any) -> str | None:
    """Return the state of the task instance, ``None`` before it has one. Raises :class:`AirflowSilentError`."""
    from airflow.sdk.execution_time.comms import GetTaskStates, TaskStatesResult

    answer = await _ask(
        GetTaskStates(dag_id=ti.dag_id, task_ids=[ti.task_id], run_ids=[ti.run_id], map_index=ti.map_index)
    )
    if not isinstance(answer, TaskStatesResult):
        raise AirflowSilentError(f"{answer!r}")
    name = ti.task_id if ti.map_index < 0 else f"{ti.task_id}_{ti.map_index}"
    state = answer.task_states.get(ti.run_id, {}).get(name)
    return str(state) if state else None


async def read_note(ti: Any) -> Any:
    """Return the note that a trigger of the same try wrote, if any. Raises :class:`AirflowSilentError`."""
    from airflow.sdk.execution_time.comms import GetXCom, XComResult

    answer = await _ask(GetXCom(key=NOTE_KEY, **_key(ti)))
    if not isinstance(answer, XComResult):
        raise AirflowSilentError(f"{answer!r}")
    return answer.value


async def write_note(ti: Any, attempt: Attempt) -> None:
    """Keep a note about an attempt where the next trigger of the same try finds it, and word of it for the next try.

    Raises :class:`AirflowSilentError`.
    """
    from airflow.sdk.execution_time.comms import SetXCom

    await _ask(SetXCom(key=NOTE_KEY, value=note_of(attempt), **_key(ti)))
    word = word_of(attempt)
    if word:
        await _ask(SetXCom(key=word, value=True, **_key(ti)))


def _key(ti: Any) -> dict[str, Any]:
    return {"dag_id": ti.dag_id, "run_id": ti.run_id, "task_id": ti.task_id, "map_index": ti.map_index}


async def _ask(question: Any) -> Any:
    from airflow.sdk.execution_time import task_runner

    try:
        comms = task_runner.SUPERVISOR_COMMS
        # Without a triggerer, as when a DAG is tested in one process, there is only the call that waits.
        return await comms.asend(question) if hasattr(comms, "asend") else comms.send(question)
    except Exception as error:  # whatever keeps Airflow from answering, nothing is known then
        raise AirflowSilentError(f"{type(error).__name__}: {error}") from error
