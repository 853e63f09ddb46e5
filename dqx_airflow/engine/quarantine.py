"""Quarantine: the failing rows of a dataset, whole and unmasked, in a Delta table of their own.

Spark writes the files, deltalake commits them: no row passes through the driver, and the session
needs no Delta source. Each run key has a partition, which a later attempt replaces.
"""

from __future__ import annotations

import json
import logging
import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from deltalake import DeltaTable, Schema
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError
from deltalake.transaction import AddAction
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DateType, StringType, StructField, StructType

from dqx_airflow.engine.failures import explain, spark_failures
from dqx_airflow.engine.frames import References
from dqx_airflow.engine.paths import absolute
from dqx_airflow.engine.rows import rows_with_faults
from dqx_airflow.engine.sources import OpenDataset
from dqx_airflow.errors import DqxError, StoreError
from dqx_airflow.metrics.sql import quote_literal, quote_name
from dqx_airflow.plan.failing import Fault
from dqx_airflow.plan.masks import without_values
from dqx_airflow.values import GateRequest, RunKey, Verdict

_log = logging.getLogger("dqx.gate")

RUN_ID, RUN_KEY, DATE, REASONS = "dqx_run_id", "dqx_run_key", "dqx_date", "dqx_reasons"

_OWN_COLUMNS = (
    StructField(RUN_KEY, StringType()),
    StructField(RUN_ID, StringType()),
    StructField(DATE, DateType()),
    StructField(REASONS, ArrayType(StringType())),
)
_WAITS_S = (0.05, 0.2, 0.8, 1.6)


def quarantine_rows(
    spark: SparkSession,
    opened: Mapping[str, OpenDataset],
    request: GateRequest,
    verdicts: Sequence[Verdict],
    faults: Sequence[tuple[Fault, ...]],
    run_id: str,
) -> dict[str, int]:
    """How many rows of each dataset that the request quarantines went into its table.

    These are the rows of the target date that count against an assertion which failed with a
    severity of `fail_on` or worse, each once, with the names of all such assertions: what is left
    of the dataset are the valid rows. What an earlier attempt at the run key left there is
    replaced, also by nothing.

    :param faults: those of each verdict.
    :raises StoreError: a quarantine cannot be written.
    """
    counts = {}
    for name, path in request.quarantine:
        if name not in opened:
            continue  # it could not be read, and the report says so
        blamed = [
            (fault, verdict.name)
            for verdict, found in zip(verdicts, faults, strict=True)
            for fault in found
            if fault.request.dataset == name and verdict.severity.at_least(request.fail_on)
        ]
        references = References(opened, request.run_key.date)
        quarantine = _Quarantine(spark, opened[name], absolute(path), request.run_key, run_id)
        counts[name] = quarantine.fill(blamed, references)
        if counts[name]:
            _log.warning("%s rows of dataset '%s' are in quarantine: %s", counts[name], name, path)
    return counts


