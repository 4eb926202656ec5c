"""Prices: hints with doubts, for putting places in order."""

from __future__ import annotations

import pytest

from airflow_accel_provider.core.accelerators import parse_accelerator
from airflow_accel_provider.core.catalog import load_catalog
from airflow_accel_provider.core.prices import PriceRange

CATALOG = load_catalog()


def price(accelerator: str, machine: str | None, region: str) -> PriceRange | None:
    return CATALOG.price_range(parse_accelerator(accelerator), machine, region)


def test_every_price_is_of_a_machine_and_region_that_the_catalogue_has() -> None:
    """A price is of a machine that carries the accelerators, or of an N1 host that may, in a region that is known."""
    for row in CATALOG.prices.values():
        machine = CATALOG.machines[row.machine_type]
        assert row.region in CATALOG.regions
        assert (machine.accelerator, machine.count) in {(row.accelerator, row.count), (None, 0)}
        if machine.accelerator is None:
            assert CATALOG.host_limit(row.accelerator, row.count)
        assert (row.low is None) == (row.high is None)
        assert row.low is None or row.high is None or 0 < row.low <= row.high


@pytest.mark.parametrize("type_", [*sorted(CATALOG.accelerators), *sorted(CATALOG.tpu_types)])
def test_every_accelerator_has_prices_in_most_of_its_regions(type_: str) -> None:
    """A price is known in two thirds of the regions in which an accelerator is published."""
    priced = {row.region for row in CATALOG.prices.values() if row.accelerator == type_}
    assert len(priced & set(CATALOG.regions_of(type_))) >= 2 / 3 * len(CATALOG.regions_of(type_))


def test_a_listed_price_is_the_range_over_zones() -> None:
    """A machine in a region costs what the lists say, from the cheapest zone to the dearest."""
    found = price("nvidia-l4", "g2-standard-4", "us-central1")
    assert found is not None
    assert (found.low, found.high, found.doubts) == (0.70683, 0.70683, ())
    assert price("nvidia-l4", None, "us-central1") == found


def test_a_doubtful_price_says_so() -> None:
    """A price that looks like that of a calendar reservation carries the doubt."""
    found = price("nvidia-h100-80gb:8", None, "us-central1")
    assert found is not None
    assert "od_price_suspect_dws_sku" in found.doubts


def test_an_unlisted_machine_is_estimated() -> None:
    """A T4 on a large host has no list price; GPU, vCPUs and memory are added up, and the doubts say so."""
    found = price("nvidia-tesla-t4", "n1-standard-16", "us-central1")
    assert found is not None
    assert found.low == found.high == pytest.approx(0.42 + 16 * 0.056 + 60 * 0.003557, abs=1e-4)
    assert set(found.doubts) == {"estimated", "from_memory", "rates_of_us-central1"}


def test_a_tpu_is_estimated_by_its_chips() -> None:
    """Where no list has a price for a TPU, its chips alone count."""
    found = price("tpu-v6e-slice:2x2", None, "asia-south2")
    assert found is not None
    assert found.low == pytest.approx(4 * 2.70)
    assert "estimated" in found.doubts


def test_cpus_are_cheaper_than_accelerators() -> None:
    """Eight vCPUs cost less than the same with an L4."""
    cpus, l4 = price("cpu", "n1-standard-8", "us-central1"), price("nvidia-l4", "g2-standard-8", "us-central1")
    assert cpus is not None
    assert l4 is not None
    assert cpus.high < l4.low


@pytest.mark.parametrize(
    ("accelerator", "machine"), [("nvidia-b300:8", None), ("nvidia-h100-80gb:8", "a3-edgegpu-8g"), ("cpu", None)]
)
def test_an_unknown_price_is_none(accelerator: str, machine: str | None) -> None:
    """Nothing is said where no list and no rates have the accelerator, or where no machine is known."""
    assert price(accelerator, machine, "us-central1") is None
