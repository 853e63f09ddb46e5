"""Promotes the rows that a gate has validated into their target, in one commit.

deltalake commits them: no row passes through the driver, and the session needs no Delta source.
Files that no commit adds are invisible to readers, and VACUUM removes them. Source of the actions
and their statistics: the Delta protocol, "Add File and Remove File".

For a dataset with dates, its date is replaced in the target, or else everything in the target; with
`promote_slice`, only the rows of either with its values. What another gate, or another map index,
has promoted is never replaced.

A table that requires more of a writer than files and a log (constraints, deletion vectors...), and
every catalog table, is written by Spark's Delta source, if the session has it.
"""

from __future__ import annotations

import json
import logging
import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import count
from typing import NamedTuple
from urllib.parse import unquote

from deltalake import CommitProperties, DeltaTable, Schema, Transaction
from deltalake.exceptions import CommitFailedError, DeltaError
from deltalake.transaction import AddAction, RemoveAction, create_table_with_add_actions
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, DataFrameWriter, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

from dqx_airflow.datasets.locations import is_table
from dqx_airflow.engine.outputs.collected_files import TooManyRowsError
from dqx_airflow.engine.outputs.data_files import WrittenFiles, write_files
from dqx_airflow.engine.outputs.promoted_slices import Promoter, Slice, claim
from dqx_airflow.engine.outputs.promotion_target import (
    NOTES,
    ROWS,
    RUN_ID,
    PromotionTarget,
    RefusedPromotionError,
    zoneless_in_maps,
)
from dqx_airflow.engine.session.concurrency import jobs_called
from dqx_airflow.engine.session.sail import INSTEAD, sail_version
from dqx_airflow.engine.session.spark_errors import explain, spark_failures
from dqx_airflow.engine.sources import partition_values
from dqx_airflow.engine.sources.dataset import OpenDataset
from dqx_airflow.engine.sources.delta_files import DeltaLog, struct_of
from dqx_airflow.engine.sources.delta_table import (
    EXTENSIONS,
    frame_of_parts,
    has_delta,
    log_for,
    require_moments,
)
from dqx_airflow.engine.sources.listing import DataFile, absolute
from dqx_airflow.engine.sources.source_errors import package_for
from dqx_airflow.errors import DatasetError, PromotionError, first_line
from dqx_airflow.plan.evaluate import not_promoted
from dqx_airflow.results.receipts import ReceiptWriter
from dqx_airflow.results.tables import committed
from dqx_airflow.values import GateReport, GateRequest, Promotion, Verdict
from dqx_airflow.values.report import Acceptance

_HARMLESS = frozenset(
    {
        *("appendOnly", "changeDataFeed", "timestampNtz", "v2Checkpoint", "vacuumProtocolCheck"),
        # Relevant only if a column or a property uses them.
        *("checkConstraints", "generatedColumns", "invariants"),
    }
)
"""Table features that require nothing from writers that add and remove whole files."""
_OF_COLUMNS = {
    "delta.invariants": "invariants",
    "delta.generationExpression": "generated columns",
    "delta.identity.start": "identity columns",
}


def demands_of(table: DeltaTable) -> tuple[str, ...]:
    """The features that a writer of the table needs beyond files and a log."""
    configuration = table.metadata().configuration
    features = set(table.protocol().writer_features or ()) - _HARMLESS
    if any(name.startswith("delta.constraints.") for name in configuration):
        features.add("check constraints")
    if configuration.get("delta.columnMapping.mode", "none") != "none":
        features.add("columnMapping")
    for field in table.schema().fields:
        features |= {word for key, word in _OF_COLUMNS.items() if key in field.metadata}
        if not field.nullable:
            features.add("columns that are NOT NULL")
    return tuple(sorted(features))


def nullable(struct: StructType) -> StructType:
    """The columns, all nullable because an older file may lack them, without the metadata of their
    source."""
    return StructType([StructField(field.name, field.dataType) for field in struct.fields])


