"""What a driver said last: the exception that it ended with."""

from __future__ import annotations

import re

_TRACEBACK = "Traceback (most recent call last):"
_UNTOLD = re.compile(r"[A-Za-z_][\w.]*(?:: .*)?")
_OF_JAVA = re.compile(r'(?:Exception in thread "[^"]*" )?((?:[a-z]\w*\.)+[A-Z]\w*(?:Exception|Error)(?:: .*)?)')
_OF_SQL = re.compile(r"\[[A-Z][A-Z_.]+\] .+")
_OF_THE_LAUNCHER = re.compile(r"Error: .+")


def last_words(output: str) -> str:
    """Return the last exception in a driver's output, in one line; nothing where there is none."""
    lines = output.splitlines()
    return _of_python(lines) or _last(lines, _OF_JAVA) or _last(lines, _OF_SQL) or _last(lines, _OF_THE_LAUNCHER)


def _of_python(lines: list[str]) -> str:
    starts = [number for number, line in enumerate(lines) if line == _TRACEBACK]
    after = lines[starts[-1] + 1 :] if starts else []
    return next((line for line in after if _UNTOLD.fullmatch(line)), "")


def _last(lines: list[str], form: re.Pattern[str]) -> str:
    found = [match for line in lines if (match := form.fullmatch(line.strip()))]
    return found[-1][found[-1].lastindex or 0] if found else ""
