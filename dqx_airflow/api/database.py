"""Databases for runs of suites: tables in memory and in Spark, and the stored past of a gate."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from dqx_airflow.datasets.settings import DatasetSetting, dataset_ref
from dqx_airflow.datasets.spark_address import connection_of
from dqx_airflow.dql.watches import Watched, claims_named, claims_on
from dqx_airflow.errors import RequestError, UpstreamFailure
from dqx_airflow.metrics.types import spark_type_of_arrow
from dqx_airflow.plan.in_memory.measure import measure as measure_in_memory
from dqx_airflow.plan.in_memory.table import Table, TableError, columns_of
from dqx_airflow.plan.masks import snapshot_of
from dqx_airflow.plan.measurements import keys_of
from dqx_airflow.plan.model import Plan, Scanned
from dqx_airflow.tuning.past_judge import with_earlier_values
from dqx_airflow.values import DatasetRef, DatasetSnapshot
from dqx_airflow.values.blank import require_names, require_no_blank

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from dqx_airflow.results.past_days import PastDay
    from dqx_airflow.results.query import StoredResults


FRAMES = "give a DataFrame of pandas, Arrow or Spark, or rows as mappings"
"""The supported inputs of a validation."""


def is_spark_frame(given: object) -> bool:
    """True for a DataFrame of Spark, classic or Connect."""
    return type(given).__module__.startswith("pyspark.sql") and hasattr(given, "sparkSession")


def columns_of_frame(frame: Any) -> tuple[dict[str, list[Any]], dict[str, str]]:
    """The values of the columns of a DataFrame, and their types. In pandas, NaN, NaT and NA are
    NULL, and a column of objects has no type.

    :raises RequestError: it contains values without a type in Spark.
    """
    import pyarrow as pa

    objects: dict[Any, list[Any]] = {}
    try:
        if is_pandas(frame):
            for name in frame.columns if frame.columns.is_unique else ():
                if (column := frame[name]).dtype == object:
                    cells = zip(column, column.isna(), strict=True)
                    objects[name] = [None if is_null else cell for cell, is_null in cells]
            others = frame.drop(columns=[*objects])
            arrow = pa.Table.from_pandas(others, preserve_index=False)
            names = [str(name) for name in frame.columns]
        else:
            arrow = pa.table(frame)
            names = arrow.column_names
        types = {
            name: spark_type_of_arrow(arrow.schema.field(name).type) for name in arrow.column_names
        }
        columns = {name: arrow.column(name).to_pylist() for name in arrow.column_names}
    except (pa.ArrowException, TypeError, ValueError, KeyError) as error:
        problem = " ".join(str(error).split())
        raise RequestError(f"the DataFrame cannot be read: {problem}", FRAMES) from None
    columns |= {str(name): cells for name, cells in objects.items()}
    return {name: columns[name] for name in names}, types


def is_pandas(given: object) -> bool:
    """True for a DataFrame of pandas, which is not imported for the test."""
    kind = type(given)
    return kind.__module__.partition(".")[0] == "pandas" and kind.__name__ == "DataFrame"


Columns: TypeAlias = Mapping[str, tuple[Watched, ...]]
"""The claims about the columns of each watched dataset, by its name."""


class Database(Protocol):
    """A database that a suite can run over."""

    @property
    def datasets(self) -> tuple[DatasetRef, ...]:
        """The datasets by their names in suites."""

    def measure(self, plan: Plan) -> tuple[Scanned, tuple[DatasetSnapshot, ...]]:
        """Returns the results of the requests of the plan, and the data that they come from."""

    def watched(self, names: Collection[str], suite: str, on: date) -> Columns:
        """Returns the assertions about the columns of the watched datasets of a suite, by dataset
        name."""


class SparkDatabase:
    """Datasets that a Spark session reads.

        db = SparkDatabase(spark, {"orders": {"path": "s3://lake/orders", "date_column": "ds"}})

    :param spark: the session, classic or Connect; its configuration is not changed. Or where one is
        opened: `sail` for Sail in this process, without Java, `local[*]` or `sc://HOST:PORT`.
    :param datasets: by name a path, a table, a `DatasetRef`, or a mapping of its settings.
    :raises RequestError: a dataset is invalid.
    :raises SparkError: the session cannot be opened.
    """

    def __init__(self, spark: SparkSession | str, datasets: Mapping[str, DatasetSetting]) -> None:
        _require_mapping("datasets", datasets)
        require_names({"datasets": datasets})

        self._datasets = tuple(dataset_ref(name, given) for name, given in datasets.items())
        if isinstance(spark, str):
            from dqx_airflow.engine.session.connection import open_session

            spark = open_session(connection_of(spark), "dqx_airflow", {})
        self._spark = spark

    @property
    def datasets(self) -> tuple[DatasetRef, ...]:
        """The datasets, in the given order."""
        return self._datasets

    def with_datasets(self, refs: Iterable[DatasetRef]) -> SparkDatabase:
        """Returns the session with these datasets instead."""
        other = copy(self)
        other._datasets = tuple(refs)
        return other

    def watched(self, names: Collection[str], suite: str, on: date) -> Columns:
        """Returns the assertions about the columns that the datasets have now."""
        from dqx_airflow.engine.measure import watched_columns

        return watched_columns(self._spark, (ref for ref in self._datasets if ref.name in names))

    @property
    def engine(self) -> dict[str, Any]:
        """The facts about the session that a report contains."""
        from dqx_airflow.engine.session.spark_session import engine_of

        return engine_of(self._spark)

    def measure(self, plan: Plan) -> tuple[Scanned, tuple[DatasetSnapshot, ...]]:
        """Returns the values of a plan, measured with Spark, and the snapshots of the datasets.

        A dataset that cannot be read makes its requests errors; nothing is raised for it.
        """
        (measured,) = self.measure_all([plan])
        return measured

    def measure_all(
        self, plans: Sequence[Plan]
    ) -> tuple[tuple[Scanned, tuple[DatasetSnapshot, ...]], ...]:
        """Returns the results of `measure` for each plan, in one scan of each dataset."""
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
        as mappings, whose types follow from their values.
    :param date_columns: for datasets with dates, the column with the date of a row.
    :raises RequestError: a table is invalid, or does not have the column.
    """

    def __init__(
        self, tables: Mapping[str, Any], *, date_columns: Mapping[str, str] | None = None
    ) -> None:
        _require_mapping("tables", tables)
        _require_mapping("date_columns", date_columns or {})
        require_names({"tables": dict.fromkeys(tables), "date_columns": date_columns})
        self._given = {name: _given(name, table) for name, table in tables.items()}
        self._tables = self._typed({})
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

    def watched(self, names: Collection[str], suite: str, on: date) -> Columns:
        """Returns the assertions about the columns of the tables."""
        columns = {}
        for ref in self._datasets:
            if ref.name in names:
                types = {field.name: field.type for field in self._tables[ref.name].fields}
                columns[ref.name] = claims_on(types, ref)
        return columns

    def with_types(self, types: Mapping[str, Mapping[str, str]]) -> MemoryDatabase:
        """Returns the database with the types of columns in a contract, by dataset, for rows of
        Python and pandas: neither has all types, and a column gets its type if all of its values
        have it."""
        fitted = copy(self)
        fitted._tables = self._typed(types)
        return fitted

    def _typed(self, wanted: Mapping[str, Mapping[str, str]]) -> dict[str, Table]:
        return {
            name: _table(name, given, wanted.get(name, {})) for name, given in self._given.items()
        }

    def measure(self, plan: Plan) -> tuple[Scanned, tuple[DatasetSnapshot, ...]]:
        """Returns the values of a plan, measured in Python, and the snapshots of the datasets."""
        scanned = measure_in_memory(plan, self._datasets, self._tables)
        return scanned, tuple(
            replace(snapshot_of(ref, plan, scanned), fields=self._tables[ref.name].fields)
            for ref in self._datasets
            if ref.name in plan.reads
        )


