"""Whatever a person writes, there is an answer."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_accel_provider.core.beam_options import SDKS, Sdk, load_options
from airflow_accel_provider.core.catalog import load_catalog
from airflow_accel_provider.core.request import OVERRIDABLE, BeamRequest
from airflow_accel_provider.core.validation import check_beam, read_candidates
from airflow_accel_provider.core.validation._shapes import Operator

PLACES = ["nvidia-l4 in us-central1", "tpu-v6e-slice:2x2 in us-east5-b", "cpu on n1-standard-8 in us-east1-b"]
NAMES = [*sorted({name for sdk in SDKS for name in load_options(sdk).options}), "input", "a b", "", "{zone}"]
WORDS = st.sampled_from(["", "x", "{zone}", "{{ x }}", "{", "a=b,c", "gs://b/x", "3", "true", "worker_accelerator=;"])
ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | WORDS | st.just(object()),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3) | WORDS, inner, max_size=3),
    max_leaves=4,
)
OPTIONS = st.dictionaries(st.sampled_from(NAMES) | st.integers() | st.none(), ANY, max_size=4)
PARAMETERS = st.dictionaries(st.sampled_from(sorted(BeamRequest.__dataclass_fields__)), ANY, max_size=4)
OVERRIDES = st.dictionaries(st.sampled_from([*sorted(OVERRIDABLE), "zone", "nonsense"]), ANY, max_size=3)


@st.composite
def asked(draw: st.DrawFn) -> tuple[BeamRequest, str, Any]:
    """Draw a request, a place and what a fallback says differently."""
    request = BeamRequest(**{"pipeline_options": draw(OPTIONS), **draw(PARAMETERS)})
    return request, draw(st.sampled_from(PLACES)), {"pipeline_options": draw(OPTIONS), **draw(OVERRIDES)}


@pytest.mark.parametrize("sdk", SDKS)
@settings(max_examples=60, deadline=None)
@given(asked())
def test_every_request_has_an_answer(sdk: Sdk, said: tuple[BeamRequest, str, Any]) -> None:
    """Any values in any parameter, option and override are judged without an exception, each problem once."""
    request, place, overrides = said
    if sdk != "python":
        request = replace(request, sdk=sdk)
    candidates, _ = read_candidates(place, [{"placement": PLACES[0], **overrides}])
    operator: Operator = "tpu" if place.startswith("tpu") else "gpu"
    problems = check_beam(request, candidates, catalog=load_catalog(), operator=operator, project="acme-ml")
    assert len(set(problems)) == len(problems)
    assert all(problem.message and problem.code for problem in problems)
