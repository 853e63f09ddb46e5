"""Data contracts in Python: run like a suite, or compared with a DataFrame in one call or before it
is read.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import date, datetime, timezone
from datetime import date as day
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar, get_args

from dqx_airflow import values
from dqx_airflow.api import run as runs
from dqx_airflow.api.database import Database, MemoryDatabase, SparkDatabase, is_spark_frame
from dqx_airflow.api.run import DatedResults, Results, SelectedRunKeywords
from dqx_airflow.contracts import demands
from dqx_airflow.contracts.enforcement.contract_datasets import completed_datasets
from dqx_airflow.contracts.enforcement.enforced_contract import (
    Enforced,
    Enforcement,
    Unsupported,
    enforce,
)
from dqx_airflow.contracts.enforcement.pins import objection_to_version
from dqx_airflow.contracts.field_types import spark_type, spark_type_of
from dqx_airflow.contracts.model import Model, Rule
from dqx_airflow.contracts.references import FolderReader, no_files
from dqx_airflow.contracts.variables import named_variables
from dqx_airflow.diagnostics.diagnostic import listed
from dqx_airflow.diagnostics.renderers import draw
from dqx_airflow.diagnostics.verdicts import finding
from dqx_airflow.dql.syntax.source_file import Unreadable, read_source
from dqx_airflow.errors import DqxError, RequestError, SourceError
from dqx_airflow.plan.clause_verdicts import with_clauses
from dqx_airflow.plan.evaluate import decide
from dqx_airflow.plan.in_memory.table import Table
from dqx_airflow.plan.selection import selected_clauses
from dqx_airflow.values import Outcome, Severity, Status, Verdict
from dqx_airflow.values.blank import require_no_blank

if TYPE_CHECKING:
    from typing_extensions import Unpack

_OF_SCHEMAS = (demands.Presence, demands.OfType, demands.OnlyColumns)
_ANY_TYPE = (None, "any", "number", "timestamp", "timestamp_ntz")
"""The types of fields that values of several types have."""
_MOST_SHOWN = 10

Frame = TypeVar("Frame")

_NO_VARIABLES: Mapping[str, str] = MappingProxyType({})


@dataclass
class ContractViolationError(DqxError):
    """Data violates a contract. `verdicts` has the failed assertions."""

    verdicts: tuple[Verdict, ...] = ()


class Contract:
    """A contract without errors, compiled to a suite.

    contract = Contract.load("contracts/orders.yaml", version="2")
    results = contract.run(SparkDatabase(spark, {"orders": "s3://lake/orders"}), date(2026, 1, 1))
    results.raise_for_failures()
    """

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
        variables: Mapping[str, str] = _NO_VARIABLES,
    ) -> Contract:
        """Reads the contract in a file; its `$ref` are resolved within the folder of the file.

        :param path: the path of a contract of any supported standard.
        :param version: the required version: `2`, `2.3` or `2.3.0`.
        :param models: the models to enforce, all of them by default.
        :param strict: makes columns that the contract does not name violations.
        :param on: the date for lifecycle dates and deprecations, today by default.
        :param variables: the values of `${NAME}` that the contract may know.
        :raises SourceError: the file does not exist, or the contract has errors.
        :raises RequestError: the contract has another version, or has ended; a variable is
            invalid, or may be a secret; an argument is empty.
        """
        require_no_blank({"models": models})
        known = named_variables(variables, {})
        file = Path(path).expanduser()
        source = read_source(file, file.name)
        if isinstance(source, Unreadable):
            diagnostics = (source.diagnostic,)
            drawn = draw(diagnostics, {file.name: source.text} if source.text else {})
            raise SourceError(f"{file}: {drawn}", diagnostics=diagnostics)
        return cls(
            enforce(
                source,
                FolderReader(file.parent),
                on=on or date.today(),
                expect_version=version,
                models=models,
                is_strict=strict,
                variables=known,
            )
        )

    @classmethod
    def from_string(
        cls, text: str, *, on: date | None = None, variables: Mapping[str, str] = _NO_VARIABLES
    ) -> Contract:
        """Reads the contract in a string; it cannot refer to other files.

        :param on: the date for lifecycle dates and deprecations, today by default.
        :param variables: the values of `${NAME}` that the contract may know.
        :raises SourceError: the contract has errors.
        :raises RequestError: the contract has ended; a variable is invalid, or may be a secret.
        """
        known = named_variables(variables, {})
        source = values.SourceFile("<text>", text)
        return cls(enforce(source, no_files, on=on or date.today(), variables=known))

    @property
    def id(self) -> str:
        """The id in the contract."""
        return self._contract.id

    @property
    def version(self) -> str | None:
        """The version in the contract, None if it has none."""
        return self._contract.version

    @property
    def models(self) -> tuple[str, ...]:
        """The names of its models, or of the only one that was requested."""
        return tuple(model.name for model in self._contract.models)

    @property
    def suite(self) -> str:
        """The compiled DQL suite of the contract."""
        return self._enforcement.over(()).suite.text

    @runs.with_keywords_of(SelectedRunKeywords)
    def run(
        self,
        db: Database,
        date: date,
        *,
        now: datetime | None = None,
        unsupported: Unsupported = "error",
        server: str | None = None,
        **options: Unpack[SelectedRunKeywords],
    ) -> Results:
        """Returns the results for a date, each verdict with its clause; see `Suite.run` for other
        arguments.

        Files are read as by a gate: CSV and JSON as strings, which are compared with the declared
        types. Printed results list the clauses that no assertion checked, like
        `dql contract test`.

        :param db: the data, with one dataset per model and reference.
        :param unsupported: how to treat a clause that states a check and cannot be enforced: as an
            error of its severity, or with "warn" as a warning.
        :param server: the server of the contract that says how CSV and JSON files are read, by
            default the only one. What the settings of a dataset say wins.
        :param only: as for `Suite.run`, and also the path of a clause, with everything below it, or
            the id of a rule.
        :raises RequestError: the contract requires a dataset that the database does not have, an
            argument is invalid, or no assertion matches the selection.
        """
        settings = runs.RunSettings.of(options, now)
        db = self._as_read(db, server)
        enforced = self._enforced_over(db, date, unsupported)
        checked = enforced.checked
        contract = enforced.contract
        results = runs.run(checked, db, date, settings, contract)
        return _of_contract(results, contract, settings)

    @runs.with_keywords_of(SelectedRunKeywords)
    def run_dates(
        self,
        db: Database,
        dates: str | Iterable[date],
        *,
        now: datetime | None = None,
        unsupported: Unsupported = "error",
        server: str | None = None,
        **options: Unpack[SelectedRunKeywords],
    ) -> DatedResults:
        """Returns the results for each of several dates, each with what the contract demands on
        that date.

        Over Spark, all dates are measured in one scan of each dataset.

        :param dates: the dates, or a range as a string, `2026-01-01..2026-03-31`, both ends
            included; the other arguments are the same as for `run`.
        :raises RequestError: the dates are invalid, or the contract requires a dataset that the
            database does not have.
        """
        settings = runs.RunSettings.of(options, now)
        db = self._as_read(db, server)
        enforced = {on: self._enforced_over(db, on, unsupported) for on in runs.dates_of(dates)}
        suites = {
            on: runs.DatedSuite(compiled.checked, compiled.contract)
            for on, compiled in enforced.items()
        }
        dated = runs.run_each(suites, db, settings)
        by_date = {
            on: _of_contract(results, enforced[on].contract, settings)
            for on, results in dated.by_date.items()
        }
        return replace(dated, by_date=by_date)

    def _as_read(self, db: Database, server: str | None) -> Database:
        """The database with its data read by the settings of the contract, as in a gate."""
        require_no_blank({"server": server})
        if isinstance(db, SparkDatabase):
            refs = completed_datasets(self._contract, db.datasets, server)
            return db.with_datasets(refs)
        if not isinstance(db, MemoryDatabase):
            return db
        types = {
            model.name: {
                item.name: kind
                for item in model.fields
                if item.type not in _ANY_TYPE
                and (kind := spark_type_of(spark_type(item)))  # its fields without backticks
            }
            for model in self.described
        }
        return db.with_types(types)

    def _enforced_over(self, db: Database, on: date, unsupported: Unsupported) -> Enforced:
        """:raises RequestError: the contract requires a dataset that the database does not have."""
        if unsupported not in get_args(Unsupported):
            raise RequestError(f"unsupported={unsupported!r}", 'write "error" or "warn"')
        enforced = self._enforcement.over(db.datasets, on=on, unsupported=unsupported)
        if enforced.objections:
            raise RequestError("; ".join(enforced.objections))
        return enforced

    @property
    def described(self) -> tuple[Model, ...]:
        """The models with their fields, in the form shared by all dialects."""
        return self._contract.models

    def rules_of(self, results: Results) -> dict[str, Rule]:
        """Returns the rules of the contract behind the assertions of results, by assertion name."""
        named = {verdict.name for verdict in results.report.verdicts}
        contract = self._contract
        rules = (
            (contract.assertion_name(model, field, rule), rule)
            for model, field, rule in contract.rules()
        )
        return {name: rule for name, rule in rules if name in named}

    def of_model(self, model: str | None = None) -> Contract:
        """Returns the contract reduced to one model; the name is optional if it has only one.

        :raises RequestError: the contract has no such model, or several and none is named.
        """
        self._require_model(model)
        return Contract(self._enforcement.of_models((model or self.models[0],)))

    def _require_model(self, model: str | None) -> None:
        names = ", ".join(self.models) or "none"
        if (model is None and len(self.models) != 1) or model not in (None, *self.models):
            raise RequestError(f"{self.id} has several models: {names}", "choose one: model='...'")

    def of_schemas(
        self, model: str | None = None, *, version: str | None = None, strict: bool = False
    ) -> Contract:
        """Returns the part of the contract about columns and their types, for one model.

        :raises RequestError: the model is ambiguous, or the contract has another version.
        """
        if version is not None and (objection := objection_to_version(self._contract, version)):
            raise RequestError(objection)
        self._require_model(model)
        own = self._enforcement.of_models((model or self.models[0],), is_strict=strict)
        return Contract(own.narrowed(_is_of_schemas))


def assert_contract(
    frame: Frame,
    contract: str | os.PathLike[str] | Contract,
    *,
    version: str | None = None,
    model: str | None = None,
    strict: bool = False,
) -> Frame:
    """Returns the DataFrame itself, if it has the columns of a contract with their types: a
    defensive read.

    Only the schema is compared, which runs no Spark job; a gate before it checks whether the data
    satisfies the rest of the contract.

        events = assert_contract(spark.read.table("silver.events"), "events.yaml", version="2")

    :param frame: a DataFrame of Spark, classic or Connect.
    :param contract: the path of a contract, or a loaded one.
    :param version: the version that the reader relies on: `2`, `2.3` or `2.3.0`.
    :param model: the model, for a contract with several.
    :param strict: columns that the contract does not name are violations.
    :raises ContractViolationError: columns are missing or of another type.
    :raises SourceError: the contract cannot be read.
    :raises RequestError: it has another version than the reader relies on, is past its end, or
        promises no columns; or the frame is none of Spark.
    """
    if not isinstance(contract, Contract | str | os.PathLike):
        raise RequestError(
            f"not a contract: {type(contract).__name__}",
            "write assert_contract(frame, contract), with the path of the contract or a loaded one",
        )
    columns = _declared_columns(frame)
    if not isinstance(contract, Contract):
        contract = Contract.load(contract)
    narrowed = contract.of_schemas(model, version=version, strict=strict)
    table = Table(columns, ())
    (name,) = narrowed.models
    results = narrowed.run(MemoryDatabase({name: table}), date.today(), allow_empty=True)
    if not results.report.verdicts:
        raise RequestError(
            f"{contract.id} declares no columns for {name}", "add its fields to the contract"
        )
    broken = [item for item in results.report.verdicts if item.status is not Status.PASSED]
    if broken:
        reasons = listed([f"{item.name}: {item.reason}" for item in broken], "; ", most=_MOST_SHOWN)
        written = f"{contract.id} {contract.version or ''}".rstrip()
        raise ContractViolationError(
            f"the data does not satisfy {written}: {reasons}",
            "see the changelog of its producer, or `dql contract diff`",
            tuple(broken),
        )
    return frame


def _declared_columns(frame: object) -> tuple[values.DatasetField, ...]:
    """The columns of a DataFrame of Spark, which has their names and types as pairs in `dtypes`."""
    match getattr(frame, "dtypes", None):
        case [*pairs] if all(isinstance(pair, tuple) and len(pair) == 2 for pair in pairs):
            return tuple(values.DatasetField(name, kind) for name, kind in pairs)
    name = type(frame).__name__
    library = type(frame).__module__.partition(".")[0]
    kind = name if library == "builtins" else f"{name} of {library}"
    raise RequestError(
        f"{kind} is not a DataFrame of Spark, whose columns have declared types",
        "check the values of other frames: ContractValidator(contract).validate(frame)",
    )


def _of_contract(
    results: Results, contract: values.EnforcedContract, settings: runs.RunSettings
) -> Results:
    """The results with the contract clauses of the verdicts, and those that no assertion
    checked."""
    report = results.report
    verdicts = with_clauses(report.verdicts, selected_clauses(contract, settings.selection))
    required = settings.options.require_history
    outcome = decide(verdicts, report.fail_on, require_history=required)
    in_report = contract.in_report
    report = replace(report, verdicts=verdicts, contract=in_report, outcome=outcome)
    return replace(results, report=report)


def _is_of_schemas(demand: demands.Demand) -> bool:
    return isinstance(demand, _OF_SCHEMAS)


_OF_QUALITY = (demands.Complete, demands.AllComplete, demands.Distinct, demands.Unique)


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
        """Returns the violations of the contract in a DataFrame.

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
    """A database of DataFrames: in memory, or temporary views of Spark, dropped at the end."""
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
    """The validation of a model from the verdicts on its contract."""
    rules = contract.rules_of(results)
    validation = Validation(
        valid=results.outcome not in (Outcome.BLOCKED, Outcome.BROKEN),
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
        if rule is not None and _is_of_schemas(rule.demand):
            validation["schema_errors"].append(line)
        elif field is not None and rule is not None and not isinstance(rule.demand, _OF_QUALITY):
            validation["field_errors"].setdefault(field, []).append(line)
        else:
            validation["quality_errors"].append(line)
    return validation


def _line(verdict: Verdict) -> str:
    if verdict.reason:
        return f"{verdict.name}: {verdict.reason}"
    return f"{verdict.name}: {finding(verdict)}"


def _field_of(verdict: Verdict, model: Model) -> str | None:
    """The field whose rule an assertion enforces, by its name: `orders.id.required`."""
    inner = verdict.name.removeprefix(f"{model.name}.")
    parents = [item.name for item in model.fields if inner.startswith(f"{item.path}.")]
    return max(parents, key=len) if parents else None


def _scores(results: Results, rules: Mapping[str, Rule]) -> Iterator[tuple[str, float]]:
    """Shares from 0 to 1, by their names. A count is divided by the number of rows."""
    rows = max((item.rows or 0 for item in results.datasets[:1]), default=0)
    for verdict in results.report.verdicts:
        rule = rules.get(verdict.name)
        value = verdict.value
        is_share = "/" in verdict.expression
        if rule is None or value is None or isinstance(value, str) or not (is_share or rows):
            continue
        share = float(value) if is_share else float(value) / rows
        match rule.demand:
            case demands.Complete(column=column):
                yield f"completeness_{column}", share if is_share else 1 - share
            case demands.AllComplete():
                yield "completeness", 1 - share if is_share else float(value == 0)
            case demands.Distinct(columns=columns) | demands.Unique(columns=columns):
                name = "uniqueness" if len(columns) > 1 else f"uniqueness_{columns[0]}"
                yield name, 1 - share
