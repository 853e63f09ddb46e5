"""Quarantine: the complete, unmasked failing rows of a dataset, in a Delta table of its own.

Each run key has a partition, which a later attempt replaces.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from deltalake import DeltaTable, Schema
from deltalake.exceptions import DeltaError, TableNotFoundError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DateType, StringType, StructField, StructType

from dqx_airflow.delta_log import require_whole_commits
from dqx_airflow.engine.outputs.delta_writer import WrittenFiles, nullable, write_files
from dqx_airflow.engine.outputs.samples import rows_with_faults
from dqx_airflow.engine.scan.frames import ReferenceTables
from dqx_airflow.engine.session.concurrency import jobs_called
from dqx_airflow.engine.session.spark_errors import explain, spark_failures
from dqx_airflow.engine.sources.dataset import OpenDataset
from dqx_airflow.engine.sources.paths import absolute
from dqx_airflow.errors import DqxError, StoreError, first_line
from dqx_airflow.metrics.sql import quote_literal, quote_name
from dqx_airflow.plan.failing import FailingRows
from dqx_airflow.plan.masks import without_values
from dqx_airflow.results.commits import committed
from dqx_airflow.values import GateRequest, RunKey, Verdict

_log = logging.getLogger("dqx.gate")

RUN_ID, RUN_KEY, DATE, REASONS = "dqx_run_id", "dqx_run_key", "dqx_date", "dqx_reasons"
LINE = "dqx_line"
"""The line of a CSV or JSON file that is malformed as a whole."""

_OWN_COLUMNS = (
    StructField(RUN_KEY, StringType()),
    StructField(RUN_ID, StringType()),
    StructField(DATE, DateType()),
    StructField(REASONS, ArrayType(StringType())),
)


def quarantine_rows(
    spark: SparkSession,
    opened: Mapping[str, OpenDataset],
    request: GateRequest,
    verdicts: Sequence[Verdict],
    faults: Sequence[tuple[FailingRows, ...]],
    run_id: str,
) -> dict[str, int]:
    """The number of rows of each quarantined dataset that went into its table.

    These are the rows of the target date that violate a failed assertion with a severity of
    `fail_on` or worse, each once, with the names of all such assertions: the remaining rows of the
    dataset are valid. They replace the rows of an earlier attempt at the run key, also if there are
    none.

    :param faults: those of each verdict.
    :raises StoreError: a quarantine cannot be written.
    """
    counts = {}
    for name, path in request.quarantine:
        if name not in opened:
            continue  # it could not be read, as the report says
        blamed = [
            (fault, verdict.name)
            for verdict, faults_of_verdict in zip(verdicts, faults, strict=True)
            for fault in faults_of_verdict
            if fault.request.dataset == name and verdict.can_block(request.fail_on)
            if not fault.is_of_two_datasets
        ]
        references = ReferenceTables(opened, request.run_key.date)
        quarantine = _Quarantine(spark, opened[name], absolute(path), request.run_key, run_id)
        counts[name] = quarantine.fill(blamed, references)
        if counts[name]:
            _log.warning("%s rows of dataset '%s' are in quarantine: %s", counts[name], name, path)
    return counts


@dataclass(frozen=True, slots=True)
class _Quarantine:
    """The quarantine of one dataset, as filled by one attempt."""

    spark: SparkSession
    dataset: OpenDataset
    path: str
    run_key: RunKey
    run_id: str

    @property
    def folder(self) -> str:
        """The folder for the files of this attempt, below the path."""
        return f"run-{self.run_id}"

    def fill(self, blamed: Sequence[tuple[FailingRows, str]], references: ReferenceTables) -> int:
        """Writes the failing rows, and returns their number.

        :param blamed: faults, each with the name of its assertion.
        """
        try:
            if not blamed and self._is_empty():
                return 0
            self._fitting_table()  # before it writes into a table that is not a quarantine
            job = f"{self.dataset.ref.name}: quarantine"
            with spark_failures(), jobs_called(self.spark, job):
                files = self._written(blamed, references) if blamed else WrittenFiles()
            self._commit(files)
        except PySparkException as error:
            reason = without_values(explain(error), self.dataset.ref.masked)
            raise self._unusable(reason) from error
        except (DeltaError, OSError, ValueError) as error:
            raise self._unusable(first_line(error)) from error
        return files.rows

    def _unusable(self, reason: str) -> DqxError:
        return StoreError(
            f"the rows of dataset '{self.dataset.ref.name}' cannot be quarantined at "
            f"{self.path}: {reason}",
            "give the quarantine another path, or remove it: the gate blocks without it too",
        )

    def _written(
        self, blamed: Sequence[tuple[FailingRows, str]], references: ReferenceTables
    ) -> WrittenFiles:
        frame = self._frame(blamed, references)
        constants = {RUN_KEY: str(self.run_key)}
        return write_files(self.spark, frame, self.path, self.folder, constants=constants)

    def _frame(
        self, blamed: Sequence[tuple[FailingRows, str]], references: ReferenceTables
    ) -> DataFrame:
        """The failing rows, with the columns of the quarantine before their own."""
        faults = list(dict.fromkeys(fault for fault, _ in blamed))
        frame = rows_with_faults(self.spark, self.dataset, references, faults)
        conditions = {}
        for number, fault in enumerate(faults):
            condition = fault.condition
            if fault.repeated:
                count_column = f"dqx: rows like this by fault {number}"
                keys = ", ".join(map(quote_name, fault.repeated))
                counted = f"CASE WHEN {condition} THEN 1 END" if condition else "1"
                rows_alike = F.expr(f"count({counted}) OVER (PARTITION BY {keys})")
                frame = frame.withColumn(count_column, rows_alike)
                repeats = f"{quote_name(count_column)} > 1"
                condition = f"({condition} AND {repeats})" if condition else repeats
            conditions[fault] = condition
        reasons = ", ".join(
            f"CASE WHEN {conditions[fault]} THEN {quote_literal(name)} END"
            for fault, name in blamed
        )
        run_columns = {
            RUN_ID: quote_literal(self.run_id),
            DATE: quote_literal(self.run_key.date),
            REASONS: f"array_distinct(array_compact(array({reasons})))",
        }
        chosen = frame.where(" OR ".join(f"({condition})" for condition in conditions.values()))
        return chosen.select(
            *(F.expr(sql).alias(name) for name, sql in run_columns.items()),
            *(F.expr(sql).alias(field.name) for field, sql in self._columns),
        )

    @property
    def _columns(self) -> list[tuple[StructField, str]]:
        """The columns to keep, as Spark SQL: values cast from strings are kept as written."""
        fields, texts = self.dataset.struct.fields, self.dataset.texts
        if texts is None:
            return [(field, quote_name(field.name)) for field in fields]
        kinds = {column: StringType() for column in texts.cast}
        kept = [
            (StructField(field.name, kinds.get(field.name, field.dataType)), texts.text(field.name))
            for field in fields
        ]
        return [*kept, (StructField(LINE, StringType()), texts.line)]

    def _table(self) -> DeltaTable | None:
        try:
            table = DeltaTable(self.path)
        except TableNotFoundError:
            return None
        require_whole_commits(self.path, table.version())
        return table

    def _is_empty(self) -> bool:
        """True if no attempt at the run key has left any rows."""
        table = self._table()
        of_run = [(RUN_KEY, "=", str(self.run_key))]
        return table is None or not table.partitions(file_pruning_predicate=of_run)

    def _commit(self, files: WrittenFiles) -> None:
        """Replaces the rows of the run key by the files, in one commit."""

        def commit() -> None:
            table = self._fitting_table()
            table.create_write_transaction(
                [*files.adds],
                mode="overwrite",
                schema=table.schema(),
                partition_by=[RUN_KEY],
                partition_filters=[(RUN_KEY, "=", str(self.run_key))],
            )

        committed(commit)

    def _fitting_table(self) -> DeltaTable:
        """The table, with the current columns of the dataset.

        :raises ValueError: it is not a quarantine, or has other types.
        """
        struct = StructType([*_OWN_COLUMNS, *(field for field, _ in self._columns)])
        wanted = Schema.from_json(nullable(struct).json())
        table = self._table()
        if table is None:
            return DeltaTable.create(
                self.path, schema=wanted, mode="ignore", partition_by=[RUN_KEY]
            )
        existing = {field.name: field for field in table.schema().fields}
        if RUN_KEY not in existing:
            raise ValueError("the table there has other columns")
        for field in wanted.fields:
            present = existing.get(field.name)
            if present is not None and present.type != field.type:
                raise ValueError(f"its column '{field.name}' previously had another type")
        missing = [field for field in wanted.fields if field.name not in existing]
        if missing:
            table.alter.add_columns(missing)
        return table
