"""Promotion: copies exactly the validated rows into another Delta table, in one commit.

For a dataset with dates, its date is replaced in the target, or else everything in the target; with
`promote_slice`, only the rows of either with its values. What another gate, or another map index,
has promoted is never replaced.

A table that requires more of a writer than files and a log (constraints, deletion vectors...), and
every catalog table, is written by Spark's Delta source, if the session has it.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime

from deltalake.exceptions import DeltaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from dqx_airflow.datasets.settings import is_table
from dqx_airflow.engine.outputs.delta_writer_features import demands_of
from dqx_airflow.engine.outputs.promoted_slices import Promoter, Slice
from dqx_airflow.engine.outputs.promotion_by_files import promote_by_files
from dqx_airflow.engine.outputs.promotion_by_spark import promote_by_spark
from dqx_airflow.engine.outputs.promotion_target import PromotionTarget
from dqx_airflow.engine.outputs.replaced_rows import RefusedPromotionError
from dqx_airflow.engine.session.concurrency import jobs_called
from dqx_airflow.engine.session.spark_errors import explain, spark_failures
from dqx_airflow.engine.sources.dataset import OpenDataset
from dqx_airflow.engine.sources.delta.log import struct_of
from dqx_airflow.engine.sources.delta.spark_source import EXTENSIONS, has_delta
from dqx_airflow.engine.sources.errors import package_for
from dqx_airflow.engine.sources.paths import absolute
from dqx_airflow.errors import DatasetError, PromotionError, first_line
from dqx_airflow.plan.masks import without_values
from dqx_airflow.plan.promotions import not_promoted
from dqx_airflow.values import DatasetSnapshot, GateRequest, Promotion, Verdict

_log = logging.getLogger("dqx.gate")

_VIOLATED = re.compile(r"\[DELTA_\w*VIOLAT\w*\] (.+?)(?: with values)?:?$", re.MULTILINE)
"""Delta's message about rows that break a constraint of the table, without their values."""


def promote(
    spark: SparkSession,
    opened: Mapping[str, OpenDataset],
    request: GateRequest,
    snapshots: Sequence[DatasetSnapshot],
    run_id: str,
    started: datetime,
    is_blocked: bool,
) -> tuple[dict[str, Promotion], tuple[Verdict, ...]]:
    """Promotes the datasets that the request names, and returns the result for each, by name.

    Each promotion is a separate commit. Repeating it replaces what it wrote; a run that started
    before the one that promoted last promotes nothing. Nothing is promoted either if a target is
    known to reject its rows: a verdict gives the reason.

    :param snapshots: the validated snapshots.
    :param is_blocked: the gate is blocked: commits and results say so.
    :raises PromotionError: a dataset cannot be promoted as it is now.
    """
    rows = {snapshot.name: snapshot.rows for snapshot in snapshots}
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
                run_id,
                started,
                is_blocked,
            )
        )
    promoted: dict[str, Promotion] = {}
    refused: list[Verdict] = []
    for step in (_check, _promote):
        for target in targets if not refused else ():
            name = target.dataset.ref.name
            try:
                with jobs_called(spark, f"{name}: promotion"):
                    done = step(target)
            except RefusedPromotionError as refusal:
                reason = refusal.in_one_line
                refused.append(not_promoted(name, target.location, reason, request.fail_on))
                continue
            if done is not None:
                promoted[name] = replace(done, is_blocked=is_blocked)
                _log.info("dataset '%s' is promoted: %s", name, done)
    return promoted, tuple(refused)


def _check(target: PromotionTarget) -> None:
    """Detects without a write what the target would reject.

    :raises RefusedPromotionError: the target does not take the rows.
    :raises PromotionError: the target cannot be read.
    """
    if target.dataset.version is None and target.dataset.files is None:
        raise RefusedPromotionError(
            f"cannot verify that {target.dataset.location} is unchanged since validation",
            "promote a Delta table, or files whose folder can be listed",
        )
    with _failures(target):
        target.replaced.check_values()
        if not _is_by_spark(target):
            table = target.table()
            if table is not None:
                target.check_columns(struct_of(table))
                target.check_slice(table)
        elif target.is_there():
            target.check_columns(target.spark.table(target.named).schema)
            target.check_slice(None)


def _promote(target: PromotionTarget) -> Promotion:
    """The result of a promotion: the new version and the number of rows.

    :raises RefusedPromotionError: the target does not take the rows.
    :raises PromotionError: they cannot be promoted as it is now.
    """
    with _failures(target):
        return promote_by_spark(target) if _is_by_spark(target) else promote_by_files(target)


@contextmanager
def _failures(target: PromotionTarget) -> Iterator[None]:
    try:
        with spark_failures():
            yield
    except PySparkException as error:
        if violated := _VIOLATED.search(str(error)):
            raise RefusedPromotionError(violated[1]) from error
        masked = target.dataset.ref.masked
        raise target.failed(without_values(explain(error), masked)) from error
    except DatasetError as error:
        raise target.failed(error.problem, error.hint) from error
    except (DeltaError, OSError, ValueError) as error:
        raise target.failed(first_line(error)) from error


def _is_by_spark(target: PromotionTarget) -> bool:
    """True if Spark's Delta source has to write the target, because files and a log are not enough.

    :raises RefusedPromotionError: this session does not have it.
    """
    needs = _needs_spark(target)
    if needs and not has_delta(target.spark):
        raise RefusedPromotionError(f"{needs}; {package_for(target.spark, 'delta')}", EXTENSIONS)
    return needs is not None


def _needs_spark(target: PromotionTarget) -> str | None:
    """Why Spark's Delta source has to write the target; None if files and a log are enough."""
    if is_table(target.location):
        return "Spark's Delta source writes catalog tables"
    table = target.table()
    demands = demands_of(table) if table is not None else ()
    return f"the table there has {', '.join(demands)}" if demands else None
