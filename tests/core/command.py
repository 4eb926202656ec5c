"""Running ``accel`` in this process, as a shell would see it."""

from __future__ import annotations

import io
import json
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

from airflow_accel_provider.cli import main


@dataclass(frozen=True, kw_only=True)
class Ended:
    """A command that has ended: its exit code and what it wrote."""

    code: int
    out: str
    err: str

    @property
    def answer(self) -> Any:
        """The only JSON answer."""
        (answer,) = self.answers
        return answer

    @property
    def answers(self) -> list[Any]:
        """The JSON answers, one a line."""
        return [json.loads(line) for line in self.out.splitlines()]


def accel(*arguments: str, stdin: str | bytes = b"") -> Ended:
    """Run a command to its end."""
    given = stdin.encode() if isinstance(stdin, str) else stdin
    out, err = io.StringIO(), io.StringIO()
    with (
        patch.object(sys, "stdin", io.TextIOWrapper(io.BytesIO(given))),
        redirect_stdout(out),
        redirect_stderr(err),
    ):
        code = main(arguments)
    return Ended(code=code, out=out.getvalue(), err=err.getvalue())


def lines(*requests: Any) -> str:
    """Return requests as JSON lines."""
    return "".join(json.dumps(request) + "\n" for request in requests)
