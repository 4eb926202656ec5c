"""``python -m airflow_accel_provider.emulator``: run the emulator in the foreground."""

from __future__ import annotations

import fcntl
import signal
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, NoReturn

from airflow_accel_provider.emulator.server import EmulatorServer
from airflow_accel_provider.emulator.settings import Settings, read_settings
from airflow_accel_provider.emulator.state import Google

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from types import FrameType


def main() -> int:
    """Run until SIGINT or SIGTERM; return 0, or 2 with one sentence that says why it cannot start."""
    settings = read_settings(sys.argv[1:])
    # uvicorn repeats the signal that ended it; an end that was asked for is a good end.
    signal.signal(signal.SIGTERM, _leave)
    signal.signal(signal.SIGINT, _leave)
    try:
        with _claimed(settings.state):
            _serve(settings)
    except OSError as error:
        print(f"The emulator cannot start: {error}.", file=sys.stderr)  # noqa: T201
        return 2
    return 0


def _serve(settings: Settings) -> None:
    google = Google(settings.state, project=settings.project, world=settings.world, time_scale=settings.time_scale)
    google.dataflow.templates.put(settings.templates)
    EmulatorServer(google, port=settings.port, on_ready=lambda url: _announce(url, settings)).serve_until_stopped()


def _announce(url: str, settings: Settings) -> None:
    where = f"{url} (world {settings.world}, state {settings.state})"
    print(f"Google on {where}. It executes the code that is submitted to it.", flush=True)  # noqa: T201


@contextmanager
def _claimed(state: Path) -> Iterator[None]:
    """Keep a second emulator off the same state: both would run the same jobs."""
    state.mkdir(parents=True, exist_ok=True)
    with (state / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise OSError(f"another one already runs on the state directory {state}") from None
        yield


def _leave(signum: int, frame: FrameType | None) -> NoReturn:  # noqa: ARG001
    sys.exit(0)


if __name__ == "__main__":
    sys.exit(main())
