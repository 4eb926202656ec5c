"""Service options and experiments, which are passed on as they are: what the pages say of some of them.

What no rule knows passes without a word, since Dataflow takes, and gives to single customers, more than its pages name.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from airflow_accel_provider.core.accelerators import Cpu, Gpu, Tpu
from airflow_accel_provider.core.options import EXPERIMENTS, SERVICE_OPTIONS, read_worker_accelerator
from airflow_accel_provider.core.problems import Problem, Severity, error, warning
from airflow_accel_provider.core.validation._templated import is_templated

if TYPE_CHECKING:
    from airflow_accel_provider.core.placement import Placement
    from airflow_accel_provider.core.request import BeamRequest

_DOCS = "https://cloud.google.com/dataflow/docs"
_ALL = frozenset({Gpu, Tpu, Cpu})
_DEVICES = frozenset({Gpu, Tpu})


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtraRule:
    """What is wrong with an option of this name on a worker with this kind of accelerator."""

    pattern: str
    kinds: frozenset[type]
    severity: Severity
    code: str
    message: str
    source: str


RULES: tuple[ExtraRule, ...] = (
    ExtraRule(
        pattern=r"enable_prime",
        kinds=frozenset({Gpu}),
        severity="error",
        code="prime",
        message="Dataflow Prime asks for GPUs by resource hints, not by a placement's accelerator; leave it out.",
        source=f"{_DOCS}/gpu/use-gpus",
    ),
    ExtraRule(
        pattern=r"enable_prime",
        kinds=frozenset({Tpu}),
        severity="error",
        code="prime",
        message="Dataflow Prime has no TPUs; leave it out.",
        source=f"{_DOCS}/tpu/tpu-support",
    ),
    ExtraRule(
        pattern=r"disable_runner_v2.*|use_runner_v1|disable_portable_runner|use_legacy_dataflow_worker_jar",
        kinds=_DEVICES,
        severity="error",
        code="runner-v2",
        message="Accelerators need Runner v2; leave this out.",
        source=f"{_DOCS}/gpu/gpu-support",
    ),
    ExtraRule(
        pattern=r"worker_region|worker_zone",
        kinds=_ALL,
        severity="error",
        code="option-pinned",
        message="The location comes from the placement; leave it out here.",
        source="Dataflow API v1b3, Environment.workerRegion",
    ),
    ExtraRule(
        pattern=r"enable_streaming_rightfitting",
        kinds=_DEVICES,
        severity="warning",
        code="right-fitting",
        message="Right fitting does not go with a placement's accelerator; leave it out.",
        source=f"{_DOCS}/guides/right-fitting",
    ),
    ExtraRule(
        pattern=r"type:.*|count:.*|topology:.*|install-nvidia-driver.*|use_nvidia_mps",
        kinds=_DEVICES,
        severity="warning",
        code="accelerator-token",
        message="Alone this does nothing; say driver and MPS as driver_version= and use_mps=, the rest as placement.",
        source=f"{_DOCS}/gpu/use-gpus",
    ),
    ExtraRule(
        pattern=r".*flex_?start.*",
        kinds=frozenset({Tpu}),
        severity="error",
        code="flex-start",
        message="Flex-start is for GPUs; leave it out for a TPU.",
        source=f"{_DOCS}/release-notes, 2025-09-24",
    ),
)
"""The rules that need no more than the option's name. Read 2026-11."""

NAMES = (
    "worker_accelerator",
    "automatically_use_created_reservation",
    "max_workflow_runtime_walltime_seconds",
    "enable_prime",
    "enable_google_cloud_profiler",
    "enable_streaming_rightfitting",
    "no_use_multiple_sdk_containers",
    "use_multiple_sdk_containers",
    "use_runner_v2",
    "disable_runner_v2",
    "skip_gce_quota_verification",
    "upload_graph",
)
"""Names that the pages write out, so that a typo of one can be told from what they do not know.

Source: https://cloud.google.com/dataflow/docs/reference/service-options and the pages of the rules, read 2026-11.
"""

# A typo leaves more of a long name than this.
_CLOSE = 0.87


