"""dbt: the generic tests of `schema.yml`, with those of dbt-utils and dbt-expectations.

Tests of dbt-expectations are those of Great Expectations and translated like them. `where` becomes
a filter, `severity: warn` becomes P3. Singular tests are SQL files, and not read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from dqx_airflow.contracts.demands import (
    Bound,
    Complete,
    Condition,
    Demand,
    Fresh,
    MetricRule,
    OneOf,
    QueryGives,
    Refers,
    Required,
    RowsSatisfy,
    Unique,
)
from dqx_airflow.contracts.dialects.durations import DAY_S, HOUR_S, MINUTE_S
from dqx_airflow.contracts.dialects.foreign import Translation, great_expectations
from dqx_airflow.contracts.dialects.foreign.values import aggregate_query, sql_name
from dqx_airflow.metrics.derived import MOST_COMMON
from dqx_airflow.metrics.sql import quote_literal
from dqx_airflow.migration.documents import one_line
from dqx_airflow.migration.dql_text import column_text, columns_text, list_text, number, value_text
from dqx_airflow.migration.foreign_rule import Claims, ForeignRule, UntranslatableError
from dqx_airflow.migration.request import Request
from dqx_airflow.values import Severity

_KINDS_OF_NODES = ("models", "seeds", "snapshots")
_TESTS = ("data_tests", "tests")
_CONFIG = ("where", "severity", "error_if", "warn_if", "limit", "enabled", "tags", "store_failures")
_REMARKS = ("name", "description", "meta", "config", "arguments", "test_name")
_SECONDS = {"minute": MINUTE_S, "hour": HOUR_S, "day": DAY_S, "week": 7 * DAY_S}
_REF = re.compile(r"""\{?\{?\s*(?:ref|source)\((?P<names>[^)]*)\)\s*\}?\}?""")
_NONE = Condition("==", 0)
_FAILS_IF = re.compile(r"\s*(?P<op><=|>=|!=|==|=|<|>)\s*(?P<bound>\d+)\s*")
_EMPTY = "an empty table passes in dbt, and fails here"


def recognises(document: Any) -> bool:
    return isinstance(document, Mapping) and any(
        isinstance(document.get(kind), list) for kind in (*_KINDS_OF_NODES, "sources")
    )


def rules_of(document: Mapping[str, Any], request: Request) -> Iterator[ForeignRule]:
    for kind in _KINDS_OF_NODES:
        for node in _mappings(document.get(kind)):
            yield from _of_node(node, request, f"{kind}.{node.get('name')}")
    for source in _mappings(document.get("sources")):
        for table in _mappings(source.get("tables")):
            place = f"sources.{source.get('name')}.{table.get('name')}"
            yield from _of_node({**_freshness_of(source), **table}, request, place)


def _freshness_of(source: Mapping[str, Any]) -> dict[str, Any]:
    return {key: source[key] for key in ("freshness", "loaded_at_field") if key in source}


def _mappings(items: object) -> list[Mapping[str, Any]]:
    found = items if isinstance(items, list) else []
    return [one for one in found if isinstance(one, Mapping)]


def _of_node(node: Mapping[str, Any], request: Request, place: str) -> Iterator[ForeignRule]:
    dataset = request.dataset or str(node.get("name"))
    at = f"{request.file}: {place}"
    for column in _mappings(node.get("columns")):
        for number_, test in enumerate(_tests(column)):
            inside = f"{at}.columns.{column.get('name')}.tests[{number_}]"
            yield _rule(test, str(column.get("name")), dataset, inside)
    for number_, test in enumerate(_tests(node)):
        yield _rule(test, None, dataset, f"{at}.tests[{number_}]")
    yield from _freshness(node, dataset, f"{at}.freshness")


def _tests(owner: Mapping[str, Any]) -> list[Any]:
    return [test for key in _TESTS for test in owner.get(key) or []]


def _freshness(node: Mapping[str, Any], dataset: str, place: str) -> Iterator[ForeignRule]:
    given = node.get("freshness")
    if not isinstance(given, Mapping):
        return
    for key, severity in (("error_after", None), ("warn_after", Severity.P3)):
        age = given.get(key)
        if not isinstance(age, Mapping):
            continue
        meaning: Translation | str = "it has no loaded_at_field, count and period"
        match age, node.get("loaded_at_field"):
            case {"count": int(count), "period": str(period)}, str(field) if period in _SECONDS:
                path = column_text(field)
                meaning = Translation("freshness", (Fresh(path, count * _SECONDS[period]),), path)
        shown = f"freshness {key} {one_line(age)}"
        yield ForeignRule(
            dataset,
            place,
            shown,
            meaning,
            severity=severity,
            where=str(given["filter"]) if given.get("filter") else None,
        )


def _rule(test: object, column: str | None, dataset: str, place: str) -> ForeignRule:
    shown = test if isinstance(test, str) else one_line(test)
    if isinstance(test, str):
        test = {test: {}}
    if not isinstance(test, Mapping) or not test:
        return ForeignRule(dataset, place, shown, "this is not a test")
    if "test_name" in test:
        kind, given = str(test["test_name"]), test
    else:
        kind, found = next(iter(test.items()))
        given = found if isinstance(found, Mapping) else {}
        given = {**given, **{k: v for k, v in test.items() if k in _REMARKS}}
    config = {**given, **(given.get("config") or {})}
    nested = given.get("arguments")
    asked = nested if isinstance(nested, Mapping) else given
    arguments = {key: value for key, value in asked.items() if key not in (*_CONFIG, *_REMARKS)}
    try:
        if config.get("enabled") is False:
            raise UntranslatableError("the test is disabled")
        condition = arguments.pop("row_condition", None)
        meaning = _meaning(kind, _Arguments(arguments, column, dataset), config)
        severity = _severity(config)
    except UntranslatableError as error:
        return ForeignRule(dataset, place, shown, f"{kind}: {error}")
    filters = [f"({one})" for one in (config.get("where"), condition) if one]
    return ForeignRule(
        dataset,
        place,
        shown,
        meaning,
        name=str(given["name"]) if isinstance(given.get("name"), str) else None,
        severity=severity,
        where=" AND ".join(filters) or None,
        difference=_difference(kind),
    )


def _difference(kind: str) -> str | None:
    """When the verdicts of the two tools differ."""
    if kind.endswith(("recency", "sequential_values")):
        return _EMPTY
    bare = kind.rsplit(".", maxsplit=1)[-1]
    if bare in _ORDERS:
        return f"NULL is left out, where dbt compares nothing with it; {_EMPTY}"
    if bare == _MOST_COMMON:
        return f"NULL is left out; of equally common values, all have to be listed; {_EMPTY}"
    return None


def _severity(config: Mapping[str, Any]) -> Severity | None:
    return Severity.P3 if str(config.get("severity", "error")).lower() == "warn" else None


class _Arguments(dict[str, Any]):
    """The arguments of a test; `column` is the column that it stands at, if any."""

    def __init__(self, given: Mapping[str, Any], column: str | None, dataset: str) -> None:
        super().__init__(given)
        self.column = column
        self.dataset = column_text(dataset)

    @property
    def path(self) -> str:
        """:raises UntranslatableError: the test stands at no column, and names none."""
        return column_text(self.get("column_name") or self.column)

    @property
    def sql(self) -> str:
        return sql_name(self.path)

    def only(self, *known: str) -> None:
        """:raises UntranslatableError: there are others than these."""
        for key in self:
            if key not in known and key != "column_name":
                raise UntranslatableError(f"'{key}' has no counterpart")

    def relation(self, key: str) -> str:
        """The dataset that `ref('orders')` or `source('shop', 'orders')` names."""
        written = str(self.get(key) or "")
        found = _REF.search(written)
        names = found["names"] if found else written
        name = names.split(",")[-1].strip().strip("'\"").split(".")[-1]
        if not name:
            raise UntranslatableError(f"it has no {key}")
        return name

    def list_of(self, key: str) -> list[Any]:
        value = self.get(key)
        if not isinstance(value, list) or not value:
            raise UntranslatableError(f"it has no {key}")
        return value


_Meaning = Translation | Claims | str


def _meaning(kind: str, arguments: _Arguments, config: Mapping[str, Any]) -> _Meaning:
    limits = [key for key in ("error_if", "warn_if") if key in config]
    if "dbt_expectations." in kind or kind.startswith("expect_"):
        if limits:
            raise UntranslatableError(f"'{limits[0]}' has no counterpart")
        return _expectation(kind.rsplit(".", maxsplit=1)[-1], arguments)
    bare = kind.rsplit(".", maxsplit=1)[-1]
    if bare not in _GENERIC:
        raise UntranslatableError("it has no counterpart")
    demands = _GENERIC[bare](arguments)
    if isinstance(demands, Claims):
        if limits:
            raise UntranslatableError(f"'{limits[0]}' has no counterpart")
        return demands
    if limits:
        demands = _tolerant(demands, str(config[limits[0]]))
    about = arguments.path if arguments.column or "column_name" in arguments else None
    return Translation(bare, demands, about)


def _tolerant(demands: tuple[Demand, ...], fails_if: str) -> tuple[Demand, ...]:
    """The demands where a test fails at a number of rows alone, such as `> 10`."""
    found = _FAILS_IF.fullmatch(fails_if)
    opposite = {">": "<=", ">=": "<"}.get(found["op"]) if found else None
    match demands:
        case (Unique(),):
            raise UntranslatableError("a number of repeated values has no counterpart")
        case (RowsSatisfy(predicate, dialect),) if found and opposite:
            query = aggregate_query(f"count_if(NOT ({predicate}))")
            return (QueryGives(query, Condition(opposite, int(found["bound"])), dialect),)
    raise UntranslatableError("error_if and warn_if have no counterpart here")


def _expectation(kind: str, arguments: _Arguments) -> _Meaning:
    if kind in _ORDERS:
        return _in_order(kind, arguments)
    if kind == _MOST_COMMON:
        return _most_common(arguments)
    given = dict(arguments)
    strictly = given.pop("strictly", None)
    given.pop("group_by", None) if given.get("group_by") in (None, []) else None
    if strictly:
        given |= {"strict_min": "min_value" in given, "strict_max": "max_value" in given}
    if arguments.column is not None:
        given.setdefault("column", arguments.column)
    for written, meant in (("column_name", "column"), ("is_raw", ""), ("flags", "")):
        if written in given:
            value = given.pop(written)
            if meant:
                given[meant] = value
            elif value:
                raise UntranslatableError(f"'{written}' has no counterpart")
    return great_expectations.translate({"type": kind, "kwargs": given}, None)


_MOST_COMMON = "expect_column_most_common_value_to_be_in_set"
_ORDERS = {
    "expect_column_values_to_be_increasing": "decrease_count",
    "expect_column_values_to_be_decreasing": "increase_count",
}


def _in_order(kind: str, arguments: _Arguments) -> Claims:
    """That no value is smaller, or larger, than the one before; strictly so, if nothing else is
    written."""
    arguments.only("sort_column", "strictly", "group_by")
    column = arguments.path
    order = column_text(arguments.get("sort_column") or column)
    count = f"{_ORDERS[kind]}({column}, order_by {order})"
    if arguments.get("strictly", True):
        count += f" + unchanged_count({column}, order_by {order})"
    each = _for_each(arguments.get("group_by"))
    return Claims(
        kind.removeprefix("expect_column_values_to_be_"), (f"{count} == 0{each}",), column
    )


def _for_each(names: object) -> str:
    """That a claim is made of each group by some columns, if there are any."""
    if names in (None, []):
        return ""
    columns = columns_text(names if isinstance(names, list) else [names])
    return f" for each {columns if ',' not in columns else f'({columns})'}"


def _most_common(arguments: _Arguments) -> Claims:
    arguments.only("value_set", "top_n", "quote_values", "data_type", "strictly")
    column, listed = arguments.path, list_text(arguments.list_of("value_set"))
    most = value_text(number(arguments.get("top_n", 1)))
    return Claims("most_common", (f"{MOST_COMMON}({column}, {most}) in {listed}",), column)


# Generic tests -----------------------------------------------------------------------------------


def _not_null(arguments: _Arguments) -> tuple[Demand, ...]:
    arguments.only()
    return (Required(),)


def _unique(arguments: _Arguments) -> tuple[Demand, ...]:
    arguments.only()
    return (Unique((arguments.path,)),)


def _accepted_values(arguments: _Arguments) -> tuple[Demand, ...]:
    arguments.only("values", "quote")
    values = arguments.list_of("values")
    if arguments.get("quote") is not False:
        # dbt compares strings unless told otherwise, and casts what it compares with.
        return (RowsSatisfy(f"{arguments.sql} IN ({_strings(values)})"),)
    return (OneOf(tuple(values)),)


def _not_accepted_values(arguments: _Arguments) -> tuple[Demand, ...]:
    arguments.only("values", "quote")
    return (RowsSatisfy(f"{arguments.sql} NOT IN ({_strings(arguments.list_of('values'))})"),)


def _strings(values: list[Any]) -> str:
    return ", ".join(quote_literal(value) for value in values)


def _relationships(arguments: _Arguments) -> tuple[Demand, ...]:
    arguments.only("to", "field")
    return (
        Refers((arguments.path,), arguments.relation("to"), (column_text(arguments.get("field")),)),
    )


def _expression_is_true(arguments: _Arguments) -> tuple[Demand, ...]:
    arguments.only("expression")
    expression = str(arguments.get("expression") or "")
    if not expression:
        raise UntranslatableError("it has no expression")
    if arguments.column is not None:
        expression = f"{arguments.sql} {expression}"
    return (RowsSatisfy(expression),)


def _not_empty_string(arguments: _Arguments) -> tuple[Demand, ...]:
    arguments.only("trim_whitespace")
    trimmed = arguments.get("trim_whitespace", True)
    value = f"trim({arguments.sql})" if trimmed else arguments.sql
    return (RowsSatisfy(f"{value} <> ''"),)


def _accepted_range(arguments: _Arguments) -> tuple[Demand, ...]:
    arguments.only("min_value", "max_value", "inclusive")
    ends = "=" if arguments.get("inclusive", True) else ""
    demands: list[Demand] = []
    for key, sign in (("min_value", ">"), ("max_value", "<")):
        if (value := arguments.get(key)) is None:
            continue
        if isinstance(value, str):  # another column, or an expression
            demands.append(RowsSatisfy(f"{arguments.sql} {sign}{ends} {value}"))
        else:
            demands.append(Bound(f"{sign}{ends}", number(value)))
    if not demands:
        raise UntranslatableError("it has neither min_value nor max_value")
    return tuple(demands)


def _not_null_proportion(arguments: _Arguments) -> tuple[Demand, ...]:
    arguments.only("at_least", "at_most", "group_by_columns")
    if arguments.get("group_by_columns"):
        raise UntranslatableError("'group_by_columns' has no counterpart")
    demands: list[Demand] = [Complete(arguments.path, float(number(arguments.get("at_least", 0))))]
    if (most := arguments.get("at_most")) is not None and most < 1:
        least_null = Condition(">=", round(100 * (1 - float(number(most))), 9))
        demands.append(MetricRule("null_count", (arguments.path,), least_null, is_percent=True))
    return tuple(demands)


def _at_least_one(arguments: _Arguments) -> tuple[Demand, ...]:
    arguments.only()
    return (MetricRule("count", (arguments.path,), Condition(">", 0)),)


def _not_constant(arguments: _Arguments) -> tuple[Demand, ...]:
    arguments.only()
    return (MetricRule("unique_count", (arguments.path,), Condition("!=", 1)),)


def _combination(arguments: _Arguments) -> tuple[Demand, ...]:
    arguments.only("combination_of_columns", "quote_columns")
    columns = arguments.list_of("combination_of_columns")
    names = ", ".join(sql_name(column_text(column)) for column in columns)
    # NULL counts as a value of a combination.
    query = aggregate_query(f"count(*) - count(DISTINCT struct({names}))")
    return (QueryGives(query, _NONE),)


def _recency(arguments: _Arguments) -> tuple[Demand, ...]:
    arguments.only("datepart", "field", "interval", "ignore_time_component")
    part = str(arguments.get("datepart"))
    if part not in _SECONDS or arguments.get("ignore_time_component"):
        raise UntranslatableError("it counts minutes, hours, days or weeks, with their time")
    age = number(arguments.get("interval")) * _SECONDS[part]
    return (Fresh(column_text(arguments.get("field")), age),)


def _sequential_values(arguments: _Arguments) -> Claims:
    arguments.only("interval", "datepart", "group_by_columns")
    interval, part = arguments.get("interval", 1), arguments.get("datepart")
    step = value_text(number(interval))
    if part is not None:
        if part not in _SECONDS:
            raise UntranslatableError(f"a step of a {part} has no counterpart")
        step = f"{step} {part}{'' if interval == 1 else 's'}"
    column = arguments.path
    each = _for_each(arguments.get("group_by_columns"))
    gaps = f"gap_count({column}, step {step}) == 0{each}"
    return Claims("sequential_values", (gaps, f"repeated_count({column}) == 0{each}"), column)


def _equal_rowcount(arguments: _Arguments) -> Claims:
    return _rows_against(arguments, "==")


def _fewer_rows_than(arguments: _Arguments) -> Claims:
    return _rows_against(arguments, "<")


def _rows_against(arguments: _Arguments, op: str) -> Claims:
    arguments.only("compare_model")
    other = column_text(arguments.relation("compare_model"))
    text = f"num_rows(dataset {arguments.dataset}) {op} num_rows(dataset {other})"
    return Claims("row_count", (text,), others=(other,))


_GENERIC: dict[str, Callable[[_Arguments], tuple[Demand, ...] | Claims]] = {
    "not_null": _not_null,
    "unique": _unique,
    "accepted_values": _accepted_values,
    "relationships": _relationships,
    "expression_is_true": _expression_is_true,
    "not_empty_string": _not_empty_string,
    "accepted_range": _accepted_range,
    "not_null_proportion": _not_null_proportion,
    "at_least_one": _at_least_one,
    "not_constant": _not_constant,
    "not_accepted_values": _not_accepted_values,
    "unique_combination_of_columns": _combination,
    "recency": _recency,
    "sequential_values": _sequential_values,
    "equal_rowcount": _equal_rowcount,
    "fewer_rows_than": _fewer_rows_than,
}
"""The tests of dbt and of dbt-utils, by the last part of their names."""
