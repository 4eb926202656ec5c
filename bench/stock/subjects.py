"""Who is compared: each has one DAG with one task, both named as the subject is."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """One operator in one mode; ``kind`` is what it runs, ``fixed`` a batch with an id that its author chose."""

    ours: bool
    kind: str
    deferrable: bool

    @property
    def key(self) -> str:
        """The id of its DAG and of its task; no key begins with another."""
        return f"{'ours' if self.ours else 'stock'}-{self.kind}-{'wait' if self.deferrable else 'sync'}"

    @property
    def operator(self) -> str:
        """The class and what is special about it, as the table shows it."""
        names = OURS if self.ours else STOCK
        return f"{names[self.kind]}, {'deferrable' if self.deferrable else 'synchronous'}"


OURS = {
    "flex": "BeamGpuPipelineOperator (Flex Template)",
    "beam": "BeamGpuPipelineOperator (file)",
    "batch": "DataprocGpuBatchOperator",
    "tpu": "BeamTpuPipelineOperator (Flex Template)",
}
STOCK = {
    "flex": "DataflowStartFlexTemplateOperator",
    "beam": "BeamRunPythonPipelineOperator",
    "batch": "DataprocCreateBatchOperator",
    "fixed": "DataprocCreateBatchOperator (fixed batch_id)",
}

SUBJECTS = tuple(
    Subject(ours=ours, kind=kind, deferrable=deferrable)
    for ours, names in ((False, STOCK), (True, OURS))
    for kind in names
    for deferrable in (False, True)
)


def subject_in(text: str) -> str | None:
    """Return the key of the subject that a request's body, or a job's name and labels, speak of."""
    return next((subject.key for subject in SUBJECTS if subject.key in text), None)
