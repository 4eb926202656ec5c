"""What a job asks for: machine, accelerator, workers, disk and place, read from nothing but its request."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

DEFAULT_MACHINE = "n1-standard-1"
DEFAULT_DISK_GB = 25
"""Of a batch worker. https://cloud.google.com/dataflow/docs/reference/pipeline-options, read 2026-11-29."""

ACCELERATOR_OPTION = "worker_accelerator"

_DRIVER = re.compile(r"install-nvidia-driver(:[\w.-]+)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceleratorRequest:
    """The value of ``worker_accelerator``: ``type:NAME;count:N[;install-nvidia-driver[:BRANCH]][;use_nvidia_mps]``."""

    type: str
    count: int

    @classmethod
    def parse(cls, text: str) -> AcceleratorRequest:
        """Read the option's value.

        Raises ValueError naming everything that is wrong with it.
        """
        named: dict[str, str] = {}
        problems = []
        for part in text.split(";"):
            key, colon, value = part.partition(":")
            if key in {"type", "count"} and colon and key not in named:
                named[key] = value
            elif not (_DRIVER.fullmatch(part) or part == "use_nvidia_mps"):
                problems.append(f"unexpected {part!r}")
        problems += [f"{key} is missing" for key in ("type", "count") if not named.get(key)]
        if named.get("count") and not re.fullmatch(r"[1-9]\d{0,2}", named["count"]):
            problems.append(f"count must be a positive number, not {named['count']!r}")
        if problems:
            raise ValueError(f"{ACCELERATOR_OPTION}={text}: {', '.join(problems)}")
        return cls(type=named["type"], count=int(named["count"]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """One worker pool to be: ``zone`` is None where the service may choose one of ``region``."""

    machine_type: str
    accelerator: AcceleratorRequest | None
    workers: int
    disk_gb: int
    public_ip: bool
    region: str
    zone: str | None


def accelerator_values(environment: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the different values of ``worker_accelerator``, given as service option or as experiment."""
    options = (*environment.get("serviceOptions", ()), *environment.get("experiments", ()))
    prefix = f"{ACCELERATOR_OPTION}="
    return tuple(dict.fromkeys(option.removeprefix(prefix) for option in options if option.startswith(prefix)))


def read_demand(request: Mapping[str, Any], *, location: str) -> Demand:
    """Return what an admitted job asks for."""
    environment = request["environment"]
    pool = first_pool(environment)
    values = accelerator_values(environment)
    zone = environment.get("workerZone") or pool.get("zone") or None
    region = zone.rpartition("-")[0] if zone else environment.get("workerRegion") or location
    return Demand(
        machine_type=pool.get("machineType") or DEFAULT_MACHINE,
        accelerator=AcceleratorRequest.parse(values[0]) if values else None,
        workers=max(1, int(pool.get("numWorkers", 0))),
        disk_gb=int(pool.get("diskSizeGb") or DEFAULT_DISK_GB),
        public_ip=pool.get("ipConfiguration") != "WORKER_IP_PRIVATE",
        region=region,
        zone=zone,
    )


def first_pool(environment: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the pool that workers come from; an empty one where the request has none."""
    pools = environment.get("workerPools") or [{}]
    pool: Mapping[str, Any] = pools[0]
    return pool
