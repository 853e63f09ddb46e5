"""Promotion: the very rows that were validated, into another Delta table, in one commit.

Of a dataset with dates its date is replaced in the target, else all that the target holds; of
either, with `promote_slice`, only the rows with its values. What another gate, or another map
index, has promoted is never replaced.

What else a table needs than files and a log (constraints, deletion vectors...), and every table of
a catalog, is written by Spark's Delta source, where the session has it.
"""

from __future__ import annotations

import json
import logging
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import date, datetime
from functools import cache
from itertools import count
from typing import Any
from urllib.parse import unquote

from deltalake import CommitProperties, DeltaTable, Schema, Transaction
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError
from deltalake.transaction import RemoveAction, create_table_with_add_actions
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from dqx_airflow.dataset_settings import is_table
from dqx_airflow.diagnostics.nearest import did_you_mean
from dqx_airflow.engine.outputs.delta_writer import WrittenFiles, nullable, write_files
from dqx_airflow.engine.outputs.delta_writer_features import demands_of
from dqx_airflow.engine.outputs.promoted_slices import Noted, Promoter, Slice
from dqx_airflow.engine.scan.frames import rows_of
from dqx_airflow.engine.session.concurrency import jobs_called
from dqx_airflow.engine.session.spark_errors import explain, spark_failures
from dqx_airflow.engine.sources.dataset import OpenDataset
from dqx_airflow.engine.sources.delta.log import DeltaLog, struct_of
from dqx_airflow.engine.sources.delta.snapshot import frame_of_parts
from dqx_airflow.engine.sources.delta.spark_source import EXTENSIONS, has_delta
from dqx_airflow.engine.sources.errors import package_for
from dqx_airflow.engine.sources.listing import DataFile
from dqx_airflow.engine.sources.paths import absolute
from dqx_airflow.errors import DatasetError, DqxError, PromotionError, first_line
from dqx_airflow.metrics.sql import quote_literal, quote_name
from dqx_airflow.plan.masks import without_values
from dqx_airflow.plan.promotions import not_promoted
from dqx_airflow.results.commits import committed
from dqx_airflow.values import DatasetSnapshot, GateRequest, Promotion, Verdict

_log = logging.getLogger("dqx.gate")

_RUN_ID, _ROWS, _GATE, _SLICE = "dqx_run_id", "dqx_rows", "dqx_gate", "dqx_slice"
_NOTES = "dqx_notes"
"""Where a commit of Spark holds what a commit of deltalake notes as application transactions."""
_NO_VALUES = ("struct", "array", "map", "binary", "variant")
_WITH_STATISTICS = ("string", "tinyint", "smallint", "int", "bigint", "date")
_MOST_COMMITS = 200
_VIOLATED = re.compile(r"\[DELTA_\w*VIOLAT\w*\] (.+?)(?: with values)?:?$", re.MULTILINE)
"""What Delta says of rows that break a constraint of the table, without their values."""


@dataclass
class RefusedPromotionError(DqxError):
    """The target does not take the rows, however often they come."""


def promote(
    spark: SparkSession,
    opened: Mapping[str, OpenDataset],
    request: GateRequest,
    snapshots: Sequence[DatasetSnapshot],
    run_id: str,
    started: datetime,
) -> tuple[dict[str, Promotion], tuple[Verdict, ...]]:
    """Promotes the datasets that the request names; what became of each, by name.

    Each is a commit of its own. Repeated, it replaces what it wrote; a run that started earlier
    than the one that promoted last promotes nothing. Nor is anything promoted where a target is
    known to refuse its rows: a verdict tells why.

    :param snapshots: what was validated.
    :raises PromotionError: a dataset cannot be promoted as it is now.
    """
    rows = {snapshot.name: snapshot.rows for snapshot in snapshots}
    promotions = []
    for name, target in request.promote_to:
        dataset = opened.get(name)
        if dataset is None:
            raise PromotionError(f"dataset '{name}' cannot be promoted: it could not be read")
        place = target if is_table(target) else absolute(target)
        on = request.run_key.date if dataset.dates else None
        promotions.append(
            _Promotion(
                spark,
                dataset,
                place,
                Slice(on, request.promote_slice),
                Promoter.of(request.job_key, dataset.ref),
                rows[name],
                run_id,
                started,
            )
        )
    promoted: dict[str, Promotion] = {}
    refused: list[Verdict] = []
    for step in (_Promotion.check, _Promotion.run):
        for promotion in promotions if not refused else ():
            name = promotion.dataset.ref.name
            try:
                with jobs_called(spark, f"{name}: promotion"):
                    done = step(promotion)
            except RefusedPromotionError as refusal:
                reason = refusal.in_one_line
                refused.append(not_promoted(name, promotion.target, reason, request.fail_on))
                continue
            if done is not None:
                promoted[name] = done
                _log.info("dataset '%s' is promoted: %s", name, done)
    return promoted, tuple(refused)


