"""Airflow's REST API, as far as it is needed here."""

from __future__ import annotations

from typing import Any

import httpx

from demo.waiting import wait_for

HEALTHY = ("metadatabase", "scheduler", "triggerer", "dag_processor")


class AirflowApi:
    """A client of one Airflow, logged in once it is there."""

    def __init__(self, url: str, *, user: str, password: str) -> None:
        self._login = {"username": user, "password": password}
        self._client = httpx.Client(base_url=url, timeout=60, trust_env=False)

    def close(self) -> None:
        """Close its connections."""
        self._client.close()

    def is_healthy(self) -> bool:
        """Return whether all parts report that they are healthy; false as long as nobody answers."""
        try:
            parts = self._client.get("/api/v2/monitor/health").json()
        except (httpx.TransportError, ValueError):
            return False
        return all(parts[part]["status"] == "healthy" for part in HEALTHY)

    def log_in(self) -> None:
        """Get a token for all later calls."""
        answer = self._client.post("/auth/token", json=self._login)
        answer.raise_for_status()
        self._client.headers["Authorization"] = f"Bearer {answer.json()['access_token']}"

    def make_pool(self, name: str, *, slots: int) -> None:
        """Make a pool whose slots tasks hold while they wait in the triggerer, too."""
        self.call("POST", "/pools", {"name": name, "slots": slots, "include_deferred": True})

    def unpause(self, dag_id: str) -> None:
        """Wait until the DAG is known, and let its runs run; raise ``RuntimeError`` if its file cannot be imported."""
        wait_for(f"Airflow to read {dag_id}", lambda: self._is_known(dag_id), seconds=120)
        self.call("PATCH", f"/dags/{dag_id}", {"is_paused": False})

    def backfill(self, dag_id: str, first: str, last: str, *, conf: dict[str, Any], at_once: int) -> None:
        """Start a run for each day from first to last, so many at once."""
        body = {"dag_id": dag_id, "from_date": first, "to_date": last, "dag_run_conf": conf, "max_active_runs": at_once}
        self.call("POST", "/backfills", body)

    def trigger(self, dag_id: str, *, logical_date: str | None, conf: dict[str, Any], run_id: str | None = None) -> str:
        """Start one run; return its id, which may be chosen."""
        wish = {"logical_date": logical_date, "conf": conf} | ({"dag_run_id": run_id} if run_id else {})
        run = self.call("POST", f"/dags/{dag_id}/dagRuns", wish)
        known: str = run["dag_run_id"]
        return known

    def runs(self, dag_id: str) -> list[dict[str, Any]]:
        """Return the DAG's runs in the order of their dates."""
        runs: list[dict[str, Any]] = self.call("GET", f"/dags/{dag_id}/dagRuns?order_by=logical_date")["dag_runs"]
        return runs

    def run_state(self, dag_id: str, run_id: str) -> str:
        """Return a run's state."""
        state: str = self.call("GET", f"/dags/{dag_id}/dagRuns/{run_id}")["state"]
        return state

    def task_states(self, dag_id: str, run_id: str) -> dict[str, str | None]:
        """Return the state of each task of a run."""
        tasks = self.call("GET", f"/dags/{dag_id}/dagRuns/{run_id}/taskInstances")["task_instances"]
        return {task["task_id"]: task["state"] for task in tasks}

    def task(self, dag_id: str, run_id: str, task_id: str, map_index: int = -1) -> dict[str, Any]:
        """Return all that Airflow tells of a task instance."""
        path = f"/dags/{dag_id}/dagRuns/{run_id}/taskInstances/{task_id}"
        told: dict[str, Any] = self.call("GET", path if map_index < 0 else f"{path}/{map_index}")
        return told

    def clear(self, dag_id: str, run_id: str, *task_ids: str) -> None:
        """Clear tasks of a run, whatever their state, as a user would."""
        wish = {"dry_run": False, "dag_run_id": run_id, "task_ids": list(task_ids), "only_failed": False}
        self.call("POST", f"/dags/{dag_id}/clearTaskInstances", {**wish, "reset_dag_runs": True})

    def set_run_state(self, dag_id: str, run_id: str, state: str) -> None:
        """Mark a run as a user would."""
        self.call("PATCH", f"/dags/{dag_id}/dagRuns/{run_id}", {"state": state})

    def delete_run(self, dag_id: str, run_id: str) -> None:
        """Delete a run with all that Airflow kept of it."""
        self.call("DELETE", f"/dags/{dag_id}/dagRuns/{run_id}")

    def set_task_state(self, dag_id: str, run_id: str, task_id: str, state: str) -> None:
        """Mark a task as a user would."""
        self.call("PATCH", f"/dags/{dag_id}/dagRuns/{run_id}/taskInstances/{task_id}", {"new_state": state})

    def xcom(self, dag_id: str, run_id: str, task_id: str, key: str = "return_value") -> Any:
        """Return what a task pushed under a key."""
        path = f"/dags/{dag_id}/dagRuns/{run_id}/taskInstances/{task_id}/xcomEntries/{key}?deserialize=true"
        return self.call("GET", path)["value"]

    def stored(self, dag_id: str, run_id: str, task_id: str) -> dict[str, Any]:
        """Return what a task keeps in Airflow's state store, by key."""
        path = f"/dags/{dag_id}/dagRuns/{run_id}/taskInstances/{task_id}/state-store"
        return {entry["key"]: entry["value"] for entry in self.call("GET", path)["task_state_store"]}

    def log(self, dag_id: str, run_id: str, task_id: str, try_number: int = 1) -> str:
        """Return a task's log as text: each line's event, and the error with its traceback if one is attached."""
        path = f"/dags/{dag_id}/dagRuns/{run_id}/taskInstances/{task_id}/logs/{try_number}?full_content=true"
        return "\n".join(line_of(each) for each in self.call("GET", path)["content"])

    def call(self, verb: str, path: str, body: dict[str, Any] | None = None) -> Any:
        """Return the JSON answer; raise ``RuntimeError`` with what Airflow said if it refused."""
        answer = self._client.request(verb, f"/api/v2{path}", json=body)
        if answer.is_error:
            raise RuntimeError(f"Airflow answered {verb} {path} with {answer.status_code}: {answer.text[:500]}")
        return answer.json() if answer.content else None

    def _is_known(self, dag_id: str) -> bool:
        errors = self.call("GET", "/importErrors")["import_errors"]
        if errors:
            raise RuntimeError("\n".join(f"{each['filename']}:\n{each['stack_trace']}" for each in errors))
        return self._client.get(f"/api/v2/dags/{dag_id}").status_code == httpx.codes.OK


def line_of(entry: dict[str, Any]) -> str:
    """Return a structured log entry as one text."""
    errors = [f"{each['exc_type']}: {each['exc_value']}" for each in entry.get("error_detail") or ()]
    return "\n".join([str(entry.get("event", "")), *errors])
