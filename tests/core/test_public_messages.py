"""What people met in public: each message means what a person reads in it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from airflow_accel_provider.core.classification import Signals, judge

FOUND = json.loads((Path(__file__).parent / "public_messages.json").read_text(encoding="utf-8"))["messages"]


def request(found: dict[str, Any]) -> dict[str, Any]:
    messages = [{"importance": "error", "text": text} for text in found["messages"]]
    signals = {"state": "failed", "messages": messages} | found.get("signals", {})
    return {"service": found.get("service", "dataflow"), "signals": signals}


@pytest.mark.parametrize("found", FOUND, ids=lambda found: found["source"][:70])
def test_a_public_message_means_what_a_person_reads(found: dict[str, Any]) -> None:
    """A failure message that somebody posted gets the kind, reach and next step a person would give it."""
    answer = judge(Signals.from_json(request(found))).to_json()

    assert {name: answer[name] for name in found["expected"]} == found["expected"]
    assert found.get("says", "") in answer["explanation"]


def test_there_are_enough_of_each() -> None:
    """Thirty messages and more are kept, each with where it was found; both services and every big family are there."""
    assert len(FOUND) >= 30
    assert all(found["source"] for found in FOUND)
    assert {found.get("service", "dataflow") for found in FOUND} == {"dataflow", "dataproc"}
    assert {"stockout", "quota", "configuration", "permission", "image", "user_code", "service"} <= {
        found["expected"]["kind"] for found in FOUND
    }
