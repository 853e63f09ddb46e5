"""Tables in memory and in Spark that suites are run against: frames, Arrow tables and rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from typing import TYPE_CHECKING, Any, Protocol

from dqx_airflow.datasets.settings import DatasetSetting, dataset_ref
from dqx_airflow.errors import RequestError
from dqx_airflow.plan.in_memory.measure import measure as measure_in_memory
from dqx_airflow.plan.in_memory.table import Table, TableError
from dqx_airflow.plan.masks import snapshot_of
from dqx_airflow.plan.model import Plan, Scanned
from dqx_airflow.values import DatasetRef, DatasetSnapshot

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def spark_type(arrow: Any, *, has_zone: bool = False, of_nulls: str = "void") -> str:
    """The Spark type of an Arrow type.

    :param has_zone: a timestamp without a time zone here has one in Spark.
    :param of_nulls: the type of a column with only NULL.
    :raises ValueError: there is none.
    """
    from pyarrow import types as is_

    def inner(part: Any) -> str:
        return spark_type(part, has_zone=has_zone, of_nulls=of_nulls)

    if is_.is_dictionary(arrow):
        return inner(arrow.value_type)
    if is_.is_decimal(arrow):
        return f"decimal({arrow.precision},{arrow.scale})"
    if is_.is_timestamp(arrow):
        return "timestamp" if arrow.tz is not None or has_zone else "timestamp_ntz"
    if is_.is_struct(arrow):
        fields = (arrow.field(number) for number in range(arrow.num_fields))
        return f"struct<{','.join(f'{item.name}:{inner(item.type)}' for item in fields)}>"
    if is_.is_map(arrow):
        return f"map<{inner(arrow.key_type)},{inner(arrow.item_type)}>"
    if is_.is_list(arrow) or is_.is_large_list(arrow) or is_.is_fixed_size_list(arrow):
        return f"array<{inner(arrow.value_type)}>"
    for test, name in (
        (is_.is_boolean, "boolean"),
        (is_.is_int8, "tinyint"),
        (is_.is_int16, "smallint"),
        (is_.is_uint8, "smallint"),
        (is_.is_int32, "int"),
        (is_.is_uint16, "int"),
        (is_.is_int64, "bigint"),
        (is_.is_uint32, "bigint"),
        (is_.is_uint64, "decimal(20,0)"),
        (is_.is_float64, "double"),
        (is_.is_floating, "float"),
        (is_.is_date, "date"),
        (is_.is_null, of_nulls),
    ):
        if test(arrow):
            return name
    # Views have a test of their own in the newer versions of pyarrow alone.
    if is_.is_string(arrow) or is_.is_large_string(arrow) or str(arrow) == "string_view":
        return "string"
    is_bytes = is_.is_binary(arrow) or is_.is_large_binary(arrow)
    if is_bytes or is_.is_fixed_size_binary(arrow) or str(arrow) == "binary_view":
        return "binary"
    raise ValueError(f"Spark has no type for {arrow}")


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
    """Whether it is a frame of pandas, which is not imported for that."""
    kind = type(given)
    return kind.__module__.partition(".")[0] == "pandas" and kind.__name__ == "DataFrame"


class Database(Protocol):
    """A database that a suite can run over."""

    @property
    def datasets(self) -> tuple[DatasetRef, ...]:
        """The datasets by their names in suites."""

    def measure(self, plan: Plan) -> tuple[Scanned, tuple[DatasetSnapshot, ...]]:
        """The results of the requests of the plan, and the data that they come from."""


class SparkDatabase:
    """Datasets that a Spark session reads.

        db = SparkDatabase(spark, {"orders": {"path": "s3://lake/orders", "date_column": "ds"}})

    :param spark: the session, classic or Connect; its configuration is not changed.
    :param datasets: by name a path, a table, a `DatasetRef`, or a mapping of its settings.
    :raises RequestError: a dataset is invalid.
    """

    def __init__(self, spark: SparkSession, datasets: Mapping[str, DatasetSetting]) -> None:
        self._spark = spark
        self._datasets = tuple(dataset_ref(name, given) for name, given in datasets.items())

    @property
    def datasets(self) -> tuple[DatasetRef, ...]:
        """The datasets, in the given order."""
        return self._datasets

    @property
    def engine(self) -> dict[str, Any]:
        """What a report says about the session."""
        from dqx_airflow.engine.session.spark_session import engine_of

        return engine_of(self._spark)

    def measure(self, plan: Plan) -> tuple[Scanned, tuple[DatasetSnapshot, ...]]:
        """The values of a plan, measured with Spark, and the snapshots of the datasets.

        A dataset that cannot be read makes its requests errors; nothing is raised for it.
        """
        (measured,) = self.measure_all([plan])
        return measured

    def measure_all(
        self, plans: Sequence[Plan]
    ) -> tuple[tuple[Scanned, tuple[DatasetSnapshot, ...]], ...]:
        """The results of `measure` for each plan, in one scan of each dataset."""
        from dqx_airflow.engine.measure import measure_together, snapshots

        refs = [ref for ref in self._datasets if any(ref.name in plan.reads for plan in plans)]
        opened, scanned = measure_together(self._spark, refs, plans)
        return tuple(
            (scan, snapshots([ref for ref in refs if ref.name in plan.reads], opened, plan, scan))
            for plan, scan in zip(plans, scanned, strict=True)
        )


class MemoryDatabase:
    """Small tables in this process, measured in plain Python: for tests of suites.

        rows = [{"id": 1, "ds": date(2026, 1, 1)}]
        db = MemoryDatabase({"orders": rows}, date_columns={"orders": "ds"})

    :param tables: by name a `Table`, a DataFrame of pandas (NaN is NULL), Arrow or Polars, or rows
        as mappings, whose types are those of their values.
    :param date_columns: for datasets with dates, the column with the date of a row.
    :raises RequestError: a table is invalid, or does not have the column.
    """

    def __init__(
        self, tables: Mapping[str, Any], *, date_columns: Mapping[str, str] | None = None
    ) -> None:
        self._tables = {name: _table(name, given) for name, given in tables.items()}
        self._inferred = {
            name
            for name, given in tables.items()
            if is_pandas(given) or not (is_frame(given) or isinstance(given, Table))
        }
        dates = date_columns or {}
        for name, column in dates.items():
            columns = [field.name for field in self._tables[name].fields] if name in tables else []
            if column not in columns:
                listed = ", ".join(columns) or "none"
                raise RequestError(
                    f"dataset '{name}' has no date column '{column}'", f"its columns are: {listed}"
                )
        self._datasets = tuple(
            DatasetRef(name, table=name, date_column=dates.get(name)) for name in tables
        )

    @property
    def datasets(self) -> tuple[DatasetRef, ...]:
        """The datasets, in the given order."""
        return self._datasets

    def with_types(self, types: Mapping[str, Mapping[str, str]]) -> MemoryDatabase:
        """The database with the types of columns in a contract, by dataset, for rows of Python and
        pandas: neither has all types, and a column gets its type if all of its values have it."""
        fitted = copy(self)
        fitted._tables = {
            name: table.with_types(types.get(name, {})) if name in self._inferred else table
            for name, table in self._tables.items()
        }
        return fitted

    def measure(self, plan: Plan) -> tuple[Scanned, tuple[DatasetSnapshot, ...]]:
        """The values of a plan, measured in Python, and the snapshots of the datasets."""
        scanned = measure_in_memory(plan, self._datasets, self._tables)
        return scanned, tuple(
            snapshot_of(ref, plan, scanned, fields=self._tables[ref.name].fields)
            for ref in self._datasets
            if ref.name in plan.reads
        )


def _table(name: str, given: Any) -> Table:
    if is_spark_frame(given):
        raise RequestError(f"dataset '{name}' is a Spark DataFrame", "use a SparkDatabase")
    try:
        if is_frame(given):
            return table_of(given)
        if isinstance(given, Table):
            return given
        if isinstance(given, str) or not isinstance(given, Iterable):
            raise TableError(f"a {type(given).__name__} is not a table: {FRAMES}")
        rows = list(given)
        if not all(isinstance(row, Mapping) for row in rows):
            raise TableError(f"its rows are not mappings: {FRAMES}")
        return Table.inferred(rows)
    except TableError as error:
        raise RequestError(f"dataset '{name}': {error}") from None
