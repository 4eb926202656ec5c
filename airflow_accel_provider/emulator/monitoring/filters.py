"""The language of Cloud Monitoring's filters.

Comparisons of selectors (``metric.type``, ``resource.type``, ``project``, ``metric.labels.KEY``,
``resource.labels.KEY``) with ``=``, ``!=``, ``:`` (contains), ``<``, ``<=``, ``>``, ``>=``, or ``=`` and ``!=`` with
``starts_with("…")``, ``ends_with("…")``, ``has_substring("…")``, ``one_of("…", "…")`` and
``monitoring.regex.full_match("…")``; joined by ``AND`` or nothing, ``OR``, which binds closer, ``NOT`` and brackets.
Reference: https://cloud.google.com/monitoring/api/v3/filters, read 2026-11-30.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from airflow_accel_provider.emulator.wire import GoogleError

Predicate = Callable[[Mapping[str, str]], bool]

_TOKEN = re.compile(
    r"""\s*(?:
    (?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
    | (?P<sign>!=|<=|>=|[=:<>(),-])
    | (?P<word>[A-Za-z_][\w-]*(?:\.(?:[\w-]+|"(?:[^"\\]|\\.)*"))*)
    | (?P<number>[\d.]+)
    )""",
    re.VERBOSE,
)
_SELECTOR = re.compile(r"metric\.type|resource\.type|project|(?:metric|resource)\.labels\.\w+")

_SIGNS: Mapping[str, Callable[[str, str], bool]] = {
    "=": lambda found, value: found == value,
    ":": lambda found, value: value in found,
    "<": lambda found, value: found < value,
    "<=": lambda found, value: found <= value,
    ">": lambda found, value: found > value,
    ">=": lambda found, value: found >= value,
}
_FUNCTIONS: Mapping[str, Callable[[str, tuple[str, ...]], bool]] = {
    "starts_with": lambda found, values: found.startswith(values[0]),
    "ends_with": lambda found, values: found.endswith(values[0]),
    "has_substring": lambda found, values: values[0] in found,
    "one_of": lambda found, values: found in values,
    "monitoring.regex.full_match": lambda found, values: re.fullmatch(values[0], found) is not None,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """A filter that was read. ``selectors`` are all that it names, ``metric_types`` those it asks for by name."""

    passes: Predicate
    selectors: frozenset[str]
    metric_types: frozenset[str]


def parse_filter(text: str) -> Filter:
    """Return a filter; an empty one passes everything.

    Raises GoogleError 400 for what it cannot read.
    """
    return _Reader(text).read()


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = self._split()
        self._selectors: set[str] = set()
        self._metric_types: set[str] = set()

    def read(self) -> Filter:
        passes: Predicate = self._all() if self._tokens else lambda _: True
        if self._tokens:
            raise self._wrong(f"Could not parse filter at {self._tokens[0][1]!r}.")
        return Filter(passes=passes, selectors=frozenset(self._selectors), metric_types=frozenset(self._metric_types))

    def _split(self) -> list[tuple[str, str]]:
        tokens, at = [], 0
        end = len(self._text.rstrip())
        while at < end:
            match = _TOKEN.match(self._text, at)
            if not match or match.lastgroup is None:
                raise self._wrong(f"Could not parse filter at {self._text[at:].strip()!r}.")
            tokens.append((match.lastgroup, match[match.lastgroup]))
            at = match.end()
        return tokens

    def _all(self) -> Predicate:
        terms = [self._any()]
        while self._tokens and self._tokens[0][1] != ")":
            self._skip("AND")
            terms.append(self._any())
        return lambda fields: all(term(fields) for term in terms)

    def _any(self) -> Predicate:
        terms = [self._one()]
        while self._skip("OR"):
            terms.append(self._one())
        return lambda fields: any(term(fields) for term in terms)

    def _one(self) -> Predicate:
        if self._skip("NOT") or self._skip("-"):
            negated = self._one()
            return lambda fields: not negated(fields)
        if self._skip("("):
            inner = self._all()
            self._expect(")")
            return inner
        return self._comparison()

    def _comparison(self) -> Predicate:
        kind, word = self._take()
        if kind != "word":
            raise self._wrong("Restriction must have a left-hand side.")
        selector = _selector(word)
        if not _SELECTOR.fullmatch(selector):
            raise self._wrong(f"The selector {word!r} is not supported.")
        self._selectors.add(selector)
        kind, sign = self._take()
        if kind != "sign" or sign not in {*_SIGNS, "!="}:
            raise self._wrong(f"Expected a comparison after {word!r}, not {sign!r}.")
        test = self._test("=" if sign == "!=" else sign, selector)
        return (
            (lambda fields: not test(fields.get(selector, "")))
            if sign == "!="
            else (lambda fields: selector in fields and test(fields[selector]))
        )

    def _test(self, sign: str, selector: str) -> Callable[[str], bool]:
        kind, word = self._take()
        if kind == "word" and self._tokens and self._tokens[0][1] == "(":
            return self._function(sign, word)
        value = _unquoted(word) if kind == "text" else word
        if kind == "sign":
            raise self._wrong(f"Expected a value, not {word!r}.")
        if selector == "metric.type" and sign == "=":
            self._metric_types.add(value)
        compare = _SIGNS[sign]
        return lambda found: compare(found, value)

    def _function(self, sign: str, name: str) -> Callable[[str], bool]:
        if sign != "=" or name not in _FUNCTIONS:
            raise self._wrong(
                f"The function {name!r} cannot be used with {sign!r}; {', '.join(_FUNCTIONS)} can with =."
            )
        values = self._values()
        if name.startswith("monitoring.regex"):
            try:
                re.compile(values[0])
            except re.error as error:
                raise self._wrong(f"Invalid regular expression {values[0]!r}: {error}.") from None
        holds = _FUNCTIONS[name]
        return lambda found: holds(found, values)

    def _values(self) -> tuple[str, ...]:
        self._expect("(")
        values = []
        while True:
            kind, word = self._take()
            if kind != "text":
                raise self._wrong(f"Expected a string, not {word!r}.")
            values.append(_unquoted(word))
            if not self._skip(","):
                self._expect(")")
                return tuple(values)

    def _skip(self, word: str) -> bool:
        if self._tokens and self._tokens[0][1] == word and self._tokens[0][0] != "text":
            del self._tokens[0]
            return True
        return False

    def _expect(self, word: str) -> None:
        if not self._skip(word):
            raise self._wrong(f"Expected {word!r}.")

    def _take(self) -> tuple[str, str]:
        if not self._tokens:
            raise self._wrong("Unexpected end of the filter.")
        return self._tokens.pop(0)

    def _wrong(self, why: str) -> GoogleError:
        return invalid("filter", self._text, why)


def invalid(field: str, value: str, why: str) -> GoogleError:
    """Return the error for a parameter that cannot be used."""
    return GoogleError(400, f'Field {field} had an invalid value of "{value}": {why}')


def _selector(word: str) -> str:
    """Return a selector in its usual spelling: ``metric.label."x"`` is ``metric.labels.x``."""
    return re.sub(r"^(metric|resource)\.label\.", r"\1.labels.", word.replace('"', ""))


def _unquoted(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text[1:-1])
