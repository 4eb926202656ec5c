"""Airflow connections to an emulator, and sessions made of them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from airflow.sdk import Connection

from airflow_accel_provider.hooks.session import GoogleSession

if TYPE_CHECKING:
    from emulators import Emulator


def connection(emulator: Emulator, identity: str = "airflow", **extras: Any) -> Connection:
    """Return a connection with an identity's key inside; extras that are ``None`` leave the usual ones out."""
    said = {
        "keyfile_dict": emulator.keys[identity].read_text(),
        "project": emulator.project,
        "endpoint_url": emulator.url,
        **extras,
    }
    return plain_connection(**{name: value for name, value in said.items() if value is not None})


def plain_connection(conn_type: str = "google_cloud_platform", **extras: Any) -> Connection:
    """Return a connection with just these extras."""
    return Connection(conn_id="gcp", conn_type=conn_type, extra=json.dumps(extras))


def google_session(emulator: Emulator, identity: str = "airflow", **arguments: Any) -> GoogleSession:
    """Return a session of an identity, with the arguments of ``from_connection``."""
    return GoogleSession.from_connection(connection(emulator, identity), **arguments)
