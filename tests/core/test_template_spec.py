"""What a template says of itself, and what of a launch does not fit it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from airflow_accel_provider.core.template_spec import (
    TemplateSpec,
    TemplateSpecError,
    check_spec,
    read_flex_spec,
    read_metadata,
)

SPEC: dict[str, Any] = {
    "image": "us-docker.pkg.dev/acme/templates/score:1",
    "sdkInfo": {"language": "PYTHON"},
    "metadata": {
        "name": "Score",
        "parameters": [
            {"name": "input", "label": "Input", "helpText": "What to read"},
            {"name": "dtype", "label": "Type", "helpText": "How to compute", "isOptional": True},
            {"name": "top", "label": "Top", "helpText": "How many", "defaultValue": "3"},
        ],
    },
}


def spec(**changed: Any) -> TemplateSpec:
    return read_flex_spec(json.dumps({**SPEC, **changed}))


def test_a_spec_tells_its_sdk_and_what_it_needs() -> None:
    """A parameter is needed unless it is optional or has a default."""
    assert spec() == TemplateSpec(sdk="python", needs={"input": True, "dtype": False, "top": False})
    assert spec(metadata=None).needs is None
    assert spec(metadata={"name": "Score"}).needs is None
    assert spec(sdkInfo={"language": "JAVA"}).sdk == "java"
    assert read_metadata(json.dumps(SPEC["metadata"])).needs == spec().needs


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("not JSON", "it is not JSON"),
        ("[]", "not a JSON object"),
        ("{}", "it has no image"),
        (json.dumps({**SPEC, "image": ""}), "it has no image"),
        (json.dumps({**SPEC, "sdkInfo": None}), "sdkInfo.language"),
    ],
)
def test_what_is_no_spec_is_told(text: str, said: str) -> None:
    """A file that is not a Flex template's spec is told of with what it lacks."""
    with pytest.raises(TemplateSpecError, match=said):
        read_flex_spec(text)


# Each row: the launch's parameters, of which these are the user's own; the SDK; code, place and words of the problem.
MISFITS: list[tuple[dict[str, str], set[str], Any, str, str, str]] = [
    ({"input": "x"}, {"input"}, "python", "", "", ""),
    ({"input": "x", "disk_size_gb": "50"}, {"input"}, "python", "", "", ""),
    ({"disk_size_gb": "50"}, set(), "python", "template-parameter-missing", "parameters", "needs 'input'"),
    (
        {"input": "x", "dtyp": "float16"},
        {"input", "dtyp"},
        "python",
        "template-parameter-unknown",
        "parameters.dtyp",
        "Did you mean 'dtype'?",
    ),
    (
        {"input": "x", "mode": "fast"},
        {"input"},
        "python",
        "template-parameter-unknown",
        "pipeline_options.mode",
        "It has input, dtype, top",
    ),
    (
        {"input": "x", "streaming": "true"},
        {"input"},
        "python",
        "template-parameter-unknown",
        "pipeline_options.streaming",
        "no parameter 'streaming'",
    ),
    ({"input": "x"}, {"input"}, "java", "sdk-contradicted", "sdk", "written in Python; give sdk='python'"),
]


@pytest.mark.parametrize(("given", "own", "sdk", "code", "where", "said"), MISFITS)
def test_what_does_not_fit_is_told(
    *, given: dict[str, str], own: set[str], sdk: Any, code: str, where: str, said: str
) -> None:
    """A parameter that is missing or that the template does not have is an error with the nearest right thing."""
    problems = list(check_spec(spec(), given, own=own, sdk=sdk))
    assert [(each.code, each.where) for each in problems] == ([(code, where)] if code else [])
    assert all(said in each.message and each.is_error for each in problems)


def test_a_silent_template_takes_anything() -> None:
    """What a template does not describe is not judged."""
    assert list(check_spec(spec(metadata=None), {"anything": "x"}, own={"anything"}, sdk="python")) == []
