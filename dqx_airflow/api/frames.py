"""DataFrames of pandas, Arrow and others as small tables; those of Spark stay in Spark."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime
from decimal import Decimal
from math import isnan
from typing import Any

from dqx_airflow.api.arrow_types import spark_type
from dqx_airflow.errors import RequestError
from dqx_airflow.metrics.types import decimal_size
from dqx_airflow.reference.table import Table, TableError

_WHOLE = {"whole_number", "tinyint", "smallint", "int", "bigint"}
FRAMES = "give a DataFrame of pandas, Arrow or Spark, or rows as mappings"
"""The supported inputs of a validation."""


def is_spark_frame(given: object) -> bool:
    """True for a DataFrame of Spark, classic or Connect."""
    return type(given).__module__.startswith("pyspark.sql") and hasattr(given, "sparkSession")


def is_frame(given: object) -> bool:
    """True for an object with Arrow's C interface for streams, or a DataFrame of pandas."""
    return hasattr(given, "__arrow_c_stream__") or _is_pandas(given)


def table_of(frame: Any, types: Mapping[str, str] | None = None) -> Table:
    """The rows of a DataFrame. In those of pandas, NaN, NaT and NA are NULL.

    :param types: the types of columns in a contract. Pandas has neither dates, decimals nor
        integers with NULL: a column gets such a type if all of its values fit.
    :raises RequestError: it contains values without a type in Spark.
    """
    import pyarrow as pa

    try:
        if _is_pandas(frame):
            arrow = pa.Table.from_pandas(frame, preserve_index=False)
        else:
            arrow = pa.table(frame)
        named = {name: spark_type(arrow.schema.field(name).type) for name in arrow.column_names}
        columns = {name: arrow.column(name).to_pylist() for name in arrow.column_names}
    except (pa.ArrowException, TypeError, ValueError, KeyError) as error:
        problem = " ".join(str(error).split())
        raise RequestError(f"the DataFrame cannot be read: {problem}", FRAMES) from None
    if _is_pandas(frame):
        for name, wanted in (types or {}).items():
            if name in columns and (converted := _as_type(columns[name], named[name], wanted)):
                named[name], columns[name] = converted
    rows = list(zip(*columns.values(), strict=True)) if columns else []
    try:
        return Table.typed(named, rows)
    except TableError as error:
        raise RequestError(f"the DataFrame cannot be read: {error}", FRAMES) from None


def _is_pandas(given: object) -> bool:
    kind = type(given)
    return kind.__module__.partition(".")[0] == "pandas" and kind.__name__ == "DataFrame"


def _as_type(values: list[Any], actual: str, wanted: str) -> tuple[str, list[Any]] | None:
    """A column of pandas in the type of a contract; None if not all of its values have it."""
    present = [value for value in values if value is not None]
    if actual == "double" and wanted in _WHOLE:
        if all(value.is_integer() for value in present):
            return "bigint", [None if value is None else int(value) for value in values]
    elif actual == "double" and wanted.startswith("decimal"):
        precision, scale = decimal_size(wanted)
        exact = [None if value is None else _decimal(value, scale) for value in values]
        if sum(value is not None for value in exact) == len(present):
            most = 10 ** (precision - scale)
            if all(abs(value) < most for value in exact if value is not None):
                return wanted, exact
    elif actual.startswith("timestamp") and wanted == "date":
        if all(isinstance(value, datetime) and value.time() == _midnight for value in present):
            return "date", [None if value is None else value.date() for value in values]
    elif actual == "void" and wanted not in ("any", "array", "map", "struct"):
        return {"whole_number": "bigint", "number": "double", "text": "string"}.get(
            wanted, wanted
        ), values
    return None


_midnight = datetime.combine(date.min, datetime.min.time()).time()


def _decimal(value: float, scale: int) -> Decimal | None:
    """The shortest decimal for the float as printed; None if it has more digits."""
    if isnan(value) or value in (float("inf"), float("-inf")):
        return None
    exact = Decimal(repr(value))
    rounded = round(exact, scale)
    return rounded if rounded == exact else None
