"""The request of a task run of a gate: its date, templates rendered, source inlined, datasets and
locations checked; with the key of the run, its attempt and its lineage parent from the context of
the task. The source, a suite or a contract, is found next to the DAG, with its mistakes
reported."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from logging import Logger
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dqx_airflow import values
from dqx_airflow.datasets import connections
from dqx_airflow.datasets import settings as of_datasets
from dqx_airflow.datasets.settings import DatasetSetting, settings_of
from dqx_airflow.diagnostics.diagnostic import (
    Diagnostic,
    Level,
    did_you_mean,
    errors_of,
    listed,
    nearest,
)
from dqx_airflow.diagnostics.renderers import draw, first_findings
from dqx_airflow.errors import RequestError
from dqx_airflow.operators.exceptions import GateMisconfigured, as_misconfigured
from dqx_airflow.operators.results_location import ResultsLocation, require_results_location
from dqx_airflow.operators.spark_connection import require_connection
from dqx_airflow.values import GateRequest, Selection, SourceFile
from dqx_airflow.values import request as of_request

if TYPE_CHECKING:
    from dqx_airflow.dql import nodes
    from dqx_airflow.operators.gate_arguments import GateArguments


_STARTS_WITH_DAY = re.compile(r"\d{4}-\d{2}-\d{2}([T ]|$)")
_BETWEEN_SEGMENTS = "|"
"""Between the segments of a partition key, as Airflow's `ProductMapper` splits it."""
_LONGEST_PARTITION_KEY = 250
_MOST_SHOWN = 5


@dataclass(frozen=True, slots=True)
class DataDate:
    """The date of the data, and its origin in words (`from the logical date`).

    `objection` says why the date is in doubt and what to write instead; None if it is certain.
    `later` are the other dates of a range.
    """

    on: date
    source: str
    objection: str | None = None
    later: tuple[date, ...] = ()

    def __str__(self) -> str:
        if not self.later:
            return f"date {self.on.isoformat()}, {self.source}"
        first, last = self.on.isoformat(), self.later[-1].isoformat()
        return f"{len(self.later) + 1} dates from {first} to {last}, {self.source}"


def given_date(value: object, template: object) -> DataDate:
    """The date, or the range, in `date=`; for a timestamp, its date as written.

    :param value: the value, rendered.
    :param template: the value as written in the DAG.
    :raises GateMisconfigured: it is neither a date nor a range.
    """
    # A template may yield a timestamp, or, with native rendering, a date or a number like 20240517.
    text = "" if value is None else str(value).strip()
    if of_request.is_range(text):
        try:
            dates = of_request.dates_of_range(text, _day_in)
        except RequestError as error:
            raise GateMisconfigured(f"date={value!r}: {error.in_one_line}") from None
        return DataDate(dates[0], f"from date={text!r}", later=dates[1:])
    on = _day_in(text)
    if on is None:
        is_template = isinstance(template, str) and template != value
        rendered = f"; {template!r} renders to that" if is_template else ""
        raise GateMisconfigured(
            f"date={value!r} is not a date: write YYYY-MM-DD, or leave date out to judge the "
            f"logical date of the run{rendered}"
        )
    return DataDate(on, f"from date={text!r}")


