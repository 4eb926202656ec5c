"""The tables the demo ends with."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from demo.examples import Example
    from demo.story import Row

STYLES = {"done": "green", "not tried": "dim"}
WIDTH_WITHOUT_TERMINAL = 120
PLACE_WIDTH = 50
"""What a GPU's place needs; a TPU's takes two lines, to leave room for reasons."""

console = Console(highlight=False, width=None if sys.stdout.isatty() else WIDTH_WITHOUT_TERMINAL)


def show_attempts(story: Mapping[str, Sequence[Row]]) -> None:
    """Print what became of each place, day by day."""
    table = Table(title="Attempts", title_justify="left", show_lines=False)
    place_width = PLACE_WIDTH if console.width >= WIDTH_WITHOUT_TERMINAL else None
    for column, width in (("day", None), ("place", place_width), ("outcome", None), ("reason or proof", None)):
        table.add_column(column, overflow="fold", width=width)
    for day, rows in story.items():
        for row in rows:
            first = row is rows[0]
            outcome = row.kind.replace("_", " ") + (", no job" if row.reason and not row.job_id else "")
            style = STYLES.get(row.kind, "yellow")
            table.add_row(
                day if first else "",
                f"{row.number}. {row.placement}",
                f"[{style}]{outcome}[/]",
                shortened(row.reason) or row.proof,
                end_section=row is rows[-1],
            )
    console.print(table)


def shortened(reason: str) -> str:
    """Return a reason in which a resource's path is cut down to its end, for only words fold well."""
    return re.sub(r"projects/\S+/(\w+/[\w-]+)", r"…/\1", reason)


def show_results(example: Example, summaries: Sequence[Mapping[str, Any]]) -> None:
    """Print what the example's last task returned for each day."""
    show = show_predictions if example.task == "score" else show_rides
    show(summaries)


def show_rides(summaries: Sequence[Mapping[str, Any]]) -> None:
    """Print how many rides each day had, and where and when most of them began."""
    table = Table(title="Rides by district and hour, the same as plain Python counts", title_justify="left")
    for column in ("day", "rides", "sums", "the most: district, hour, rides, minutes"):
        table.add_column(column)
    for summary in summaries:
        most = ", ".join(str(summary["busiest"][name]) for name in ("district", "hour", "rides", "minutes"))
        table.add_row(summary["date"], f"{summary['rides']:,}", str(summary["sums"]), most)
    console.print(table)


def show_predictions(summaries: Sequence[Mapping[str, Any]]) -> None:
    """Print the first predictions, the accuracy of each day, and how many there are in all."""
    table = Table(title="Predictions", title_justify="left")
    for column in ("day", "images", "right", "the first: image, label, prediction"):
        table.add_column(column)
    for summary in summaries:
        count, accuracy = summary["count"], f"{summary['accuracy']:.1%}"
        table.add_row(summary["date"], str(count), accuracy, shown(summary["first"]))
    console.print(table)
    console.print(f"{sum(summary['count'] for summary in summaries):,} predictions in {len(summaries)} days.")


def shown(predictions: Iterable[Mapping[str, Any]]) -> str:
    """Return predictions as one line."""
    return ", ".join(f"{each['id']} {each['label']}→{each['prediction']}" for each in predictions)
