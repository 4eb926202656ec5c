"""What became of the accounts: a key may be deleted, an account disabled, and both be given back."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow_accel_provider.emulator.database import Database

GOOD = "good"
DELETED = "key deleted"
DISABLED = "disabled"
STANDINGS = (GOOD, DELETED, DISABLED)


class Standing:
    """How each account stands, by its short name, kept so that it survives a restart."""

    def __init__(self, database: Database) -> None:
        self._database = database
        database.execute("CREATE TABLE IF NOT EXISTS standing (name TEXT PRIMARY KEY, standing TEXT NOT NULL)")

    def of(self, name: str) -> str:
        """Return how an account stands."""
        row = self._database.one("SELECT standing FROM standing WHERE name = ?", (name,))
        return str(row["standing"]) if row else GOOD

    def put(self, standings: Mapping[str, str]) -> None:
        """Change how accounts stand."""
        for name, standing in standings.items():
            self._database.execute("INSERT OR REPLACE INTO standing VALUES (?, ?)", (name, standing))
