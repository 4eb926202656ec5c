"""The placement grammar."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_accel_provider.core.accelerators import Gpu
from airflow_accel_provider.core.placement import Placement, PlacementError
from tests.core.strategies import placements


@given(placements())
def test_text_parses_back(placement: Placement) -> None:
    """The text of a placement parses back to the same placement."""
    assert Placement.parse(str(placement)) == placement


@given(placements(), st.sampled_from([" ", "  ", "\t", "\n  "]))
def test_equal_meaning_is_an_equal_value(placement: Placement, blank: str) -> None:
    """Blanks, capitals and a spelled-out count of one change neither the value nor its text."""
    words = str(placement).split(" ")
    is_single_gpu = isinstance(placement.accelerator, Gpu) and placement.accelerator.count == 1
    words[0] += ":1" if is_single_gpu else ""
    other = Placement.parse(blank + blank.join(words).upper() + blank)
    assert other == placement
    assert str(other) == str(placement)
    assert hash(other) == hash(placement)


@given(placements())
def test_region_stands_in_for_a_location(placement: Placement) -> None:
    """A text without a location is in the region given beside it, and one with a location keeps its own."""
    bare = str(placement).rpartition(" in ")[0]
    assert Placement.parse(bare, region=placement.location) == placement
    assert Placement.parse(str(placement), region="us-west1") == placement


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is not a placement"),
        ("nvidia-l4 at us-central1", "is not a placement"),
        ("nvidia-l4 in us-central1 on g2-standard-8", "is not a placement"),
        ("nvidia-l4", "has no location"),
        ("nvidia-l4 in mars", "neither a region .* nor a zone"),
        ("nvidia-l4:0 in us-central1", "a count of 1 or more"),
        ("nvidia-l4 on 8g in us-central1", "is not a machine type"),
    ],
)
def test_malformed_text_is_refused(text: str, said: str) -> None:
    """A text outside the grammar is refused with a sentence about what is wrong with it."""
    with pytest.raises(PlacementError, match=said):
        Placement.parse(text)
