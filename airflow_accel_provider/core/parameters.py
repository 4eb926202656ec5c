"""The names of the operators' parameters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields

from airflow_accel_provider.core.request import BeamRequest

_SHARED = (
    *("placement", "fallback", "fallback_on", "region"),
    *("project_id", "gcp_conn_id", "impersonation_chain", "quota_project_id", "job_name"),
    *("deferrable", "poll_interval", "start_timeout", "cancel_timeout", "on_unproven"),
)
_BEAM = (*(spec.name for spec in fields(BeamRequest)), "wait_until", "drain_pipeline")
_GPU_ONLY = ("driver_version", "use_mps")
SPARK_PARAMETERS = (
    *("batch", "runtime_version", "executors", "properties", "container_image", "ttl"),
    *("provisioning", "allocation_timeout", "labels", "batch_id"),
)
"""What makes up a Spark batch: the fields of its request."""

_SPARK_ONLY = ("request_id", "metadata", "proof_grace")

PARAMETERS: Mapping[str, frozenset[str]] = {
    "BeamGpuPipelineOperator": frozenset({*_SHARED, *_BEAM}),
    "BeamTpuPipelineOperator": frozenset({*_SHARED, *_BEAM} - {*_GPU_ONLY}),
    "DataprocGpuBatchOperator": frozenset({*_SHARED, *SPARK_PARAMETERS, *_SPARK_ONLY} - {"job_name"}),
}
"""The parameters of each operator, Airflow's own apart."""

AIRFLOW_PARAMETERS = frozenset(
    {
        *("allow_nested_operators", "dag", "default_args", "depends_on_past", "do_xcom_push", "doc"),
        *("doc_json", "doc_md", "doc_rst", "doc_yaml", "email", "email_on_failure", "email_on_retry"),
        *("end_date", "execution_timeout", "executor", "executor_config", "ignore_first_depends_on_past"),
        *("inlets", "logger_name", "map_index_template", "max_active_tis_per_dag", "max_active_tis_per_dagrun"),
        *("max_retry_delay", "multiple_outputs", "on_execute_callback", "on_failure_callback"),
        *("on_retry_callback", "on_skipped_callback", "on_success_callback", "outlets", "owner", "params"),
        *("pool", "pool_slots", "post_execute", "pre_execute", "priority_weight", "queue"),
        *("render_template_as_native_obj", "resources", "retries", "retry_delay", "retry_exponential_backoff"),
        *("retry_policy", "run_as_user", "sla", "start_date", "task_display_name", "task_group", "task_id"),
        *("trigger_rule", "wait_for_downstream", "wait_for_past_depends_before_skipping", "weight_rule"),
    }
)
"""The parameters that every operator has from Airflow, which are Airflow's to judge. Source: ``airflow.sdk``, 3.3.2."""
