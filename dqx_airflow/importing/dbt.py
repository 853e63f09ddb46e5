"""dbt: reads the generic tests of `schema.yml`, with dbt-utils, dbt-expectations and Elementary.

Tests of dbt-expectations are translated like the expectations of Great Expectations. `where`
becomes a filter, `severity: warn` becomes P3, and so does `warn_if` next to `error_if`. Constraints
of a model are rules as well. Singular tests are SQL files, and not supported.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from dqx_airflow.contracts import demands
from dqx_airflow.contracts.dialects.foreign import Translation
from dqx_airflow.errors import NoCounterpartError
from dqx_airflow.importing import dbt_tests, foreign_rule
from dqx_airflow.importing.dbt_tests import ANY_ROW, PERIOD_S, Arguments
from dqx_airflow.importing.foreign_rule import ForeignRule, ImportRequest, column_text, yaml_line
from dqx_airflow.values import Severity

_KINDS_OF_NODES = ("models", "seeds", "snapshots")
_TESTS = ("data_tests", "tests")
_CONFIG = ("where", "severity", "error_if", "warn_if", "limit", "enabled", "tags", "store_failures")
_REMARKS = ("name", "description", "meta", "config", "arguments", "test_name")


def recognises(document: Any) -> bool:
    return isinstance(document, Mapping) and any(
        isinstance(document.get(kind), list) for kind in (*_KINDS_OF_NODES, "sources")
    )


def rules_of(document: Mapping[str, Any], request: ImportRequest) -> Iterator[ForeignRule]:
    for kind in _KINDS_OF_NODES:
        for node in _mappings(document.get(kind)):
            for name, one in _versions_of(node):
                yield from _of_node(one, request, f"{kind}.{name}")
    for source in _mappings(document.get("sources")):
        place = f"sources.{source.get('name')}"
        dataset = request.dataset or str(source.get("name"))
        yield from _unknown_keys(source, "sources", dataset, f"{request.file}: {place}")
        for table in _mappings(source.get("tables")):
            node = {**_freshness_of(source), **table, **_freshness_of(table)}
            yield from _of_node(node, request, f"{place}.{table.get('name')}")


def _freshness_of(owner: Mapping[str, Any]) -> dict[str, Any]:
    """The keys about freshness of a source or table, from its `config` or beside it."""
    config = owner.get("config")
    written = {**owner, **config} if isinstance(config, Mapping) else owner
    return {key: written[key] for key in _OF_FRESHNESS if key in written}


_OF_FRESHNESS = ("freshness", "loaded_at_field", "loaded_at_query")


def _versions_of(node: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """A model by its position in the file; if it has versions, each of them, by the name of its
    table. A version has the columns, tests and constraints of the model, unless it has its own."""
    name = str(node.get("name"))
    versions = _mappings(node.get("versions"))
    if not versions:
        yield name, node
    for version in versions:
        number = version.get("v")
        shared = dict(node)
        del shared["versions"]
        if any(key in version for key in _TESTS):
            shared = {key: value for key, value in shared.items() if key not in _TESTS}
        merged = {**shared, **version, "columns": _columns_of(node, version)}
        yield f"{name}.versions.{number}", {**merged, "name": f"{name}_v{number}"}


def _columns_of(node: Mapping[str, Any], version: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The columns of a version: columns of the model by `include` and `exclude`, and its own. A
    column may be in both: its tests are those of both, as in dbt, and its type is the last one."""
    included: Any = "all"
    excluded: list[Any] = []
    own = []
    for column in _mappings(version.get("columns")):
        if "include" in column or "exclude" in column:
            included = column.get("include", "all")
            excluded = column.get("exclude") or []
        else:
            own.append(column)
    kept = [
        column
        for column in _mappings(node.get("columns"))
        if (included in ("all", "*") or column.get("name") in included)
        and column.get("name") not in excluded
    ]
    return [*kept, *own]


def _unknown_keys(
    owner: Mapping[str, Any], kind: str, dataset: str, place: str
) -> Iterator[ForeignRule]:
    """What a source, a table or a column has beside the keys of dbt, which may be a misspelled
    test, or a kind of rules of a later version."""
    known = foreign_rule.listed_rules(f"dbt: keys of {kind}")
    for key, value in owner.items():
        if key not in known and value not in (None, False, [], {}):
            reason = foreign_rule.unknown_key(str(key), f"{kind} in dbt", known)
            yield ForeignRule(dataset, f"{place}.{key}", f"{key}: {yaml_line(value)}", reason)


def _mappings(items: object) -> list[Mapping[str, Any]]:
    listed = items if isinstance(items, list) else []
    return [item for item in listed if isinstance(item, Mapping)]


def _of_node(node: Mapping[str, Any], request: ImportRequest, place: str) -> Iterator[ForeignRule]:
    """The rules of a model, a seed, a snapshot or a table of a source. The first one that has a
    counterpart reports another name of the table."""
    difference = _other_name(node)
    for rule in _rules_of_node(node, request, place):
        if difference is None or isinstance(rule.meaning, str):
            yield rule
            continue
        both = "; ".join(filter(None, (rule.difference, difference)))
        yield replace(rule, difference=both)
        difference = None


