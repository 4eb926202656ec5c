"""Machine types whose names say their shape."""

from __future__ import annotations

import pytest

from airflow_accel_provider.core.machines import custom_faults, family_of, parse_custom


@pytest.mark.parametrize(
    ("name", "vcpus", "memory_gb"),
    [
        ("n1-custom-1-4096", 1, 4),
        ("n1-custom-4-16384", 4, 16),
        ("custom-2-5120", 2, 5),
        ("n1-custom-1-16384-ext", 1, 16),
    ],
)
def test_custom_shape_is_read_from_its_name(name: str, vcpus: int, memory_gb: float) -> None:
    """A custom N1 machine's name says its vCPUs and its memory in MB."""
    machine = parse_custom(name)
    assert machine is not None
    assert (machine.vcpus, machine.memory_gb, machine.family) == (vcpus, memory_gb, "n1")
    assert custom_faults(machine) == ()


@pytest.mark.parametrize("name", ["n1-standard-4", "n2-custom-4-8192", "n1-custom-4", "n1-custom-4-8192-big"])
def test_other_names_are_not_custom_n1(name: str) -> None:
    """Only the N1 form is read as a custom N1 machine."""
    assert parse_custom(name) is None


# Rules: https://cloud.google.com/compute/docs/instances/creating-instance-with-custom-machine-type
@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("n1-custom-3-4096", "1 or an even number up to 96"),
        ("n1-custom-98-131072", "1 or an even number up to 96"),
        ("n1-custom-4-8000", "a multiple of 256"),
        ("n1-custom-4-3584", "4 vCPUs have 3.6 GB or more"),
        ("n1-custom-1-7168", "needs '-ext'"),
        ("n1-custom-96-655360-ext", "ends at 624 GB"),
    ],
)
def test_impossible_custom_shape_says_what_is_possible(name: str, said: str) -> None:
    """A custom shape that Compute Engine refuses is told apart, with what it would take."""
    machine = parse_custom(name)
    assert machine is not None
    assert [fault for fault in custom_faults(machine) if said in fault]


def test_family_is_the_first_word() -> None:
    """The family of a machine type is its first word, and N1's for the older custom names."""
    assert [family_of(name) for name in ("g2-standard-8", "a2-ultragpu-1g", "custom-4-8192")] == ["g2", "a2", "n1"]
