"""Stories with real processes: Airflow's own task runner, a real kill, and the emulator's ledger as the judge."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from tests.kills.stage import play

if TYPE_CHECKING:
    from pathlib import Path

SEEDS = ("8", "23", "26", "32", "35", "40", "43", "45", "50", "61", "69")
"""The first is launched by Beam itself, the rest by what sends the same in a twentieth of the time."""
SUBMITTED = {"gpu": "after the launcher#1", "template": "after POST dataflow templates:launch#1"}
SUBMITTED |= {"tpu": SUBMITTED["gpu"], "spark": "after POST dataproc batches#1"}
MODES = ("synchronous", "deferrable", "synchronous late", "deferrable late")


def test_killed_anywhere(tmp_path: Path) -> None:
    """Whichever process of a task dies wherever, the task has at most one job alive, and none is left alone."""
    told = list(play(tmp_path, SEEDS))

    assert [each for each in told if each["violations"]] == []
    assert [each["name"] for each in told] == list(SEEDS)
    assert {each["kind"] for each in told} == {"gpu", "tpu", "template", "spark"}
    # What comes when depends on the machine; that too little of it came would make the stories worth nothing.
    harms = Counter(event for each in told for event in each["events"] if event.startswith(("worker", "trigger")))
    assert harms["worker killed"] >= 4
    assert harms["trigger killed"] >= 1
    assert harms.total() >= 10
    assert sum(each["jobs"] for each in told) > len(told)


def test_killed_between_create_and_record(tmp_path: Path) -> None:
    """A worker that is killed when it has submitted, before it could write so, costs no job, soon or late."""
    names = [f"{kind}/{mode}/1/{point}" for kind, point in SUBMITTED.items() for mode in MODES]
    told = list(play(tmp_path, names))

    # The first place has no room, the second has.
    assert {each["name"]: (each["state"], each["jobs"], each["violations"]) for each in told} == {
        name: ("success", 2, []) for name in names
    }
    assert [each["name"] for each in told if "worker killed" not in each["events"]] == []


def test_missing_guard_is_noticed(tmp_path: Path) -> None:
    """Without the look for a job of the name, what a killed worker had done by then is done again, and that shows."""
    (told,) = play(
        tmp_path, ["template/synchronous late/1/after POST dataflow templates:launch#2"], without="no_look_up"
    )

    assert [said for said in told["violations"] if said.endswith("did the same")]
