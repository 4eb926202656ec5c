"""What tasks take from Airflow and must not show: connections, and options with the name of a secret."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseHook
from airflow.sdk._shared.secrets_masker import redact
from airflow.sdk.exceptions import AirflowNotFoundException
from airflow.sdk.log import mask_secret

from airflow_accel_provider.exceptions import AcceleratorConfigurationError

if TYPE_CHECKING:
    from airflow.sdk import Connection


def named_connection(conn_id: str) -> Connection:
    """Return a connection; raise :class:`AcceleratorConfigurationError` when Airflow has none of this name."""
    try:
        return BaseHook.get_connection(conn_id)
    except AirflowNotFoundException as missing:
        raise AcceleratorConfigurationError(
            f"Airflow has no connection {conn_id!r}; make one of type google_cloud_platform"
        ) from missing


def hide(options: Iterable[Mapping[str, Any]]) -> None:
    """Have Airflow mask the values of options whose names are those of secrets (``token``, ``api_key``, …)."""
    for each in options:
        mask_secret(dict(each))


def hidden(text: str) -> str:
    """Return a text without the secrets that Airflow knows."""
    return str(redact(text))
