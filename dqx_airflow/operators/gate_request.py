"""The request of a task run of a gate: its arguments in the form that the job reads, and the key of
the run, its attempt and its lineage parent from the context of the task.

An argument with the name and the type of a field of `GateRequest` is taken over unchanged.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, replace
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4, uuid5

from dqx_airflow import values
from dqx_airflow.datasets import settings as of_datasets
from dqx_airflow.datasets.databases import (
    CONNECTION_FIELDS,
    DatabaseConnection,
    database_connection,
    with_lineage_names,
)
from dqx_airflow.datasets.settings import DatasetSetting, settings_of
from dqx_airflow.datasets.write_locations import check_locations, check_promotion, check_quarantine
from dqx_airflow.diagnostics.diagnostic import did_you_mean
from dqx_airflow.errors import RequestError
from dqx_airflow.operators.exceptions import GateMisconfiguredError, as_misconfigured
from dqx_airflow.operators.results_location import ResultsLocation, require_results_location
from dqx_airflow.operators.spark_connection import require_connection
from dqx_airflow.operators.templates import lost_values
from dqx_airflow.values import request as of_request
from dqx_airflow.values.blank import is_blank

if TYPE_CHECKING:
    from dqx_airflow.operators.data_date import DataDate
    from dqx_airflow.operators.gate import GateOperator


_BETWEEN_SEGMENTS = "|"
"""Between the segments of a partition key, as Airflow's `ProductMapper` splits it."""
_LONGEST_PARTITION_KEY = 250
_DATABASE_EXAMPLE = "--conn-type postgres --conn-host HOST --conn-schema DATABASE`"
_FOLDER_NAME = re.compile(r"\w[\w.-]*")


def build_request(
    gate: GateOperator,
    context: Any,
    chosen: DataDate,
    source: values.SourceFile,
    settings: Mapping[str, DatasetSetting],
    origin: values.GateOrigin,
    execution_timeout: timedelta | None,
) -> tuple[values.GateRequest, ResultsLocation, Mapping[str, DatabaseConnection]]:
    """The request, where its results go, and the databases of its datasets by connection ID.

    :raises GateMisconfiguredError: the gate cannot run as it is written.
    """
    location = require_results_location(gate.results_root, gate.results_conn_id)
    datasets, databases = with_databases(
        dataset_ref(str(name), given, trust_log=gate.trust_log) for name, given in settings.items()
    )
    timeouts = [
        _seconds(timeout) for timeout in (gate.validation_timeout, execution_timeout) if timeout
    ]
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
        fail_on=values.Severity(gate.fail_on),
        **taken_over(gate),
    )
    parts = (values.GatePart(replace(request.run_key, date=on)) for on in chosen.later)
    request = replace(request, more=tuple(parts))
    if chosen.objection and (dated := [ref.name for ref in request.datasets if ref.date_column]):
        raise GateMisconfiguredError(
            f"the date of dataset '{dated[0]}' is ambiguous: {chosen.objection}"
        )
    try:
        check_locations(request)
        check_quarantine(request)
        check_promotion(request, [key.date for key in request.run_keys])
        of_request.require_whole_run(
            request.selection, request.promote_to, promote_partial=request.promote_partial
        )
    except RequestError as error:
        raise GateMisconfiguredError(str(error)) from None
    if gate.certify_partitions:
        partition_keys(request, [request.run_key.date])
    return request, location, databases


def taken_over(gate: GateOperator) -> dict[str, Any]:
    """The arguments that have the name and the type of a field of the request, which are taken
    over unchanged."""
    types = {field.name: field.type for field in fields(values.GateRequest)}
    return {
        name: getattr(gate, name)
        for name, type_name in gate.common_arguments.types.items()
        if types.get(name) == type_name
    }


