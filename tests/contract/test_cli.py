"""``accel emulator`` from a shell: starting, finding and stopping a process of its own."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import requests

import airflow_accel_provider

if TYPE_CHECKING:
    from collections.abc import Iterator

ACCEL = [sys.executable, "-m", "airflow_accel_provider.cli"]
BARE = {name: value for name, value in os.environ.items() if not name.startswith(("ACCEL_", "GOOGLE_", "STORAGE_"))}
START_SECONDS = 60


def accel(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    return subprocess.run(
        [*ACCEL, *arguments], env=BARE | environment, capture_output=True, text=True, timeout=START_SECONDS, check=False
    )


@contextmanager
def started(state: Path, *arguments: str, **environment: str) -> Iterator[subprocess.Popen[str]]:
    """Start an emulator, wait until it says where it is, and end it in any case."""
    command = [*ACCEL, "emulator", "--port", "0", "--state", str(state), *arguments]
    process = subprocess.Popen(
        command, env=BARE | environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        deadline = time.monotonic() + START_SECONDS
        while not (state / "emulator.json").exists():
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < deadline
            time.sleep(0.05)
        yield process
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_starts_says_where_and_stops(tmp_path: Path, number: signal.Signals) -> None:
    """A started emulator says where it listens and that it runs code, can be found, and leaves when it is told."""
    with started(tmp_path / "state") as process:
        address = json.loads((tmp_path / "state" / "emulator.json").read_text())
        assert address["pid"] == process.pid
        variables = json.loads(accel("emulator", "env", "--state", str(tmp_path / "state"), "--json").stdout)
        assert variables["STORAGE_EMULATOR_HOST"] == address["url"]
        assert requests.get(f"{address['url']}/storage/v1/b", timeout=30).status_code == 200
        process.send_signal(number)
        output, errors = process.communicate(timeout=30)
        assert (process.returncode, errors) == (0, "")
        assert output.count("\n") == 1
        assert address["url"] in output
        assert "executes the code" in output
    assert not (tmp_path / "state" / "emulator.json").exists()
    gone = accel("emulator", "env", "--state", str(tmp_path / "state"))
    assert (gone.returncode, gone.stdout) == (1, "")
    assert "accel emulator --state" in gone.stderr


def test_the_exports_point_a_shell_at_it(tmp_path: Path) -> None:
    """What ``accel emulator env`` prints is taken by a shell, with Airflow's connection whole."""
    with started(tmp_path, "--project", "acme-other"):
        exports = accel("emulator", "--state", str(tmp_path), "env").stdout
        script = f"{exports}\nexec {sys.executable} -c 'import json, os; print(json.dumps(dict(os.environ)))'"
        shell = subprocess.run(["/bin/sh", "-c", script], env=BARE, capture_output=True, text=True, check=True)
    variables = json.loads(shell.stdout)
    connection = json.loads(variables["AIRFLOW_CONN_GOOGLE_CLOUD_DEFAULT"])
    assert variables["GOOGLE_CLOUD_PROJECT"] == connection["extra"]["project"] == "acme-other"
    assert connection["extra"]["endpoint_url"] == variables["STORAGE_EMULATOR_HOST"]
    key = json.loads(connection["extra"]["keyfile_dict"])
    assert key == json.loads(Path(variables["GOOGLE_APPLICATION_CREDENTIALS"]).read_text())
    assert key["client_email"] == "airflow@acme-other.iam.gserviceaccount.com"


def test_variables_stand_in_for_flags(tmp_path: Path) -> None:
    """Each setting may come from a variable, and a flag wins over it."""
    settings = {"ACCEL_EMULATOR_WORLD": "nowhere", "ACCEL_EMULATOR_TIME_SCALE": "7", "ACCEL_EMULATOR_PROJECT": "no"}
    with started(tmp_path, "--project", "acme-flag", **settings):
        url = json.loads((tmp_path / "emulator.json").read_text())["url"]
        health = requests.get(f"{url}/_emulator/health", timeout=30).json()
        found = accel("emulator", "env", "--json", ACCEL_EMULATOR_STATE=str(tmp_path))
    assert (health["world"], health["timeScale"], health["project"]) == ("nowhere", 7.0, "acme-flag")
    assert json.loads(found.stdout)["GOOGLE_CLOUD_PROJECT"] == "acme-flag"


def test_two_emulators_never_share_a_state(tmp_path: Path) -> None:
    """A second emulator on the same state, or on a taken port, ends with one sentence."""
    with started(tmp_path / "a"):
        second = accel("emulator", "--port", "0", "--state", str(tmp_path / "a"))
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        third = accel("emulator", "--port", port, "--state", str(tmp_path / "b"))
    for ended, words in ((second, "another one already runs"), (third, f"port {port} cannot be had")):
        assert (ended.returncode, ended.stdout) == (2, "")
        assert words in ended.stderr
        assert ended.stderr.count("\n") == 1


def test_wrong_settings_are_all_named_at_once(tmp_path: Path) -> None:
    """Wrong settings stop the start with one sentence that lists the right ones, and leave nothing behind."""
    state = tmp_path / "state"
    ended = accel(
        "emulator", "--port", "99999", "--world", "l4-stokout", "--project", "No", "--time-scale", "0",
        "--state", str(state),
    )  # fmt: skip
    assert ended.returncode == 2
    for words in ("port '99999'", "did you mean l4-stockout?", "project 'No'", "time scale '0'"):
        assert words in ended.stderr
    assert ended.stderr.count("\n") == 1
    assert not state.exists()


def test_a_killed_emulator_is_not_taken_for_a_running_one(tmp_path: Path) -> None:
    """After a kill nobody is pointed at the dead address, and the next start has everything."""
    with started(tmp_path) as process:
        url = json.loads((tmp_path / "emulator.json").read_text())["url"]
        requests.post(f"{url}/storage/v1/b", json={"name": "acme-kept"}, timeout=30).raise_for_status()
        process.kill()
        process.wait()
        assert accel("emulator", "env", "--state", str(tmp_path)).returncode == 1
    (tmp_path / "emulator.json").unlink()
    with started(tmp_path):
        url = json.loads((tmp_path / "emulator.json").read_text())["url"]
        assert requests.get(f"{url}/storage/v1/b/acme-kept", timeout=30).status_code == 200


def test_a_missing_extra_is_named(tmp_path: Path) -> None:
    """Without the extra's packages the command says what to install; the command itself needs none."""
    root = Path(airflow_accel_provider.__file__).parents[1]
    code = (
        f"import sys; sys.path.insert(0, {str(root)!r}); from airflow_accel_provider.cli import main; sys.exit(main())"
    )
    command = [sys.executable, "-S", "-c", code, "emulator", "--state", str(tmp_path / "s")]
    ended = subprocess.run(command, env=BARE, capture_output=True, text=True, timeout=START_SECONDS, check=False)
    assert ended.returncode == 1
    assert "starlette" in ended.stderr
    assert "pip install 'airflow-provider-accel[emulator]'" in ended.stderr


@pytest.mark.parametrize("arguments", [[], ["emulater"], ["emulator", "--wrold", "plenty"], ["emulator", "envy"]])
def test_wrong_usage_is_told(arguments: list[str]) -> None:
    """A missing or misspelt command or flag exits with 2 and shows the usage."""
    ended = accel(*arguments)
    assert ended.returncode == 2
    assert "usage: accel" in ended.stderr
