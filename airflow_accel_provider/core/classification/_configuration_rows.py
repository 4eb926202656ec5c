"""Rows about what the job asked for: no other place would change them, so they come before every shortage."""

from __future__ import annotations

from airflow_accel_provider.core.classification._rule import REGION, ZONE, Rule, row
from airflow_accel_provider.core.classification._sources import (
    ERRORS_PAGE,
    FITTING_PAGE,
    JOB_LOGS,
    NETWORK_PAGE,
    TPU_PAGE,
)
from airflow_accel_provider.core.failures import FailureKind, Resource, Scope

_CONFIGURATION = FailureKind.CONFIGURATION

ACCELERATOR_ROWS: tuple[Rule, ...] = (
    row(
        r"requested\s+accelerator type \S{1,200}\s+requires setting\s+"
        r"the worker machine type to (?P<machine>[a-z0-9-]{1,60})",
        code="wrong-machine",
        kind=_CONFIGURATION,
        scope=Scope.JOB,
        explanation="this accelerator needs machine type {machine}",
        advice="write the placement with that machine type, or leave the machine type out",
        example=(
            "The workflow was automatically rejected by the service because it might trigger an identified bug:"
            " requested accelerator type tpu-v6e-slice;topology:2x2 requires setting the worker machine type to"
            " ct6e-standard-4t."
        ),
        source=TPU_PAGE,
    ),
    row(
        r"workflow was automatically rejected by the service",
        code="rejected",
        kind=_CONFIGURATION,
        scope=Scope.JOB,
        explanation="the service rejected the job's options",
        advice="the message names the option; mend it, no other place will take the job as it is",
        example="The workflow was automatically rejected by the service for the following reason: machine type.",
        source=ERRORS_PAGE,
    ),
    row(
        r"do not\s+support\s+live migration",
        code="option-missing",
        kind=_CONFIGURATION,
        scope=Scope.JOB,
        explanation="an accelerator machine was asked for without the accelerator (worker_accelerator)",
        advice="add or respell the service option worker_accelerator (templates: additionalExperiments)",
        example="UNSUPPORTED_OPERATION: Instances with guest accelerators do not support live migration.",
        source=TPU_PAGE,
    ),
    row(
        r"invalid configuration for \d+ count of",
        code="host-shape",
        kind=_CONFIGURATION,
        scope=Scope.JOB,
        explanation="the machine has more vCPUs or memory than this number of GPUs allows",
        advice="ask for more GPUs per worker or a smaller N1 machine",
        example=(
            "[UNSUPPORTED_OPERATION] '96 vCpus with 368640 MiB memory is an invalid configuration for 1 count of"
            " 'nvidia-tesla-t4' in family 'n1'.'"
        ),
        source=FITTING_PAGE,
    ),
    row(
        r"Regional\s+Managed Instance Groups do not\s+support\s+Cloud TPUs",
        code="tpu-option-missing",
        kind=_CONFIGURATION,
        scope=Scope.JOB,
        explanation="a TPU machine was asked for without the TPU (worker_accelerator)",
        advice="add the service option worker_accelerator=type:…;topology:… (templates: additionalExperiments)",
        example=(
            "Workflow failed. Causes: One or more operations had an error: 'operation-1': [INVALID_FIELD_VALUE]"
            " 'Invalid value for field 'resource.instanceTemplate': 'projects/acme/x-harness'. Regional Managed"
            " Instance Groups do not support Cloud TPUs.'"
        ),
        source=TPU_PAGE,
    ),
    row(
        r"Managed Instance Groups do not\s+support\s+Cloud TPUs",
        code="tpu-not-enrolled",
        kind=_CONFIGURATION,
        scope=Scope.PROJECT,
        resource=Resource.ACCELERATOR,
        explanation="the project isn't enrolled for TPUs on Dataflow",
        advice="ask your Google account team to enrol the project; a GPU can be used meanwhile",
        example=(
            "[INVALID_FIELD_VALUE] 'Invalid value for field 'resource.instanceTemplate': Managed Instance Groups do not"
            " support Cloud TPUs. '."
        ),
        source=TPU_PAGE,
    ),
    row(
        r"\bNo available resources in specified reservations",
        code="reservation-shape",
        kind=_CONFIGURATION,
        scope=Scope.JOB,
        resource=Resource.ACCELERATOR,
        explanation="the reservation holds machines of another shape than the job's",
        advice="ask for the reservation's own machine type, accelerator and count",
        example="CONDITION_NOT_MET: No available resources in specified reservations 'acme-tpu'.",
        # Not seen in a job message yet; Compute Engine says it of single VMs.
        source="https://github.com/kubernetes/autoscaler, cloudprovider/gce/autoscaling_gce_client.go, 2025",
    ),
    row(
        r"Specified reservations? \[?[^\]\n]{0,200}\]? do(?:es)? not\s+exist|reservationAffinity",
        code="reservation-unknown",
        kind=_CONFIGURATION,
        scope=Scope.JOB,
        explanation="the reservation doesn't exist in the zone the service used",
        advice="pin the placement to the reservation's zone, and look at its name, project and machine shape",
        example=(
            "Startup of the worker pool in zone us-east5-a failed to bring up any of the desired 1 workers."
            " INVALID_FIELD_VALUE: Instance 'x' creation failed: Invalid value for field"
            " 'resource.reservationAffinity': '{ \"consumeReservationType\": \"SPECIFIC_ALLOCATION\"}'. Specified"
            " reservations [acme-tpu] do not exist."
        ),
        source=TPU_PAGE,
    ),
    row(
        rf"in an unrecognized zone|Job requests .{{0,60}}?\binvalid zone\b|zone '?(?P<zone>{ZONE})'? does not exist",
        code="zone-unknown",
        kind=_CONFIGURATION,
        scope=Scope.JOB,
        explanation="the service doesn't know the zone",
        advice="spell the zone as Compute Engine does",
        example="Bug details: Job requests a worker pool in an unrecognized zone. WORKER_POOL_ZONE_UNKNOWN.",
        source=JOB_LOGS,
    ),
)

