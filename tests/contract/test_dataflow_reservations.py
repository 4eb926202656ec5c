"""Jobs on reservations: any that fits, or one that is named."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from dataflow_jobs import Client, environment, judged, until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from emulators import Emulator
    from google.auth.transport.requests import AuthorizedSession

ANY = "automatically_use_created_reservation"
NIGHT = "projects/acme-ml-prod/zones/us-east5-b/reservations/tpu-night"
V6E = "worker_accelerator=type:tpu-v6e-slice;topology:2x2"


def _tpu(*options: str, **fields: Any) -> dict[str, Any]:
    return environment(
        **{"machine": "ct6e-standard-4t", "workerZone": "us-east5-b", "serviceOptions": [*options], **fields}
    )


@pytest.fixture
def client(emulator: Emulator, session: AuthorizedSession) -> Client:
    """Return bare calls of airflow@."""
    return Client(emulator=emulator, session=session)


@pytest.fixture
def enter(emulator: Emulator, client: Client) -> Iterator[Callable[[str], None]]:
    """Return what changes the world; afterwards all is plenty again, and no job is left."""
    yield emulator.enter
    client.clear()
    emulator.enter("plenty")


@pytest.fixture
def reserve(emulator: Emulator, client: Client) -> Iterator[Callable[..., str]]:
    """Return what reserves L4 machines in us-central1-a and returns the path; afterwards they are let go."""
    url = f"{emulator.url}/compute/v1/projects/{emulator.project}/zones/us-central1-a/reservations"
    made: list[str] = []

    def make(name: str, *, count: int = 1, specific: bool = False) -> str:
        body = {
            "name": name,
            "specificReservationRequired": specific,
            "specificReservation": {
                "count": str(count),
                "instanceProperties": {
                    "machineType": "g2-standard-8",
                    "guestAccelerators": [{"acceleratorType": "nvidia-l4", "acceleratorCount": 1}],
                },
            },
        }
        answer = client.session.post(url, json=body, timeout=30)
        assert answer.status_code == 200, answer.text
        made.append(name)
        return f"projects/{emulator.project}/zones/us-central1-a/reservations/{name}"

    yield make
    client.clear()
    for name in made:
        client.session.delete(f"{url}/{name}", timeout=30)


def _vms(client: Client, job: dict[str, Any], number: int = 1) -> list[dict[str, Any]]:
    return until(lambda: client.vms(job), lambda found: len(found) == number)


def _reserved(emulator: Emulator, job: dict[str, Any]) -> list[str]:
    events = emulator.events("compute.instance.created")
    return [event["reservation"] for event in events if event["job_id"] == job["id"]]


def _last(client: Client, job: dict[str, Any]) -> str:
    client.wait(job, "FAILED")
    return client.texts(job, "ERROR")[-1]


@pytest.mark.parametrize(
    "options",
    [
        (V6E, f"reservation={NIGHT}"),
        (V6E, f"worker_reservation_affinity={NIGHT}"),
        (V6E, "reservation=tpu-night"),
        (f"{V6E};reservation:{NIGHT}",),
    ],
)
def test_a_named_reservation_is_taken(
    client: Client, emulator: Emulator, enter: Callable[[str], None], options: tuple[str, ...]
) -> None:
    """Whichever option names it: with neither stock nor quota, a TPU comes up there and is counted."""
    enter("reserved-tpu")
    job = client.create(_tpu(*options), "us-east5")
    vm = _vms(client, job)[0]
    assert vm["guestAccelerators"][0]["acceleratorType"].endswith("/ct6e")
    assert _reserved(emulator, job) == [NIGHT]
    assert emulator.google.reservations.find(emulator.project, "us-east5-b", "tpu-night").in_use == 1


def test_without_naming_it_a_specific_reservation_is_not_taken(client: Client, enter: Callable[[str], None]) -> None:
    """A reservation for those that name it serves nobody else, not even who would take any."""
    enter("reserved-tpu")
    assert judged([_last(client, client.create(_tpu(V6E, ANY), "us-east5"))]).kind == "quota"


@pytest.mark.parametrize(
    ("options", "fields", "location"),
    [
        ((V6E, "reservation=tpu-day"), {}, "us-east5"),
        ((V6E, f"reservation={NIGHT}"), {"workerZone": "us-east5-a"}, "us-east5"),
        ((V6E, "reservation=projects/other/zones/us-east5-b/reservations/tpu-night"), {}, "us-east5"),
    ],
)
def test_a_reservation_that_is_not_there_is_said_to_be_missing(
    client: Client, enter: Callable[[str], None], options: tuple[str, ...], fields: dict[str, Any], location: str
) -> None:
    """An unknown name, another zone and another project are all a reservation that does not exist, at once."""
    enter("reserved-tpu")
    job = client.create(_tpu(*options, **fields), location)
    last = _last(client, job)
    assert "INVALID_FIELD_VALUE" in last
    assert "Specified reservations [tpu-" in last
    assert "do not exist." in last
    assert len(client.texts(job, "ERROR")) == 2
    assert judged([last]).kind == "configuration"


def test_a_reservation_of_another_machine_does_not_fit(client: Client, enter: Callable[[str], None]) -> None:
    """Machines must be those that are reserved."""
    enter("reserved-tpu")
    option = "worker_accelerator=type:tpu-v6e-slice;topology:1x1"
    job = client.create(_tpu(option, f"reservation={NIGHT}", machine="ct6e-standard-1t"), "us-east5")
    last = _last(client, job)
    assert "No available resources in specified reservations." in last
    assert "reservation" in judged([last]).explanation


def test_a_full_reservation_is_tried_again(client: Client, enter: Callable[[str], None]) -> None:
    """A reservation without room is said to have none, and asked as often as a zone without stock."""
    enter("tpu-stockout")
    job = client.create(_tpu(V6E, f"reservation={NIGHT}"), "us-east5")
    last = _last(client, job)
    assert "Specified reservation tpu-night does not have available resources for the request." in last
    assert len(client.texts(job, "ERROR")) == 5
    assert "reservation" in judged([last]).explanation


def test_any_reservation_comes_before_the_market(
    client: Client, emulator: Emulator, enter: Callable[[str], None], reserve: Callable[..., str]
) -> None:
    """Workers fill what is reserved first and take the rest on demand, where that is in stock."""
    enter("plenty")
    path = reserve("l4-pool", count=1)
    option = "worker_accelerator=type:nvidia-l4;count:1;install-nvidia-driver"
    job = client.create(
        environment(machine="g2-standard-8", serviceOptions=[option, ANY], workerZone="us-central1-a", workers=2)
    )
    _vms(client, job, 2)
    assert sorted(_reserved(emulator, job)) == ["", path]


def test_any_reservation_is_found_in_the_region(
    client: Client, emulator: Emulator, enter: Callable[[str], None], reserve: Callable[..., str]
) -> None:
    """Without a zone the service goes where a reservation is, and needs no stock there; but only when asked to."""
    enter("l4-stockout")
    path = reserve("l4-rest")
    option = "worker_accelerator=type:nvidia-l4;count:1;install-nvidia-driver"
    job = client.create(environment(machine="g2-standard-8", experiments=[option, ANY]))
    assert _vms(client, job)[0]["zone"].endswith("/us-central1-a")
    assert _reserved(emulator, job) == [path]
    client.clear()
    assert (
        judged([_last(client, client.create(environment(machine="g2-standard-8", option=option)))]).kind == "stockout"
    )


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            (V6E, "reservation=zones//tpu"),
            "the reservation 'zones//tpu' is not of the form projects/P/zones/Z/reservations/R",
        ),
        ((V6E, "reservation=a", "reservation=b"), "more than one reservation: a, b"),
        ((V6E, "use_reservations"), "unknown service option 'use_reservations'"),
    ],
)
def test_what_names_no_reservation_is_refused(client: Client, options: tuple[str, ...], words: str) -> None:
    """An option that names no reservation, or two of them, is a bad request."""
    answer = client.post({"name": "wrong", "environment": _tpu(*options)}, "us-east5")
    assert answer.status_code == 400
    assert words in answer.json()["error"]["message"]
