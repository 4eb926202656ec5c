"""The argument list of a Beam Python launcher."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from airflow_accel_provider.core.beam_options import load_options
from airflow_accel_provider.core.options._said import own_options, process_experiments, users_options

if TYPE_CHECKING:
    from airflow_accel_provider.core.placement import Placement
    from airflow_accel_provider.core.request import BeamRequest


def beam_flags(
    request: BeamRequest,
    placement: Placement,
    *,
    project: str,
    job_name: str,
    labels: Mapping[str, str],
    endpoint: str | None = None,
) -> tuple[str, ...]:
    """Return the launcher's arguments, always in the same order.

    ``request`` is what :meth:`BeamRequest.for_candidate` returned, ``placement`` has its machine type, ``labels`` are
    those that tie the job to its task; they win over the user's.
    """
    own = own_options(request, placement, project=project, job_name=job_name, labels=labels, endpoint=endpoint)
    own["labels"] = [f"{key}={value}" for key, value in own["labels"].items()]
    own["experiments"] = [*process_experiments(request, placement), *own["experiments"]]
    options = {"runner": "DataflowRunner", **own, **users_options(request)}
    return tuple(flag for name, value in options.items() for flag in option_flags(name, value))


def option_flags(name: str, value: Any) -> tuple[str, ...]:
    """Return the arguments that say one option to a Beam Python pipeline.

    ``None`` says nothing; ``False`` says Beam's ``--no_…`` where there is one, else nothing; a list says its items
    one by one; a mapping becomes JSON; anything else goes as ``--name=value``, whatever its characters. A switch of
    Beam's own may be said as text, as templates render it.
    """
    option = load_options("python").options.get(name)
    if option and option.kind == "switch" and isinstance(value, str):
        value = {"true": True, "false": False}.get(value.lower(), value)
    if value is None:
        return ()
    if value is True:
        return (f"--{name}",)
    if value is False:
        return (f"--{option.false_flag}",) if option and option.false_flag else ()
    if isinstance(value, list | tuple):
        return tuple(f"--{name}={_text(item)}" for item in value)
    return (f"--{name}={_text(value)}",)


def _text(value: Any) -> str:
    return json.dumps(value) if isinstance(value, Mapping | list | tuple) else str(value)
