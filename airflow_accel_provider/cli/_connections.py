"""The connection that a command speaks through: one in the environment, else Google's default credentials."""

from __future__ import annotations

import argparse
import json
import os
import sys
from contextlib import contextmanager, redirect_stdout
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from airflow.sdk import Connection

    from airflow_accel_provider.hooks.session import GoogleSession

DEFAULT_CONNECTION = "google_cloud_default"


def add_connection(parser: argparse.ArgumentParser) -> None:
    """Declare the flags that say who asks Google, where, and about which project."""
    parser.add_argument("--conn-id", help=f"an Airflow connection in the environment (default: {DEFAULT_CONNECTION})")
    parser.add_argument("--project", help="project to look at (default: the connection's)")
    parser.add_argument("--endpoint-url", metavar="URL", help="where Google is, for a local one")


@contextmanager
def logs_apart() -> Iterator[None]:
    """Send what Airflow logs, by default to stdout, where it does not mix with answers."""
    with redirect_stdout(sys.stderr):
        yield


def session_of(arguments: argparse.Namespace) -> GoogleSession:
    """Return the session that the flags name. Raises :class:`AcceleratorConfigurationError`."""
    from airflow_accel_provider.hooks.session import GoogleSession

    said = {"default": arguments.conn_id or DEFAULT_CONNECTION, "endpoint_url": arguments.endpoint_url}
    return GoogleSession.from_connection(told_connection(arguments.conn_id, **said), project_id=arguments.project)


def told_connection(asked: str | None, *, default: str, endpoint_url: str | None) -> Connection:
    """Return the connection ``asked`` for, else ``default``; an ``endpoint_url`` replaces its address of Google.

    Where the environment has none of Airflow's default name, Google's default credentials are used; a name that was
    asked for must be there. Raises :class:`AcceleratorConfigurationError`.
    """
    from airflow.sdk import Connection

    from airflow_accel_provider.exceptions import AcceleratorConfigurationError

    conn_id = asked or default
    connection = _from_environment(conn_id)
    if connection is None and (asked or conn_id != DEFAULT_CONNECTION):
        raise AcceleratorConfigurationError(
            f"There is no connection {conn_id!r} in the environment; export {_variable(conn_id)}, "
            "or leave it out to use Google's default credentials with --project"
        )
    found = connection or Connection(conn_id=conn_id, conn_type="google_cloud_platform")
    if not endpoint_url:
        return found
    extra = json.dumps({**found.extra_dejson, "endpoint_url": endpoint_url})
    return Connection(conn_id=conn_id, conn_type=found.conn_type, extra=extra)


def _from_environment(conn_id: str) -> Connection | None:
    """Return the connection that ``AIRFLOW_CONN_…`` holds, as JSON or as a URI, or ``None``."""
    from airflow.sdk import Connection

    said = os.environ.get(_variable(conn_id))
    if not said:
        return None
    if said.lstrip().startswith("{"):
        return Connection.from_json(said, conn_id)
    return Connection.from_uri(said, conn_id)


def _variable(conn_id: str) -> str:
    return f"AIRFLOW_CONN_{conn_id.upper()}"
