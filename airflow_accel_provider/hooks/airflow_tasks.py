"""Asking an Airflow, over its REST API, for the task instances that jobs name. It only reads."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from airflow_accel_provider.core.ownership import Holder, Known, Missing, Started, Unreadable
from airflow_accel_provider.core.record import RECORD_KEY, Record
from airflow_accel_provider.hooks._answers import plain

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

_API = "/api/v2"
_PAGE = 100  # Airflow's own limit, [api] maximum_page_limit
_MOST_RUNS = 5_000
_AT_ONCE = 8
_TIMEOUT = 20.0
_SKEW = timedelta(hours=1)
"""How far the clocks of Airflow and of Google may be apart."""


class AirflowApiError(Exception):
    """An Airflow did not answer, or refused; the message is a sentence without its full stop."""

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True, slots=True, kw_only=True)
class Login:
    """How to be let in: a token, or the name and the password for which Airflow gives one."""

    token: str | None = None
    user: str | None = None
    password: str | None = None


@dataclass(frozen=True, slots=True)
class _Run:
    dag_id: str
    id: str


class AirflowApi:
    """One Airflow; may be used by many threads at once."""

    def __init__(self, url: str, login: Login) -> None:
        self._url = url.rstrip("/")
        self._login = login
        self._token = login.token

    def log_in(self) -> None:
        """Change name and password for a token, where there is none yet. Raises :class:`AirflowApiError`."""
        if self._token is None:
            said = {"username": self._login.user, "password": self._login.password}
            self._token = str(self._call("POST", "/auth/token", json=said).get("access_token", ""))

    def get(self, path: str, **params: Any) -> dict[str, Any]:
        """Return one answer. Raises :class:`AirflowApiError`."""
        return self._call("GET", f"{_API}{path}", params=params)

    def items(self, path: str, name: str, *, most: int | None = None, **params: Any) -> Iterator[dict[str, Any]]:
        """Yield what a listing holds, page after page. Raises :class:`AirflowApiError`."""
        offset = 0
        while most is None or offset < most:
            page = self.get(path, limit=_PAGE, offset=offset, **params).get(name)
            if not isinstance(page, list):
                raise AirflowApiError(f"Airflow's answer has no {name}")
            yield from page
            offset += len(page)
            if len(page) < _PAGE:
                return
        raise AirflowApiError(f"it was not among the newest {most:,} of {name}")

    def _call(self, verb: str, path: str, **said: Any) -> dict[str, Any]:
        import requests

        try:
            # A redirect is not followed: it may lead the token elsewhere.
            answer = requests.request(
                verb, f"{self._url}{path}", auth=self._signed, timeout=_TIMEOUT, allow_redirects=False, **said
            )
        except requests.RequestException as error:
            raise AirflowApiError(f"Airflow did not answer ({type(error).__name__})") from error
        if not answer.ok or answer.is_redirect:
            text = f"Airflow answered {answer.status_code}: {plain(answer.text)}"
            raise AirflowApiError(text, answer.status_code)
        return _object(answer)

    def _signed(self, request: Any) -> Any:
        """Sign a request; being asked to keeps ``.netrc`` from doing so."""
        if self._token:
            request.headers["Authorization"] = f"Bearer {self._token}"
        return request


def known_of(api: AirflowApi, jobs: Sequence[Started]) -> dict[str, Known]:
    """Return by job id what Airflow says of the task instance that each job names. Nothing is raised.

    The DAGs are listed once, the runs once a DAG, the task instances once a run and map index, a record once a job.
    """
    try:
        api.log_in()
        dags = [str(each["dag_id"]) for each in api.items("/dags", "dags", exclude_stale=False)]
    except AirflowApiError as error:
        return {each.job.id: Unreadable(reason=str(error)) for each in jobs}
    by_dag = [list(those) for _, those in groupby(sorted(jobs, key=_dag), key=_dag)]
    with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="airflow") as pool:
        runs = [run for of_dag in pool.map(lambda those: _runs_of(api, dags, those), by_dag) for run in of_dag]
        return dict(pool.map(lambda run: (run[0].job.id, _known(api, *run)), runs))


def _runs_of(api: AirflowApi, dags: Iterable[str], jobs: Sequence[Started]) -> list[tuple[Started, Known | _Run]]:
    """Return the run of each of the jobs, whose labels name the same DAG, or why there is none."""
    first = jobs[0]
    dag_id = next((each for each in dags if first.names(first.claim.dag, each)), None)
    try:
        if dag_id is None:
            return [(each, none) for none in [_no_dag(api, first.claim.dag)] for each in jobs]
        runs = _runs(api, dag_id, jobs)
    except AirflowApiError as error:
        return [(each, Unreadable(reason=str(error))) for each in jobs]
    ids = [(each, runs.get(each.claim.run)) for each in jobs]
    return [(each, _Run(dag_id, run_id) if run_id else Missing(what="run")) for each, run_id in ids]


def _no_dag(api: AirflowApi, label: str) -> Known:
    """Tell a DAG that is not there from one that only others may see, which a list leaves out without a word."""
    try:
        api.get(f"/dags/{_path(label)}")
    except AirflowApiError as error:
        if error.status != 404:
            raise
        return Missing(what="dag")
    return Unreadable(reason="its DAG was not listed, yet is there")


def _runs(api: AirflowApi, dag_id: str, jobs: Sequence[Started]) -> dict[str, str]:
    """Return the ids of the runs by the labels that name them; a run is older than its jobs, the newest come first."""
    wanted = {each.claim.run for each in jobs}
    made = [each.job.created_at for each in jobs]
    newest = max((at for at in made if at), default=datetime.now(UTC)) if all(made) else datetime.now(UTC)
    params = {"order_by": "-run_after", "run_after_lte": (newest + _SKEW).isoformat()}
    found: dict[str, str] = {}
    for run in api.items(f"/dags/{_path(dag_id)}/dagRuns", "dag_runs", most=_MOST_RUNS, **params):
        run_id = str(run["dag_run_id"])
        found |= {label: run_id for label in wanted - found.keys() if jobs[0].names(label, run_id)}
        if len(found) == len(wanted):
            break
    return found


def _known(api: AirflowApi, each: Started, run: Known | _Run) -> Known:
    """Return the task instance of a job in its run, with what it keeps."""
    if not isinstance(run, _Run):
        return run
    path = f"/dags/{_path(run.dag_id)}/dagRuns/{_path(run.id)}/taskInstances"
    map_index = each.claim.map_index
    try:
        tasks = api.items(path, "task_instances", map_index=map_index)
        task = next((one for one in tasks if each.names(each.claim.task, str(one["task_id"]))), None)
        if task is None:
            return Missing(what="task")
        stored = api.get(f"{path}/{_path(str(task['task_id']))}/state-store/{RECORD_KEY}", map_index=map_index)
        return Holder(state=task["state"], record=Record.from_json(stored["value"]))
    except AirflowApiError as error:
        return Missing(what="record") if error.status == 404 else Unreadable(reason=str(error))
    except (KeyError, TypeError, ValueError) as wrong:
        return Unreadable(reason=f"its task's record cannot be read: {wrong}")


def _dag(each: Started) -> tuple[str, str]:
    return each.service, each.claim.dag


def _object(answer: Any) -> dict[str, Any]:
    try:
        value = answer.json()
    except ValueError:
        value = None
    if not isinstance(value, Mapping):
        raise AirflowApiError("Airflow's answer is not a JSON object; is this the address of its API?")
    return dict(value)


def _path(segment: str) -> str:
    return quote(segment, safe="")
