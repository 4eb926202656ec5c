"""Stories with real processes: Airflow's own task runner, a real kill, and the emulator's ledger as the judge."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.kills.stage import play

if TYPE_CHECKING:
    from pathlib import Path

SEEDS = (1, 20, 21, 23, 25, 27, 32, 38, 41, 42, 50)
"""The first is launched by Beam itself, the rest by what sends the same in a twentieth of the time."""
HAPPEN = {"worker killed", "launcher killed", "worker cleared", "trigger cleared", "trigger marked success"}


def test_killed_anywhere(tmp_path: Path) -> None:
    """Whichever process of a task dies wherever, the task has at most one job alive, and none is left alone."""
    told = list(play(tmp_path, SEEDS))

    assert [each for each in told if each["violations"]] == []
    assert [each["seed"] for each in told] == list(SEEDS)
    assert {each["kind"] for each in told} == {"gpu", "tpu", "template", "spark"}
    assert {event for each in told for event in each["events"]} >= HAPPEN