def promote_by_spark(target: PromotionTarget) -> Promotion:
    """Promotes the rows with Spark's Delta source, which writes and commits.

    :raises RefusedPromotionError: the target rejects the rows.
    :raises PromotionError: the promotion fails now, but may succeed later.

    """
    is_there = target.is_there()
    version = target.spark_version() if is_there else -1
    numbers = _require_columns_and_order(target) if is_there else {}
    _require_rows(target)
    target.check_partitions()
    writer = _writer(target, numbers, is_there=is_there)
    change = target.dataset.change
    if change is not None:
        raise target.failed(change)
    if is_table(target.location):
        writer.saveAsTable(target.named)
    else:
        writer.save(target.location)
    commits = [commit for commit in target.commits_of_spark() if commit[RUN_ID] == target.run_id]
    if not commits:
        raise target.late()
    target.check_since(version, commits[0]["version"])
    rows = (commits[0]["metrics"] or {}).get("numOutputRows")
    return Promotion(target.location, int(commits[0]["version"]), int(rows or 0))


def _require_columns_and_order(target: PromotionTarget) -> Mapping[str, int]:
    """The numbers of earlier promotions to the target, by transaction.

    :raises PromotionError: the target has other columns, or a later run has already promoted.
    """
    struct = target.spark.table(target.named).schema
    target.check_columns(struct)
    target.check_demands(struct)
    numbers = target.check_slice(None)
    if numbers.get(f"dqx:promote:{target.replaced.region.name}", -1) > target.order:
        raise target.late()
    return numbers


def _require_rows(target: PromotionTarget) -> None:
    """Rejects rows outside the slice, and rows that were validated and have changed since.

    :raises PromotionError: there are some.
    """
    of_slice = target.replaced.of_slice
    if of_slice:
        outside = target.replaced.frame().where(f"NOT ({of_slice})").count()
        if outside:
            raise target.outside(str(outside))
    if target.left_out:
        objection = target.objection_to(target.replaced.frame().count())
        if objection:
            raise target.failed(objection)


def _writer(
    target: PromotionTarget, numbers: Mapping[str, int], *, is_there: bool
) -> DataFrameWriter:
    """Spark's writer of the rows, which replaces them in a target that is there.

    :param numbers: the numbers of earlier promotions.
    """
    region = target.replaced.region
    writer = target.replaced.frame().write.format("delta")
    # A new table of a catalog records no metadata of its commit in the mode "error".
    writer = writer.mode("overwrite" if is_there or is_table(target.location) else "error")
    if is_there and target.replaced.condition is not None:
        writer = writer.option("replaceWhere", target.replaced.condition)
    if not is_there:
        writer = writer.partitionBy(*target.partition_columns)
    # Spark skips a write whose number is not greater than the last number.
    facts = {**target.facts, NOTES: target.by.notes(target.slice, region, target.order, numbers)}
    return writer.options(
        txnAppId=claim(target.by.gate, region),
        txnVersion=target.order,
        userMetadata=json.dumps(facts),
    )


def promote_by_files(target: PromotionTarget) -> Promotion:
    """Promotes the rows in files that Spark writes and deltalake commits.

    :raises RefusedPromotionError: the target rejects the rows.
    :raises PromotionError: the promotion fails now, but may succeed later.

    """
    before = target.table()
    since = -1 if before is None else int(before.version())
    numbers = count()
    committed(lambda: _commit(target, f"promoted-{target.run_id}/{next(numbers)}"))
    newest = DeltaTable(target.location)
    commits = newest.history(int(newest.version()) - since)
    commit = next((commit for commit in commits if commit.get(RUN_ID) == target.run_id), None)
    if commit is None:
        raise target.late()
    return Promotion(target.location, int(commit["version"]), int(commit[ROWS]))