def date_of_run(context: Any) -> DataDate:
    """The date of the run: its logical date, or else its partition key or the date in the asset
    events of the gates that triggered it."""
    run = context["dag_run"]
    timestamp = getattr(run, "logical_date", None)
    if timestamp is not None:
        return _logical_date(timestamp, getattr(context.get("dag"), "timezone", None))
    due = DataDate(_day_of(run.run_after), "the scheduled day of the run")
    named: dict[tuple[date, str], None] = {}
    key = getattr(run, "partition_key", None)
    if key:
        on = _day_of_key(key)
        if on is None:
            return _in_doubt(
                due,
                f"the partition key of the run, {str(key)!r}, is not a date",
                "date= with a template that returns a date from {{ partition_key }}",
            )
        named[on, f"the partition key {key}"] = None
    for event in getattr(run, "consumed_asset_events", None) or ():
        extra = event.extra
        if not isinstance(extra, Mapping) or "gate" not in extra:
            continue
        on = _day_of_key(getattr(event, "partition_key", None)) or _day_in(str(extra.get("date")))
        if on is None:
            problem = f"the asset event of {extra['gate']} has the date {extra.get('date')!r}"
            return _in_doubt(due, problem, "date=, a date or a template that returns one")
        named[on, f"the asset event of {extra['gate']}"] = None
    dates = {on for on, _ in named}
    if len(dates) > 1:
        different = listed(
            [f"{on.isoformat()} ({origin})" for on, origin in named], most=_MOST_SHOWN
        )
        return _in_doubt(
            due,
            f"the run was triggered with different dates: {different}",
            "date= with one of them, or expand the gate over all of them with .expand(date=...)",
        )
    if dates:
        return DataDate(dates.pop(), f"from {next(iter(named))[1]}")
    return _in_doubt(
        due,
        "the run has no logical date, and was not triggered by the asset event of a gate",
        "date=, such as date=\"{{ dag_run.conf['date'] }}\", or trigger it with a logical date",
    )


def _logical_date(timestamp: datetime, zone: Any) -> DataDate:
    """The day of a logical date as in `{{ ds }}`, if it is the same day in the time zone of the
    DAG."""
    on = _day_of(timestamp)
    source = "from the logical date of the run"
    local_day = _day_of(timestamp.astimezone(zone)) if zone is not None else on
    if local_day == on:
        return DataDate(on, source)
    name = getattr(zone, "name", None) or str(zone)
    return DataDate(
        on,
        source,
        f"the logical date {timestamp.isoformat()} is {on.isoformat()} in UTC and "
        f"{local_day.isoformat()} "
        f'in {name}, the time zone of the DAG: write date="{{{{ ds }}}}" for {on.isoformat()}, or '
        f"date=\"{{{{ logical_date.in_timezone('{name}') | ds }}}}\" for {local_day.isoformat()}",
    )


def _in_doubt(due: DataDate, problem: str, hint: str) -> DataDate:
    return DataDate(due.on, f"{due.source}: {problem}", f"{problem}: write {hint}")


def _day_in(text: str) -> date | None:
    """The day of an ISO date or timestamp, as written; None for other strings."""
    try:
        on = of_request.day_in(text)
        return on or datetime.fromisoformat(text.replace("Z", "+00:00")).date()
    except ValueError:
        return None


def _day_of_key(key: object) -> date | None:
    """The day in a partition key; None for a month, a week, or several segments."""
    return _day_in(str(key)) if _STARTS_WITH_DAY.match(str(key)) else None


def _day_of(timestamp: datetime) -> date:
    return date(timestamp.year, timestamp.month, timestamp.day)


_DATABASE_EXAMPLE = "--conn-type postgres --conn-host HOST --conn-schema DATABASE`"
_FOLDER_NAME = re.compile(r"\w[\w.-]*")


def rendered(given: DatasetSetting, render: Callable[[Any], Any]) -> DatasetSetting:
    """The settings of a dataset, with the templates of a `DatasetRef` rendered.

    :param render: renders a value; Airflow has rendered everything but `DatasetRef`s.
    """
    if isinstance(given, values.DatasetRef):
        return {key: render(value) for key, value in settings_of(given).items()}
    return given


def dataset_ref(name: str, given: DatasetSetting, *, trust_log: bool = True) -> values.DatasetRef:
    """The dataset `name`: a path, a table, or its settings.

    :param trust_log: false if no dataset of a gate trusts the log of its table.
    :raises GateMisconfigured: it is invalid.
    """
    try:
        ref = of_datasets.dataset_ref(name, given)
        return ref if trust_log else replace(ref, trust_log=False)
    except RequestError as error:
        raise GateMisconfigured(str(error)) from None


def with_databases(
    refs: Iterable[values.DatasetRef],
) -> tuple[tuple[values.DatasetRef, ...], dict[str, connections.DatabaseConnection]]:
    """The datasets, with the lineage names of database tables; and their connections, by ids.

    :raises GateMisconfigured: the connection does not exist, or it is not to a supported database.
    :raises GateInfrastructureError: the source of connections does not respond; the task is
        retried.
    """
    refs = tuple(refs)
    ids = dict.fromkeys(ref.conn_id for ref in refs if ref.conn_id is not None)
    in_airflow = {
        conn_id: require_connection(conn_id, "database connection", _DATABASE_EXAMPLE)
        for conn_id in ids
    }
    with as_misconfigured():
        databases = {
            conn_id: connections.database_connection(
                conn_id, {name: getattr(connection, name) for name in connections.FIELDS}
            )
            for conn_id, connection in in_airflow.items()
        }
        return connections.with_lineage_names(refs, databases), databases


