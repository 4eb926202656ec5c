"""The fields of an answer, each read as what it must be; what is of another kind is an unreadable answer.

A null is a missing field, as in all of Google's JSON. Numbers, times and names of states are read leniently by whoever
wants them, since nothing follows from one that is not known.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from airflow_accel_provider.core.legible import clean
from airflow_accel_provider.exceptions import GoogleApiError

_ID = re.compile(r"(?!\.)[A-Za-z0-9_.-]{0,200}")


class Fields:
    """One object of an answer. Every method raises :class:`GoogleApiError` for a field of another kind."""

    def __init__(self, value: object, service: str, what: str) -> None:
        """Take the object, and which service says it of what."""
        if not isinstance(value, Mapping):
            raise unreadable(service, what, "it is not an object")
        self.all: Mapping[str, Any] = value
        self._service = service
        self._what = what

    def text(self, name: str, default: str = "") -> str:
        """Return a text, cleaned, the default where it is missing."""
        value = self.all.get(name)
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise self.wrong(name, "a text")
        return clean(str(value))

    def id(self, name: str) -> str:
        """Return what names something in addresses and filters, an empty text where it is missing."""
        value = self.text(name)
        if not _ID.fullmatch(value):
            raise self.wrong(name, "an id")
        return value

    def object(self, name: str) -> Fields:
        """Return an object, an empty one where it is missing."""
        value = self.all.get(name)
        if not isinstance(value, Mapping | None):
            raise self.wrong(name, "an object")
        return Fields(value or {}, self._service, f"{self._what} {name}")

    def objects(self, name: str) -> list[Fields]:
        """Return a list of objects, an empty one where it is missing."""
        return [Fields(each, self._service, f"{self._what} {name}") for each in self._list(name)]

    def texts(self, name: str) -> list[str]:
        """Return a list of texts, cleaned, an empty one where it is missing."""
        found = self._list(name)
        if not all(isinstance(each, str) for each in found):
            raise self.wrong(name, "a list of texts")
        return [clean(each) for each in found]

    def wrong(self, name: str, kind: str) -> GoogleApiError:
        """Return the error of a field that is not what it must be."""
        return unreadable(self._service, self._what, f"{name} is not {kind}")

    def _list(self, name: str) -> list[Any]:
        value = self.all.get(name)
        if not isinstance(value, list | tuple | None):
            raise self.wrong(name, "a list")
        return list(value or ())


def unreadable(service: str, what: str, why: str) -> GoogleApiError:
    """Return the error of an answer that is JSON and yet not what the service says."""
    return GoogleApiError(502, "unreadableAnswer", f"the answer cannot be read: {why}", service, what)