def _commit(target: PromotionTarget, folder: str) -> None:
    """Writes the files and commits them, without a retry. The commit detects any concurrent change
    of the target.

    :raises CommitFailedError: another writer was first.
    """
    table = target.table()
    if table is None:
        _create(target, folder)
        return
    numbers = target.check_slice(table)
    done = numbers.get(f"dqx:promote:{target.replaced.region.name}")
    if done == target.order:
        return  # the commit that may or may not have succeeded
    if done is not None and done > target.order:
        raise target.late()
    target.check_columns(struct_of(table))
    target.check_demands(struct_of(table))
    columns = list(table.metadata().partition_columns)
    log = log_for(target.spark, table, target.location, target.dataset.dates)
    replaced = log.files_of(target.replaced.on, target.replaced.values)
    kept = _rewritten(target, log, replaced, folder, columns)
    files = _checked(
        target, write_promoted(target, target.replaced.frame(), f"{folder}/rows", columns)
    )
    # deltalake labels a commit by its mode, and determines itself what an overwrite removes.
    is_whole = len(replaced) == log.count
    removes: list[RemoveAction] = []
    partition = None
    if not is_whole and log.is_partitioned_by_date and not target.slice.values:
        partition = [(target.replaced.date_column, "=", str(target.replaced.date_value))]
    elif not is_whole:
        now = int(time.time() * 1000)
        removes = [RemoveAction(unquote(file.path), True, now, file.size) for file in replaced]
    table.create_write_transaction(
        [*files.adds, *kept.adds, *removes],
        mode="append" if removes or not (is_whole or partition) else "overwrite",
        schema=table.schema(),
        partition_by=columns,
        partition_filters=partition,
        commit_properties=_commit_properties(target, files, numbers),
    )


def exchange(
    table: DeltaTable,
    added: Sequence[AddAction],
    removed: Iterable[tuple[str, int]],
    properties: CommitProperties,
) -> None:
    """Adds files to a table and removes others, in one commit.

    :param removed: the paths, as in the log, and sizes of files.
    :raises CommitFailedError: a concurrent change of the table conflicts.
    """
    now = int(time.time() * 1000)
    table.create_write_transaction(
        [*added, *(RemoveAction(unquote(path), True, now, size) for path, size in removed)],
        mode="append",
        schema=table.schema(),
        partition_by=list(table.metadata().partition_columns),
        commit_properties=properties,
    )


def _create(target: PromotionTarget, folder: str) -> None:
    columns = target.partition_columns
    files = _checked(
        target, write_promoted(target, target.replaced.frame(), f"{folder}/rows", columns)
    )
    try:
        create_table_with_add_actions(
            target.location,
            Schema.from_json(nullable(target.dataset.struct).json()),
            [*files.adds],
            partition_by=columns,
            commit_properties=_commit_properties(target, files, {}),
        )
    except DeltaError as error:
        if target.table() is None:
            raise
        raise CommitFailedError(first_line(error)) from error


def write_promoted(
    target: PromotionTarget, frame: DataFrame, folder: str, columns: Sequence[str]
) -> WrittenFiles:
    """Writes the files for a target, and counts the rows that `replaced.condition` would not find.

    :raises RefusedPromotionError: a partition of the target cannot hold a value, or there are more
        rows than are written without Spark.

    """
    dates = target.dataset.dates
    condition = target.replaced.condition
    try:
        return write_files(
            target.spark,
            frame,
            target.location,
            folder,
            partition_by=columns,
            extremes_of=(
                *(() if dates is None or dates.is_timestamp else (dates.name,)),
                *(name for name, _ in target.slice.values if target.replaced.has_statistics(name)),
            ),
            # A row that the condition does not find would be doubled by the next promotion.
            count_if=condition and f"NOT coalesce({condition}, false)",
        )
    except partition_values.UnheldValueError as error:
        raise target.unheld(error) from error
    except TooManyRowsError as error:
        raise RefusedPromotionError(str(error), INSTEAD) from error


def _checked(target: PromotionTarget, files: WrittenFiles) -> WrittenFiles:
    """Returns the files if they contain exactly the validated rows, and raises otherwise."""
    change = target.dataset.change
    change = change or target.objection_to(files.rows)
    if change is not None:
        raise target.failed(change)
    if files.counted:
        raise target.outside(f"{files.counted} of {files.rows}")
    return files


