"""Regions and zones by their names."""

from __future__ import annotations

import pytest

from airflow_accel_provider.core.catalog import load_catalog
from airflow_accel_provider.core.locations import is_region, is_zone, region_of


def test_every_known_region_and_zone_has_its_form() -> None:
    """All regions of the catalogue read as regions, all zones as zones of their region, AI zones too."""
    for region in load_catalog().regions:
        assert is_region(region)
        assert not is_zone(region)
        for zone in load_catalog().zones_in(region):
            assert is_zone(zone)
            assert not is_region(zone)
            assert region_of(zone) == region


@pytest.mark.parametrize(
    "text", ["", "us", "us-central", "europe-west4-", "US-CENTRAL1", "us-central1-a-b", "us central1"]
)
def test_other_texts_are_neither(text: str) -> None:
    """What is not a region or zone is taken for neither."""
    assert not is_region(text)
    assert not is_zone(text)
