"""Is it as it should be? What Airflow tells, held against what the world has and what the emulator wrote down."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from demo.examples import Example
    from demo.story import Row


def objections(
    example: Example,
    *,
    world: str,
    story: Mapping[str, Sequence[Row]],
    summaries: Sequence[Mapping[str, Any]],
    ledger: Mapping[str, Any],
) -> list[str]:
    """Return what is not as it should be, in sentences."""
    found, kinds = [], example.worlds[world]
    for day, rows in story.items():
        told = tuple(row.kind for row in rows)
        if told != kinds:
            found.append(f"{day}: its places came out as {told}; the world {world} has {kinds}.")
        found += [f"{day}: {text}" for text in held_against_ledger(rows, ledger["events"])]
    jobs = {event["job_id"] for event in ledger["events"] if event["kind"] == "dataflow.job.created"}
    if unknown := jobs - {row.job_id for rows in story.values() for row in rows}:
        found.append(f"The emulator made jobs that no attempt tells of: {', '.join(sorted(unknown))}.")
    total = sum(summary[example.counted] for summary in summaries)
    wanted = example.total if "done" in kinds else 0
    if total != wanted:
        found.append(f"The results tell of {total:,} in all, not of {wanted:,}.")
    return found


def held_against_ledger(rows: Sequence[Row], events: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return where the rows of one day and the emulator's events disagree."""
    told = [row.job_id for row in rows if row.job_id]
    made = [event["job_id"] for event in events if event["kind"] == "dataflow.job.created" and event["job_id"] in told]
    found = [] if made == told else [f"attempts are told as {told}, but the jobs were made as {made}."]
    for row in rows:
        own = [event for event in events if row.job_id and event.get("job_id") == row.job_id]
        if (ended := ending_of(own)) not in ENDINGS.get(row.kind, ()):
            found.append(f"{row.placement} is told as {row.kind}, but the emulator has {ended}.")
        if places := {event["location"] for event in own if event["location"] != row.region}:
            found.append(f"{row.placement} is told, but its job was in {', '.join(sorted(places))}.")
        vms = [event for event in own if event["kind"] in {"compute.instance.created", "dataproc.machines.given"}]
        if row.kind == "done" and not row.is_proven_by(vms):
            found.append(f"{row.placement} is told with the proof {row.proof!r}, but its VMs were {vms}.")
    return found


ENDINGS: Mapping[str, tuple[str, ...]] = {
    "done": ("done",),
    # A full reservation is seen without a job.
    "stockout": ("no job", "stockout"),
    "quota": ("no job", "quota"),
    # A job of seconds may be over before it is asked to cancel.
    "accelerator_missing": ("cancelled", "done"),
    "not tried": ("no job",),
}
"""What the emulator must have seen of a job for each kind that Airflow tells."""


def ending_of(events: Sequence[Mapping[str, Any]]) -> str:
    """Return how a job ended by its own events: why it got no VM, or its last state."""
    if refusals := [event["reason"] for event in events if event["kind"] == "dataflow.workers.refused"]:
        return str(refusals[-1])
    states = [event["state"] for event in events if event["kind"] == "dataflow.job.state"]
    return str(states[-1]).removeprefix("JOB_STATE_").lower() if states else "no job"
