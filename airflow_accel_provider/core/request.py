"""What a DAG author asks of a Beam pipeline, before any place is chosen."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal

from airflow_accel_provider.core.beam_options import Sdk, in_python_names
from airflow_accel_provider.core.placement import Placement
from airflow_accel_provider.core.ways import WAY_NAMES, WAY_PARAMETERS, sdk_of

SdkProcesses = Literal["one", "per_vcpu"]

NUMBERS = (
    "num_workers",
    "max_num_workers",
    "disk_size_gb",
    "number_of_worker_harness_threads",
)
"""Parameters that are whole numbers."""

SWITCHES = ("use_public_ips", "use_mps", "py_system_site_packages")
"""Parameters that are true or false."""

OPTIONS = ("default_pipeline_options", "pipeline_options")
"""Parameters that are Beam options by name; the later ones win."""

BEAM_NAMED = (
    *NUMBERS,
    "sdk_container_image",
    "service_account_email",
    "network",
    "subnetwork",
    "use_public_ips",
    "dataflow_kms_key",
)
"""Parameters that are also Beam options of the same name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BeamRequest:
    """The pipeline and its options, with the names the operator's parameters have.

    ``pipeline_options`` and ``default_pipeline_options`` are Beam options by name, without dashes; the former win.
    ``parameters`` are a template's own.
    ``None`` always means "not said": the service's or Beam's default holds.
    """

    py_file: str | None = None
    py_module: str | None = None
    jar: str | None = None
    go_binary: str | None = None
    template: str | None = None
    flex_template: str | None = None
    py_interpreter: str | None = None
    py_options: tuple[str, ...] = ()
    py_requirements: tuple[str, ...] | None = None
    py_system_site_packages: bool = False
    job_class: str | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    sdk: Sdk | None = None
    pipeline_options: Mapping[str, Any] = field(default_factory=dict)
    default_pipeline_options: Mapping[str, Any] = field(default_factory=dict)
    service_options: tuple[str, ...] = ()
    experiments: tuple[str, ...] = ()
    sdk_container_image: str | None = None
    num_workers: int | None = None
    max_num_workers: int | None = None
    disk_size_gb: int | None = None
    service_account_email: str | None = None
    network: str | None = None
    subnetwork: str | None = None
    use_public_ips: bool | None = None
    dataflow_kms_key: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    reservation: str | None = None
    driver_version: str | None = None
    use_mps: bool = False
    sdk_processes: SdkProcesses = "one"
    number_of_worker_harness_threads: int | None = None
    beam_version: str | None = None

    def for_candidate(self, candidate: Candidate, sdk: Sdk | None = None) -> BeamRequest:
        """Return the request as it is meant in one place.

        The candidate's overrides replace what stands here (mappings are merged, name by name), then ``{region}``,
        ``{zone}`` and ``{accelerator}`` are filled in every string of every option, then all is :meth:`settled`. The
        options have the names that ``sdk`` has for them, the pipeline's own when left out.
        """
        overrides = {name: self._merged(name, value) for name, value in candidate.overrides.items()}
        merged = replace(self, **overrides) if overrides else self
        fill = filler(candidate.placement)
        filled = {name: map_strings(fill, getattr(merged, name)) for name in _NAMES}
        return BeamRequest(**filled).settled(sdk or sdk_of(self))

    def settled(self, sdk: Sdk = "python") -> BeamRequest:
        """Return the same request with everything said in one place, in its own type, by its name in Beam's Python.

        A Beam option that has a parameter of its own moves there (the parameter wins when both are given), and numbers
        and switches that a template rendered as text are read. What cannot be read stays, for validation to refuse.
        """
        defaults = without_refusal(in_python_names(self.default_pipeline_options, sdk))
        own = without_refusal(in_python_names(self.pipeline_options, sdk))
        options = {**defaults, **own}
        moved = {name: options[name] for name in BEAM_NAMED if name in options and getattr(self, name) is None}
        said = replace(
            self,
            pipeline_options=_without(own, BEAM_NAMED),
            default_pipeline_options=_without(defaults, BEAM_NAMED),
            **moved,
        )
        texts = [name for name in (*NUMBERS, *SWITCHES) if isinstance(getattr(said, name), str)]
        return replace(said, **{name: read_text(getattr(said, name)) for name in texts}) if texts else said

    def _merged(self, name: str, value: Any) -> Any:
        own = getattr(self, name)
        return {**own, **value} if isinstance(own, Mapping) else value


def read_text(value: Any) -> Any:
    """Return the number or truth value that a text such as ``"4"`` or ``"True"`` spells, or the value as it is."""
    if not isinstance(value, str):
        return value
    if value.isascii() and value.isdigit():
        return int(value)
    return {"true": True, "false": False}.get(value.lower(), value)


def without_refusal(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options in which the switch itself refuses public addresses, rather than a flag of its own."""
    if read_text(options.get("no_use_public_ips")) is True:
        return {"use_public_ips": False, **_without(options, ("no_use_public_ips",))}
    return dict(options)


def _without(options: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if name not in set(names)}


_NAMES = tuple(spec.name for spec in fields(BeamRequest))

OVERRIDABLE = (frozenset(_NAMES) - {*WAY_NAMES, *WAY_PARAMETERS}) | {"parameters"}
"""What a candidate may say differently from the operator."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A placement plus what differs there."""

    placement: Placement
    overrides: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def parse(cls, value: str | Mapping[str, Any], *, region: str | None = None) -> Candidate:
        """Return the candidate that a placement text, or a mapping with a ``placement``, describes.

        Raises :class:`~airflow_accel_provider.core.placement.PlacementError` for the text and :class:`ValueError` for a
        mapping without one. Names that may not be overridden are for validation to refuse.
        """
        if isinstance(value, str):
            return cls(placement=Placement.parse(value, region=region))
        text = value.get("placement")
        if not isinstance(text, str):
            raise ValueError(f"a fallback given as a mapping needs a 'placement' text; it has {sorted(value)}")  # noqa: TRY004
        overrides = {name: said for name, said in value.items() if name != "placement"}
        return cls(placement=Placement.parse(text, region=region), overrides=overrides)


def filler(placement: Placement) -> Callable[[str], str]:
    """Return a function that fills ``{region}``, ``{zone}`` and ``{accelerator}`` in a text.

    Only these exact tokens are touched, so JSON and Python formats in users' options stay as they are. ``{zone}`` is
    left standing where no zone is pinned; validation says so.
    """
    accelerator = getattr(placement.accelerator, "type", "cpu")
    tokens = {"{region}": placement.region, "{accelerator}": accelerator}
    if placement.zone:
        tokens["{zone}"] = placement.zone

    def fill(text: str) -> str:
        if "{" not in text:
            return text
        for token, value in tokens.items():
            text = text.replace(token, value)
        return text

    return fill


def map_strings(function: Callable[[str], str], value: Any) -> Any:
    """Apply a function to every string inside a nested value, keys of mappings excepted."""
    if isinstance(value, str):
        return function(value)
    if not value:
        return value
    if isinstance(value, Mapping):
        return {key: map_strings(function, item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(map_strings(function, item) for item in value)
    return value
