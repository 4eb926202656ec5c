"""The process that parses DAG files for ``accel check``: ``python -m … TARGET ANSWER``."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow_accel_provider.cli._deployment import today
from airflow_accel_provider.cli._mapped import is_known, of_grouped, of_mapped
from airflow_accel_provider.cli._sensors import is_sensor, of_sensor, parameters_of_sensor
from airflow_accel_provider.core.checking import check_keywords, problem_json
from airflow_accel_provider.core.parameters import AIRFLOW_PARAMETERS, PARAMETERS
from airflow_accel_provider.core.problems import Problem, error, nearest

if TYPE_CHECKING:
    from airflow.sdk import DAG

    from airflow_accel_provider.operators._verdict import Verdicts


def main(target: str, answer: str) -> None:
    """Parse a DAG file or folder and write what was found to the file ``answer``."""
    from airflow.dag_processing.dagbag import DagBag

    from airflow_accel_provider.operators._verdict import collecting

    folder = Path(target)
    root = folder if folder.is_dir() else folder.parent
    # Files import their neighbours, as Airflow lets those of its DAGs folder do.
    sys.path[:0] = [str(root), *(str(parent) for parent in root.parents if parent == _dags_folder())]
    with collecting() as verdicts:
        bag = DagBag(folder, bundle_path=root)
    problems = [_of_file(path, text) for path, text in sorted(bag.import_errors.items())]
    dags = sorted(bag.dags.values(), key=lambda dag: (dag.fileloc, dag.dag_id))
    tasks = [(dag, task) for dag in dags for task in dag.tasks if _is_ours(task)]
    for dag, task in tasks:
        problems += [{**_place(dag, task.task_id, root), **said} for said in _of_task(task, verdicts)]
    files = {dag.fileloc for dag in dags} | set(bag.import_errors)
    found = {"files": len(files), "tasks": len(tasks), "problems": problems}
    Path(answer).write_text(json.dumps(found), encoding="utf-8")


def _dags_folder() -> Path:
    from airflow.sdk.configuration import conf

    return Path(conf.get("core", "dags_folder")).resolve()


def _is_ours(task: Any) -> bool:
    from airflow_accel_provider.operators._job import AcceleratorJobOperator
    from airflow_accel_provider.sensors._base import AcceleratorSensor

    cls = getattr(task, "operator_class", type(task))
    return isinstance(cls, type) and issubclass(cls, AcceleratorJobOperator | AcceleratorSensor)


def _of_task(task: Any, verdicts: Verdicts) -> Iterator[dict[str, Any]]:
    if hasattr(task, "expand_input"):
        yield from _of_each(task.operator_class, of_mapped(task), is_whole=is_known(task.expand_input.value))
    elif task.get_closest_mapped_task_group() is not None:
        yield from _of_each(type(task), of_grouped(task, _parameters(type(task))))
    else:
        yield from map(problem_json, verdicts.on(task))


def _of_each(cls: type, mapped: Iterable[Mapping[str, Any]], *, is_whole: bool = True) -> Iterator[dict[str, Any]]:
    """Yield the problems of each task that one is known to become, each problem once.

    What is missing in a task that is not known whole may come from another one.
    """
    from airflow_accel_provider.operators._settings import allowed_regions, catalog

    told: set[Problem] = set()
    for index, keywords in enumerate(mapped):
        # Other names are Airflow's, or of the user's own kind of operator.
        own = {each: value for each, value in keywords.items() if each in _parameters(cls)}
        if is_sensor(cls):
            problems = of_sensor(cls, own)
        else:
            rules: dict[str, Any] = {"catalog": catalog(), "today": today(), "allowed_regions": allowed_regions()}
            problems = check_keywords(_operator_of(cls), own, **rules).problems
        for problem in problems:
            if problem not in told and (is_whole or not problem.code.endswith("-missing")):
                told.add(problem)
                yield {**problem_json(problem), "map_index": index}


def _parameters(cls: type) -> frozenset[str]:
    return parameters_of_sensor(cls) if is_sensor(cls) else PARAMETERS[_operator_of(cls)]


def _operator_of(cls: type) -> str:
    """Return the name of the operator that a class is, or is made from."""
    return next(base.__name__ for base in cls.__mro__ if base.__name__ in PARAMETERS)


def _of_file(path: str, text: str) -> dict[str, Any]:
    """Return what Python said of a file that it could not import: the last line of it, and the message."""
    lines = text.strip().splitlines() or ["It could not be imported."]
    trace = max((n for n, line in enumerate(lines) if line.startswith(" ")), default=-1)
    message = " ".join(line.strip() for line in lines[trace + 1 :]) or lines[-1].strip()
    found = re.findall(rf'File ".*{re.escape(Path(path).name)}", line (\d+)', text)
    where = f"line {found[-1]}" if found else ""
    return {"file": path, **problem_json(error("import-error", f"{message}{_hint(message)}", where))}


def _hint(message: str) -> str:
    """Return what a parameter that an operator does not have was most likely meant to be."""
    operator = next((name for name in PARAMETERS if name in message), None)
    if operator is None or "argument" not in message:
        return ""
    known = PARAMETERS[operator] | AIRFLOW_PARAMETERS
    unknown = (word for word in re.findall(r"'(\w+)'", message) if word not in known)
    meant = [f"Did you mean {near}?" for near in (nearest(word, known) for word in unknown) if near]
    return " ".join([".", *meant]) if meant else ""


def _place(dag: DAG, task_id: str, root: Path) -> dict[str, Any]:
    path = Path(dag.fileloc)
    file = str(path.relative_to(root)) if path.is_relative_to(root) else str(path)
    return {"file": file, "dag": dag.dag_id, "task": task_id}


if __name__ == "__main__":
    main(*sys.argv[1:])
