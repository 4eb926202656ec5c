"""Rows about what happened on a worker: the place did its part, so none of them is a reason to move."""

from __future__ import annotations

from airflow_accel_provider.core.classification._rule import Rule, row
from airflow_accel_provider.core.classification._sources import ERRORS_PAGE, GPU_PAGE, TPU_PAGE
from airflow_accel_provider.core.failures import FailureKind, Scope

IMAGE_ROWS: tuple[Rule, ...] = (
    row(
        r"Unable to pull container image|Image pull request failed|pull access denied|manifest for \S{1,300} not found|"
        r"manifest unknown|ImagePullBackOff|ErrImagePull",
        code="image-pull",
        kind=FailureKind.IMAGE,
        scope=Scope.JOB,
        explanation="the workers cannot pull the container image",
        advice="look at the image's name and tag, and let the workers' service account read its repository",
        example="Error syncing pod: Unable to pull container image due to error: pull access denied",
        source=ERRORS_PAGE,
    ),
    row(
        r"exec format error|/boot\"?: no such file or directory",
        code="image-build",
        kind=FailureKind.IMAGE,
        scope=Scope.JOB,
        explanation="the image can't run on the workers",
        advice="build it for linux/amd64 with Beam's /opt/apache/beam/boot as its entry point",
        example="exec /opt/apache/beam/boot: exec format error",
        source=ERRORS_PAGE,
    ),
    row(
        r"CrashLoopBackOff|failed to \\?\"?StartContainer\\?\"?|Error syncing pod",
        code="image-crash",
        kind=FailureKind.IMAGE,
        scope=Scope.JOB,
        explanation="the container starts and dies, over and over",
        advice="read the docker and worker-startup logs: a missing dependency, another Python version, or no memory",
        example=(
            'Error syncing pod 12, skipping: [failed to "StartContainer" for sdk-0-0 with CrashLoopBackOff: "back-off'
            " 5m0s restarting failed container=sdk-0-0 pod=x]."
        ),
        source=ERRORS_PAGE,
    ),
)

WORKER_ROWS: tuple[Rule, ...] = (
    row(
        r"[Pp]ipeline construction environment and pipeline runtime environment are not compatible|unknown opcode",
        code="python-version",
        kind=FailureKind.IMAGE,
        scope=Scope.JOB,
        explanation="the pipeline was built with another Python or Beam version than the workers run",
        advice="build the image with the launcher's Python minor version and Beam version",
        example=(
            "RuntimeError: Pipeline construction environment and pipeline runtime environment are not compatible. If"
            " you use a custom container image, check that the Python interpreter minor version and the Apache Beam"
            " version in your image match the versions used at pipeline construction time."
        ),
        source="apache_beam.runners.worker.sdk_worker, 2.77; " + GPU_PAGE,
        from_workers=True,
    ),
    row(
        r"/dev/vfio/\d+\)?:? .{0,80}?busy|iommu group /dev/vfio",
        code="tpu-busy",
        kind=FailureKind.CONFIGURATION,
        scope=Scope.JOB,
        explanation="several processes of a worker want the same TPU",
        advice='keep one process per worker: sdk_processes="one" (experiment no_use_multiple_sdk_containers)',
        example="RuntimeError: TPU initialization failed: open(/dev/vfio/0): Device or resource busy",
        source=TPU_PAGE,
        from_workers=True,
    ),
    row(
        r"No space left on device|marshal data too short",
        code="disk-full",
        kind=FailureKind.CONFIGURATION,
        scope=Scope.JOB,
        explanation="the workers' disks are full",
        advice="raise disk_size_gb (50 or more with a GPU image), or write less to local disk",
        example="OSError: [Errno 28] No space left on device",
        source=ERRORS_PAGE,
        from_workers=True,
    ),
    row(
        r"no CUDA-capable device is detected|CUDA driver version is insufficient|libcuda\.so(?:\.1)?: cannot open",
        code="driver",
        kind=FailureKind.CONFIGURATION,
        scope=Scope.JOB,
        explanation="the code found no usable GPU driver",
        advice="keep install-nvidia-driver in the accelerator option, and a CUDA version the driver carries",
        example="RuntimeError: CUDA driver version is insufficient for CUDA runtime version",
        source="CUDA runtime API: cudaErrorNoDevice, cudaErrorInsufficientDriver",
        from_workers=True,
    ),
    row(
        r"Resource: gpu, with addresses:\s{0,24}is less than what the user requested|[Nn]o GPU(?:s)? (?:were )?found\b",
        code="executor-without-gpu",
        kind=FailureKind.ACCELERATOR_MISSING,
        scope=Scope.JOB,
        explanation="an executor started without its GPU",
        advice="look at the accelerator properties; without a limit on failed executors they are replaced forever",
        example=(
            "java.lang.IllegalArgumentException: requirement failed: Resource: gpu, with addresses:  is less than what"
            " the user requested: 1)"
        ),
        source="https://github.com/GoogleCloudDataproc/initialization-actions/pull/1265, 2024-11",
        from_workers=True,
    ),
    row(
        r"CUDA(?: error:)? out of memory|CUDA_ERROR_OUT_OF_MEMORY|cudaErrorMemoryAllocation|"
        r"RESOURCE_EXHAUSTED: (?:Out of memory|Attempting to allocate)|OOM when allocating tensor",
        code="accelerator-memory",
        kind=FailureKind.USER_CODE,
        scope=Scope.JOB,
        explanation="the accelerator ran out of memory",
        advice="smaller batches, one model per device (one process, shared), or an accelerator with more memory",
        example="torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB",
        source=GPU_PAGE,
        from_workers=True,
    ),
    row(
        r"Timed out waiting for an update from\s+the worker",
        code="worker-silent",
        kind=FailureKind.USER_CODE,
        scope=Scope.JOB,
        explanation="the workers were too busy to report",
        advice="lower number_of_worker_harness_threads (50 on machines over 100 vCPUs), or give workers more memory",
        example="Root cause: Timed out waiting for an update from the worker.",
        source=TPU_PAGE,
        from_workers=True,
    ),
    row(
        r"OutOfMemoryError: Java heap space|Shutting down JVM after \d+ consecutive periods|GC thrashing",
        code="memory",
        kind=FailureKind.USER_CODE,
        scope=Scope.JOB,
        explanation="the workers ran out of memory",
        advice="a machine with more memory, fewer threads or processes per worker, or smaller bundles",
        example="java.lang.OutOfMemoryError: Java heap space",
        source=ERRORS_PAGE,
        from_workers=True,
    ),
)
