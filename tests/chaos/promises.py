"""What a story holds the product to: who may end which job, how long a job may last, what a failure may say."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf

from airflow_accel_provider.exceptions import AcceleratorCancelledError, AcceleratorKilledError, AcceleratorTimeoutError
from tests.chaos.google import SimGoogle
from tests.chaos.jobs import SimJob

POLL = 30.0
START_TIMEOUT = 1800.0
CANCEL_TIMEOUT = 300.0
_CALLS = 15.0
"""What the calls of one look take in calm weather."""
_LATE = 120.0 + 15.0
"""How much later Airflow wakes a task whose trigger should have fired (``operators/_deadline.LATE``, and a round)."""
_GRACES = {"dataflow": POLL, "dataproc": 300.0}
"""For how long workers may be bare: a second look, or ``proof_grace`` of Spark."""
_FIRST_REGIONS = frozenset({"us-central1", "us-east5"})


@dataclass(slots=True, kw_only=True)
class Watch:
    """What happened that excuses a job's end, or that it lasts."""

    google: SimGoogle
    limit: float | None
    """``execution_timeout`` in seconds."""
    wrong_by: float
    """How far the clocks of the task's processes may be wrong."""
    wished_at: float = -inf
    """When a user last ended, cleared or killed the task, or changed what it stands for."""
    cleared_at: float = -inf
    """When a user last cleared the task while it ran, and its worker lived to hear of it."""
    dark: list[tuple[float, float]] = field(default_factory=list)
    """When no process of the task ran."""
    begun_at: float = 0.0
    """When the try began."""
    deferrals_expired: int = 0
    left: set[str] = field(default_factory=set)
    """Jobs that a failure has left alive and named: what they cost from then on is in the hands of who reads it."""

    @property
    def now(self) -> float:
        """The present."""
        return self.google.clock.seconds

    def why_end(self, job: SimJob) -> str | None:
        """Return why a job may be asked to end now, ``None`` where nothing says that it may."""
        age, ending = self.now - job.created, job.script.ending
        if job.created <= self.wished_at:
            return "a user wished it"
        if self.limit is not None and self.now - self.begun_at >= self.limit:
            return "its try has no time left"
        if ending in {"stockout", "bare", "stuck"} or age >= START_TIMEOUT:
            return "it is not well"
        return None

    def dark_since(self, begin: float) -> float:
        """Return for how long nobody looked since a time."""
        return sum(max(until - max(since, begin), 0.0) for since, until in self.dark)

    def absences_since(self, begin: float) -> int:
        """Return how often nobody looked since a time."""
        return sum(until > begin for _, until in self.dark)

    @property
    def trouble(self) -> float:
        """How much longer everything may take because of the weather: faults, a withdrawn grant, an outage."""
        google = self.google
        begins, ends = google.outage
        revoked_from, revoked_until = google.tokens.revoked
        rough = CANCEL_TIMEOUT + 1200.0 * google.fault_rate * 4 if google.fault_rate else 0.0
        outage = ends - begins + 120.0 if ends > begins else 0.0
        return rough + outage + max(revoked_until - revoked_from, 0.0) + 2 * self.wrong_by

    def too_long(self, job: SimJob) -> float:
        """Return for how many seconds a job has lasted longer than it may; none or fewer mean that it has not.

        A job that does its work, or that somebody else ends, lasts as long as it does. Any other must end:

        ========= ====================================================================================
        stockout  when the shortage is shown, if there is another place; else with ``start_timeout``. A
                  batch of Spark shows it with its end
        bare      when its workers have been seen without the device for the grace, else with its end; whoever takes
                  over gives them the grace anew
        stuck     with ``start_timeout``
        ========= ====================================================================================

        From there on two looks may pass (one before it shows, one on the way), the calls they take, the time until the
        service heeds a request and the job's own dying, for a reading that lags the lag, and while no process of the
        task ran at all nobody could see it. Bad weather may add ``cancel_timeout``, after which the task fails and
        names the job, and the length of an outage. A job that a failure left and named, and one that a user's wish
        ended, are judged by other promises. Since only one job lives at a time, the sum over the jobs is the bound of
        what the task pays for.
        """
        script, is_spark = job.script, job.service == "dataproc"
        is_shown = job.region in _FIRST_REGIONS and not is_spark and "messages" not in self.google.forbidden
        is_hidden = "list_instances" in self.google.forbidden or (is_spark and script.skips_running)
        graces = _GRACES[job.service] * (1 + self.absences_since(job.created))
        decided = {
            "stockout": script.workers if is_shown else min(script.length, START_TIMEOUT),
            "bare": script.length if is_hidden else script.workers + graces,
            "stuck": START_TIMEOUT,
        }.get(script.ending)
        if decided is None or job.id in self.left or self.wished_at >= job.created:
            return 0.0
        reaction = 2 * POLL + _CALLS + script.lag + script.dying + max(script.deaf - decided, 0.0)
        allowed = job.created + decided + reaction + self.dark_since(job.created) + self.trouble
        return job.ended_at(self.now) - allowed

    def overtime(self) -> float:
        """Return for how many seconds the try has gone on for longer than it may.

        Its time, then ``cancel_timeout`` for its job's end with a look before and after that. Where no triggerer was
        heard of the worker that Airflow wakes does it all, once more as long.
        """
        if self.limit is None:
            return 0.0
        unheard = self.deferrals_expired * (CANCEL_TIMEOUT + _LATE)
        slack = 2 * POLL + 2 * _CALLS + unheard + self.dark_since(self.begun_at) + self.trouble
        return self.now - self.begun_at - self.limit - CANCEL_TIMEOUT - slack

    def false_blame(self, error: BaseException | None) -> bool:
        """Tell whether a failure says that somebody ended the job, and nobody did."""
        if not isinstance(error, AcceleratorCancelledError) or isinstance(error, AcceleratorKilledError):
            return False
        by_somebody = any(job.script.ending == "ended_by_somebody" for job in self.google.jobs)
        return not by_somebody and self.wished_at == -inf

    def is_hasty(self, error: BaseException | None) -> bool:
        """Tell whether a failure says that the try has no time left, and it has, by any of its processes' clocks."""
        if not isinstance(error, AcceleratorTimeoutError) or "execution_timeout" not in str(error):
            return False
        return self.limit is None or self.now - self.begun_at < self.limit - 2 * self.wrong_by - 1
