"""Quotas that only Cloud Quotas tells: what places draw of them, what limits mean, how usage is estimated."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_accel_provider.core.catalog import load_catalog
from airflow_accel_provider.core.cloud_quotas import CloudQuota, cloud_quota, drawn_by
from airflow_accel_provider.core.demands import demands
from airflow_accel_provider.core.failures import FailureKind, Resource, Scope
from airflow_accel_provider.core.jobs import Worker
from airflow_accel_provider.core.planning import plan, questions
from airflow_accel_provider.core.quota import GLOBAL, Quota, Readings, room_for, with_estimates
from airflow_accel_provider.core.request import BeamRequest, Candidate
from airflow_accel_provider.core.validation import resolve
from airflow_accel_provider.hooks._wire_supply import limit_from_json, on_demand_from_json

CATALOG = load_catalog()
PRIVATE = BeamRequest(use_public_ips=False)


def quota_of(type_: str) -> CloudQuota:
    found = cloud_quota(type_, CATALOG)
    assert found is not None
    return found


V6E = quota_of("tpu-v6e-slice")
H100 = quota_of("nvidia-h100-80gb")


def placed(text: str) -> Candidate:
    return resolve(Candidate.parse(text), CATALOG)


def drawn(text: str, request: BeamRequest = PRIVATE) -> list[tuple[str, str, int]]:
    rows = demands(request, placed(text).placement, CATALOG)
    return [(row.metric, row.location, row.floor) for row in rows]


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("tpu-v6e-slice:2x2 in us-east5", [("TPUS_PER_TPU_FAMILY (tpu_family CT6E)", "us-east5", 4)]),
        (
            "tpu-v6e-slice:2x4 in us-east5-b",
            [
                ("TPUS_PER_TPU_FAMILY (tpu_family CT6E)", "us-east5", 8),
                ("TPUS_PER_TPU_FAMILY (tpu_family CT6E)", "us-east5-b", 8),
            ],
        ),
        ("tpu-v5p-slice:2x2x1 in us-east5-a", [("TPU_V5P", "us-east5", 4), ("TPU_V5P", "us-east5-a", 4)]),
        # Compute Engine's own list has this one.
        ("tpu-v5-lite-podslice:2x2 in us-west4", [("TPU_LITE_PODSLICE_V5", "us-west4", 4)]),
        (
            "nvidia-h100-80gb:8 in us-central1",
            [
                ("GPUS_PER_GPU_FAMILY (gpu_family NVIDIA_H100)", "us-central1", 8),
                ("GPUS_ALL_REGIONS", GLOBAL, 8),
                ("CPUS", "us-central1", 208),
            ],
        ),
    ],
)
def test_a_place_draws_chips_or_gpus_of_its_family(text: str, rows: list[tuple[str, str, int]]) -> None:
    """TPU chips draw the region's quota and a pinned zone's, and no CPU quota; on-demand H100 draw their family's."""
    assert drawn(text) == rows


def test_workers_multiply_chips() -> None:
    """Two workers to start with and six at most, of four chips each, need eight and may draw twenty-four."""
    request = BeamRequest(use_public_ips=False, num_workers=2, max_num_workers=6)
    row = demands(request, placed("tpu-v6e-slice:2x2 in us-east5").placement, CATALOG)[0]
    assert (row.floor, row.ceiling, row.resource) == (8, 24, Resource.ACCELERATOR)


def test_only_what_compute_lacks_is_asked_of_cloud_quotas() -> None:
    """An L4 alone asks nothing of Cloud Quotas; each family and place beside it is asked for once."""
    l4 = placed("nvidia-l4 in us-east5")
    v6e = [placed(f"tpu-v6e-slice:{size} in us-east5-b") for size in ("1x1", "2x2")]
    assert questions(PRIVATE, [l4], catalog=CATALOG).further == ()
    wanted = questions(PRIVATE, [l4, *v6e], catalog=CATALOG)
    assert wanted.regions == ("us-east5",)
    assert [(quota.quota_id, place) for quota, place in wanted.further] == [
        ("TPUS-PER-TPU-FAMILY-per-project-region", "us-east5"),
        ("TPUS-PER-TPU-FAMILY-per-project-zone", "us-east5-b"),
    ]


def info(*rows: tuple[dict[str, str], str | None, list[str]]) -> dict[str, Any]:
    return {
        "dimensionsInfos": [
            {"dimensions": said, "details": {"value": value} if value else {}, "applicableLocations": places}
            for said, value, places in rows
        ]
    }


CT6E = {"tpu_family": "CT6E"}


@pytest.mark.parametrize(
    ("told", "limit"),
    [
        (info(({"region": "us-east5", **CT6E}, "16", ["us-east5"]), (CT6E, "4", ["us-east5", "us-east1"])), 16),
        (info(({"region": "us-east1", **CT6E}, "16", ["us-east1"]), (CT6E, "4", ["us-east5", "us-east1"])), 4),
        (info(({"region": "us-east5", "tpu_family": "CT5P"}, "16", ["us-east5"]), ({}, "0", ["us-east5"])), 0),
        (info((CT6E, "4", [])), 4),
        (info((CT6E, "4", ["us-east1"])), None),
        (info((CT6E, "-1", ["us-east5"])), None),
        # The first row that fits speaks, even when it has nothing to say.
        (info(({"region": "us-east5", **CT6E}, None, ["us-east5"]), ({}, "8", ["us-east5"])), None),
        ({}, None),
    ],
)
def test_the_most_specific_row_speaks(told: dict[str, Any], limit: float | None) -> None:
    """The first row of Cloud Quotas that fits family and place is the limit; -1 and a missing value say nothing."""
    assert limit_from_json(told, CT6E, "us-east5") == limit


