"""Buttons in Airflow's UI that lead to the current attempt's pages in Google Cloud's console.

The addresses are finished strings, pushed when a job is submitted, so that they work while it runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from airflow.sdk import BaseOperatorLink

if TYPE_CHECKING:
    from airflow.sdk.bases.operator import BaseOperator


class AcceleratorLink(BaseOperatorLink):
    """One page about the job of the current attempt; ``page`` is its name in :func:`core.console.urls`."""

    name: str = ""
    page: ClassVar[str] = ""

    def get_link(self, operator: BaseOperator, *, ti_key: Any) -> str:  # noqa: ARG002 - Airflow's signature
        """Return the address, or an empty text before anything was submitted.

        Airflow asks on the worker when the task ends or defers, and stores the answer under ``xcom_key``.
        """
        pages: Mapping[str, str] = getattr(operator, "console_pages", {})
        return pages.get(self.page, "")


class AcceleratorJobLink(AcceleratorLink):
    """The job's own page."""

    name = "Job"
    page = "job"


class AcceleratorWorkersLink(AcceleratorLink):
    """The job's worker VMs."""

    name = "Worker VMs"
    page = "workers"


class AcceleratorMetricsLink(AcceleratorLink):
    """The job's metrics, GPU utilisation among them."""

    name = "Metrics"
    page = "metrics"


class AcceleratorLogsLink(AcceleratorLink):
    """Everything the job wrote to Cloud Logging."""

    name = "Logs"
    page = "logs"


LINKS: tuple[AcceleratorLink, ...] = (
    AcceleratorJobLink(),
    AcceleratorWorkersLink(),
    AcceleratorMetricsLink(),
    AcceleratorLogsLink(),
)
