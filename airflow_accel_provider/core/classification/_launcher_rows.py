"""Rows about the launcher: the small VM that builds a Flex Template's job before any accelerator is asked for.

They come first, because their texts carry the same codes as a worker's; another accelerator would change nothing.
"""

from __future__ import annotations

from airflow_accel_provider.core.classification._rule import Rule, row
from airflow_accel_provider.core.classification._sources import (
    ERRORS_PAGE,
    JOB_LOGS,
    NETWORK_PAGE,
    TEMPLATES_PAGE,
)
from airflow_accel_provider.core.failures import FailureKind, Resource, Scope

_LAUNCHER = r"Failed to start the VM, launcher-\S{0,80}, used for launching"

LAUNCHER_ROWS: tuple[Rule, ...] = (
    row(
        _LAUNCHER + r".{0,400}?\bPERMISSION_DENIED\b",
        code="launcher-permission",
        kind=FailureKind.PERMISSION,
        scope=Scope.JOB,
        explanation="the launcher VM may not be created",
        advice="grant the caller compute.instances.create and the use of the launcher's service account",
        example=(
            "Failed to start the VM, launcher-2021120604300713, used for launching because of status code:"
            " PERMISSION_DENIED, reason: Required 'compute.subnetworks.use' permission."
        ),
        source=TEMPLATES_PAGE,
    ),
    row(
        _LAUNCHER + r".{0,400}?\b(?:INVALID_ARGUMENT|NOT_FOUND|FAILED_PRECONDITION)\b",
        code="launcher-configuration",
        kind=FailureKind.CONFIGURATION,
        scope=Scope.JOB,
        explanation="the launcher VM was refused",
        advice="look at network, subnetwork (of the job's own region) and machine type of the template's environment",
        example=(
            "Failed to start the VM, launcher-2021120604300713065380799072320283, used for launching because of status"
            " code: INVALID_ARGUMENT, reason: Error: Message: Invalid value for field"
            " 'resource.networkInterfaces[0].network': 'global/networks/default'. The referenced network resource"
            " cannot be found. HTTP Code: 400."
        ),
        source=NETWORK_PAGE,
    ),
    row(
        _LAUNCHER + r".{0,600}?\b(?:QUOTA_EXCEEDED|[Qq]uota)\b(?:.{0,40}?'(?P<metric>[A-Z0-9_]{3,80})')?",
        code="launcher-quota",
        kind=FailureKind.QUOTA,
        scope=Scope.REGION,
        resource=Resource.LAUNCHER,
        explanation="no quota for the launcher VM",
        advice="raise the CPU or address quota there or launch in another region; another accelerator changes nothing",
        example=(
            "Failed to start the VM, launcher-2025032012, used for launching because of status code:"
            " RESOURCE_EXHAUSTED, reason: One or more operations had an error: [QUOTA_EXCEEDED] 'Quota 'CPUS' exceeded."
            "  Limit: 8.0 in region us-central1.'"
        ),
        source=JOB_LOGS,
    ),
    row(
        _LAUNCHER + r".{0,600}?\b(?:ZONE_RESOURCE_POOL_EXHAUSTED|RESOURCE_EXHAUSTED|UNAVAILABLE|does not have enough)",
        code="launcher-stockout",
        kind=FailureKind.STOCKOUT,
        scope=Scope.ZONE,
        resource=Resource.LAUNCHER,
        explanation="no machine for the launcher VM",
        advice=(
            "try again, or give the launcher another machine type (launcherMachineType) or zone;"
            " another accelerator changes nothing"
        ),
        example=(
            "Failed to start the VM, launcher-202503201205381015983072114339861, used for launching because of status"
            " code: RESOURCE_EXHAUSTED, reason: One or more operations had an error:"
            " 'operation-1742497540436-630cad2eb70b1-13691487-5f5d03c2': [ZONE_RESOURCE_POOL_EXHAUSTED] 'The zone"
            " 'projects/acme/zones/us-central1-f' does not have enough resources available to fulfill the request."
            "  Try a different zone, or try again later.'.."
        ),
        source=TEMPLATES_PAGE,
    ),
    row(
        r"Timeout in polling result file|Failed to read the (?:job|result) file ?:",
        code="launcher-polling",
        kind=FailureKind.CONFIGURATION,
        scope=Scope.JOB,
        explanation="ambiguous: the launcher never reported back",
        advice=(
            "look for a launch that takes too long, a service account without access to the template's image or bucket,"
            " a launcher without network, or a changed entry point"
        ),
        example="Timeout in polling result file: gs://acme-tmp/staging/template_launches/x/operation_result.",
        source=TEMPLATES_PAGE,
        ambiguous=True,
    ),
    row(
        r"Template launch failed(?:: exit status \d+|\. See console logs)",
        code="launcher-program",
        kind=FailureKind.USER_CODE,
        scope=Scope.JOB,
        explanation="the template's program failed while it built the job",
        advice="read the launcher's log: a missing option or dependency is the usual cause",
        example="Error occurred in the launcher container: Template launch failed. See console logs.",
        source=ERRORS_PAGE,
    ),
)
