"""Plans over live quotas, for requests of ``accel plan``."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from airflow_accel_provider.cli._connections import DEFAULT_CONNECTION, told_connection
from airflow_accel_provider.core.catalog import Catalog
from airflow_accel_provider.core.checking import beam_request, check_request, problem_json, spark_request
from airflow_accel_provider.core.planning import plan, questions
from airflow_accel_provider.core.problems import Problem, warning
from airflow_accel_provider.core.record import PlannedPlace
from airflow_accel_provider.core.request import Candidate
from airflow_accel_provider.core.spark import spark_plan
from airflow_accel_provider.core.validation import read_candidates, resolve
from airflow_accel_provider.exceptions import AcceleratorConfigurationError
from airflow_accel_provider.hooks.quota import read_quotas
from airflow_accel_provider.hooks.session import GoogleSession
from airflow_accel_provider.hooks.supply import read_supply


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """Where one request would be tried, or why it would not be."""

    problems: tuple[Problem, ...]
    places: tuple[PlannedPlace, ...] = ()
    project: str | None = None

    @property
    def is_ok(self) -> bool:
        """Tell whether there is a place to start with."""
        return any(place.rejected is None for place in self.places)

    def to_json(self) -> dict[str, Any]:
        """Return the answer of ``accel plan``."""
        return {
            "ok": self.is_ok,
            "project": self.project,
            "problems": [problem_json(problem) for problem in self.problems],
            "places": [place.to_json() for place in self.places],
        }


@dataclass(slots=True, kw_only=True)
class Planner:
    """Plans requests, with one session for all that share a connection. What is given here wins over a request."""

    conn_id: str | None
    project: str | None
    endpoint_url: str | None
    allowed_regions: frozenset[str]
    catalog: Catalog
    today: date
    _sessions: dict[str, GoogleSession] = field(default_factory=dict)

    def plan(self, request: Any) -> Planned:
        """Return the plan of a request. Raises :class:`AcceleratorConfigurationError` for an unusable connection."""
        checked = check_request(request, catalog=self.catalog, today=self.today, allowed_regions=self.allowed_regions)
        if not checked.is_ok:
            return Planned(problems=checked.problems)
        return self._planned(request, checked.problems)

    def answer(self, request: Any) -> dict[str, Any]:
        """Return the plan of a request as JSON. Raises :class:`ValueError` for an unusable connection."""
        try:
            return self.plan(request).to_json()
        except AcceleratorConfigurationError as unusable:
            raise ValueError(str(unusable)) from unusable

    def _planned(self, request: Mapping[str, Any], problems: tuple[Problem, ...]) -> Planned:
        read, _ = read_candidates(request["placement"], request.get("fallback", ()), region=request.get("region"))
        candidates = [candidate for candidate in read if candidate]
        if len(candidates) < len(read):
            text = "Places that a template gives are known when the task starts, and are left out here."
            problems = (*problems, warning("templated", text, "placement"))
        session = self._session(request)
        places = _places(request, candidates, self.catalog, session)
        return Planned(problems=problems, places=places, project=session.project)

    def _session(self, request: Mapping[str, Any]) -> GoogleSession:
        said = {
            "impersonation_chain": request.get("impersonation_chain"),
            "project_id": self.project or request.get("project_id"),
            "quota_project_id": request.get("quota_project_id"),
        }
        conn_id = self.conn_id or request.get("gcp_conn_id") or DEFAULT_CONNECTION
        key = json.dumps([conn_id, said])
        if key not in self._sessions:
            connection = told_connection(self.conn_id, default=conn_id, endpoint_url=self.endpoint_url)
            self._sessions[key] = GoogleSession.from_connection(connection, **said)
        return self._sessions[key]


def _places(
    request: Mapping[str, Any], candidates: Sequence[Candidate], catalog: Catalog, session: GoogleSession
) -> tuple[PlannedPlace, ...]:
    if request["operator"] == "DataprocGpuBatchOperator":
        return _spark_places(request, candidates, catalog, session)
    asked, resolved = beam_request(request), [resolve(candidate, catalog) for candidate in candidates]
    readings, reserved = read_supply(session, questions(asked, resolved, catalog=catalog))
    return plan(asked, resolved, catalog=catalog, readings=readings, reserved=reserved)


def _spark_places(
    request: Mapping[str, Any], candidates: Sequence[Candidate], catalog: Catalog, session: GoogleSession
) -> tuple[PlannedPlace, ...]:
    readings = read_quotas(session, [each.placement.region for each in candidates])
    return spark_plan(spark_request(request), candidates, catalog=catalog, readings=readings)
