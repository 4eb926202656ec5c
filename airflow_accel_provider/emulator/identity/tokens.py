"""Access tokens that were issued here: opaque to whoever holds them."""

from __future__ import annotations

import hashlib
import secrets
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from airflow_accel_provider.emulator.database import Database


class Tokens:
    """Issued tokens with their principal and end. Only digests are stored: the file gives nobody a token."""

    def __init__(self, database: Database) -> None:
        self._database = database
        database.execute(
            "CREATE TABLE IF NOT EXISTS tokens (digest TEXT PRIMARY KEY, principal TEXT NOT NULL, ends REAL NOT NULL)"
        )

    def issue(self, principal: str, *, seconds: int) -> str:
        """Return a new token for a principal that ends after so many real seconds."""
        token = f"ya29.{secrets.token_urlsafe(48)}"
        now = time.time()
        self._database.execute("DELETE FROM tokens WHERE ends < ?", (now,))
        self._database.execute("INSERT INTO tokens VALUES (?, ?, ?)", (_digest(token), principal, now + seconds))
        return token

    def principal(self, token: str) -> str | None:
        """Return whom a token stands for, or None when it is unknown or has ended."""
        row = self._database.one(
            "SELECT principal FROM tokens WHERE digest = ? AND ends > ?", (_digest(token), time.time())
        )
        return str(row["principal"]) if row else None


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
