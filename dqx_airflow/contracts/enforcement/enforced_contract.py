"""A contract as a gate enforces it: its pinned version, its suite, the treatment of each clause,
and the locations of its datasets."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from sqlglot import exp

from dqx_airflow import values
from dqx_airflow.contracts import model as elements
from dqx_airflow.contracts.compile.rule_context import RuleContext
from dqx_airflow.contracts.compile.sql_meanings import filled_in, placeholders
from dqx_airflow.contracts.compile.sql_rules import parsed, written_name
from dqx_airflow.contracts.compile.suite import Compiled, Unenforced, compile_contract
from dqx_airflow.contracts.demands import Demand, OnlyColumns, QueryGives, RowsSatisfy
from dqx_airflow.contracts.field_types import spark_schema
from dqx_airflow.contracts.read import read_contract
from dqx_airflow.contracts.references import FileReader, no_files
from dqx_airflow.datasets.connections import DATABASES
from dqx_airflow.datasets.reader_options import beside
from dqx_airflow.datasets.settings import (
    S3A_ENDPOINT,
    dataset_ref,
    format_of,
    settings_of,
    spark_location,
)
from dqx_airflow.diagnostics.diagnostic import Diagnostic, did_you_mean, errors_of
from dqx_airflow.dql import nodes
from dqx_airflow.dql.check import Checked
from dqx_airflow.errors import NoCounterpartError, RequestError
from dqx_airflow.limits import LONGEST_KEPT_SOURCE
from dqx_airflow.plan.evaluate import unenforced_line
from dqx_airflow.plan.resolve import check_datasets

if TYPE_CHECKING:
    from sqlglot import Expr


def dimension_of(rule: elements.Rule | elements.Promise) -> str | None:
    """The dimension in lower case; None if neither the rule nor its demand has one.

    >>> from dqx_airflow.contracts.demands import Required
    >>> dimension_of(elements.Rule("required", Required(), ()))
    'completeness'
    """
    if rule.dimension:
        return rule.dimension.lower()
    return rule.demand.dimension if isinstance(rule, elements.Rule) else None


def missing_columns(context: RuleContext) -> Iterator[str]:
    """The unknown columns of an SQL rule, as written. Empty if they cannot be determined: the rule
    reads a table that is not a model of the contract, or defines columns itself."""
    demand = context.rule.demand
    assert isinstance(demand, QueryGives | RowsSatisfy)
    sql = demand.query if isinstance(demand, QueryGives) else demand.predicate
    try:
        tree = parsed(filled_in(sql, placeholders(context), demand.sql_dialect), demand.sql_dialect)
    except NoCounterpartError:
        return  # coverage reports it
    models = _models_read(context, tree)
    if models is None:
        return
    named = (*tree.find_all(exp.Alias), *tree.find_all(exp.CTE), *tree.find_all(exp.Subquery))
    tables = {context.model.name.lower()}
    tables |= {table.alias_or_name.lower() for table in tree.find_all(exp.Table)}
    tables |= {expression.alias.lower() for expression in named}
    columns = {item.name.lower() for model in models for item in model.fields}
    columns |= {expression.alias.lower() for expression in named}
    for column in tree.find_all(exp.Column):
        parts = [part.name for part in column.parts]
        if parts[0].lower() in tables and len(parts) > 1:
            parts = parts[1:]
        is_given = column.find_ancestor(exp.Lambda) is not None or isinstance(column.this, exp.Star)
        if not is_given and parts[0].lower() not in columns:
            yield ".".join(parts)


def _models_read(context: RuleContext, tree: Expr) -> list[elements.Model] | None:
    """The models of the tables in SQL; None if a table is unknown, or defines columns itself."""
    if tree.find(exp.Lateral, exp.Unnest, exp.Values, exp.Pivot, exp.UDTF):
        return None
    defined = {cte.alias.lower() for cte in tree.find_all(exp.CTE)}
    tables = [table for table in tree.find_all(exp.Table) if table.name.lower() not in defined]
    names = {context.dataset(written_name(table)) for table in tables}
    models = [context.contract.model(name) for name in (names | {context.model.name})]
    with_fields = [model for model in models if model is not None and model.fields]
    return with_fields if len(with_fields) == len(models) else None


_VERSION = re.compile(r"v?(\d{1,9}(?:\.\d{1,9})*)([-+.][\w.+-]+)?", re.ASCII)
_WHOLE = 3
"""The number of numbers in a complete version: major, minor and patch."""


@dataclass(frozen=True, slots=True)
class LifecycleStatus:
    """The status of a contract that is not active, or not for long; `is_refused`: no gate may rely
    on it."""

    message: str
    is_refused: bool


def is_version(pin: str) -> bool:
    """True for a version that can be pinned: `2`, `2.3`, `2.3.0`."""
    return _VERSION.fullmatch(pin) is not None


def objection_to_version(
    contract: elements.Contract, expected: str, models: Collection[str] = ()
) -> str | None:
    """The objection if the version of a contract is not the pinned version; None if it is.

    `2` accepts every 2.x.y, `2.3` every 2.3.x. A complete version such as `2.3.0`, and a version
    with a suffix such as `2.3.0-rc1`, accepts only itself. If each model has a version of its own,
    the versions of the `models` are compared: of all models by default.
    """
    contracts = [
        replace(contract, id=model.title or model.name, version=model.version, models=())
        for model in contract.models
        if model.version is not None and (not models or model.name in models)
    ]
    if contract.version is None and contracts:
        objections = (objection_to_version(item, expected) for item in contracts)
        return next(filter(None, objections), None)
    pin = _VERSION.fullmatch(expected.strip())
    if pin is None:
        return f"the pin '{expected}' is not a version: write 2, 2.3 or 2.3.0"
    written = contract.version
    if written is None:
        return f"{contract.id} has no version, but version {expected} is pinned"
    if written == expected.strip():
        return None
    match = _VERSION.fullmatch(written.strip())
    if match is None:
        return f"{contract.id} has version '{written}', which cannot be pinned"
    wanted, actual = pin[1].split("."), match[1].split(".")
    actual += ["0"] * (len(wanted) - len(actual))
    is_itself = len(actual) == len(wanted) and match[2] == pin[2]
    is_series = len(wanted) < _WHOLE and pin[2] is None
    same = [int(part) for part in actual[: len(wanted)]] == [int(part) for part in wanted]
    if same and (is_series or is_itself):
        return None
    return (
        f"{contract.id} has version {written}, but version {expected} is pinned: "
        "review the changes with `dql contract diff`, then update the pin"
    )


def lifecycle_status(contract: elements.Contract, on: date) -> LifecycleStatus | None:
    """The status of a contract on a date according to its lifecycle; None if it is active.

    A contract past its sunset is refused, and so is a deprecated contract after its notice period.
    """
    cycle = contract.lifecycle
    deprecated, starts = (
        elements.day_of(cycle.deprecation_date),
        elements.day_of(cycle.effective_date),
    )
    sunset, end = elements.day_of(cycle.sunset_date), end_of(cycle)
    use = f"; its successor is {cycle.successor}" if cycle.successor else ""
    if cycle.status == "sunset" or (sunset is not None and sunset <= on):
        when = f" on {sunset}" if sunset is not None else ""
        return LifecycleStatus(f"{contract.id} was sunset{when}{use}", is_refused=True)
    if deprecated is not None and deprecated > on:
        message = f"{contract.id} will be deprecated on {deprecated}{use}"
        return LifecycleStatus(message, is_refused=False)
    if cycle.status == "deprecated" or deprecated is not None:
        since = f" since {deprecated}" if deprecated is not None else ""
        is_over = end is not None and end <= on
        until = f", until {end}" if end is not None else ""
        until = f", its notice period ended on {end}" if is_over else until
        return LifecycleStatus(f"{contract.id} is deprecated{since}{until}{use}", is_over)
    if starts is not None and starts > on:
        return LifecycleStatus(f"{contract.id} is not in effect before {starts}", is_refused=False)
    return None


def end_of(life: elements.Lifecycle) -> date | None:
    """The date from which a version must not be relied on: its sunset, or the end of its notice."""
    sunset, deprecated = elements.day_of(life.sunset_date), elements.day_of(life.deprecation_date)
    if sunset is not None or deprecated is None or life.notice_days is None:
        return sunset
    return elements.end_of_period(deprecated, life.notice_days)


@dataclass(frozen=True, slots=True)
class ClauseCoverage:
    """A clause: its position, its treatment with the reason, and the assertions that enforce it.

    A list that one rule uses is a single clause. A clause of several rules, as in a definition that
    several fields refer to, is checked if assertions enforce all of these rules that state a check.
    """

    path: str
    span: values.Span
    treatment: elements.Treatment
    reason: str
    assertions: tuple[str, ...] = ()


def coverage(contract: elements.Contract, compiled: Compiled) -> tuple[ClauseCoverage, ...]:
    """All clauses in the order of the document, each once, followed by clauses of other files."""
    coverages: dict[tuple[str, str], ClauseCoverage] = {}
    unenforced = _unenforced(compiled)
    for note in (*contract.notes, *compiled.notes):
        clause, treatment, reason = note.clause, note.treatment, note.reason
        acceptance = unenforced.get(_key(clause)) or contract.acceptance_of("", clause.path)
        if treatment is elements.Treatment.UNSUPPORTED and acceptance is not None:
            treatment = elements.Treatment.ACCEPTED
            reason = f"{reason}; accepted by {acceptance.owner}: {acceptance.reason}"
        coverages[_key(clause)] = ClauseCoverage(clause.path, clause.span, treatment, reason)
    pairs: tuple[tuple[str, elements.Rule], ...] = (*compiled.enforced, *compiled.included)
    for assertion, clause in [(name, clause) for name, rule in pairs for clause in rule.clauses]:
        known = coverages.get(key := _key(clause))
        # A definition may be one that not all of its fields enforce.
        if known is None or not (known.assertions or key in unenforced):
            known = ClauseCoverage(clause.path, clause.span, elements.Treatment.CHECKED, "")
        assertions = tuple(dict.fromkeys((*known.assertions, assertion)))
        coverages[key] = replace(known, assertions=assertions)
    files = dict.fromkeys((contract.span.file, *(file for file, _ in coverages)))
    order = {file: number for number, file in enumerate(files)}

    def place_of(item: ClauseCoverage) -> tuple[int, int, int]:
        return order[item.span.file], item.span.line, item.span.column

    return tuple(sorted(coverages.values(), key=place_of))


def counts(clauses: Iterable[ClauseCoverage]) -> dict[elements.Treatment, int]:
    """The number of clauses with each treatment, including zeros."""
    counted = Counter(clause.treatment for clause in clauses)
    return {treatment: counted[treatment] for treatment in elements.Treatment}


def _unenforced(compiled: Compiled) -> dict[tuple[str, str], elements.Acceptance | None]:
    """The clauses that state a check and are not enforced, with their acceptance."""
    refusals = sorted(compiled.unenforced, key=lambda refused: refused.acceptance is not None)
    return {_key(clause): refused.acceptance for refused in refusals for clause in refused.clauses}


def _key(clause: elements.Clause | ClauseCoverage) -> tuple[str, str]:
    return clause.span.file, clause.path


Unsupported: TypeAlias = Literal["error", "warn"]
"""The treatment of clauses that state a check and cannot be enforced."""

_MOST_NOT_UNDERSTOOD = 20


@dataclass(frozen=True, slots=True)
class Enforced:
    """The suite that enforces a contract over given datasets.

    `checked` is the suite as a tree, `objections` are requirements that the datasets do not meet.
    """

    suite: values.SourceFile
    checked: Checked
    contract: values.EnforcedContract
    objections: tuple[str, ...]

    @property
    def account(self) -> tuple[str, ...]:
        """The clauses that no assertion checks, one line each; first clauses that state a check."""
        contract = self.contract
        return tuple(map(unenforced_line, contract.unenforced)) + contract.not_understood


@dataclass(frozen=True, slots=True)
class Enforcement:
    """A contract to be enforced, or the reasons why it must not be.

    `contract` is None if the document has errors. `refused` are the reasons why the contract cannot
    be relied on: another version than the pinned one, or a contract past its end. `warnings` are
    less severe objections to its state.
    """

    source: values.SourceFile
    contract: elements.Contract | None
    refused: tuple[str, ...]
    warnings: tuple[str, ...]
    diagnostics: tuple[Diagnostic, ...]
    sources: Mapping[str, str]
    pin: str | None = None

    @property
    def errors(self) -> tuple[Diagnostic, ...]:
        return errors_of(self.diagnostics)

    def over(
        self,
        datasets: Sequence[values.DatasetRef],
        *,
        on: date | None = None,
        unsupported: Unsupported = "error",
    ) -> Enforced:
        """The suite over these datasets. Clauses that compare days need a dataset with dates.

        :param on: the date of the data.
        :param unsupported: the treatment of clauses that state a check and cannot be enforced:
            "error", or "warn" to accept them.
        """
        contract = self.contract
        assert contract is not None
        name = f"{self.source.name} (compiled)"
        compiled = compile_contract(contract, datasets, on=on, name=name)
        clauses = coverage(contract, compiled)
        document = _Document.of(contract, self.sources)
        enforced = values.EnforcedContract(
            contract.id,
            contract.version,
            contract.dialect.value,
            tuple(document.enforced(compiled)),
            sources=tuple(
                values.SourceFile(file, text)
                for file, text in self.sources.items()
                if len(text) <= LONGEST_KEPT_SOURCE
            ),
            pin=self.pin,
            unenforced=tuple(document.unenforced(compiled, unsupported)),
            responsible=contract.responsible,
            not_understood=_not_understood(clauses, compiled),
            name=contract.name,
            description=contract.description,
            status=contract.lifecycle.written_status or contract.lifecycle.status,
            **{treatment.value: number for treatment, number in counts(clauses).items()},
        )
        objections = _objections(compiled.checked.valid_suite, enforced, datasets)
        suite = values.SourceFile(name, compiled.text)
        return Enforced(suite, compiled.checked, enforced, objections)

    def of_models(self, models: Sequence[str], *, is_strict: bool = False) -> Enforcement:
        """The enforcement of some of the models; if it is strict, columns that the models do not
        list are violations."""
        assert self.contract is not None
        return replace(self, contract=_restricted(self.contract, models, is_strict=is_strict))

    def narrowed(self, is_kept: Callable[[Demand], bool]) -> Enforcement:
        """The same with only the rules whose demand is kept."""
        assert self.contract is not None
        models = (model.narrowed(is_kept) for model in self.contract.models)
        notes = tuple(replace(note, promise=None) for note in self.contract.notes)
        return replace(self, contract=replace(self.contract, models=tuple(models), notes=notes))


def _not_understood(clauses: Iterable[ClauseCoverage], compiled: Compiled) -> tuple[str, ...]:
    """A line for each clause that is not checked and states no check."""
    reported = _unenforced(compiled)
    lines = [
        f"not checked: {clause.path}: {clause.reason}"
        for clause in clauses
        if clause.treatment is elements.Treatment.UNSUPPORTED and _key(clause) not in reported
    ]
    more = len(lines) - _MOST_NOT_UNDERSTOOD
    rest = (f"not checked: {more} more; see `dql contract coverage`",) if more > 0 else ()
    return (*lines[:_MOST_NOT_UNDERSTOOD], *rest)


@dataclass(frozen=True, slots=True)
class _Document:
    """The lines of a contract by file, and the model and the field of each rule by its `id`."""

    lines: Mapping[str, Sequence[str]]
    owners: Mapping[int, tuple[elements.Model, elements.Field | None]]

    @classmethod
    def of(cls, contract: elements.Contract, sources: Mapping[str, str]) -> _Document:
        return cls(
            {file: text.split("\n") for file, text in sources.items()},
            {id(rule): (model, item) for model, item, rule in contract.rules()},
        )

    def enforced(self, compiled: Compiled) -> Iterator[values.EnforcedClause]:
        """The first clause of each rule with an assertion."""
        for name, rule in compiled.enforced:
            for clause in rule.clauses[:1]:
                yield values.EnforcedClause(name, **self._about(clause, rule))

    def unenforced(
        self, compiled: Compiled, unsupported: Unsupported
    ) -> Iterator[values.UnenforcedClause]:
        """The first clause of each check that no assertion makes."""
        for refused in compiled.unenforced:
            for clause in refused.clauses[:1]:
                yield values.UnenforcedClause(
                    refused.name,
                    dataset=refused.dataset,
                    severity=refused.severity,
                    reason=refused.reason,
                    let_by=_let_by(refused, unsupported),
                    is_accepted=refused.acceptance is not None,
                    **self._about(clause, refused.source),
                )

    def _about(
        self, clause: elements.Clause, source: elements.Rule | elements.Promise | None
    ) -> dict[str, Any]:
        """The position of a clause, and the properties of its rule, with the tags and ids of its
        field and model as written."""
        owners = [owner for owner in self.owners.get(id(source), ()) if owner is not None]
        tagged = [owner.tags for owner in (source, *owners) if owner is not None]
        return {
            "path": clause.path,
            "span": clause.span,
            "line": self.lines[clause.span.file][clause.span.line - 1],
            "id": source.id if source else None,
            "tags": tuple(dict.fromkeys(tag for tags in tagged for tag in tags)),
            "dimension": dimension_of(source) if source else None,
            "element_ids": tuple(owner.id for owner in owners if owner.id is not None),
        }


def _let_by(unenforced: Unenforced, unsupported: Unsupported) -> str | None:
    """Who accepted a clause that is not enforced."""
    if (accepted := unenforced.acceptance) is not None:
        return f"{accepted.owner}: {accepted.reason}"
    return None if unsupported == "error" else f"unsupported={unsupported}"


def enforce(
    source: values.SourceFile,
    read: FileReader = no_files,
    *,
    on: date | None,
    expect_version: str | None = None,
    models: Sequence[str] = (),
    is_strict: bool = False,
    variables: Mapping[str, str] = MappingProxyType({}),
) -> Enforcement:
    """Reads a contract, and determines whether it can be enforced.

    :param on: the date on which the contract is relied on; None skips the check of its end.
    :param expect_version: the pinned version: `2`, `2.3` or `2.3.0`.
    :param models: the models to enforce; all of them by default.
    :param is_strict: columns that a model does not list are violations for every model.
    :param variables: the values of the variables in the contract.
    """
    document = read_contract(source, read, variables=variables)
    contract = document.contract
    if contract is None or document.errors:
        return Enforcement(source, None, (), (), document.diagnostics, document.sources)
    refused: list[str] = []
    warnings: list[str] = []
    if expect_version is not None:
        refused += filter(None, [objection_to_version(contract, expect_version, models)])
    if on is not None and (state := lifecycle_status(contract, on)) is not None:
        (refused if state.is_refused else warnings).append(state.message)
    for name in models:
        if contract.model(name) is None:
            hint = did_you_mean(name, [model.name for model in contract.models])
            refused.append(f"{contract.id} has no model '{name}': {hint}")
    return Enforcement(
        source,
        _restricted(contract, models, is_strict=is_strict),
        tuple(refused),
        tuple(warnings),
        document.diagnostics,
        document.sources,
        expect_version,
    )


def _objections(
    suite: nodes.Suite, contract: values.EnforcedContract, datasets: Sequence[values.DatasetRef]
) -> tuple[str, ...]:
    """The requirements of a contract that the datasets of a gate do not meet."""
    found = check_datasets(suite, datasets)
    if not found:
        return ()
    clauses = {clause.assertion: clause.path for clause in contract.clauses}
    named = [
        (assertion.span.line, clauses.get(assertion.name.value, ""))
        for check in suite.checks
        for assertion in check.assertions
        if assertion.name is not None
    ]
    objections = []
    for diagnostic in found:
        paths = [path for line, path in named if line <= diagnostic.span.line and path]
        where = f"{paths[-1]}: " if paths else ""
        advice = "give it in `datasets`" if diagnostic.code == "E009" else diagnostic.help
        objections.append(f"{where}{diagnostic.message}; {advice}")
    return tuple(objections)


def _restricted(
    contract: elements.Contract, models: Sequence[str], *, is_strict: bool
) -> elements.Contract:
    """The contract with only these models and promises, all of them closed if it is strict.

    :param models: all of them if it is empty.
    """
    if models:
        kept = tuple(model for model in contract.models if model.name in models)
        excluded = {model.name for model in contract.models if model.name not in models}
        notes = (
            replace(note, promise=None) if note.promise and note.promise.model in excluded else note
            for note in contract.notes
        )
        contract = replace(contract, models=kept, notes=tuple(notes))
    if is_strict:
        contract = replace(contract, models=tuple(map(_closed, contract.models)))
    return contract


def _closed(model: elements.Model) -> elements.Model:
    if any(isinstance(rule.demand, OnlyColumns) for rule in model.rules):
        return model
    only = elements.Rule("only_columns", OnlyColumns(), ())
    return replace(model, rules=(*model.rules, only), is_closed=True)


_TEXT_FORMATS = ("csv", "json")
_MERGED_FORMATS = ("parquet", "orc")
_WITH_TABLES = ("databricks", "fabric", "hive", "glue", "trino", "spark", "unity", "iceberg")
"""The types of servers whose data Spark reads by the name of a table."""
_WITH_FILES = ("local", "s3", "azure", "gcs", "adls", "hdfs", "sftp", "file")
"""The types of servers whose data Spark reads by the path of files."""
_INACCESSIBLE = (
    "kafka",
    "pubsub",
    "kinesis",
    "postgres",
    "mysql",
    "snowflake",
    "bigquery",
    "redshift",
    "oracle",
    "sqlserver",
    "api",
    "custom",
)
"""The types of servers whose data has neither the name of a table in Spark nor a path."""
_FOLDERS_BELOW = "/{,*/,*/*/,*/*/*/}"
"""The replacement of `/**/` in globs of Spark: the folder itself, and its subfolders, three levels
deep."""


def dataset_settings(
    contract: elements.Contract,
    given: Mapping[str, Any],
    server: str | None = None,
    of_formats: Mapping[str, Mapping[str, str]] = MappingProxyType({}),
) -> dict[str, Any]:
    """The dataset settings of a contract, by the names in its suite.

    `given` settings win over the server; settings that only the contract contains (keys, the
    columns of text files) are added if they are not given. Columns that it masks stay masked.

    :param of_formats: the options of all files of a format. For files at a given location they win
        over the options of the server.
    :raises RequestError: the contract has no such server, or the location of a model is unknown.
    """
    chosen = _server(contract, server)
    settings: dict[str, Any] = {}
    for model in contract.models:
        place = given.get(model.name)
        if isinstance(place, Mapping) and place.get("conn_id"):
            has_place = any(place.get(key) for key in ("path", "table", "query"))
            place = place if has_place else {**place, "table": _table_on(contract, model, chosen)}
        if place is None:
            place = _place_of(model, chosen) if chosen is not None else _table_of(contract, model)
        if place is not None:
            settings[model.name] = place
    # The first dataset of a gate is its subject: referenced models come after it.
    settings |= {name: place for name, place in given.items() if name not in settings}
    missing = [model.name for model in contract.models if model.name not in settings]
    if missing:
        message = f"the location of {', '.join(missing)} is unknown"
        raise RequestError(message, _where_to_say_it(contract, chosen, missing[0]))
    return _as_contract_says(contract, settings, chosen, of_formats, given)


def datasets_as_contract_says(
    contract: elements.Contract, refs: Iterable[values.DatasetRef], server: str | None = None
) -> tuple[values.DatasetRef, ...]:
    """The datasets with the settings of the contract for reading them, as in a gate that is given
    their settings.

    :param server: the server whose options apply to files of its format, by default the only one.
    :raises RequestError: the contract has no such server.
    """
    given = {ref.name: ref for ref in refs}
    settings = _as_contract_says(contract, given, _server(contract, server))
    return tuple(dataset_ref(name, stated) for name, stated in settings.items())


def _as_contract_says(
    contract: elements.Contract,
    given: Mapping[str, Any],
    server: elements.Server | None,
    of_formats: Mapping[str, Mapping[str, str]] = MappingProxyType({}),
    elsewhere: Collection[str] = (),
) -> dict[str, Any]:
    """The settings of datasets, completed from the contract. Only this function decides how the
    data of a contract is read: for gates, commands and Python.

    :param elsewhere: the datasets that are not on the server.
    """
    settings = dict(given)
    for model in contract.models:
        stated = _as_settings(given.get(model.name))
        if stated is None:
            continue
        format_name = stated.get("format")
        known = known_of(model, file_format=format_name)
        settings[model.name] = known | stated
        if masked := (*known.get("masked", ()), *_columns(stated.get("masked", ()))):
            # A gate may mask more than its contract, never less.
            settings[model.name]["masked"] = list(dict.fromkeys(masked))
        defaults = _options_of(server, format_name)
        if model.name in elsewhere:
            defaults |= of_formats.get(format_name or "", {})
        defaults |= known.get("options", {})
        if defaults:
            settings[model.name]["options"] = beside(defaults, dict(stated.get("options", ())))
    return settings


def _options_of(server: elements.Server | None, format_name: str | None) -> dict[str, str]:
    """The options for reading the text files of a server, which also apply to files at another
    location. Options with a dot belong to the location, and are left out."""
    if server is None or format_name not in _TEXT_FORMATS or format_name != _format_on(server):
        return {}
    return {name: text for name, text in server.options if "." not in name}


def _format_on(server: elements.Server) -> str | None:
    return server.format or format_of(server.location or "")


def known_of(model: elements.Model, *, file_format: str | None) -> dict[str, Any]:
    """The dataset settings in a model: keys, masked columns, the columns of its files."""
    known: dict[str, Any] = {}
    if model.key:
        known["keys"] = list(map(elements.plain_name, model.key))
    if masked := [
        item.name for item in model.fields if any(inner.is_sensitive for inner in item.walk())
    ]:
        known["masked"] = masked
    if file_format in _TEXT_FORMATS and model.fields:
        known["schema"] = spark_schema(model)
    if file_format in _MERGED_FORMATS:
        # Otherwise Spark takes the columns of one file for the columns of all files.
        known["options"] = {"mergeSchema": "true"}
    return known


def _as_settings(given: Any) -> dict[str, Any] | None:
    """A dataset as a mapping of settings; None for one that the checks of datasets reject."""
    if isinstance(given, values.DatasetRef):
        given = settings_of(given)
    elif isinstance(given, str | os.PathLike):
        text = os.fspath(given)
        given = {"path" if "/" in text or isinstance(given, os.PathLike) else "table": text}
    if not isinstance(given, Mapping):
        return None
    settings = {key: value for key, value in given.items() if value not in (None, "", ())}
    if format_name := format_of(str(settings.get("path", ""))):
        settings.setdefault("format", format_name)
    return settings


def _columns(given: Any) -> list[str]:
    """The columns of a setting: a list, or a comma-separated string."""
    if isinstance(given, str):
        return [column for part in given.split(",") if (column := part.strip())]
    return list(given)


def _server(contract: elements.Contract, name: str | None) -> elements.Server | None:
    """The server with a name; without a name, the only server."""
    if name is None:
        return contract.servers[0] if len(contract.servers) == 1 else None
    servers = {server.name: server for server in reversed(contract.servers)}
    if name not in servers:
        hint = did_you_mean(name, [server.name for server in contract.servers])
        hint = hint or "the contract has no server: give the datasets"
        raise RequestError(f"the contract {contract.id} has no server '{name}'", hint)
    return servers[name]


def _place_of(model: elements.Model, server: elements.Server) -> dict[str, Any] | None:
    """The dataset settings of a model on a server; None if Spark cannot access it."""
    location = server.location or model.location
    if location is None or server.type in _INACCESSIBLE:
        return None
    location = location.replace("{model}", model.location or model.name)
    if server.type in _WITH_TABLES and "/" not in location:
        return {"table": location}
    if server.type in _WITH_FILES or "/" in location:
        options = dict(server.options)
        files = location.replace("/**/", _FOLDERS_BELOW)
        path = spark_location(files, has_endpoint=S3A_ENDPOINT in options)
        settings: dict[str, Any] = {"path": path}
        format_name = server.format or format_of(location)
        if format_name in values.FORMATS:
            settings["format"] = format_name
        if options:
            settings["options"] = options
        return settings
    return {"table": location} if server.type == "table" else None


def _table_on(
    contract: elements.Contract, model: elements.Model, server: elements.Server | None
) -> str:
    """The name of the table of a model in a database, with the qualifiers of its server.

    :raises RequestError: no server determines it.
    """
    if server is None or server.type not in DATABASES:
        raise RequestError(
            f"the dataset {model.name} has a conn_id but no table, "
            f"and the contract {contract.id} has no database for it",
            "add table=SCHEMA.TABLE, or choose the server",
        )
    name = model.location or model.name
    location = (server.location or "{model}").replace("{model}", name)
    # The name of a database is part of the connection.
    return ".".join(location.split(".")[-2:]) if DATABASES[server.type].default_schema else name


def _table_of(contract: elements.Contract, model: elements.Model) -> dict[str, Any] | None:
    """The dataset settings of a model with a schema in its table name, if the contract has no
    servers."""
    named = model.location or ""
    is_table = "." in named and "/" not in named and not contract.servers
    return {"table": named} if is_table else None


def _where_to_say_it(contract: elements.Contract, server: elements.Server | None, name: str) -> str:
    if server is not None and server.type in DATABASES:
        return (
            f"Spark reads the server '{server.name}' of type {server.type} over JDBC: set conn_id "
            f"of the dataset {name} to the id of a connection with its credentials"
        )
    if server is not None:
        return (
            f"Spark does not read the server '{server.name}' of type {server.type}: "
            f"give the dataset {name}"
        )
    if contract.servers:
        names = ", ".join(candidate.name for candidate in contract.servers)
        return f"choose one of the servers {names}, or give the dataset {name}"
    return f"the contract has no server: give the dataset {name}"