def _rewritten(
    target: PromotionTarget,
    log: DeltaLog,
    replaced: Sequence[DataFile],
    folder: str,
    columns: Sequence[str],
) -> WrittenFiles:
    """The rows of replaced files that are outside the slice, written again."""
    is_exact = log.is_partitioned_by_date and not target.slice.values
    if target.replaced.condition is None or is_exact or not replaced:
        return WrittenFiles()
    require_moments(target.dataset.ref, log)
    frame = frame_of_parts(target.spark, log, log.parts_with(replaced))
    is_other = f"NOT coalesce({target.replaced.condition}, false)"
    kept = write_promoted(target, frame.where(is_other), f"{folder}/kept", columns)
    # A session may be configured to skip missing or corrupt files, which may contain the rows of
    # others.
    read, other_rows = frame.select(F.count("*"), F.count_if(F.expr(is_other))).collect()[0]
    logged = log.rows_in(replaced)
    if other_rows != kept.rows or (logged is not None and logged != read):
        raise target.failed(
            f"of {logged if logged is not None else read} rows in the files that are replaced "
            f"{read} can be read, and {kept.rows} of {other_rows} others were kept"
        )
    return replace(kept, counted=0)


def _commit_properties(
    target: PromotionTarget, files: WrittenFiles, numbers: Mapping[str, int]
) -> CommitProperties:
    notes = target.by.notes(target.slice, target.replaced.region, target.order, numbers)
    return CommitProperties(
        custom_metadata={
            **target.facts,
            ROWS: str(files.rows),
            "operationParameters": {"predicate": target.replaced.condition or "true"},
            "isBlindAppend": False,
        },
        app_transactions=[Transaction(name, number) for name, number in notes.items()],
    )


_log = logging.getLogger("dqx.gate")

_VIOLATED = re.compile(r"\[DELTA_\w*VIOLAT\w*\] (.+?)(?: with values)?:?$", re.MULTILINE)
"""Delta's message about rows that break a constraint of the table, without their values."""

_UNABLE = re.compile(r"\[(?:DELTA_UNSUPPORTED_FEATURES_FOR_WRITE|UNRESOLVED_ROUTINE)\] ")
"""A table that this Spark cannot write, now or later: it has a feature, or a generated column or
constraint with a function, that this Spark lacks."""


class Promoted(NamedTuple):
    """A promotion, and a Spark SQL condition for its rows among those of other slices in the
    target; None without `promote_slice`."""

    promotion: Promotion
    of_slice: str | None


def promote(
    spark: SparkSession,
    opened: Mapping[str, OpenDataset],
    request: GateRequest,
    report: GateReport,
    is_blocked: bool,
    accepted: Acceptance | None,
    left_out: Mapping[str, int],
    receipts: ReceiptWriter,
) -> tuple[dict[str, Promoted], tuple[Verdict, ...]]:
    """Promotes the datasets that the request names, and returns the result for each, by name.

    Each promotion is a separate commit. Repeating it replaces what it wrote; a run that started
    before the one that promoted last promotes nothing. Nothing is promoted either if a target is
    known to reject its rows: a verdict gives the reason.

    :param report: the report on the rows.
    :param is_blocked: the gate is blocked: commits and results record it.
    :param accepted: the acceptance of the data of a gate that would be blocked: commits name its
        author.
    :param left_out: the number of validated rows that are not promoted, by dataset: commits and
        results record it.
    :param receipts: writes a receipt of each promotion.
    :raises PromotionError: a dataset cannot be promoted as it is now.
    """
    rows = {snapshot.name: snapshot.rows for snapshot in report.datasets}
    targets = []
    for name, location in request.promote_to:
        dataset = opened.get(name)
        if dataset is None:
            raise PromotionError(f"dataset '{name}' cannot be promoted: it could not be read")
        place = location if is_table(location) else absolute(location)
        on = request.run_key.date if dataset.dates else None
        targets.append(
            PromotionTarget(
                spark,
                dataset,
                place,
                Slice(on, request.promote_slice),
                Promoter.of(request.job_key, dataset.ref),
                rows[name],
                report.run_id,
                report.started_at,
                is_blocked,
                accepted,
                left_out.get(name, 0),
            )
        )
    promoted: dict[str, Promoted] = {}
    refused: list[Verdict] = []
    for step in (_check, partial(_promote, receipts=receipts)):
        for target in targets if not refused else ():
            name = target.dataset.ref.name
            try:
                with jobs_called(spark, f"{name}: promotion"):
                    done = step(target)
            except RefusedPromotionError as refusal:
                place = target.location
                why = refusal.in_one_line
                severity = request.fail_on
                refused.append(not_promoted(name, place, why, severity, is_blocked=is_blocked))
                continue
            if done is not None:
                done = replace(done, is_blocked=is_blocked, left_out=target.left_out)
                promoted[name] = Promoted(done, target.replaced.of_slice)
                _log.info("dataset '%s': %s rows promoted to %s", name, done.rows, done.location)
    return promoted, tuple(refused)


