"""What a request becomes on the wire: arguments of a Python, Java or Go launcher, or the body of a template launch."""

from airflow_accel_provider.core.options._accelerator import (
    AcceleratorText,
    read_worker_accelerator,
    worker_accelerator,
)
from airflow_accel_provider.core.options._go import go_flags
from airflow_accel_provider.core.options._java import java_flags
from airflow_accel_provider.core.options._python import beam_flags, option_flags
from airflow_accel_provider.core.options._rendered import FLAGS, rendered
from airflow_accel_provider.core.options._said import (
    DISK_SIZE_GB,
    EXPERIMENTS,
    LABELS,
    ONE_PROCESS,
    SERVICE_OPTIONS,
    merged_experiments,
    merged_labels,
    merged_service_options,
)
from airflow_accel_provider.core.options._templates import classic_template_launch, flex_template_launch

__all__ = [
    "DISK_SIZE_GB",
    "EXPERIMENTS",
    "FLAGS",
    "LABELS",
    "ONE_PROCESS",
    "SERVICE_OPTIONS",
    "AcceleratorText",
    "beam_flags",
    "classic_template_launch",
    "flex_template_launch",
    "go_flags",
    "java_flags",
    "merged_experiments",
    "merged_labels",
    "merged_service_options",
    "option_flags",
    "read_worker_accelerator",
    "rendered",
    "worker_accelerator",
]
