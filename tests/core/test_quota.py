"""A floor that does not fit refuses, a ceiling that does not fit warns, what is unknown does neither."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from airflow_accel_provider.core.failures import FailureKind, Resource, Scope
from airflow_accel_provider.core.quota import GLOBAL, Demand, Quota, room_for

numbers = st.integers(0, 100)


def l4(floor: int, ceiling: int | None = None, *, location: str = "europe-west4", certain: bool = True) -> Demand:
    return Demand(
        metric="NVIDIA_L4_GPUS",
        location=location,
        floor=floor,
        ceiling=ceiling,
        resource=Resource.ACCELERATOR,
        certain=certain,
    )


@given(floor=st.integers(1, 20), limit=numbers, usage=numbers)
def test_the_floor_decides(floor: int, limit: int, usage: int) -> None:
    """A place is refused exactly when less is left than the job starts with."""
    room = room_for([l4(floor)], {"europe-west4": {"NVIDIA_L4_GPUS": Quota(limit, usage)}})

    assert (room.shortage is not None) == (limit - usage < floor)


def test_large_figures_are_whole() -> None:
    """A quota of millions is written out, not rounded to some digits and a power of ten."""
    assert str(Quota(10_240_000, 1)) == "10239999 of 10240000 left"


@given(floor=st.integers(1, 20), more=st.integers(1, 20), left=st.integers(0, 50))
def test_the_ceiling_only_warns(floor: int, more: int, left: int) -> None:
    """A ceiling that does not fit never refuses a place whose floor fits."""
    room = room_for([l4(floor, floor + more)], {"europe-west4": {"NVIDIA_L4_GPUS": Quota(left, 0)}})

    assert (room.shortage is None) == (left >= floor)
    if room.shortage is None:
        assert bool(room.warnings) == (left < floor + more)


@given(floor=st.integers(1, 20))
def test_the_unknown_never_blocks(floor: int) -> None:
    """A region that was not read, was unreadable or lacks the metric has room as far as anybody knows."""
    for readings in ({}, {"europe-west4": None}, {"europe-west4": {"CPUS": Quota(0, 0)}}):
        room = room_for([l4(floor)], readings)
        assert room.shortage is None
        assert room.warnings == ()


def test_the_sentence() -> None:
    """The shortage says what is needed, of what, and what is left."""
    room = room_for([l4(1, 4)], {"europe-west4": {"NVIDIA_L4_GPUS": Quota(1, 1)}})

    assert room.shortage is not None
    assert room.shortage.explanation == "needs at least 1 (up to 4) of NVIDIA_L4_GPUS; 0 of 1 left"
    assert (room.shortage.kind, room.shortage.scope) == (FailureKind.QUOTA, Scope.REGION)
    assert room.shortage.region == "europe-west4"


def test_the_project_wide_cap() -> None:
    """A shortage of the project-wide cap speaks about the whole project."""
    room = room_for([l4(1, location=GLOBAL)], {GLOBAL: {"NVIDIA_L4_GPUS": Quota(0, 0)}})

    assert room.shortage is not None
    assert (room.shortage.scope, room.shortage.region) == (Scope.PROJECT, None)


def test_an_uncertain_demand_only_warns() -> None:
    """A metric that a machine family may or may not draw never refuses a place."""
    room = room_for([l4(2, certain=False)], {"europe-west4": {"NVIDIA_L4_GPUS": Quota(1, 0)}})

    assert room.shortage is None
    assert room.warnings == ("may not fit: needs at least 2 of NVIDIA_L4_GPUS; 1 of 1 left",)


def test_usage_above_the_limit() -> None:
    """A limit lowered below its usage leaves nothing, not less than nothing."""
    assert Quota(1, 3).left == 0
