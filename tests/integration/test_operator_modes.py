"""Both operators live through the same worlds, and deferrable and synchronous tell the same story of it."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from demo.processes import Processes
from demo.stack import Airflow
from tests.integration.dags.operator_modes import (
    BUCKET,
    CONSOLE,
    KINDS,
    L4,
    MODES,
    SHARED,
    STORIES,
    T4,
    TEMPLATE,
    V5E,
    V6E,
)
from tests.integration.local_google import LocalGoogle
from tests.integration.pipelines import ECHO

if TYPE_CHECKING:
    from collections.abc import Iterator

DAGS = Path(__file__).parent / "dags"
TEMPLATE_IMAGE = "us-docker.pkg.dev/acme-ml-prod/templates/echo:1"
Outcomes = dict[str, tuple[dict[str, Any], dict[str, Any]]]

# What differs between any two runs: ids, times, and the names that are made of them.
_PASSING = [
    (re.compile(r"\d{4}-\d\d-\d\d_[\d_]+-\d+"), "JOB"),
    (re.compile(r"(deferrable|synchronous)"), "MODE"),
    (re.compile(r"\d+ (s|min)\b"), "SPAN"),
    (re.compile(r"[\w-]+-harness-\w+"), "VM"),
    (re.compile(r"launcher-[\w-]+"), "LAUNCHER"),
    (re.compile(r"0x[0-9a-f]+"), "ADDRESS"),
]
# Whether a doomed attempt is cancelled or fails first, and the service's last words on it, are a matter of seconds.
_PASSING_KEYS = {"outcome", "evidence", "enders", "job_id", "job_name", "submitted_at", "ended_at", "at", "url"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    """Stories that run one after the other, in a Google of their own with this time scale."""

    time_scale: str
    names: tuple[str, ...]

    def start(self, processes: Processes) -> LocalGoogle:
        """Start the lane's Google."""
        google = LocalGoogle.start(processes, processes.directory / "emulator", time_scale=self.time_scale)
        spec = {"image": TEMPLATE_IMAGE, "sdkInfo": {"language": "PYTHON"}}
        google.bucket(BUCKET).blob(TEMPLATE.removeprefix(f"gs://{BUCKET}/")).upload_from_string(json.dumps(spec))
        stand_in = {TEMPLATE_IMAGE: ECHO}
        httpx.put(f"{google.emulator.url}/_emulator/templates", json=stand_in, trust_env=False).raise_for_status()
        return google


# Where workers must be seen, they must last for a few looks; where nobody looks, an hour may pass in seconds.
SLOW = [
    ("missing-gpu", "falls_back-tpu", "cancelled-gpu", "cancelled-tpu"),
    ("falls_back-gpu", "missing-tpu", "template-tpu", "left_running-gpu"),
]
_SEEN = {name for names in SLOW for name in names}
_UNSEEN = [name for name in STORIES if name not in _SEEN]
LANES = [Lane(time_scale="40", names=names) for names in SLOW] + [
    Lane(time_scale="300", names=tuple(_UNSEEN[half::2])) for half in range(2)
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What came of every story in both modes, and the Google each happened in."""

    outcomes: Outcomes
    googles: dict[str, LocalGoogle]


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Told]:
    """Run every story in both modes, several at a time."""
    directory = tmp_path_factory.mktemp("modes")
    outcomes = directory / "outcomes"
    outcomes.mkdir()
    variables = {"OUTCOMES": str(outcomes)}
    airflow = Airflow(Processes(directory), directory / "airflow", dags=DAGS, variables=variables)
    with ExitStack() as stack, ThreadPoolExecutor(len(LANES)) as pool:
        lanes = [(lane, Processes(directory / str(number))) for number, lane in enumerate(LANES)]
        for _, processes in lanes:
            stack.callback(processes.stop)
        started = [pool.submit(lane.start, processes) for lane, processes in lanes]
        airflow.prepare()
        googles = [each.result() for each in started]
        list(pool.map(_run, LANES, googles, [airflow] * len(LANES)))
        where = {name: google for lane, google in zip(LANES, googles, strict=True) for name in lane.names}
        yield Told(outcomes={name: _both(outcomes, name) for name in STORIES}, googles=where)


def _run(lane: Lane, google: LocalGoogle, airflow: Airflow) -> None:
    """Run a lane in a process with a copy of Airflow's database: SQLite takes one writer at a time."""
    prepared = Path(airflow.environment["AIRFLOW_HOME"])
    home = prepared.with_name(f"airflow-{lane.names[0]}")
    home.mkdir()
    shutil.copy(prepared / "airflow.db", home)
    variables = {"AIRFLOW_HOME": str(home), f"AIRFLOW_CONN_{CONSOLE.upper()}": google.connection("pipeline")}
    command = [sys.executable, str(DAGS / "operator_modes.py"), google.emulator.url, *lane.names]
    environment = {**airflow.environment, **google.environment, **variables}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=540)
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]


