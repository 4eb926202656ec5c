"""Rows about machines that weren't there: nothing is wrong with the job, another place may take it."""

from __future__ import annotations

from airflow_accel_provider.core.classification._rule import ZONE, Meaning, Rule, row
from airflow_accel_provider.core.classification._sources import (
    ERRORS_PAGE,
    JOB_LOGS,
    SPARK_FLEX_PAGE,
    TPU_PAGE,
)
from airflow_accel_provider.core.failures import FailureKind, Resource, Scope

_STOCKOUT = FailureKind.STOCKOUT
_ELSEWHERE = "another zone, then another region or accelerator; leave the zone out to let the service choose"
_PLAIN_MACHINE = r"(?:n\d\w?|e2|c\d\w?|t2\w|m\d|custom)-[a-z0-9-]{1,40}"
_RESERVED = Meaning(
    kind=FailureKind.CONFIGURATION,
    scope=Scope.JOB,
    explanation="the reservation has no room left for this job",
    advice="free or enlarge the reservation, ask for fewer workers, or leave reservation= out to run on demand",
    resource=Resource.ACCELERATOR,
)

CAPACITY_ROWS: tuple[Rule, ...] = (
    row(
        r"\([^()\n]{0,40}resource type: ?(?:pd|hyperdisk|local)-[a-z-]{2,20}\)",
        code="stockout-disk",
        kind=_STOCKOUT,
        scope=Scope.ZONE,
        resource=Resource.DISK,
        explanation="the zone has no such disk left",
        advice="another zone, or another disk type; another accelerator changes nothing",
        example=(
            "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS The zone 'projects/acme/zones/us-central1-f' does not have"
            " enough resources available to fulfill the request. '(resource type:pd-standard)'."
        ),
        source="https://github.com/cirruslabs/cirrus-ci-docs/issues/131, 2019-01",
    ),
    row(
        rf"An? {_PLAIN_MACHINE} VM instance is\s+currently\s+unavailable(?: in the\s+(?P<zone>{ZONE})\s+zone)?|"
        # An accelerator that was attached would be named before the machine.
        rf"metadatas[\"']?:\s{{0,12}}\{{?\s{{0,12}}[\"']?vmType[\"']?:\s?[\"']?{_PLAIN_MACHINE}",
        code="stockout-cpu",
        kind=_STOCKOUT,
        scope=Scope.ZONE,
        resource=Resource.CPU,
        explanation="the zone has no such machine left; it isn't the accelerator that is short",
        advice="another zone, or another machine type; another accelerator on the same machine changes nothing",
        example="A n2-standard-32 VM instance is currently unavailable in the us-east4-a zone.",
        source="https://github.com/GoogleCloudPlatform/DataflowTemplates/issues/1489, 2024-04",
    ),
    row(
        r"[Ii]nsufficient reserved capacity",
        code="reserved-capacity",
        kind=_STOCKOUT,
        scope=Scope.ZONE,
        resource=Resource.ACCELERATOR,
        explanation="zone out of TPUs (no reservation was asked for, so the words about one mean the zone)",
        advice=_ELSEWHERE,
        example="Insufficient reserved capacity. Contact customer support to increase your reservation.",
        source="https://github.com/skypilot-org/skypilot/issues/4579, 2025-01",
        when_reserved=_RESERVED,
    ),
    row(
        r"[Rr]eservation\b.{0,120}?\b(?:does not have (?:enough|sufficient|available) (?:resources|capacity)|"
        r"is fully used)|it requires reservation to be in READY state",
        code="reservation-full",
        kind=_STOCKOUT,
        scope=Scope.ZONE,
        resource=Resource.ACCELERATOR,
        explanation=_RESERVED.explanation,
        advice=_RESERVED.advice,
        example="Specified reservation acme-tpu does not have available resources for the request.",
        # Not seen in a job message yet; Compute Engine says it of single VMs.
        source="https://github.com/kubernetes/autoscaler, cloudprovider/gce/autoscaling_gce_client.go, 2025",
    ),
    row(
        r"ZONE_RESOURCE_POOL_EXHAUSTED|\b[Nn]ot\s+(?:have\s+)?enough\s+resources\s+available|\bSTOCKOUT\b|"
        r"reason\"?'?:?\s*[\"']?resource_availability|VM instance with \d+ \S{1,60} accelerator.{1,40}unavailable|"
        rf"VM instance is\s+currently\s+unavailable in the\s+{ZONE}\s+zone",
        code="stockout",
        kind=_STOCKOUT,
        scope=Scope.ZONE,
        resource=Resource.ACCELERATOR,
        explanation="zone pool exhausted",
        advice=_ELSEWHERE,
        example=(
            "Startup of the worker pool in zone us-central1-a failed to bring up any of the desired 1 workers."
            " ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS: The zone 'projects/p/zones/us-central1-a' does not have enough"
            " resources available to fulfill the request. (resource type:compute)"
        ),
        source=ERRORS_PAGE,
    ),
    row(
        r"no more capacity in the zone(?: \"(?P<zone>[a-z0-9-]{5,30})\")?",
        code="stockout-tpu",
        kind=_STOCKOUT,
        scope=Scope.ZONE,
        resource=Resource.ACCELERATOR,
        explanation="zone out of TPUs",
        advice=_ELSEWHERE,
        example='There is no more capacity in the zone "us-central1-b"; you can try in another zone',
        source="https://github.com/GoogleCloudPlatform/magic-modules/pull/7297, 2023-02",
    ),
    row(
        r"allocation(?:T| [tT])imeout|[tT]imed out (?:while )?waiting for (?:resources|capacity|provisioning)",
        code="allocation-timeout",
        kind=_STOCKOUT,
        scope=Scope.REGION,
        resource=Resource.ACCELERATOR,
        explanation="the region had no accelerator within the allocation timeout",
        advice=(
            "another region or accelerator; a longer"
            " spark.dataproc.executor.provisioning.allocationTimeout (at most 7200s) waits longer"
        ),
        example="Batch failed: spark.dataproc.executor.provisioning.allocationTimeout of 3600s passed.",
        source=f"{SPARK_FLEX_PAGE}; the page names the property, the failure's full text isn't published",
    ),
    row(
        rf"The resource '[^'\n]{{0,200}}/zones/(?P<zone>{ZONE})/(?:accelerator|machine)Types/[^'\n]{{1,80}}' was"
        r"\s+not\s+found|RESOURCE_NOT_FOUND\b.{0,160}?/(?:accelerator|machine)Types/|"
        r"Machine type with name '[^'\n]{1,60}' does not exist in zone|"
        r"Unable to get machine type information for machine type",
        code="not-offered",
        kind=FailureKind.NOT_OFFERED,
        scope=Scope.ZONE,
        resource=Resource.ACCELERATOR,
        explanation="{zone} does not offer it",
        advice="a zone that has it: accel catalog lists them",
        example=(
            "RESOURCE_NOT_FOUND: The resource 'projects/p/zones/us-east1-a/acceleratorTypes/nvidia-l4' was not found."
        ),
        source=JOB_LOGS,
    ),
    row(
        r"[Ii]nstance (?:'[^'\n]{1,80}' )?was preempted|compute\.instances\.preempted",
        code="preempted",
        kind=FailureKind.PREEMPTED,
        scope=Scope.ZONE,
        resource=Resource.ACCELERATOR,
        explanation="the workers were preempted",
        advice="try again, or run on demand there",
        example="Instance was preempted.",
        source="Compute Engine's system event compute.instances.preempted, not seen in a job message yet",
    ),
)

