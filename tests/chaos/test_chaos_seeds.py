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


EVENTS = {
    *("worker killed", "worker hangs", "worker goes on", "worker signalled: clear", "worker signalled: mark failed"),
    *("triggerer killed", "trigger crashed", "killed in a cancel", "deferral timed out", "no triggerer for long"),
    *("deferred: move", "deferred: restart", "deferred: clear", "deferred: mark failed", "deferred: sibling"),
    *("clear finished", "clear up_for_retry", "streaming job cleared", "run made again", "item changed"),
    *("token refused", "no token given", "foreign job of the name", "job drained by somebody"),
}


def test_stories_are_eventful() -> None:
    """Each thing that may happen to a task does in further stories, of all operators in both modes, and harms none."""
    told = [tell(seed) for seed in range(max(SEEDS) + 1, 250)]
    happened = {event for each in told for event in each.events}

    assert len({(each.operator, each.deferrable) for each in told}) == 6
    assert {each.state for each in told} == {"success", "failed"}
    assert happened >= EVENTS
    assert [each.violations for each in told if each.violations] == []
    assert sum(each.minutes for each in told) > 0
