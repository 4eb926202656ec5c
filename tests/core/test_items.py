"""What a mapped task was expanded over, told from real DAGs."""

from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk import DAG, task_group

from airflow_accel_provider.operators._item import item_of
from airflow_accel_provider.operators.beam import BeamGpuPipelineOperator

COMMON: dict[str, Any] = {
    "placement": "nvidia-l4 on g2-standard-8 in us-central1",
    "flex_template": "gs://acme-ml/templates/score.json",
    "sdk_container_image": "us-docker.pkg.dev/acme-ml/beam/score:2.77.0",
}
TEMP = "gs://acme-ml/tmp"


def dag_over(*days: str) -> DAG:
    """Return a DAG with a task mapped over days, one mapped over keyword arguments, one in a group, and one plain."""
    with DAG("nightly", start_date=datetime(2026, 3, 1, tzinfo=UTC), schedule=None) as dag:
        options = [{"temp_location": TEMP, "day": day} for day in days]
        BeamGpuPipelineOperator.partial(task_id="mapped", **COMMON).expand(pipeline_options=options)
        BeamGpuPipelineOperator.partial(task_id="by_keyword", **COMMON).expand_kwargs(
            [{"pipeline_options": each} for each in options]
        )

        @task_group
        def each_day(day: Any) -> None:
            templated = {"temp_location": TEMP, "day": day, "try": "{{ ti.try_number }}"}
            BeamGpuPipelineOperator(task_id="in_group", **COMMON, pipeline_options=templated)

        each_day.expand(day=list(days))
        BeamGpuPipelineOperator(task_id="plain", **COMMON, pipeline_options={"temp_location": TEMP})
    return dag


def item(dag: DAG, task_id: str, index: int) -> str | None:
    """Return the item of a task instance as its worker sees it."""
    declared: Any = dag.task_dict[task_id]
    context: Any = {"ti": SimpleNamespace(map_index=index), "task": declared, "dag": dag, "run_id": "r"}
    if hasattr(declared, "expand_input"):
        declared = declared.unmap(declared.expand_input.resolve(context)[0])
    return item_of(declared, context)


@pytest.mark.parametrize("task_id", ["mapped", "by_keyword", "each_day.in_group"])
def test_items_follow_the_list_and_not_the_position(task_id: str) -> None:
    """A map index whose list has changed means another item, and the same item elsewhere in a list means the same."""
    before, after = dag_over("mon", "tue"), dag_over("sun", "mon")

    assert item(before, task_id, 0) != item(after, task_id, 0)
    assert item(before, task_id, 0) == item(after, task_id, 1)
    assert item(before, task_id, 1) == item(dag_over("mon", "tue"), task_id, 1)


def test_a_plain_task_has_no_item() -> None:
    """A task that is not mapped has no item."""
    assert item(dag_over("mon"), "plain", -1) is None


def test_values_that_json_lacks() -> None:
    """Dates and objects in an item give the same text each time."""

    class Plain:
        """Shown by its address, which differs each time."""

    def texts() -> set[str | None]:
        days: Any = (datetime(2026, 3, 2, tzinfo=UTC), Plain())
        return {item(dag_over(*days), "mapped", index) for index in (0, 1)}

    assert texts() == texts()
    assert len(texts()) == 2
