"""Names and labels are valid whatever Airflow's ids are, and never meet."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from airflow_accel_provider.core.identity import job_labels, job_name, label_value, owns

ids = st.text(max_size=250) | st.sampled_from(
    ["Team.Daily Scores", "größe-ψηφία", "scheduled__2026-03-02T00:00:00+00:00", "x" * 250, "-", "9lives", ""]
)
NAME = re.compile(r"[a-z](?:[-a-z0-9]{0,61}[a-z0-9])?")
LABEL = re.compile(r"[a-z0-9_-]{0,63}")


@given(prefix=ids, owner=ids, life=st.integers(1, 99), attempt=st.integers(1, 99))
def test_job_names_are_valid(prefix: str, owner: str, life: int, attempt: int) -> None:
    """A job name is one that Dataflow takes, whatever the task is called."""
    assert NAME.fullmatch(job_name(prefix, owner=owner, life=life, attempt=attempt))


@given(prefix=ids, one=st.tuples(ids, st.integers(1, 9), st.integers(1, 9)), two=st.data())
def test_job_names_differ(prefix: str, one: tuple[str, int, int], two: st.DataObject) -> None:
    """Another owner, life or attempt has another name, and the same three the same."""
    other = two.draw(st.tuples(ids, st.integers(1, 9), st.integers(1, 9)))
    names = [job_name(prefix, owner=owner, life=life, attempt=n) for owner, life, n in (one, other)]

    assert (names[0] == names[1]) == (one == other)


@given(dag_id=ids, task_id=ids, run_id=ids, map_index=st.integers(-1, 2000))
def test_labels_are_valid(dag_id: str, task_id: str, run_id: str, map_index: int) -> None:
    """Labels are valid for any dag, task and run id, and a map index is among them only when there is one."""
    labels = job_labels(
        owner="f" * 32, life=1, attempt=2, dag_id=dag_id, task_id=task_id, run_id=run_id, map_index=map_index
    )

    assert all(LABEL.fullmatch(value) for value in labels.values())
    assert all(re.fullmatch(r"[a-z][a-z0-9_-]{0,62}", key) for key in labels)
    assert ("accel-map-index" in labels) == (map_index >= 0)
    assert owns("f" * 32, labels)


@given(st.lists(ids, min_size=2, max_size=2, unique=True))
def test_label_values_stay_distinct(texts: list[str]) -> None:
    """Two ids that differ only in what labels cannot hold still have two values."""
    assert label_value(texts[0]) != label_value(texts[1])


def test_a_stranger_owns_nothing() -> None:
    """A job without our label, or with another owner's, is not ours."""
    assert not owns("a" * 32, {})
    assert not owns("a" * 32, {"accel-owner": "b" * 32})
