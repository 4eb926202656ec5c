"""The sensors' trigger: what it is stored as, what it fires, and what many of them share."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from airflow.models.trigger import Trigger
from airflow.serialization.decoders import smart_decode_trigger_kwargs
from connections import connection

from airflow_accel_provider.core.record import UnknownVersionError
from airflow_accel_provider.core.waiting.answers import Met
from airflow_accel_provider.core.waiting.questions import Question, question_to_json
from airflow_accel_provider.core.waiting.quota import QuotaQuestion
from airflow_accel_provider.core.waiting.reservation import ReservationQuestion
from airflow_accel_provider.triggers._wait import TimedOut
from airflow_accel_provider.triggers.sensor import AcceleratorSensorTrigger, read_event

if TYPE_CHECKING:
    from collections.abc import Iterator

    from emulators import Emulator

ROOM = QuotaQuestion(placements=("nvidia-l4 on g2-standard-8 in us-central1",))
NIGHT = ReservationQuestion(reservation="zones/us-east5-b/reservations/tpu-night", count=9)
TOKEN = "oauth2.token"


@pytest.fixture
def google(emulator: Emulator, monkeypatch: pytest.MonkeyPatch) -> Iterator[Emulator]:
    """Return the emulator, with a connection ``gcp`` leading to it."""
    monkeypatch.setenv("AIRFLOW_CONN_GCP", connection(emulator).as_json())
    yield emulator
    emulator.enter("plenty")


def trigger_for(question: Question, *, seconds: float = 30, **changes: Any) -> AcceleratorSensorTrigger:
    arguments: dict[str, Any] = {
        "v": 1,
        "question": question_to_json(question),
        "deadline": (datetime.now(UTC) + timedelta(seconds=seconds)).isoformat(),
        "pace": {"seconds": 0.2, "grows": False, "longest": None},
        "is_patient": False,
        "gcp_conn_id": "gcp",
        **changes,
    }
    return AcceleratorSensorTrigger(**arguments)


async def fired(trigger: AcceleratorSensorTrigger) -> dict[str, Any]:
    """Return the payload of the only event, as it comes out of Airflow's database."""
    payloads = [json.loads(json.dumps(event.payload)) async for event in trigger.run()]
    assert len(payloads) == 1
    return payloads[0]


def test_survives_the_database() -> None:
    """A trigger that is stored and loaded again is the same one."""
    trigger = trigger_for(ROOM, impersonation_chain=["a@b.iam.gserviceaccount.com"], project_id="p")
    row = Trigger.from_object(trigger)
    arguments = smart_decode_trigger_kwargs(row.kwargs)
    assert AcceleratorSensorTrigger(**arguments).serialize() == trigger.serialize()


async def test_fires_with_the_value(google: Emulator) -> None:
    """What was waited for is in the event as the worker returns it."""
    settled = read_event(await fired(trigger_for(ROOM)))
    assert isinstance(settled, Met)
    assert settled.value["placement"] == ROOM.placements[0]


async def test_fires_at_its_deadline(google: Emulator) -> None:
    """A trigger ends by itself when its time is over, with the last reason."""
    google.enter("reserved-tpu")
    settled = read_event(await fired(trigger_for(NIGHT, seconds=0.5)))
    assert isinstance(settled, TimedOut)
    assert "holds 2 in all, and 9 must be free" in settled.reason


async def test_a_trigger_settles_before_it_fires(google: Emulator, monkeypatch: pytest.MonkeyPatch) -> None:
    """An event that is ready at once is held until the deferring worker's supervisor must have reported."""
    monkeypatch.setenv("AIRFLOW__WORKERS__MIN_HEARTBEAT_INTERVAL", "1")
    monkeypatch.setattr("airflow_accel_provider.triggers._settling._SCHEDULER_ROUNDS", 0.2)
    begun = asyncio.get_running_loop().time()
    await fired(trigger_for(ROOM))
    assert asyncio.get_running_loop().time() - begun >= 1.2


async def test_many_share_a_session_that_goes_with_the_last(google: Emulator) -> None:
    """Triggers of one identity exchange its key once, and the next ones after them read the connection anew."""
    mark = google.mark()
    await asyncio.gather(*(fired(trigger_for(ROOM)) for _ in range(10)))
    assert len(google.calls(TOKEN, since=mark)) == 1
    mark = google.mark()
    other = QuotaQuestion(placements=ROOM.placements, num_workers=2)
    await fired(trigger_for(other, impersonation_chain=[google.email("pipeline")]))
    assert {call["principal"] for call in google.calls("compute.regions.get", since=mark)} == {google.email("pipeline")}


async def test_a_connection_that_is_not_there_is_told() -> None:
    """A trigger whose connection was deleted fires, and the task fails naming it."""
    payload = await fired(trigger_for(ROOM, gcp_conn_id="deleted"))
    assert payload["failure"]["kind"] == "configuration"
    assert "deleted" in payload["failure"]["explanation"]


async def test_an_unknown_version_asks_nothing(google: Emulator) -> None:
    """A trigger that another release stored fires at once without a call, and the worker refuses its version."""
    mark = google.mark()
    payload = await fired(trigger_for(ROOM, v=99))
    with pytest.raises(UnknownVersionError):
        read_event(payload)
    assert google.calls("compute.regions.get", since=mark) == []
