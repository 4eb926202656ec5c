"""What a project's own lists say, as an overlay: the reading alone, without a network."""

from __future__ import annotations

from typing import Any

from airflow_accel_provider.core.catalog import load_catalog
from airflow_accel_provider.hooks.offers import overlay_of

CATALOG = load_catalog()
B200 = {"guestAcceleratorType": "nvidia-b200", "guestAcceleratorCount": 8}
L4 = {"guestAcceleratorType": "nvidia-l4", "guestAcceleratorCount": 1}
CT6E = {"guestAcceleratorType": "ct6e", "guestAcceleratorCount": 4}


def accelerators(*names: str, zone: str = "us-central1-a") -> dict[str, Any]:
    return {"items": {f"zones/{zone}": {"acceleratorTypes": [{"name": name} for name in names]}}}


def machines(
    name: str, cpus: int, memory_gb: int, carried: Any = None, *, zone: str = "us-central1-a"
) -> dict[str, Any]:
    row = {"name": name, "guestCpus": cpus, "memoryMb": memory_gb * 1024}
    row |= {"accelerators": [carried]} if carried else {}
    return {"items": {f"zones/{zone}": {"machineTypes": [row]}}}


def read(accelerator_pages: list[Any], machine_pages: list[Any]) -> dict[str, Any]:
    """Return the rows of the overlay by table, after the catalogue has taken it."""
    overlay = overlay_of(accelerator_pages, machine_pages, catalog=CATALOG, source="a project", day="2027-01-31")
    CATALOG.merged(overlay)
    return {name: table["rows"] for name, table in overlay.items()}


def test_zones_are_gathered_over_pages() -> None:
    """The zones of a type are those of all pages; types that Dataflow does not take have none here."""
    pages = [
        accelerators("nvidia-l4", "nvidia-l4-vws"),
        accelerators("nvidia-l4", "ct6e", "nvidia-b200", zone="us-east1-b"),
    ]
    assert read(pages, []) == {"zones": {"nvidia-l4": ["us-central1-a", "us-east1-b"], "tpu-v6e-slice": ["us-east1-b"]}}


def test_known_machines_are_no_news() -> None:
    """A machine as the catalogue has it makes no row, one that differs or is new does; those without are left out."""
    same = [machines("g2-standard-4", 4, 16, L4), machines("ct6e-standard-4t", 180, 720, CT6E)]
    assert read([], [*same, machines("n9-standard-4", 4, 16)]) == {}
    found = read([], [machines("g2-standard-4", 6, 24, L4), machines("a4-highgpu-9g", 99, 999, B200)])
    assert [(row["name"], row["vcpus"], row["accelerator"], row["on_dataflow"]) for row in found["machines"]] == [
        ("a4-highgpu-9g", 99, "nvidia-b200", False),
        ("g2-standard-4", 6, "nvidia-l4", True),
    ]


def test_a_machine_with_fewer_zones_than_its_accelerator_says_so() -> None:
    """Zones of a machine type are written down where its accelerator has more."""
    pages = [accelerators("nvidia-l4"), accelerators("nvidia-l4", zone="us-east1-b")]
    found = read(pages, [machines("g2-standard-4", 4, 16, L4)])
    assert found["machine_zones"] == {"g2-standard-4": ["us-central1-a"]}


def test_zones_that_did_not_answer_keep_what_is_known() -> None:
    """A zone that Compute Engine could not reach does not lose its accelerators."""
    unreachable = {"items": {"zones/us-central1-b": {"warning": {"code": "UNREACHABLE"}}}}
    empty = {"items": {"zones/us-central1-c": {"warning": {"code": "NO_RESULTS_ON_PAGE"}}}}
    gone = {"unreachables": ["projects/acme/zones/us-east1-d"]}
    found = read([accelerators("nvidia-l4"), unreachable, empty, gone], [])
    assert found["zones"] == {"nvidia-l4": ["us-central1-a", "us-central1-b", "us-east1-d"]}


def test_new_zones_and_regions_are_known_afterwards() -> None:
    """A zone that the catalogue lacks brings its region with all its zones; known ones bring nothing."""
    pages = [accelerators(zone="us-central1-ai9"), accelerators(zone="europe-west13-a"), accelerators()]
    assert read(pages, []) == {"regions": {"europe-west13": ["a"], "us-central1": ["a", "ai1", "ai9", "b", "c", "f"]}}
