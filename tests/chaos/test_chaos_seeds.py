"""Stories of crashes, kills, clears and faults: nothing is lost and nothing is doubled."""

from __future__ import annotations

import pytest

from tests.chaos.story import tell

SEEDS = range(60)


@pytest.mark.parametrize("seed", SEEDS)
def test_story(seed: int) -> None:
    """Whatever happens to a task and its services, it has at most one job alive, and none is forgotten."""
    assert tell(seed).violations == []


def test_stories_are_the_same_each_time() -> None:
    """A seed always tells the same story, so that one line is enough to play it again."""
    assert tell(22) == tell(22)


def test_stories_are_eventful() -> None:
    """The fixed stories contain kills, clears, marks, moves and foreign jobs, in both modes and of all operators."""
    told = [tell(seed) for seed in SEEDS]
    events = {event for each in told for event in each.events}

    assert len({(each.operator, each.deferrable) for each in told}) == 6
    assert {each.state for each in told} == {"success", "failed"}
    assert {"worker killed", "triggerer killed", "deferred: move", "deferred: restart", "deferred: clear"} <= events
    assert {"deferred: mark failed", "deferred: sibling", "clear finished", "foreign job of the name"} <= events
    assert any(event.startswith("worker signalled") for event in events)
