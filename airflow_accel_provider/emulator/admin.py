"""The emulator's own API, below ``/_emulator/``: what happened, which world it is, what is to go wrong.

It also takes the programs that stand for template images, and what became of the accounts.
"""

from __future__ import annotations

import difflib
import json
import os
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

from airflow_accel_provider.emulator.dispatch import Dispatcher, Incoming, error_reply
from airflow_accel_provider.emulator.identity import NAMES
from airflow_accel_provider.emulator.identity.standing import STANDINGS
from airflow_accel_provider.emulator.wire import GoogleError, Reply
from airflow_accel_provider.emulator.worlds import WORLD_NAMES

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

PREFIX = "/_emulator/"


class Admin:
    """Answers the paths below ``PREFIX``. It asks for no token: who may connect to loopback may use it."""

    def __init__(self, dispatcher: Dispatcher) -> None:
        self._google = dispatcher.google
        self._methods = dispatcher.routes.methods
        self._routes: Mapping[tuple[str, str], Callable[[Incoming], Mapping[str, Any]]] = {
            ("GET", "health"): self._health,
            ("GET", "ledger"): self._ledger,
            ("GET", "world"): self._world,
            ("PUT", "world"): self._enter,
            ("GET", "templates"): self._templates,
            ("PUT", "templates"): self._add_templates,
            ("GET", "accounts"): self._accounts,
            ("PUT", "accounts"): self._put_accounts,
            ("GET", "faults"): self._faults,
            ("POST", "faults"): self._add_fault,
            ("DELETE", "faults"): self._clear_faults,
        }

    def answer(self, incoming: Incoming) -> Reply:
        """Return the answer of one admin request; it never raises for what the caller did."""
        name = incoming.path.removeprefix(PREFIX).rstrip("/")
        route = self._routes.get((incoming.verb, name))
        try:
            if route is None:
                raise self._not_found(incoming.verb, name)
            return Reply(body=route(incoming))
        except GoogleError as error:
            return error_reply(error)

    def _not_found(self, verb: str, name: str) -> GoogleError:
        verbs = sorted(known for known, path in self._routes if path == name)
        if verbs:
            return GoogleError(405, f"{verb} is not allowed here; {' or '.join(verbs)} is.")
        names = ", ".join(sorted({path for _, path in self._routes}))
        return GoogleError(404, f"There is no {PREFIX}{name}; there are: {names}.")

    def _health(self, _: Incoming) -> dict[str, Any]:
        google = self._google
        return {
            "status": "ok",
            "pid": os.getpid(),
            "url": google.url,
            "project": google.project,
            "world": google.world_name,
            "timeScale": google.time_scale,
        }

    def _ledger(self, incoming: Incoming) -> dict[str, Any]:
        query = parse_qs(incoming.query)
        method, since = query.get("method", [None])[-1], query.get("since", ["0"])[-1]
        if not since.isdigit():
            raise GoogleError(400, f"since {since!r} is not a sequence number of the ledger (a whole number).")
        ledger, last = self._google.ledger, self._google.ledger.last()
        # Events belong to no single method: asking for a method asks for calls alone.
        events = [] if method else ledger.events(since=int(since))
        return {"calls": ledger.calls(method=method, since=int(since)), "events": events, "last": last}

    def _world(self, _: Incoming) -> dict[str, Any]:
        return {"name": self._google.world_name, "names": list(WORLD_NAMES)}

    def _enter(self, incoming: Incoming) -> dict[str, Any]:
        name = _json_object(incoming.body).get("name")
        if not isinstance(name, str) or name not in WORLD_NAMES:
            near = difflib.get_close_matches(str(name), WORLD_NAMES, n=1)
            hint = f" Did you mean {near[0]}?" if near else ""
            raise GoogleError(400, f"There is no world {name!r}; there are: {', '.join(WORLD_NAMES)}.{hint}")
        self._google.enter(name)
        return self._world(incoming)

    def _templates(self, _: Incoming) -> dict[str, Any]:
        return {"templates": self._google.dataflow.templates.all()}

    def _add_templates(self, incoming: Incoming) -> dict[str, Any]:
        files = _json_object(incoming.body)
        if wrong := [image for image, file in files.items() if not isinstance(file, str)]:
            raise GoogleError(400, f"Each image takes the path of one Python file: {', '.join(wrong)}.")
        try:
            self._google.dataflow.templates.put(files)
        except ValueError as error:
            raise GoogleError(400, f"Nothing was changed: {error}.") from None
        return self._templates(incoming)

    def _accounts(self, _: Incoming) -> dict[str, Any]:
        standing = self._google.identities.standing
        return {"accounts": {name: standing.of(name) for name in NAMES}}

    def _put_accounts(self, incoming: Incoming) -> dict[str, Any]:
        wished = _json_object(incoming.body)
        unknown = sorted(set(wished) - set(NAMES))
        wrong = [f"there is no account {name!r} (there are: {', '.join(NAMES)})" for name in unknown]
        for name, standing in wished.items():
            if name in NAMES and standing not in STANDINGS:
                wrong.append(f"{name} {standing!r} is none of {', '.join(map(repr, STANDINGS))}")
        if wrong:
            raise GoogleError(400, f"Nothing was changed: {'; '.join(wrong)}.")
        self._google.identities.standing.put(wished)
        self._google.ledger.event("accounts.changed", **wished)
        return self._accounts(incoming)

    def _faults(self, _: Incoming) -> dict[str, Any]:
        return {"faults": self._google.faults.all()}

    def _add_fault(self, incoming: Incoming) -> dict[str, Any]:
        return self._google.faults.add(_json_object(incoming.body), methods=self._methods)

    def _clear_faults(self, incoming: Incoming) -> dict[str, Any]:
        self._google.faults.clear()
        return self._faults(incoming)


def _json_object(body: bytes) -> dict[str, Any]:
    try:
        value = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise GoogleError(400, f"The body is not JSON: {error}.") from None
    if not isinstance(value, dict):
        raise GoogleError(400, "The body is not a JSON object.")
    return value
