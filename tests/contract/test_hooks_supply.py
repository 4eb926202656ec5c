"""Quotas that only Cloud Quotas tells, and reservations, as the hooks read them; Google's own clients are the judge."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest
from connections import google_session
from emulators import Emulator, running
from google.api_core.client_options import ClientOptions
from google.cloud import cloudquotas_v1, compute_v1
from google.cloud.cloudquotas_v1.services.cloud_quotas.transports import CloudQuotasRestTransport
from google.oauth2 import service_account

from airflow_accel_provider.core.catalog import load_catalog
from airflow_accel_provider.core.cloud_quotas import CloudQuota, cloud_quota
from airflow_accel_provider.core.planning import Questions, plan, questions
from airflow_accel_provider.core.quota import GLOBAL, Quota
from airflow_accel_provider.core.record import PlannedPlace
from airflow_accel_provider.core.request import BeamRequest, Candidate
from airflow_accel_provider.core.reservations import Reservation
from airflow_accel_provider.core.validation import resolve
from airflow_accel_provider.exceptions import GoogleApiError
from airflow_accel_provider.hooks.dataflow import DataflowHook
from airflow_accel_provider.hooks.quota import read_quotas
from airflow_accel_provider.hooks.reservations import list_reservations, missing_reservations, read_reservation
from airflow_accel_provider.hooks.supply import read_supply

if TYPE_CHECKING:
    from collections.abc import Iterator

    from airflow_accel_provider.hooks.session import GoogleSession

CATALOG = load_catalog()
REGION, ZONE = "us-east5", "us-east5-b"
GET_QUOTA = "cloudquotas.projects.locations.services.quotaInfos.get"
INSTANCES = "compute.instances.aggregatedList"
RESERVATION_GET = "compute.reservations.get"
ALL_RESERVATIONS = "compute.reservations.aggregatedList"
NIGHT = Reservation(project=None, zone=ZONE, name="tpu-night")
V6E_OPTION = "worker_accelerator=type:tpu-v6e-slice;topology:2x2"


def quota_of(type_: str) -> CloudQuota:
    found = cloud_quota(type_, CATALOG)
    assert found is not None
    return found


V6E, V5P, H100 = map(quota_of, ("tpu-v6e-slice", "tpu-v5p-slice", "nvidia-h100-80gb"))


@pytest.fixture(scope="module")
def emulator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Emulator]:
    """Return an emulator of this module's own, slow enough to see workers."""
    with running(tmp_path_factory.mktemp("emulator"), time_scale=60.0) as started:
        yield started


@pytest.fixture(scope="module")
def session(emulator: Emulator) -> GoogleSession:
    """Return a session of airflow@."""
    return google_session(emulator)


@pytest.fixture(autouse=True)
def _left_as_found(emulator: Emulator) -> Iterator[None]:
    yield
    emulator.admin("DELETE", "faults")
    emulator.enter("plenty")


def candidates(*texts: str, **overrides: Any) -> list[Candidate]:
    return [
        resolve(Candidate(placement=Candidate.parse(text).placement, overrides=overrides), CATALOG) for text in texts
    ]


def planned(session: GoogleSession, request: BeamRequest, *texts: str) -> tuple[PlannedPlace, ...]:
    places = candidates(*texts)
    readings, reserved = read_supply(session, questions(request, places, catalog=CATALOG))
    return plan(request, places, catalog=CATALOG, readings=readings, reserved=reserved)


@pytest.mark.parametrize("quota", [V6E, V5P, H100], ids=["v6e", "v5p", "h100"])
@pytest.mark.parametrize("world", ["plenty", "no-quota", "reserved-tpu"])
def test_limits_are_those_that_googles_client_reads(
    emulator: Emulator, session: GoogleSession, world: str, quota: CloudQuota
) -> None:
    """The limit of a family in a region is the value that Google's typed client has in the first row that fits."""
    emulator.enter(world)
    credentials = service_account.Credentials.from_service_account_file(str(emulator.keys["airflow"]))
    transport = CloudQuotasRestTransport(host=urlsplit(emulator.url).netloc, credentials=credentials, url_scheme="http")
    name = f"projects/{emulator.project}/locations/global/services/compute.googleapis.com/quotaInfos/{quota.quota_id}"
    info = cloudquotas_v1.CloudQuotasClient(transport=transport).get_quota_info(name=name)
    wanted = {**dict(quota.dimensions), "region": REGION}
    told = next(
        row.details.value
        for row in info.dimensions_infos
        if REGION in row.applicable_locations and dict(row.dimensions).items() <= wanted.items()
    )

    readings = read_quotas(session, [REGION], further=[(quota, REGION)])

    assert (readings[REGION] or {})[quota.metric] == Quota(told, 0, is_estimate=True)


