"""What a job asks for: machine, accelerator, workers, disk and place, read from nothing but its request."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airflow_accel_provider.emulator.dataflow.tpus import TOPOLOGY, chips, is_tpu

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

STREAMING = "JOB_TYPE_STREAMING"

DEFAULT_MACHINES: Mapping[bool, str] = {False: "n1-standard-1", True: "n1-standard-2"}
DEFAULT_DISKS_GB: Mapping[bool, int] = {False: 25, True: 30}
"""Of a batch worker, and of a streaming one with Streaming Engine.

https://cloud.google.com/dataflow/docs/reference/pipeline-options, read 2026-11-29.
"""

ACCELERATOR_OPTION = "worker_accelerator"
ANY_RESERVATION = "automatically_use_created_reservation"

_DRIVER = re.compile(r"install-nvidia-driver(:[\w.-]+)?")
# Assumed: Google gives the option that names one reservation to those it enrols, and publishes it nowhere.
_ONE_RESERVATION = re.compile(r"\w*reservation\w*=(?P<value>.+)")
_RESERVATION = re.compile(
    r"(?:projects/(?P<project>[^/]+)/)?(?:zones/(?P<zone>[^/]+)/)?(?:reservations/)?(?P<name>[a-z]([-a-z0-9]*[a-z0-9])?)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReservationName:
    """One reservation; ``project`` and ``zone`` are None where those of the job are meant."""

    project: str | None
    zone: str | None
    name: str

    @classmethod
    def parse(cls, text: str) -> ReservationName:
        """Read ``projects/P/zones/Z/reservations/R``, a shorter form of it, or the name alone.

        Raises ValueError for anything else.
        """
        match = _RESERVATION.fullmatch(text)
        if match is None:
            raise ValueError(f"the reservation {text!r} is not of the form projects/P/zones/Z/reservations/R")
        return cls(project=match["project"], zone=match["zone"], name=match["name"])


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceleratorRequest:
    """The value of ``worker_accelerator``.

    GPUs: ``type:NAME;count:N[;install-nvidia-driver[:BRANCH]][;use_nvidia_mps]``; TPUs: ``type:NAME;topology:AxB[xC]``,
    whose chips are the ``count``. Either may name a ``reservation`` too.
    """

    type: str
    count: int
    topology: str | None = None
    reservation: str | None = None

    @classmethod
    def parse(cls, text: str) -> AcceleratorRequest:
        """Read the option's value.

        Raises ValueError naming everything that is wrong with it.
        """
        named, rest = _tokens(text)
        on_tpu = is_tpu(named.get("type", ""))
        amount, form, what = ("topology", TOPOLOGY, "such as 2x2") if on_tpu else ("count", _COUNT, "a positive number")
        unused = {"topology", "count"} - {amount}
        problems = [f"unexpected {part!r}" for part in rest if on_tpu or not _is_gpu_switch(part)]
        problems += [f"unexpected '{key}:{named[key]}'" for key in sorted(unused & named.keys())]
        problems += [f"{key} is missing" for key in ("type", amount) if not named.get(key)]
        if named.get(amount) and not form.fullmatch(named[amount]):
            problems.append(f"{amount} must be {what}, not {named[amount]!r}")
        if problems:
            raise ValueError(f"{ACCELERATOR_OPTION}={text}: {', '.join(problems)}")
        return cls(
            type=named["type"],
            count=chips(named["topology"]) if on_tpu else int(named["count"]),
            topology=named.get("topology"),
            reservation=named.get("reservation"),
        )

    def __str__(self) -> str:
        return f"{self.type};topology:{self.topology}" if self.topology else f"{self.type};count:{self.count}"


_COUNT = re.compile(r"[1-9]\d{0,2}")
_KEYS = frozenset({"type", "count", "topology", "reservation"})


def _tokens(text: str) -> tuple[dict[str, str], list[str]]:
    named: dict[str, str] = {}
    rest = []
    for part in text.split(";"):
        key, colon, value = part.partition(":")
        if key in _KEYS and colon and key not in named:
            named[key] = value
        else:
            rest.append(part)
    return named, rest


def _is_gpu_switch(part: str) -> bool:
    return part == "use_nvidia_mps" or bool(_DRIVER.fullmatch(part))


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """One worker pool to be: ``zone`` is None where the service may choose one of ``region``.

    ``reservation`` is the one its VMs must have; ``any_reservation`` lets them take any that fits.
    """

    machine_type: str
    accelerator: AcceleratorRequest | None
    workers: int
    disk_gb: int
    public_ip: bool
    region: str
    zone: str | None
    reservation: ReservationName | None = None
    any_reservation: bool = False


def options_of(environment: Mapping[str, Any]) -> tuple[str, ...]:
    """Return service options and experiments: the service reads its options from either."""
    return (*environment.get("serviceOptions", ()), *environment.get("experiments", ()))


def accelerator_values(environment: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the different values of ``worker_accelerator``, given as service option or as experiment."""
    prefix = f"{ACCELERATOR_OPTION}="
    values = (option.removeprefix(prefix) for option in options_of(environment) if option.startswith(prefix))
    return tuple(dict.fromkeys(values))


def reservation_values(environment: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the different reservations that a request names, in an option of their own or with the accelerator."""
    own = (match["value"] for option in options_of(environment) if (match := _ONE_RESERVATION.fullmatch(option)))
    named = (_tokens(value)[0].get("reservation") for value in accelerator_values(environment))
    return tuple(dict.fromkeys([*own, *filter(None, named)]))


def names_reservation(option: str) -> bool:
    """Tell whether an option is one that names a reservation."""
    return _ONE_RESERVATION.fullmatch(option) is not None


def read_demand(request: Mapping[str, Any], *, location: str) -> Demand:
    """Return what an admitted job asks for."""
    environment = request["environment"]
    pool, is_streaming = first_pool(environment), request.get("type") == STREAMING
    values, reservations = accelerator_values(environment), reservation_values(environment)
    zone = environment.get("workerZone") or pool.get("zone") or None
    region = zone.rpartition("-")[0] if zone else environment.get("workerRegion") or location
    return Demand(
        machine_type=pool.get("machineType") or DEFAULT_MACHINES[is_streaming],
        accelerator=AcceleratorRequest.parse(values[0]) if values else None,
        workers=max(1, int(pool.get("numWorkers", 0))),
        disk_gb=int(pool.get("diskSizeGb") or DEFAULT_DISKS_GB[is_streaming]),
        public_ip=pool.get("ipConfiguration") != "WORKER_IP_PRIVATE",
        region=region,
        zone=zone,
        reservation=ReservationName.parse(reservations[0]) if reservations else None,
        any_reservation=ANY_RESERVATION in options_of(environment),
    )


def first_pool(environment: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the pool that workers come from; an empty one where the request has none."""
    pools = environment.get("workerPools") or [{}]
    pool: Mapping[str, Any] = pools[0]
    return pool


def images(environment: Mapping[str, Any]) -> Iterable[str]:
    """Yield every container image that the workers of a job pull."""
    pool = first_pool(environment)
    for container in pool.get("sdkHarnessContainerImages", ()):
        yield container.get("containerImage", "")
    yield pool.get("workerHarnessContainerImage", "")
