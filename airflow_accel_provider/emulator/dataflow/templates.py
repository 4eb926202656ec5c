"""Which program stands for which template image: no image is pulled here, a Python file runs in its place."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow_accel_provider.emulator.database import Database


class Templates:
    """The mapping, which survives a restart."""

    def __init__(self, database: Database) -> None:
        self._database = database
        database.execute("CREATE TABLE IF NOT EXISTS dataflow_templates (image TEXT PRIMARY KEY, file TEXT NOT NULL)")

    def put(self, files: Mapping[str, str]) -> None:
        """Let files stand for images, beside those that do already.

        Raises ValueError naming every file that is none.
        """
        if missing := missing_files(files):
            raise ValueError(missing)
        with self._database.transaction():
            for image, file in files.items():
                path = str(Path(file).resolve())
                self._database.execute("INSERT OR REPLACE INTO dataflow_templates VALUES (?, ?)", (image, path))

    def find(self, image: str) -> str | None:
        """Return the file that stands for an image, or None."""
        return self.all().get(image)

    def all(self) -> dict[str, str]:
        """Return every image with its file."""
        rows = self._database.query("SELECT image, file FROM dataflow_templates ORDER BY image")
        return {row["image"]: row["file"] for row in rows}


def missing_files(files: Mapping[str, str]) -> str:
    """Return what is wrong with a mapping in a sentence, or nothing."""
    wrong = [f"the template {image} has no file {file}" for image, file in files.items() if not Path(file).is_file()]
    return "; ".join(wrong)
