"""A contract compared with a DataFrame in one call: whether it is valid, and what is wrong."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import date as day
from datetime import datetime, timezone
from typing import Any, TypedDict

from dqx_airflow.api.contract import Contract
from dqx_airflow.api.database import Database, MemoryDatabase, SparkDatabase, is_spark_frame
from dqx_airflow.api.results import Results
from dqx_airflow.contracts.demands import (
    AllComplete,
    Complete,
    Demand,
    Distinct,
    OfType,
    OnlyColumns,
    Presence,
    Unique,
)
from dqx_airflow.contracts.enforcement.enforced_contract import Unsupported
from dqx_airflow.contracts.model import Model, Rule
from dqx_airflow.errors import RequestError
from dqx_airflow.values import Outcome, Severity, Status, Verdict

_OF_SCHEMA = (Presence, OfType, OnlyColumns)
_OF_QUALITY = (Complete, AllComplete, Distinct, Unique)


class Validation(TypedDict):
    """The errors of a DataFrame. `valid` is False if a gate would be blocked or broken.

    `schema_errors` are about columns and their types, `field_errors` about the values of single
    fields, by their names, and `quality_errors` about the rows as a whole, including clauses that
    cannot be enforced. `quality_scores` are shares from 0 to 1: `completeness`,
    `completeness_<field>`, `uniqueness`, `uniqueness_<field>`, for what the contract limits.
    """

    valid: bool
    schema_errors: list[str]
    field_errors: dict[str, list[str]]
    quality_errors: list[str]
    quality_scores: dict[str, float]
    results: Results


class ContractValidator:
    """Validates DataFrames against a contract.

        report = ContractValidator("contracts/customers.yaml").validate(frame)
        assert report["valid"], report["field_errors"]

    :param contract: the path of a contract, or a loaded one.
    :raises SourceError: the file does not exist, or the contract has errors.
    :raises RequestError: the contract has ended.
    """

    def __init__(self, contract: str | os.PathLike[str] | Contract) -> None:
        self.contract = contract if isinstance(contract, Contract) else Contract.load(contract)

    def validate(
        self,
        frame: Any,
        *,
        model: str | None = None,
        datasets: Mapping[str, Any] | None = None,
        date_column: str | None = None,
        date: day | None = None,
        fail_on: Severity | str = Severity.P1,
        unsupported: Unsupported = "error",
        ansi: bool = True,
        now: datetime | None = None,
    ) -> Validation:
        """The violations of the contract in a DataFrame.

        :param frame: a DataFrame of pandas (NaN is NULL), Arrow, Polars or Spark, or rows as
            mappings.
        :param model: the model of the frame, for a contract with several.
        :param datasets: the DataFrames of the same kind for references, by name.
        :param date_column: the column with the date of a row, for clauses about days.
        :param date: the date to validate, today by default.
        :param fail_on: the lowest severity that makes the frame invalid.
        :param unsupported: how to treat clauses that cannot be enforced: "error" or "warn".
        :param ansi: the mode of Spark in which SQL of the contract is evaluated.
        :param now: the time from which ages are measured, with a time zone; by default the current
            time.
        :raises RequestError: the frame is not a DataFrame, or a dataset is missing.
        """
        contract = self.contract.of_model(model)
        (described,) = contract.described
        on = date or datetime.now(timezone.utc).date()
        dates = {} if date_column is None else {described.name: date_column}
        frames = {described.name: frame, **(datasets or {})}
        with _database(frames, described, dates) as database:
            results = contract.run(
                database, on, fail_on=fail_on, now=now, unsupported=unsupported, ansi=ansi
            )
        return _validation(results, contract, described)


@contextmanager
def _database(
    frames: Mapping[str, Any], model: Model, dates: Mapping[str, str]
) -> Iterator[Database]:
    first = frames[model.name]
    if not is_spark_frame(first):
        yield MemoryDatabase(frames, date_columns=dates)
        return
    if not all(map(is_spark_frame, frames.values())):
        raise RequestError("cannot mix Spark DataFrames with others", "convert them")
    spark = first.sparkSession
    views = {name: f"dqx_{uuid.uuid4().hex}" for name in frames}
    try:
        for name, frame in frames.items():
            frame.createOrReplaceTempView(views[name])
        settings = {
            name: {"table": view, **({"date_column": dates[name]} if name in dates else {})}
            for name, view in views.items()
        }
        yield SparkDatabase(spark, settings)
    finally:
        for view in views.values():
            spark.catalog.dropTempView(view)


def _validation(results: Results, contract: Contract, model: Model) -> Validation:
    rules = contract.rules_of(results)
    validation = Validation(
        valid=results.outcome in (Outcome.PASSED, Outcome.WARNED),
        schema_errors=[],
        field_errors={},
        quality_errors=[],
        quality_scores=dict(_scores(results, rules)),
        results=results,
    )
    for verdict in results.report.verdicts:
        if verdict.status not in (Status.FAILED, Status.ERROR) or verdict.let_by is not None:
            continue
        line = _line(verdict)
        rule = rules.get(verdict.name)
        field = _field_of(verdict, model) if rule is not None else None
        if rule is not None and isinstance(rule.demand, _OF_SCHEMA):
            validation["schema_errors"].append(line)
        elif field is not None and rule is not None and not isinstance(rule.demand, _OF_QUALITY):
            validation["field_errors"].setdefault(field, []).append(line)
        else:
            validation["quality_errors"].append(line)
    return validation


def _line(verdict: Verdict) -> str:
    if verdict.reason:
        return f"{verdict.name}: {verdict.reason}"
    return f"{verdict.name}: is {verdict.value}, expected {verdict.expected}"


def _field_of(verdict: Verdict, model: Model) -> str | None:
    """The field whose rule an assertion enforces, by its name: `orders.id.required`."""
    inner = verdict.name.removeprefix(f"{model.name}.")
    parents = [item.name for item in model.fields if inner.startswith(f"{item.path}.")]
    return max(parents, key=len) if parents else None


def _scores(results: Results, rules: Mapping[str, Rule]) -> Iterator[tuple[str, float]]:
    rows = max((item.rows or 0 for item in results.datasets[:1]), default=0)
    for verdict in results.report.verdicts:
        rule, value = rules.get(verdict.name), verdict.value
        if rule is None or value is None or isinstance(value, str):
            continue
        score = _score(rule.demand, float(value), rows, verdict.expression)
        if score is not None:
            yield score


def _score(demand: Demand, value: float, rows: int, expression: str) -> tuple[str, float] | None:
    """A share from 0 to 1, by its name. A count is divided by the number of rows."""
    is_share = "/" in expression
    if not is_share and rows == 0:
        return None
    match demand:
        case Complete(column=column):
            return f"completeness_{column}", value if is_share else 1 - value / rows
        case AllComplete():
            return "completeness", 1 - value if is_share else float(value == 0)
        case Distinct(columns=columns) | Unique(columns=columns):
            name = "uniqueness" if len(columns) > 1 else f"uniqueness_{columns[0]}"
            return name, 1 - value if is_share else 1 - value / rows
    return None
