"""Converts the datasets of a DAG to those of a request, and to their quarantine."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date
from decimal import Decimal
from typing import Any

from dqx_airflow.datasets import settings as of_datasets
from dqx_airflow.datasets.connections import (
    FIELDS,
    DatabaseConnection,
    database_connection,
    with_lineage_names,
)
from dqx_airflow.datasets.settings import DatasetSetting, settings_of
from dqx_airflow.diagnostics.diagnostic import did_you_mean
from dqx_airflow.errors import RequestError
from dqx_airflow.operators.exceptions import GateMisconfigured, as_misconfigured
from dqx_airflow.operators.spark_connection import require_connection
from dqx_airflow.values import DatasetRef
from dqx_airflow.values.request import bad_rows_limit

_DATABASE_EXAMPLE = "--conn-type postgres --conn-host HOST --conn-schema DATABASE`"
_FOLDER_NAME = re.compile(r"\w[\w.-]*")


def rendered(given: DatasetSetting, render: Callable[[Any], Any]) -> DatasetSetting:
    """The settings of a dataset, with the templates of a `DatasetRef` rendered.

    :param render: renders a value; Airflow has rendered everything but `DatasetRef`s.
    """
    if isinstance(given, DatasetRef):
        return {key: render(value) for key, value in settings_of(given).items()}
    return given


def dataset_ref(name: str, given: DatasetSetting, *, trust_log: bool = True) -> DatasetRef:
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
    refs: Iterable[DatasetRef],
) -> tuple[tuple[DatasetRef, ...], dict[str, DatabaseConnection]]:
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
        connections = {
            conn_id: database_connection(
                conn_id, {name: getattr(connection, name) for name in FIELDS}
            )
            for conn_id, connection in in_airflow.items()
        }
        return with_lineage_names(refs, connections), connections


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
        return bad_rows_limit(given["max_bad_rows"])
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
