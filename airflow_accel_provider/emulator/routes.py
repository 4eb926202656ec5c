"""From a request's verb and path to an API method, or to the error that Google would answer."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote

from starlette.routing import compile_path

from airflow_accel_provider.emulator.documents import documents, methods
from airflow_accel_provider.emulator.wire import GoogleError, Method

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

# What stays as it is in a path segment. Everything else is compared in its %XX form, so that the slashes inside an
# object's name never look like the path's own.
PLAIN = "-._~:@$*,"
_PARAMETER = re.compile(r"\{\+?(\w+)\}")


@dataclass(frozen=True, slots=True)
class _Row:
    verb: str
    pattern: re.Pattern[str]
    method: Method


class Routes:
    """The methods there are, by verb and path."""

    def __init__(self, methods: Iterable[Method]) -> None:
        self.methods: Mapping[str, Method] = {method.id: method for method in methods}
        self._rows = [_Row(method.verb, compile_path(method.path)[0], method) for method in methods]

    def find(self, verb: str, raw_path: str) -> tuple[Method, dict[str, str]]:
        """Return the method and its path parameters; raise 501, 405 or 404 when there is none."""
        path = _canonical(raw_path)
        other_verbs = set()
        for row in self._rows:
            if match := row.pattern.match(path):
                if row.verb == verb:
                    return row.method, {name: unquote(value) for name, value in match.groupdict().items()}
                other_verbs.add(row.verb)
        raise _no_such_method(verb, path, other_verbs)


def _canonical(raw_path: str) -> str:
    return "/".join(quote(unquote(segment), safe=PLAIN) for segment in raw_path.split("/"))


def _no_such_method(verb: str, path: str, other_verbs: set[str]) -> GoogleError:
    for known_verb, pattern, method_id in _documented():
        if known_verb == verb and pattern.match(path):
            return GoogleError(501, f"The emulator does not have the method {method_id}.")
    if other_verbs:
        return GoogleError(405, f"{verb} is not allowed here; {' or '.join(sorted(other_verbs))} is.")
    return GoogleError(404, f"The requested URL {unquote(path)} was not found on this server.")


@cache
def _documented() -> tuple[tuple[str, re.Pattern[str], str], ...]:
    return tuple(
        (
            method["httpMethod"],
            _pattern(f"/{document['servicePath']}{method.get('flatPath', method['path'])}"),
            method["id"],
        )
        for document in documents()
        for method in methods(document)
    )


def _pattern(path: str) -> re.Pattern[str]:
    literals = _PARAMETER.sub("\0", path)
    return re.compile("^" + re.escape(literals).replace("\0", "[^/]+") + "$")