_Columns: TypeAlias = tuple[Mapping[str, Sequence[Any]], Mapping[str, str]]
"""The values of columns, and the types of those that have one."""


def _require_mapping(argument: str, given: object) -> None:
    if not isinstance(given, Mapping):
        message = f"{argument} is of type {type(given).__name__}"
        raise RequestError(message, "write a mapping of the names of datasets")


def _table(name: str, given: Table | _Columns, wanted: Mapping[str, str]) -> Table:
    try:
        return given if isinstance(given, Table) else Table.of_columns(*given, wanted)
    except TableError as error:
        raise RequestError(f"dataset '{name}': {error}") from None


def _given(name: str, given: Any) -> Table | _Columns:
    """A table; or the values of columns and their types, if not all types are known."""
    if is_spark_frame(given):
        raise RequestError(f"dataset '{name}' is a Spark DataFrame", "use a SparkDatabase")
    if hasattr(given, "__arrow_c_stream__") or is_pandas(given):
        columns = columns_of_frame(given)
        # Columns of pandas have no separate type for many values.
        return columns if is_pandas(given) else _table(name, columns, {})
    if isinstance(given, Table):
        return given
    problem = f"a {type(given).__name__} is not a table"
    if isinstance(given, Iterable) and not isinstance(given, str):
        rows = list(given)
        if all(isinstance(row, Mapping) for row in rows) and all(
            isinstance(key, str) for row in rows for key in row
        ):
            return columns_of(rows), {}
        problem = "its rows are not mappings whose keys are strings"
    raise RequestError(f"dataset '{name}': {problem}: {FRAMES}")