def test_running_machines_are_the_usage(emulator: Emulator, session: GoogleSession) -> None:
    """The chips of a job's workers count as used in their region and zone, in one call for the whole plan."""
    body = {
        "name": "holds-chips",
        "type": "JOB_TYPE_BATCH",
        "environment": {
            "tempStoragePrefix": "storage.googleapis.com/bucket/t",
            "serviceOptions": [V6E_OPTION],
            "workerZone": ZONE,
            "workerPools": [{"machineType": "ct6e-standard-4t", "numWorkers": 2}],
            "sdkPipelineOptions": {"options": {"pipelineUrl": "gs://bucket/pipeline.pb"}},
        },
    }
    job = session.request("dataflow", "POST", f"projects/{session.project}/locations/{REGION}/jobs", body=body)
    further = [(V6E, REGION), (V6E, "us-east1"), (H100, "us-central1"), (V5P, REGION)]
    try:
        deadline = time.monotonic() + 60
        used = None
        while used != 8 and time.monotonic() < deadline:
            mark = emulator.mark()
            readings = read_quotas(session, [], further=further)
            used = (readings[REGION] or {})[V6E.metric].usage
        assert used == 8
        assert (readings["us-east1"] or {})[V6E.metric].usage == 0
        assert (readings[REGION] or {})[V5P.metric].usage == 0
        assert len(emulator.calls(INSTANCES, since=mark)) == 1
        assert len(emulator.calls(GET_QUOTA, since=mark)) == 3
    finally:
        DataflowHook(session).cancel(job["id"], REGION)


def test_cloud_quotas_is_asked_only_when_a_place_needs_it(emulator: Emulator, session: GoogleSession) -> None:
    """A plan over GPUs that Compute Engine lists asks neither Cloud Quotas nor for running machines or reservations."""
    mark = emulator.mark()
    rows = planned(session, BeamRequest(), "nvidia-l4 in us-central1", "cpu on n2-standard-8 in us-central1")
    assert [row.rejected for row in rows] == [None, None]
    for method in (GET_QUOTA, INSTANCES, ALL_RESERVATIONS, RESERVATION_GET):
        assert emulator.calls(method, since=mark) == []


def test_a_plan_over_a_project_without_tpu_quota(emulator: Emulator, session: GoogleSession) -> None:
    """Each TPU type is put aside for the quota it draws, and the reason says which and how it was counted."""
    emulator.enter("no-quota")
    texts = ("tpu-v6e-slice:2x2 in us-east5", "tpu-v5p-slice:2x2x1 in us-east5", "tpu-v5-lite-podslice:1x1 in us-west4")
    rows = planned(session, BeamRequest(), *texts)
    assert [row.rejected.explanation if row.rejected else None for row in rows] == [
        "needs at least 4 of TPUS_PER_TPU_FAMILY (tpu_family CT6E); 0 of 0 left (usage estimated from running VMs)",
        "needs at least 4 of TPU_V5P; 0 of 0 left (usage estimated from running VMs)",
        "needs at least 1 of TPU_LITE_PODSLICE_V5; 0 of 0 left",
    ]


def test_a_project_without_quotas_by_zone_is_nothing_to_log(
    emulator: Emulator, session: GoogleSession, caplog: pytest.LogCaptureFixture
) -> None:
    """That a project has no quota of zones, as most have none, is no line in the log of every TPU's plan."""
    mark = emulator.mark()
    with caplog.at_level("INFO"):
        rows = planned(session, BeamRequest(), f"tpu-v6e-slice:2x2 in {ZONE}")
    assert [row.rejected for row in rows] == [None]
    assert sorted(call["status"] for call in emulator.calls(GET_QUOTA, since=mark)) == [200, 404]
    assert "unknown" not in caplog.text


@pytest.mark.parametrize(
    ("faults", "rejected"),
    [
        # Without a limit nothing is known; without the machines the limit alone refuses.
        ({GET_QUOTA: {"status": 403}}, False),
        ({GET_QUOTA: {"delay": 4}}, False),
        ({INSTANCES: {"status": 403}}, True),
    ],
)
def test_the_unreadable_never_blocks(
    emulator: Emulator, session: GoogleSession, faults: dict[str, dict[str, Any]], rejected: bool
) -> None:
    """A refusal or a late answer of Cloud Quotas leaves the limit unknown, and an unknown limit refuses nothing."""
    emulator.enter("no-quota")
    for method, action in faults.items():
        emulator.fail(method, times=9, **action)
    places = candidates("tpu-v6e-slice:2x2 in us-east5")
    readings, _ = read_supply(session, questions(BeamRequest(), places, catalog=CATALOG), seconds=1.5)
    row = plan(BeamRequest(), places, catalog=CATALOG, readings=readings)[0]
    assert (row.rejected is not None) == rejected
    if row.rejected:
        assert row.rejected.explanation.endswith("the limit is 0, usage unknown")


