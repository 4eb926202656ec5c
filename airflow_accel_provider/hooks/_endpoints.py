"""Where Google's services live, and what a connection says differently."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from airflow_accel_provider.core.problems import nearest
from airflow_accel_provider.exceptions import AcceleratorConfigurationError


@dataclass(frozen=True, slots=True)
class Service:
    """Root and path prefix of one REST API; a root may have a blank for the region that a path names."""

    root: str
    prefix: str


# Source: rootUrl and servicePath of Google's discovery documents, read 2026-11; Cloud Quotas API v1, REST reference.
SERVICES: Mapping[str, Service] = {
    "cloudquotas": Service("https://cloudquotas.googleapis.com", "/v1"),
    "compute": Service("https://compute.googleapis.com", "/compute/v1"),
    "dataflow": Service("https://dataflow.googleapis.com", "/v1b3"),
    # Where batches are: https://cloud.google.com/dataproc/docs/concepts/regional-endpoints, read 2026-11.
    "dataproc": Service("https://{region}-dataproc.googleapis.com", "/v1"),
    "iamcredentials": Service("https://iamcredentials.googleapis.com", "/v1"),
    "monitoring": Service("https://monitoring.googleapis.com", "/v3"),
    "storage": Service("https://storage.googleapis.com", "/storage/v1"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoints:
    """Roots that replace Google's own: one for all services, or single ones, which win."""

    everywhere: str | None = None
    single: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def from_extras(cls, extras: Mapping[str, Any], connection_id: str) -> Endpoints:
        """Return what a connection's ``endpoint_url`` and ``endpoints`` say.

        Raises :class:`AcceleratorConfigurationError` naming every service or address that is wrong.
        """
        everywhere = extras.get("endpoint_url") or None
        single = extras.get("endpoints") or {}
        if not isinstance(single, Mapping):
            raise AcceleratorConfigurationError(
                f"Connection {connection_id!r}: endpoints must be an object of service and address, "
                'such as {"dataflow": "https://…"}'
            )
        problems = [_unknown_service(name) for name in single if name not in SERVICES]
        problems += _wrong_addresses({"endpoint_url": everywhere, **{f"endpoints.{k}": v for k, v in single.items()}})
        if problems:
            raise AcceleratorConfigurationError(f"Connection {connection_id!r}: {'; '.join(problems)}")
        return cls(
            everywhere=_without_slash(everywhere) if everywhere else None,
            single={name: _without_slash(address) for name, address in single.items()},
        )

    def override(self, service: str) -> str | None:
        """Return the root that replaces Google's for this service, or ``None``."""
        return self.single.get(service, self.everywhere)

    def url(self, service: str, path: str) -> str:
        """Return the address of a path of the service."""
        known = SERVICES[service]
        root = self.override(service) or known.root.format(region=_region_in(path))
        return f"{root}{known.prefix}/{path.lstrip('/')}"


# Characters that end a path, and segments that lead out of it; what a name needs of them stands encoded.
_ASTRAY = re.compile(r"[^!$&'()*+,./:;=@A-Za-z0-9_~%-]|%(?![0-9A-Fa-f]{2})|(?:^|/)(?:\.|%2[eE]){1,2}(?:/|:|$)|//")
_LONGEST_PATH = 8_000


def leads_astray(path: str) -> bool:
    """Tell whether a path addresses something else than what its names say, since one of them is no name."""
    return len(path) > _LONGEST_PATH or bool(_ASTRAY.search(path))


_REGION = re.compile(r"(?:^|/)(?:locations|regions)/([a-z0-9-]+)/")


def _region_in(path: str) -> str:
    form = _REGION.search(path)
    return form[1] if form else ""


def _unknown_service(name: str) -> str:
    meant = nearest(name, SERVICES)
    hint = f"did you mean {meant!r}?" if meant else f"known are {', '.join(SERVICES)}"
    return f"endpoints names the unknown service {name!r}; {hint}"


def _wrong_addresses(addresses: Mapping[str, Any]) -> list[str]:
    return [
        f"{where} {address!r} is not an address such as http://localhost:8085"
        for where, address in addresses.items()
        if address is not None and not _is_address(address)
    ]


def _is_address(value: Any) -> bool:
    if not isinstance(value, str):
        return False
    try:
        parts = urlsplit(value)
        return parts.scheme in {"http", "https"} and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        return False


def _without_slash(address: str) -> str:
    return address.rstrip("/")