@dataclass(slots=True)
class StoredDatabase:
    """The metric values that gates stored, to evaluate past days again without Spark.

        suite.run(StoredDatabase("s3://lake/dqx"), date(2026, 1, 1))

    :param root: the root of the results store: a path or a URI.
    :param gate: the gate, if several run the suite.
    :param storage_options: the credentials and settings of the storage.
    :param map_index: the instance, if the gate is mapped.
    :raises RequestError: the gate is an empty text.
    """

    root: str
    gate: str | None = None
    # They may contain secrets.
    storage_options: Mapping[str, str] | None = field(default=None, repr=False)
    map_index: int | None = None
    _days: dict[tuple[str, date], PastDay] = field(default_factory=dict, repr=False)
    _datasets: tuple[DatasetRef, ...] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        require_no_blank({"gate": self.gate})

    @property
    def _results(self) -> StoredResults:
        from dqx_airflow.results.query import StoredResults

        return StoredResults(self.root, self.storage_options)

    @property
    def datasets(self) -> tuple[DatasetRef, ...]:
        """The datasets of the runs in the store."""
        if self._datasets is None:
            from dqx_airflow.results.past_runs import dataset_names

            names = dataset_names(self._results)
            self._datasets = tuple(DatasetRef(name, table=name, date_column="?") for name in names)
        return self._datasets

    def measure(self, plan: Plan) -> tuple[Scanned, tuple[DatasetSnapshot, ...]]:
        """Returns the stored results of the requests of the plan.

        :raises UpstreamFailure: the gate has no results for the date.
        """
        day = self._with_history(self.day(plan.suite, plan.date), plan)
        keys = keys_of(plan.requests, plan.date)
        scanned = day.measured.scanned(keys)
        known = {*scanned.values, *scanned.groups, *scanned.failures}
        for request, key in keys.items():
            if request not in known:
                scanned.failures[request] = day.measured.gap(key)
        return scanned, tuple(snapshot_of(ref, plan, scanned) for ref in self.datasets)

    def watched(self, names: Collection[str], suite: str, on: date) -> Columns:
        """Returns the assertions about columns that the gate evaluated on the date; `measure`
        reports a day without results."""
        try:
            return claims_named(name for _, name in self.day(suite, on).verdicts)
        except UpstreamFailure:
            return {}

    def _with_history(self, day: PastDay, plan: Plan) -> PastDay:
        """The day with the values of the days before it from which usual limits are computed."""
        requests = [request for one in plan.assertions for request in one.history]
        dates = [request.date for request in requests if request.date]
        if not dates:
            return day
        from dqx_airflow.results.past_days import past_days

        until = day.date - timedelta(days=1)
        before = past_days(
            self._results, plan.suite, min(dates), until, gate=self.gate, map_index=self.map_index
        )
        keys = keys_of(plan.requests, plan.date).values()
        return with_earlier_values([*before, day], keys)[-1]

    def day(self, suite: str, on: date) -> PastDay:
        """Returns the facts about a day: values, verdicts, labels, and the time of the run.

        :param suite: the name of the suite, as in its file.
        :raises UpstreamFailure: the gate has no results for the date.
        :raises RequestError: the gate is mapped, and no instance is given.
        """
        if (suite, on) not in self._days:
            from dqx_airflow.results.past_days import past_days

            days = past_days(self._results, suite, on, on, gate=self.gate, map_index=self.map_index)
            if not days:
                raise UpstreamFailure(
                    f"no results of suite '{suite}' for {on}: the gate did not run",
                    "skip this day, or check what failed before the gate",
                )
            if len(days) > 1:
                listed = ", ".join(str(day.map_index) for day in days)
                raise RequestError(
                    f"several instances of the gate ran on {on}: {listed}", "pass map_index=NUMBER"
                )
            self._days[suite, on] = days[0]
        return self._days[suite, on]

    def query(self, sql: str, *, days: int = 90) -> list[dict[str, Any]]:
        """Returns the rows of a SELECT over `dql_results`.

        The view has a row per assertion that passed or failed, of the last run for each gate, date
        and instance of a mapped gate, with `date`, `assertion_name`, `passed`, `status`, `check`,
        `gate`, `suite`, `severity`, `value` and `map_index` (-1 if the gate is not mapped).

            db.query("SELECT date, value FROM dql_results WHERE assertion_name = 'orders.rows'")

        :param days: the value of `{days}` in the SQL.
        :raises StoreError: the store cannot be read, or the SQL is invalid.
        """
        from dqx_airflow.results.dql_results import query_results

        text = sql.replace("{days}", str(int(days)))
        return query_results(self._results, text)