def _other_name(node: Mapping[str, Any]) -> str | None:
    """The name of the table of a node in the database, if it is not the one of the node."""
    config = node.get("config")
    written = {**node, **config} if isinstance(config, Mapping) else node
    other = written.get("alias") or written.get("identifier")
    if other is None or other == node.get("name"):
        return None
    return f"dbt reads the table {other}: give the dataset {node.get('name')} this table"


def _rules_of_node(
    node: Mapping[str, Any], request: ImportRequest, place: str
) -> Iterator[ForeignRule]:
    dataset = request.dataset or str(node.get("name"))
    at = f"{request.file}: {place}"
    yield from _unknown_keys(node, "nodes", dataset, at)
    for column in _mappings(node.get("columns")):
        of_column = f"{at}.columns.{column.get('name')}"
        yield from _unknown_keys(column, "columns", dataset, of_column)
        for number_, test in enumerate(_tests(column)):
            inside = f"{of_column}.tests[{number_}]"
            yield from _rules(test, str(column.get("name")), dataset, inside)
    for number_, test in enumerate(_tests(node)):
        yield from _rules(test, None, dataset, f"{at}.tests[{number_}]")
    yield from _freshness(node, dataset, f"{at}.freshness")
    yield from _constraints(node, dataset, at)
    yield from _contract(node, dataset, f"{at}.contract")


def _contract(node: Mapping[str, Any], dataset: str, place: str) -> Iterator[ForeignRule]:
    """The rule of an enforced contract: the table has the columns of the file with their types, and
    no others."""
    config = node.get("config")
    merged = {**node, **config} if isinstance(config, Mapping) else node
    contract = merged.get("contract")
    if not isinstance(contract, Mapping) or contract.get("enforced") is not True:
        return

    def claims() -> foreign_rule.Claims:
        written = {it.get("name"): it.get("data_type") for it in _mappings(node.get("columns"))}
        types = [(name, foreign_rule.type_text(kind)) for name, kind in written.items()]
        found = foreign_rule.typed_columns(types, has_others=False)
        return replace(found, texts=(*found.texts, *foreign_rule.length_claims(written.items())))

    meaning = foreign_rule.meaning_or_reason(claims, "contract")
    yield ForeignRule(dataset, place, f"contract {yaml_line(contract)}", meaning)


def _tests(owner: Mapping[str, Any]) -> list[Any]:
    return [test for key in _TESTS for test in owner.get(key) or []]


def _constraints(node: Mapping[str, Any], dataset: str, at: str) -> Iterator[ForeignRule]:
    """The constraints of a model and of its columns."""
    owners = [(node, None, at)]
    for column in _mappings(node.get("columns")):
        owners.append((column, column.get("name"), f"{at}.columns.{column.get('name')}"))
    for owner, name, place in owners:
        for number_, constraint in enumerate(_mappings(owner.get("constraints"))):
            listed = constraint.get("columns") or [name]
            meaning = foreign_rule.meaning_or_reason(
                partial(_constraint, constraint, listed), "constraint"
            )
            where = f"{place}.constraints[{number_}]"
            yield ForeignRule(dataset, where, f"constraint {yaml_line(constraint)}", meaning)


def _constraint(constraint: Mapping[str, Any], names: list[Any]) -> Translation:
    kind = str(constraint.get("type"))
    expression = constraint.get("expression")
    if kind == "check":
        return Translation("check", (demands.RowsSatisfy(foreign_rule.sql_text(expression)),))
    columns = tuple(column_text(name) for name in names)
    about = columns[0] if len(columns) == 1 else None
    required = tuple(
        demands.MetricRule("null_count", (column,), demands.Condition("==", 0))
        if about is None
        else demands.Required()
        for column in columns
    )
    match kind:
        case "not_null":
            return Translation(kind, required, about)
        case "unique":
            return Translation(kind, (demands.Unique(columns),), about)
        case "primary_key":
            return Translation(kind, (*required, demands.Unique(columns)), about)
        case "foreign_key" if constraint.get("to") and constraint.get("to_columns"):
            table = Arguments(dict(constraint), about, "data").relation("to")
            other_columns = tuple(column_text(column) for column in constraint["to_columns"])
            return Translation(kind, (demands.Refers(columns, table, other_columns),), about)
    raise NoCounterpartError(f"a {kind} in the SQL of the database has no counterpart")


