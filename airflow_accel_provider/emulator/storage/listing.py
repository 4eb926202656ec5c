"""Listing objects: prefixes, delimiters, globs and pages, as a calculation on sorted names."""

from __future__ import annotations

import base64
import binascii
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from airflow_accel_provider.emulator.wire import GoogleError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from airflow_accel_provider.emulator.storage.resources import StoredObject

LARGEST_PAGE = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What to list; the offsets are names, the end excluded."""

    prefix: str = ""
    delimiter: str = ""
    start: str = ""
    end: str = ""
    glob: str = ""
    page_token: str = ""
    page_size: int = LARGEST_PAGE
    show_folders: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Objects and prefixes of one page, with the token of the next."""

    items: tuple[StoredObject, ...]
    prefixes: tuple[str, ...]
    next_token: str | None


def list_page(objects: Iterable[StoredObject], wish: Wish) -> Page:
    """Return one page of ``objects``, which are sorted and all begin with the wished prefix."""
    after = _read_token(wish.page_token)
    items: list[StoredObject] = []
    prefixes: list[str] = []
    last = ""
    for entry in _entries(objects, wish):
        # A folder's own object comes right behind the prefix of the same name.
        key = entry if isinstance(entry, str) else f"{entry.name}\0"
        if after and key.encode() <= after.encode():
            continue
        if len(items) + len(prefixes) == wish.page_size:
            return Page(items=tuple(items), prefixes=tuple(prefixes), next_token=_write_token(last))
        last = key
        if isinstance(entry, str):
            prefixes.append(entry)
        else:
            items.append(entry)
    return Page(items=tuple(items), prefixes=tuple(prefixes), next_token=None)


def _entries(objects: Iterable[StoredObject], wish: Wish) -> Iterator[StoredObject | str]:
    """Yield objects, and once each the prefixes that stand for all objects behind a delimiter."""
    matches = _glob(wish.glob)
    prefix = ""
    for found in objects:
        if not _is_between(found.name, wish) or not matches(found.name):
            continue
        folder = _folder(found.name, wish)
        if folder and folder != prefix:
            prefix = folder
            yield folder
        if not folder or (wish.show_folders and found.name == folder):
            yield found


def _folder(name: str, wish: Wish) -> str:
    if not wish.delimiter:
        return ""
    position = name.find(wish.delimiter, len(wish.prefix))
    return "" if position < 0 else name[: position + len(wish.delimiter)]


def _is_between(name: str, wish: Wish) -> bool:
    key = name.encode()
    return key >= wish.start.encode() and (not wish.end or key < wish.end.encode())


def _glob(text: str) -> Callable[[str], bool]:
    if not text:
        return lambda _: True
    try:
        pattern = re.compile(glob_to_regex(text), re.DOTALL)
    except re.error as error:
        raise GoogleError(400, f"Invalid matchGlob {text!r}: {error}.", reason="invalid") from None
    return lambda name: pattern.fullmatch(name) is not None


# The longest form first: ``**`` before ``*``.
_GLOB_TOKEN = re.compile(r"\*\*/|\*\*|\*|\?|\[[!^]?[^\]]+\]|\{[^{}]*\}|.", re.DOTALL)
_GLOB_WORDS = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}


def glob_to_regex(glob: str) -> str:
    """Return the regular expression of a ``matchGlob``.

    ``*`` and ``?`` stay within a folder, ``**`` does not; ``[a-z]``, ``[!a]`` and ``{one,other}`` as in a shell.
    Source: https://cloud.google.com/storage/docs/json_api/v1/objects/list (2026-11).
    """
    return "".join(_glob_word(match[0]) for match in _GLOB_TOKEN.finditer(glob))


def _glob_word(word: str) -> str:
    if word in _GLOB_WORDS:
        return _GLOB_WORDS[word]
    if len(word) > 1 and word.startswith("["):
        inner = word[1:-1].replace("\\", "\\\\")
        return f"[^{inner[1:]}]" if inner[0] in "!^" else f"[{inner}]"
    if len(word) > 1:
        return "(?:" + "|".join(glob_to_regex(part) for part in word[1:-1].split(",")) + ")"
    return re.escape(word)


def _write_token(last: str) -> str:
    return base64.urlsafe_b64encode(last.encode()).decode()


def _read_token(token: str) -> str:
    try:
        return base64.b64decode(token, altchars=b"-_", validate=True).decode()
    except (binascii.Error, UnicodeDecodeError, ValueError):
        raise GoogleError(400, f"Invalid Value: pageToken {token!r}", reason="invalid") from None
