"""Promotions whose files Spark writes and whose commit deltalake makes."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import count
from urllib.parse import unquote

from deltalake import CommitProperties, DeltaTable, Schema, Transaction
from deltalake.exceptions import CommitFailedError, DeltaError
from deltalake.transaction import RemoveAction, create_table_with_add_actions
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from dqx_airflow.engine.outputs.delta_writer import WrittenFiles, nullable, write_files
from dqx_airflow.engine.outputs.promotion_target import ROWS, RUN_ID, PromotionTarget
from dqx_airflow.engine.sources.delta.log import DeltaLog, struct_of
from dqx_airflow.engine.sources.delta.snapshot import frame_of_parts
from dqx_airflow.engine.sources.listing import DataFile
from dqx_airflow.errors import first_line
from dqx_airflow.results.tables import committed
from dqx_airflow.values import Promotion


def promote_by_files(target: PromotionTarget) -> Promotion:
    """Spark writes the files, deltalake commits them.

    :raises RefusedPromotionError: the target does not take the rows.
    :raises PromotionError: they cannot be promoted as it is now.
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
    """Commits once. The commit detects any concurrent change of the target.

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
    columns = list(table.metadata().partition_columns)
    log = DeltaLog(table, target.location, struct_of(table), target.dataset.dates)
    replaced = log.files_of(target.replaced.on, target.replaced.values)
    kept = _rewritten(target, log, replaced, folder, columns)
    files = _checked(target, _written(target, target.replaced.frame(), f"{folder}/rows", columns))
    # deltalake labels a commit by its mode, and determines itself what an overwrite removes.
    is_whole = len(replaced) == len(log.files_of(None))
    removes, partition = list[RemoveAction](), None
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


def _create(target: PromotionTarget, folder: str) -> None:
    columns = target.partition_columns
    files = _checked(target, _written(target, target.replaced.frame(), f"{folder}/rows", columns))
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


def _written(
    target: PromotionTarget, frame: DataFrame, folder: str, columns: Sequence[str]
) -> WrittenFiles:
    dates, condition = target.dataset.dates, target.replaced.condition
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


def _checked(target: PromotionTarget, files: WrittenFiles) -> WrittenFiles:
    """The files, if they contain exactly what was validated."""
    change = target.dataset.change
    if change is None and target.rows is not None and files.rows != target.rows:
        change = f"{target.rows} rows were validated, and {files.rows} of them have the date"
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
    frame = frame_of_parts(target.spark, log, log.parts_with(replaced))
    is_other = f"NOT coalesce({target.replaced.condition}, false)"
    kept = _written(target, frame.where(is_other), f"{folder}/kept", columns)
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
