"""What Airflow is told about this provider."""

from __future__ import annotations

from typing import Any

_PACKAGE = "airflow_accel_provider"
_NAME = "Accelerators on Google Cloud"


def get_provider_info() -> dict[str, Any]:
    """Return the metadata behind the ``apache_airflow_provider`` entry point."""
    return {
        "package-name": "airflow-provider-accel",
        "name": _NAME,
        "description": "Scheduled jobs on Google Cloud GPUs and TPUs: validated, quota-checked, proven, with fallback.",
        "integrations": [
            {
                "integration-name": _NAME,
                "external-doc-url": "https://cloud.google.com/dataflow/docs/gpu",
                "tags": ["google"],
            }
        ],
        "operators": [
            {
                "integration-name": _NAME,
                "python-modules": [f"{_PACKAGE}.operators.beam", f"{_PACKAGE}.operators.dataproc"],
            }
        ],
        "sensors": [
            {
                "integration-name": _NAME,
                "python-modules": [
                    f"{_PACKAGE}.sensors.{name}" for name in ("proof", "quota", "reservation", "utilization")
                ],
            }
        ],
        "triggers": [
            {
                "integration-name": _NAME,
                "python-modules": [f"{_PACKAGE}.triggers.job", f"{_PACKAGE}.triggers.sensor"],
            }
        ],
        "extra-links": [
            f"{_PACKAGE}.links.AcceleratorJobLink",
            f"{_PACKAGE}.links.AcceleratorWorkersLink",
            f"{_PACKAGE}.links.AcceleratorMetricsLink",
            f"{_PACKAGE}.links.AcceleratorLogsLink",
        ],
        "cli": [f"{_PACKAGE}.cli.mounted.commands"],
        "config": {
            "accel": {
                "description": "Settings of the accelerator provider.",
                "options": {
                    "allowed_regions": {
                        "description": (
                            "Regions in which accelerated jobs may run, separated by commas. Empty means all. "
                            "A candidate elsewhere is an error when the DAG is parsed."
                        ),
                        "version_added": "0.1.0",
                        "type": "string",
                        "example": "europe-west4,europe-west3",
                        "default": "",
                    },
                    "catalog_overlay": {
                        "description": (
                            "A JSON file whose rows are laid over the packaged tables of accelerators, machines, "
                            "zones, quotas, prices and of what Spark takes; `accel catalog refresh` writes one for a "
                            "project."
                        ),
                        "version_added": "0.1.0",
                        "type": "string",
                        "example": "/opt/airflow/accelerators.json",
                        "default": "",
                    },
                    "default_deferrable": {
                        "description": (
                            "Whether operators that do not say wait in the triggerer. "
                            "The environment variable AIRFLOW__OPERATORS__DEFAULT_DEFERRABLE wins."
                        ),
                        "version_added": "0.1.0",
                        "type": "boolean",
                        "example": "False",
                        "default": "True",
                    },
                    "poll_interval": {
                        "description": "Seconds between two looks at a job, for operators that do not say their own.",
                        "version_added": "0.1.0",
                        "type": "float",
                        "example": "30",
                        "default": "10",
                    },
                },
            }
        },
    }
