"""Whether a batch's name, labels, lifetime and place in the queue are what the service takes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from airflow_accel_provider.core.identity import RESERVED_PREFIX
from airflow_accel_provider.core.problems import Problem, error, nearest, warning
from airflow_accel_provider.core.spark.catalog import Runtime, release
from airflow_accel_provider.core.spark.labels import LABEL_FORM, MOST_LABELS, is_label
from airflow_accel_provider.core.spark.sizes import seconds
from airflow_accel_provider.core.validation._templated import is_templated

if TYPE_CHECKING:
    from airflow_accel_provider.core.spark.request import SparkRequest

# Dataproc API v1: batches.create, batchId; ExecutionConfig.ttl. Read 2026-11.
_BATCH_ID = re.compile(r"[a-z0-9-]{4,63}")
_TTL_SECONDS = (600, 14 * 24 * 3600)
# https://cloud.google.com/dataproc-serverless/docs/guides/dws-serverless, read 2026-11.
_LONGEST_ALLOCATION = 7200
_MODES = ("queue", "default")
# The task's own labels are those of core.identity.job_labels.
_LEFT_LABELS = MOST_LABELS - 7


def check_life(request: SparkRequest, runtime: Runtime | None) -> Iterator[Problem]:
    """Yield what is wrong; ``runtime`` is ``None`` where it cannot be known yet."""
    yield from _check_batch_id(request.batch_id)
    yield from _check_ttl(request.ttl, runtime)
    yield from _check_labels(request.labels)
    yield from _check_provisioning(request, runtime)


def _check_batch_id(batch_id: str | None) -> Iterator[Problem]:
    if batch_id is None or is_templated(batch_id) or _BATCH_ID.fullmatch(batch_id):
        return
    near = re.sub(r"[^a-z0-9]+", "-", batch_id.lower()).strip("-")[:63]
    hint = f" {near!r} would do." if _BATCH_ID.fullmatch(near) else ""
    text = f"{batch_id!r} is not a batch's id: 4 to 63 lower-case letters, digits and '-'.{hint}"
    yield error("batch-id", text, "batch_id")


def _check_ttl(ttl: Any, runtime: Runtime | None) -> Iterator[Problem]:
    read = seconds(ttl)
    if ttl is None and runtime and release(runtime.version) >= (2, 1):
        text = (
            f"There is no ttl, so the service ends the batch after 4 hours on {runtime.version}; say how long it may."
        )
        yield warning("ttl-missing", text, "ttl")
    elif read is not None and not _TTL_SECONDS[0] <= read <= _TTL_SECONDS[1]:
        near = min(max(read, _TTL_SECONDS[0]), _TTL_SECONDS[1])
        text = f"{ttl!r} does not do; a batch lives for 10 minutes to 14 days. The nearest is '{near:.0f}s'."
        yield error("ttl-range", text, "ttl")


def _check_labels(labels: Any) -> Iterator[Problem]:
    if len(labels) > _LEFT_LABELS:
        text = f"There are {len(labels)}; {_LEFT_LABELS} are left to you of the {MOST_LABELS} that a batch can have."
        yield error("too-many-labels", text, "labels")
    for key, value in labels.items():
        where = f"labels.{key}"
        if is_templated(key):
            yield error("label-key", f"{key!r} stays as it is, since Airflow fills no template in a key.", where)
        elif not is_label(key):
            yield error("label-key", f"{key!r} is not a label's key: {LABEL_FORM}.{_instead(key)}", where)
        elif key.startswith(RESERVED_PREFIX):
            text = f"Labels that start with {RESERVED_PREFIX} tie a job to its task; name it otherwise."
            yield error("label-reserved", text, where)
        text = str(value)
        if text and not is_templated(value) and not is_label(text):
            yield error("label-value", f"{value!r} is not a label's value: {LABEL_FORM}.{_instead(text)}", where)


def _instead(text: str) -> str:
    plain = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:60].rstrip("-")
    near = plain if plain[:1].isalpha() else f"v{plain}"
    return f" {near!r} would do." if plain and is_label(near) and not near.startswith(RESERVED_PREFIX) else ""


def _check_provisioning(request: SparkRequest, runtime: Runtime | None) -> Iterator[Problem]:
    mode, timeout = request.provisioning, request.allocation_timeout
    said = [name for name in ("provisioning", "allocation_timeout") if getattr(request, name) is not None]
    if said and runtime and not runtime.provisioning:
        text = f"Runtime {runtime.version} has no queue, a batch without stock fails there at once; take 3.0 for it."
        yield from (error("provisioning-unknown", text, name) for name in said)
    if mode is not None and not is_templated(mode) and mode not in _MODES:
        near = nearest(mode, _MODES)
        hint = f"Did you mean {near!r}?" if near else "It is 'queue' or 'default'."
        yield error("provisioning", f"{mode!r} does not do. {hint}", "provisioning")
    if timeout is None:
        return
    read = seconds(timeout)
    # Written so that nan fails it.
    if read is not None and not 0 < read <= _LONGEST_ALLOCATION:
        text = f"{timeout!r} does not do; a batch waits up to {_LONGEST_ALLOCATION} seconds for its machines."
        yield error("allocation-timeout", text, "allocation_timeout")
    if mode == "default":
        text = "Only a queued batch waits for its machines; with provisioning='default' this says nothing."
        yield warning("allocation-timeout-unused", text, "allocation_timeout")
