"""One call, from routing to the ledger: who calls, what was wished to go wrong, what the handler answers."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING
from urllib.parse import parse_qs

from airflow_accel_provider.emulator.faults import Action
from airflow_accel_provider.emulator.routes import Routes
from airflow_accel_provider.emulator.shapes import check_shape, takes_json
from airflow_accel_provider.emulator.spoiling import spoiled
from airflow_accel_provider.emulator.wire import Call, GoogleError, Method, Reply

if TYPE_CHECKING:
    from collections.abc import Iterable

    from airflow_accel_provider.emulator.state import Google

_LOG = logging.getLogger(__name__)

_ERRORS = 400
_MISSING = "Request is missing required authentication credential. "
_INVALID = "Request had invalid authentication credentials. "
_EXPECTED = (
    "Expected OAuth 2 access token, login cookie or other valid authentication credential. "
    "See https://developers.google.com/identity/sign-in/web/devconsole-project."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Incoming:
    """A request before routing: ``path`` and ``query`` as they came, still encoded; header names in lower case."""

    verb: str
    path: str
    query: str
    headers: Mapping[str, str]
    body: bytes
    base_url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What goes back: the answer, and whether the connection is to be ``cut`` without or ``halved`` within it.

    ``skew`` is how many seconds its date is ahead.
    """

    reply: Reply
    method: str | None = None
    cut: bool = False
    halved: bool = False
    skew: float = 0.0


class Dispatcher:
    """Answers requests, whether they come alone or inside a batch. Blocks; safe in any thread."""

    def __init__(self, google: Google, methods: Iterable[Method]) -> None:
        self.google = google
        self.routes = Routes(tuple(methods))

    def answer(self, incoming: Incoming) -> Outcome:
        """Return the outcome of one request; it never raises."""
        try:
            method, path = self.routes.find(incoming.verb, incoming.path)
        except GoogleError as error:
            return Outcome(reply=error_reply(error))
        call = Call(
            method=method.id,
            path=path,
            query={name: tuple(values) for name, values in parse_qs(incoming.query, keep_blank_values=True).items()},
            headers=incoming.headers,
            body=incoming.body,
            principal=None,
            base_url=incoming.base_url,
            google=self.google,
        )
        try:
            call = replace(call, principal=self._principal(call, method))
            outcome = self._with_faults(call, method)
        except GoogleError as error:
            outcome = Outcome(reply=error_reply(error), method=method.id)
        status = 0 if outcome.cut else outcome.reply.status
        self.google.ledger.call(call.method, path=path, query=call.query, principal=call.principal, status=status)
        return outcome

    def _principal(self, call: Call, method: Method) -> str | None:
        scheme, _, bearer = call.headers.get("authorization", "").partition(" ")
        if not bearer:
            if method.open:
                return None
            raise GoogleError(401, _MISSING + _EXPECTED)
        principal = self.google.identities.principal(bearer.strip()) if scheme.lower() == "bearer" else None
        if principal is None:
            raise GoogleError(401, _INVALID + _EXPECTED)
        return principal

    def _with_faults(self, call: Call, method: Method) -> Outcome:
        fault = self.google.faults.take(method.id)
        if fault:
            self.google.ledger.event("fault.met", method=method.id, action=fault.told)
        fault = fault or Action()
        if fault.delay and not self.google.pause(fault.delay):
            return Outcome(reply=Reply(), method=method.id, cut=True)
        if fault.status is not None:
            return Outcome(reply=_fault_reply(fault, fault.status, method), method=method.id)
        if fault.reset == "before":
            return Outcome(reply=Reply(), method=method.id, cut=True)
        reply = _spoiled(_handle(call, method), fault)
        return Outcome(
            reply=reply, method=method.id, cut=fault.reset == "after", halved=fault.truncate, skew=fault.skew
        )


def _handle(call: Call, method: Method) -> Reply:
    try:
        if takes_json(method.id) and not is_upload(method.path):
            check_shape(method.id, call.json())
        reply = method.handler(call)
    except GoogleError as error:
        return error_reply(error)
    except Exception:  # noqa: BLE001 (a client must never see a traceback; the log does)
        _LOG.exception("The handler of %s failed", method.id)
        return error_reply(GoogleError(500, "Internal error encountered."))
    return reply if isinstance(reply, Reply) else Reply(body=reply)


def _spoiled(reply: Reply, fault: Action) -> Reply:
    """Return an answer as the fault has it told; errors and contents of files are told as they are."""
    if not isinstance(reply.body, Mapping) or reply.status >= _ERRORS:
        return reply
    return replace(reply, body=spoiled(reply.body, missing=fault.missing, instead=fault.instead, skew=fault.skew))


def is_upload(path: str) -> bool:
    """Tell whether a path is one of those that take bytes rather than JSON."""
    return path.startswith("/upload/")


def error_reply(error: GoogleError) -> Reply:
    """Return an error in Google's form."""
    challenge = {"WWW-Authenticate": 'Bearer realm="https://accounts.google.com/"'} if error.status == 401 else {}
    # "Not modified" is told by the status alone; HTTP allows it no body.
    body = None if error.status == 304 else error.body()
    return Reply(status=error.status, body=body, headers=challenge)


def _fault_reply(fault: Action, status: int, method: Method) -> Reply:
    headers = {} if fault.retry_after is None else {"Retry-After": str(fault.retry_after)}
    if fault.html is not None:
        return Reply(status=status, body=fault.html.encode(), content_type="text/html; charset=UTF-8", headers=headers)
    message = fault.message or "The service is currently unavailable."
    if method.errors:
        return replace(method.errors(status, message), headers=headers)
    return replace(error_reply(GoogleError(status, message)), headers=headers)


def encode(reply: Reply) -> bytes:
    """Return the bytes of an answer's body."""
    if reply.body is None:
        return b""
    return reply.body if isinstance(reply.body, bytes) else json.dumps(reply.body).encode()
