"""The examples the demo can run, and what must become of their places in each world."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

GPU_WORLDS: Mapping[str, tuple[str, ...]] = {
    "stockout-then-quota-then-stock": ("stockout", "quota", "done"),
    "plenty": ("done", "not tried", "not tried"),
    "l4-stockout": ("stockout", "stockout", "done"),
    "no-quota": ("quota", "quota", "quota"),
    "gpu-missing": ("accelerator_missing", "not tried", "not tried"),
    "nowhere": ("stockout", "stockout", "stockout"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """A DAG of ``dags/``, and the kinds its places come out as, by world; the first world is the usual one.

    ``task`` is the one with the places; what its last task returns has a number ``counted``, in all days ``total``.
    """

    dag_id: str
    about: str
    worlds: Mapping[str, tuple[str, ...]]
    task: str = "score"
    counted: str = "count"
    total: int = 1200

    @property
    def usual_world(self) -> str:
        """The world in which there is most to see."""
        return next(iter(self.worlds))


EXAMPLES: Mapping[str, Example] = {
    "gpu": Example(
        dag_id="score_digits",
        about="a GPU, wherever there is one",
        worlds=GPU_WORLDS,
    ),
    "tpu": Example(
        dag_id="score_on_tpu",
        about="a reserved TPU, else another TPU, else a GPU",
        worlds={
            "reservation-taken": ("stockout", "done", "not tried"),
            "tpu-stockout": ("stockout", "stockout", "done"),
        },
    ),
    "flex": Example(
        dag_id="score_from_template",
        about="a Flex Template whose parameters follow the accelerator",
        worlds={
            "l4-stockout": ("stockout", "done"),
            "plenty": ("done", "not tried"),
            "no-quota": ("quota", "quota"),
            "nowhere": ("stockout", "stockout"),
        },
    ),
    "spark": Example(
        dag_id="rides_by_district",
        about="a Spark batch on L4s, else on A100s, else in another region",
        worlds={
            "l4-stockout": ("stockout", "done", "not tried"),
            "us-central1-stockout": ("stockout", "stockout", "done"),
            "plenty": ("done", "not tried", "not tried"),
            "no-quota": ("quota", "quota", "quota"),
            "nowhere": ("stockout", "stockout", "stockout"),
        },
        task="summarise",
        counted="rides",
        total=653_414,
    ),
}

TEMPLATES: Mapping[str, str] = {
    "us-docker.pkg.dev/acme-ml-prod/templates/score-digits:1": "pipelines/score_digits.py",
}
"""The pipeline files, below ``dags``, that the images of the examples' Flex Templates stand for."""
