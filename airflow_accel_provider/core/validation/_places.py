"""Whether everything that has a location agrees with where the candidate runs."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from airflow_accel_provider.core.problems import Problem, error, nearest, warning
from airflow_accel_provider.core.validation._reservations import check_reservation
from airflow_accel_provider.core.validation._templated import is_templated, texts_in

if TYPE_CHECKING:
    from airflow_accel_provider.core.catalog import Catalog
    from airflow_accel_provider.core.placement import Placement
    from airflow_accel_provider.core.request import BeamRequest

_SUBNETWORK = re.compile(r"(?:^|/)regions/(?P<region>[a-z0-9-]+)/subnetworks/(?P<name>[a-z0-9-]+)$")
_KEY = re.compile(r"^projects/[^/]+/locations/(?P<location>[a-z0-9-]+)/keyRings/[^/]+/cryptoKeys/[^/]+$")
# What Beam takes as a bucket path: apache_beam.options.pipeline_options_validator, 2.77.
_BUCKET_PATH = re.compile(r"^gs://[a-z0-9][-_a-z0-9.]+[a-z0-9]/[^\r\n]*$", re.IGNORECASE)


def default_bucket(project: str, region: str) -> str:
    """Return the bucket that Beam makes for a job without ``temp_location``.

    Source: apache_beam.io.gcp.gcsio.default_gcs_bucket_name, Beam 2.77.
    """
    digest = hashlib.md5(project.encode(), usedforsecurity=False).hexdigest()
    return f"dataflow-staging-{region}-{digest}"


def check_region(
    placement: Placement, catalog: Catalog, *, where: str, allowed_regions: frozenset[str]
) -> Iterator[Problem]:
    """Yield what is wrong with the region and zone themselves."""
    region, zone = placement.region, placement.zone
    if allowed_regions and region not in allowed_regions:
        allowed = ", ".join(sorted(allowed_regions))
        yield error("region-not-allowed", f"{region} is not among the regions that [accel] allows: {allowed}.", where)
    if region not in catalog.regions:
        near = nearest(region, catalog.regions)
        hint = f" Did you mean {near}?" if near else ""
        if catalog.may_be_new(region):
            yield warning("unknown-region", f"The catalogue has no region {region}.{hint}", where)
        else:
            yield error("unknown-region", f"There is no region {region}.{hint}", where)
    elif zone and zone not in catalog.zones_in(region):
        zones = ", ".join(catalog.zones_in(region))
        yield warning("unknown-zone", f"The catalogue has no zone {zone}; {region} has {zones}.", where)


def check_offer(placement: Placement, catalog: Catalog, *, where: str) -> Iterator[Problem]:
    """Yield a warning when the catalogue does not have the accelerator there, saying where it has it."""
    instead = catalog.offered_instead(placement)
    if instead:
        name = getattr(placement.accelerator, "type", "")
        text = f"{name} is not offered in {placement.location}, by the catalogue; it is in {', '.join(instead)}."
        yield warning("not-offered", text, where)


def check_places(
    request: BeamRequest, placement: Placement, catalog: Catalog, *, project: str | None
) -> Iterator[Problem]:
    """Yield what is bound to another place than the candidate's."""
    yield from _check_tokens(request, placement)
    yield from _check_subnetwork(request.subnetwork, placement)
    yield from _check_key(request.dataflow_kms_key, placement)
    yield from _check_buckets(request, placement, catalog, project)
    yield from check_reservation(request, placement)


def _check_tokens(request: BeamRequest, placement: Placement) -> Iterator[Problem]:
    if placement.zone:
        return
    for spec in fields(request):
        for where, text in texts_in(getattr(request, spec.name), spec.name):
            if "{zone}" in text and not is_templated(text):
                advice = (
                    f"{placement} pins no zone, so there is nothing to fill {{zone}} with; name one, or use {{region}}."
                )
                yield error("zone-not-pinned", advice, where)


def _check_subnetwork(subnetwork: Any, placement: Placement) -> Iterator[Problem]:
    if subnetwork is None or is_templated(subnetwork):
        return
    form = _SUBNETWORK.search(subnetwork)
    if not form:
        text = f"{subnetwork!r} does not say its region; write regions/{{region}}/subnetworks/NAME, or its full URL."
        yield error("subnetwork-form", text, "subnetwork")
    elif form["region"] != placement.region:
        text = (
            f"The subnetwork is in {form['region']}, but {placement} needs one in {placement.region}: "
            f"regions/{{region}}/subnetworks/{form['name']} would follow the job."
        )
        yield error("subnetwork-region", text, "subnetwork")


def _check_key(key: Any, placement: Placement) -> Iterator[Problem]:
    if key is None or is_templated(key):
        return
    form = _KEY.match(key)
    if not form:
        text = f"{key!r} is not a key's full name: projects/P/locations/{{region}}/keyRings/R/cryptoKeys/K."
        yield error("kms-key-form", text, "dataflow_kms_key")
    elif form["location"] not in (placement.region, "global"):
        text = (
            f"The key is in {form['location']}, but {placement} needs one in {placement.region}: "
            "locations/{region} would follow the job."
        )
        yield error("kms-key-region", text, "dataflow_kms_key")


def _check_buckets(
    request: BeamRequest, placement: Placement, catalog: Catalog, project: str | None
) -> Iterator[Problem]:
    options = {**request.default_pipeline_options, **request.pipeline_options}
    given = {name: options[name] for name in ("temp_location", "staging_location") if options.get(name) is not None}
    good = [name for name, path in given.items() if is_templated(path) or _is_bucket_path(path)]
    # Of two paths Beam takes the good one for both, with a warning of its own; with none it makes up a bucket.
    problem, instead = (warning, f" for {good[0]}") if good else (error, "")
    for name, path in given.items():
        if name not in good:
            text = f"{path!r} is not a path in a bucket, such as gs://BUCKET/tmp; Beam would pass it over{instead}."
            yield problem("bucket-path", text, f"pipeline_options.{name}")
        elif not is_templated(path):
            yield from _check_bucket_region(path, placement, catalog, f"pipeline_options.{name}")
    if given:
        return
    where = "pipeline_options.temp_location"
    if request.dataflow_kms_key:
        yield error("temp-location-missing", "With dataflow_kms_key Beam makes no bucket; give gs://BUCKET/tmp.", where)
        return
    known = project if project and not is_templated(project) else None
    bucket = default_bucket(known, placement.region) if known else f"dataflow-staging-{placement.region}-MD5_OF_PROJECT"
    text = f"There is no temp_location; in {placement.region} Beam would use, and if need be make, gs://{bucket}/."
    yield warning("temp-location-missing", text, where)


def _is_bucket_path(path: Any) -> bool:
    return isinstance(path, str) and _BUCKET_PATH.match(path) is not None


def _check_bucket_region(path: str, placement: Placement, catalog: Catalog, where: str) -> Iterator[Problem]:
    """Yield a warning when a bucket's name says another region; what region it is in nobody can see from here."""
    bucket = path.removeprefix("gs://").partition("/")[0]
    said = re.search(r"(?:^|[^a-z])([a-z]+-[a-z]+\d+)(?=$|[^0-9])", bucket)
    region = next((each for each in catalog.regions if said and said[1].endswith(each)), None)
    if region and region != placement.region and placement.region not in bucket:
        text = (
            f"By its name {bucket} is in {region}, and {placement} is not; {{region}} in the name would follow the job."
        )
        yield warning("bucket-region", text, where)
