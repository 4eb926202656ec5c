"""Who may speak to the emulator at all: programs on this machine, and no web page in a browser on it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from airflow_accel_provider.emulator.wire import GoogleError

if TYPE_CHECKING:
    from collections.abc import Mapping

HOST = re.compile(r"(localhost|127\.0\.0\.1)(:\d+)?", re.IGNORECASE)


def check_gate(headers: Mapping[str, str]) -> None:
    """Raise 403 for a request that a web page of another site could have made a browser send.

    A foreign ``Host`` is a name of somebody else's that was pointed at loopback; a foreign ``Origin`` or
    ``Sec-Fetch-Site`` is a page of another site. Google's clients send neither.
    """
    host = headers.get("host", "")
    if HOST.fullmatch(host) is None:
        raise GoogleError(403, f"The Host {host!r} is not this machine; use http://localhost.")
    origin = headers.get("origin")
    if origin is not None and origin != f"http://{host}":
        raise GoogleError(403, f"Requests from the origin {origin!r} are refused.")
    if headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
        raise GoogleError(403, "Requests from other sites are refused.")
