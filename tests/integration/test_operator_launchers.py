"""Launchers beside Python's own interpreter: binaries, jars, and environments that are made for them."""

from __future__ import annotations

import json
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import apache_beam
import pytest
from airflow.sdk.exceptions import TaskDeferred

from airflow_accel_provider.exceptions import (
    AcceleratorConfigurationError,
    AcceleratorLaunchError,
    AcceleratorPipelineError,
)
from tests.integration.pipelines import BUCKET, ECHO, run_of

if TYPE_CHECKING:
    from tests.integration.local_google import LocalGoogle

# Starts the echoing pipeline with what it was given, after it has written down what that was.
PROGRAM = f"""#!{sys.executable}
import json, os, sys
with open("{{note}}", "w") as note:
    json.dump(sys.argv[1:], note)
said = [word for word in sys.argv[1:] if word.startswith("--")]
os.execv(sys.executable, [sys.executable, "{ECHO}", *said])
"""


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Have temporary files, and so what is kept of one launch for the next, in a folder of the test's own."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def program(path: Path, note: Path) -> Path:
    """Write a launcher that is no Python file to its caller."""
    path.parent.mkdir(exist_ok=True)
    path.write_text(PROGRAM.replace("{note}", str(note)))
    path.chmod(0o755)
    return path


def test_a_go_binary_is_launched(google: LocalGoogle, tmp_path: Path, temporary: Path) -> None:
    """A Go binary in a bucket is fetched once, made executable and run with Go's flags."""
    note = tmp_path / "note.json"
    content = program(tmp_path / "score", note).read_bytes()
    google.bucket(BUCKET).blob("binaries/score").upload_from_string(content)
    run = run_of(google, py_file=None, go_binary=f"gs://{BUCKET}/binaries/score")
    since = google.mark()
    assert run.run()["state"] == "done"
    flags = json.loads(note.read_text())
    assert "--worker_machine_type=g2-standard-8" in flags
    assert "--dataflow_service_options=worker_accelerator=type:nvidia-l4;count:1;install-nvidia-driver" in flags
    assert len([call for call in google.calls("storage.objects.get", since=since) if _media(call, "score")]) == 1


def _media(call: dict[str, dict[str, object]], name: str) -> bool:
    return call["query"].get("alt") == ["media"] and str(call["path"]["object"]).endswith(name)


def test_a_jar_is_launched(
    google: LocalGoogle, tmp_path: Path, temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A jar is run by the worker's Java, with the class that is asked for and Java's flags."""
    note = tmp_path / "note.json"
    java = program(tmp_path / "bin" / "java", note)
    monkeypatch.setenv("PATH", f"{java.parent}:/usr/bin:/bin")
    (tmp_path / "score.jar").touch()
    run = run_of(
        google,
        py_file=None,
        jar=str(tmp_path / "score.jar"),
        job_class="com.acme.Score",
        pipeline_options={"temp_location": None, "output": None, "tempLocation": f"gs://{BUCKET}/work"},
        start_timeout=20,
    )
    # The program that stands for Java here reads no Java flags, and makes no job.
    with pytest.raises(AcceleratorPipelineError):
        run.execute()
    said = json.loads(note.read_text())
    assert said[:3] == ["-cp", str(tmp_path / "score.jar"), "com.acme.Score"]
    assert "--workerMachineType=g2-standard-8" in said
    assert f"--tempLocation=gs://{BUCKET}/work" in said
    assert "--dataflowServiceOptions=worker_accelerator=type:nvidia-l4;count:1;install-nvidia-driver" in said


def test_a_worker_without_java_is_told(google: LocalGoogle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A jar on a worker that has no Java is one error, together with a jar that is not there."""
    monkeypatch.setenv("PATH", str(tmp_path))
    options = {"temp_location": None, "output": None, "tempLocation": f"gs://{BUCKET}/work"}
    run = run_of(google, py_file=None, jar=str(tmp_path / "none.jar"), pipeline_options=options)
    with pytest.raises(AcceleratorConfigurationError, match=r"jar: There is no java on this worker") as refused:
        run.execute()
    assert "2 errors" in str(refused.value)
    assert run.stored == {}


def wheel(folder: Path) -> str:
    """Write a package without dependencies that shows this interpreter's own packages to whoever installs it."""
    path = folder / "acme_beam-1.0-py3-none-any.whl"
    info = "acme_beam-1.0.dist-info"
    beam = Path(apache_beam.__file__).parents[1]
    files = {
        "acme_beam.pth": f"{beam}\n",
        f"{info}/METADATA": "Metadata-Version: 2.1\nName: acme-beam\nVersion: 1.0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{name},,\n" for name in [*files, f"{info}/RECORD"])
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in {**files, f"{info}/RECORD": record}.items():
            archive.writestr(name, content)
    return str(path)


def test_requirements_are_installed_once(google: LocalGoogle, tmp_path: Path, temporary: Path) -> None:
    """The launcher runs in an environment with the requirements, which a second place and a second task find built."""
    google.emulator.set_world("l4-stockout")
    note = tmp_path / "note.json"
    said: dict[str, Any] = {
        "py_requirements": [wheel(tmp_path)],
        "pipeline_options": {"note": str(note)},
        "fallback": ["nvidia-tesla-t4 on n1-standard-8 in us-central1"],
    }
    assert len(run_of(google, **said).run()["attempts"]) == 2
    interpreter = Path(json.loads(note.read_text())["interpreter"][0])
    (built,) = (temporary / interpreter.relative_to(temporary).parts[0] / "environments").glob("*/pyvenv.cfg")
    assert interpreter.is_relative_to(built.parent)
    made_at = built.stat().st_mtime_ns
    google.emulator.set_world("plenty")
    assert run_of(google, **said).run()["state"] == "done"
    assert built.stat().st_mtime_ns == made_at


def test_the_interpreters_own_packages_are_seen_where_asked(
    google: LocalGoogle, tmp_path: Path, temporary: Path
) -> None:
    """An environment sees the packages of its interpreter, Beam among them, exactly where that is asked for.

    It does so too when the interpreter is itself of a virtual environment, as a worker's is.
    """
    note = tmp_path / "note.json"
    for seen, requirements in ((True, []), (False, [wheel(tmp_path)])):
        said: dict[str, Any] = {"py_requirements": requirements, "pipeline_options": {"note": str(note)}}
        run = run_of(google, py_system_site_packages=seen, **said)
        with pytest.raises(TaskDeferred):
            run.execute()
        google.cancel({"id": run.xcom["dataflow_job_id"], "location": "us-central1"})
        interpreter = Path(json.loads(note.read_text())["interpreter"][0])
        assert interpreter.is_relative_to(temporary)
        config = (interpreter.parents[1] / "pyvenv.cfg").read_text().replace(" ", "")
        assert f"include-system-site-packages={str(seen).lower()}" in config


def test_requirements_that_do_not_exist_are_told(google: LocalGoogle, tmp_path: Path, temporary: Path) -> None:
    """An environment that cannot be built fails the task, and no job is started."""
    since = google.mark()
    run = run_of(google, py_requirements=[str(tmp_path / "none-1.0-py3-none-any.whl")])
    with pytest.raises(AcceleratorLaunchError, match="environment for py_requirements could not be built"):
        run.execute()
    assert google.created(since=since) == []
