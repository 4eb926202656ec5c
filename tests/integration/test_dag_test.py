"""The examples under ``dag.test()``, which a DAG author uses before there is any scheduler."""

from __future__ import annotations

import csv
import json
from typing import TYPE_CHECKING

import pytest

from demo.emulator import DAGS, Emulator
from demo.examples import EXAMPLES
from demo.processes import Processes
from demo.stack import Airflow
from tests.integration.local_google import LocalGoogle
from tests.integration.shell import DAY, Shell

if TYPE_CHECKING:
    from collections.abc import Iterator

L4_PLACES = tuple(
    f"nvidia-l4 on g2-standard-8 in {region}" for region in ("us-central1", "europe-west4", "asia-southeast1")
)
RESERVATION = "projects/acme-ml-prod/zones/us-east5-b/reservations/tpu-night"
V5E_QUOTA = "TPU-LITE-PODSLICE-V5-per-project-zone"


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    """Start an emulator, and make an Airflow without any process."""
    directory = tmp_path_factory.mktemp("dag_test")
    processes = Processes(directory)
    try:
        emulator = Emulator(processes, directory / "emulator", world="plenty")
        emulator.start()
        keys = json.loads((directory / "emulator" / "emulator.json").read_text())["keys"]
        google = LocalGoogle(emulator=emulator, keys=keys, environment=emulator.environment())
        airflow = Airflow(processes, directory / "airflow", dags=DAGS, variables=google.environment)
        airflow.prepare()
        with pytest.MonkeyPatch.context() as patch:
            # What this process asks the emulator is asked in the same way.
            patch.setenv("AIRFLOW_CONN_GOOGLE_CLOUD_DEFAULT", google.environment["AIRFLOW_CONN_GOOGLE_CLOUD_DEFAULT"])
            yield Shell(google=google, environment=airflow.environment)
    finally:
        processes.stop()


@pytest.fixture
def bucket(request: pytest.FixtureRequest) -> str:
    """Return a name that no other test has for its bucket."""
    return "".join(letter if letter.isalnum() else "-" for letter in request.node.name.lower())[:60].strip("-")


def test_falls_back_and_finishes(shell: Shell, bucket: str) -> None:
    """A day is scored under ``dag.test()`` as by a scheduler, the deferral included."""
    done = shell.dags_test("score_digits", world="stockout-then-quota-then-stock", bucket=bucket)
    assert done.status == 0, done.output[-4000:]
    assert f'"date": "{DAY}", "count": 400' in done.output
    assert done.kinds == [("stockout", "quota", "done")]


def test_a_day_without_images_starts_nothing(shell: Shell, bucket: str) -> None:
    """A date without images fails in the first task, and no job is made."""
    done = shell.dags_test("score_digits", world="plenty", bucket=bucket, day="2026-05-05")
    assert done.status != 0
    assert "There are no images for 2026-05-05" in done.output
    assert not {method for method in done.methods if method.startswith("dataflow.")}


@pytest.mark.parametrize(
    ("world", "kinds", "regions", "device"),
    [
        ("reserved-tpu", ("done", "quota", "not tried"), ["us-east5"], ("tpu-v6e-slice", 4, RESERVATION)),
        ("reservation-taken", ("stockout", "done", "not tried"), ["us-west4"], ("tpu-v5-lite-podslice", 4, "")),
        ("tpu-stockout", ("stockout", "stockout", "done"), ["us-west4", "us-central1"], ("nvidia-l4", 1, "")),
    ],
)
def test_a_reserved_tpu_another_tpu_or_a_gpu(
    *, shell: Shell, bucket: str, world: str, kinds: tuple[str, ...], regions: list[str], device: tuple[str, int, str]
) -> None:
    """The digits are scored on the reservation's TPU, on another if it is taken, and on a GPU if there is no TPU."""
    done = shell.dags_test("score_on_tpu", world=world, bucket=bucket)
    assert done.status == 0, done.output[-4000:]
    assert done.kinds == [kinds]
    assert done.regions == regions
    assert set(done.devices) == {device}
    # For what is reserved there is no quota to ask for.
    assert {call["path"]["quotaInfo"] for call in done.calls if "quotaInfo" in call["path"]} == {V5E_QUOTA}
    assert len(set(shell.predictions(bucket, f"digits/tpu-predictions/{DAY}.jsonl"))) == 400


