"""Which day a run of the example scores, and what it says when there is none."""

from __future__ import annotations

import pendulum
import pytest

from tests.integration.example import digits


def test_a_run_scores_its_own_day() -> None:
    """The logical date's day is the day that is scored."""
    day = pendulum.datetime(2026, 3, 3, tz="UTC")
    assert digits().day_of_run(day) == "2026-03-03"


def test_a_run_without_a_date_says_what_to_do() -> None:
    """A run without a logical date fails, naming the days it may have and the way to give one."""
    with pytest.raises(ValueError, match=r"no logical date.*2026-03-02, 2026-03-03, 2026-03-04.*backfill"):
        digits().day_of_run(None)


@pytest.mark.parametrize("date", ["2026-03-01", "2026-03-05", "2027-03-02"])
def test_a_day_without_images_says_which_have(date: str) -> None:
    """A date outside the three days fails, naming it and the three."""
    with pytest.raises(ValueError, match=rf"no images for {date}.*2026-03-02, 2026-03-03, 2026-03-04"):
        digits().day_of_run(pendulum.parse(date))


@pytest.mark.parametrize("count", [399, 401])
def test_a_wrong_count_fails_the_check(count: int) -> None:
    """Too few and too many predictions are both refused with the numbers."""
    predictions = [{"id": f"digit-{n}", "label": 1, "prediction": 1} for n in range(count)]
    with pytest.raises(ValueError, match=f"2026-03-02 has {count} predictions"):
        digits().summarise("2026-03-02", predictions)


def test_poor_predictions_fail_the_check() -> None:
    """An accuracy below 0.9 is refused with the figure."""
    predictions = [{"id": f"digit-{n}", "label": 1, "prediction": int(n % 2)} for n in range(400)]
    with pytest.raises(ValueError, match=r"Only 50\.0%"):
        digits().summarise("2026-03-02", predictions)
