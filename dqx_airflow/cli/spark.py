"""The Spark session of a call, its progress line, and catalog tables read one column at a time.
Imports pyspark."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cache, partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from dqx_airflow.cli import command
from dqx_airflow.contracts.dialects.rule_names import slug
from dqx_airflow.contracts.drafting import ObservedTable
from dqx_airflow.datasets.spark_address import Connection
from dqx_airflow.dql.syntax.grammar import unquoted
from dqx_airflow.engine.job import run_gates, try_gates
from dqx_airflow.engine.measure import measure_together
from dqx_airflow.engine.outputs.good_rows import Release
from dqx_airflow.engine.session.class_cache import with_cached_classes
from dqx_airflow.engine.session.concurrency import do_meanwhile, tasks_reported
from dqx_airflow.engine.session.connection import open_session, spark_errors_explained
from dqx_airflow.engine.session.file_systems import check_file_systems
from dqx_airflow.engine.session.job_ending import SparkWork
from dqx_airflow.engine.session.spark_errors import loss_of_spark
from dqx_airflow.engine.session.spark_session import earlier_sparks, without_log
from dqx_airflow.engine.session.spark_versions import arrow_table
from dqx_airflow.engine.sources.open import open_dataset
from dqx_airflow.errors import DatasetError, RequestError, first_line
from dqx_airflow.metrics.sql import quote_name
from dqx_airflow.plan.model import Plan, Scanned
from dqx_airflow.tuning.column_tables import ColumnTable, typed_column
from dqx_airflow.tuning.lake.found_tables import FoundTable, table_of_catalog
from dqx_airflow.tuning.table_profile import profile_of_columns
from dqx_airflow.values import DatasetRef, GateReport, GateRequest

if TYPE_CHECKING:
    from rich.progress import ProgressColumn


@dataclass(slots=True)
class Spark:
    """Runs requests over a connection. The session is opened when the first one needs it."""

    connection: Connection
    settings: Mapping[str, str]
    _session: SparkSession | None = field(default=None, compare=False)
    _work: SparkWork | None = field(default=None, compare=False)

    def run(self, requests: Sequence[GateRequest]) -> tuple[GateReport, ...]:
        """The reports of requests that share a scan, stored if these have a results root.

        :raises DqxError: there are none.
        """
        refs = [ref for request in requests for ref in request.datasets]
        self._check(refs)
        run = run_gates if requests[0].results_root else try_gates
        with ExitStack() as display, spark_errors_explained(self.connection):

            def session(_: str) -> SparkSession:
                spark = without_log(self._open(), refs)
                _show_tasks(spark, requests[0].run_key.gate, display)
                return spark

            return run(requests, session)

    def measure(self, refs: Sequence[DatasetRef], plans: Sequence[Plan]) -> tuple[Scanned, ...]:
        """The results of the requests of each plan.

        :raises DqxError: Spark cannot be reached, or was lost.
        """
        self._check(refs)
        with ExitStack() as display, spark_errors_explained(self.connection):
            spark = without_log(self._open(), refs)
            _show_tasks(spark, plans[0].suite, display)
            return measure_together(spark, refs, plans)[1]

    def release(self, release: Release) -> int:
        """The number of rows that return from a quarantine.

        :raises DqxError: none do.
        """
        refs = [ref for request, _ in release.suites for ref in request.datasets]
        self._check(refs)
        with spark_errors_explained(self.connection):
            return release.run(without_log(self._open(), refs))

    def _check(self, refs: Iterable[DatasetRef]) -> None:
        """:raises DqxError: the Spark that would start cannot read a dataset."""
        if self._session is None:
            check_file_systems(self.connection, self.settings, refs)

    def close(self) -> None:
        if self._work is not None:
            self._work.close()
            self._session = self._work = None

    def _open(self) -> SparkSession:
        if self._session is None:
            is_seen = command.can_redraw(sys.stderr)
            if is_seen:
                sys.stderr.write(f"starting Spark: {self.connection} ...")
                sys.stderr.flush()
            earlier = earlier_sparks()
            try:
                settings = with_cached_classes(self.connection, self.settings, os.environ)
                self._session = open_session(self.connection, "dql run", settings)
                self._work = SparkWork(self._session, earlier)
            finally:
                if is_seen:
                    sys.stderr.write("\r\033[K")
            do_meanwhile(partial(import_module, "dqx_airflow.cli.reports"))
        return self._session


def _show_tasks(spark: SparkSession, title: str, display: ExitStack) -> None:
    """Displays the progress of Spark's tasks, until `display` is closed."""
    if command.can_redraw(sys.stderr):
        from rich.progress import TaskProgressColumn

        update = display.enter_context(progress(title, TaskProgressColumn()))
        display.enter_context(tasks_reported(spark, update))


