"""Whether any of several places has quota left for a job."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airflow_accel_provider.core.accelerators import Cpu
from airflow_accel_provider.core.demands import demands
from airflow_accel_provider.core.failures import Failure, FailureKind, Resource, Scope
from airflow_accel_provider.core.locations import is_zone
from airflow_accel_provider.core.placement import Placement
from airflow_accel_provider.core.planning import plan
from airflow_accel_provider.core.quota import Demand, Quota, Readings
from airflow_accel_provider.core.record import PlannedPlace
from airflow_accel_provider.core.request import BeamRequest, Candidate
from airflow_accel_provider.core.waiting.answers import Answer, Met, Never, NotYet

if TYPE_CHECKING:
    from airflow_accel_provider.core.catalog import Catalog


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaQuestion:
    """A job of so many workers fits into the quota of one of the places, which are in the order of preference.

    ``unknown_is_room`` says whether a quota that could not be read counts as room.
    """

    placements: tuple[str, ...]
    num_workers: int = 1
    use_public_ips: bool | None = None
    unknown_is_room: bool = True

    @property
    def subject(self) -> str:
        """What is asked about, as a person names it."""
        return "the quotas"

    @property
    def request(self) -> BeamRequest:
        """The job as a plan reads it."""
        return BeamRequest(num_workers=self.num_workers, use_public_ips=self.use_public_ips)

    @property
    def candidates(self) -> tuple[Candidate, ...]:
        """The places as a plan reads them; they name their machine types."""
        return tuple(Candidate(placement=Placement.parse(text)) for text in self.placements)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Figure:
    """One demand and what was read for it."""

    demand: Demand
    quota: Quota | None

    @property
    def is_known(self) -> bool:
        return self.quota is not None and self.quota.usage is not None

    def to_json(self) -> dict[str, Any]:
        return {
            "metric": self.demand.metric,
            "location": self.demand.location,
            "needed": self.demand.floor,
            "left": self.quota.left if self.quota and self.is_known else None,
            "limit": self.quota.limit if self.quota else None,
            "is_estimate": self.quota.is_estimate if self.quota else False,
        }


def answer_quota(question: QuotaQuestion, readings: Readings, catalog: Catalog) -> Answer:
    """Return the first place that has room; there is none for ever where the catalogue offers no place at all."""
    places = plan(question.request, question.candidates, catalog=catalog, readings=readings)
    reasons: list[str] = []
    for place in places:
        figures = _figures(question, place.placement, readings, catalog)
        unknown = _unknown(place.placement, figures)
        if place.rejected:
            reasons.append(f"{place.placement}: {place.rejected.explanation}")
        elif unknown and not question.unknown_is_room:
            reasons.append(f"{place.placement}: {unknown}")
        else:
            return Met(_value(place, figures, unknown), remark=f"{unknown}, which counts as room" if unknown else "")
    text = "; ".join(reasons)
    if all(place.rejected and place.rejected.kind is FailureKind.NOT_OFFERED for place in places):
        return Never(Failure(kind=FailureKind.NOT_OFFERED, scope=Scope.REGION, explanation=text))
    return NotYet(f"no place has room: {text}")


def _figures(
    question: QuotaQuestion, placement: Placement, readings: Readings, catalog: Catalog
) -> tuple[_Figure, ...]:
    drawn = demands(question.request, placement, catalog)
    return tuple(
        _Figure(demand=demand, quota=(readings.get(demand.location) or {}).get(demand.metric)) for demand in drawn
    )


def _unknown(placement: Placement, figures: tuple[_Figure, ...]) -> str:
    """Return which quota of the accelerator itself is unknown, or nothing."""
    is_cpu = isinstance(placement.accelerator, Cpu)
    about = [each for each in figures if is_cpu or each.demand.resource is Resource.ACCELERATOR]
    if not about:
        return f"no quota of {placement.accelerator} is known"
    # Where no limit is set for a single zone, the region's alone counts.
    counted = [each for each in about if each.demand.certain and not is_zone(each.demand.location)]
    unread = [each.demand.metric for each in counted if not each.is_known]
    return f"{' and '.join(unread)} could not be read" if unread else ""


def _value(place: PlannedPlace, figures: tuple[_Figure, ...], unknown: str) -> dict[str, Any]:
    return {
        "v": 1,
        "placement": str(place.placement),
        "region": place.placement.region,
        "zone": place.placement.zone,
        "known": not unknown,
        "quotas": [figure.to_json() for figure in figures if figure.quota or figure.demand.certain],
        "warnings": list(place.warnings),
    }
