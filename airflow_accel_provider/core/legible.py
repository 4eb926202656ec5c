"""Texts that others wrote, made fit to be kept, logged and shown: the one place where they are cleaned and cut.

Whatever comes in passes here at the door: texts of answers (``hooks._fields``), of errors (``hooks._answers``), lines
of launchers (``hooks.launcher``). What a person reads in a terminal passes once more (``cli._tables``, ``cli._lines``).
"""

from __future__ import annotations

import re

LONGEST = 10_000
"""Characters kept of one text; a traceback fits, a dumped data set doesn't."""

# Sequences that colour, move or link, by ECMA-48: what steers a terminal goes as a whole, since its rest is noise.
_SEQUENCES = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]{0,40}[ -/]{0,4}[@-~]|"
    r"(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x90\x98\x9c-\x9f]{0,400}(?:\x07|\x1b\\|\x9c)|"
    r"\x1b[ -/]{0,4}[0-OQ-WYZ`-~]"
)
# Control characters but tab and line feed, those that turn the direction of writing or show nothing, and halves of
# characters, which no database and no file takes. A zero (U+0000) PostgreSQL refuses, too.
_UNFIT = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)
_LINE_ENDS = re.compile("\r\n?|[\x85\u2028\u2029]")


def clean(text: str) -> str:
    """Return a text in which nothing steers a terminal, hides, or cannot be kept; lines end in a line feed."""
    if text.isascii() and text.isprintable():
        return text
    return _UNFIT.sub("\N{REPLACEMENT CHARACTER}", _LINE_ENDS.sub("\n", _SEQUENCES.sub("", text)))


def one_line(text: str) -> str:
    """Return a text cleaned and on one line, so that it cannot pass for lines of a log."""
    return clean(text).replace("\n", " ")


def cut(text: str, longest: int = LONGEST) -> str:
    """Return a text, or the beginning and the end of one that is too long: either may say what happened."""
    if len(text) <= longest:
        return text
    end = longest // 3
    return f"{text[: longest - end - 3]}\n…\n{text[-end:]}"
