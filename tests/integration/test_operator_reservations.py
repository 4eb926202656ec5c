"""Reservations through the operator: what is free decides before anything is submitted."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from airflow_accel_provider.exceptions import AcceleratorConfigurationError
from airflow_accel_provider.operators.beam import BeamTpuPipelineOperator
from tests.integration.pipelines import run_of

if TYPE_CHECKING:
    from tests.integration.local_google import LocalGoogle

HELD = "projects/acme-ml-prod/zones/us-east5-b/reservations/tpu-night"
V6E = "tpu-v6e-slice:2x2 on ct6e-standard-4t in us-east5-b"
L4 = "nvidia-l4 on g2-standard-8 in us-central1"
FREE: dict[str, Any] = {"reservation": None, "service_options": []}
GET_QUOTA = "cloudquotas.projects.locations.services.quotaInfos.get"


def run(google: LocalGoogle, world: str, **said: Any) -> Any:
    google.emulator.set_world(world)
    return run_of(
        google,
        kind=BeamTpuPipelineOperator,
        **{
            "placement": V6E,
            "number_of_worker_harness_threads": 50,
            "reservation": HELD,
            "service_options": [f"reservation={HELD}"],
            "max_num_workers": 1,
            **said,
        },
    )


def test_a_reserved_tpu_needs_no_quota(google: LocalGoogle) -> None:
    """A job on a free reservation runs in its zone, is proven by a TPU's host, and no quota of TPUs is asked for."""
    mark = google.mark()
    value = run(google, "reserved-tpu").run()
    proof = value["proof"]
    assert (value["state"], value["placement"], value["zone"]) == ("done", V6E, "us-east5-b")
    assert (proof["status"], proof["accelerator"], proof["count"]) == ("seen", "ct6e", 4)
    assert google.calls(GET_QUOTA, since=mark) == []
    assert {event["reservation"] for event in google.events("compute.instance.created", since=mark)} == {HELD}


def test_a_full_reservation_is_passed_over(google: LocalGoogle) -> None:
    """When the reservation is full nothing is submitted there, and the same zone on demand is tried next."""
    value = run(google, "reservation-taken", fallback=[{"placement": V6E, **FREE}]).run()
    assert (value["placement"], [attempt["placement"] for attempt in value["attempts"]]) == (V6E, [V6E])
    assert value["state"] == "done"


def test_a_tpu_task_ends_on_a_gpu(google: LocalGoogle) -> None:
    """When neither a reserved TPU nor one on demand is to be had, the GPU that is listed last runs the job."""
    fallback = [{"placement": V6E, **FREE}, {"placement": L4, **FREE}]
    task = run(google, "tpu-stockout", fallback=fallback)
    value = task.run()
    assert (value["placement"], value["proof"]["accelerator"]) == (L4, "nvidia-l4")
    rejected = [place.get("rejected", {}).get("kind") for place in task.record["plan"]]
    assert rejected[0] == "stockout"
    assert rejected[-1] is None


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (
            {"reservation": "tpu-nigth", "service_options": ["reservation=tpu-nigth"]},
            r"There is no reservation zones/us-east5-b/reservations/tpu-nigth\. Did you mean tpu-night in us-east5-b\?",
        ),
        (
            {"placement": "tpu-v6e-slice:1x1 in us-east5-b"},
            r"holds ct6e-standard-4t with 4 x ct6e, not ct6e-standard-1t with 1 x ct6e",
        ),
    ],
)
def test_a_wrong_reservation_is_one_error(google: LocalGoogle, said: dict[str, Any], words: str) -> None:
    """A reservation that is not there, or holds other machines, is one clear error, and nothing is started."""
    mark = google.mark()
    with pytest.raises(AcceleratorConfigurationError) as refused:
        run(google, "reserved-tpu", **said).run()
    head, line = str(refused.value).splitlines()
    assert head == "score cannot run, 1 error:"
    assert re.search(words, line)
    assert google.created(since=mark) == []


def test_a_reservation_elsewhere_is_refused_at_parse(google: LocalGoogle) -> None:
    """A reservation in another zone than the candidate's is refused when the operator is made."""
    with pytest.raises(
        AcceleratorConfigurationError, match=r"The reservation is in us-east5-b, but .* is in us-east5-a"
    ):
        run(google, "reserved-tpu", placement="tpu-v6e-slice:2x2 in us-east5-a", service_options=[]).make()


def test_a_rendered_reservation_elsewhere_is_refused_at_start(google: LocalGoogle) -> None:
    """A template that turns out to be a reservation in another zone is one error, and nothing is asked or started."""
    mark = google.mark()
    said = {"reservation": "{{ params.held }}", "placement": "tpu-v6e-slice:2x2 in us-east5-a", "service_options": []}
    with pytest.raises(AcceleratorConfigurationError) as refused:
        run(google, "reserved-tpu", run={"params": {"held": HELD}}, **said).execute()
    head, line = str(refused.value).splitlines()
    assert head == "score cannot run, 1 error:"
    assert re.search(r"reservation: The reservation is in us-east5-b, but .* is in us-east5-a", line)
    assert google.calls("compute.reservations.get", since=mark) == []
    assert google.created(since=mark) == []