def vm(zone: str, machine_type: str, **more: Any) -> dict[str, Any]:
    name = {"ct6": "ct6e", "a3-": "nvidia-h100-80gb"}[machine_type[:3]]
    count = int(machine_type.rstrip("tg").rpartition("-")[2])
    return {
        "name": "vm",
        "status": "RUNNING",
        "zone": f"https://compute/zones/{zone}",
        "machineType": f"zones/{zone}/machineTypes/{machine_type}",
        "guestAccelerators": [{"acceleratorType": f"acceleratorTypes/{name}", "acceleratorCount": count}],
        **more,
    }


VMS = [
    vm("us-east5-b", "ct6e-standard-4t"),
    vm("us-east5-a", "ct6e-standard-8t", status="PROVISIONING"),
    vm("us-east5-b", "ct6e-standard-4t", status="TERMINATED"),
    vm("us-east5-b", "ct6e-standard-4t", scheduling={"provisioningModel": "SPOT"}),
    vm("us-east5-b", "ct6e-standard-4t", resourceStatus={"reservationConsumptionInfo": {"consumedReservation": "r"}}),
    vm("us-east1-d", "ct6e-standard-1t", scheduling={"provisioningModel": "STANDARD"}),
    vm("us-east5-a", "a3-highgpu-8g"),
]
MACHINES = list(on_demand_from_json({"items": {"zones/any": {"instances": VMS}, "zones/none": {"warning": {}}}}))


def test_usage_is_counted_from_machines_on_demand() -> None:
    """VMs that run on demand draw their chips in their region and zone; stopped, spot and reserved ones draw none."""
    places = ("us-east5", "us-east5-b", "us-east1", "europe-west4")
    assert [drawn_by(MACHINES, V6E, place) for place in places] == [12, 4, 1, 0]
    assert drawn_by(MACHINES, H100, "us-east5") == 8


def readings(limit: float, machines: list[Worker] | None) -> Readings:
    return with_estimates({GLOBAL: {}, "us-east5": None}, {(V6E, "us-east5"): limit}, machines)


@pytest.mark.parametrize(
    ("limit", "machines", "text"),
    [
        (16, MACHINES, None),
        (14, MACHINES, "2 of 14 left (usage estimated from running VMs)"),
        (8, MACHINES, "0 of 8 left (usage estimated from running VMs)"),
        (4, None, None),
        (2, None, "the limit is 2, usage unknown"),
        (0, None, "the limit is 0, usage unknown"),
    ],
)
def test_an_estimate_says_so(limit: float, machines: list[Worker] | None, text: str | None) -> None:
    """A shortage says that its usage is an estimate; where no VM could be read the limit alone refuses."""
    place = placed("tpu-v6e-slice:2x2 in us-east5").placement
    room = room_for(demands(PRIVATE, place, CATALOG), readings(limit, machines))
    needed = "needs at least 4 of TPUS_PER_TPU_FAMILY (tpu_family CT6E)"
    assert (room.shortage.explanation if room.shortage else None) == (text and f"{needed}; {text}")


def test_a_shortage_says_how_to_ask_for_more() -> None:
    """The shortage carries scope, place and metric, and the quota's id and dimensions to ask for."""
    row = plan(PRIVATE, [placed("tpu-v6e-slice:2x2 in us-east5")], catalog=CATALOG, readings=readings(0, MACHINES))[0]
    assert row.rejected is not None
    assert (row.rejected.kind, row.rejected.scope) == (FailureKind.QUOTA, Scope.REGION)
    assert (row.rejected.region, row.rejected.zone) == ("us-east5", None)
    assert row.rejected.advice == (
        "ask for more of TPUS-PER-TPU-FAMILY-per-project-region of the Compute Engine API "
        "(dimensions region=us-east5, tpu_family=CT6E)"
    )


def test_a_zone_can_be_short_where_its_region_is_not() -> None:
    """A limit of a single zone refuses the places pinned to it, and speaks about that zone alone."""
    told = with_estimates({}, {(V6E, "us-east5"): 64, (V6E.of_zone(), "us-east5-b"): 0}, [])
    places = [placed(f"tpu-v6e-slice:1x1 in {place}") for place in ("us-east5-b", "us-east5-a", "us-east5")]
    rows = plan(PRIVATE, places, catalog=CATALOG, readings=told)
    assert [row.rejected is None for row in rows] == [False, True, True]
    short = rows[0].rejected
    assert short is not None
    assert (short.scope, short.region, short.zone) == (Scope.ZONE, "us-east5", "us-east5-b")
    assert "TPUS-PER-TPU-FAMILY-per-project-zone" in short.advice
    assert "zone=us-east5-b" in short.advice


def test_an_estimate_never_hides_what_compute_says() -> None:
    """Estimates are laid beside a region's own figures."""
    told = with_estimates({"us-east5": {"CPUS": Quota(72, 8)}}, {(V6E, "us-east5"): 8}, [])
    assert told["us-east5"] == {"CPUS": Quota(72, 8), V6E.metric: Quota(8, 0, is_estimate=True)}
