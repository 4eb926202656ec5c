"""What a DAG author asks of a Spark batch, before any place is chosen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from airflow_accel_provider.core.request import Candidate, filler, map_strings, read_text

INSTANCES = "spark.executor.instances"
_BATCH = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkRequest:
    """The batch and its settings, with the names the operator's parameters have.

    ``batch`` is what ``DataprocCreateBatchOperator`` takes. ``executors`` is how many the batch starts with; two, the
    fewest the service takes, when nothing is said. ``runtime_version`` is by default the newest long-term runtime of
    the table. ``ttl`` and ``allocation_timeout`` are durations: seconds, a ``timedelta`` or a text such as ``3600s``;
    the latter is how long a batch waits in the queue that ``provisioning="queue"`` puts it into. ``None`` always means
    "not said".
    """

    batch: _BATCH | None = None
    runtime_version: str | None = None
    executors: int | None = None
    properties: Mapping[str, Any] = field(default_factory=dict)
    container_image: str | None = None
    ttl: Any = None
    provisioning: str | None = None
    allocation_timeout: Any = None
    labels: Mapping[str, str] = field(default_factory=dict)
    batch_id: str | None = None

    def for_candidate(self, candidate: Candidate) -> SparkRequest:
        """Return the request as it is meant in one place.

        The candidate's overrides replace what stands here (mappings are merged, name by name and to any depth), then
        ``{region}`` and ``{accelerator}`` are filled in every string, then all is :meth:`settled`.
        """
        known = {name: value for name, value in candidate.overrides.items() if name in SPARK_OVERRIDABLE}
        own, other = self.settled(), replace(SparkRequest(), **known).settled()
        said = {spec.name: getattr(other, spec.name) for spec in fields(other)}
        merged = replace(own, **{name: _merged(getattr(own, name), value) for name, value in said.items()})
        fill = filler(candidate.placement)
        return replace(merged, **{spec.name: map_strings(fill, getattr(merged, spec.name)) for spec in fields(merged)})

    @property
    def main_file(self) -> str | None:
        """The file that the batch runs, ``None`` where it names a class or what it runs is not known."""
        found = [inside(self.batch, path) for path in _MAINS]
        return next((uri for uri in found if isinstance(uri, str)), None)

    def settled(self) -> SparkRequest:
        """Return the same request with everything said in one place: what has a parameter moves out of the batch.

        The parameter wins where both are given.
        """
        batch, moved = _moved_out(self.batch)
        properties = {**moved["properties"], **_mapping(self.properties)}
        instances = properties.pop(INSTANCES, None)
        return replace(
            self,
            batch=batch,
            runtime_version=_first(self.runtime_version, moved["version"]),
            container_image=_first(self.container_image, moved["container_image"]),
            ttl=_first(self.ttl, moved["ttl"]),
            labels={**moved["labels"], **_mapping(self.labels)},
            executors=read_text(_first(self.executors, instances)),
            properties=properties,
        )


SPARK_OVERRIDABLE = frozenset(spec.name for spec in fields(SparkRequest)) - {"batch_id"}
"""What a candidate may say differently from the operator."""

MOVED = {
    "runtime_version": ("runtime_config", "version"),
    "container_image": ("runtime_config", "container_image"),
    "ttl": ("environment_config", "execution_config", "ttl"),
}
"""Parameters that a batch can also say, and where in it."""


# Dataproc API v1, discovery document: where each kind of batch names what it runs.
_MAINS = (
    ("pyspark_batch", "main_python_file_uri"),
    ("spark_batch", "main_jar_file_uri"),
    ("spark_sql_batch", "query_file_uri"),
    ("spark_r_batch", "main_r_file_uri"),
    ("pyspark_notebook_batch", "notebook_file_uri"),
)


def inside(batch: Any, path: tuple[str, ...]) -> Any:
    """Return what stands at a path inside a batch, or ``None``."""
    for name in path:
        batch = batch.get(name) if isinstance(batch, Mapping) else None
    return batch


def _moved_out(batch: Any) -> tuple[Any, dict[str, Any]]:
    found = {name: inside(batch, path) for name, path in MOVED.items()}
    moved = {
        "version": found["runtime_version"],
        "container_image": found["container_image"],
        "ttl": found["ttl"],
        "properties": _mapping(inside(batch, ("runtime_config", "properties"))),
        "labels": _mapping(inside(batch, ("labels",))),
    }
    if not isinstance(batch, Mapping):
        return batch, moved
    for path in (*MOVED.values(), ("runtime_config", "properties"), ("labels",)):
        batch = _without(batch, path)
    return batch, moved


def _without(batch: _BATCH, path: tuple[str, ...]) -> _BATCH:
    name, *rest = path
    if name not in batch:
        return batch
    if not rest:
        return {key: value for key, value in batch.items() if key != name}
    inner = batch[name]
    return {**batch, name: _without(inner, tuple(rest))} if isinstance(inner, Mapping) else batch


def _mapping(value: Any) -> Mapping[str, Any]:
    # A template may stand for the whole of it until the task starts.
    return value if isinstance(value, Mapping) else {}


def _first(*values: Any) -> Any:
    return next((value for value in values if value is not None), None)


def _merged(own: Any, other: Any) -> Any:
    if other is None:
        return own
    if isinstance(own, Mapping) and isinstance(other, Mapping):
        return {**own, **{name: _merged(own.get(name), value) for name, value in other.items()}}
    return other
