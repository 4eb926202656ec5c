"""Where the table's words were read, and when."""

from __future__ import annotations

ERRORS_PAGE = "https://cloud.google.com/dataflow/docs/guides/common-errors, last updated 2026-03-03"
GPU_PAGE = "https://cloud.google.com/dataflow/docs/gpu/troubleshoot-gpus, read 2026-11"
TPU_PAGE = "https://cloud.google.com/dataflow/docs/tpu/troubleshoot-tpus, read 2026-11"
FITTING_PAGE = "https://cloud.google.com/dataflow/docs/guides/right-fitting, read 2026-11"
NETWORK_PAGE = "https://cloud.google.com/dataflow/docs/guides/troubleshoot-networking, read 2026-11"
TEMPLATES_PAGE = "https://cloud.google.com/dataflow/docs/guides/troubleshoot-templates, last updated 2026-03-04"
SPARK_QUOTAS_PAGE = "https://cloud.google.com/dataproc-serverless/quotas, read 2026-11"
SPARK_GPU_PAGE = "https://cloud.google.com/dataproc-serverless/docs/guides/gpus-serverless, read 2026-11"
SPARK_FLEX_PAGE = "https://cloud.google.com/dataproc-serverless/docs/guides/dws-serverless, read 2026-11"
JOB_LOGS = "job messages in public issues, 2020-2026"
