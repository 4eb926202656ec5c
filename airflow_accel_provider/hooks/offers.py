"""What a project's own lists of accelerator and machine types say, as an overlay for the catalogue."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from airflow_accel_provider.core.catalog import Catalog
from airflow_accel_provider.core.locations import region_of
from airflow_accel_provider.exceptions import AcceleratorConfigurationError
from airflow_accel_provider.hooks._fields import unreadable

if TYPE_CHECKING:
    from airflow_accel_provider.hooks.session import GoogleSession

_SCOPE = "https://www.googleapis.com/auth/cloud-platform"

Pages = Iterable[Mapping[str, Any]]


def default_session(project: str | None, endpoint_url: str | None = None) -> GoogleSession:
    """Return a session with Google's default credentials, in their project where none is given.

    Raises :class:`AcceleratorConfigurationError` when there are no credentials, no project or no such address.
    """
    import google.auth
    from google.auth.exceptions import GoogleAuthError

    from airflow_accel_provider.hooks._endpoints import Endpoints
    from airflow_accel_provider.hooks._identity import Identity
    from airflow_accel_provider.hooks.session import GoogleSession

    name = "default credentials"
    endpoints = Endpoints.from_extras({"endpoint_url": endpoint_url}, name)
    try:
        credentials, known = google.auth.default(scopes=[_SCOPE])
    except GoogleAuthError as error:
        raise AcceleratorConfigurationError(f"There are no default credentials: {error}") from None
    if not (project or known):
        raise AcceleratorConfigurationError("The default credentials name no project; say which with --project")
    identity = Identity(connection_id=name, credentials=credentials, project=project or known, endpoints=endpoints)
    return GoogleSession(identity)


def read_offers(session: GoogleSession, catalog: Catalog, *, day: str) -> dict[str, Any]:
    """Return the overlay that the project's own lists make, as of a day. Raises :class:`GoogleApiError`.

    Machines of families that are known to carry no accelerator are left out of the question, since every zone lists
    hundreds of them.
    """
    path = f"projects/{session.project}/aggregated"
    families = "|".join(sorted({*catalog.cpu_families, "custom"}))
    accelerators = session.pages("compute", f"{path}/acceleratorTypes", params={"maxResults": 500})
    wanted = {"maxResults": 500, "filter": f'name ne "({families})-.*"'}
    machines = session.pages("compute", f"{path}/machineTypes", params=wanted)
    source = f"Compute Engine API v1 acceleratorTypes and machineTypes of project {session.project}"
    try:
        return overlay_of(list(accelerators), list(machines), catalog=catalog, source=source, day=day)
    except (KeyError, IndexError, TypeError, AttributeError) as error:
        raise unreadable("compute", "accelerator and machine types", repr(error)) from error


def overlay_of(accelerators: Pages, machines: Pages, *, catalog: Catalog, source: str, day: str) -> dict[str, Any]:
    """Return an overlay of what pages of the two aggregated lists say and the catalogue does not.

    Zones that did not answer keep what the catalogue says of them. Accelerator types that Dataflow does not take have
    no zones here, and their machines say so.
    """
    silent = _silent_zones(accelerators) | _silent_zones(machines)
    types = {catalog.compute_name(type_): type_ for type_ in (*catalog.accelerators, *catalog.tpu_types)}
    zones: dict[str, set[str]] = {}
    for zone, row in _rows(accelerators, "acceleratorTypes"):
        if row["name"] in types:
            zones.setdefault(types[row["name"]], set()).add(zone)
    for type_ in zones:
        zones[type_] |= silent & {*catalog.zones_of(type_)}
    places: dict[str, set[str]] = {}
    rows: dict[str, dict[str, Any]] = {}
    for zone, row in _rows(machines, "machineTypes"):
        if row.get("accelerators"):
            places.setdefault(row["name"], set()).add(zone)
            rows[row["name"]] = _machine_row(row, types)
    tables = {
        "zones": {type_: sorted(found) for type_, found in sorted(zones.items())},
        "machines": [rows[name] for name in sorted(rows) if _is_news(rows[name], catalog)],
        "machine_zones": {
            name: sorted(places[name] | silent & {*catalog.zones_of(rows[name]["accelerator"], name)})
            for name in sorted(places)
            if name in catalog.machine_zones or places[name] < zones.get(rows[name]["accelerator"], set())
        },
        "regions": _regions({*_zones(accelerators), *_zones(machines)}, catalog),
    }
    return {name: {"source": source, "date": day, "rows": found} for name, found in tables.items() if found}


def _rows(pages: Pages, name: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for page in pages:
        for scope, found in page.get("items", {}).items():
            for row in found.get(name, ()):
                yield scope.removeprefix("zones/"), row


def _zones(pages: Pages) -> Iterator[str]:
    for page in pages:
        yield from (scope.removeprefix("zones/") for scope in page.get("items", ()) if scope.startswith("zones/"))


def _silent_zones(pages: Pages) -> set[str]:
    """Return the zones that Compute Engine could not reach while it made the lists."""
    said = {each.rpartition("zones/")[2] for page in pages for each in page.get("unreachables", ())}
    for page in pages:
        for scope, found in page.get("items", {}).items():
            if found.get("warning", {}).get("code") == "UNREACHABLE":
                said.add(scope.removeprefix("zones/"))
    return said


def _machine_row(row: Mapping[str, Any], types: Mapping[str, str]) -> dict[str, Any]:
    carried = row["accelerators"][0]
    name = carried["guestAcceleratorType"].rpartition("/")[2]
    return {
        "name": row["name"],
        "vcpus": row["guestCpus"],
        "memory_gb": row["memoryMb"] / 1024,
        "accelerator": types.get(name, name),
        "count": carried["guestAcceleratorCount"],
        "on_dataflow": name in types,
    }


def _is_news(row: Mapping[str, Any], catalog: Catalog) -> bool:
    known = catalog.machines.get(row["name"])
    return known is None or any(getattr(known, column) != value for column, value in row.items())


def _regions(zones: Iterable[str], catalog: Catalog) -> dict[str, list[str]]:
    """Return the regions that have a zone which the catalogue lacks, with the ends of all their zones."""
    news = sorted({region_of(zone) for zone in zones if zone not in catalog.regions.get(region_of(zone), ())})
    known = {region: {*zones} | {*catalog.regions.get(region, ())} for region in news}
    return {
        region: sorted(zone.rpartition("-")[2] for zone in found if region_of(zone) == region)
        for region, found in known.items()
    }
