"""Lists of words as people say them."""

from __future__ import annotations

from collections.abc import Iterable


def either(words: Iterable[object]) -> str:
    """Return ``a``, ``a or b``, or ``a, b or c``."""
    texts = [str(word) for word in words]
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} or {texts[-1]}"