def promotions(
    given: str | os.PathLike[str] | Mapping[str, Any] | None, datasets: Sequence[str]
) -> tuple[tuple[str, str], ...]:
    """The path or table to which each dataset is promoted, if any.

    :param given: a mapping of datasets to paths or tables; for a single dataset, just its target.
    :raises GateMisconfigured: it is invalid.
    """
    _require_no_empty_place("promote_to", given)
    if not given:
        return ()
    if isinstance(given, str | os.PathLike):
        if len(datasets) != 1:
            raise GateMisconfigured(
                f"promote_to={os.fspath(given)!r}: ambiguous with the datasets "
                f"{', '.join(datasets)}; write a mapping of datasets to paths or tables"
            )
        return ((datasets[0], os.fspath(given)),)
    if not isinstance(given, Mapping):
        raise GateMisconfigured(
            f"promote_to={given!r}: write a path, a table, or a mapping of datasets to them"
        )
    return _places("promote_to", given, datasets)


def slice_values(given: object) -> tuple[tuple[str, str], ...]:
    """The columns of a slice, each with its single value as a string.

    :raises GateMisconfigured: it is invalid.
    """
    if given is None:
        return ()
    if not isinstance(given, Mapping) or not given:
        raise GateMisconfigured(
            f"promote_slice={given!r}: write a mapping of columns to their value, such as "
            '{"store": "zurich"}'
        )
    for column, value in given.items():
        is_plain = isinstance(value, str | int | float | date | Decimal)
        if not is_plain or str(value).strip() in ("", "None"):
            raise GateMisconfigured(
                f"promote_slice has {value!r} for column '{column}': write a string, a "
                "number or a date"
            )
    return tuple(sorted((str(column), str(value)) for column, value in given.items()))


def max_bad_rows(given: object) -> str | None:
    """How many bad rows may stay behind while the others are promoted; None without the setting.

    :raises GateMisconfigured: it is invalid.
    """
    if given is None:
        return None
    example = "write {'max_bad_rows': '1%'}, or a number of rows"
    if not isinstance(given, Mapping) or not given:
        raise GateMisconfigured(f"promote_valid={given!r}: {example}")
    for key in given:
        if key != "max_bad_rows":
            hint = did_you_mean(str(key), ["max_bad_rows"]) or example
            raise GateMisconfigured(f"promote_valid has the unknown key {key!r}: {hint}")
    try:
        return of_request.bad_rows_limit(given["max_bad_rows"])
    except RequestError as error:
        raise GateMisconfigured(f"promote_valid: {error.problem}") from None


def quarantine_paths(
    given: str | Mapping[str, str] | None, datasets: Sequence[str]
) -> tuple[tuple[str, str], ...]:
    """The path of the quarantine of each dataset that has one.

    :param given: a mapping of datasets to paths; or a folder, in which each dataset has its own.
    :raises GateMisconfigured: it is invalid.
    """
    _require_no_empty_place("quarantine", given)
    if not given:
        return ()
    if isinstance(given, Mapping):
        return _places("quarantine", given, datasets)
    if not isinstance(given, str | os.PathLike):
        raise GateMisconfigured(
            f"quarantine={given!r}: write a folder, or a mapping of datasets to paths"
        )
    folder = os.fspath(given).rstrip("/")
    unfit = [name for name in datasets if not _FOLDER_NAME.fullmatch(name)]
    if unfit:
        raise GateMisconfigured(
            f"dataset '{unfit[0]}' is not a valid folder name: "
            "write quarantine as a mapping of datasets to paths"
        )
    return tuple((name, f"{folder}/{name}") for name in datasets)


