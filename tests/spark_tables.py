"""Tables of test cases in Spark and Arrow."""

from __future__ import annotations

from typing import Any

from dqx_airflow.metrics.types import fields_of, parts_of
from dqx_airflow.plan.in_memory.table import Table


def frame_of(spark: Any, table: Table) -> Any:
    """The table as a view of a session would hold it.

    Spark keeps what comes from Arrow as rows of its own; rows of Python take a quarter more time.
    Arrow's way in has no columns of type void.
    """
    types = [field.type for field in table.fields]
    if not any("void" in type_ for type_ in types):
        return spark.createDataFrame(arrow_of(table), schema_of(table))
    rows = [tuple(map(_in_spark, row, types)) for row in table.rows]
    return spark.createDataFrame(rows, schema_of(table))


def schema_of(table: Table) -> Any:
    from pyspark.sql.types import StructField, StructType, _parse_datatype_string

    types = ((field.name, _parse_datatype_string(field.type)) for field in table.fields)
    return StructType([StructField(name, type_) for name, type_ in types])


def _in_spark(value: Any, spark_type: str) -> Any:
    """The value with all maps in it as Spark takes them."""
    match value:
        case dict():
            types = fields_of(spark_type)
            return {name: _in_spark(inner, types[name]) for name, inner in value.items()}
        case tuple() if spark_type.startswith("map<"):
            inner_type = parts_of(spark_type)[1]
            return {key: _in_spark(inner, inner_type) for key, inner in value}
        case tuple():
            return [_in_spark(item, *parts_of(spark_type)) for item in value]
        case _:
            return value


def arrow_of(table: Table) -> Any:
    import pyarrow
    from pyspark.sql.pandas.types import to_arrow_schema

    schema = to_arrow_schema(schema_of(table), timezone="UTC")
    columns = zip(*table.rows, strict=True) if table.rows else [()] * len(table.fields)
    arrays = [pyarrow.array(c, item.type) for c, item in zip(columns, schema, strict=True)]
    return pyarrow.Table.from_arrays(arrays, schema=schema)
