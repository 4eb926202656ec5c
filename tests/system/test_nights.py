"""``score_by_six`` as a backfill through a real scheduler: local time, a pool, one task at a time, and the deadline."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from demo.waiting import wait_for

if TYPE_CHECKING:
    from demo.stack import Airflow
    from tests.system.driver import Driver

DAG_ID = "score_by_six"
LONGEST_SECONDS = 400
NIGHTS = {"2026-03-02T02:00:00Z": "2026-03-02T05:00:00Z", "2026-03-03T02:00:00Z": "2026-03-03T05:00:00Z"}
"""Three and six o'clock in Paris, in winter."""

DEADLINES = """
SELECT strftime('%Y-%m-%dT%H:%M:%SZ', run.logical_date), strftime('%Y-%m-%dT%H:%M:%SZ', deadline_time), missed,
       callback.state
FROM deadline JOIN dag_run AS run ON run.id = dagrun_id JOIN callback ON callback.id = callback_id
WHERE run.dag_id = ? ORDER BY run.logical_date
"""


@pytest.mark.parametrize("google_and_airflow", ["deferrable"], indirect=True)
def test_nights_are_scored_one_after_the_other(google_and_airflow: Driver) -> None:
    """Nights that are backfilled at once are scored in turn, and of each it is said that it missed six in Paris."""
    home, api = google_and_airflow.home, google_and_airflow.home.airflow.api
    bucket = google_and_airflow.bucket("nights")
    home.emulator.set_world("plenty")
    since = home.emulator.ledger()["last"]
    api.unpause(DAG_ID)
    api.backfill(DAG_ID, "2026-03-02", "2026-03-04", conf={"bucket": bucket.name}, at_once=2)
    wait_for("both nights to be active", lambda: states(api.runs(DAG_ID)) == {"running"}, seconds=60)
    wait_for("both nights", lambda: states(api.runs(DAG_ID)) == {"success"}, seconds=LONGEST_SECONDS, every=1)
    runs = api.runs(DAG_ID)
    assert [run["logical_date"] for run in runs] == list(NIGHTS)
    assert [api.xcom(DAG_ID, run["dag_run_id"], "check")["count"] for run in runs] == [400, 400]
    spans = lives(home.emulator.ledger(since=since)["events"])
    assert len(spans) == 2
    assert spans[0][1] < spans[1][0]
    pool = api.call("GET", "/pools/gpu")
    assert (pool["slots"], pool["include_deferred"]) == (2, True)
    wait_for("all callbacks", lambda: {state for *_, state in deadlines(home.airflow)} == {"success"}, seconds=60)
    assert [tuple(row) for row in deadlines(home.airflow)] == [(*night, 1, "success") for night in NIGHTS.items()]
    said = (home_of(home.airflow).parent / "triggerer.log").read_text()
    for night in NIGHTS:
        assert said.count(f"score_by_six of {night}: The digits are not scored by six.") == 1


def home_of(airflow: Airflow) -> Path:
    return Path(airflow.environment["AIRFLOW_HOME"])


def deadlines(airflow: Airflow) -> list[tuple[str, str, int, str]]:
    """Return of each run when it was due to start and to end, whether it missed that, and what became of the call."""
    with closing(sqlite3.connect(home_of(airflow) / "airflow.db", timeout=30)) as connection:
        return connection.execute(DEADLINES, (DAG_ID,)).fetchall()


def states(runs: list[dict[str, Any]]) -> set[str]:
    return {run["state"] for run in runs} if len(runs) == len(NIGHTS) else set()


def lives(events: list[dict[str, Any]]) -> list[tuple[int, int]]:
    """Return between which numbers of the ledger each job lived, oldest first."""
    made = [event for event in events if event["kind"] == "dataflow.job.created"]
    last = {event["job_id"]: event["seq"] for event in events if "job_id" in event}
    return [(event["seq"], last[event["job_id"]]) for event in made]
