"""A request as it is meant in one place."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_accel_provider.core.placement import Placement
from airflow_accel_provider.core.request import BEAM_NAMED, BeamRequest, Candidate, map_strings
from tests.core.strategies import placements

TEXTS = st.lists(st.sampled_from(["gs://acme-", "{region}", "{accelerator}", "{zone}", "{other}", "/part", "{}"])).map(
    "".join
)
NESTED = st.recursive(
    TEXTS | st.integers() | st.booleans() | st.none(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)


def strings(value: Any) -> list[str]:
    """Return every string inside a nested value, in order."""
    found: list[str] = []
    map_strings(lambda text: found.append(text) or text, value)
    return found


@given(placements(), NESTED)
def test_tokens_are_filled_however_deep(placement: Placement, value: Any) -> None:
    """Region, zone and accelerator are filled in every string, however nested, and nothing else is changed."""
    request = BeamRequest(pipeline_options={"value": value})
    meant = request.for_candidate(Candidate(placement=placement)).pipeline_options["value"]
    wanted = [
        text.replace("{region}", placement.region)
        .replace("{accelerator}", getattr(placement.accelerator, "type", "cpu"))
        .replace("{zone}", placement.zone or "{zone}")
        for text in strings(value)
    ]
    assert strings(meant) == wanted
    assert map_strings(lambda _: "", meant) == map_strings(lambda _: "", value)


@given(placements(), NESTED)
def test_meaning_is_settled_once(placement: Placement, value: Any) -> None:
    """What a request means in a place is the same when it is asked again."""
    candidate = Candidate(placement=placement, overrides={"num_workers": "3"})
    meant = BeamRequest(pipeline_options={"value": value, "max_num_workers": "4"}).for_candidate(candidate)
    assert meant.for_candidate(candidate) == meant


def test_overrides_replace_values_and_join_mappings() -> None:
    """What a candidate says replaces the operator's value; options and labels are joined name by name."""
    request = BeamRequest(num_workers=1, pipeline_options={"a": 1, "b": 2}, labels={"team": "ml"})
    candidate = Candidate.parse(
        {
            "placement": "nvidia-l4 in us-central1",
            "num_workers": 2,
            "pipeline_options": {"b": 3},
            "labels": {"place": "{region}"},
        }
    )
    meant = request.for_candidate(candidate)
    assert meant.num_workers == 2
    assert meant.pipeline_options == {"a": 1, "b": 3}
    assert meant.labels == {"team": "ml", "place": "us-central1"}


@pytest.mark.parametrize("name", BEAM_NAMED)
def test_option_with_a_parameter_becomes_the_parameter(name: str) -> None:
    """A Beam option that has a parameter of its own counts as that parameter; the parameter wins over it."""
    options = {name: 7, "other": 1}
    moved = BeamRequest(pipeline_options=options, default_pipeline_options={name: 5}).settled()
    assert getattr(moved, name) == 7
    assert moved.pipeline_options == {"other": 1}
    assert moved.default_pipeline_options == {}
    assert getattr(BeamRequest(**{name: 9}, pipeline_options=options).settled(), name) == 9


def test_rendered_templates_become_numbers_and_switches() -> None:
    """Numbers and switches that a template rendered as text are numbers and switches again."""
    meant = BeamRequest(num_workers="3", use_public_ips="False", use_mps="true", disk_size_gb="many").settled()  # type: ignore[arg-type]
    assert (meant.num_workers, meant.use_public_ips, meant.use_mps, meant.disk_size_gb) == (3, False, True, "many")


def test_mapping_without_a_placement_is_refused() -> None:
    """A candidate given as a mapping needs a placement."""
    with pytest.raises(ValueError, match="needs a 'placement' text"):
        Candidate.parse({"num_workers": 3})
