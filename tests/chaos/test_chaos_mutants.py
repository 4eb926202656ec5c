"""The stories would notice: each guard that is taken out lets one of them break a promise."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.chaos.mutants import MUTANTS, without
from tests.chaos.story import tell

SEEDS = 400
"""How many stories may be told until the first is broken."""
LIKELY = {
    "stale_forgotten_early": 25,
    "done_runs_again": 75,
    "moved_trigger_kills": 43,
    "deaf_trigger": 74,
    "deaf_worker": 39,
    "no_ended_mark": 23,
    "lists_are_at_once": 31,
    "hasty_kill": 100,
    "no_end": 62,
    "crash_is_final": 46,
    "no_naming": 71,
    "dead_goes_on": 100,
    "owner_from_ids": 48,
    "item_is_its_index": 61,
    "no_notes": 246,
    "unheard_end": 1114,
    "past_time_counts": 322,
    "cancels_late": 22,
    "waits_out_shortages": 21,
    "moves_from_an_end": 89,
    "own_clock": 198,
}
"""Where to begin to look: stories that noticed at once when this was written. Any other will do."""


@pytest.mark.parametrize("guard", MUTANTS)
def test_missing_guard_is_noticed(guard: str) -> None:
    """Without any one of the product's guards some story has a doubled, a lost, a wasted or a stranger's job."""
    for seed in seeds(LIKELY.get(guard, 0)):
        with without(guard):
            if tell(seed).violations:
                return
    pytest.fail(f"{SEEDS} stories do not notice that the product is without {guard}")


def seeds(first: int) -> Iterator[int]:
    """Yield every seed once, the likeliest first."""
    yield first
    yield from range(first + 1, SEEDS)
    yield from range(first)
