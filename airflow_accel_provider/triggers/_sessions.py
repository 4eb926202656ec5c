"""The sessions of a triggerer: one for each identity, however many triggers speak through it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from airflow.sdk.exceptions import AirflowNotFoundException

from airflow_accel_provider.exceptions import AcceleratorConfigurationError, GoogleApiError
from airflow_accel_provider.hooks.session import GoogleSession

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Who:
    """The identity a session is made for; equal ones share a session and its polls."""

    gcp_conn_id: str
    impersonation_chain: tuple[str, ...] = ()
    project_id: str | None = None
    quota_project_id: str | None = None

    async def session(self) -> GoogleSession:
        """Read the connection and return a session for it.

        The connection is read with Airflow's asynchronous getter, as a trigger must; the rest (credential files,
        imports that take seconds) happens in a thread. Raises :class:`AcceleratorConfigurationError`.
        """
        from airflow.sdk import BaseHook

        try:
            connection = await BaseHook.aget_connection(self.gcp_conn_id)
        except AirflowNotFoundException as error:
            raise AcceleratorConfigurationError(str(error)) from error
        return await asyncio.to_thread(
            GoogleSession.from_connection,
            connection,
            impersonation_chain=list(self.impersonation_chain) or None,
            project_id=self.project_id,
            quota_project_id=self.quota_project_id,
        )


class Sessions:
    """The sessions of one event loop, each made once for all who ask at the same time."""

    def __init__(self) -> None:
        self._made: dict[Who, asyncio.Task[GoogleSession]] = {}

    async def call(self, who: Who, do: Callable[[GoogleSession], T]) -> T:
        """Return what a blocking call gives, made in a thread with the identity's session.

        When Google refuses the credentials, the connection is read once more: its key may have been changed.
        """
        try:
            return await asyncio.to_thread(do, await self._of(who))
        except GoogleApiError as error:
            if error.status != 401:
                raise
        self.forget(who)
        return await asyncio.to_thread(do, await self._of(who))

    def forget(self, who: Who) -> None:
        """Have the next call read the connection anew."""
        self._made.pop(who, None)

    async def _of(self, who: Who) -> GoogleSession:
        if who not in self._made:
            self._made[who] = asyncio.create_task(who.session())
        made = self._made[who]
        try:
            # Shielded, since the first to ask may be cancelled while others wait.
            return await asyncio.shield(made)
        except Exception:
            if self._made.get(who) is made:
                self.forget(who)
            raise