NETWORK_ROWS: tuple[Rule, ...] = (
    row(
        r"IP_SPACE_EXHAUSTED",
        code="addresses-used-up",
        kind=_CONFIGURATION,
        scope=Scope.JOB,
        resource=Resource.ADDRESS,
        explanation="the subnetwork has no address left",
        advice="use a larger subnetwork, or fewer workers",
        example=(
            "Startup of the worker pool in zone us-central1-b failed to bring up any of the desired 4 workers."
            " IP_SPACE_EXHAUSTED: Instance 'x' creation failed: IP space of"
            " 'projects/acme/regions/us-central1/subnetworks/default' is exhausted."
        ),
        source=NETWORK_PAGE,
    ),
    row(
        rf"SUBNET(?:WORK)?_NOT_FOUND|Instance must be in the same region as the subnetwork|"
        rf"(?:Subn|N)etwork \S{{1,300}} is not\s+accessible to Dataflow Service\s+account|"
        rf"subnetworks/[^'\s]{{1,100}}' was not found in (?P<region>{REGION})",
        code="subnetwork-unknown",
        kind=_CONFIGURATION,
        scope=Scope.JOB,
        explanation="the network or subnetwork doesn't exist for this job",
        advice=(
            "give a subnetwork of the job's own region (write {{region}} in its name), and let the Dataflow service"
            " account use it in a shared VPC"
        ),
        example=(
            "Workflow failed. Causes: Subnetwork https://www.googleapis.com/compute/v1/projects/acme/regions/us-east1/"
            "subnetworks/x is not accessible to Dataflow Service account or does not exist"
        ),
        source=NETWORK_PAGE,
    ),
    row(
        r"referenced network resource\s+cannot be found|Subnetwork should be specified for custom subnetmode|"
        r"Cross-project references for this resource are not allowed|The URL is malformed|"
        r"does not support Private Google Access",
        code="network-options",
        kind=_CONFIGURATION,
        scope=Scope.JOB,
        explanation="the job can't use the network it asked for",
        advice="name network and subnetwork in full; without public addresses it needs Private Google Access",
        example=(
            "Invalid value for field 'resource.networkInterfaces[0]': Subnetwork should be specified for custom"
            " subnetmode network"
        ),
        source=NETWORK_PAGE,
    ),
)

REQUEST_ROWS: tuple[Rule, ...] = (
    row(
        r"There is already an active job named|\bALREADY_EXISTS\b|\balready exists\b",
        code="name-taken",
        kind=_CONFIGURATION,
        scope=Scope.JOB,
        explanation="a job of this name is already there",
        advice="look at that job first; then use another job_name or batch_id",
        example=(
            "The workflow could not be created. Causes: (a8f47b4f3654731d): There is already an active job named"
            " beamapp-0728180349-027689. If you want to submit a second job, try again by setting a different name."
        ),
        source=JOB_LOGS,
    ),
    row(
        r"job graph is too large|payload size exceeds the limit|exceeds the allowable limit|Request Entity Too Large|"
        r"staging file list exceeds size limit|resource\.properties\.metadata' is too large",
        code="too-large",
        kind=_CONFIGURATION,
        scope=Scope.JOB,
        explanation="the job's description is too large for the service",
        advice="keep data out of Create and out of DoFn instances, and stage fewer files",
        example="The job graph is too large. Please try again with a smaller job graph.",
        source=ERRORS_PAGE,
    ),
    row(
        r"Unable to expand file pattern|Staged package.{1,200}?is inaccessible|are reserved sharding specs|"
        r"Cannot read and write in different locations",
        code="files",
        kind=_CONFIGURATION,
        scope=Scope.JOB,
        explanation="a file or bucket the job names can't be used",
        advice="give each job its own temp_location, in a bucket of its own region that the workers may read and write",
        example=(
            "Workflow failed. Causes: S27:Write/PreFinalize failed., Internal Issue (1): 2:3, Unable to expand file"
            " pattern gs://acme-tmp/x"
        ),
        source=ERRORS_PAGE,
    ),
    row(
        r"Memory \d+ is less than required memory|below the 256m-per-core floor",
        code="spark-memory",
        kind=_CONFIGURATION,
        scope=Scope.JOB,
        explanation="the executors' memory doesn't fit their cores",
        advice="set spark.executor.memory to what this number of cores carries, and leave the overhead unset",
        example=(
            "INVALID_ARGUMENT: com.google.apps.framework.request.BadRequestException: Memory 65536 is less than"
            " required memory 67661"
        ),
        source="https://github.com/NVIDIA/cudf-spark-tools/issues/2091, 2026-05",
    ),
)
