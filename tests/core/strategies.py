"""Accelerators and placements of all kinds, for the laws that hold for all of them."""

from __future__ import annotations

from hypothesis import strategies as st

from airflow_accel_provider.core.accelerators import Cpu, Gpu, Tpu
from airflow_accel_provider.core.catalog import load_catalog
from airflow_accel_provider.core.placement import Placement

TYPES = st.from_regex(r"[a-z][a-z0-9]{0,8}(-[a-z0-9]{1,8}){0,3}", fullmatch=True).filter(lambda type_: type_ != "cpu")
GPUS = st.builds(Gpu, TYPES.filter(lambda type_: not type_.startswith("tpu-")), st.integers(1, 64))
TOPOLOGIES = st.lists(st.integers(1, 16), min_size=2, max_size=3).map(lambda sizes: "x".join(map(str, sizes)))
TPUS = st.builds(Tpu, TYPES.map(lambda type_: f"tpu-{type_}"), TOPOLOGIES)
ACCELERATORS = st.one_of(GPUS, TPUS, st.just(Cpu()))

CATALOG = load_catalog()
REGIONS = sorted(CATALOG.regions)


@st.composite
def placements(draw: st.DrawFn) -> Placement:
    """Draw any placement of a known region."""
    region = draw(st.sampled_from(REGIONS))
    return Placement(
        accelerator=draw(ACCELERATORS),
        region=region,
        zone=draw(st.none() | st.sampled_from(CATALOG.zones_in(region))),
        machine_type=draw(st.none() | st.sampled_from(sorted(CATALOG.machines))),
    )
