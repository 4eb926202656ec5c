"""Beam's own options, by SDK: which names there are, what each takes, and what a wrong name most likely meant."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, get_args

from airflow_accel_provider.core.packaged import read_rows

Sdk = Literal["python", "java", "go"]
Kind = Literal["text", "integer", "number", "switch", "list", "mapping"]

SDKS: tuple[Sdk, ...] = get_args(Sdk)

# So close that hardly anybody would name an option of their own like this.
_CLOSE = 0.9


@dataclass(frozen=True, slots=True, kw_only=True)
class BeamOption:
    """An option by the name it has in one SDK.

    ``sets`` is the attribute that Beam's Python keeps it under, where that has another name; ``false_flag`` the flag
    that says no, and a switch that ``is_on`` is so without being said; ``python`` is what Beam's Python calls the same.
    """

    name: str
    kind: Kind
    sets: str | None = None
    choices: tuple[str, ...] = ()
    false_flag: str | None = None
    is_on: bool = False
    python: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OptionTable:
    """All options of one SDK that are known, those of Java and Go as far as they concern Dataflow."""

    sdk: Sdk
    options: Mapping[str, BeamOption]
    by_letters: Mapping[str, BeamOption]
    by_python_name: Mapping[str, BeamOption]

    def python_name(self, name: str) -> str | None:
        """Return what Beam's Python calls an option of this SDK, or ``None`` for other names."""
        option = self.options.get(name)
        if option is None:
            return None
        return option.name if self.sdk == "python" else option.python

    def name_of(self, python_name: str) -> str | None:
        """Return what this SDK calls an option of Beam's Python, or ``None`` when it is not known to have it."""
        option = self.by_python_name.get(python_name)
        return option.name if option else None


@lru_cache(maxsize=len(SDKS))
def load_options(sdk: Sdk) -> OptionTable:
    """Return the options of an SDK; the file is read on the first call."""
    rows = [BeamOption(**{**row, "choices": tuple(row.get("choices", ()))}) for row in read_rows(_file(sdk)).rows]
    by_python_name: dict[str, BeamOption] = {}
    for option in rows:
        by_python_name.setdefault((option.name if sdk == "python" else option.python) or "", option)
    return OptionTable(
        sdk=sdk,
        options={option.name: option for option in rows},
        by_letters={letters(option.sets or option.name): option for option in reversed(rows)}
        | {letters(option.name): option for option in rows},
        by_python_name=by_python_name,
    )


def letters(name: str) -> str:
    """Return a name without dashes, underscores and capitals: what all spellings of it have in common."""
    return name.replace("-", "").replace("_", "").lower()


@lru_cache(maxsize=4096)
def meant_by(sdk: Sdk, name: str) -> str | None:
    """Return the option that an unknown name, which may be the pipeline's own, is so close to that it is likely meant.

    Names that people are known to use for another option come first.
    """
    table = load_options(sdk)
    mistaken = {row["name"]: row["meant"] for row in read_rows("beam_options_mistaken").rows}
    python_name = mistaken.get(letters(name))
    if python_name and table.name_of(python_name):
        return table.name_of(python_name)
    close = difflib.get_close_matches(name, table.options, n=1, cutoff=_CLOSE)
    return close[0] if close else None


def in_python_names(options: Mapping[str, Any], sdk: Sdk) -> dict[str, Any]:
    """Return options with the names that Beam's Python has for them; others keep their own."""
    if sdk == "python":
        return dict(options)
    table = load_options(sdk)
    return {table.python_name(name) or name: value for name, value in options.items()}


def _file(sdk: Sdk) -> str:
    return f"beam_options_{sdk}"