def test_parts_move_to_the_region_that_has_room(shell: Shell, bucket: str) -> None:
    """A day in three parts is scored once and whole, though one region is out of stock and another out of quota."""
    done = shell.dags_test("score_regions", world="stockout-then-quota-then-stock", bucket=bucket)
    assert done.status == 0, done.output[-4000:]
    (room,) = done.values["room"]
    assert (room["placement"], room["region"], room["known"]) == (L4_PLACES[0], "us-central1", True)
    (told,) = done.values["split"]
    assert tuple(part["placement"] for part in told) == L4_PLACES
    assert done.kinds == [
        ("stockout", "quota", "done"),
        ("quota", "stockout", "done"),
        ("done", "not tried", "quota"),
    ]
    assert sorted(done.regions) == [*["asia-southeast1"] * 3, *["us-central1"] * 2]
    assert done.devices == [("nvidia-l4", 1, "")] * 3
    found = shell.predictions(bucket, f"digits/region-predictions/{DAY}/")
    assert (len(found), len(set(found)), done.values["check"][0]["count"]) == (400, 400, 400)


@pytest.mark.parametrize(
    ("world", "accelerator", "precision"),
    [("plenty", "nvidia-l4", "float64"), ("l4-stockout", "nvidia-tesla-t4", "float16")],
)
def test_a_template_is_told_what_its_accelerator_needs(
    shell: Shell, bucket: str, world: str, accelerator: str, precision: str
) -> None:
    """The Flex Template scores in half precision where it ends on a T4, and as its author meant it on an L4."""
    done = shell.dags_test("score_from_template", world=world, bucket=bucket)
    assert done.status == 0, done.output[-4000:]
    assert done.kinds == [EXAMPLES["flex"].worlds[world]]
    assert done.devices == [(accelerator, 1, "")]
    (result,) = done.values["score"]
    options = shell.google.job(result["job_id"], result["region"])["environment"]["sdkPipelineOptions"]["options"]
    assert options["dtype"] == precision
    assert len(set(shell.predictions(bucket, f"digits/template-predictions/{DAY}.jsonl"))) == 400


def test_cpus_come_last(shell: Shell, bucket: str) -> None:
    """Where no accelerator is in stock the day is scored on CPUs, and the job asks for no accelerator."""
    done = shell.dags_test("score_last_resort", world="nowhere", bucket=bucket)
    assert done.status == 0, done.output[-4000:]
    assert done.kinds == [("stockout", "stockout", "done")]
    assert done.devices == [("", 0, "")]
    (result,) = done.values["score"]
    assert "worker_accelerator" not in json.dumps(shell.google.job(result["job_id"], result["region"])["environment"])
    assert len(set(shell.predictions(bucket, f"digits/last-resort-predictions/{DAY}.jsonl"))) == 400


@pytest.mark.parametrize(
    ("world", "winner"), [("l4-stockout", "a100-40 in us-central1"), ("us-central1-stockout", "l4 in europe-west4")]
)
def test_spark_moves_to_another_accelerator_or_region(shell: Shell, bucket: str, world: str, winner: str) -> None:
    """A day's rides are summed by Spark on A100s where there are no L4s, and elsewhere where there are neither."""
    example = EXAMPLES["spark"]
    done = shell.dags_test(example.dag_id, world=world, bucket=bucket)
    assert done.status == 0, done.output[-4000:]
    assert done.kinds == [example.worlds[world]]
    (result,) = done.values[example.task]
    assert (result["placement"], result["state"], result["proof"]["status"]) == (winner, "done", "seen")
    assert done.regions[-1] == result["region"]
    sums = [json.loads(line) for line in shell.lines(bucket, f"rides/summary/{DAY}/part-")]
    assert len({(each["district"], each["hour"]) for each in sums}) == len(sums) == 5 * 24
    found = (sum(each["rides"] for each in sums), sum(each["minutes"] for each in sums))
    assert found == _rides(shell, bucket)
    assert done.values["check"][0]["rides"] == found[0]


def _rides(shell: Shell, bucket: str) -> tuple[int, int]:
    """Count the sound rides from stations that there are, and their minutes, line by line."""
    districts = dict(csv.reader(shell.lines(bucket, "rides/stations.csv")))
    rides = list(csv.DictReader(shell.lines(bucket, f"rides/{DAY}.csv")))
    assert len(rides) == 240_000
    minutes = [int(ride["minutes"] or 0) for ride in rides if ride["station"] in districts]
    sound = [each for each in minutes if 1 <= each <= 1440]
    return len(sound), sum(sound)
