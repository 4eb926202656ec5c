"""The proof of a batch that anybody started."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from airflow.sdk.exceptions import AirflowSensorTimeout, TaskDeferred

from airflow_accel_provider.exceptions import AcceleratorConfigurationError, AcceleratorMissingError
from airflow_accel_provider.hooks.spark import SparkHook
from airflow_accel_provider.sensors.proof import AcceleratorProofSensor
from tests.integration.batches import etl_run
from tests.integration.test_sensor_runs import run_of

if TYPE_CHECKING:
    from tests.integration.local_google import LocalGoogle

REGION = "us-central1"


def begun(google: LocalGoogle, **said: Any) -> str:
    """Start a batch and return its id."""
    run = etl_run(google, **said)
    with pytest.raises(TaskDeferred):
        run.execute()
    batch_id: str = run.xcom["dataproc_batch_id"]
    return batch_id


def waited(*, deferrable: bool, **said: Any) -> Any:
    """Return what the sensor gave, or how it failed."""
    try:
        return run_of(AcceleratorProofSensor, region=REGION, deferrable=deferrable, **said).run()
    except Exception as error:  # noqa: BLE001 - both modes must raise the same
        return type(error), str(error)


def both(**said: Any) -> Any:
    """Return what both modes tell, which must be the same."""
    with ThreadPoolExecutor(2) as pool:
        deferrable, synchronous = pool.map(lambda mode: waited(deferrable=mode, **said), (True, False))
    if isinstance(deferrable, dict):
        for value in (deferrable, synchronous):
            value["proof"].pop("at")
            value.pop("state")
            # The one may see it run, the other its sum.
            value["proof"].pop("source")
            value["proof"].pop("count")
    assert deferrable == synchronous
    return deferrable


def test_a_gpu_in_use_is_proof(google: LocalGoogle) -> None:
    """The GPU of a running batch is seen in both modes, with the batch's page, be its type named or not."""
    google.emulator.set_world("plenty")
    batch_id = begun(google)
    value = both(batch_id=batch_id)
    assert (value["job_id"], value["proof"]["status"], value["proof"]["accelerator"]) == (batch_id, "seen", "l4")
    assert f"/dataproc/batches/{REGION}/{batch_id}" in value["url"]
    assert both(batch_id=batch_id, accelerator="l4:2") == value
    SparkHook(google.session()).cancel(batch_id, REGION)


def test_a_batch_without_gpu_is_waited_for(google: LocalGoogle) -> None:
    """A batch that runs without its GPU is waited for, and fails the sensor once it has ended so."""
    google.emulator.set_world("executor-churn")
    batch_id = begun(google)
    with pytest.raises(AirflowSensorTimeout, match=r"l4|shows nothing"):
        run_of(AcceleratorProofSensor, region=REGION, batch_id=batch_id, accelerator="l4", timeout=3).run()
    SparkHook(google.session()).cancel(batch_id, REGION)
    kind, text = both(batch_id=batch_id, accelerator="l4")
    assert kind is AcceleratorMissingError
    assert f"batch {batch_id} in {REGION} ended (cancelled) and l4 was never seen in use" in text


def test_a_batch_that_is_not_there(google: LocalGoogle) -> None:
    """A batch that does not exist is one error in both modes, which names the nearest there is."""
    google.emulator.set_world("executor-churn")
    batch_id = begun(google)
    kind, text = both(batch_id=f"{batch_id}x")
    assert kind is AcceleratorConfigurationError
    assert f"{REGION} has no batch {batch_id}x in project" in text
    assert f"did you mean {batch_id}?" in text
    SparkHook(google.session()).cancel(batch_id, REGION)


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (
            {"batch_id": "a-batch", "accelerator": "nvidia-l4"},
            r"Spark has no accelerator nvidia-l4\. Did you mean l4\?",
        ),
        ({"batch_id": "a-batch", "accelerator": "h100"}, r"It takes l4, a100-40 or a100-80"),
        ({"batch_id": "a-batch", "job_id": "x"}, r"There are two jobs, job_id and batch_id; give one"),
        ({"batch_id": 7}, r"7 does not do for batch_id"),
    ],
)
def test_wrong_is_told_at_parse(said: dict[str, Any], words: str) -> None:
    """What cannot be about a batch is told when the DAG is parsed."""
    make = partial(AcceleratorProofSensor, task_id="proof", region=REGION)
    with pytest.raises(AcceleratorConfigurationError, match=words):
        make(**said)
