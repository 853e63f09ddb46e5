"""The rows of a dataset with the conditions of faults, for samples, quarantine and good rows."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from dqx_airflow.engine.scan import frames
from dqx_airflow.engine.scan.frames import ReferenceTables
from dqx_airflow.engine.sources.dataset import OpenDataset
from dqx_airflow.metrics.sql import quote_name
from dqx_airflow.plan.failing import FailingRows
from dqx_airflow.plan.predicates import lookups_of


def rows_with_faults(
    dataset: OpenDataset, references: ReferenceTables, faults: Sequence[FailingRows]
) -> DataFrame:
    """The rows of the target date, with all columns that the conditions of the faults refer to."""
    requests = [fault.request for fault in faults]
    frame = frames.rows_with_texts(dataset, {references.date})
    return frames.with_named_columns(frame, dataset, requests, lookups_of(*requests), references)


def with_conditions(
    dataset: OpenDataset, references: ReferenceTables, faults: Sequence[FailingRows]
) -> tuple[DataFrame, dict[FailingRows, str]]:
    """The rows of the target date, and for each fault the Spark SQL condition of its failing
    rows."""
    frame = rows_with_faults(dataset, references, faults)
    conditions = {}
    for number, fault in enumerate(faults):
        condition = fault.condition or "true"
        if fault.repeated:
            count_column = f"dqx: rows like this by fault {number}"
            keys = ", ".join(map(quote_name, fault.repeated))
            counted = f"CASE WHEN {condition} THEN 1 END"
            rows_alike = F.expr(f"count({counted}) OVER (PARTITION BY {keys})")
            frame = frame.withColumn(count_column, rows_alike)
            condition = f"({condition}) AND {quote_name(count_column)} > 1"
        conditions[fault] = condition
    return frame, conditions
