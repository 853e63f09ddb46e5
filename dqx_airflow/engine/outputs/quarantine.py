"""Quarantine: the complete, unmasked failing rows of a dataset, in a Delta table of its own.

A row is stored once per gate and date, with the reasons of all suites. A run replaces the reasons
of the assertions that it judged, in the rows that it read.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import cached_property
from hashlib import sha256
from itertools import count
from typing import NamedTuple
from urllib.parse import unquote

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Schema
from deltalake.exceptions import DeltaError
from deltalake.table import TableFeatures
from deltalake.transaction import AddAction
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DateType, StringType, StructField, StructType

from dqx_airflow.engine.outputs.data_files import WrittenFiles, write_files
from dqx_airflow.engine.outputs.fault_conditions import with_conditions
from dqx_airflow.engine.outputs.promoted_slices import Slice
from dqx_airflow.engine.outputs.promotion import exchange, nullable
from dqx_airflow.engine.outputs.promotion_target import (
    ReplacedRows,
    existing_table,
    zoneless_in_maps,
)
from dqx_airflow.engine.scan.frames import ReferenceTables, has_lost_its_date, rows_with_texts
from dqx_airflow.engine.session.concurrency import jobs_called
from dqx_airflow.engine.session.sail import sail_version
from dqx_airflow.engine.session.spark_errors import explain, spark_failures
from dqx_airflow.engine.sources.dataset import OpenDataset
from dqx_airflow.engine.sources.delta_files import DeltaLog, FileGroup
from dqx_airflow.engine.sources.delta_table import frame_of_parts, log_for
from dqx_airflow.engine.sources.listing import DataFile, absolute
from dqx_airflow.engine.sources.logged_files import LoggedFiles
from dqx_airflow.engine.sources.value_forms import form_of_sail
from dqx_airflow.errors import DqxError, StoreError, first_line
from dqx_airflow.metrics.sql import quote_literal, quote_name
from dqx_airflow.plan.failing import FailingRows
from dqx_airflow.plan.masks import without_values
from dqx_airflow.results import quarantines
from dqx_airflow.results.quarantines import ASSERTIONS, DATE, DAY, REASONS, RUN_ID, RUN_KEY, SLICE
from dqx_airflow.results.tables import committed
from dqx_airflow.values import GateRequest, RunKey, Status, Verdict

_log = logging.getLogger("dqx.gate")

_ZONELESS = "timestampNtz"
_ASSERTION = ("gate", "check", "assertion")
_OWN_COLUMNS = (
    StructField(RUN_KEY, StringType()),
    StructField(RUN_ID, StringType()),
    StructField(DATE, DateType()),
    StructField(REASONS, ArrayType(StringType())),
    StructField(
        ASSERTIONS, ArrayType(StructType([StructField(name, StringType()) for name in _ASSERTION]))
    ),
    StructField(SLICE, StringType()),
)
_PASSING = [f"dqx: {name}" for name in ("row", "new", "read again", "judged", "kept", "number")]
_ROW, _IS_NEW, _IS_READ, _IS_JUDGED, _KEPT, _NUMBER = _PASSING
_REASONS_OF = f"array_distinct(transform({ASSERTIONS}, one -> one.assertion))"
_EVERY_DIGIT = {
    "ignoreNullFields": "false",
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}


@dataclass(frozen=True, slots=True)
class Judged:
    """The verdicts on a request, and the faults that explain each. `is_partial` is true if
    assertions or suites were left out."""

    request: GateRequest
    run_id: str
    verdicts: Sequence[Verdict]
    faults: Sequence[tuple[FailingRows, ...]]
    is_partial: bool


def quarantine_rows(
    spark: SparkSession, opened: Mapping[str, OpenDataset], judged: Sequence[Judged]
) -> dict[tuple[date, str], int]:
    """The number of rows that went into quarantine, for each date and each dataset that has one.

    These are the rows of the date that violate a failed assertion with a severity of `fail_on` or
    worse, each once, with the names of all such assertions of all suites: the remaining rows of the
    dataset are valid. They replace the rows of earlier runs for the date, also if there are none
    now.

    :param judged: the verdicts of all suites and dates of one gate that the job judges.
    :raises StoreError: a quarantine cannot be written.
    """
    run_ids = frozenset(part.run_id for part in judged)
    by_place: dict[tuple[date, str, str], list[Judged]] = {}
    for part in judged:
        for name, path in part.request.quarantine:
            if name in opened:  # else it could not be read: the report has the reason
                key = (part.request.run_key.date, name, path)
                by_place.setdefault(key, []).append(part)
    counts = {}
    for (on, name, path), parts in by_place.items():
        references = ReferenceTables(opened, on)
        quarantine = _Quarantine(
            spark, opened[name], absolute(path), tuple(parts), run_ids, references
        )
        counts[on, name] = found = quarantine.fill()
        if found:
            _log.warning("dataset '%s': %s rows in quarantine at %s", name, found, path)
    return counts


def blamed_in(
    parts: Iterable[Judged], dataset: str
) -> Iterator[tuple[Judged, Verdict, FailingRows]]:
    """The faults that put rows of a dataset into quarantine, each with its verdict."""
    for part in parts:
        for verdict, faults in zip(part.verdicts, part.faults, strict=True):
            for fault in faults if verdict.can_block(part.request.fail_on) else ():
                if fault.request.dataset == dataset and not fault.is_of_two_datasets:
                    yield part, verdict, fault


class _File(NamedTuple):
    """A file of a quarantine, its run key, and the first and the last slice of its rows: None for a
    file of an earlier version."""

    path: str
    size: int
    key: str
    first: str | None
    last: str | None

    def may_have(self, name: str) -> bool:
        """True if a row of the file may belong to a slice."""
        return self.first is not None and self.last is not None and self.first <= name <= self.last


@dataclass(frozen=True)
class _Quarantine:
    """The quarantine of one dataset, as filled by the parts of a job for one date.

    :param run_ids: the ids of all runs of the job, which may judge the same rows for several dates.
    """

    spark: SparkSession
    dataset: OpenDataset
    path: str
    parts: tuple[Judged, ...]
    run_ids: frozenset[str]
    references: ReferenceTables

    @property
    def run_key(self) -> RunKey:
        return self.parts[0].request.job_key

    @property
    def run_id(self) -> str:
        return self.parts[0].run_id

    def fill(self) -> int:
        """Writes the failing rows, and returns their number."""
        blamed = [
            (fault, _assertion_sql(part, verdict))
            for part, verdict, fault in blamed_in(self.parts, self.dataset.ref.name)
        ]
        try:
            table = existing_table(self.path)
            if not blamed and (table is None or not self._own_files(table)):
                return 0
            self._fitting_table()  # before it writes into a table that is not a quarantine
            job = f"{self.dataset.ref.name}: quarantine"
            numbers = count()
            with spark_failures(), jobs_called(self.spark, job):
                return committed(lambda: self._commit(blamed, next(numbers)))
        except PySparkException as error:
            raise self._unusable(explain(error)) from error
        except (DeltaError, OSError, ValueError) as error:
            raise self._unusable(first_line(error)) from error

    def _unusable(self, reason: str) -> DqxError:
        reason = without_values(reason, self.dataset.ref.masked)
        return StoreError(
            f"the rows of dataset '{self.dataset.ref.name}' cannot be quarantined at "
            f"{self.path}: {reason}",
            "give the quarantine another path, or remove it: the gate blocks without it too",
        )

    def _commit(self, blamed: Sequence[tuple[FailingRows, str]], attempt: int) -> int:
        """Replaces the judged rows by the failing rows, in one commit, and returns their number.

        :raises CommitFailedError: another run of the gate was first.
        """
        table = self._fitting_table()
        log = log_for(self.spark, table, self.path)
        own = self._own_files(table)
        replaced = [file for file in own if self._is_replaced(file)]
        others = [file for file in own if file not in replaced]
        partly = [file for file in others if any(map(file.may_have, self._slices))]
        read = self._with_read_rows(log, [file for file in others if self._may_be_read(file)])
        partly += [file for file in read if file not in partly]
        folder = f"run-{self.run_id}/{attempt}"
        adds: list[AddAction] = []
        rows = self._frame(blamed) if blamed else None
        if partly or (replaced and self._keeps_reasons(replaced)):
            old = self._old_rows(log, [*replaced, *partly], read)
            rows = self._merged(old, rows)
            is_other = f"NOT {quote_name(_IS_JUDGED)} AND {quote_name(RUN_KEY)} = "
            for number, key in enumerate(sorted({file.key for file in partly})):
                others_of_key = old.where(is_other + quote_literal(key))
                adds += self._written(others_of_key, f"{folder}/others-{number}", key).adds
        files = WrittenFiles()
        if rows is not None:
            files = self._written(rows, f"{folder}/rows", str(self.run_key))
        removed = [(file.path, file.size) for file in (*replaced, *partly)]
        if files.adds or adds or removed:
            change = quarantines.next_change(table, self.run_key.gate_instance)
            once = CommitProperties(app_transactions=[change])
            exchange(table, [*files.adds, *adds], removed, once)
        return files.counted

    def _written(self, frame: DataFrame, folder: str, key: str) -> WrittenFiles:
        kept = (name for name in frame.columns if name != RUN_KEY and name not in _PASSING)
        return write_files(
            self.spark,
            frame.select(*map(quote_name, kept)),
            self.path,
            folder,
            constants={RUN_KEY: key},
            extremes_of=(SLICE,),
            count_if=f"{RUN_ID} = {quote_literal(self.run_id)}",
        )

    # What is replaced

    @cached_property
    def _source(self) -> tuple[str, str]:
        """Digests of the location of the rows and of the settings for reading them. Different
        spellings of a value of a slice give the same digest; another spelling of a path or a filter
        only costs a comparison of rows."""
        ref = self.dataset.ref
        pairs = self.parts[0].request.promote_slice
        rows = ReplacedRows(self.spark, self.dataset, Slice(None, pairs))
        values = (f"{name}={rows.canonical_of(name, text) or text}" for name, text in pairs)
        days = (ref.date_column, ref.date_format, ref.time_zone)
        return _digest(self.dataset.location), _digest(ref.filter, *days, *sorted(values))

    @cached_property
    def _slice(self) -> str:
        """The name of the slice of the rows on the date; without dates, of the rows of the
        scheduler run."""
        run = self.run_key.scheduler_run
        on = self.run_key.date.isoformat() if self.dataset.dates is not None else _digest(run)
        return f"{self._lost}{on}"

    @property
    def _lost(self) -> str:
        """The name of the slice of the rows whose date cannot be read: every run reads them."""
        return f"{''.join(self._source)}/"

    @property
    def _slices(self) -> tuple[str, ...]:
        return (self._lost, self._slice)

    def _own_files(self, table: DeltaTable) -> list[_File]:
        """The files with rows of this gate or, for a mapped task, of the same instance."""
        files = LoggedFiles(pa.table(table.get_add_actions(flatten=True)))
        run_key = f"partition.{RUN_KEY}"
        own = files.where(run_key, lambda key: self._date_of(key or "") is not None)
        facts = ("path", "size_bytes", run_key, f"min.{SLICE}", f"max.{SLICE}")
        columns = (files.values(name, own) for name in facts)
        return [_File(*values) for values in zip(*columns, strict=True)]

    def _date_of(self, key: str) -> str | None:
        """The date in a run key of the gate, or of one of its suites as in earlier versions; None
        in a run key of another gate."""
        match = re.fullmatch(rf"{re.escape(self.run_key.gate)}(?:/.+?)?/({DAY})/(.+)", key, re.S)
        is_own = match and RunKey("", date.min, match[2]).map_index == self.run_key.map_index
        return match[1] if match and is_own else None

    def _is_of_this_run(self, key: str) -> bool:
        return key.endswith(f"/{self.run_key.date.isoformat()}/{self.run_key.scheduler_run}")

    def _is_replaced(self, file: _File) -> bool:
        """True if this run judges all rows of a file again."""
        is_of_slice = file.first == file.last and file.first in self._slices
        return is_of_slice or self._is_of_this_run(file.key)

    def _may_be_read(self, file: _File) -> bool:
        """True if a file may have rows that this run reads in another way, or for another date."""
        if file.first is None or file.last is None:  # of an earlier version
            return self._date_of(file.key) == self.run_key.date.isoformat()
        place, _ = self._source
        known = self._lost if self.dataset.dates is not None else self._slice
        return any(
            name.startswith(place) and not name.startswith(known)
            for name in (file.first, file.last)
        )

    def _with_read_rows(self, log: DeltaLog, files: Sequence[_File]) -> list[_File]:
        """The files that have rows which this run reads."""
        if not files:
            return []
        if sail_version(self.spark) is not None:
            # Sail does not know the file of a row.
            return [file for file in files if self._has_read_rows(log, file)]
        uris = (uri for part in log.parts_with(map(_as_listed, files)) for uri in part.uris)
        part = FileGroup(tuple(uris), ((RUN_KEY, ""),))
        rows = self._with_row(frame_of_parts(self.spark, log, [part]))
        named = rows.select(_ROW, F.input_file_name().alias("file"))
        found = named.join(self._read_again(rows), _ROW, "left_semi").select("file").distinct()
        names = [unquote(row[0]) for row in found.collect()]
        return [file for file in files if any(name.endswith(unquote(file.path)) for name in names)]

    def _has_read_rows(self, log: DeltaLog, file: _File) -> bool:
        rows = self._with_row(frame_of_parts(self.spark, log, log.parts_with([_as_listed(file)])))
        return not self._read_again(rows).isEmpty()

    def _read_again(self, rows: DataFrame) -> DataFrame:
        """Quarantined rows that this run reads again, without duplicates."""
        frame = rows_with_texts(self.dataset, {self.run_key.date})
        read = self._with_row(
            frame.select(*(F.expr(sql).alias(field.name) for field, sql in self._columns))
        )
        return read.select(_ROW).join(rows.select(_ROW), _ROW, "left_semi").distinct()

    def _with_row(self, frame: DataFrame) -> DataFrame:
        """The frame with a column that is equal for rows with equal values."""
        of_sail = sail_version(self.spark) is not None
        fields = [field for field, _ in self._columns]
        values = [F.expr(quote_name(field.name)) for field in fields]
        if of_sail:
            # It keeps zeros and NaN as they were read, in several forms.
            values = [
                F.expr(form_of_sail(quote_name(field.name), field.dataType)).alias(field.name)
                for field in fields
            ]
            # Sail writes decimals into JSON as doubles.
            values += [
                F.expr(f"CAST({quote_name(field.name)} AS STRING)").alias(f"{field.name}: text")
                for field, _ in self._columns
                if "decimal" in field.dataType.simpleString()
            ]
        return frame.withColumn(_ROW, F.to_json(F.struct(*values), _EVERY_DIGIT))

    # What is kept

    @cached_property
    def _kept(self) -> str:
        """A Spark SQL lambda over the entries of `assertions`, true for the assertions that were
        not judged."""
        is_partial = any(part.is_partial for part in self.parts)
        named = ", ".join(
            _assertion_sql(part, verdict)
            for part in self.parts
            for verdict in part.verdicts
            if is_partial == _is_judged(verdict)
        )
        same = " AND ".join(f"coalesce(one.`{name}` = other.`{name}`, true)" for name in _ASSERTION)
        is_named = f"exists(array({named}), other -> {same})" if named else "false"
        return f"one -> {'NOT ' if is_partial else ''}{is_named}"

    def _keeps_reasons(self, files: Sequence[_File]) -> bool:
        """True if replaced rows may keep reasons of assertions that were not judged."""
        elsewhere = tuple(f"run-{run_id}/" for run_id in self.run_ids - {self.run_id})
        return self._kept != "one -> false" or any(
            file.path.startswith(elsewhere) for file in files
        )

    def _old_rows(self, log: DeltaLog, files: Sequence[_File], read: Sequence[_File]) -> DataFrame:
        """Rows of the table, each with a flag (this run judged it) and the assertions that were not
        judged."""
        parts = log.parts_with(map(_as_listed, files))
        rows = self._with_row(frame_of_parts(self.spark, log, parts))
        slices = ", ".join(map(quote_literal, self._slices))
        keys = ", ".join(
            quote_literal(file.key) for file in files if self._is_of_this_run(file.key)
        )
        is_judged = f"coalesce({SLICE} IN ({slices}), false)"
        if keys:
            is_judged += f" OR {RUN_KEY} IN ({keys})"
        if read:
            again = self._read_again(rows).withColumn(_IS_READ, F.lit(True))
            rows = rows.join(again, _ROW, "left")
            is_judged += f" OR {quote_name(_IS_READ)} IS NOT NULL"
        gate = f"regexp_extract({RUN_KEY}, '^(.*?)/{DAY}/', 1)"
        of_old = f"named_struct('gate', {gate}, 'check', CAST(NULL AS STRING), 'assertion', reason)"
        assertions = f"coalesce({ASSERTIONS}, transform({REASONS}, reason -> {of_old}))"
        of_job = ", ".join(map(quote_literal, self.run_ids - {self.run_id})) or "NULL"
        kept = f"if({RUN_ID} IN ({of_job}), {assertions}, filter({assertions}, {self._kept}))"
        return rows.withColumns(
            {_IS_JUDGED: F.expr(is_judged), _KEPT: F.expr(kept), _IS_NEW: F.lit(False)}
        )

    def _merged(self, old: DataFrame, new: DataFrame | None) -> DataFrame:
        """Merges judged rows: each row once, with all its reasons; rows without a reason are
        dropped.

        Equal rows are counted: three equal rows remain three rows.
        """
        rows = old.where(quote_name(_IS_JUDGED))
        if new is not None:
            new = self._with_row(new).withColumn(_IS_NEW, F.lit(True))
            rows = rows.unionByName(new.withColumn(_KEPT, F.col(ASSERTIONS)), True)
        row, number, kept = map(quote_name, (_ROW, _NUMBER, _KEPT))
        source = f"{row}, {quote_name(_IS_NEW)}, {RUN_KEY}"
        same = f"PARTITION BY {row}, {number}"
        first = f"row_number() OVER ({same} ORDER BY {quote_name(_IS_NEW)} DESC, {RUN_KEY})"
        all_kept = f"array_distinct(flatten(collect_list({kept}) OVER ({same})))"
        rows = (
            rows.withColumn(
                _NUMBER, F.expr(f"row_number() OVER (PARTITION BY {source} ORDER BY {DATE})")
            )
            .withColumns({ASSERTIONS: F.expr(all_kept), _IS_NEW: F.expr(f"{first} = 1")})
            .where(f"{quote_name(_IS_NEW)} AND size({ASSERTIONS}) > 0")
        )
        return rows.withColumn(REASONS, F.expr(_REASONS_OF))

    def _frame(self, blamed: Sequence[tuple[FailingRows, str]]) -> DataFrame:
        """The failing rows, with the columns of the quarantine before the columns of the dataset.

        :param blamed: pairs of a fault and its assertion as Spark SQL.
        """
        faults = list(dict.fromkeys(fault for fault, _ in blamed))
        stored = self.dataset.stored
        dataset, columns = self.dataset, self._columns
        if stored is not None and dataset.texts is None:
            dataset = replace(dataset, read=stored.read)
            columns = [
                (field, quote_name(stored.columns.get(field.name, field.name)))
                for field, _ in columns
            ]
        frame, conditions = with_conditions(dataset, self.references, faults)
        assertions = ", ".join(
            f"CASE WHEN {conditions[fault]} THEN {assertion} END" for fault, assertion in blamed
        )
        of_row = quote_literal(self._slice)
        lost = has_lost_its_date(self.dataset)
        run_columns = {
            RUN_ID: quote_literal(self.run_id),
            DATE: quote_literal(self.run_key.date),
            ASSERTIONS: f"array_distinct(array_compact(array({assertions})))",
            SLICE: f"if({lost or 'false'}, {quote_literal(self._lost)}, {of_row})",
        }
        chosen = frame.where(" OR ".join(f"({condition})" for condition in conditions.values()))
        return chosen.select(
            *(F.expr(sql).alias(name) for name, sql in run_columns.items()),
            *(F.expr(sql).alias(field.name) for field, sql in columns),
        ).withColumn(REASONS, F.expr(_REASONS_OF))

    @property
    def _columns(self) -> list[tuple[StructField, str]]:
        """The columns to store, each with its Spark SQL: values cast from strings are stored as
        written."""
        fields = self.dataset.struct.fields
        texts = self.dataset.texts
        if texts is None:
            return [(field, quote_name(field.name)) for field in fields]
        kinds = {column: StringType() for column in texts.cast}
        kept = [
            (StructField(field.name, kinds.get(field.name, field.dataType)), texts.text(field.name))
            for field in fields
        ]
        return [*kept, (StructField(quarantines.LINE, StringType()), texts.line)]

    def _fitting_table(self) -> DeltaTable:
        """The table, with the current columns of the dataset.

        :raises ValueError: the table is not a quarantine, or has other types.
        """
        struct = StructType([*_OWN_COLUMNS, *(field for field, _ in self._columns)])
        wanted = Schema.from_json(nullable(struct).json())
        with_feature = set(zoneless_in_maps(struct))
        table = existing_table(self.path)
        if table is None:
            first = [field for field in wanted.fields if field.name not in with_feature]
            table = DeltaTable.create(
                self.path, schema=Schema(first), mode="ignore", partition_by=[RUN_KEY]
            )
        existing = {field.name.casefold(): field for field in table.schema().fields}
        if RUN_KEY not in existing:
            raise ValueError("the table there has other columns")
        for field in wanted.fields:
            present = existing.get(field.name.casefold(), field)
            if (present.name, present.type) != (field.name, field.type):
                raise ValueError(f"its column '{present.name}' previously had another name or type")
        missing = [field for field in wanted.fields if field.name.casefold() not in existing]
        if missing:
            has_feature = _ZONELESS in (table.protocol().writer_features or ())
            if not has_feature and any(field.name in with_feature for field in missing):
                table.alter.add_feature(
                    TableFeatures.TimestampWithoutTimezone, allow_protocol_versions_increase=True
                )
            table.alter.add_columns(missing)
        # What another gate masks, or masked before, stays masked: its rows may still be here.
        columns = {*self.dataset.ref.masked, *(quarantines.masked_in(table) or ())}
        masked = {quarantines.MASKED: json.dumps(sorted(columns))}
        if not masked.items() <= table.metadata().configuration.items():
            table.alter.set_table_properties(masked, raise_if_not_exists=False)
        return table


def _as_listed(file: _File) -> DataFile:
    return DataFile(file.path, file.size, 0)


def _digest(*parts: str | None) -> str:
    """Ten characters: Delta keeps the first 32 of a string in its statistics."""
    return sha256(json.dumps(parts).encode()).hexdigest()[:10]


def _assertion_sql(part: Judged, verdict: Verdict) -> str:
    """An assertion as a value of Spark SQL."""
    values = (part.request.run_key.gate, verdict.check, verdict.name)
    pairs = zip(map(quote_literal, _ASSERTION), map(quote_literal, values), strict=True)
    return f"named_struct({', '.join(map(', '.join, pairs))})"


def _is_judged(verdict: Verdict) -> bool:
    return verdict.status is not Status.ERROR and not verdict.is_not_evaluated
