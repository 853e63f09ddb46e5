"""The data of a run in Python, and its measurement."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from typing import TYPE_CHECKING, Any, Protocol

from dqx_airflow.api.frames import FRAMES, is_frame, is_pandas, is_spark_frame, table_of
from dqx_airflow.datasets.settings import DatasetSetting, dataset_ref
from dqx_airflow.errors import RequestError
from dqx_airflow.plan.model import Plan, Scanned
from dqx_airflow.plan.snapshots import snapshot_of
from dqx_airflow.reference.measure import measure as measure_in_memory
from dqx_airflow.reference.table import Table, TableError
from dqx_airflow.values import DatasetRef, DatasetSnapshot

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


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
        from dqx_airflow.engine.session.settings import engine_of

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
        self,
        tables: Mapping[str, Any],
        *,
        date_columns: Mapping[str, str] | None = None,
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
