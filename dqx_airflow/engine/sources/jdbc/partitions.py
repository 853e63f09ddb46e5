"""The key by which several connections share the read of a table, found in its indexes.

Rows outside the bounds are read as well: bounds only define how the work is divided.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pyspark.sql.readwriter import DataFrameReader
from pyspark.sql.types import DateType, IntegralType, StructType

from dqx_airflow.datasets.databases import DatabaseKind
from dqx_airflow.errors import RequestError

DIVIDING = ("partitioncolumn", "lowerbound", "upperbound", "numpartitions")
"""The options that define how a read is divided, in lower case."""

_MOST = 8
"""Each partition needs a connection, and databases allow only a few."""
_LEAST_KEYS = 100_000
"""With fewer keys per connection, another connection costs more than it saves."""
_LEAST_DAYS = 30

# Each returns the leading columns of indexes, the best first by `rank`. A read-only role sees them
# here, but not in PostgreSQL's information schema.
_INDEXES = {
    "postgres": """
        SELECT a.attname AS name, CASE WHEN i.indisprimary THEN 0 WHEN i.indisunique THEN 1 ELSE 2
               END AS rank
        FROM pg_catalog.pg_index i
        JOIN pg_catalog.pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0]
        WHERE i.indrelid = to_regclass({table}) AND i.indisvalid AND i.indpred IS NULL""",
    "mysql": """
        SELECT COLUMN_NAME AS name, CASE WHEN INDEX_NAME = 'PRIMARY' THEN 0 ELSE 1 + NON_UNIQUE END
               AS `rank`
        FROM information_schema.STATISTICS
        WHERE TABLE_SCHEMA = coalesce({schema}, database()) AND TABLE_NAME = {name}
          AND SEQ_IN_INDEX = 1""",
    "mssql": """
        SELECT c.name AS name, CASE WHEN i.is_primary_key = 1 THEN 0 WHEN i.is_unique = 1 THEN 1
               ELSE 2 END AS rank
        FROM sys.indexes i
        JOIN sys.index_columns k ON k.object_id = i.object_id AND k.index_id = i.index_id
        JOIN sys.columns c ON c.object_id = k.object_id AND c.column_id = k.column_id
        WHERE i.object_id = OBJECT_ID({table}) AND k.key_ordinal = 1 AND i.has_filter = 0""",
}


def partition_options(
    reader: Callable[[], DataFrameReader],
    given: Mapping[str, str],
    database: DatabaseKind,
    table: Sequence[str],
    struct: StructType,
) -> dict[str, str]:
    """The options that divide a read of a table; none for a single connection.

    `given` options take precedence: a `partitionColumn` without bounds gets them, and
    `numPartitions` alone is an upper limit.

    :param reader: returns one without these options.
    :param table: the parts of its name.
    :raises RequestError: the table cannot be divided by the given column.
    """
    options = {name.lower(): value for name, value in given.items() if name.lower() in DIVIDING}
    most, column = options.get("numpartitions", str(_MOST)), options.get("partitioncolumn")
    if "lowerbound" in options or "upperbound" in options:
        return {**options, "numpartitions": most}
    if not most.isdigit() or int(most) == 1:
        return {}
    if column is None:
        column = _key(reader, database, table, struct)
    elif not _is_divisible(struct, column):
        raise RequestError(
            f"the partitionColumn {column} is not a column of whole numbers or dates",
            "choose another one, or give lowerBound and upperBound as well",
        )
    if column is None:
        return {}
    quoted, place = database.quoted(column), ".".join(map(database.quoted, table))
    bounds = f"SELECT min({quoted}) AS lower, max({quoted}) AS upper FROM {place}"  # noqa: S608
    (row,) = reader().option("query", bounds).load().collect()
    number = _number(row[0], row[1], int(most))
    if number < 2:
        return {}
    return {
        "partitionColumn": column,
        "lowerBound": str(row[0]),
        "upperBound": str(row[1]),
        "numPartitions": str(number),
    }


def _number(lower: Any, upper: Any, most: int) -> int:
    """The number of connections that pay off for keys between two bounds."""
    if lower is None:
        return 1
    span = upper - lower
    least = _LEAST_KEYS if isinstance(span, int) else _LEAST_DAYS
    return max(1, min(most, (span if isinstance(span, int) else span.days) // least))


def _key(
    reader: Callable[[], DataFrameReader],
    database: DatabaseKind,
    table: Sequence[str],
    struct: StructType,
) -> str | None:
    """An indexed column of integers or dates."""
    text = _INDEXES[database.kind].format(
        table=_literal(".".join(map(database.quoted, table))),
        schema=_literal(table[-2]) if len(table) > 1 else "NULL",
        name=_literal(table[-1]),
    )
    rows = reader().option("query", text).load().collect()
    ranked = sorted((int(row[1]), str(row[0])) for row in rows)
    return next((name for _, name in ranked if _is_divisible(struct, name)), None)


def _is_divisible(struct: StructType, column: str) -> bool:
    return column in struct.names and isinstance(struct[column].dataType, IntegralType | DateType)


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