def _places(
    argument: str, given: Mapping[str, Any], datasets: Sequence[str]
) -> tuple[tuple[str, str], ...]:
    """:raises GateMisconfigured: the gate has no such dataset."""
    if unknown := [str(name) for name in given if name not in datasets]:
        raise GateMisconfigured(
            f"{argument} has unknown datasets {', '.join(unknown)}; available: "
            f"{', '.join(datasets)}"
        )
    return tuple((str(name), str(place)) for name, place in given.items() if place)


def _require_no_empty_place(argument: str, given: object) -> None:
    """:raises GateMisconfigured: a template had no result: nothing would be written there."""
    places = given.values() if isinstance(given, Mapping) else (given,)
    if any(isinstance(place, str) and not place.strip() for place in places):
        raise GateMisconfigured(f"{argument}={given!r}: the location is empty; write one, or None")


_AS_GIVEN = (
    *of_request.SETTABLE_OPTIONS,
    *("recompute", "sample_rows", "promote_partial", "accept_required"),
)
"""The arguments that the request takes over by name."""


def build_request(
    gate: GateArguments,
    context: Any,
    chosen: DataDate,
    source: values.SourceFile,
    settings: Mapping[str, DatasetSetting],
    origin: values.GateOrigin,
    execution_timeout: timedelta | None,
) -> tuple[values.GateRequest, ResultsLocation, Mapping[str, connections.DatabaseConnection]]:
    """The request, where its results go, and the databases of its datasets by connection ID.

    :raises GateMisconfigured: the gate cannot run as it is written.
    """
    location = require_results_location(gate.results_root, gate.results_conn_id)
    datasets, databases = with_databases(
        dataset_ref(str(name), given, trust_log=gate.trust_log) for name, given in settings.items()
    )
    timeouts = [_seconds(timeout) for timeout in (gate.timeout, execution_timeout) if timeout]
    request = values.GateRequest(
        run_key=run_key_of(context, gate.gate, chosen.on),
        attempt=attempt_of(context),
        suite=source,
        datasets=datasets,
        results_root=location.root,
        parent=lineage_parent_of(context),
        timeout_s=min(timeouts, default=None),
        quarantine=quarantine_paths(gate.quarantine, tuple(map(str, settings))),
        promote_to=promotions(gate.promote_to, tuple(map(str, settings))),
        date_from=chosen.source,
        promote_slice=slice_values(gate.promote_slice),
        origin=origin,
        selection=gate.selection,
        promote_blocked=bool(gate.promote_blocked),
        promote_valid=max_bad_rows(gate.promote_valid),
        **{name: getattr(gate, name) for name in _AS_GIVEN},
    )
    request = replace(request, fail_on=values.Severity(gate.fail_on))
    parts = (values.GatePart(replace(request.run_key, date=on)) for on in chosen.later)
    request = replace(request, more=tuple(parts))
    if chosen.objection and (dated := [ref.name for ref in request.datasets if ref.date_column]):
        raise GateMisconfigured(
            f"the date of dataset '{dated[0]}' is ambiguous: {chosen.objection}"
        )
    try:
        of_datasets.check_locations(request)
        of_datasets.check_quarantine(request)
        of_datasets.check_promotion(request, [key.date for key in request.run_keys])
        of_request.require_whole_run(
            request.selection, request.promote_to, promote_partial=request.promote_partial
        )
    except RequestError as error:
        raise GateMisconfigured(str(error)) from None
    if gate.certify_partitions:
        partition_keys(request, [request.run_key.date])
    return request, location, databases


def partition_keys(request: values.GateRequest, dates: Iterable[date]) -> list[str]:
    """The keys of the partitions of an asset that a gate certifies: a date, and after it the value
    of each column of `promote_slice`, in the order of their names.

    :raises GateMisconfigured: Airflow could not store a key, or split it again.
    """
    segments = [value for _, value in request.promote_slice]
    for value in segments:
        if _BETWEEN_SEGMENTS in value:
            raise GateMisconfigured(
                f"certify_partitions: the value {value!r} of promote_slice cannot be a segment of "
                f"a partition key: remove {_BETWEEN_SEGMENTS!r}, or certify_partitions"
            )
    keys = [_BETWEEN_SEGMENTS.join((on.isoformat(), *segments)) for on in dict.fromkeys(dates)]
    if any(len(key) > _LONGEST_PARTITION_KEY for key in keys):
        raise GateMisconfigured(
            f"certify_partitions: the partition key {keys[0]!r} has more than "
            f"{_LONGEST_PARTITION_KEY} characters: remove certify_partitions"
        )
    return keys


