"""Accelerators as text and as values."""

from __future__ import annotations

import pytest
from hypothesis import given

from airflow_accel_provider.core.accelerators import Accelerator, Gpu, Tpu, parse_accelerator
from tests.core.strategies import ACCELERATORS


@given(ACCELERATORS)
def test_text_parses_back(accelerator: Accelerator) -> None:
    """The text of an accelerator parses back to the same accelerator."""
    assert parse_accelerator(str(accelerator)) == accelerator


@given(ACCELERATORS)
def test_case_and_blanks_mean_nothing(accelerator: Accelerator) -> None:
    """Capitals and surrounding blanks do not change what an accelerator is."""
    assert parse_accelerator(f" {str(accelerator).upper()} ") == accelerator


def test_one_is_the_default_count() -> None:
    """A GPU without a count is one GPU, and one GPU is written without a count."""
    assert parse_accelerator("nvidia-l4") == parse_accelerator("nvidia-l4:1") == Gpu("nvidia-l4", 1)
    assert str(Gpu("nvidia-l4", 1)) == "nvidia-l4"


def test_multiplication_sign_is_read_as_x() -> None:
    """A topology copied from a page that prints a multiplication sign is understood."""
    assert parse_accelerator("tpu-v6e-slice:2×4") == Tpu("tpu-v6e-slice", "2x4")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "does not start with an accelerator type"),
        ("4", "does not start with an accelerator type"),
        ("nvidia_l4", "; nvidia-l4 would be one"),
        ("nvidia l4:2", "; nvidia-l4 would be one"),
        ("tpu-v6e-slice", "such as tpu-v6e-slice:1x1"),
        ("tpu-v5p-slice", "such as tpu-v5p-slice:2x2x1"),
        ("cpu:2", "cpu takes no count"),
        ("tpu-v6e-slice", "lacks a topology"),
        ("nvidia-l4:0", "a count of 1 or more"),
        ("nvidia-l4:-1", "a count of 1 or more"),
        ("nvidia-l4:", "a count of 1 or more"),
        ("nvidia-l4:two", "a count of 1 or more"),
        ("nvidia-l4:²", "a count of 1 or more"),
    ],
)
def test_malformed_text_is_refused(text: str, said: str) -> None:
    """A text of another form is refused with a sentence about what is wrong with it."""
    with pytest.raises(ValueError, match=said):
        parse_accelerator(text)