AMBIGUOUS_ROWS: tuple[Rule, ...] = (
    row(
        r"project quota may have been exceeded or access control policies",
        code="quota-or-policy",
        # A quota is the commoner cause and the only one that another region can mend; a policy costs no more than the
        # minutes of the tries that meet it again.
        kind=FailureKind.QUOTA,
        scope=Scope.REGION,
        explanation="ambiguous: a quota of the region is used up, or a policy forbids the workers",
        advice=(
            "compare CPUS, DISKS_TOTAL_GB, IN_USE_ADDRESSES and INSTANCES with what the job asks for: if one is short,"
            " raise it or take another region; if all have room, look for an organisation policy in the VM instance log"
        ),
        example=(
            "Startup of the worker pool in zone us-central1-a failed to bring up any of the desired 1 workers. The"
            " project quota may have been exceeded or access control policies may be preventing the operation; review"
            " the Cloud Logging 'VM Instance' log for diagnostics."
        ),
        source=ERRORS_PAGE,
        ambiguous=True,
    ),
    row(
        r"no worker activity\s+has been seen|[Jj]ob appears to be stuck",
        code="stuck",
        kind=_STOCKOUT,
        scope=Scope.ZONE,
        resource=Resource.ACCELERATOR,
        explanation=(
            "ambiguous: no worker ever came up and the service gave the job up as stuck,"
            " most likely for want of machines"
        ),
        advice="another zone or a reservation; if it comes again, look for container errors in the worker-startup log",
        example="The job appears to be stuck because no worker activity has been seen in the last 25m.",
        source=TPU_PAGE,
        when_started=Meaning(
            kind=FailureKind.CONFIGURATION,
            scope=Scope.JOB,
            explanation="workers came up but never reported for work",
            advice=(
                "look in the worker-startup and docker logs: an image that crashes or has another Python or Beam"
                " version, or a network that keeps workers from Google's APIs"
            ),
        ),
        ambiguous=True,
    ),
)
