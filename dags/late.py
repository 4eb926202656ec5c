"""What is called when a night's predictions are late.

Deadlines are watched by the triggerer, which looks for this by its dotted name and does not look into the folder of
DAGs: that folder must be on the triggerer's ``PYTHONPATH``.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

log = logging.getLogger(__name__)


async def say_late(text: str, context: Mapping[str, Any]) -> None:
    """Say which run is late; a team would page somebody."""
    run = context["dag_run"]
    log.warning("%s of %s: %s", run["dag_id"], run["logical_date"], text)
