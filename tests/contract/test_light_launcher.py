"""The light launcher against Beam's own: the same flags make the same job."""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from emulators import running
from test_rendered_requests import FULL, OWN_LABELS, request_of

from airflow_accel_provider.core.options import beam_flags
from airflow_accel_provider.hooks.credentials import launcher_credentials
from tests.kills import recording

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from emulators import Emulator

G2 = "nvidia-l4:1 on g2-standard-8 in us-central1-a"
PLAIN: dict[str, Any] = {}
SETS = [
    (G2, PLAIN),
    (G2, FULL),
    ("nvidia-tesla-t4:2 on n1-standard-32 in us-central1", {"num_workers": 2}),
    ("tpu-v6e-slice:1x1 on ct6e-standard-1t in us-east5-b", PLAIN),
    ("tpu-v5-lite-podslice:2x2 on ct5lp-hightpu-4t in us-west4-a", {"max_num_workers": 3}),
]
BY_NATURE = {"clientRequestId", "pipelineProtoHash"}
"""Differs between any two launches: an id, and the digest of a pipeline that names its own image."""


@contextmanager
def lent(emulator: Emulator) -> Iterator[Mapping[str, str]]:
    """Lend the emulator's account as the operator lends its connection's."""
    from airflow.sdk import Connection

    from airflow_accel_provider.hooks.session import GoogleSession

    said = {"keyfile_dict": emulator.keys["airflow"].read_text(), "project": emulator.project}
    connection = Connection(conn_id="lent", conn_type="google_cloud_platform", extra=json.dumps(said))
    with launcher_credentials(GoogleSession.from_connection(connection)) as environment:
        yield {**environment, "STORAGE_EMULATOR_HOST": emulator.url}


@pytest.fixture(scope="module")
def emulator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Emulator]:
    """Return an emulator where no worker ever starts."""
    with running(tmp_path_factory.mktemp("light"), world="nowhere", time_scale=600.0) as started:
        yield started


@pytest.fixture(scope="module")
def light(emulator: Emulator, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the light launcher with its recording."""
    directory = tmp_path_factory.mktemp("launcher")
    return recording.record(directory, state=emulator.directory, url=emulator.url, environment=emulator.environment())


def comparable(value: Any, folder: str) -> Any:
    """Return a job without what differs between two launches: names of staged files, ids, order of display data."""
    if isinstance(value, dict):
        return {name: comparable(each, folder) for name, each in value.items() if name not in BY_NATURE}
    if isinstance(value, list):
        shown = [comparable(each, folder) for each in value]
        return sorted(shown, key=lambda each: str(each["key"])) if _is_display(shown) else shown
    return value.replace(folder, "FOLDER") if isinstance(value, str) else value


def _is_display(shown: list[Any]) -> bool:
    return bool(shown) and all(isinstance(each, dict) and "namespace" in each for each in shown)


def sent(emulator: Emulator, program: Path, flags: tuple[str, ...], environment: Mapping[str, str]) -> Any:
    """Return what a launcher had the service make of its flags, told of no name."""
    name = next(flag.partition("=")[2] for flag in flags if flag.startswith("--job_name="))
    recording.launch(program, flags, environment)
    job = recording.request_of(emulator.directory, name)
    folder = job["environment"]["tempStoragePrefix"].partition("/")[2]
    return json.loads(json.dumps(comparable(job, folder)).replace(name, "NAME"))


@pytest.mark.parametrize("place", range(len(SETS)), ids=[f"{place} {'full' if said else ''}" for place, said in SETS])
def test_sends_what_beam_sends(emulator: Emulator, light: Path, place: int) -> None:
    """The light launcher's job is Beam's in every field but ids, staged names and the pipeline's digest."""
    where, parameters = SETS[place]
    options = {"temp_location": f"gs://{recording.BUCKET}/work"}
    request, placement = request_of(where, {**parameters, "options": options})
    said: dict[str, Any] = {"project": emulator.project, "labels": OWN_LABELS, "endpoint": emulator.url}
    programs = {f"light-{place}": light, f"beams-{place}": recording.TINY}
    with lent(emulator) as environment:
        jobs = [
            sent(emulator, program, beam_flags(request, placement, job_name=name, **said), environment)
            for name, program in programs.items()
        ]
    assert jobs[0] == jobs[1]
