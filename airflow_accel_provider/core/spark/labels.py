"""Labels as managed Spark takes them: keys and values by RFC 1035, that is, starting with a letter, no underscore.

Source: Dataproc API v1, ``Batch.labels``, read 2026-11: at most 32; keys of 1 to 63 characters, values may be empty.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping

from airflow_accel_provider.core.identity import OWNER, label_value

MOST_LABELS = 32
_LENGTH = 63
LABEL_FORM = "up to 63 lower-case letters, digits and '-', starting with a letter and not ending in '-'"

_LABEL = re.compile(r"[a-z](?:[-a-z0-9]{0,61}[a-z0-9])?")


def is_label(text: str) -> bool:
    """Tell whether a text does as a label's key, or as a value that is not empty."""
    return bool(_LABEL.fullmatch(text))


def spark_label(text: str) -> str:
    """Return a text as a label's value that the service takes: itself where it already is one.

    A number ``7`` becomes ``n7``. Any other text that had to be changed ends in a hash, so that it stays distinct.
    """
    if not text or is_label(text):
        return text
    if text.isascii() and text.isdigit() and len(text) < _LENGTH:
        return f"n{text}"
    digest = hashlib.sha256(text.encode()).hexdigest()[:8]
    plain = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
    return f"{f'x{plain}'[: _LENGTH - 9]}-{digest}"


def owns_batch(owner: str, labels: Mapping[str, str]) -> bool:
    """Tell whether a batch with these labels was started by this owner."""
    return labels.get(OWNER) == spark_label(label_value(owner))


def spark_labels(labels: Mapping[str, str]) -> dict[str, str]:
    """Return a job's own labels in a form that the service takes."""
    return {key: spark_label(value) for key, value in labels.items()}
