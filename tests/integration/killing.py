"""A task that waits on a worker, for a test to kill."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

from airflow_accel_provider.exceptions import AcceleratorCancelledError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from airflow_accel_provider.operators._job import AcceleratorJobOperator
    from tests.integration.task_run import TaskRun


@contextmanager
def killed_at_the_end(run: TaskRun) -> Iterator[list[str]]:
    """Execute the task in a thread of its own, and kill it when the block is left; what it says then is in the list."""
    operator: AcceleratorJobOperator = run.operator()
    said: list[str] = []

    def work() -> None:
        try:
            operator.execute(run.context)  # type: ignore[arg-type]
        except AcceleratorCancelledError as error:
            said.append(str(error))

    worker = threading.Thread(target=work)
    worker.start()
    yield said
    operator.on_kill()
    worker.join(60)
