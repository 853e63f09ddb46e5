"""The target of a promotion, and the rows in it that are replaced."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from functools import cached_property
from typing import Any

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, MapType, StructType, TimestampNTZType

from dqx_airflow.datasets.delta_log import require_whole_commits, transactions
from dqx_airflow.datasets.locations import is_table
from dqx_airflow.diagnostics.diagnostic import did_you_mean
from dqx_airflow.engine.outputs import promoted_slices
from dqx_airflow.engine.outputs.promoted_slices import Region
from dqx_airflow.engine.outputs.shown_rows import shown_cell
from dqx_airflow.engine.outputs.target_demands import Demand, demands_on_values
from dqx_airflow.engine.scan.frames import rows_of, rows_with_texts
from dqx_airflow.engine.session.sail import INSTEAD, engine_version, sail_version
from dqx_airflow.engine.session.spark_session import TIME_ZONE, is_in_utc
from dqx_airflow.engine.sources.dataset import OpenDataset
from dqx_airflow.engine.sources.delta_table import frame_of_parts, log_for
from dqx_airflow.engine.sources.listing import absolute
from dqx_airflow.engine.sources.partition_values import UnheldValueError, refusal
from dqx_airflow.errors import DqxError, PromotionError
from dqx_airflow.metrics.sql import quote_literal, quote_name
from dqx_airflow.plan.masks import is_masked, without_values
from dqx_airflow.results.receipts import MASKED, RECEIPT, ReceiptWriter
from dqx_airflow.results.report_rows import digest_of
from dqx_airflow.values.report import Acceptance

_NO_VALUES = ("struct", "array", "map", "binary", "variant", "interval")
_WITH_STATISTICS = ("string", "tinyint", "smallint", "int", "bigint", "date")
_MOST_CELLS = 10
_WITH_NULLS = "map('ignoreNullFields', 'false')"
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_RECORDED: dict[str, re.Pattern[str]] = {
    **dict.fromkeys(("smallint", "int", "bigint"), re.compile(r"0|-?[1-9]\d{0,17}")),
    "string": re.compile(r".*", re.DOTALL),
    "date": re.compile(r"\d{4}-\d\d-\d\d"),
    "boolean": re.compile("true|false"),
    "timestamp": re.compile(r"\d{4}-\d\d-\d\dT[\d:.]{8,15}\+00:00"),
}
"""How the records of a table have values of a type: in its canonical form."""
_WIDTHS = {"smallint": 16, "int": 32, "bigint": 64}
_FORMS_ON_SAIL = (
    "on Sail, write values as 2024-03-02, 7, true or 2024-03-02T12:30:00+00:00, and choose columns "
    f"of dates, timestamps, strings, booleans or whole numbers, or {INSTEAD}"
)
_IN_LOGS: dict[str, Callable[[str], Any]] = {
    **dict.fromkeys(("tinyint", "smallint", "int", "bigint"), int),
    "string": str,
    "date": date.fromisoformat,
    "boolean": "true".__eq__,
    "decimal": Decimal,
}
"""Values of types that a log can be searched for."""


@dataclass
class RefusedPromotionError(DqxError):
    """The target rejects the rows, and would reject them again."""


@dataclass(frozen=True)
class ReplacedRows:
    """The rows to replace, in a dataset and in its target: of a date, of a slice, of both, or
    all."""

    spark: SparkSession
    dataset: OpenDataset
    slice: promoted_slices.Slice

    @property
    def on(self) -> date | None:
        """The date that is replaced; None if the dataset has no dates."""
        return self.slice.on

    def frame(self) -> DataFrame:
        """The rows of the dataset that are promoted to the target.

        A row whose date cannot be read is validated with every date, and replaced with none: it
        stays behind, and the numbers of rows then differ.
        """
        stored = self.dataset.stored
        on = self.on or date.min
        if stored is None:
            frame = rows_of(self.dataset, on)
            return frame if self.of_date is None else frame.where(self.of_date)
        frame = rows_with_texts(replace(self.dataset, read=stored.read), {on})
        if self.of_date is not None:
            frame = frame.where(self.of_date)
        as_stored = (stored.columns.get(name, name) for name in self.dataset.struct.names)
        names = zip(as_stored, self.dataset.struct.names, strict=True)
        return frame.select(*(F.expr(quote_name(held)).alias(name) for held, name in names))

    @property
    def of_date(self) -> str | None:
        """A Spark SQL condition for the rows of the date; None if the dataset has no dates."""
        if self.dataset.dates is None or self.on is None:
            return None
        return self.dataset.dates.filter({self.on})

    @property
    def of_slice(self) -> str | None:
        """A Spark SQL condition for the rows with the values of the slice; None if it has no
        values."""
        parts = []
        for name, text in self.canonical.items():
            # The spaces at the end of char(n) may or may not be there.
            column = quote_name(name)
            column = f"rtrim({column})" if self.dataset.char_type(name) else column
            parts.append(f"{column} <=> CAST({quote_literal(text)} AS {self._kind(name)})")
        return " AND ".join(parts) or None

    @property
    def condition(self) -> str | None:
        """A Spark SQL condition for the replaced rows of the target; None if all rows are
        replaced."""
        parts = [f"({part})" for part in (self.of_date, self.of_slice) if part is not None]
        return " AND ".join(parts) or None

    @property
    def values(self) -> dict[str, Any]:
        """The values of the slice by column, in the form of the log of a target, without the values
        that cannot be compared with it."""
        kinds = {name: self._kind(name).partition("(")[0] for name in self.canonical}
        return {
            name: _IN_LOGS[kind](self.canonical[name])
            for name, kind in kinds.items()
            if kind in _IN_LOGS and not self.dataset.char_type(name)
        }

    @property
    def date_column(self) -> str:
        """The column with the date of a row."""
        assert self.dataset.dates is not None
        return self.dataset.dates.name

    @property
    def date_value(self) -> date | str | int:
        """The date as a value of the date column."""
        assert self.dataset.dates is not None
        assert self.on is not None
        return self.dataset.dates.value(self.on)

    @cached_property
    def canonical(self) -> dict[str, str]:
        """The values of the slice, in the canonical form of their type, by column.

        :raises RefusedPromotionError: a column is missing, or a string is not a value of its type.
        """
        found = {}
        for name, text in self.slice.values:
            if name not in self.dataset.struct.names:
                advice = did_you_mean(name, self.dataset.struct.names)
                raise RefusedPromotionError(
                    f"promote_slice has the column '{name}', which is not in the dataset",
                    advice or f"available: {', '.join(self.dataset.struct.names)}",
                )
            value = self.canonical_of(name, text)
            if value is None:
                raise RefusedPromotionError(
                    f"promote_slice: {text!r} is not a value of '{name}' ({self._kind(name)})",
                    "" if sail_version(self.spark) is None else _FORMS_ON_SAIL,
                )
            found[name] = value
        return found

    @cached_property
    def region(self) -> Region:
        """The region of the replaced rows."""
        day = {} if self.of_date is None else {self.date_column: self.day}
        return Region.of({**day, **self.canonical})

    @cached_property
    def day(self) -> promoted_slices.Bounds:
        """The bounds of the date in the date column: a value, or two moments."""
        column = self.dataset.dates
        assert column is not None
        assert self.on is not None
        if not column.is_timestamp:
            return str(column.value(self.on))
        if column.type == "timestamp_ntz":
            return f"{self.on}T00:00:00", f"{self.on + timedelta(1)}T00:00:00"
        moments = (f"unix_micros({moment})" for moment in column.moments(self.on))
        (row,) = self.spark.sql(f"SELECT {', '.join(moments)}").collect()
        return _moment(row[0]) or "", _moment(row[1]) or ""

    def check_values(self) -> None:
        """Rejects a slice with a missing column or a value of another type, and a date column of
        strings that a target would compare in another way."""
        dates = self.dataset.dates
        if self.of_date is not None and dates is not None and not dates.is_timestamp:
            name = self.date_column
            text = str(self.date_value)
            char = self.dataset.char_type(name)
            if " collate " in self._kind(name) or char not in (None, f"char({len(text)})"):
                raise RefusedPromotionError(
                    f"its date column '{name}' is {char or self._kind(name)}, which compares "
                    f"{text!r} with other strings",
                    "read the dataset from a table whose date column is a date, or a plain string",
                )
        _ = self.canonical  # rejects what is not a value of its column

    def canonical_of(self, name: str, text: str, *, is_recorded: bool = False) -> str | None:
        """A string in the canonical form of the type of a column; None if it is not a value of that
        type, or cannot be compared."""
        kind = self._kind(name) if name in self.dataset.struct.names else _NO_VALUES[0]
        if kind.startswith(_NO_VALUES) or " collate " in kind:
            return None
        if (char := self.dataset.char_type(name)) is not None:
            return text.rstrip(" ") if len(text.rstrip(" ")) <= int(char[5:-1]) else None
        if is_recorded and kind in _RECORDED and _RECORDED[kind].fullmatch(text):
            return text
        if sail_version(self.spark) is not None:
            return _canonical_on_sail(kind, text)
        value = f"try_cast({quote_literal(text)} AS {kind})"
        if kind in ("float", "double"):
            value = f"{value} + CAST(0 AS {kind})"  # zero has no sign
        if kind == "timestamp":
            value = f"unix_micros({value})"
        found: str | None = self.spark.sql(f"SELECT CAST({value} AS string)").collect()[0][0]
        return _moment(int(found)) if found is not None and kind == "timestamp" else found

    def _kind(self, name: str) -> str:
        """The type of a column."""
        return str(self.dataset.struct[name].dataType.simpleString())

    def has_statistics(self, name: str) -> bool:
        """True if the log records the minimum and maximum of a column."""
        return self._kind(name) in _WITH_STATISTICS


def _canonical_on_sail(kind: str, text: str) -> str | None:
    """A string that is already in the canonical form of a type, which Sail need not cast; None for
    other strings and types."""
    if kind not in _RECORDED or not _RECORDED[kind].fullmatch(text):
        return None
    try:
        if kind in _WIDTHS and int(text).bit_length() >= _WIDTHS[kind]:
            return None
        if kind == "date":
            return date.fromisoformat(text).isoformat()
        if kind == "timestamp":
            return datetime.fromisoformat(text).isoformat()
    except ValueError:
        return None
    return text


def _moment(micros: int) -> str | None:
    """A moment as an ISO string in UTC; None outside of the years of Python."""
    try:
        return (_EPOCH + timedelta(microseconds=micros)).isoformat()
    except OverflowError:
        return None


RUN_ID = "dqx_run_id"
ROWS = "dqx_rows"
GATE = "dqx_gate"
SLICE = "dqx_slice"
NOTES = "dqx_notes"
"""The commit entry in which Spark records what deltalake records as application transactions."""


@dataclass(frozen=True)
class PromotionTarget:
    """The target of the promotion of one dataset.

    :param location: the path of a Delta table, or the name of a catalog table.
    :param slice: the rows to replace.
    :param by: the gate that replaces them.
    :param rows: the number of validated rows, if known.
    :param left_out: the number of validated rows that are not promoted.
    :param statement: the statement of its receipt, written before the commit, which refers to it.
    """

    spark: SparkSession
    dataset: OpenDataset
    location: str
    slice: promoted_slices.Slice
    by: promoted_slices.Promoter
    rows: int | None
    run_id: str
    started: datetime
    is_blocked: bool = False
    accepted: Acceptance | None = None
    left_out: int = 0
    statement: str = ""
    _met: set[tuple[Demand, ...]] = field(default_factory=set, compare=False)
    """The demands that the rows were found to meet: a look at them is a scan."""

    def with_statement(self, receipts: ReceiptWriter, facts: Mapping[str, str]) -> PromotionTarget:
        """The target with the statement of its receipt.

        :param facts: additional entries of the commit.
        """
        about = {**self.facts, **facts, "target": self.location}
        about["spark"] = engine_version(self.spark)
        about["read"] = [self.dataset.location, self.dataset.version]
        about |= {"columns": self.dataset.struct.names, MASKED: [*self.dataset.ref.masked]}
        table = self.log() if self.is_there() else None
        return replace(self, statement=receipts.statement(about, table))

    @cached_property
    def replaced(self) -> ReplacedRows:
        """The rows that are replaced in the target, and the rows that replace them."""
        return ReplacedRows(self.spark, self.dataset, self.slice)

    @property
    def order(self) -> int:
        """The start of the run, in milliseconds since 1970: the run that started later wins."""
        return int(self.started.timestamp() * 1000)

    def failed(self, reason: str, hint: str = "") -> PromotionError:
        """The error of a promotion that may succeed later."""
        name = self.dataset.ref.name
        passed = "" if self.is_blocked else "passed, but "
        reason = without_values(reason, self.dataset.ref.masked)
        return PromotionError(
            f"dataset '{name}' {passed}cannot be promoted to {self.location}: {reason}", hint
        )

    def objection_to(self, rows: int) -> str | None:
        """The objection to promoting this number of rows, if other rows were validated; None
        without one."""
        if self.rows is None or rows == self.rows - self.left_out:
            return None
        without = f", {self.left_out} of them are in quarantine" if self.left_out else ""
        return f"{self.rows} rows were validated{without}, and {rows} of them have the date"

    def late(self) -> PromotionError:
        """The error of a run that started before the run that promoted last."""
        return self.failed("a run of a gate that started later has already promoted")

    def outside(self, how_many: str) -> RefusedPromotionError:
        """The error of rows that do not belong to the slice."""
        named = ", ".join(f"{name} = {text!r}" for name, text in self.slice.values)
        if not named:
            return RefusedPromotionError(
                f"{how_many} rows would not be found again there by {self.replaced.condition}"
            )
        return RefusedPromotionError(
            f"{how_many} rows do not have the values of promote_slice: {named}",
            "set promote_slice to the values that the gate reads, or filter the dataset by them",
        )

    def check_partitions(self) -> None:
        """Rejects rows with values in partition columns that Spark's Delta source would change.

        :raises RefusedPromotionError: there are such rows.

        """
        columns = self._partitions_by_spark() if self.is_there() else self.partition_columns
        frame = self.replaced.frame()
        kinds = dict(frame.dtypes)
        moments = [name for name in columns if kinds[name] == "timestamp"]
        if moments and not is_in_utc(self.spark):
            raise RefusedPromotionError(
                f"it is partitioned by '{moments[0]}', and Spark's Delta source names partitions "
                "by the time zone of the session, in which some timestamps exist twice",
                f"set {TIME_ZONE}=UTC, at least for the gate",
            )
        for name in columns:
            why = refusal(name, kinds[name])
            if why is None:
                continue
            unheld = frame.where(f"{why} IS NOT NULL")
            found = unheld.selectExpr(why).limit(1).collect()
            if found:
                raise self.unheld(UnheldValueError(name, found[0][0], unheld))

    def _partitions_by_spark(self) -> list[str]:
        """The partition columns of the target, which is there, from Spark's Delta source."""
        detail = self.spark.sql(f"DESCRIBE DETAIL {self.named}").select("partitionColumns")
        return list(detail.collect()[0][0])

    def unheld(self, error: UnheldValueError) -> RefusedPromotionError:
        """The error of rows with a value that a partition of the target cannot hold."""
        column = error.column
        is_hidden = is_masked(column, self.dataset.ref.masked)
        what = "a value that a partition cannot hold" if is_hidden else error.reason
        row = "" if error.rows is None else self._shown_row(error.rows, column)
        return RefusedPromotionError(
            f"it is partitioned by '{column}', and rows have {what}{row}",
            f"give the rows another value of '{column}', or promote them to a table that is not "
            "partitioned by it",
        )

    def _shown_row(self, rows: DataFrame, column: str) -> str:
        """The first row for a message, as `_row_as_json` has it."""
        shown = self._row_as_json(column)
        found = rows.selectExpr(shown).limit(1).collect() if shown else []
        return f": {found[0][0]}" if found else ""

    def _row_as_json(self, column: str) -> str:
        """Spark SQL for a row in a message: its keys, or else its columns, without the column at
        fault; empty without any."""
        ref, schema = self.dataset.ref, self.dataset.schema
        places = {name: schema.find(name) for name in ref.keys or self.dataset.struct.names}
        cells = [
            f"{quote_literal(name)}, "
            + shown_cell(quote_name(*place.path), place.type, is_hidden=is_masked(name, ref.masked))
            for name, place in places.items()
            if place is not None and (name != column or ref.keys)
        ]
        if not cells:
            return ""
        return f"to_json(named_struct({', '.join(cells[:_MOST_CELLS])}), {_WITH_NULLS})"

    def check_columns(self, struct: StructType) -> None:
        """Rejects other columns in the target than in the dataset.

        :raises RefusedPromotionError: the columns differ.
        """
        wanted = {field.name: field.dataType.simpleString() for field in self.dataset.struct}
        types = {field.name: field.dataType.simpleString() for field in struct}
        differing = [name for name in {**wanted, **types} if wanted.get(name) != types.get(name)]
        if differing:
            raise RefusedPromotionError(
                f"its column '{differing[0]}' is {types.get(differing[0], 'not there')}, "
                f"and in the dataset {wanted.get(differing[0], 'not there')}",
                "change the columns of the table first: a promotion does not",
            )

    def check_identity(self, table: DeltaTable | None) -> None:
        """Rejects a target that numbers its rows itself: no writer may give it their numbers.

        :param table: the target; None if only Spark can read it.
        :raises RefusedPromotionError: a column is GENERATED ALWAYS AS IDENTITY.
        """
        for column in table.schema().fields if table is not None else ():
            is_identity = "delta.identity.start" in column.metadata
            if is_identity and not column.metadata.get("delta.identity.allowExplicitInsert"):
                raise RefusedPromotionError(
                    f"its column '{column.name}' is GENERATED ALWAYS AS IDENTITY, and a promotion "
                    "writes the values of the dataset",
                    "create the table with GENERATED BY DEFAULT AS IDENTITY, or without identity",
                )

    def check_demands(self, struct: StructType, frame: DataFrame | None = None) -> None:
        """Rejects rows with values that the target has no room for: NULL where it is NOT NULL, and
        strings longer than its `char(n)` and `varchar(n)`.

        :param struct: the columns of the target.
        :param frame: the rows to add; by default those of the dataset.
        :raises RefusedPromotionError: there are such rows.
        """
        demands = tuple(demands_on_values(struct))
        if not demands or (frame is None and demands in self._met):
            return
        rows = self.replaced.frame() if frame is None else frame
        # In one aggregate: Sail filters by no array of a file.
        measured = []
        for demand in demands:
            shown = self._row_as_json(demand.column) or "CAST(NULL AS string)"
            measured.append(f"count_if({demand.condition})")
            measured.append(f"min(CASE WHEN {demand.condition} THEN {shown} END)")
        found = rows.selectExpr(*measured).collect()[0]
        for demand, count, row in zip(demands, found[::2], found[1::2], strict=True):
            if count:
                shown = f": {row}" if row else ""
                raise RefusedPromotionError(
                    f"its column {demand.broken}{shown}",
                    "mend the rows, or change the columns of the table: a promotion does not",
                )
        if frame is None:
            self._met.add(demands)

    def check_partition_columns(self, table: DeltaTable | None) -> None:
        """Rejects a target of nothing but partition columns: files hold the others.

        :param table: the target; None if only Spark can read it.
        :raises RefusedPromotionError: all columns are partition columns.
        """
        if table is None:
            partitions = self._partitions_by_spark()
        else:
            partitions = list(table.metadata().partition_columns)
        if len(partitions) == len(self.dataset.struct):
            raise RefusedPromotionError(
                "all of its columns are partition columns, and Spark writes no file without "
                "another one",
                "promote to a table that is partitioned by fewer columns",
            )

    def check_slice(self, table: DeltaTable | None) -> Mapping[str, int]:
        """Rejects the replacement of rows that another gate or another map index has promoted, or
        this gate for another date or slice.

        :param table: the target; None if only Spark can read it.
        :return: the numbers that promotions have recorded in the target, by name.
        :raises PromotionError: its log cannot be read.
        """
        log = table or self.log()
        numbers = self.numbers_of(log)
        notes = promoted_slices.recorded(numbers)
        commits: list[dict[str, Any]] = []
        if not all(name.startswith("{") and "source" in notes[name] for name in notes) or not log:
            commits = self._commits(log)
            numbers |= _newer_notes(commits, numbers)
        objection = self.by.objection(
            self.slice,
            self.replaced.region,
            self._records(promoted_slices.recorded(numbers), commits),
            self._adopted(log),
            lambda: self._has_rows(table),
        )
        if objection is not None:
            raise self._refused(objection, numbers, commits or self._commits(log))
        return numbers

    def check_since(self, version: int, own: int) -> None:
        """Detects promotions of other gates between the check and the commit, which Spark does not
        detect.

        :param version: the version of the target at the check.
        :param own: the version of the commit.
        :raises PromotionError: the commit replaced rows that another gate has promoted in between.
        """
        for commit in self._commits(self.log()):
            if version < commit["version"] < own and commit.get(GATE, self.by.gate) != self.by.gate:
                region = Region.of(promoted_slices.spelled(commit[SLICE])[1])
                if not region.is_apart(self.replaced.region):
                    raise self.failed(
                        f"gate {commit[GATE]} promoted {region} at the same time, and version "
                        f"{own} has replaced these rows",
                        f"run in Spark: RESTORE TABLE {self.named} TO VERSION AS OF {own - 1}",
                    )

    def spark_version(self) -> int:
        """The newest version of the target according to Spark."""
        history = self.spark.sql(f"DESCRIBE HISTORY {self.named} LIMIT 1").select("version")
        return int(history.collect()[0][0])

    def _refused(
        self,
        objection: promoted_slices.Objection,
        numbers: Mapping[str, int],
        commits: Sequence[Mapping[str, Any]],
    ) -> RefusedPromotionError:
        record = objection.record
        at = next((commit for commit in commits if commit.get(SLICE) == record.name), {})
        owner = promoted_slices.gate_of(record.gate, numbers) or at.get(GATE)
        index = at.get("dqx_map_index")
        place = f", map index {index}" if index is not None else ""
        place += f", in version {at['version']}" if at else ""
        return RefusedPromotionError(
            f"{objection.problem} (gate {owner or 'of an earlier version'}{place}: {record}; "
            f"this gate, {self.by.gate}: {self.replaced.region})",
            promoted_slices.advice_of(objection, self.location, self.by.gate, owner or "GATE"),
        )

    def _records(
        self, notes: Mapping[str, Mapping[str, int]], commits: Sequence[Mapping[str, Any]]
    ) -> list[promoted_slices.Record]:
        """The promotions into the target, as regions of its present columns."""
        predicates = {
            commit[SLICE]: str((commit.get("operationParameters") or {}).get("predicate"))
            for commit in reversed(commits)
            if SLICE in commit and NOTES not in commit  # Spark writes predicates in its own way
        }
        records = []
        for name in notes:
            day, spelling = promoted_slices.spelled(name)
            bounds = {
                column: self.replaced.canonical_of(column, at, is_recorded=True)
                if isinstance(at, str)
                else at
                for column, at in spelling.items()
            }
            is_known = True
            if day is not None:
                is_own = self.by.owns(promoted_slices.Record(name, Region(), notes[name]))
                is_known = self._is_of_these_days(day, predicates.get(name), is_own=is_own)
                if is_known and day != self.slice.on:
                    continue
                bounds |= {self.replaced.date_column: self.replaced.day} if is_known else {}
            dated = {} if name.startswith("{") else {"date": promoted_slices.Slice(day).day}
            region = Region.of(bounds, is_known=is_known)
            records.append(promoted_slices.Record(name, region, {**notes[name], **dated}))
        return records

    def _is_of_these_days(self, day: date, predicate: str | None, *, is_own: bool) -> bool:
        """True if a date that was recorded without its column is a date of this date column:
        according to the predicate of its commit or, without the commit, if this gate recorded
        it."""
        if self.dataset.dates is None:
            return False
        if predicate is None or predicate == "None":
            return is_own
        return predicate.startswith(f"({self.dataset.dates.filter({day})})")

    def _has_rows(self, table: DeltaTable | None) -> bool:
        """True if the target has rows that would be replaced."""
        rows = self.replaced
        if table is None:
            frame = self.spark.table(self.named)
        else:
            log = log_for(self.spark, table, self.location, self.dataset.dates)
            parts = log.parts_with(log.files_of(rows.on, rows.values))
            frame = frame_of_parts(self.spark, log, parts)
        return not frame.where(rows.condition or "true").isEmpty()

    def _adopted(self, log: DeltaTable | None) -> Mapping[str, int]:
        """The latest `Record.order` that this gate may replace, by the name of the owner."""
        if log is not None:
            properties = log.metadata().configuration
        else:
            rows = self.spark.sql(f"SHOW TBLPROPERTIES {self.named}").collect()
            properties = {row[0]: row[1] for row in rows}
        return promoted_slices.adopted_by(self.by.gate, properties)

    def log(self) -> DeltaTable | None:
        """The target as deltalake reads it; None for a table of a catalog that it cannot read."""
        if not is_table(self.location):
            return self.table()
        detail = self.spark.sql(f"DESCRIBE DETAIL {self.named}").select("location")
        try:
            return DeltaTable(absolute(detail.collect()[0][0]))
        except (DeltaError, OSError, ValueError):
            return None

    def numbers_of(self, log: DeltaTable | None) -> dict[str, int]:
        """The numbers that promotions have recorded as transactions.

        :raises ValueError: the log is not complete.
        :raises OSError: the log cannot be read.
        """
        if log is None:
            return {}
        return promoted_slices.with_claims(
            transactions(absolute(log.table_uri).rstrip("/"), int(log.version()))
        )

    def _commits(self, log: DeltaTable | None) -> list[dict[str, Any]]:
        """The commits that the history still has, newest first, with what Spark recorded."""
        if log is None:
            return self.commits_of_spark()
        return [{**commit, **_user_metadata(commit)} for commit in log.history()]

    def commits_of_spark(self) -> list[dict[str, Any]]:
        """The entries of promotions by Spark, newest first."""
        commits = (
            self.spark.sql(f"DESCRIBE HISTORY {self.named}")
            .where(f"get_json_object(userMetadata, '$.{RUN_ID}') IS NOT NULL")
            .orderBy("version", ascending=False)
            .select("version", "userMetadata", "operationMetrics")
            .collect()
        )
        return [{**json.loads(row[1]), "version": row[0], "metrics": row[2]} for row in commits]

    @property
    def partition_columns(self) -> list[str]:
        """The partition columns of a new target; none if they would be all of its columns."""
        columns = []
        if self.dataset.log is not None:
            columns = list(self.dataset.log.table.metadata().partition_columns)
        elif self.dataset.dates is not None and not self.dataset.dates.is_timestamp:
            columns = [self.dataset.dates.name]
        return columns if len(columns) < len(self.dataset.struct) else []

    def table(self) -> DeltaTable | None:
        """The Delta table at the location, or None."""
        return existing_table(self.location)

    @property
    def named(self) -> str:
        """The name of the target in Spark SQL."""
        return self.location if is_table(self.location) else f"delta.{quote_name(self.location)}"

    def is_there(self) -> bool:
        """True if the target exists."""
        if is_table(self.location):
            return bool(self.spark.catalog.tableExists(self.location))
        return self.table() is not None

    @property
    def facts(self) -> dict[str, Any]:
        """The entries of a commit for readers of the table history."""
        index = self.by.map_index
        return {
            RUN_ID: self.run_id,
            GATE: self.by.gate,
            "dqx_scheduler_run": self.by.run,
            **({} if index is None else {"dqx_map_index": str(index)}),
            SLICE: self.replaced.region.name,
            **({"dqx_outcome": "blocked"} if self.is_blocked else {}),
            **({"dqx_left_out": str(self.left_out)} if self.left_out else {}),
            **({RECEIPT: digest_of(self.statement)} if self.statement else {}),
            **self._acceptance,
        }

    @property
    def _acceptance(self) -> dict[str, str]:
        if self.accepted is None:
            return {}
        return {
            "dqx_outcome": "accepted",
            "dqx_accepted_by": self.accepted.author,
            "dqx_accepted_reason": self.accepted.reason,
        }


