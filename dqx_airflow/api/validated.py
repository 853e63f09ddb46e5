"""Reads exactly the rows that a gate let through."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dqx_airflow import values
from dqx_airflow.datasets.locations import is_table
from dqx_airflow.errors import RequestError, UnverifiedError
from dqx_airflow.values import GateReport
from dqx_airflow.values.blank import require_no_blank
from dqx_airflow.values.json_form import storage_options_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def read_validated(
    spark: SparkSession,
    report: GateReport | Mapping[str, Any] | str,
    dataset: str,
    *,
    verify: bool = False,
    results_root: str | None = None,
    public_key: str | None = None,
) -> DataFrame:
    """Returns the rows of a dataset that a gate let through, in exactly that version.

    They are read from where the gate promoted them to or, without a promotion, from where it read
    them.

        summary = context["ti"].xcom_pull(task_ids="gate", key="dqx_report")
        orders = read_validated(spark, summary, "orders")

    :param report: a report, or its summary in the XCom `dqx_report`, also as JSON, for the
        arguments of a job.
    :param dataset: the name of the dataset in the gate.
    :param verify: whether the receipts of the gates must account for the version, as for
        `dql tables verify`.
    :param results_root: the results store with the receipts; by default `DQX_RESULTS_ROOT`.
    :param public_key: the path of the key that must have signed the receipts.
    :raises UnverifiedError: they do not; it says what differs.
    :raises RequestError: the gate let nothing through, or the version of the dataset is unknown; or
        an argument is empty, such as a key from a variable that is not set.
    :raises DatasetError: the version can no longer be read.
    """
    from dqx_airflow.engine.sources.open import open_dataset

    require_no_blank({"results_root": results_root, "public_key": public_key})
    rows = _validated(report, dataset)
    if verify:
        _verify(spark, rows, results_root or os.environ.get("DQX_RESULTS_ROOT", ""), public_key)
    place = {"table" if is_table(rows.location) else "path": rows.location}
    opened = open_dataset(spark, values.DatasetRef(dataset, version=rows.version, **place))  # type: ignore[arg-type]
    frame = opened.read({None})
    return frame if rows.condition is None else frame.where(rows.condition)


def _verify(
    spark: SparkSession, rows: values.ValidatedRows, root: str, public_key: str | None
) -> None:
    """:raises UnverifiedError: the rows are not what gates promoted."""
    from dqx_airflow.results.query import StoredResults
    from dqx_airflow.results.verify import verify_table

    location = rows.location
    if is_table(location):
        location = spark.sql(f"DESCRIBE DETAIL {location}").select("location").collect()[0][0]
    results = StoredResults(root, storage_options_of(os.environ))
    found = verify_table(results, location, rows.version, public_key)
    if found.differences:
        raise UnverifiedError(str(found))


def _validated(report: GateReport | Mapping[str, Any] | str, dataset: str) -> values.ValidatedRows:
    if isinstance(report, GateReport):
        outcome = report.outcome.value
        validated = report.validated
    else:
        summary = _summary(report)
        outcome = str(summary.get("outcome"))
        try:
            text = json.dumps(summary.get("validated"))
            validated = values.from_json(dict[str, values.ValidatedRows], text)
        except ValueError as error:
            raise RequestError(f"the summary of the gate cannot be read: {error}") from error
    if dataset in validated:
        return validated[dataset]
    if outcome not in ("passed", "warned", "accepted"):
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
