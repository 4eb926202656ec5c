"""Bicycle rides made up for the example ``rides_by_district``: always the same, a few hundred thousand a day."""

from __future__ import annotations

import csv
import io
import random
from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

RIDES_A_DAY = 240_000
DISTRICTS = ("Altstadt", "Hafen", "Nordend", "Uni", "Westpark")
STATIONS = tuple(f"S{n:03}" for n in range(120))
LONGEST_RIDE = 24 * 60

Summary = dict[tuple[str, int], tuple[int, int]]
"""Rides and minutes by district and hour."""


def stations_csv() -> str:
    """Return the stations with their districts; the last ten stations have been taken down and are missing."""
    rows = ((station, DISTRICTS[n % len(DISTRICTS)]) for n, station in enumerate(STATIONS[:-10]))
    return _csv(("station", "district"), rows)


def rides_csv(day: str) -> str:
    """Return a day's rides, about one in a hundred of them broken."""
    drawn = random.Random(day)  # noqa: S311 - made-up data
    return _csv(("station", "started", "minutes"), (_ride(day, drawn) for _ in range(RIDES_A_DAY)))


def summary_of(rides: str, stations: str) -> Summary:
    """Return what the Spark program must find, counted in plain Python."""
    district_of: Mapping[str, str] = {row["station"]: row["district"] for row in csv.DictReader(io.StringIO(stations))}
    rides_of: Counter[tuple[str, int]] = Counter()
    minutes_of: Counter[tuple[str, int]] = Counter()
    for row in csv.DictReader(io.StringIO(rides)):
        minutes = int(row["minutes"] or 0)
        if row["station"] in district_of and 1 <= minutes <= LONGEST_RIDE:
            key = (district_of[row["station"]], int(row["started"][11:13]))
            rides_of[key] += 1
            minutes_of[key] += minutes
    return {key: (rides_of[key], minutes_of[key]) for key in rides_of}


def _ride(day: str, drawn: random.Random) -> tuple[str, str, str]:
    second = drawn.randrange(24 * 60 * 60)
    started = f"{day}T{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}Z"
    broken = drawn.random()
    station = "" if broken < 0.004 else drawn.choice(STATIONS)
    minutes = "" if 0.004 <= broken < 0.007 else str(-5 if broken < 0.01 else drawn.randint(1, 90))
    return station, started, minutes


def _csv(header: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return text.getvalue()
