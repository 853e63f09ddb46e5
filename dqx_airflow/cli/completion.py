"""The values that a shell completes for options and arguments: gates, runs, incidents, waivers and
proposals of the results store, assertions, tags, datasets and tunables of a suite.

Nothing here starts Spark. Files are completed by the shell.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dqx_airflow.cli.shell_words import ShellWord, is_offered

if TYPE_CHECKING:
    from dqx_airflow.dql.nodes import Suite
    from dqx_airflow.results.query import StoredResults
    from dqx_airflow.tuning.suite_file import SuiteFile

_MOST_RUNS = 50


@dataclass(frozen=True, slots=True)
class Completion:
    """A word that the shell may complete to, without a help: for the help of a command, the command
    would have to be imported."""

    value: str
    type: str = "plain"
    help: str | None = None


def complete_values(parameter: Any) -> None:
    """Makes the shell complete the values of a parameter, in the form that the shell needs."""
    values = _VALUES.get(parameter.name)
    choices = parameter.shell_complete
    if getattr(parameter.type, "choices", None):
        values = None

    def found(ctx: Any, incomplete: str) -> list[str]:
        if values is None:
            return [item.value for item in choices(ctx, incomplete)]
        try:
            names = dict.fromkeys(values(_typed_in(ctx)))
        except Exception:  # a shell has no place for a message, and the call itself will print it
            return []
        return [name for name in names if name.startswith(incomplete) and is_offered(name)]

    def completed(ctx: Any, incomplete: str) -> list[Completion]:
        word = ctx.find_object(ShellWord) or ShellWord()
        return [Completion(word.completed(value)) for value in found(ctx, incomplete)]

    parameter.shell_complete = completed


def _typed_in(ctx: Any) -> dict[str, Any]:
    """The values that are typed before the word to complete, by the names of their parameters."""
    typed = dict(ctx.params)
    # Before an option without its value, the library leaves the arguments where they are.
    left = iter(ctx.args)
    for parameter in ctx.command.params:
        if parameter.param_type_name == "argument" and typed.get(parameter.name) is None:
            typed[parameter.name] = next(left, None)
    return typed


def _gates(typed: Mapping[str, Any]) -> list[str]:
    from dqx_airflow.results.query import RunsWanted

    return sorted({row["gate"] for row in _store(typed).run_rows(RunsWanted(), ["gate"])})


def _runs(typed: Mapping[str, Any]) -> list[str]:
    from dqx_airflow.results.runs import list_runs

    return ["latest", *(run.run_id for run in list_runs(_store(typed), limit=_MOST_RUNS))]


def _incidents(typed: Mapping[str, Any]) -> list[str]:
    from dqx_airflow.results.incidents import stored_incidents
    from dqx_airflow.results.query import RunsWanted

    return [one.id[:8] for one in stored_incidents(_store(typed), RunsWanted()) if one.is_open]


def _waivers(typed: Mapping[str, Any]) -> list[str]:
    from datetime import datetime, timezone

    from dqx_airflow.results.decisions import waivers_of

    now = datetime.now(timezone.utc)
    return [one.id[:8] for one in waivers_of(_store(typed)) if one.is_active(now)]


def _proposals(typed: Mapping[str, Any]) -> list[str]:
    from dqx_airflow.tuning.review import ReviewQueue

    file = _file(typed)
    queue = ReviewQueue(file, file.read().valid_suite.name.value, _store(typed))
    return [proposal.id for proposal in queue.all_pending()]


def _assertions(typed: Mapping[str, Any]) -> list[str]:
    """The assertions of the suites of a call, or else of the last run of a gate or of a run."""
    if _paths(typed) and typed.get("run_id") is None:
        return [
            assertion.name.value
            for suite in _suites(typed)
            for check in suite.checks
            for assertion in check.assertions
            if assertion.name is not None
        ]
    from dqx_airflow.results.decisions import gates_called
    from dqx_airflow.results.runs import find_report, list_runs

    store = _store(typed)
    run_id = typed.get("run_id")
    if run_id == "latest":
        run_id = list_runs(store, limit=1)[0].run_id
    if run_id is None:
        reports = store.newest_reports(gates_called(store, typed["gate"]))
    else:
        found = find_report(store, run_id)
        reports = () if found is None else (found,)
    return [verdict.name for report in reports for verdict in report.verdicts]


def _tags(typed: Mapping[str, Any]) -> list[str]:
    return sorted(
        {
            tag.text
            for suite in _suites(typed)
            for check in suite.checks
            for assertion in check.assertions
            for tag in assertion.tags
        }
    )


def _datasets(typed: Mapping[str, Any]) -> list[str]:
    """The datasets of the nearest `dqx.toml`, as the beginning of `NAME=LOCATION`."""
    from dqx_airflow.cli.command import settings_here

    return [f"{name}=" for name in settings_here().datasets]


def _tunables(typed: Mapping[str, Any]) -> list[str]:
    from dqx_airflow.tuning.tunables import tunables_of

    return [tunable.name for tunable in tunables_of(_suite(typed))]


def _new_values(typed: Mapping[str, Any]) -> list[str]:
    return [f"{name}=" for name in _tunables(typed)]


def _store(typed: Mapping[str, Any]) -> StoredResults:
    from dqx_airflow.cli.stores import results_of

    suite = typed.get("suite")
    return results_of(typed.get("results_root"), Path() if suite is None else Path(suite).parent)


def _paths(typed: Mapping[str, Any]) -> list[str]:
    """The typed suites, of a command that takes one or several."""
    for name in ("suite", "path", "paths"):
        given = typed.get(name)
        if given:
            return [*given] if isinstance(given, tuple | list) else [given]
    return []


def _suites(typed: Mapping[str, Any]) -> list[Suite]:
    from dqx_airflow.tuning.suite_file import SuiteFile

    files = [SuiteFile.at(Path(path), os.environ) for path in _paths(typed)]
    return [file.read().valid_suite for file in files]


def _suite(typed: Mapping[str, Any]) -> Suite:
    return _file(typed).read().valid_suite


def _file(typed: Mapping[str, Any]) -> SuiteFile:
    from dqx_airflow.tuning.suite_file import SuiteFile

    return SuiteFile.at(Path(typed["suite"]), os.environ)


_VALUES: Mapping[str, Callable[[Mapping[str, Any]], Iterable[str]]] = {
    "assertion": _assertions,
    "dataset": _datasets,
    "datasets": _datasets,
    "exclude_tag": _tags,
    "gate": _gates,
    "incident": _incidents,
    "only": _assertions,
    "tunable": _tunables,
    "proposals": _proposals,
    "run": _runs,
    "run_id": _runs,
    "tag": _tags,
    "values": _new_values,
    "waiver": _waivers,
}
"""The values for a parameter of this name, from those that are typed before it."""