@dataclass(frozen=True, slots=True)
class _Promotion:
    """The promotion of one dataset.

    :param slice: what is replaced.
    :param by: who replaces it.
    :param rows: how many rows were validated, where that is known.
    """

    spark: SparkSession
    dataset: OpenDataset
    target: str
    slice: Slice
    by: Promoter
    rows: int | None
    run_id: str
    started: datetime

    @property
    def on(self) -> date | None:
        return self.slice.on

    @property
    def _order(self) -> int:
        """Of two runs, the one that started later wins, whoever comes to its end first."""
        return int(self.started.timestamp() * 1000)

    def check(self) -> None:
        """Finds out without a write what the target would refuse.

        :raises _RefusedError: the target does not take the rows.
        :raises PromotionError: the target cannot be read.
        """
        if self.dataset.version is None and self.dataset.files is None:
            raise RefusedPromotionError(
                f"cannot verify that {self.dataset.location} is unchanged since validation",
                "promote a Delta table, or files whose folder can be listed",
            )
        with self._failures():
            self._check_values()
            if not self._is_by_spark():
                table = self._table()
                if table is not None:
                    self._check_columns(struct_of(table))
                    self._check_slice(table)
            elif self._is_there():
                self._check_columns(self.spark.table(self._named).schema)
                self._check_slice(None)

    def run(self) -> Promotion:
        """
        :raises _RefusedError: the target does not take the rows.
        :raises PromotionError: they cannot be promoted as it is now.
        """
        with self._failures():
            return self._by_spark() if self._is_by_spark() else self._by_files()

    @contextmanager
    def _failures(self) -> Iterator[None]:
        try:
            with spark_failures():
                yield
        except PySparkException as error:
            if violated := _VIOLATED.search(str(error)):
                raise RefusedPromotionError(violated[1]) from error
            is_masked = bool(self.dataset.ref.masked)
            reason = explain(error)
            raise self._failed(without_values(reason) if is_masked else reason) from error
        except DatasetError as error:
            raise self._failed(error.problem, error.hint) from error
        except (DeltaError, OSError, ValueError) as error:
            raise self._failed(first_line(error)) from error

    def _is_by_spark(self) -> bool:
        """True where Spark's Delta source has to write the target; a log and files do not do.

        :raises _RefusedError: this session does not have it.
        """
        needs = self._needs_spark()
        if needs and not has_delta(self.spark):
            raise RefusedPromotionError(f"{needs}; {package_for(self.spark, 'delta')}", EXTENSIONS)
        return needs is not None

    def _needs_spark(self) -> str | None:
        """Why Spark's Delta source has to write the target; None where files and a log will do."""
        if is_table(self.target):
            return "Spark's Delta source writes catalog tables"
        table = self._table()
        demands = demands_of(table) if table is not None else ()
        return f"the table there has {', '.join(demands)}" if demands else None

    def _failed(self, reason: str, hint: str = "") -> PromotionError:
        name = self.dataset.ref.name
        return PromotionError(
            f"dataset '{name}' passed, but cannot be promoted to {self.target}: {reason}", hint
        )

    def _is_late(self) -> PromotionError:
        return self._failed("a run of a gate that started later has already promoted")

    def _check_columns(self, there: StructType) -> None:
        wanted = {field.name: field.dataType.simpleString() for field in self.dataset.struct}
        types = {field.name: field.dataType.simpleString() for field in there}
        odd = [name for name in {**wanted, **types} if wanted.get(name) != types.get(name)]
        if odd:
            raise RefusedPromotionError(
                f"its column '{odd[0]}' is {types.get(odd[0], 'not there')}, "
                f"and that of the dataset is {wanted.get(odd[0], 'not there')}",
                "change the columns of the table first: a promotion does not",
            )

    def _check_values(self) -> None:
        """Refuses a slice by what is no column of the dataset, or by what is no value of it."""
        for name, text in self.slice.values:
            if name not in self.dataset.struct.names:
                advice = did_you_mean(name, self.dataset.struct.names)
                raise RefusedPromotionError(
                    f"promote_slice has the column '{name}', which is not in the dataset",
                    advice or f"available: {', '.join(self.dataset.struct.names)}",
                )
            kind = self.dataset.struct[name].dataType.simpleString()
            if kind.startswith(_NO_VALUES) or self._value_of(name, text) is None:
                raise RefusedPromotionError(
                    f"promote_slice: {text!r} is not a value of '{name}' ({kind})"
                )

    def _value_of(self, name: str, text: str) -> Any:
        kind = self.dataset.struct[name].dataType.simpleString()
        query = f"SELECT try_cast({quote_literal(text)} AS {kind})"
        return self.spark.sql(query).collect()[0][0]

    def _check_slice(self, table: DeltaTable | None) -> None:
        """Refuses to replace what another gate, or another map index, has promoted.

        :param table: the target; None where Spark has to tell of it.
        """
        objection = self.by.objection(self.slice, self._noted_in(table))
        if objection is None:
            return
        problem, advice = objection
        who = self._last_promoter(table)
        raise RefusedPromotionError(f"{problem} ({who})" if who else problem, advice)

    def _noted_in(self, table: DeltaTable | None) -> Noted:
        counts: dict[str, int] = {}
        if table is None:
            for commit in reversed(self._commits_of_spark()):
                counts |= commit.get(_NOTES, {})
            if not is_table(self.target):
                table = self._table()

        @cache
        def noted(name: str) -> int | None:
            return counts[name] if name in counts else table and table.transaction_version(name)

        return noted

    def _last_promoter(self, table: DeltaTable | None) -> str:
        """Which gate has promoted last to the same date, as far as the history tells."""
        commits = self._commits_of_spark() if table is None else table.history(_MOST_COMMITS)
        day = self.slice.whole.name
        for commit in commits:
            if _GATE in commit and str(commit.get(_SLICE, "")).startswith(day):
                at = commit.get("version")
                index = commit.get("dqx_map_index")
                mapped = f", map index {index}" if index is not None else ""
                return f"gate {commit[_GATE]}{mapped}, in version {at}"
        return ""

    def _commits_of_spark(self) -> list[dict[str, Any]]:
        """What promotions by Spark have told of themselves, the newest first."""
        told = (
            self.spark.sql(f"DESCRIBE HISTORY {self._named}")
            .where(f"get_json_object(userMetadata, '$.{_RUN_ID}') IS NOT NULL")
            .orderBy("version", ascending=False)
            .select("version", "userMetadata", "operationMetrics")
            .collect()
        )
        return [{**json.loads(row[1]), "version": row[0], "metrics": row[2]} for row in told]

    @property
    def _partition_columns(self) -> list[str]:
        """Those of a target that is made now."""
        if self.dataset.log is not None:
            return list(self.dataset.log.table.metadata().partition_columns)
        dates = self.dataset.dates
        return [] if dates is None or dates.is_moment else [dates.name]

    def _table(self) -> DeltaTable | None:
        try:
            return DeltaTable(self.target)
        except TableNotFoundError:
            return None

    @property
    def _named(self) -> str:
        """The target in Spark SQL."""
        return self.target if is_table(self.target) else f"delta.{quote_name(self.target)}"

    def _is_there(self) -> bool:
        if is_table(self.target):
            return bool(self.spark.catalog.tableExists(self.target))
        return self._table() is not None

    def _by_files(self) -> Promotion:
        """Spark writes the files, deltalake commits them."""
        before = self._table()
        since = -1 if before is None else int(before.version())
        numbers = count()
        committed(lambda: self._commit(f"promoted-{self.run_id}/{next(numbers)}"))
        newest = DeltaTable(self.target)
        commits = newest.history(int(newest.version()) - since)
        (own,) = (commit for commit in commits if commit.get(_RUN_ID) == self.run_id)
        return Promotion(self.target, int(own["version"]), int(own[_ROWS]))

    def _commit(self, folder: str) -> None:
        """Commits once. What of the target may have changed since is found out by the commit.

        :raises CommitFailedError: another writer came first.
        """
        table = self._table()
        if table is None:
            self._create(folder)
            return
        self._check_slice(table)
        done = table.transaction_version(self.slice.order)
        if done == self._order:
            return  # the commit of which nobody could tell whether it was one
        if done is not None and done > self._order:
            raise self._is_late()
        self._check_columns(struct_of(table))
        columns = list(table.metadata().partition_columns)
        log = DeltaLog(table, self.target, struct_of(table), self.dataset.dates)
        replaced = log.files_of(self.on, self._values)
        kept = self._kept(log, replaced, folder, columns)
        files = self._checked(self._written(self._rows(), f"{folder}/rows", columns))
        # deltalake labels a commit by its mode, and finds out itself what an overwrite removes.
        is_whole = len(replaced) == len(log.files_of(None))
        removes, partition = list[RemoveAction](), None
        if not is_whole and log.is_partitioned_by_date and not self.slice.values:
            partition = [(self._date_column, "=", str(self._date_value))]
        elif not is_whole:
            now = int(time.time() * 1000)
            removes = [RemoveAction(unquote(file.path), True, now, file.size) for file in replaced]
        table.create_write_transaction(
            [*files.adds, *kept.adds, *removes],
            mode="append" if removes or not (is_whole or partition) else "overwrite",
            schema=table.schema(),
            partition_by=columns,
            partition_filters=partition,
            commit_properties=self._commit_properties(files, self._noted_in(table)),
        )

    def _create(self, folder: str) -> None:
        columns = self._partition_columns
        files = self._checked(self._written(self._rows(), f"{folder}/rows", columns))
        try:
            create_table_with_add_actions(
                self.target,
                Schema.from_json(nullable(self.dataset.struct).json()),
                [*files.adds],
                partition_by=columns,
                commit_properties=self._commit_properties(files, lambda _: None),
            )
        except DeltaError as error:
            if self._table() is None:
                raise
            raise CommitFailedError(first_line(error)) from error

    def _rows(self) -> DataFrame:
        """The rows that go to the target.

        A row whose date cannot be read is validated with every date, and replaced with none: it
        stays behind, and then the numbers of rows differ.
        """
        frame = rows_of(self.dataset, self.on or date.min)
        return frame if self._of_date is None else frame.where(self._of_date)

    @property
    def _of_date(self) -> str | None:
        """The rows of the date, as Spark SQL; None where the dataset has no dates."""
        if self.dataset.dates is None or self.on is None:
            return None
        return self.dataset.dates.filter({self.on})

    @property
    def _of_slice(self) -> str | None:
        """The rows with the values of the slice, as Spark SQL; None where it has none."""
        parts = [
            f"{quote_name(name)} <=> CAST({quote_literal(text)} AS "
            f"{self.dataset.struct[name].dataType.simpleString()})"
            for name, text in self.slice.values
        ]
        return " AND ".join(parts) or None

    @property
    def _condition(self) -> str | None:
        """What is replaced in the target, as Spark SQL; None where it is everything."""
        parts = [f"({part})" for part in (self._of_date, self._of_slice) if part is not None]
        return " AND ".join(parts) or None

    @property
    def _values(self) -> dict[str, Any]:
        return {name: self._value_of(name, text) for name, text in self.slice.values}

    @property
    def _date_column(self) -> str:
        assert self.dataset.dates is not None
        return self.dataset.dates.name

    @property
    def _date_value(self) -> date | str | int:
        assert self.dataset.dates is not None
        assert self.on is not None
        return self.dataset.dates.value(self.on)

    def _written(self, frame: DataFrame, folder: str, columns: Sequence[str]) -> WrittenFiles:
        dates = self.dataset.dates
        return write_files(
            self.spark,
            frame,
            self.target,
            folder,
            partition_by=columns,
            extremes_of=(
                *(() if dates is None or dates.is_moment else (dates.name,)),
                *(name for name, _ in self.slice.values if self._has_statistics(name)),
            ),
            count_if=f"NOT ({self._of_slice})" if self._of_slice else None,
        )

    def _has_statistics(self, name: str) -> bool:
        return self.dataset.struct[name].dataType.simpleString() in _WITH_STATISTICS

    def _checked(self, files: WrittenFiles) -> WrittenFiles:
        """The files, if they hold what was validated."""
        change = self.dataset.change
        if change is None and self.rows is not None and files.rows != self.rows:
            change = f"{self.rows} rows were validated, and {files.rows} of them have the date"
        if change is not None:
            raise self._failed(change)
        if files.counted:
            raise self._outside(f"{files.counted} of {files.rows}")
        return files

    def _outside(self, how_many: str) -> RefusedPromotionError:
        named = ", ".join(f"{name} = {text!r}" for name, text in self.slice.values)
        return RefusedPromotionError(
            f"{how_many} rows do not have the values of promote_slice: {named}",
            "set promote_slice to the values that the gate reads, or filter the dataset by them",
        )

    def _kept(
        self, log: DeltaLog, replaced: Sequence[DataFile], folder: str, columns: Sequence[str]
    ) -> WrittenFiles:
        """What the files that are replaced hold besides the slice, written anew."""
        is_exact = log.is_partitioned_by_date and not self.slice.values
        if self._condition is None or is_exact or not replaced:
            return WrittenFiles()
        frame = frame_of_parts(self.spark, log, log.parts_with(replaced))
        is_other = f"NOT coalesce({self._condition}, false)"
        kept = self._written(frame.where(is_other), f"{folder}/kept", columns)
        # A session may be told to pass over files that are missing or corrupt: theirs are the rows
        # of others, too.
        read, others = frame.select(F.count("*"), F.count_if(F.expr(is_other))).collect()[0]
        told = log.rows_in(replaced)
        if others != kept.rows or (told is not None and told != read):
            raise self._failed(
                f"of {told if told is not None else read} rows in the files that are replaced "
                f"{read} can be read, and {kept.rows} of {others} others were kept"
            )
        return replace(kept, counted=0)

    @property
    def _facts(self) -> dict[str, Any]:
        """What a commit tells of itself to those who read the history of the table."""
        index = self.by.map_index
        return {
            _RUN_ID: self.run_id,
            _GATE: self.by.gate,
            "dqx_scheduler_run": self.by.run,
            **({} if index is None else {"dqx_map_index": str(index)}),
            _SLICE: self.slice.name,
        }

    def _commit_properties(self, files: WrittenFiles, noted: Noted) -> CommitProperties:
        notes = self.by.notes(self.slice, self._order, noted)
        return CommitProperties(
            custom_metadata={
                **self._facts,
                _ROWS: str(files.rows),
                "operationParameters": {"predicate": self._condition or "true"},
                "isBlindAppend": False,
            },
            app_transactions=[Transaction(name, number) for name, number in notes.items()],
        )

    def _by_spark(self) -> Promotion:
        place = self._named
        writer = self._rows().write.format("delta").mode("overwrite")
        is_there = self._is_there()
        noted: Noted = lambda _: None  # noqa: E731
        if is_there:
            self._check_columns(self.spark.table(place).schema)
            self._check_slice(None)
            noted = self._noted_in(None)
        if self._of_slice and (odd := self._rows().where(f"NOT ({self._of_slice})").count()):
            raise self._outside(str(odd))
        if is_there and self._condition is not None:
            writer = writer.option("replaceWhere", self._condition)
        if not is_there:
            writer = writer.partitionBy(*self._partition_columns)
        # Spark leaves out a write whose number is no greater than that of the last one.
        facts = {**self._facts, _NOTES: self.by.notes(self.slice, self._order, noted)}
        writer = writer.options(
            txnAppId=self.slice.order, txnVersion=self._order, userMetadata=json.dumps(facts)
        )
        if (change := self.dataset.change) is not None:
            raise self._failed(change)
        if is_table(self.target):
            writer.saveAsTable(place)
        else:
            writer.save(self.target)
        own = [it for it in self._commits_of_spark() if it[_RUN_ID] == self.run_id]
        if not own:
            raise self._is_late()
        rows = (own[0]["metrics"] or {}).get("numOutputRows")
        return Promotion(self.target, int(own[0]["version"]), int(rows or 0))
