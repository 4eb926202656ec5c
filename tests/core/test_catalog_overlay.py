"""A user's overlay: rows of their own laid over the catalogue's."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from airflow_accel_provider.core.accelerators import Gpu, Tpu
from airflow_accel_provider.core.catalog import CatalogError, load_catalog
from airflow_accel_provider.core.forms import FORMS
from airflow_accel_provider.core.placement import Placement

CATALOG = load_catalog()


def overlay(**tables: Any) -> dict[str, Any]:
    """Return an overlay of the given rows, of one source and day."""
    return {name: {"source": "acme's own project", "date": "2027-01-31", "rows": rows} for name, rows in tables.items()}


def test_an_empty_overlay_changes_nothing() -> None:
    """Laying nothing over the catalogue gives the same catalogue, and no path gives the packaged one."""
    assert CATALOG.merged({}) == CATALOG
    assert load_catalog(None) is load_catalog("") is CATALOG


@pytest.mark.parametrize("name", FORMS)
def test_every_table_can_be_laid_over_itself(name: str) -> None:
    """Each packaged table has the form of an overlay, and laid over itself it changes no row."""
    table = next(table for table in CATALOG.tables if table.name == name)
    merged = CATALOG.merged({name: {"source": table.source, "date": table.date, "rows": table.rows}})
    assert len(merged.tables) == len(CATALOG.tables) + 1
    for part in ("accelerators", "machines", "zones", "regions", "names", "quotas", "prices", "rates", "host_limits"):
        assert getattr(merged, part) == getattr(CATALOG, part)


def test_rows_are_added() -> None:
    """A new GPU type with machines, zones and a quota is known like any other, with its default machine."""
    merged = CATALOG.merged(
        overlay(
            accelerators=[{"type": "nvidia-b200", "memory_gb": 180}],
            machines=[
                {"name": "a4-highgpu-1g", "vcpus": 28, "memory_gb": 496, "accelerator": "nvidia-b200", "count": 1}
            ],
            zones={"nvidia-b200": ["us-central1-b"]},
            quotas=[
                {
                    "type": "nvidia-b200",
                    "provisioning": "standard",
                    "unit": "GPU",
                    "metric": "NVIDIA_B200_GPUS",
                    "dimensions": {},
                }
            ],
        )
    )
    assert merged.default_machine(Gpu("nvidia-b200")) == "a4-highgpu-1g"
    assert merged.zones_of("nvidia-b200") == ("us-central1-b",)
    assert merged.quota_metric("nvidia-b200") == "NVIDIA_B200_GPUS"
    assert CATALOG.accelerator("nvidia-b200") is None


def test_rows_are_overridden_column_by_column() -> None:
    """An overlay's row changes the columns that it names and keeps the others; a list of zones is replaced."""
    merged = CATALOG.merged(
        overlay(
            accelerators=[{"type": "nvidia-l4", "minimum_beam": "2.60"}],
            zones={"nvidia-l4": ["europe-west4-a"]},
            tpu_slices=[{"type": "tpu-v6e-slice", "topology": "2x2", "chips": 5}],
        )
    )
    l4, before = merged.accelerator("nvidia-l4"), CATALOG.accelerator("nvidia-l4")
    assert l4 is not None
    assert before is not None
    assert (l4.minimum_beam, l4.memory_gb, l4.advised_beam) == ("2.60", before.memory_gb, before.advised_beam)
    assert merged.zones_of("nvidia-l4") == ("europe-west4-a",)
    assert merged.offered_instead(Placement.parse("nvidia-l4 in us-central1"))
    assert merged.machine_for(Tpu("tpu-v6e-slice", "2x2")) == "ct6e-standard-4t"


def test_an_overlay_keeps_its_own_source_and_date() -> None:
    """A merged catalogue says of each table where the packaged and where the overlay's rows are from."""
    merged = CATALOG.merged(overlay(zones={"nvidia-l4": ["europe-west4-a"]}))
    dates = [(table.source, table.date) for table in merged.tables if table.name == "zones"]
    assert len(dates) == 2
    assert dates[1] == ("acme's own project", "2027-01-31")