def _check(target: PromotionTarget) -> None:
    """Detects without a write that the target would reject the rows.

    :raises RefusedPromotionError: the target rejects the rows.
    :raises PromotionError: the target cannot be read.
    """
    if target.dataset.version is None and target.dataset.files is None:
        raise RefusedPromotionError(
            f"cannot verify that {target.dataset.location} is unchanged since validation",
            "promote a Delta table, or files whose folder can be listed",
        )
    with failures(target):
        target.replaced.check_values()
        table = None if is_table(target.location) else target.table()
        if table is not None:
            target.check_identity(table)  # before what only says that Spark has to write it
        if not _is_by_spark(target):
            if table is not None:
                target.check_columns(struct_of(table))
                target.check_partition_columns(table)
                target.check_slice(table)
                target.check_demands(struct_of(table))
        elif target.is_there():
            target.check_identity(target.log())
            target.check_columns(target.spark.table(target.named).schema)
            target.check_partition_columns(None)
            target.check_slice(None)
            target.check_demands(target.spark.table(target.named).schema)


def _promote(target: PromotionTarget, receipts: ReceiptWriter) -> Promotion:
    """Promotes the rows, and returns the new version and the number of rows.

    :raises RefusedPromotionError: the target rejects the rows.
    :raises PromotionError: the promotion fails now, but may succeed later.

    """
    with failures(target):
        target = target.with_statement(receipts, {})
        done = promote_by_spark(target) if _is_by_spark(target) else promote_by_files(target)
        if (log := target.log()) is not None:
            receipts.write(target.statement, log)
        return done


@contextmanager
def failures(target: PromotionTarget) -> Iterator[None]:
    try:
        with spark_failures():
            yield
    except PySparkException as error:
        if violated := _VIOLATED.search(str(error)):
            raise RefusedPromotionError(violated[1]) from error
        if _UNABLE.search(str(error)):
            raise RefusedPromotionError(explain(error)) from error
        raise target.failed(explain(error)) from error
    except DatasetError as error:
        raise target.failed(error.problem, error.hint) from error
    except (DeltaError, OSError, ValueError) as error:
        raise target.failed(first_line(error)) from error


def _is_by_spark(target: PromotionTarget) -> bool:
    """True if Spark's Delta source has to write the target, because files and a log are not enough.

    :raises RefusedPromotionError: this session does not have that source.
    """
    needs = _needs_spark(target)
    if needs and (sail := sail_version(target.spark)) is not None:
        raise RefusedPromotionError(f"{needs}: Sail {sail} writes no such table", INSTEAD)
    if needs and not has_delta(target.spark):
        raise RefusedPromotionError(f"{needs}; {package_for(target.spark, 'delta')}", EXTENSIONS)
    return needs is not None


def _needs_spark(target: PromotionTarget) -> str | None:
    """The reason for writing the target with Spark's Delta source; None if files and a log are
    enough."""
    if is_table(target.location):
        return "Spark's Delta source writes catalog tables"
    table = target.table()
    if table is None:
        columns = zoneless_in_maps(target.dataset.struct)
        return (
            f"a new table would have timestamp_ntz in a map ('{columns[0]}')" if columns else None
        )
    demands = demands_of(table)
    return f"the table there has {', '.join(demands)}" if demands else None