def test_everything_is_asked_at_once(emulator: Emulator, session: GoogleSession) -> None:
    """Quotas, families, machines and reservations that each take a second take little longer than one."""
    emulator.enter("reserved-tpu")
    slow = ["compute.projects.get", "compute.regions.get", GET_QUOTA, INSTANCES, RESERVATION_GET, ALL_RESERVATIONS]
    for method in slow:
        emulator.fail(method, times=6, delay=1)
    wanted = Questions(
        regions=("us-central1", "us-east1", REGION, "europe-west4"),
        further=((V6E, REGION), (H100, "us-central1"), (V5P, REGION)),
        reservations=(NIGHT,),
        any_reservation=True,
    )
    begun = time.monotonic()
    readings, reserved = read_supply(session, wanted)
    assert time.monotonic() - begun < 3.5
    assert all(readings[place] for place in (GLOBAL, *wanted.regions))
    assert reserved.named[NIGHT] is not None
    assert reserved.listed is not None


def test_a_reservation_is_what_googles_client_reads(emulator: Emulator, session: GoogleSession) -> None:
    """Machines, count, use and kind of a reservation are those that Google's typed client has."""
    emulator.enter("reserved-tpu")
    credentials = service_account.Credentials.from_service_account_file(str(emulator.keys["airflow"]))
    client = compute_v1.ReservationsClient(
        credentials=credentials, client_options=ClientOptions(api_endpoint=emulator.url)
    )
    told = client.get(project=emulator.project, zone=ZONE, reservation=NIGHT.name)
    read = read_reservation(session, NIGHT)
    assert read is not None
    assert (read.machine_type, read.count, read.in_use, read.is_specific) == (
        told.specific_reservation.instance_properties.machine_type,
        told.specific_reservation.count,
        told.specific_reservation.in_use_count,
        told.specific_reservation_required,
    )
    listed = list_reservations(session)
    assert [(each.reservation.name, each.free) for each in listed] == [(NIGHT.name, read.free)]


def test_a_reservation_that_is_not_there(emulator: Emulator, session: GoogleSession) -> None:
    """No such reservation is None; one that may not be read is an error."""
    assert read_reservation(session, NIGHT) is None
    emulator.enter("reserved-tpu")
    emulator.fail(RESERVATION_GET, status=403)
    with pytest.raises(GoogleApiError, match="403"):
        read_reservation(session, NIGHT)


@pytest.mark.parametrize(
    ("workers", "rejected"), [(2, None), (3, "needs at least 3 machines; 2 of 2 free in")], ids=["fits", "full"]
)
def test_a_plan_over_a_reservation(
    emulator: Emulator, session: GoogleSession, workers: int, rejected: str | None
) -> None:
    """Without quota or stock for TPUs a place on a reservation is ready exactly when its machines are free."""
    emulator.enter("reserved-tpu")
    request = BeamRequest(reservation="tpu-night", num_workers=workers)
    mark = emulator.mark()
    row = planned(session, request, f"tpu-v6e-slice:2x2 in {ZONE}")[0]
    assert (row.rejected is None) == (rejected is None)
    assert rejected is None or (row.rejected and rejected in row.rejected.explanation)
    assert emulator.calls(GET_QUOTA, since=mark) == []


def test_missing_reservations_are_told_before_anything_starts(emulator: Emulator, session: GoogleSession) -> None:
    """A reservation that is missing, elsewhere or of other machines is one problem, with the nearest right one."""
    emulator.enter("reserved-tpu")
    places = [
        *candidates(f"tpu-v6e-slice:2x2 in {ZONE}", reservation="tpu-nigth"),
        *candidates("tpu-v6e-slice:2x2 in us-east5-a", reservation="tpu-night"),
        *candidates(f"tpu-v6e-slice:2x4 in {ZONE}", reservation="tpu-night"),
        *candidates(f"tpu-v6e-slice:2x2 in {ZONE}", reservation="tpu-night"),
        *candidates(f"tpu-v6e-slice:2x2 in {ZONE}", reservation="any"),
    ]
    problems = missing_reservations(session, BeamRequest(), places, catalog=CATALOG)
    assert [(each.code, each.where) for each in problems] == [
        ("reservation-missing", "placement"),
        ("reservation-missing", "fallback[0]"),
        ("reservation-shape", "fallback[1]"),
    ]
    assert f"Did you mean tpu-night in {ZONE}?" in problems[0].message
    assert f"It is in {ZONE}" in problems[1].message
    assert "holds ct6e-standard-4t with 4 x ct6e, not ct6e-standard-8t with 8 x ct6e" in problems[2].message


def test_reservations_that_may_not_be_read_are_no_problem(emulator: Emulator, session: GoogleSession) -> None:
    """Without the right to read reservations nothing is refused, and the plan says what is not known."""
    emulator.fail(RESERVATION_GET, times=2, status=403)
    request = BeamRequest(reservation="tpu-night")
    assert missing_reservations(session, request, candidates(f"tpu-v6e-slice:2x2 in {ZONE}"), catalog=CATALOG) == ()
    row = planned(session, request, f"tpu-v6e-slice:2x2 in {ZONE}")[0]
    assert row.rejected is None
    assert row.warnings[0].endswith("could not be read")
