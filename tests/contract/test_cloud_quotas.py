"""The Cloud Quotas API through Google's typed client, whose types judge every answer: no discovery document does."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest
from google.api_core.exceptions import Forbidden, NotFound
from google.cloud import cloudquotas_v1
from google.cloud.cloudquotas_v1.services.cloud_quotas.transports import CloudQuotasRestTransport
from google.oauth2 import service_account

from airflow_accel_provider.emulator.cloudquotas.infos import quota_infos
from airflow_accel_provider.emulator.compute.tables import ACCELERATORS, ZONES
from airflow_accel_provider.emulator.worlds import WORLD_NAMES, load_world

if TYPE_CHECKING:
    from collections.abc import Iterator

    from emulators import Emulator
    from google.auth.transport.requests import AuthorizedSession

TPU_FAMILIES = "TPUS-PER-TPU-FAMILY-per-project-region"
GPU_FAMILIES = "GPUS-PER-GPU-FAMILY-per-project-region"


@pytest.fixture
def quotas(emulator: Emulator) -> cloudquotas_v1.CloudQuotasClient:
    """Return Google's typed client."""
    credentials = service_account.Credentials.from_service_account_file(str(emulator.keys["airflow"]))
    transport = CloudQuotasRestTransport(host=urlsplit(emulator.url).netloc, credentials=credentials, url_scheme="http")
    return cloudquotas_v1.CloudQuotasClient(transport=transport)


@pytest.fixture
def parent(emulator: Emulator) -> str:
    """Return what Compute Engine's quotas are listed under."""
    return f"projects/{emulator.project}/locations/global/services/compute.googleapis.com"


@pytest.fixture
def scarce(emulator: Emulator) -> Iterator[None]:
    """Let the emulator be in a world where one region differs while a test runs."""
    emulator.enter("stockout-then-quota-then-stock")
    yield
    emulator.enter("plenty")


def test_a_family_quota_says_its_most_specific_values_first(
    quotas: cloudquotas_v1.CloudQuotasClient, parent: str
) -> None:
    """TPU families have a value each, and one that was never set falls through to -1, which is the last row."""
    info = quotas.get_quota_info(name=f"{parent}/quotaInfos/{TPU_FAMILIES}")
    assert info.metric == "compute.googleapis.com/tpus_per_tpu_family"
    assert sorted(info.dimensions) == ["region", "tpu_family"]
    assert (info.container_type.name, info.is_precise, info.metric_unit) == ("PROJECT", True, "1")
    assert info.quota_increase_eligibility.is_eligible
    rows = [(dict(each.dimensions), each.details.value) for each in info.dimensions_infos]
    assert rows == [({"tpu_family": "CT6E"}, 64), ({}, -1)]
    assert set(info.dimensions_infos[0].applicable_locations) == set(ZONES)


@pytest.mark.usefixtures("scarce")
def test_a_region_that_differs_has_a_row_of_its_own(quotas: cloudquotas_v1.CloudQuotasClient, parent: str) -> None:
    """The region's own row comes first, and the general row is not said to hold there."""
    info = quotas.get_quota_info(name=f"{parent}/quotaInfos/NVIDIA-L4-GPUS-per-project-region")
    own, general = info.dimensions_infos
    assert (dict(own.dimensions), own.details.value) == ({"region": "europe-west4"}, 1)
    assert list(own.applicable_locations) == ["europe-west4"]
    assert (dict(general.dimensions), general.details.value) == ({}, 64)
    assert "europe-west4" not in general.applicable_locations


def test_quotas_come_in_pages(emulator: Emulator, quotas: cloudquotas_v1.CloudQuotasClient, parent: str) -> None:
    """A pager walks through all pages and finds each quota once, regional ones and those of the whole project."""
    before = emulator.mark()
    request = cloudquotas_v1.ListQuotaInfosRequest(parent=parent, page_size=10)
    found = {info.quota_id: info for info in quotas.list_quota_infos(request=request)}
    pages = emulator.calls("cloudquotas.projects.locations.services.quotaInfos.list", since=before)
    assert len(pages) == -(-len(found) // 10) > 1
    assert {TPU_FAMILIES, GPU_FAMILIES, "TPU-V5P-per-project-region", "GPUS-ALL-REGIONS-per-project"} <= set(found)
    assert list(found["GPUS-ALL-REGIONS-per-project"].dimensions_infos[0].applicable_locations) == ["global"]
    assert found[TPU_FAMILIES].name.startswith(f"projects/{emulator.google.project_number}/locations/global/")


def test_a_new_project_has_no_chips(emulator: Emulator, quotas: cloudquotas_v1.CloudQuotasClient, parent: str) -> None:
    """In a project that was granted nothing, each accelerator's family says 0."""
    emulator.enter("no-quota")
    try:
        tpus, gpus, v5p, v5e = (
            quotas.get_quota_info(name=f"{parent}/quotaInfos/{quota_id}")
            for quota_id in (
                TPU_FAMILIES,
                GPU_FAMILIES,
                "TPU-V5P-per-project-region",
                "TPU-LITE-PODSLICE-V5-per-project-region",
            )
        )
    finally:
        emulator.enter("plenty")
    assert [each.details.value for each in tpus.dimensions_infos] == [0, -1]
    assert [each.details.value for each in gpus.dimensions_infos] == [0, 0, -1]
    assert [info.dimensions_infos[0].details.value for info in (v5p, v5e)] == [0, 0]


def test_what_does_not_exist_is_not_found(
    emulator: Emulator, quotas: cloudquotas_v1.CloudQuotasClient, parent: str, session: AuthorizedSession
) -> None:
    """An unknown quota or service is a 404, another project a 403, and a method that is not there names itself."""
    with pytest.raises(NotFound, match="NVIDIA-WARP"):
        quotas.get_quota_info(name=f"{parent}/quotaInfos/NVIDIA-WARP-per-project-region")
    with pytest.raises(NotFound, match=r"tpu\.googleapis\.com"):
        list(quotas.list_quota_infos(parent=parent.replace("compute.", "tpu.")))
    with pytest.raises(Forbidden, match="project other"):
        list(quotas.list_quota_infos(parent=parent.replace(emulator.project, "other")))
    answer = session.get(f"{emulator.url}/v1/projects/{emulator.project}/locations/global/quotaPreferences")
    assert answer.status_code == 501
    assert "cloudquotas.projects.locations.quotaPreferences.list" in answer.json()["error"]["message"]


@pytest.mark.parametrize("name", WORLD_NAMES)
def test_every_accelerator_has_a_quota_in_every_world(name: str) -> None:
    """Each accelerator's regional quota stands in the list, its family's row too, and -1 is never a grant."""
    world = load_world(name)
    infos = {info["quotaId"]: info for info in quota_infos(world, parent="projects/1")}
    for accelerator in ACCELERATORS.values():
        metric, _, family = (accelerator.cloud_quota or accelerator.metric or "").partition("/")
        info = infos[f"{metric.replace('_', '-')}-per-project-region"]
        rows = [each for each in info["dimensionsInfos"] if not family or family in each.get("dimensions", {}).values()]
        assert {zone for row in rows for zone in row["applicableLocations"]} == set(ZONES)
        assert all(int(row["details"]["value"]) >= 0 for row in rows)
        sizes = [len(each.get("dimensions", ())) for each in info["dimensionsInfos"]]
        assert sizes == sorted(sizes, reverse=True)
