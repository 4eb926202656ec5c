"""Who a connection is at Google: credentials, project and endpoints, as the google provider understands them."""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from airflow.sdk.exceptions import AirflowException

from airflow_accel_provider.exceptions import AcceleratorConfigurationError
from airflow_accel_provider.hooks._endpoints import Endpoints

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from airflow.sdk import Connection

_OURS = ("impersonation_chain", "quota_project_id")


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """What every call carries: google-auth credentials, the project, and where Google is."""

    connection_id: str
    credentials: Any
    project: str
    endpoints: Endpoints
    quota_project: str | None = None


def identity_of(
    connection: Connection,
    *,
    impersonation_chain: str | Sequence[str] | None = None,
    project_id: str | None = None,
    quota_project_id: str | None = None,
) -> Identity:
    """Return the identity that a connection describes; arguments win over what the connection says.

    Raises :class:`AcceleratorConfigurationError` naming the connection when it can't be used.
    """
    name = connection.conn_id
    _check_type(connection)
    extras = _extras(connection)
    endpoints = Endpoints.from_extras(extras, name)
    chain = _chain(impersonation_chain) or _chain(extras.get("impersonation_chain"))
    quota_project = quota_project_id or extras.get("quota_project_id") or None
    with _mistakes_of(name):
        hook = _hook_class()(SimpleNamespace(extra_dejson=extras), name)
        credentials, project = hook.get_credentials_and_project_id()
        if chain:
            *_, project_of_target = map(_project_of, chain)
            project = extras.get("project") or project_of_target
            credentials = _impersonated(credentials, chain, hook.scopes, endpoints)
        if quota_project:
            credentials = hook.charged_to(credentials, quota_project)
    return Identity(
        connection_id=name,
        credentials=credentials,
        project=_known_project(project_id or project, name),
        endpoints=endpoints,
        quota_project=quota_project,
    )


def is_anonymous(credentials: Any) -> bool:
    """Tell whether these credentials are no credentials."""
    from google.auth.credentials import AnonymousCredentials

    return isinstance(credentials, AnonymousCredentials)


def _check_type(connection: Connection) -> None:
    type_ = (connection.conn_type or "").replace("-", "_")
    # The google provider registers sub-types of its own (gcpbigquery, gcpcloudsql, …) with the same fields.
    if type_ != "google_cloud_platform" and not type_.startswith("gcp"):
        raise AcceleratorConfigurationError(
            f"Connection {connection.conn_id!r} is of type {connection.conn_type!r}; "
            "running jobs on Google Cloud needs one of type 'google_cloud_platform'"
        )


def _extras(connection: Connection) -> dict[str, Any]:
    """Return the extras without the prefix that old connections carry."""
    try:
        parsed = json.loads(connection.extra or "{}")
    except ValueError:
        parsed = None
    if not isinstance(parsed, dict):
        raise AcceleratorConfigurationError(f"Connection {connection.conn_id!r}: its extra is not a JSON object")
    prefix = "extra__google_cloud_platform__"
    # Read through Airflow, which also masks what is secret in the logs.
    extras = connection.extra_dejson
    return {name.removeprefix(prefix): value for name, value in extras.items() if value not in ("", None)}


def _chain(said: str | Sequence[str] | None) -> tuple[str, ...]:
    accounts = said.split(",") if isinstance(said, str) else said or ()
    return tuple(account.strip() for account in accounts if account.strip())


def _project_of(account: str) -> str:
    """Return the project of a service account, which the google provider takes for the project of an impersonation."""
    name, at, domain = account.partition("@")
    if not (name and at and domain):
        raise ValueError(f"impersonation_chain: {account!r} is not the e-mail address of a service account")
    return domain.partition(".")[0]


def _known_project(project: object, connection_id: str) -> str:
    if not project:
        raise AcceleratorConfigurationError(
            f"Connection {connection_id!r}: no project is known; give project_id=, or set the connection's project"
        )
    return str(project)


def _impersonated(source: Any, chain: Sequence[str], scopes: Sequence[str], endpoints: Endpoints) -> Any:
    from google.auth import impersonated_credentials

    *delegates, target = chain
    endpoint = None
    if endpoints.override("iamcredentials"):
        endpoint = endpoints.url("iamcredentials", f"projects/-/serviceAccounts/{target}:generateAccessToken")
    return impersonated_credentials.Credentials(
        source_credentials=source,
        target_principal=target,
        delegates=delegates or None,
        target_scopes=list(scopes),
        iam_endpoint_override=endpoint,
    )


@contextmanager
def _mistakes_of(connection_id: str) -> Iterator[None]:
    """Turn what the libraries say of bad credentials into one sentence that names the connection."""
    from google.api_core.exceptions import GoogleAPIError
    from google.auth.exceptions import GoogleAuthError

    try:
        yield
    except (AirflowException, GoogleAPIError, GoogleAuthError, OSError, ValueError, KeyError, TypeError) as error:
        said = f"{error.args[0]!r} is missing" if isinstance(error, KeyError) else str(error)
        raise AcceleratorConfigurationError(
            f"Connection {connection_id!r} gives no usable credentials: {said}"
        ) from error


@cache
def _hook_class() -> Any:
    """Return the google provider's hook, reading a connection that is already at hand.

    Importing it takes seconds, so it happens when the first session is built.
    """
    from airflow.providers.google.common.hooks.base_google import GoogleBaseHook

    class ConnectionAtHand(GoogleBaseHook):
        """Credentials of the connection itself: impersonation and quota project are added outside."""

        def __init__(self, connection: Any, name: str) -> None:
            self._connection = connection
            super().__init__(gcp_conn_id=name)
            self.extras = {key: value for key, value in self.extras.items() if key not in _OURS}

        def get_connection(self, conn_id: str) -> Any:  # type: ignore[override]  # noqa: ARG002
            return self._connection

        def charged_to(self, credentials: Any, quota_project: str) -> Any:
            self._validate_quota_project(quota_project)
            return credentials.with_quota_project(quota_project)

    return ConnectionAtHand
