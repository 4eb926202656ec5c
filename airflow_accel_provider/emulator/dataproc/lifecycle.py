"""How a batch lives: one function a phase, each taking it to its next one. What changes is returned, not stored."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from airflow_accel_provider.emulator.dataproc import texts
from airflow_accel_provider.emulator.dataproc.batches import Batch, Phase
from airflow_accel_provider.emulator.dataproc.capacity import INVALID_ARGUMENT, Refusal, allocate, machines_of
from airflow_accel_provider.emulator.ledger import rfc3339
from airflow_accel_provider.emulator.passing import NEVER

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from airflow_accel_provider.emulator.dataproc import Dataproc

SECONDS: Mapping[str, float] = {
    "pending": 10,
    "look_for_machines": 30,
    "provisioning": 40,
    "cancelling": 10,
}
"""Google's; the time scale divides them. A batch starts within 40 to 60 seconds, 2026-11-29."""

CANCELLED, DEADLINE_EXCEEDED, ABORTED, INTERNAL = 1, 4, 10, 13
"""Codes of google.rpc; a failed job answers ABORTED."""


class Lifecycle:
    """The phases from a batch's creation to its end."""

    def __init__(self, dataproc: Dataproc) -> None:
        self._dataproc = dataproc
        self._google = dataproc.google
        self.phases: Mapping[Phase, Callable[[Batch], Batch]] = {
            Phase.CREATED: self._begin,
            Phase.ALLOCATING: self._allocate,
            Phase.PROVISIONING: self._provisioned,
            Phase.EXECUTING: self._execute,
            Phase.CHURNING: self._churn,
            Phase.CANCELLING: self._cancelled,
        }

    def created(self, batch: Batch) -> Batch:
        """Return a new batch in its first phase. Its ttl counts from here: waiting for machines is part of it."""
        ttl = batch.wish.ttl
        expires = NEVER if ttl is None else self._clock() + self._google.scaled(ttl)
        return replace(self._next(batch, Phase.CREATED, "pending"), expires=expires)

    def step(self, batch: Batch) -> Batch:
        """Return what becomes of a batch whose phase or whose time is over."""
        is_active = batch.phase not in {Phase.CANCELLING, Phase.OVER}
        if is_active and batch.expires <= self._clock():
            return self.cancel(batch, texts.TTL_EXCEEDED)
        return self.phases[batch.phase](batch)

    def cancel(self, batch: Batch, why: str) -> Batch:
        """Return a batch that is being cancelled; one that waits for machines is, too."""
        self._dataproc.executions.stop(batch.uuid)
        return self._next(self._in_state(batch, "CANCELLING", why), Phase.CANCELLING, "cancelling")

    def broken(self, batch: Batch, error: Exception) -> Batch:
        """Return a batch that the emulator itself failed on."""
        self._dataproc.executions.stop(batch.uuid)
        return self._over(batch, "FAILED", f"Internal error of the emulator: {error!r}", INTERNAL)

    def _begin(self, batch: Batch) -> Batch:
        image = batch.request.get("runtimeConfig", {}).get("containerImage")
        if image and not self._google.world.has_image(image):
            return self._over(batch, "FAILED", texts.image_missing(image), INVALID_ARGUMENT)
        gives_up = self._clock() + self._google.scaled(batch.wish.allocation_timeout)
        return self._allocate(replace(batch, phase=Phase.ALLOCATING, gives_up=gives_up))

    def _allocate(self, batch: Batch) -> Batch:
        answer = allocate(batch, self._google.machines(), self._google.world)
        if not isinstance(answer, Refusal):
            self._google.dataflow.instances.put(answer)
            wish = batch.wish
            carried = {"accelerator": wish.accelerator or "", "count": wish.executors * wish.gpus}
            self._event("dataproc.machines.given", batch, zones=sorted({vm.zone for vm in answer}), **carried)
            return self._next(batch, Phase.PROVISIONING, "provisioning")
        self._event("dataproc.machines.refused", batch, reason=answer.kind, text=answer.text)
        wish = batch.wish
        if not (answer.is_stock and wish.queued):
            return self._over(batch, "FAILED", answer.text, answer.code)
        if batch.gives_up > self._clock():
            waiting = self._next(batch, Phase.ALLOCATING, "look_for_machines")
            return replace(waiting, due=min(waiting.due, batch.gives_up))
        text = texts.allocation_timed_out(
            accelerator=wish.accelerator or "", region=batch.location, seconds=wish.allocation_timeout
        )
        return self._over(batch, "FAILED", text, DEADLINE_EXCEEDED)

    def _provisioned(self, batch: Batch) -> Batch:
        running = replace(self._in_state(batch, "RUNNING"), started=self._now())
        flaws = self._google.world.flaws
        if running.wish.accelerator and "executor_churn" in flaws:
            return replace(running, phase=Phase.CHURNING, due=NEVER, shows_gpus=False)
        # What is left of the ttl is the user's code's, and that runs in real time.
        left = (running.expires - self._clock()) * self._google.time_scale
        return replace(
            running,
            phase=Phase.EXECUTING,
            due=self._clock(),
            expires=self._clock() + left,
            shows_gpus="gpu_missing" not in flaws,
        )

    def _execute(self, batch: Batch) -> Batch:
        outcome = self._dataproc.executions.outcome(batch.uuid)
        if outcome is None:
            # Its exit makes the batch due again; one that found no free slot is due when one is.
            self._dataproc.run(batch)
            return replace(batch, due=NEVER)
        if outcome["error"] is None:
            return self._over(batch, "SUCCEEDED", "", 0)
        if outcome["is_emulators"]:
            return self._over(batch, "FAILED", outcome["error"], INTERNAL)
        return self._over(batch, "FAILED", texts.job_failed(batch, outcome["error"]), ABORTED)

    def _churn(self, batch: Batch) -> Batch:
        """Keep a batch whose executors never get their GPUs: they are replaced for ever, and it runs on."""
        return replace(batch, due=NEVER)

    def _cancelled(self, batch: Batch) -> Batch:
        if self._dataproc.executions.is_running(batch.uuid):
            # Nothing of the batch may still be writing when its state says that it is over.
            return replace(batch, due=NEVER)
        return self._over(batch, "CANCELLED", "", CANCELLED)

    def _over(self, batch: Batch, state: str, message: str, code: int) -> Batch:
        self._google.dataflow.instances.remove(machines_of(batch, self._google.machines()))
        over = self._in_state(batch, state, message)
        return replace(over, phase=Phase.OVER, due=NEVER, code=code)

    def _in_state(self, batch: Batch, state: str, message: str = "") -> Batch:
        earlier = {"state": batch.state, "stateMessage": batch.message, "stateStartTime": batch.state_time}
        history = (*batch.history, {name: value for name, value in earlier.items() if value})
        self._event("dataproc.batch.state", batch, state=state, message=message)
        return replace(batch, state=state, state_time=self._now(), message=message, history=history)

    def _next(self, batch: Batch, phase: Phase, duration: str) -> Batch:
        return replace(batch, phase=phase, due=self._clock() + self._google.scaled(SECONDS[duration]))

    def _event(self, kind: str, batch: Batch, **fields: Any) -> None:
        self._google.ledger.event(kind, batch_id=batch.id, uuid=batch.uuid, location=batch.location, **fields)

    def _now(self) -> str:
        moment: datetime = self._google.now()
        return rfc3339(moment)

    def _clock(self) -> float:
        return self._google.now().timestamp()
