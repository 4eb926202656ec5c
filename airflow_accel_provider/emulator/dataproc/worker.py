"""The process that a batch runs in: ``python -m … DIRECTORY``.

It reads ``DIRECTORY/work.json``, fetches what the batch names, hands it to ``spark-submit`` of the PySpark that is
installed here, and brings files, driver output and event log back into the buckets. What came of it goes into
``DIRECTORY/outcome.json``.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow_accel_provider.emulator.dataproc.endings import last_words
from airflow_accel_provider.emulator.dataproc.fetching import FileNotThereError, fetch
from airflow_accel_provider.emulator.dataproc.installation import SparkMissingError, find_spark
from airflow_accel_provider.emulator.dataproc.mirror import Mirror, is_checksum, named_buckets
from airflow_accel_provider.emulator.dataproc.submission import (
    driver_environment,
    set_aside,
    spark_arguments,
    spark_properties,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from airflow_accel_provider.emulator.dataproc.submission import Files

HISTORY_FOLDER = "spark-job-history"
LOOK_SECONDS = 0.2
MIRROR, EVENTS, TOOLS = "gs", "events", "tools"


def main(directory: Path) -> int:
    """Run the batch that lies in a directory; returns the exit code."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    ending = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ending.set())
    work = json.loads((directory / "work.json").read_text(encoding="utf-8"))
    outcome = _attempt(work, directory, ending)
    draft = directory / "outcome.draft"
    draft.write_text(json.dumps(outcome), encoding="utf-8")
    draft.replace(directory / "outcome.json")
    return 1 if outcome["error"] is not None else 0


def _end_with_parent() -> None:
    # Past the buffered stream, whose lock would be held when this process ends.
    while os.read(0, 1024):
        continue
    os.killpg(0, signal.SIGKILL)


def _attempt(work: Mapping[str, Any], directory: Path, ending: threading.Event) -> dict[str, Any]:
    try:
        home = find_spark()
    except SparkMissingError as error:
        return {"error": str(error), "is_emulators": True}
    _clear(directory)
    client = _client()
    output = directory / "driveroutput.000000000"
    try:
        files = fetch(work["request"], client, Path.cwd())
        mirror = _mirror(work, client, files, directory / MIRROR)
        mirror.fill()
        command, environment = _spark(work, home, files, mirror, directory)
        output.write_text(_preface(work["properties"], mirror), encoding="utf-8")
        code = _run(command, environment, output, ending)
        if not ending.is_set():
            mirror.send_back()
    except FileNotThereError as error:
        output.write_text(f"{error}\n", encoding="utf-8")
        code = 1
    _publish(work, client, directory, output)
    shutil.rmtree(directory / MIRROR, ignore_errors=True)
    said = output.read_text(encoding="utf-8", errors="replace")
    return {"error": None if code == 0 else last_words(said), "is_emulators": False}


def _clear(directory: Path) -> None:
    """Forget what an earlier execution of the batch left: the emulator ended within it."""
    for old in (*(directory / name for name in (MIRROR, EVENTS, TOOLS)), *Path.cwd().iterdir()):
        if old.is_dir():
            shutil.rmtree(old)
        else:
            old.unlink(missing_ok=True)


def _client() -> Any:
    from google.cloud import storage

    key, url = os.environ["GOOGLE_APPLICATION_CREDENTIALS"], os.environ["STORAGE_EMULATOR_HOST"]
    return storage.Client.from_service_account_json(key, client_options={"api_endpoint": url})


def _mirror(work: Mapping[str, Any], client: Any, files: Files, directory: Path) -> Mirror:
    existing = [bucket.name for bucket in client.list_buckets()]
    code = [*([files.main] if files.main else []), *files.python, *files.files]
    return Mirror(client, directory, named_buckets(existing, json.dumps(work["request"]), code))


def _spark(
    work: Mapping[str, Any], home: Path, files: Files, mirror: Mirror, directory: Path
) -> tuple[list[str], dict[str, str]]:
    """Return what starts Spark, and the environment that it starts in."""
    tools, events = directory / TOOLS, directory / EVENTS
    for folder in (tools, events):
        folder.mkdir(exist_ok=True)
    _put_gpus(tools, work["gpus"], work["gpu_name"])
    properties = spark_properties(
        work["properties"], name=work["name"], buckets=mirror.paths, tools=tools, events=events
    )
    configured = directory / "spark.conf"
    configured.write_text(_conf(properties), encoding="utf-8")
    command = [str(home / "bin" / "spark-submit"), "--properties-file", str(configured)]
    environment = {
        **os.environ,
        "SPARK_HOME": str(home),
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        **driver_environment(work["properties"]),
    }
    return [*command, *spark_arguments(work["request"], files)], environment


def _run(command: Sequence[str], environment: Mapping[str, str], output: Path, ending: threading.Event) -> int:
    """Return the exit code of Spark. Told to end it is killed, so that there is time to bring its output away."""
    with output.open("a", encoding="utf-8") as log:
        spark = subprocess.Popen(
            command, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT
        )
        while spark.poll() is None:
            if ending.is_set():
                spark.kill()
            with suppress(subprocess.TimeoutExpired):
                spark.wait(LOOK_SECONDS)
    return spark.returncode


def _preface(properties: Mapping[str, str], mirror: Mirror) -> str:
    lines = [f"set aside: {name}={properties[name]} ({why})" for name, why in sorted(set_aside(properties).items())]
    reached = ", ".join(f"gs://{bucket}" for bucket in mirror.paths) or "none is named"
    return "\n".join((*lines, f"buckets within reach: {reached}", ""))


def _conf(properties: Mapping[str, str]) -> str:
    # The format of java.util.Properties: backslashes escape, and a line ends a value.
    rows = ((name, value.replace("\\", "\\\\").replace("\n", "\\n")) for name, value in properties.items())
    return "".join(f"{name}={value}\n" for name, value in rows)


def _put_gpus(tools: Path, count: int, name: str) -> None:
    """Put a command where executors find it first: ``nvidia-smi -L`` lists the GPUs that an executor would have."""
    if not count:
        return
    lines = "".join(
        f"echo 'GPU {number}: NVIDIA {name} (UUID: GPU-00000000-0000-0000-0000-{number:012d})'\n"
        for number in range(count)
    )
    command = tools / "nvidia-smi"
    refusal = "echo 'This stand-in for nvidia-smi knows -L alone.' >&2; exit 6"
    command.write_text(f'#!/bin/sh\nif [ "$*" != "-L" ]; then {refusal}; fi\n{lines}', encoding="utf-8")
    command.chmod(0o755)


def _publish(work: Mapping[str, Any], client: Any, directory: Path, output: Path) -> None:
    """Bring the driver's output and the event log into the batch's bucket."""
    bucket_name, _, prefix = work["output_uri"].removeprefix("gs://").partition("/")
    bucket = client.bucket(bucket_name)
    number = output.suffix
    bucket.blob(f"{prefix}{number}").upload_from_filename(str(output), content_type="text/plain")
    for log in sorted((directory / EVENTS).glob("*")):
        if log.is_file() and not is_checksum(log):
            bucket.blob(f"{work['uuid']}/{HISTORY_FOLDER}/{log.name}").upload_from_filename(str(log))


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