@dataclass(frozen=True, slots=True)
class _Quarantine:
    """The quarantine of one dataset, as one attempt fills it."""

    spark: SparkSession
    dataset: OpenDataset
    path: str
    run_key: RunKey
    run_id: str

    @property
    def folder(self) -> str:
        """Where the files of this attempt are, below the path."""
        return f"run-{self.run_id}"

    def fill(self, blamed: Sequence[tuple[Fault, str]], references: References) -> int:
        """Puts the blamed rows there; returns how many they are.

        :param blamed: faults, each with the name of its assertion.
        """
        try:
            if not blamed and self._is_empty():
                return 0
            self._fitting_table()  # before anything is written into what is no quarantine
            with spark_failures(all_of_them=True):
                files = self._written(blamed, references) if blamed else []
            self._commit(files)
        except PySparkException as error:
            reason = explain(error)
            raise self._unusable(
                without_values(reason) if self.dataset.ref.masked else reason
            ) from error
        except (DeltaError, OSError, ValueError) as error:
            raise self._unusable(str(error).splitlines()[0]) from error
        return sum(rows for _, rows in files)

    def _unusable(self, reason: str) -> DqxError:
        return StoreError(
            f"the rows of dataset '{self.dataset.ref.name}' cannot be put into quarantine at "
            f"{self.path}: {reason}",
            "give the quarantine another path, or leave it out: the gate blocks without it too",
        )

    def _written(
        self, blamed: Sequence[tuple[Fault, str]], references: References
    ) -> list[tuple[AddAction, int]]:
        """Writes the files; returns each with its number of rows."""
        place = f"{self.path}/{self.folder}"
        frame = self._frame(blamed, references)
        # As many files as the size of what is left asks for, not one for each file that was read.
        frame.hint("rebalance").write.mode("overwrite").parquet(place)
        written = self.spark.read.schema(frame.schema).parquet(place)
        about = ("file_name", "file_size", "file_modification_time")
        grouped = written.groupBy(*(F.col(f"_metadata.{name}").alias(name) for name in about))
        return [
            (self._file(row["file_name"], row["file_size"], row["at"], row["rows"]), row["rows"])
            for row in grouped.agg(F.count(F.lit(1)).alias("rows"))
            .withColumn("at", F.unix_millis("file_modification_time"))
            .collect()
        ]

    def _file(self, name: str, size: int, modified_ms: int, rows: int) -> AddAction:
        return AddAction(
            f"{self.folder}/{name}",
            size,
            {RUN_KEY: str(self.run_key)},
            modified_ms,
            True,
            json.dumps({"numRecords": rows}),
        )

    def _frame(self, blamed: Sequence[tuple[Fault, str]], references: References) -> DataFrame:
        """The blamed rows, with the columns that tell of the quarantine before their own."""
        faults = list(dict.fromkeys(fault for fault, _ in blamed))
        frame = rows_with_faults(self.spark, self.dataset, references, faults)
        conditions = {}
        for number, fault in enumerate(faults):
            condition = fault.condition
            if condition is None:
                alike = f"dqx: rows like this by fault {number}"
                keys = ", ".join(map(quote_name, fault.repeated))
                frame = frame.withColumn(alike, F.expr(f"count(1) OVER (PARTITION BY {keys})"))
                condition = f"{quote_name(alike)} > 1"
            conditions[fault] = condition
        reasons = ", ".join(
            f"CASE WHEN {conditions[fault]} THEN {quote_literal(name)} END"
            for fault, name in blamed
        )
        own = {
            RUN_ID: quote_literal(self.run_id),
            DATE: quote_literal(self.run_key.date),
            REASONS: f"array_distinct(array_compact(array({reasons})))",
        }
        chosen = frame.where(" OR ".join(f"({condition})" for condition in conditions.values()))
        return chosen.select(
            *(F.expr(sql).alias(name) for name, sql in own.items()),
            *(F.expr(quote_name(name)) for name in self.dataset.struct.names),
        )

    def _table(self) -> DeltaTable | None:
        try:
            return DeltaTable(self.path)
        except TableNotFoundError:
            return None

    def _is_empty(self) -> bool:
        """True where no attempt at the run key has left anything."""
        table = self._table()
        own = [(RUN_KEY, "=", str(self.run_key))]
        return table is None or not table.partitions(file_pruning_predicate=own)

    def _commit(self, files: Sequence[tuple[AddAction, int]]) -> None:
        """Makes the files what the run key has in the table, in one commit."""
        for wait_s in (*_WAITS_S, None):
            table = self._fitting_table()
            try:
                table.create_write_transaction(
                    [file for file, _ in files],
                    mode="overwrite",
                    schema=table.schema(),
                    partition_by=[RUN_KEY],
                    partition_filters=[(RUN_KEY, "=", str(self.run_key))],
                )
                return
            except CommitFailedError:
                if wait_s is None:
                    raise
                time.sleep(wait_s * random.uniform(0.5, 1.5))  # noqa: S311 (spreads the writers)

    def _fitting_table(self) -> DeltaTable:
        """The table, with the columns of the dataset as it is now.

        :raises ValueError: what is there is no such table, or has other types.
        """
        struct = StructType([*_OWN_COLUMNS, *self.dataset.struct.fields])
        wanted = Schema.from_json(_nullable(struct).json())
        table = self._table()
        if table is None:
            return DeltaTable.create(
                self.path, schema=wanted, mode="ignore", partition_by=[RUN_KEY]
            )
        there = {field.name: field for field in table.schema().fields}
        if RUN_KEY not in there:
            raise ValueError("that is another table, with other columns")
        for field in wanted.fields:
            found = there.get(field.name)
            if found is not None and found.type != field.type:
                raise ValueError(f"its column '{field.name}' was of another type before")
        missing = [field for field in wanted.fields if field.name not in there]
        if missing:
            table.alter.add_columns(missing)
        return table


def _nullable(struct: StructType) -> StructType:
    """The columns without the metadata of their source; each may be missing in an older file."""
    return StructType([StructField(field.name, field.dataType) for field in struct.fields])