def run_key_of(context: Any, gate: str | None, on: date) -> values.RunKey:
    """The run key of a task run. Every map index is a separate run."""
    ti = context["ti"]
    map_index = getattr(ti, "map_index", -1)
    suffix = f"[{map_index}]" if isinstance(map_index, int) and map_index >= 0 else ""
    return values.RunKey(gate or f"{ti.dag_id}.{ti.task_id}", on, f"{ti.run_id}{suffix}")


def attempt_of(context: Any) -> values.Attempt:
    """The attempt of a task run: the id that Airflow gives each try, also after a clear."""
    ti = context["ti"]
    return values.Attempt(int(ti.try_number), str(ti.id))


def lineage_parent_of(context: Any) -> values.ParentRun | None:
    """The OpenLineage run of this task; None if the OpenLineage provider is not installed."""
    try:
        from airflow.providers.openlineage.plugins import macros
    except ImportError:
        return None
    ti = context["ti"]
    return values.ParentRun(
        namespace=macros.lineage_job_namespace(),
        job=macros.lineage_job_name(ti),
        run_id=macros.lineage_run_id(ti),
        root_namespace=macros.lineage_root_job_namespace(ti),
        root_job=macros.lineage_root_job_name(ti),
        root_run_id=macros.lineage_root_run_id(ti),
    )


def origin_of(task: Any, source: Path | None) -> values.GateOrigin:
    """The owner and the documentation of the task, and the location of its suite or contract.

    Airflow's default owner is ignored.
    """
    from airflow.providers.common.compat.sdk import conf

    from dqx_airflow.values.files import source_location

    default = conf.get("operators", "default_owner", fallback="airflow")
    written = (getattr(task, name, None) for name in ("doc_md", "doc", "doc_rst"))
    return values.GateOrigin(
        owner=task.owner if task.owner != default else None,
        documentation=next(filter(None, written), None),
        source=None if source is None else source_location(source),
    )


def data_date(given: object, template: object, context: Any, log: Any) -> DataDate:
    """Determines the date of the data, and logs it first.

    :param given: the argument `date`, rendered; a value may render to nothing.
    :param template: the argument as written in the DAG.
    :raises GateMisconfigured: it is not a date.
    """
    is_given = template is not None or given is not None
    chosen = given_date(given, template) if is_given else date_of_run(context)
    write = log.info if chosen.objection is None else log.warning
    write("%s", chosen)
    return chosen


def _seconds(given: timedelta | float) -> float:
    return given.total_seconds() if isinstance(given, timedelta) else float(given)


@dataclass(frozen=True, slots=True)
class FoundSource:
    """A source; its file, None for one in the DAG itself; and the folder of the DAG."""

    source: SourceFile
    path: Path | None
    folder: Path | None


def find_source(given: Any, folder: Path | None, *, kind: str, signs: str) -> FoundSource:
    """Finds the source in an operator's argument, which is a path or the text itself.

    :param folder: the folder of the DAG's file.
    :param kind: "suite" or "contract", the argument and its word in messages.
    :param signs: a substring of every such text, and of no path.
    :raises GateMisconfigured: the file does not exist, or it cannot be read.
    """
    from dqx_airflow.dql.syntax.source_file import read_source

    if not isinstance(given, str | os.PathLike) or not str(given).strip():
        raise GateMisconfigured(f"{kind}={given!r}: give the path of a file, or a {kind}")
    text = os.fspath(given)
    if any(sign in text for sign in signs):
        return FoundSource(SourceFile(f"<inline {kind}>", text), None, folder)
    paths = possible_paths(text, folder)
    for path in paths:
        source = read_source(path, text)
        if isinstance(source, SourceFile):
            return FoundSource(source, path, folder)
        if not source.is_missing:
            raise GateMisconfigured(f"the {kind} {path}: {source.reason}")
    looked = " or ".join(str(path.absolute()) for path in paths)
    raise GateMisconfigured(
        f"{kind} {text} not found: searched {looked}; {_meant(paths)}give its path relative to "
        "the file of the DAG, or absolute"
    )


