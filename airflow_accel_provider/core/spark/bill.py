"""What a batch used in all, and about what it cost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from airflow_accel_provider.core.prices import Rates
    from airflow_accel_provider.core.usage import Spent

_HOUR = 3600.0
_MONTH = 30 * 24 * _HOUR


def usage_row(spent: Spent | None, rates: Rates) -> dict[str, Any]:
    """Return GPU-seconds and a price range in USD, ``None`` what nobody can tell.

    Batches with GPUs run their executors in the premium tier and their driver as the user says, so compute units and
    storage cost between the standard and the premium rate. Rates are those of us-central1: an order of size, no bill.
    """
    if spent is None:
        return {"gpu_seconds": None, "price_low": None, "price_high": None}
    return {
        "gpu_seconds": round(sum(spent.gpu_seconds.values()), 3),
        "price_low": _price(spent, rates, "standard"),
        "price_high": _price(spent, rates, "premium"),
    }


def _price(spent: Spent, rates: Rates, tier: str) -> float | None:
    parts = [(gpu, seconds / _HOUR) for gpu, seconds in spent.gpu_seconds.items()]
    parts.append((f"dcu-{tier}", spent.dcu_seconds / _HOUR))
    parts.append((f"shuffle-{tier}", spent.storage_gb_seconds / _MONTH))
    known = [(rates.get(("spark", item)), units) for item, units in parts]
    if any(rate is None for rate, _ in known):
        return None
    return round(sum(rate.usd * units for rate, units in known if rate), 6)
