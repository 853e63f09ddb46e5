"""Metrics of the columns of a dataset: their types, number and order, and the age of its data."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from functools import partial

from dqx_airflow.diagnostics.diagnostic import listed
from dqx_airflow.metrics.builtin import counts
from dqx_airflow.metrics.builtin.values import ANY, columns_of
from dqx_airflow.metrics.metric import Argument, ArgumentKind, Arguments, Metric, MetricUnit, Scan
from dqx_airflow.metrics.types import find_column_path
from dqx_airflow.values import MetricValue


def _type_of_column(arguments: Arguments, types: Mapping[str, str]) -> tuple[MetricValue, str]:
    place = find_column_path(arguments[0], types)
    return (None if place is None else place.type), ""


def _extra_columns(arguments: Arguments, types: Mapping[str, str]) -> tuple[MetricValue, str]:
    places = [find_column_path(name, types) for name in columns_of(arguments[0])]
    known = {place.path[0] for place in places if place is not None}
    extra = [column for column in types if column not in known]
    return len(extra), f"not listed: {listed(extra)}" if extra else ""


def _forbidden_columns(arguments: Arguments, types: Mapping[str, str]) -> tuple[MetricValue, str]:
    names = counts.listed_values(arguments[0])
    patterns = [str(value).lower().replace("[", "[[]").replace("?", "[?]") for value in names]
    found = [
        column
        for column in types
        if any(fnmatchcase(column.lower(), pattern) for pattern in patterns)
    ]
    return len(found), f"forbidden: {listed(found)}" if found else ""


def _position_of_column(arguments: Arguments, types: Mapping[str, str]) -> tuple[MetricValue, str]:
    place = find_column_path(arguments[0], types)
    if place is None or len(place.path) > 1:
        return None, ""
    return [*types].index(place.path[0]) + 1, ""


_of_schema = partial(Metric, scan=Scan.SCHEMA)

COLUMNS = (
    _of_schema(
        "column_type",
        (ANY,),
        "The type of the column; no value if the column does not exist.",
        "assert column price type decimal(18,2)",
        is_internal=True,
        no_value="the column does not exist",
        of_schema=_type_of_column,
        unit=MetricUnit.TEXT,
    ),
    _of_schema(
        "column_count",
        (),
        "The number of columns of the dataset.",
        "assert column_count() == 12",
        of_schema=lambda _, types: (len(types), ""),
        unit=MetricUnit.COLUMNS,
    ),
    _of_schema(
        "extra_column_count",
        (Argument("columns", ArgumentKind.NAMES),),
        "The number of columns of the dataset that are not in the list.",
        "assert extra_column_count([order_id, line, price]) == 0",
        of_schema=_extra_columns,
        unit=MetricUnit.COLUMNS,
    ),
    _of_schema(
        "forbidden_column_count",
        (Argument("names", ArgumentKind.LITERALS),),
        "The number of columns of the dataset whose name is in the list. In a name, `*` matches "
        "any characters; capital and small letters are the same.",
        'assert forbidden_column_count(["password", "pii_*"]) == 0',
        of_schema=_forbidden_columns,
        unit=MetricUnit.COLUMNS,
    ),
    _of_schema(
        "column_position",
        (ANY,),
        "The place of the column among the columns of the dataset, from 1; no value if the column "
        "does not exist.",
        "assert column_position(order_id) == 1",
        least=1,
        no_value="the column does not exist",
        of_schema=_position_of_column,
        unit=MetricUnit.NUMBER,
    ),
    Metric(
        "commit_age",
        (),
        "The time since the last commit that changed the data of the Delta table.",
        "assert commit_age() <= 1 day",
        scan=Scan.LOG,
        unit=MetricUnit.SECONDS,
    ),
)