def existing_table(path: str) -> DeltaTable | None:
    """The Delta table at a path, or None.

    :raises ValueError: its newest commit is incomplete.
    """
    try:
        table = DeltaTable(path)
    except TableNotFoundError:
        return None
    require_whole_commits(path, table.version())
    return table


def _user_metadata(commit: Mapping[str, Any]) -> dict[str, Any]:
    """The entries that a promotion by Spark has recorded in a commit."""
    text = str(commit.get("userMetadata"))
    return json.loads(text) if f'"{RUN_ID}"' in text else {}


def _newer_notes(
    commits: Sequence[Mapping[str, Any]], numbers: Mapping[str, int]
) -> dict[str, int]:
    """The transactions in commits by Spark, without the regions that have newer transactions."""
    newer: dict[str, int] = {}
    for commit in reversed(commits):
        notes: dict[str, int] = commit.get(NOTES, {})
        order = next((name for name in notes if name.startswith("dqx:promote:")), "")
        if notes.get(order, -1) >= numbers.get(order, -1):
            newer |= notes
    return newer


def zoneless_in_maps(struct: StructType) -> tuple[str, ...]:
    """The columns with timestamps without a time zone in a map. deltalake (1.6) does not look there
    for types that need a table feature: it writes a log that no one reads, itself included."""
    return tuple(
        field.name for field in struct.fields if _has_zoneless(field.dataType, in_map=False)
    )


def _has_zoneless(held: DataType, *, in_map: bool) -> bool:
    match held:
        case TimestampNTZType():
            return in_map
        case StructType(fields=fields):
            return any(_has_zoneless(field.dataType, in_map=in_map) for field in fields)
        case ArrayType(elementType=item):
            return _has_zoneless(item, in_map=in_map)
        case MapType(keyType=key, valueType=value):
            return _has_zoneless(key, in_map=True) or _has_zoneless(value, in_map=True)
    return False
