"""Compute Engine through Google's own clients."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from google.api_core.client_options import ClientOptions
from google.api_core.exceptions import NotFound
from google.cloud import compute_v1
from google.oauth2 import service_account
from googleapiclient import discovery
from googleapiclient.errors import HttpError

from airflow_accel_provider.emulator.compute.tables import ZONES

if TYPE_CHECKING:
    from emulators import Emulator

SCOPES = ["https://www.googleapis.com/auth/cloud-platform"]


@pytest.fixture
def client(emulator: Emulator) -> dict[str, Any]:
    """Return what makes a client of google-cloud-compute talk to the emulator."""
    credentials = service_account.Credentials.from_service_account_file(str(emulator.keys["airflow"]))
    return {"credentials": credentials, "client_options": ClientOptions(api_endpoint=emulator.url)}


def test_a_region_shows_its_zones_and_quotas(emulator: Emulator, client: dict[str, Any]) -> None:
    """Google's typed client reads limits and usage of a region's quotas."""
    region = compute_v1.RegionsClient(**client).get(project=emulator.project, region="europe-west4")
    quotas = {quota.metric: quota for quota in region.quotas}
    assert [zone.rpartition("/")[2] for zone in region.zones] == list(ZONES["europe-west4"])
    assert quotas["NVIDIA_L4_GPUS"].limit == 64
    assert quotas["NVIDIA_L4_GPUS"].usage == 0
    assert "NVIDIA_H100_GPUS" not in quotas


def test_the_world_shows_in_quotas(emulator: Emulator, client: dict[str, Any]) -> None:
    """In a world where others use up a quota, the region says so."""
    emulator.enter("stockout-then-quota-then-stock")
    try:
        region = compute_v1.RegionsClient(**client).get(project=emulator.project, region="europe-west4")
    finally:
        emulator.enter("plenty")
    l4 = next(quota for quota in region.quotas if quota.metric == "NVIDIA_L4_GPUS")
    assert (l4.limit, l4.usage) == (1, 1)


def test_the_project_shows_quotas_of_all_regions(emulator: Emulator, client: dict[str, Any]) -> None:
    """A new project has no GPU anywhere, and says so once for all regions."""
    projects = compute_v1.ProjectsClient(**client)
    emulator.enter("no-quota")
    try:
        project = projects.get(project=emulator.project)
    finally:
        emulator.enter("plenty")
    assert {quota.metric: quota.limit for quota in project.quotas}["GPUS_ALL_REGIONS"] == 0


def test_instances_of_every_zone_are_listed(emulator: Emulator, client: dict[str, Any]) -> None:
    """An aggregated list has every zone, those without VMs too."""
    request = compute_v1.AggregatedListInstancesRequest(
        project=emulator.project, filter="labels.goog-dataflow-job-id=none"
    )
    scopes = dict(compute_v1.InstancesClient(**client).aggregated_list(request=request))
    assert set(scopes) == {f"zones/{zone}" for zones in ZONES.values() for zone in zones}
    assert not any(scope.instances for scope in scopes.values())


def test_regions_come_in_pages(emulator: Emulator, client: dict[str, Any]) -> None:
    """A pager walks through all pages and finds each region once."""
    pager = compute_v1.RegionsClient(**client).list(
        request=compute_v1.ListRegionsRequest(project=emulator.project, max_results=10)
    )
    assert [region.name for region in pager] == sorted(ZONES)


def test_what_does_not_exist_is_not_found(emulator: Emulator, client: dict[str, Any]) -> None:
    """An unknown region, zone or project is a 404 that names it."""
    with pytest.raises(NotFound, match="regions/us-middle1"):
        compute_v1.RegionsClient(**client).get(project=emulator.project, region="us-middle1")
    with pytest.raises(NotFound, match="zones/us-central1-x"):
        list(compute_v1.InstancesClient(**client).list(project=emulator.project, zone="us-central1-x"))
    with pytest.raises(NotFound, match="projects/other"):
        compute_v1.ProjectsClient(**client).get(project="other")


def test_the_discovery_client_reads_compute(emulator: Emulator) -> None:
    """google-api-python-client lists the instances of a zone and refuses a filter that cannot be read."""
    credentials = service_account.Credentials.from_service_account_file(str(emulator.keys["airflow"]), scopes=SCOPES)
    # This client takes the endpoint for the whole base address, the service path included.
    options = {"api_endpoint": f"{emulator.url}/compute/v1/"}
    service = discovery.build("compute", "v1", credentials=credentials, client_options=options, static_discovery=True)
    zone = {"project": emulator.project, "zone": "us-central1-a"}
    assert service.instances().list(**zone, filter="status=NONE").execute()["kind"] == "compute#instanceList"
    with pytest.raises(HttpError, match="filter"):
        service.instances().list(**zone, filter="what").execute()
