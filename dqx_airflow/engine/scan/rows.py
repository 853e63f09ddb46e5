"""The frame of a pass: the rows of a dataset with the columns that its SQL refers to."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession

from dqx_airflow.engine.scan import frames
from dqx_airflow.engine.session.sail import sail_version
from dqx_airflow.engine.sources.dataset import OpenDataset
from dqx_airflow.plan.description import title_of
from dqx_airflow.plan.model import Lookup, MetricRequest
from dqx_airflow.plan.passes import MOST_COMPILED, AggregateRequest, EngineLimits, Pass, dates_of
from dqx_airflow.plan.row_types import RowTypes

_log = logging.getLogger("dqx.gate")


def log_passes(passes: Iterable[Pass]) -> None:
    """Writes the passes that are about to be read to the log, as `dql explain` shows them."""
    for scan_pass in passes:
        _log.debug("%s", title_of(scan_pass))
        for text in scan_pass.texts:
            _log.debug("        %s", text)


@dataclass(frozen=True, slots=True)
class DatasetRows:
    """The rows of a dataset, and the lookups of its requests in other datasets.

    `requests` are the requests whose SQL may refer to columns; `types` are the types of the
    columns.

    """

    spark: SparkSession
    dataset: OpenDataset
    lookups: tuple[Lookup, ...]
    references: frames.ReferenceTables
    types: RowTypes
    requests: tuple[MetricRequest, ...]

    def frame(self, aggregates: Collection[AggregateRequest]) -> DataFrame:
        """The rows on the dates of some aggregates, with all columns that their SQL refers to."""
        frame = frames.rows_of_dates(self.dataset, dates_of(aggregates))
        wanted = [
            lookup
            for lookup in self.lookups
            if any(lookup.reference in request.looks_into for request in aggregates)
        ]
        return frames.with_named_columns(
            frame, self.dataset, self.requests, wanted, self.references
        )


def limits_of(spark: SparkSession) -> EngineLimits:
    """The limits of the engine of a session; the number of compiled fields is a setting of the
    session."""
    fields = spark.conf.get("spark.sql.codegen.maxFields", str(2 * MOST_COMPILED))
    most = max(1, min(MOST_COMPILED, int(fields or 0) // 2))
    # Beside something else, Sail takes ten microseconds for each key.
    return EngineLimits(most, fuses_keys=sail_version(spark) is None)
