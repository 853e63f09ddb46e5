"""Reads exactly what a gate let through, whatever was written since."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dqx_airflow.datasets.settings import is_table
from dqx_airflow.errors import RequestError
from dqx_airflow.values import DatasetRef, GateReport, ValidatedRows, from_json

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def read_validated(
    spark: SparkSession, report: GateReport | Mapping[str, Any] | str, dataset: str
) -> DataFrame:
    """The rows of a dataset that a gate let through, in exactly that version.

    They are read from where the gate promoted them to or, without a promotion, from where it read
    them.

        summary = context["ti"].xcom_pull(task_ids="gate", key="dqx_report")
        orders = read_validated(spark, summary, "orders")

    :param report: a report, or its summary in the XCom `dqx_report`, also as JSON, for the
        arguments of a job.
    :param dataset: the name of the dataset in the gate.
    :raises RequestError: the gate let nothing through, or the version of the dataset is unknown.
    :raises DatasetError: the version can no longer be read.
    """
    from dqx_airflow.engine.sources.open import open_dataset

    rows = _validated(report, dataset)
    place = {"table" if is_table(rows.location) else "path": rows.location}
    opened = open_dataset(spark, DatasetRef(dataset, version=rows.version, **place))  # type: ignore[arg-type]
    frame = opened.read({None})
    return frame if rows.condition is None else frame.where(rows.condition)


def _validated(report: GateReport | Mapping[str, Any] | str, dataset: str) -> ValidatedRows:
    if isinstance(report, GateReport):
        outcome, validated = report.outcome.value, report.validated
    else:
        summary = _summary(report)
        outcome = str(summary.get("outcome"))
        try:
            text = json.dumps(summary.get("validated"))
            validated = from_json(dict[str, ValidatedRows], text)
        except ValueError as error:
            raise RequestError(f"the summary of the gate cannot be read: {error}") from error
    if dataset in validated:
        return validated[dataset]
    if outcome not in ("passed", "warned"):
        raise RequestError(f"the gate is {outcome}, so no data was released")
    raise RequestError(
        f"the gate knows no version of dataset '{dataset}'",
        f"known datasets: {', '.join(validated) or 'none'}; only Delta tables have versions",
    )


def _summary(given: Mapping[str, Any] | str) -> Mapping[str, Any]:
    if isinstance(given, str):
        try:
            given = json.loads(given)
        except ValueError as error:
            raise RequestError(f"invalid summary of a gate: {error}") from error
    if not isinstance(given, Mapping) or "validated" not in given:
        raise RequestError("invalid summary of a gate", "pass the XCom dqx_report of the gate")
    return given
