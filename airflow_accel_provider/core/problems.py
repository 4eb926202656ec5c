"""What validation finds: all problems at once, each with the nearest right thing."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Severity = Literal["error", "warning"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One finding. ``error`` is what the service would refuse, ``warning`` what a person should know.

    ``code`` is a stable kebab-case name; ``where`` names the parameter or candidate it is about.
    """

    severity: Severity
    code: str
    message: str
    where: str = ""

    @property
    def is_error(self) -> bool:
        """Tell whether the job must not start."""
        return self.severity == "error"

    def __str__(self) -> str:
        return f"{self.where}: {self.message}" if self.where else self.message


def error(code: str, message: str, where: str = "") -> Problem:
    """Return a problem that stops the job."""
    return Problem(severity="error", code=code, message=message, where=where)


def warning(code: str, message: str, where: str = "") -> Problem:
    """Return a problem that is only said."""
    return Problem(severity="warning", code=code, message=message, where=where)


def nearest(word: str, known: Iterable[str]) -> str | None:
    """Return the known word that a typo most likely meant, or ``None``."""
    matches = difflib.get_close_matches(word, list(known), n=1, cutoff=0.6)
    return matches[0] if matches else None