def _both(directory: Path, name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    deferrable, synchronous = (json.loads((directory / f"{name}-{mode}.json").read_text()) for mode in MODES)
    return deferrable, synchronous


def lasting(value: Any) -> Any:
    """Return a value without what differs between any two runs."""
    if isinstance(value, dict):
        return {key: lasting(item) for key, item in value.items() if key not in _PASSING_KEYS}
    if isinstance(value, list):
        return [lasting(item) for item in value]
    if isinstance(value, str):
        for pattern, word in _PASSING:
            value = pattern.sub(word, value)
    return value


@pytest.mark.parametrize("name", STORIES)
def test_modes_agree(told: Told, name: str) -> None:
    """Both modes return the same value, or raise the same exception with the same text, but for ids and times."""
    deferrable, synchronous = told.outcomes[name]
    assert lasting(deferrable) == lasting(synchronous)


def test_falls_back(told: Told) -> None:
    """The value names the winner, which may be a GPU after TPUs, and every attempt with why it ended."""
    ways = {
        "falls_back-gpu": (T4, "nvidia-tesla-t4", [(L4, "stockout"), (T4, None)]),
        "falls_back-tpu": (L4, "nvidia-l4", [(V6E, "stockout"), (V5E, "stockout"), (L4, None)]),
    }
    for name, (winner, accelerator, tried) in ways.items():
        for outcome in told.outcomes[name]:
            value = outcome["value"]
            assert (value["v"], value["state"], value["placement"]) == (1, "done", winner)
            assert (value["proof"]["status"], value["proof"]["accelerator"]) == ("seen", accelerator)
            attempts = value["attempts"]
            assert [(each["placement"], (each["failure"] or {}).get("kind")) for each in attempts] == tried
            assert [each["n"] for each in attempts] == list(range(1, len(tried) + 1))
            assert all(each["job_id"] in each["url"] for each in attempts)
            assert outcome["made"] == len(tried)


def test_runs_a_template(told: Told) -> None:
    """A Flex Template runs on a TPU, which is proven by its host's machine type and chips."""
    for outcome in told.outcomes["template-tpu"]:
        value, proof = outcome["value"], outcome["value"]["proof"]
        assert (value["state"], value["placement"], outcome["made"]) == ("done", V6E, 1)
        told_of = (proof["status"], proof["machine_type"], proof["accelerator"], proof["count"])
        assert told_of == ("seen", "ct6e-standard-4t", "ct6e", 4)


def test_leaves_the_job_running(told: Told) -> None:
    """A streaming pipeline's task succeeds once its accelerator is seen, and its value says that the job runs."""
    for outcome in told.outcomes["left_running-gpu"]:
        value = outcome["value"]
        assert (value["state"], value["placement"], value["proof"]["status"]) == ("running", L4, "seen")
        assert [(each["outcome"], each["ended_at"]) for each in value["attempts"]] == [("running", None)]
        states = told.googles["left_running-gpu"].states(value["job_id"])
        assert states[-1] == "RUNNING"


# By story: the exception, what its text says where {first} and {second} are the places and {where} is the first one's
# location, and how many jobs there were.
SAID: dict[str, tuple[str, list[str], int]] = {
    "stockout": (
        "AcceleratorStockoutError",
        [
            "No place could run score. Tried 1, skipped 0.",
            "1. {first}: stockout in {where}",
            "(zone pool exhausted, after ",
            "Add a place to fallback=",
        ],
        1,
    ),
    "exhaustion": (
        "AcceleratorStockoutError",
        ["No place could run score. Tried 2, skipped 0.", "1. {first}: stockout in ", "2. {second}: stockout in "],
        2,
    ),
    "quota": (
        "AcceleratorQuotaError",
        [
            "No place could run score. Tried 0, skipped 2.",
            "1. {first}: skipped, needs at least ",
            "2. {second}: skipped, needs at least ",
            "Raise a quota above, or add a place to fallback=.",
        ],
        0,
    ),
    "missing": (
        "AcceleratorMissingError",
        ["score failed on {first} (job ", "accelerator missing: worker ", " in {where}", " runs without "],
        1,
    ),
    "image": (
        "AcceleratorImageError",
        ["score failed on {first} (job ", "image: the workers cannot pull the container image", "accelerated:2.77.0"],
        1,
    ),
    "raises": (
        "AcceleratorPipelineError",
        [
            "score failed on {first} (job ",
            "user code: the pipeline's own code raised",
            "row 7 has no pixels",
            "while running 'Score'",
        ],
        1,
    ),
    "cancelled": (
        "AcceleratorCancelledError",
        ["score failed on {first} (job ", "cancelled: somebody cancelled the job."],
        1,
    ),
    "launcher": (
        "AcceleratorStockoutError",
        [
            "No place could run score. Tried 2, skipped 0.",
            "1. {first}: stockout in {where}",
            "(no machine for the launcher VM, after ",
        ],
        2,
    ),
    "late": (
        "AcceleratorTimeoutError",
        ["score failed on {first} (job ", "timeout: execution_timeout (30 s) has passed."],
        1,
    ),
    "endless": (
        "AcceleratorConfigurationError",
        ["score failed on {first} (job ", "configuration: it is a streaming job", 'give wait_until="proven"'],
        1,
    ),
}

# What the text says of the accelerator itself.
OWN_WORDS = {
    "quota-gpu": ["needs at least 1 of NVIDIA_L4_GPUS; 0 of 0 left", "needs at least 1 of NVIDIA_T4_GPUS; 0 of 0 left"],
    "quota-tpu": [
        "needs at least 4 of TPUS_PER_TPU_FAMILY (tpu_family CT6E); 0 of 0 left (usage estimated from running VMs)",
        "needs at least 4 of TPU_LITE_PODSLICE_V5; 0 of 0 left",
        "Ask for more of TPUS-PER-TPU-FAMILY-per-project-region of the Compute Engine API",
        "(dimensions region=us-east5, tpu_family=CT6E).",
    ],
    "missing-gpu": ["worker g2-standard-8 in ", " runs without nvidia-l4."],
    "missing-tpu": ["worker n1-standard-1 in us-east5-b runs without tpu-v6e-slice:2x2."],
}


@pytest.mark.parametrize("name", [name for name in STORIES if name.rpartition("-")[0] in SAID])
def test_failure_says_what_happened(told: Told, name: str) -> None:
    """A failed task's exception is of its kind of failure, its text tells the whole story, and no more was tried."""
    what, _, kind = name.rpartition("-")
    error, said, made = SAID[what]
    first, second = KINDS[kind].first, KINDS[kind].second
    names = {"first": first, "second": second, "where": first.rpartition(" in ")[2]}
    for outcome in told.outcomes[name]:
        assert (outcome["error"], outcome["made"]) == (error, made)
        for words in [each.format(**names) for each in said] + OWN_WORDS.get(name, []):
            assert words in outcome["text"]
        others = {"gpu": "TPU", "tpu": "GPU"}
        assert others[kind] not in outcome["text"]


@pytest.mark.parametrize("kind", KINDS)
def test_who_ends_a_job(told: Told, kind: str) -> None:
    """A job that somebody cancels in the console is not cancelled again; one without its accelerator is cancelled."""
    enders = {"cancelled": ["pipeline"], "missing": ["airflow"], "raises": [], "image": []}
    for what, accounts in enders.items():
        for outcome in told.outcomes[f"{what}-{kind}"]:
            assert [principal.partition("@")[0] for principal in outcome["enders"]] == accounts


def test_both_operators_share_the_worlds(told: Told) -> None:
    """What happens to GPUs happens to TPUs: the same worlds bring the same kinds of failure."""
    for what in SHARED:
        gpu, tpu = (told.outcomes[f"{what}-{kind}"] for kind in KINDS)
        assert {each["error"] for each in gpu} == {each["error"] for each in tpu}
