"""What a run counted, in the form of the service's ``getMetrics``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

ELEMENT_COUNT = "beam:metric:element_count:v1"
USER_SUM = "beam:metric:user:sum_int64:v1"
USER_DISTRIBUTION = "beam:metric:user:distribution_int64:v1"


def read_metrics(pipeline: Any, infos: Iterable[Any]) -> list[dict[str, Any]]:
    """Return element counts of every output and the user's counters and distributions.

    Each stands twice, tentative and committed, as the service gives them.
    """
    outputs = _outputs(pipeline)
    steps = {name: transform.unique_name for name, transform in pipeline.components.transforms.items()}
    metrics = []
    for info in infos:
        if info.urn == ELEMENT_COUNT and info.labels.get("PCOLLECTION") in outputs:
            output = outputs[info.labels["PCOLLECTION"]]
            context = {"original_name": output, "output_user_name": output}
            metrics += _twice("dataflow/v1b3", "ElementCount", context, scalar=_integers(info.payload)[0])
        elif info.urn in {USER_SUM, USER_DISTRIBUTION}:
            step = info.labels["PTRANSFORM"]
            context = {"namespace": info.labels["NAMESPACE"], "step": steps.get(step, step)}
            metrics += _twice("user", info.labels["NAME"], context, **_user_value(info))
    return metrics


def _outputs(pipeline: Any) -> dict[str, str]:
    # A composite hands on its last step's collection; the innermost step, which has no parts, made it.
    return {
        collection: f"{transform.unique_name}-out{index}"
        for transform in pipeline.components.transforms.values()
        if not transform.subtransforms
        for index, collection in enumerate(transform.outputs.values())
    }


def _user_value(info: Any) -> dict[str, Any]:
    if info.urn == USER_SUM:
        return {"scalar": _integers(info.payload)[0]}
    count, total, least, most = _integers(info.payload)[:4]
    return {"distribution": {"count": count, "sum": total, "min": least, "max": most}}


def _integers(payload: bytes) -> list[int]:
    from apache_beam.coders.coder_impl import create_InputStream

    stream = create_InputStream(payload)
    numbers = []
    while stream.size():
        numbers.append(stream.read_var_int64())
    return numbers


def _twice(origin: str, name: str, context: dict[str, str], **value: Any) -> list[dict[str, Any]]:
    return [
        {"name": {"origin": origin, "name": name, "context": {**context, **kind}}, **value}
        for kind in ({}, {"tentative": "true"})
    ]
