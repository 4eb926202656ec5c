"""JSON in and out: one request and one answer, or one of each a line."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from airflow_accel_provider.core.legible import clean

STDIN = "-"

Answer = Mapping[str, Any]


def answer_lines(answer: Callable[[Any], Answer]) -> int:
    """Read one request a line from stdin and print one answer a line, each as soon as it is known.

    A line that is no JSON, or for which ``answer`` raises :class:`ValueError`, gets ``{"ok": false, "error": …}`` and
    does not stop the others; empty lines are passed over. Returns the exit code.
    """
    is_well = True
    for value in map(_answering(answer), _lines()):
        is_well = is_well and value.get("ok", True)
        print_json(value)
    return 0 if is_well else 1


def read_requests(path: str) -> list[Any]:
    """Return what a file, or stdin for ``-``, holds: one JSON value, a JSON list of requests, or one value a line.

    Raises :class:`ValueError` saying where it is no JSON, and :class:`OSError`.
    """
    text = _decoded(sys.stdin.buffer.read() if path == STDIN else Path(path).read_bytes())
    lines = [(n, line) for n, line in enumerate(text.splitlines(), 1) if line.strip()]
    if len(lines) > 1 and _is_json(lines[0][1]):
        return [_parsed_line(n, line) for n, line in lines]
    whole = parse(text)
    return whole if isinstance(whole, list) else [whole]


def parse(text: str) -> Any:
    """Return the value of a JSON text. Raises :class:`ValueError` with a sentence that a person understands."""
    try:
        return json.loads(text)
    except json.JSONDecodeError as wrong:
        raise ValueError(f"It is no JSON: {wrong.msg}, line {wrong.lineno} column {wrong.colno}.") from None
    except RecursionError:
        raise ValueError("It is nested too deeply.") from None


def print_json(value: Answer) -> None:
    """Print one answer as one line."""
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


def print_error(message: str) -> int:
    """Tell a person what is wrong; return the exit code of a problem."""
    sys.stderr.write(clean(message) + "\n")
    return 1


def _is_json(text: str) -> bool:
    try:
        parse(text)
    except ValueError:
        return False
    return True


def _parsed_line(number: int, line: str) -> Any:
    try:
        return parse(line)
    except ValueError as wrong:
        raise ValueError(f"Line {number}: {wrong}") from None


def _answering(answer: Callable[[Any], Answer]) -> Callable[[bytes], Answer]:
    def answered(line: bytes) -> Answer:
        try:
            return answer(parse(_decoded(line)))
        except ValueError as wrong:
            return {"ok": False, "error": str(wrong)}

    return answered


def _decoded(text: bytes) -> str:
    try:
        return text.decode("utf-8-sig")
    except UnicodeDecodeError as wrong:
        raise ValueError(f"It is not UTF-8: {wrong.reason} at byte {wrong.start}.") from None


def _lines() -> Iterator[bytes]:
    return (line for line in sys.stdin.buffer if line.strip())
