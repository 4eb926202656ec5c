"""Whether the catalogue's tables agree: what one says of another stands there too."""

from __future__ import annotations

from collections.abc import Iterator

from airflow_accel_provider.core.tables import Rows

_FIELD_KINDS = ("text", "list", "map", "duration")


def loose_ends(rows: Rows) -> Iterator[str]:
    """Yield what one table says of another that does not say it."""
    yield from _on_dataflow(rows)
    yield from _on_spark(rows)


def _on_dataflow(rows: Rows) -> Iterator[str]:
    carriers = {row["name"]: row for row in rows["machines"].values() if row.get("accelerator")}
    for name, row in carriers.items():
        if not row.get("count"):
            yield f"machines: {name} carries {row['accelerator']} and has no count of it"
    housed = {row["accelerator"] for row in carriers.values()} | {row["type"] for row in rows["n1_hosts"].values()}
    for (type_,) in rows["accelerators"]:
        if type_ not in housed:
            yield f"accelerators: {type_} is on no machine in the table machines and on no host in n1_hosts"
    for (type_, topology), row in rows["tpu_slices"].items():
        if row["machine_type"] not in carriers:
            yield f"tpu_slices: {type_} {topology} is on {row['machine_type']}, which the table machines does not have"
        if (type_,) not in rows["tpu_types"]:
            yield f"tpu_slices: {type_} is not in the table tpu_types"


def _on_spark(rows: Rows) -> Iterator[str]:
    carried = {type_ for type_, _ in rows["spark_executors"]}
    for type_ in sorted(carried - {type_ for (type_,) in rows["spark_accelerators"]}):
        yield f"spark_executors: {type_} is not in the table spark_accelerators"
    for (type_,) in rows["spark_accelerators"]:
        if type_ not in carried:
            yield f"spark_accelerators: {type_} is on no executor in the table spark_executors"
    messages = {message for (message,) in rows["spark_batch"]}
    for (message,), row in rows["spark_batch"].items():
        for name, kind in row["fields"].items():
            if kind not in (*_FIELD_KINDS, *messages):
                yield f"spark_batch: {name} of {message} is {kind}, neither {', '.join(_FIELD_KINDS)} nor a message"
