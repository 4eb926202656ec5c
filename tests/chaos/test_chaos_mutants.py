"""The stories would notice: each guard that is taken out lets one of them break a promise."""

from __future__ import annotations

import pytest

from tests.chaos.mutants import MUTANTS, without
from tests.chaos.story import tell

SEEDS = 400
"""How many stories may be told until the first is broken."""


@pytest.mark.parametrize("guard", MUTANTS)
def test_missing_guard_is_noticed(guard: str) -> None:
    """Without any one of the product's guards some story has a doubled, a lost or a stranger's job."""
    for seed in range(SEEDS):
        with without(guard):
            if tell(seed).violations:
                return
    pytest.fail(f"{SEEDS} stories do not notice that the product is without {guard}")