@contextmanager
def progress(title: str, *columns: ProgressColumn) -> Iterator[Callable[[int, int], None]]:
    """Yields a function that updates a progress bar on a terminal with the done and total work."""
    if not command.can_redraw(sys.stderr):
        yield lambda done, total: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn

    console = Console(stderr=True)
    first = (SpinnerColumn(), TextColumn("{task.description}", markup=False), BarColumn())
    with Progress(*first, *columns, console=console, transient=True) as shown:
        task = shown.add_task(title, total=None)
        yield lambda done, total: shown.update(task, completed=done, total=total)


_FEWEST_PARTS = 3
_PART = re.compile(r"`(?:[^`]|``)*`|[^.`]+")


def observe_table(
    spark: SparkSession, table: str, masked: tuple[str, ...] = (), name: str = ""
) -> ObservedTable:
    """The contents of the table in its current version.

    :param name: the name of the draft, by default the name of the table.

    :raises DatasetError: there is none, or it cannot be read.
    """
    parts = _parts_of(spark, table)
    last = unquoted(parts[-1])
    own = last if last.isidentifier() else slug(last) or "data"
    return profile_of_columns(columns_of(spark, table), name or own, ".".join(parts), masked=masked)


@contextmanager
def session_over(
    connection: Connection, settings: Mapping[str, str], title: str
) -> Iterator[SparkSession]:
    """A session whose work ends with the block, and the Spark that was started for it.

    :raises SparkError: Spark cannot be reached.
    """
    earlier = earlier_sparks()
    spark = open_session(connection, title, settings)
    work = SparkWork(spark, earlier)
    try:
        with spark_errors_explained(connection):
            yield spark
    finally:
        work.close()


_MOST_VALUES_AT_ONCE = 20_000_000
"""The values of a table that are read in one job: a job for each column costs more."""


def columns_of(spark: SparkSession, table: str) -> ColumnTable:
    """The columns of a table: read together, or each when it is requested if they are large."""
    frame = open_dataset(spark, DatasetRef(table, table=table)).read(())
    types = {field.name: field.dataType.simpleString() for field in frame.schema.fields}
    rows = frame.count()

    @cache
    def whole() -> Any:
        return arrow_table(frame)

    def column(name: str) -> Any:
        if rows * len(types) <= _MOST_VALUES_AT_ONCE:
            return typed_column(whole().column(name))
        return typed_column(arrow_table(frame.select(quote_name(name))).column(0))

    return ColumnTable(
        tuple(types),
        {name: "string" if kind == "void" else kind for name, kind in types.items()},
        rows,
        column,
    )


def tables_of_catalog(spark: SparkSession, pattern: str) -> list[FoundTable]:
    """The tables of a catalog that match `catalog.schema.*`, still without names.

    :raises RequestError: the pattern has no catalog and schema.
    :raises DatasetError: the catalog or schema does not exist or cannot be read.
    """
    parts = [unquoted(part) for part in _PART.findall(pattern)]
    if len(parts) < _FEWEST_PARTS:
        message = f"table:{pattern} has no catalog, schema and table"
        raise RequestError(message, "write table:CATALOG.SCHEMA.*")
    try:
        return list(_matching(spark, parts))
    except PySparkException as error:
        if (loss := loss_of_spark(error)) is not None:
            raise loss from error
        raise DatasetError(
            f"the tables of {pattern} cannot be listed: {first_line(error)}",
            "check the names of the catalog and the schema, and that this Spark has the catalog",
        ) from error


def _matching(spark: SparkSession, parts: Sequence[str]) -> Iterator[FoundTable]:
    """Yields the tables whose full name matches parts with wildcards."""
    catalog, *levels, wanted = parts
    schemas: list[tuple[str, ...]] = [(catalog,)]
    for level in levels:
        schemas = [below for schema in schemas for below in _schemas_in(spark, schema, level)]
    for schema in schemas:
        for row in spark.sql(f"SHOW TABLES IN {_quoted(schema)}").collect():
            if not row["isTemporary"] and fnmatchcase(row["tableName"], wanted):
                name = (*schema, row["tableName"])
                yield table_of_catalog(_quoted(name), name)


def _schemas_in(spark: SparkSession, parent: tuple[str, ...], wanted: str) -> list[tuple[str, ...]]:
    """The schemas directly below a catalog or a schema that match a pattern."""
    if not re.search(r"[*?\[]", wanted):
        return [(*parent, wanted)]
    rows = spark.sql(f"SHOW NAMESPACES IN {_quoted(parent)}").collect()
    names = (unquoted(_PART.findall(row[0])[-1]) for row in rows)
    return [(*parent, name) for name in names if fnmatchcase(name, wanted)]


def _quoted(parts: Sequence[str]) -> str:
    """The full name of a table or a schema, quoted where needed."""
    return ".".join(part if part.isidentifier() else quote_name(part) for part in parts)


def _parts_of(spark: SparkSession, table: str) -> list[str]:
    """The parts of a table's full name, without unnecessary backticks."""
    written_parts = _PART.findall(table)
    parts = [unquoted(part) if unquoted(part).isidentifier() else part for part in written_parts]
    if len(parts) == 1:
        parts = [spark.catalog.currentDatabase(), *parts]
    if len(parts) == 2:
        parts = [spark.catalog.currentCatalog(), *parts]
    return parts
