"""Rows about what the organisation or the project doesn't allow yet."""

from __future__ import annotations

from airflow_accel_provider.core.classification._rule import Rule, row
from airflow_accel_provider.core.classification._sources import ERRORS_PAGE, SPARK_GPU_PAGE
from airflow_accel_provider.core.failures import FailureKind, Resource, Scope

POLICY_ROWS: tuple[Rule, ...] = (
    row(
        r"constraints/compute\.requireShieldedVm|requireShieldedVm",
        code="policy-shielded",
        kind=FailureKind.PERMISSION,
        scope=Scope.PROJECT,
        explanation="the organisation demands shielded VMs (constraints/compute.requireShieldedVm)",
        advice="GPU batches can't run under it: have the policy lifted for this project",
        example="Constraint constraints/compute.requireShieldedVm violated for project acme.",
        source=SPARK_GPU_PAGE,
    ),
    row(
        r"constraints/compute\.vmExternalIpAccess",
        code="policy-address",
        kind=FailureKind.PERMISSION,
        scope=Scope.PROJECT,
        resource=Resource.ADDRESS,
        explanation="the organisation forbids public addresses (constraints/compute.vmExternalIpAccess)",
        advice="set use_public_ips=False and give a subnetwork with Private Google Access",
        example="Constraint constraints/compute.vmExternalIpAccess violated for project 58731396595.",
        source=ERRORS_PAGE,
    ),
    row(
        r"prohibited by organization's policy|VPC_SERVICE_CONTROLS|vpcServiceControlsUniqueIdentifier",
        code="perimeter",
        kind=FailureKind.PERMISSION,
        scope=Scope.PROJECT,
        explanation="a service perimeter (VPC Service Controls) forbids it",
        advice="keep buckets, images and project in one perimeter, or add an egress rule",
        example='{"code":403,"message":"Request is prohibited by organization\'s policy"}',
        source=ERRORS_PAGE,
    ),
    row(
        r"\b(?P<policy>constraints/[a-z]{1,40}\.[A-Za-z]{1,80})",
        code="policy",
        kind=FailureKind.PERMISSION,
        scope=Scope.PROJECT,
        explanation="an organisation policy forbids it ({policy})",
        advice="choose what the policy allows, or have it changed for this project",
        example="Constraint constraints/gcp.resourceLocations violated for projects/acme.",
        source=ERRORS_PAGE,
    ),
    row(
        r"[Ff]ailed to get secure tag key",
        code="tag-key",
        kind=FailureKind.PERMISSION,
        scope=Scope.PROJECT,
        explanation="runtime 3.0 can't read its tag key",
        advice="enable the Cloud Resource Manager API (and the Dataproc Resource Manager API) in the project",
        example=(
            "Failed to get secure tag key: Cloud Resource Manager API has not been used in project 1 before or it is"
            " disabled."
        ),
        source="field reports on Dataproc Serverless runtime 3.0, 2026",
    ),
    row(
        r"Some Cloud APIs need to be enabled|SERVICE_DISABLED|API has not been used in project .{1,80} disabled|"
        r"accessNotConfigured",
        code="api-disabled",
        kind=FailureKind.PERMISSION,
        scope=Scope.PROJECT,
        explanation="an API isn't enabled in the project",
        advice="enable the API the message names (Dataflow jobs need Compute Engine, Logging and Storage)",
        example="Some Cloud APIs need to be enabled for your project in order for Cloud Dataflow to run this job.",
        source=ERRORS_PAGE,
    ),
)
