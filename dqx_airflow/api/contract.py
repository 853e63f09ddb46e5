"""Data contracts in Python: run like a suite, or held against a DataFrame before it is read."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from pathlib import Path
from typing import Any, TypeVar

from dqx_airflow.api.database import Database, MemoryDatabase
from dqx_airflow.api.results import Results
from dqx_airflow.api.run import run
from dqx_airflow.contracts.enforce import Enforcement, enforce
from dqx_airflow.contracts.model import Demand, OfType, OnlyColumns, Presence
from dqx_airflow.contracts.pins import objection_to_version
from dqx_airflow.contracts.references import FolderReader, no_files
from dqx_airflow.diagnostics.text import draw
from dqx_airflow.dql.check import check_source
from dqx_airflow.dql.source import Unreadable, read_source
from dqx_airflow.errors import DqxError, RequestError, SourceError
from dqx_airflow.plan.clauses import unjudged_verdicts, with_clauses
from dqx_airflow.plan.evaluate import decide
from dqx_airflow.reference.table import Table
from dqx_airflow.values import Field, Severity, SourceFile, Status, Verdict

_OF_SCHEMAS = (Presence, OfType, OnlyColumns)
_MOST_TOLD = 10

Frame = TypeVar("Frame")


@dataclass
class ContractViolation(DqxError):  # noqa: N818 (the word of the practice)
    """Data is not what a contract promises. `verdicts` are those that failed."""

    verdicts: tuple[Verdict, ...] = ()


class Contract:
    """A contract without errors, compiled to a suite."""

    def __init__(self, enforcement: Enforcement) -> None:
        if enforcement.errors or enforcement.contract is None:
            drawn = draw(enforcement.diagnostics, enforcement.sources)
            raise SourceError(drawn, diagnostics=enforcement.errors)
        if enforcement.refused:
            raise RequestError("; ".join(enforcement.refused))
        self._enforcement = enforcement
        self._contract = enforcement.contract

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        *,
        version: str | None = None,
        models: Sequence[str] = (),
        strict: bool = False,
        on: date | None = None,
    ) -> Contract:
        """The contract in a file; its `$ref` are followed within the folder of the file.

        :param version: the version that is relied on: `2`, `2.3` or `2.3.0`.
        :param models: the models that are enforced, all of them by default.
        :param strict: columns that the contract does not name are violations.
        :param on: the day on which it is relied on, today by default.
        :raises SourceError: there is no such file, or the contract has errors.
        :raises RequestError: it has another version, or is past its end.
        """
        place = Path(path).expanduser()
        source = read_source(place, place.name)
        if isinstance(source, Unreadable):
            found = (source.diagnostic,)
            drawn = draw(found, {place.name: source.text} if source.text else {})
            raise SourceError(f"{place}: {drawn}", diagnostics=found)
        return cls(
            enforce(
                source,
                FolderReader(place.parent),
                on=on or date.today(),
                expect_version=version,
                models=models,
                is_strict=strict,
            )
        )

    @classmethod
    def from_string(cls, text: str, *, on: date | None = None) -> Contract:
        """The contract that a text holds.

        :raises SourceError: it has errors.
        :raises RequestError: it is past its end.
        """
        source = SourceFile("<text>", text)
        return cls(enforce(source, no_files, on=on or date.today()))

    @property
    def id(self) -> str:
        return self._contract.id

    @property
    def version(self) -> str | None:
        return self._contract.version

    @property
    def models(self) -> tuple[str, ...]:
        return tuple(model.name for model in self._contract.models)

    @property
    def suite(self) -> str:
        """The DQL suite to which the contract is compiled."""
        return self._enforcement.over(()).suite.text

    def run(
        self,
        db: Database,
        date: date,
        *,
        fail_on: Severity | str = Severity.P1,
        allow_empty: bool = False,
        require_history: bool = False,
        skip_dates: Collection[date] = (),
        now: datetime | None = None,
    ) -> Results:
        """The results for a date, each verdict with its clause; arguments as of `Suite.run`.

        :raises RequestError: the contract asks for a dataset that the database has not.
        """
        enforced = self._enforcement.over(db.datasets)
        if enforced.objections:
            raise RequestError("; ".join(enforced.objections))
        checked = check_source(enforced.suite, needs_suite=True)
        results = run(
            checked,
            db,
            date,
            fail_on=fail_on,
            allow_empty=allow_empty,
            require_history=require_history,
            skip_dates=skip_dates,
            now=now,
        )
        report = results.report
        verdicts = with_clauses(report.verdicts, enforced.contract)
        verdicts += unjudged_verdicts(enforced.contract)
        outcome = decide(verdicts, report.fail_on, require_history=require_history)
        told = enforced.contract.in_report
        report = replace(report, verdicts=verdicts, contract=told, outcome=outcome)
        return replace(results, report=report)

    def of_schemas(
        self, model: str | None = None, *, version: str | None = None, strict: bool = False
    ) -> Contract:
        """What of the contract a schema alone can break: columns and their types, of one model.

        :raises RequestError: it does not say which model is meant, or has another version.
        """
        if version is not None and (objection := objection_to_version(self._contract, version)):
            raise RequestError(objection)
        there = ", ".join(self.models) or "none"
        if (model is None and len(self.models) != 1) or model not in (None, *self.models):
            raise RequestError(f"{self.id} has the models {there}", "say which: model='...'")
        enforcement = self._enforcement.closed() if strict else self._enforcement
        return Contract(enforcement.narrowed(model or self.models[0], _is_of_schemas))


def assert_contract(
    frame: Frame,
    contract: str | os.PathLike[str] | Contract,
    *,
    version: str | None = None,
    model: str | None = None,
    strict: bool = False,
) -> Frame:
    """The DataFrame itself, if it has the columns of a contract with their types: a defensive read.

    It compares the schema alone, which runs no Spark job; whether the data keeps the rest of the
    contract is for the gate before.

        events = assert_contract(spark.read.table("silver.events"), "events.yaml", version="2")

    :param frame: a DataFrame of Spark, classic or Connect.
    :param contract: the path of a contract, or one that was loaded.
    :param version: the version that the reader relies on: `2`, `2.3` or `2.3.0`.
    :param model: the model, of a contract with several.
    :param strict: columns that the contract does not name are violations.
    :raises ContractViolation: columns are missing or of another type.
    :raises SourceError: the contract cannot be read.
    :raises RequestError: it has another version than the reader relies on, is past its end, or
        promises no columns.
    """
    if not isinstance(contract, Contract):
        contract = Contract.load(contract)
    narrowed = contract.of_schemas(model, version=version, strict=strict)
    columns: Any = getattr(frame, "dtypes", None)
    if columns is None:
        raise RequestError(f"{type(frame).__name__} is no DataFrame", "give one of Spark")
    table = Table(tuple(Field(name, spark_type) for name, spark_type in columns), ())
    (name,) = narrowed.models
    results = narrowed.run(MemoryDatabase({name: table}), date.today(), allow_empty=True)
    if not results.report.verdicts:
        raise RequestError(
            f"{contract.id} promises no columns of {name}", "nothing was compared: name its fields"
        )
    broken = [item for item in results.report.verdicts if item.status is not Status.PASSED]
    if broken:
        told = "; ".join(f"{item.name}: {item.reason}" for item in broken[:_MOST_TOLD])
        more = f" and {len(broken) - _MOST_TOLD} more" if len(broken) > _MOST_TOLD else ""
        written = f"{contract.id} {contract.version or ''}".rstrip()
        raise ContractViolation(
            f"the data is not what {written} promises: {told}{more}",
            "see the changelog of its producer, or `dql contract diff`",
            tuple(broken),
        )
    return frame


def _is_of_schemas(demand: Demand) -> bool:
    return isinstance(demand, _OF_SCHEMAS)
