"""The tables the demo ends with."""

from __future__ import annotations

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

console = Console(highlight=False, width=None if sys.stdout.isatty() else WIDTH_WITHOUT_TERMINAL)


def show_attempts(story: Mapping[str, Sequence[Row]]) -> None:
    """Print what became of each place, day by day."""
    table = Table(title="Attempts", title_justify="left", show_lines=False)
    for column in ("day", "place", "outcome", "reason or proof"):
        is_place = column == "place"
        table.add_column(column, overflow="fold", no_wrap=is_place and console.width >= WIDTH_WITHOUT_TERMINAL)
    for day, rows in story.items():
        for row in rows:
            first = row is rows[0]
            outcome = row.kind.replace("_", " ") + (", no job" if row.reason and not row.job_id else "")
            style = STYLES.get(row.kind, "yellow")
            table.add_row(
                day if first else "",
                f"{row.number}. {row.placement}",
                f"[{style}]{outcome}[/]",
                row.reason or row.proof,
                end_section=row is rows[-1],
            )
    console.print(table)


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