def test_later_overlays_win() -> None:
    """Of two overlays laid over each other the later one's rows hold."""
    first, second = (overlay(zones={"nvidia-l4": [zone]}) for zone in ("us-east1-b", "us-west1-a"))
    assert CATALOG.merged(first).merged(second).zones_of("nvidia-l4") == ("us-west1-a",)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ([], "An overlay is an object"),
        (overlay(machine=[]), "there is no table machine; did you mean machines?"),
        ({"zones": {"rows": {}}}, "zones: a table has source, date and rows"),
        ({"zones": {"source": "", "date": "soon", "rows": {}}}, "zones: date is a day such as 2026-11-29, not 'soon'"),
        ({"zones": {"source": "a", "date": "2026-11-29", "rows": {}, "by": 1}}, "source, date and rows, no by"),
        (overlay(zones=[]), "zones: rows is an object"),
        (overlay(machines={}), "machines: rows is a list of objects"),
        (
            overlay(zones={"nvidia-l4": "us-east1-b"}),
            "zones: nvidia-l4 is a list of zones such as us-central1-a, not 'us-east1-b'",
        ),
        (overlay(machines=[{"name": "n1-x", "vcpu": 4}]), "row 1 has no column vcpu; did you mean vcpus?"),
        (overlay(machines=[{"name": "g2-standard-4", "vcpus": "4"}]), "row 1: vcpus is a whole number, not '4'"),
        (overlay(machines=[{"name": "g2-standard-4", "vcpus": True}]), "row 1: vcpus is a whole number, not True"),
        (overlay(machines=[{"vcpus": 4}]), "machines: row 1 lacks name"),
        (overlay(zones={"nvidia-l4": ["us-east1b"]}), "is a list of zones such as us-central1-a"),
        (
            overlay(quotas=[{"type": "nvidia-l4", "provisioning": "spot"}]),
            "row 1: provisioning is standard or preemptible, not 'spot'",
        ),
        (overlay(accelerators=[{"type": "nvidia-x9", "memory_gb": 9}]), "nvidia-x9 is on no machine"),
        (overlay(machines=[{"name": "n1-standard-4", "accelerator": "nvidia-l4"}]), "has no count of it"),
        (overlay(machines=[{"name": "n1-x", "vcpus": 4}]), "machines: the new row n1-x lacks memory_gb"),
        (
            overlay(tpu_slices=[{"type": "tpu-v6e-slice", "topology": "2x2", "machine_type": "ct6e-standard-9t"}]),
            "tpu-v6e-slice 2x2 is on ct6e-standard-9t, which the table machines does not have",
        ),
    ],
)
def test_a_faulty_overlay_says_what_is_wrong(value: Any, said: str) -> None:
    """An unknown table or column, a wrong kind of value and a missing cell are each named, with the nearest right."""
    with pytest.raises(CatalogError) as caught:
        CATALOG.merged(value)
    assert said in str(caught.value)


def test_all_faults_are_said_at_once() -> None:
    """One error names every fault of an overlay."""
    value = overlay(machine=[], zones={"nvidia-l4": 3}, names=[{"name": "l5", "mean": "nvidia-l4"}])
    with pytest.raises(CatalogError) as caught:
        CATALOG.merged(value)
    assert all(word in str(caught.value) for word in ("no table machine", "nvidia-l4 is a list", "no column mean"))


def test_an_overlay_is_read_from_a_file(tmp_path: Path) -> None:
    """The file at the path is laid over the catalogue, and read anew when it has changed."""
    path = tmp_path / "overlay.json"
    path.write_text(json.dumps(overlay(zones={"nvidia-l4": ["us-east1-b"]})))
    assert load_catalog(path).zones_of("nvidia-l4") == ("us-east1-b",)
    assert load_catalog(str(path)) is load_catalog(path)
    path.write_text(json.dumps(overlay(zones={"nvidia-l4": ["us-east1-c"]})))
    assert load_catalog(path).zones_of("nvidia-l4") == ("us-east1-c",)


@pytest.mark.parametrize(
    ("content", "said"),
    [(None, "cannot be read"), (b"\xff\xfe", "cannot be read"), (b"{", "is not JSON"), (b'{"zone": {}}', "no table")],
)
def test_an_unreadable_file_is_named(tmp_path: Path, content: bytes | None, said: str) -> None:
    """What is wrong with the file is said in one error that names it."""
    path = tmp_path / "overlay.json"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(CatalogError, match=said) as caught:
        load_catalog(path)
    assert str(path) in str(caught.value)
