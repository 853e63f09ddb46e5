"""DataFrames of pandas, Arrow and others as small tables; those of Spark stay in Spark."""

from __future__ import annotations

from typing import Any

from dqx_airflow.api.arrow_types import spark_type
from dqx_airflow.errors import RequestError
from dqx_airflow.reference.table import Table, TableError

FRAMES = "give a DataFrame of pandas, Arrow or Spark, or rows as mappings"
"""The supported inputs of a validation."""


def is_spark_frame(given: object) -> bool:
    """True for a DataFrame of Spark, classic or Connect."""
    return type(given).__module__.startswith("pyspark.sql") and hasattr(given, "sparkSession")


def is_frame(given: object) -> bool:
    """True for an object with Arrow's C interface for streams, or a DataFrame of pandas."""
    return hasattr(given, "__arrow_c_stream__") or is_pandas(given)


def table_of(frame: Any) -> Table:
    """The rows of a DataFrame. In those of pandas, NaN, NaT and NA are NULL.

    :raises RequestError: it contains values without a type in Spark.
    """
    import pyarrow as pa

    try:
        if is_pandas(frame):
            arrow = pa.Table.from_pandas(frame, preserve_index=False)
        else:
            arrow = pa.table(frame)
        named = {name: spark_type(arrow.schema.field(name).type) for name in arrow.column_names}
        columns = {name: arrow.column(name).to_pylist() for name in arrow.column_names}
    except (pa.ArrowException, TypeError, ValueError, KeyError) as error:
        problem = " ".join(str(error).split())
        raise RequestError(f"the DataFrame cannot be read: {problem}", FRAMES) from None
    rows = list(zip(*columns.values(), strict=True)) if columns else []
    try:
        return Table.typed(named, rows)
    except TableError as error:
        raise RequestError(f"the DataFrame cannot be read: {error}", FRAMES) from None


def is_pandas(given: object) -> bool:
    kind = type(given)
    return kind.__module__.partition(".")[0] == "pandas" and kind.__name__ == "DataFrame"
