"""The process that a job's pipeline runs in: ``python -m … DIRECTORY PACKAGES``.

It reads ``DIRECTORY/work.json``, fetches the staged pipeline, installs what was staged with it, and runs it with Beam's
own in-process runner: every environment of the pipeline becomes this process. What came of it goes into
``DIRECTORY/outcome.json``. A bundle that fails is tried once, not four times: the runner has no retries, and a
deterministic failure would only take four times as long.
"""

from __future__ import annotations

import json
import logging
import os
import re
import signal
import sys
import threading
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow_accel_provider.emulator.dataflow.packages import InstallationError, install

if TYPE_CHECKING:
    from collections.abc import Mapping

_STEP = re.compile(r"\[while running '(?P<step>[^']+)'\]")
_SDK_CAPABILITY = "beam:version:sdk_base:"


class EnvironmentMismatchError(Exception):
    """The pipeline was built for a Python or a Beam that this process is not."""


class StagingError(Exception):
    """What the launcher was to stage cannot be read."""


def main(directory: Path, packages: Path) -> int:
    """Run the work that lies in a directory; returns the exit code."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    logging.basicConfig(level=logging.INFO)
    work = json.loads((directory / "work.json").read_text(encoding="utf-8"))
    outcome = _attempt(work, directory, packages)
    draft = directory / "outcome.draft"
    draft.write_text(json.dumps(outcome), encoding="utf-8")
    draft.replace(directory / "outcome.json")
    return 1 if outcome.get("error") else 0


def _end_with_parent() -> None:
    # Past the buffered stream, whose lock would be held when this process ends.
    while os.read(0, 1024):
        continue
    os.killpg(0, signal.SIGKILL)


def _attempt(work: Mapping[str, Any], directory: Path, packages: Path) -> dict[str, Any]:
    try:
        return {"error": None, "metrics": _run(work["options"], directory, packages)}
    except (EnvironmentMismatchError, InstallationError, StagingError) as error:
        return {"error": str(error), "cause": str(error), "is_work_item": False, "step": "", "metrics": []}
    except Exception as error:  # noqa: BLE001 - whatever the pipeline raises is the job's failure
        return _user_failure(error)


def _user_failure(error: Exception) -> dict[str, Any]:
    text = "".join(traceback.format_exception(error))
    step = _STEP.search(text)
    lines = [line for line in str(error).strip().splitlines() if line.strip()]
    cause = lines[-1] if lines else repr(error)
    return {
        "error": f"Traceback (most recent call last):\n{text}" if "Traceback" not in text else text,
        "cause": cause,
        "is_work_item": True,
        "step": step["step"] if step else "Unknown",
        "metrics": [],
    }


def _run(options: Mapping[str, Any], directory: Path, packages: Path) -> list[dict[str, Any]]:
    from apache_beam.io.filesystems import FileSystems
    from apache_beam.portability.api import beam_runner_api_pb2
    from apache_beam.runners.portability.fn_api_runner.fn_runner import FnApiRunner

    from airflow_accel_provider.emulator.dataflow.metrics import read_metrics

    pipeline_options = _pipeline_options(options)
    FileSystems.set_options(pipeline_options)
    pipeline = beam_runner_api_pb2.Pipeline.FromString(_fetch(options["pipelineUrl"]))
    _require_same_environment(pipeline)
    staged = _fetch_staged(pipeline, directory / "staged")
    sys.path.insert(0, str(install(staged, packages)))
    _load_main_session(staged)
    _embed(pipeline)
    result = FnApiRunner().run_via_runner_api(pipeline, pipeline_options)
    result.wait_until_finish()
    return read_metrics(pipeline, result.monitoring_infos())


def _pipeline_options(options: Mapping[str, Any]) -> Any:
    from apache_beam.options.pipeline_options import PipelineOptions
    from apache_beam.options.value_provider import RuntimeValueProvider

    # Numbers came as JSON doubles; an option that takes an int does not read "4.0".
    whole = {
        name: int(value) if isinstance(value, float) and value.is_integer() else value
        for name, value in options.items()
    }
    RuntimeValueProvider.set_runtime_options(whole)
    return PipelineOptions.from_dictionary({name: value for name, value in whole.items() if value not in ("", {}, [])})


def _require_same_environment(pipeline: Any) -> None:
    from apache_beam.transforms import environments

    runtime = environments.sdk_base_version_capability()
    for environment in _used_environments(pipeline):
        versions = [entry for entry in environment.capabilities if entry.startswith(_SDK_CAPABILITY)]
        submission = versions[0] if versions else f"{environment.urn} without a Python SDK"
        if submission != runtime:
            # The words of Beam's own worker.
            raise EnvironmentMismatchError(
                "Pipeline construction environment and pipeline runtime environment are not compatible. If you use a "
                "custom container image, check that the Python interpreter minor version and the Apache Beam version "
                "in your image match the versions used at pipeline construction time. "
                f"Submission environment: {submission}. Runtime environment: {runtime}."
            )


def _used_environments(pipeline: Any) -> list[Any]:
    components = pipeline.components
    used = {transform.environment_id for transform in components.transforms.values()} - {""}
    return [components.environments[name] for name in sorted(used)]


def _fetch(url: str) -> bytes:
    from apache_beam.io.filesystem import CompressionTypes
    from apache_beam.io.filesystems import FileSystems
    from google.api_core.exceptions import GoogleAPICallError

    try:
        # As it is: an archive is not to be unpacked because of its name.
        with FileSystems.open(url, compression_type=CompressionTypes.UNCOMPRESSED) as file:
            content: bytes = file.read()
    except (GoogleAPICallError, OSError) as error:
        raise StagingError(f"Unable to read the staged file {url}: {error}") from error
    return content


def _fetch_staged(pipeline: Any, directory: Path) -> dict[str, Path]:
    from apache_beam.portability import common_urns
    from apache_beam.portability.api import beam_runner_api_pb2

    directory.mkdir(exist_ok=True)
    staged = {}
    for environment in pipeline.components.environments.values():
        for dependency in environment.dependencies:
            if dependency.role_urn != common_urns.artifact_roles.STAGING_TO.urn:
                continue
            role = beam_runner_api_pb2.ArtifactStagingToRolePayload.FromString(dependency.role_payload)
            source = beam_runner_api_pb2.ArtifactUrlPayload.FromString(dependency.type_payload)
            # A staged name is a file's name; nothing is written outside the directory.
            target = directory / Path(role.staged_name).name
            target.write_bytes(_fetch(source.url))
            staged[role.staged_name] = target
    return staged


def _load_main_session(staged: Mapping[str, Path]) -> None:
    from apache_beam.internal import pickler

    session = staged.get("pickled_main_session")
    if session and session.stat().st_size:
        pickler.load_session(str(session))


def _embed(pipeline: Any) -> None:
    from apache_beam.portability import python_urns

    for environment in pipeline.components.environments.values():
        environment.urn = python_urns.EMBEDDED_PYTHON
        environment.payload = b""
        del environment.dependencies[:]


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2])))