def _freshness(node: Mapping[str, Any], dataset: str, place: str) -> Iterator[ForeignRule]:
    freshness = node.get("freshness")
    if not isinstance(freshness, Mapping):
        return
    for key, severity in (("error_after", None), ("warn_after", Severity.P3)):
        age = freshness.get(key)
        if not isinstance(age, Mapping):
            continue
        meaning: foreign_rule.Meaning | str = "it needs a count and a period"
        difference = None
        if node.get("loaded_at_query"):
            meaning = "its loaded_at_query has no counterpart: write a loaded_at_field"
            yield ForeignRule(dataset, place, f"freshness {key} {yaml_line(age)}", meaning)
            continue
        match age, node.get("loaded_at_field"):
            case {"count": int(count), "period": str(period)}, None if period in PERIOD_S:
                limit = f"{count} {period}{'' if count == 1 else 's'}"
                meaning = foreign_rule.Claims("freshness", (f"commit_age() <= {limit}",))
                difference = "the age is measured from the last commit to a Delta table"
            case {"count": int(count), "period": str(period)}, str(field) if period in PERIOD_S:
                path = column_text(field)
                meaning = Translation(
                    "freshness", (demands.Fresh(path, count * PERIOD_S[period]),), path
                )
        shown, where = f"freshness {key} {yaml_line(age)}", str(freshness.get("filter") or "")
        rule = ForeignRule(dataset, place, shown, meaning, severity=severity, where=where or None)
        yield replace(rule, difference=difference)


def _rules(test: object, column: str | None, dataset: str, place: str) -> Iterator[ForeignRule]:
    """The rule of a test; two rules if it warns and fails at different numbers of rows."""
    shown = test if isinstance(test, str) else yaml_line(test)
    if isinstance(test, str):
        test = {test: {}}
    if not isinstance(test, Mapping) or not test:
        yield ForeignRule(dataset, place, shown, "this is not a test")
        return
    kind, given = _kind_and_keys(test)
    config = {**given, **(given.get("config") or {})}
    arguments = _arguments_of(given)
    own_conditions = (arguments.pop(key, None) for key in ("row_condition", "where_expression"))
    where = foreign_rule.all_hold(config.get("where"), *own_conditions)
    named = str(given["name"]) if isinstance(given.get("name"), str) else None
    for fails_if, severity in _limits(config):
        rule = ForeignRule(dataset, place, shown, "", severity=severity)
        try:
            _refuse_config(config)
            _refuse_templates(arguments, where)
            rest = dict(arguments)
            groups = dbt_tests.groups_of(kind, rest)
            meaning = dbt_tests.meaning_of(kind, Arguments(rest, column, dataset), fails_if)
        except foreign_rule.REFUSALS as refusal:
            yield replace(rule, meaning=f"{kind}: {foreign_rule.reason_of(refusal)}")
            continue
        difference = dbt_tests.difference_of(kind, arguments, is_grouped=bool(groups))
        rule = replace(rule, meaning=meaning, name=named, where=where)
        yield replace(rule, groups=groups, difference=difference)


def _kind_and_keys(test: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    """The kind of a test, and the keys written for it, which may be below the kind or beside it."""
    if "test_name" in test:
        return str(test["test_name"]), test
    kind, written = next(iter(test.items()))
    below = written if isinstance(written, Mapping) else {}
    beside = {key: value for key, value in test.items() if key in _REMARKS}
    return kind, {**below, **beside}


def _arguments_of(given: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments among the keys of a test, or below the key `arguments`."""
    nested = given.get("arguments")
    written = {**given, **nested} if isinstance(nested, Mapping) else given
    return {key: value for key, value in written.items() if key not in (*_CONFIG, *_REMARKS)}


def _refuse_config(config: Mapping[str, Any]) -> None:
    """:raises NoCounterpartError: the test does not run, or does not count rows."""
    if config.get("enabled") is False:
        raise NoCounterpartError("the test is disabled")
    if config.get("fail_calc"):
        raise NoCounterpartError("it counts its failures by a fail_calc of its own")


_OF_OTHER_MODELS = ("to", "compare_model", "other_model", "column_type", "column_type_list")
"""The arguments with a template that is read, or has a reason of its own."""
_PLACEHOLDER = re.compile(r"\b__[A-Za-z]\w*__\b")


def _refuse_templates(arguments: Mapping[str, Any], where: str | None) -> None:
    """:raises NoCounterpartError: a value depends on a variable of dbt, or a macro of the project
    replaces a part of the filter."""
    for key, value in arguments.items():
        written = value if isinstance(value, str) else yaml_line(value)
        template = foreign_rule.VARIABLE.search(written)
        if template is not None and key not in _OF_OTHER_MODELS:
            raise NoCounterpartError(f"write the value of {template[0]} in its {key}")
    if (placeholder := _PLACEHOLDER.search(where or "")) is not None:
        raise NoCounterpartError(
            f"its filter has the placeholder {placeholder[0]}, which a macro replaces: write its "
            "value, or for the newest rows leave it out, since a gate checks one day"
        )


def _limits(config: Mapping[str, Any]) -> list[tuple[str, Severity | None]]:
    """The number of rows at which a test fails, and the number at which it warns if it differs."""
    thresholds = [str(config.get(key) or ANY_ROW).strip() for key in ("error_if", "warn_if")]
    fails, warns = (
        ANY_ROW if threshold.replace(" ", "") in (">0", "!=0", ">=1") else threshold
        for threshold in thresholds
    )
    if str(config.get("severity", "error")).lower() == "warn":
        return [(warns, Severity.P3)]
    return [(fails, None)] if fails == warns else [(fails, None), (warns, Severity.P3)]
