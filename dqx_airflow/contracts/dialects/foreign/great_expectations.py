"""Expectations of Great Expectations: `expectation_type` of 0.x, `type` of 1.x, and `kwargs`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from dqx_airflow.contracts.demands import AmongRows
from dqx_airflow.contracts.dialects.foreign import Translation
from dqx_airflow.contracts.dialects.foreign.conditions import row_condition
from dqx_airflow.contracts.dialects.foreign.expectations import (
    OF_COLUMNS,
    OF_TABLES,
    OF_VALUES,
    ExpectationArguments,
)
from dqx_airflow.contracts.dialects.foreign.thresholds import severity_of
from dqx_airflow.errors import NoCounterpartError

_REMARKS = ("meta", "notes", "description", "id", "severity", "rendered_content")
_ARGUMENT_REMARKS = (
    *("result_format", "include_config", "catch_exceptions", "batch_id", "meta"),
    *("allow_relative_error", "severity"),
)
_STRUCTURE = ("type", "expectation_type", "kwargs")
_KINDS = {**OF_VALUES, **OF_COLUMNS, **OF_TABLES}


def translate(
    expectation: Mapping[str, Any], column: str | None, sql_dialect: str | None = None
) -> Translation:
    """The demands of an expectation. Its `column` wins over that of its field.

    :param sql_dialect: the dialect of the SQL in the expectation.
    :raises NoCounterpartError: there are none.
    """
    written = str(expectation.get("type") or expectation.get("expectation_type") or "")
    kind = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", written).lower()
    if kind not in _KINDS:
        raise NoCounterpartError(f"the expectation '{written}' has no counterpart")
    extra = [key for key in expectation if key not in (*_REMARKS, *_STRUCTURE)]
    if extra:
        raise NoCounterpartError(f"an expectation has no '{extra[0]}'")
    given = expectation.get("kwargs") or {}
    if not isinstance(given, Mapping):
        raise NoCounterpartError("its kwargs are not a mapping")
    arguments = ExpectationArguments(given, column, sql_dialect)
    try:
        demands, where = _KINDS[kind](arguments), row_condition(arguments)
    except NoCounterpartError as error:
        raise NoCounterpartError(f"{kind}: {error}") from None
    if where is not None:
        demands = tuple(AmongRows(demand, where, "spark") for demand in demands)
    for key, value in given.items():
        if key not in arguments.asked and key not in _ARGUMENT_REMARKS and value is not None:
            raise NoCounterpartError(f"{kind}: '{key}' has no counterpart")
    severity = expectation.get("severity")
    remarks = tuple(key for key in _REMARKS if key in expectation)
    return Translation(
        kind.removeprefix("expect_"),
        demands,
        arguments.column,
        severity=severity_of(severity) if isinstance(severity, str) else None,
        share=arguments.share,
        remarks=remarks,
    )
