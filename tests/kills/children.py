"""Processes of their own for each step of a task: a worker's, or a triggerer's. They may be killed."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
import traceback
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import psutil
import structlog
from airflow import settings
from airflow.sdk._shared.module_loading import import_string
from airflow.sdk.execution_time.supervisor import InProcessTestSupervisor, set_supervisor_comms

from tests.kills.comms import Comms
from tests.kills.instance import Instance, fail, fire

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from airflow.sdk import DAG

    from tests.kills.points import Points

LONGEST = 90.0
"""Seconds after which a step is taken to hang."""
USER_ACTED = signal.SIGUSR1
"""The word to a triggerer's child that a user acted on the task of its trigger."""


@dataclass(slots=True)
class Child:
    """A running step."""

    pid: int
    begun: float

    def end(self) -> int:
        """Wait for its end and return its exit code (negative: the signal that ended it); kill it where it hangs."""
        while True:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                return os.waitstatus_to_exitcode(status)
            if time.monotonic() - self.begun > LONGEST:
                os.kill(self.pid, signal.SIGKILL)
                os.waitpid(self.pid, 0)
                raise TimeoutError(f"a step has lasted for more than {LONGEST:.0f} seconds")
            time.sleep(0.01)


def fork(step: Callable[[], None], points: Points, log: Path) -> Child:
    """Run a step in a child of its own."""
    settings.dispose_orm(do_log=False)
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            _begin(log)
            points.install()
            step()
            code = 0
        except BaseException:  # noqa: BLE001 - a child must not go on as its parent
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    settings.configure_orm()
    return Child(pid, time.monotonic())


def _begin(log: Path) -> None:
    with log.open("ab") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    settings.configure_orm()


def work(instance: Instance, make: Callable[[], DAG]) -> Callable[[], None]:
    """Return a worker's step: run the try, or the rest of it, in Airflow's own task runner."""
    what = instance.queue()

    def step() -> None:
        InProcessTestSupervisor.start(what=what, task=make().get_task(instance.task_id))

    return step


def wait(instance: Instance, points: Points) -> Callable[[], None]:
    """Return a triggerer's step: run the trigger as it is stored, until it fires."""
    number, path, arguments, what = instance.waiting()

    def step() -> None:
        trigger = import_string(path)(**arguments)
        trigger.task_instance = what
        supervisor = InProcessTestSupervisor(
            id=what.id,
            pid=os.getpid(),
            process=psutil.Process(),
            process_log=structlog.get_logger(logger_name="trigger"),
            client=InProcessTestSupervisor._api_client(),
        )
        supervisor.comms = Comms(supervisor=supervisor)
        with set_supervisor_comms(supervisor.comms):
            try:
                event = asyncio.run(_follow(trigger))
            except Exception as error:  # noqa: BLE001 - as a triggerer takes any
                traceback.print_exc()
                fail(number, error)
                return
        # What a user does from here on comes too late for this trigger.
        signal.signal(USER_ACTED, signal.SIG_IGN)
        if event is not None:
            points.reach("before the event")
            fire(number, event)
            points.reach("after the event")

    return step


async def _follow(trigger: Any) -> Any:
    """Return what the trigger fires; nothing where a user acted on its task, and ``on_kill`` was called for it."""
    running = asyncio.create_task(_first(trigger))
    asyncio.get_running_loop().add_signal_handler(USER_ACTED, running.cancel)
    try:
        return await running
    except asyncio.CancelledError:
        await asyncio.wait_for(trigger.on_kill(), timeout=30)
        return None
    finally:
        await trigger.cleanup()


async def _first(trigger: Any) -> Any:
    async for event in trigger.run():
        return event
    raise AssertionError("the trigger ended without an event")