def rendered(argument: str, given: DatasetSetting, render: Callable[[Any], Any]) -> DatasetSetting:
    """The settings of a dataset, with the templates of a `DatasetRef` rendered.

    :param argument: where the gate has the dataset.
    :param render: renders a value; Airflow has rendered everything but `DatasetRef`s.
    :raises GateMisconfiguredError: a template has no result.
    """
    if not isinstance(given, values.DatasetRef):
        return given
    written = settings_of(given)
    settings = {key: render(value) for key, value in written.items()}
    if lost := [*lost_values(argument, written, settings)]:
        raise GateMisconfiguredError("; ".join(lost))
    return settings


def dataset_ref(name: str, given: DatasetSetting, *, trust_log: bool = True) -> values.DatasetRef:
    """The dataset `name`: a path, a table, or its settings.

    :param trust_log: false if no dataset of a gate trusts the log of its table.
    :raises GateMisconfiguredError: it is invalid.
    """
    try:
        ref = of_datasets.dataset_ref(name, given)
        return ref if trust_log else replace(ref, trust_log=False)
    except RequestError as error:
        raise GateMisconfiguredError(str(error)) from None


def with_databases(
    refs: Iterable[values.DatasetRef],
) -> tuple[tuple[values.DatasetRef, ...], dict[str, DatabaseConnection]]:
    """The datasets, with the lineage names of database tables; and their connections, by ids.

    :raises GateMisconfiguredError: the connection does not exist, or it is not to a supported
        database.
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
            conn_id: database_connection(
                conn_id, {name: getattr(connection, name) for name in CONNECTION_FIELDS}
            )
            for conn_id, connection in in_airflow.items()
        }
        return with_lineage_names(refs, databases), databases


def promotions(
    given: str | os.PathLike[str] | Mapping[str, Any] | None, datasets: Sequence[str]
) -> tuple[tuple[str, str], ...]:
    """The path or table to which each dataset is promoted, if any.

    :param given: a mapping of datasets to paths or tables; for a single dataset, just its target.
    :raises GateMisconfiguredError: it is invalid.
    """
    _require_no_empty_place("promote_to", given)
    if not given:
        return ()
    if isinstance(given, str | os.PathLike):
        if len(datasets) != 1:
            raise GateMisconfiguredError(
                f"promote_to={os.fspath(given)!r}: ambiguous with the datasets "
                f"{', '.join(datasets)}; write a mapping of datasets to paths or tables"
            )
        return ((datasets[0], os.fspath(given)),)
    if not isinstance(given, Mapping):
        raise GateMisconfiguredError(
            f"promote_to={given!r}: write a path, a table, or a mapping of datasets to them"
        )
    return _places("promote_to", given, datasets)


def slice_values(given: object) -> tuple[tuple[str, str], ...]:
    """The columns of a slice, each with its single value as a string.

    :raises GateMisconfiguredError: it is invalid.
    """
    if given is None:
        return ()
    if not isinstance(given, Mapping) or not given:
        raise GateMisconfiguredError(
            f"promote_slice={given!r}: write a mapping of columns to their value, such as "
            '{"store": "zurich"}'
        )
    for column, value in given.items():
        is_plain = isinstance(value, str | int | float | date | Decimal)
        if not is_plain or is_blank(str(value)) or str(value).strip() == "None":
            raise GateMisconfiguredError(
                f"promote_slice has {value!r} for column '{column}': write a string, a "
                "number or a date"
            )
    return tuple(sorted((str(column), str(value)) for column, value in given.items()))


def max_bad_rows(given: object) -> str | None:
    """The limit of bad rows that stay behind while the others are promoted; None without it.

    :raises GateMisconfiguredError: it is invalid.
    """
    if given is None:
        return None
    example = "write {'max_bad_rows': '1%'}, or a number of rows"
    if not isinstance(given, Mapping) or not given:
        raise GateMisconfiguredError(f"promote_valid={given!r}: {example}")
    for key in given:
        if key != "max_bad_rows":
            hint = did_you_mean(str(key), ["max_bad_rows"]) or example
            raise GateMisconfiguredError(f"promote_valid has the unknown key {key!r}: {hint}")
    try:
        return of_request.bad_rows_limit(given["max_bad_rows"])
    except RequestError as error:
        raise GateMisconfiguredError(f"promote_valid: {error.problem}") from None


def quarantine_paths(
    given: str | Mapping[str, str] | None, datasets: Sequence[str]
) -> tuple[tuple[str, str], ...]:
    """The path of the quarantine of each dataset that has one.

    :param given: a mapping of datasets to paths; or a folder, in which each dataset has its own.
    :raises GateMisconfiguredError: it is invalid.
    """
    _require_no_empty_place("quarantine", given)
    if not given:
        return ()
    if isinstance(given, Mapping):
        return _places("quarantine", given, datasets)
    if not isinstance(given, str | os.PathLike):
        raise GateMisconfiguredError(
            f"quarantine={given!r}: write a folder, or a mapping of datasets to paths"
        )
    folder = os.fspath(given).rstrip("/")
    unfit = [name for name in datasets if not _FOLDER_NAME.fullmatch(name)]
    if unfit:
        raise GateMisconfiguredError(
            f"dataset '{unfit[0]}' is not a valid folder name: "
            "write quarantine as a mapping of datasets to paths"
        )
    return tuple((name, f"{folder}/{name}") for name in datasets)


def _places(
    argument: str, given: Mapping[str, Any], datasets: Sequence[str]
) -> tuple[tuple[str, str], ...]:
    """:raises GateMisconfiguredError: the gate has no such dataset."""
    if unknown := [str(name) for name in given if name not in datasets]:
        raise GateMisconfiguredError(
            f"{argument} has unknown datasets {', '.join(unknown)}; available: "
            f"{', '.join(datasets)}"
        )
    return tuple((str(name), str(place)) for name, place in given.items() if place)


def _require_no_empty_place(argument: str, given: object) -> None:
    """:raises GateMisconfiguredError: a template had no result: nothing would be written there."""
    places = given.values() if isinstance(given, Mapping) else (given,)
    if any(map(is_blank, places)):
        raise GateMisconfiguredError(
            f"{argument}={given!r}: the location is empty; write one, or None"
        )


def partition_keys(request: values.GateRequest, dates: Iterable[date]) -> list[str]:
    """The keys of the partitions of an asset that a gate certifies: a date, and after it the value
    of each column of `promote_slice`, in the order of their names.

    :raises GateMisconfiguredError: Airflow could not store a key, or split it again.
    """
    segments = [value for _, value in request.promote_slice]
    for value in segments:
        if _BETWEEN_SEGMENTS in value:
            raise GateMisconfiguredError(
                f"certify_partitions: the value {value!r} of promote_slice cannot be a segment of "
                f"a partition key: remove {_BETWEEN_SEGMENTS!r}, or certify_partitions"
            )
    keys = [_BETWEEN_SEGMENTS.join((on.isoformat(), *segments)) for on in dict.fromkeys(dates)]
    if any(len(key) > _LONGEST_PARTITION_KEY for key in keys):
        raise GateMisconfiguredError(
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


_THIS_PROCESS = uuid4()


def attempt_of(context: Any) -> values.Attempt:
    """The attempt of a task run: the id that Airflow gives each try, also after a clear.

    `airflow tasks test` runs a try once more under its id, in a process of its own. It has another
    id: the report of the earlier run is about the data of that time.
    """
    ti = context["ti"]
    own = str(ti.id)
    if os.environ.get("AIRFLOW_TEST_MODE"):
        own = str(uuid5(_THIS_PROCESS, own))
    return values.Attempt(int(ti.try_number), own)


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
    return values.GateOrigin(
        owner=task.owner if task.owner != default else None,
        documentation=task.doc_md or task.doc or task.doc_rst or None,
        source=None if source is None else source_location(source),
    )


def _seconds(given: timedelta | float) -> float:
    return given.total_seconds() if isinstance(given, timedelta) else float(given)
