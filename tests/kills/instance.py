"""A task instance in Airflow's own database, and what its scheduler and its users do with it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

from airflow.dag_processing.bundles.manager import DagBundlesManager
from airflow.dag_processing.collection import update_dag_parsing_results_in_db
from airflow.models.serialized_dag import SerializedDagModel
from airflow.models.task_state_store import TaskStateStoreModel
from airflow.models.taskinstance import TaskInstance, clear_task_instances
from airflow.models.trigger import Trigger
from airflow.sdk.api.datamodels._generated import TaskInstance as TaskInstanceDto
from airflow.serialization.serialized_objects import LazyDeserializedDAG
from airflow.utils.session import create_session
from airflow.utils.state import DagRunState, TaskInstanceState
from airflow.utils.types import DagRunTriggeredByType, DagRunType
from sqlalchemy import select

from airflow_accel_provider.core.record import RECORD_KEY, Record

if TYPE_CHECKING:
    from airflow.sdk import DAG
    from airflow.triggers.base import TriggerEvent
    from sqlalchemy.orm import Session

BUNDLE = "dags-folder"
RUN_ID = "manual__1"


@dataclass(frozen=True, slots=True)
class Instance:
    """The one task instance of a story's DAG."""

    dag: DAG
    task_id: str = "score"

    def begin(self) -> None:
        """Make the DAG and its run known to Airflow."""
        with create_session() as session:
            DagBundlesManager().sync_bundles_to_db(session=session)
            session.commit()
            parsed = [LazyDeserializedDAG.from_dag(self.dag)]
            update_dag_parsing_results_in_db(BUNDLE, None, parsed, {}, None, set(), session=session)
        now = datetime.now(UTC)
        with create_session() as session:
            self._serialized(session).create_dagrun(
                run_id=RUN_ID,
                logical_date=now,
                data_interval=(now, now),
                run_after=now,
                run_type=DagRunType.MANUAL,
                state=DagRunState.RUNNING,
                triggered_by=DagRunTriggeredByType.TEST,
                start_date=now,
                session=session,
            )

    @property
    def state(self) -> str | None:
        """Its state."""
        with create_session() as session:
            return self._row(session).state

    @property
    def record(self) -> Record | None:
        """The record that it keeps."""
        chosen = select(TaskStateStoreModel.value).where(
            TaskStateStoreModel.dag_id == self.dag.dag_id, TaskStateStoreModel.key == RECORD_KEY
        )
        with create_session() as session:
            stored = session.scalars(chosen).one_or_none()
        return Record.from_json(json.loads(stored)) if stored else None

    def schedule(self) -> None:
        """Have its next try begin, as the scheduler does."""
        with create_session() as session:
            row = self._row(session)
            row.task = self._task(session)
            row.get_dagrun(session=session).schedule_tis([row], session=session)

    def queue(self) -> TaskInstanceDto:
        """Hand it to a worker."""
        with create_session() as session:
            row = self._row(session)
            row.state = TaskInstanceState.QUEUED
            return _dto(row)

    def notice_end(self, *, as_success: bool = False) -> None:
        """Notice that its worker is no more, as the scheduler does; ``as_success`` is what the executor says of it."""
        with create_session() as session:
            row = self._row(session)
            row.task = self._task(session)
            if row.state == TaskInstanceState.RESTARTING and as_success:
                row.max_tries = row.try_number + row.task.retries
                row.set_state(None, session=session)
            elif row.state in {TaskInstanceState.QUEUED, TaskInstanceState.RUNNING, TaskInstanceState.RESTARTING}:
                row.handle_failure("no heartbeat was heard", session=session)

    def clear(self) -> None:
        """Clear it, as a user does."""
        with create_session() as session:
            clear_task_instances([self._row(session)], session, dag_run_state=DagRunState.RUNNING)

    def mark(self, state: TaskInstanceState) -> None:
        """Mark it, as a user does."""
        with create_session() as session:
            self._row(session).set_state(state, session=session)

    def waiting(self) -> tuple[int, str, dict[str, Any], TaskInstanceDto]:
        """Return the id, class and arguments of the trigger that it waits for, and the task instance itself."""
        with create_session() as session:
            row = self._row(session)
            trigger = session.get_one(Trigger, row.trigger_id)
            return trigger.id, trigger.classpath, dict(trigger.kwargs), _dto(row)

    def _row(self, session: Session) -> TaskInstance:
        return session.scalars(select(TaskInstance).where(TaskInstance.dag_id == self.dag.dag_id)).one()

    def _serialized(self, session: Session) -> Any:
        return SerializedDagModel.get_dag(self.dag.dag_id, session=session)

    def _task(self, session: Session) -> Any:
        return self._serialized(session).get_task(self.task_id)


def fire(trigger_id: int, event: TriggerEvent) -> None:
    """Have a trigger's event wake its task, as the triggerer does."""
    Trigger.submit_event(trigger_id, event)


def fail(trigger_id: int, error: BaseException) -> None:
    """Have a trigger's crash wake its task, as the triggerer does."""
    Trigger.submit_failure(trigger_id, [str(error)])


def _dto(row: TaskInstance) -> TaskInstanceDto:
    return TaskInstanceDto(
        id=UUID(str(row.id)),
        task_id=row.task_id,
        dag_id=row.dag_id,
        run_id=row.run_id,
        try_number=row.try_number,
        map_index=row.map_index,
        dag_version_id=UUID(str(row.dag_version_id)),
    )
