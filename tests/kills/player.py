"""``python -m tests.kills.player DIRECTORY WITHOUT NAME…``: play stories in an Airflow of this process's own.

``WITHOUT`` is a guard that the product is to be without, or ``nothing``.
"""

from __future__ import annotations

import asyncio
import gc
import sys
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from uuid import uuid4

import httpx
from airflow.sdk.execution_time.supervisor import in_process_api_server

from tests.chaos.mutants import MUTANTS, without
from tests.integration.local_google import LocalGoogle
from tests.kills.stage import launcher_in, tell
from tests.kills.story import Story


def main(directory: Path, guard: str, *names: str) -> None:
    """Play them and tell of each."""
    warm()
    google, light = LocalGoogle.running_in(directory / "emulator"), launcher_in(directory)
    with without(guard) if guard in MUTANTS else nullcontext():
        for name in names:
            tell(asdict(Story(google, light, directory, name).play()))


def warm() -> None:
    """Load and make here what each child would have to otherwise: three seconds of each step."""
    import airflow.providers.google.common.hooks.base_google  # noqa: F401

    asyncio.run(_ask_in_vain())
    gc.freeze()


async def _ask_in_vain() -> None:
    """Have Airflow's API make its routes, which it does when it is first asked."""
    server = in_process_api_server()
    async with (
        server.app.router.lifespan_context(server.app),
        httpx.AsyncClient(transport=server.atransport, base_url="http://in-process.invalid") as client,
    ):
        await client.put(f"/task-instances/{uuid4()}/heartbeat", json={"hostname": "nowhere", "pid": 1})


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