def _meant(paths: Iterable[Path]) -> str:
    """The hint "did you mean" with a similar file next to a missing one; empty without one."""
    for path in paths:
        with suppress(OSError, ValueError):
            names = [file.name for file in path.parent.iterdir() if file.suffix == path.suffix]
            if near := nearest(path.name, names):
                return f"did you mean '{near}'? Otherwise "
    return ""


def possible_paths(text: str, folder: Path | None) -> list[Path]:
    """The possible locations of a path in a DAG, in search order."""
    path = Path(os.path.expanduser(text))
    return [path] if path.is_absolute() or folder is None else [folder / path, path]


def errors_in(
    diagnostics: Iterable[Diagnostic], sources: Mapping[str, str], name: str
) -> list[str]:
    """The errors of a source, with its lines, as one mistake; empty without errors.

    :param name: the name of the source in messages.
    """
    errors = errors_of(diagnostics)
    if not errors:
        return []
    displayed, rest = first_findings(errors)
    number = f"{len(errors)} errors" if len(errors) > 1 else "an error"
    drawn = [draw([diagnostic], sources) for diagnostic in displayed]
    return ["\n".join(filter(None, (f"{name} has {number}:", *drawn, rest)))]


def log_diagnostics(
    diagnostics: Iterable[Diagnostic], sources: Mapping[str, str], log: Logger, *, kind: str
) -> None:
    """Logs all diagnostics of a source.

    :raises GateMisconfigured: it has errors; the message contains the first of them.
    """
    diagnostics = list(diagnostics)
    displayed, rest = first_findings(diagnostics)
    for diagnostic in displayed:
        write = log.error if diagnostic.level is Level.ERROR else log.warning
        write("%s", draw([diagnostic], sources))
    if rest:
        log.error("%s", rest)
    errors = errors_of(diagnostics)
    if errors:
        first = errors[0]
        number = f"{len(errors)} errors, the first" if len(errors) > 1 else "an error"
        hint = first.help or first.label
        raise GateMisconfigured(
            f"the {kind} {first.span.file} has {number} in line {first.span.line}: "
            f"{first.message}{f' ({hint})' if hint else ''}"
        )


def selected_suite(request: GateRequest, suite: nodes.Suite) -> nodes.Suite:
    """Reduces the suite of a request to its selected assertions.

    :raises GateMisconfigured: no assertion is selected, or the selection refers to something that
        does not exist.
    """
    selected, _ = selected_suites(request, [(suite, request.suite)])[0]
    assert selected is not None
    return selected


def selected_suites(
    request: GateRequest, suites: Sequence[tuple[nodes.Suite, SourceFile]]
) -> list[tuple[nodes.Suite | None, Selection | None]]:
    """Reduces each suite to its selected assertions.

    Returns for each the suite, None if none of its assertions is selected, and the part of the
    selection that matches in it.

    :raises GateMisconfigured: no assertion is selected at all, or the selection refers to something
        that does not exist; or it excludes a P0 or required assertion from a gate that promotes.
    """
    if request.selection is None:
        return [(suite, None) for suite, _ in suites]
    from dqx_airflow.plan.selection import choose_among, chosen_of, require_protected, seen_of

    selectables = [seen_of(replace(request, suite=source), suite) for suite, source in suites]
    selected: list[tuple[nodes.Suite | None, Selection | None]] = []
    with as_misconfigured():
        for (suite, source), own, all_of in zip(
            suites, choose_among(selectables, request.selection), selectables, strict=True
        ):
            if own is None:
                require_protected(
                    [assertion.name for assertion in all_of if assertion.is_protected], request
                )
                selected.append((None, None))
                continue
            chosen = chosen_of(replace(request, suite=source, selection=own), suite)
            selected.append((suite if chosen is None else chosen.suite, own))
    return selected


def dag_folder(context: Any) -> Path | None:
    """The folder of the DAG's file, against which relative paths are resolved."""
    location = getattr(context.get("dag"), "fileloc", None)
    return Path(location).parent if location else None