def said_extras(request: BeamRequest) -> Iterator[tuple[str, str]]:
    """Yield every service option and experiment by itself, and where it stands."""
    lists = {"service_options": SERVICE_OPTIONS, "experiments": EXPERIMENTS}
    for parameter, names in lists.items():
        for where, text in said(request, parameter, names):
            yield from ((where, item.strip()) for item in text.split(","))


def said(request: BeamRequest, parameter: str, names: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Yield every text said by a list parameter or by Beam's options of these names, and where it stands."""
    places: dict[str, Any] = {parameter: getattr(request, parameter)}
    for root in ("default_pipeline_options", "pipeline_options"):
        options: Mapping[str, Any] = getattr(request, root)
        places |= {f"{root}.{name}": options[name] for name in names if options.get(name) is not None}
    for where, value in places.items():
        for item in [value] if isinstance(value, str) else value:
            if isinstance(item, str) and not is_templated(item):
                yield where, item


def check_extras(request: BeamRequest, placement: Placement) -> Iterator[Problem]:
    """Yield what is wrong with the service options and experiments, as they are meant in one place."""
    for where, item in said_extras(request):
        name, _, value = item.partition("=")
        matching = [rule for rule in RULES if re.fullmatch(rule.pattern, name)]
        for rule in matching:
            if type(placement.accelerator) in rule.kinds:
                yield Problem(severity=rule.severity, code=rule.code, message=rule.message, where=where)
        close = None if matching else _typo_of(name)
        if close:
            yield warning("extra-spelling", f"Dataflow's pages do not know {name}; {close} is close to it.", where)
        if name == "worker_accelerator":
            yield from _check_written_out(value, placement, where)
        elif name == "max_workflow_runtime_walltime_seconds":
            yield from _check_walltime(value, request, where)


@lru_cache(maxsize=1024)
def _typo_of(name: str) -> str | None:
    # Longer and shorter forms of a name are often names themselves.
    if any(known in name or name in known for known in NAMES):
        return next((known for known in NAMES if name == f"--{known}"), None)
    close = difflib.get_close_matches(name, NAMES, n=1, cutoff=_CLOSE)
    return close[0] if close else None


def _check_written_out(value: str, placement: Placement, where: str) -> Iterator[Problem]:
    """Yield what is wrong with an accelerator that is written out beside the placement.

    Written out it is needed for what the placement cannot say, and then goes as it stands.
    """
    text = read_worker_accelerator(value)
    if text.accelerator != placement.accelerator or isinstance(placement.accelerator, Cpu):
        meant = f"; as a placement it is {text.accelerator}" if text.accelerator else ""
        message = f"worker_accelerator comes from the placement, {placement.accelerator}; leave it out here{meant}."
        yield error("accelerator-pinned", message, where)
    elif text.unknown:
        yield from _check_tokens(text.unknown, where)
    else:
        yield error("accelerator-pinned", "worker_accelerator comes from the placement; leave it out here.", where)


def _check_tokens(unknown: Iterable[str], where: str) -> Iterator[Problem]:
    # Experiments inside the text were seen in public; no page says that they work there.
    strays = [token for token in unknown if token.partition("=")[0] in NAMES]
    others = [token for token in unknown if token not in strays]
    for token in strays:
        message = f"{token} is no part of worker_accelerator; say it by itself, in experiments= or service_options=."
        yield warning("accelerator-token", message, where)
    if others:
        message = f"Dataflow's pages do not know {', '.join(others)}; the text goes as it stands."
        yield warning("accelerator-token", message, where)


def _check_walltime(value: str, request: BeamRequest, where: str) -> Iterator[Problem]:
    # https://cloud.google.com/dataflow/docs/reference/service-options: batch jobs, seconds.
    if not (value.isascii() and value.isdigit() and int(value) > 0):
        text = f"{value!r} is no number of seconds; max_workflow_runtime_walltime_seconds takes one above 0."
        yield error("walltime", text, where)
    options = {**request.default_pipeline_options, **request.pipeline_options}
    if options.get("streaming") in (True, "true", "True"):
        yield warning("walltime", "max_workflow_runtime_walltime_seconds ends batch jobs only.", where)
