"""dbt: the generic tests of `schema.yml`, with those of dbt-utils and dbt-expectations.

Tests of dbt-expectations are those of Great Expectations and translated like them. `where` becomes
a filter, `severity: warn` becomes P3, and so does `warn_if` beside `error_if`. Constraints of a
model are rules as well. Singular tests are SQL files, and not read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from dqx_airflow.contracts.demands import (
    AmongRows,
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
from dqx_airflow.contracts.dialects.foreign.values import predicate as value_predicate
from dqx_airflow.metrics.derived import MOST_COMMON
from dqx_airflow.metrics.sql import quote_literal
from dqx_airflow.migration.documents import one_line
from dqx_airflow.migration.double_quotes import spark_sql
from dqx_airflow.migration.dql_text import (
    column_text,
    columns_text,
    list_text,
    number,
    value_text,
)
from dqx_airflow.migration.foreign_rule import Claims, ForeignRule, UntranslatableError
from dqx_airflow.migration.request import ImportRequest
from dqx_airflow.values import Severity

_KINDS_OF_NODES = ("models", "seeds", "snapshots")
_TESTS = ("data_tests", "tests")
_CONFIG = ("where", "severity", "error_if", "warn_if", "limit", "enabled", "tags", "store_failures")
_REMARKS = ("name", "description", "meta", "config", "arguments", "test_name")
_SQL = ("expression", "compare_expression", "from_condition")
_SECONDS = {"minute": MINUTE_S, "hour": HOUR_S, "day": DAY_S, "week": 7 * DAY_S}
_REF = re.compile(r"""\{?\{?\s*(?:ref|source)\((?P<names>[^)]*)\)\s*\}?\}?""")
_NONE = Condition("==", 0)
_FAILS_IF = re.compile(r"\s*(?P<op><=|>=|!=|==|=|<|>)\s*(?P<bound>\d+)\s*")
_EMPTY = "an empty table passes in dbt, and fails here"


def recognises(document: Any) -> bool:
    return isinstance(document, Mapping) and any(
        isinstance(document.get(kind), list) for kind in (*_KINDS_OF_NODES, "sources")
    )


def rules_of(document: Mapping[str, Any], request: ImportRequest) -> Iterator[ForeignRule]:
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


def _of_node(node: Mapping[str, Any], request: ImportRequest, place: str) -> Iterator[ForeignRule]:
    dataset = request.dataset or str(node.get("name"))
    at = f"{request.file}: {place}"
    for column in _mappings(node.get("columns")):
        for number_, test in enumerate(_tests(column)):
            inside = f"{at}.columns.{column.get('name')}.tests[{number_}]"
            yield from _rules(test, str(column.get("name")), dataset, inside)
    for number_, test in enumerate(_tests(node)):
        yield from _rules(test, None, dataset, f"{at}.tests[{number_}]")
    yield from _freshness(node, dataset, f"{at}.freshness")
    yield from _constraints(node, dataset, at)


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
            try:
                meaning: Claims | Translation | str = _constraint(constraint, listed)
            except UntranslatableError as error:
                meaning = f"constraint: {error}"
            where = f"{place}.constraints[{number_}]"
            yield ForeignRule(dataset, where, f"constraint {one_line(constraint)}", meaning)


def _constraint(constraint: Mapping[str, Any], names: list[Any]) -> Translation:
    kind = str(constraint.get("type"))
    expression = constraint.get("expression")
    if kind == "check":
        return Translation("check", (RowsSatisfy(spark_sql(expression)),))
    columns = tuple(column_text(name) for name in names)
    about = columns[0] if len(columns) == 1 else None
    required = tuple(
        MetricRule("null_count", (column,), _NONE) if about is None else Required()
        for column in columns
    )
    match kind:
        case "not_null":
            return Translation(kind, required, about)
        case "unique":
            return Translation(kind, (Unique(columns),), about)
        case "primary_key":
            return Translation(kind, (*required, Unique(columns)), about)
        case "foreign_key" if constraint.get("to") and constraint.get("to_columns"):
            table = _Arguments(dict(constraint), about, "data").relation("to")
            others = tuple(column_text(one) for one in constraint["to_columns"])
            return Translation(kind, (Refers(columns, table, others),), about)
    raise UntranslatableError(f"a {kind} in SQL of the database has no counterpart")


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


def _rules(test: object, column: str | None, dataset: str, place: str) -> Iterator[ForeignRule]:
    """A test; two rules if it warns and fails at different numbers of rows."""
    shown = test if isinstance(test, str) else one_line(test)
    if isinstance(test, str):
        test = {test: {}}
    if not isinstance(test, Mapping) or not test:
        yield ForeignRule(dataset, place, shown, "this is not a test")
        return
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
    condition = arguments.pop("row_condition", None)
    filters = [f"({one})" for one in (config.get("where"), condition) if one]
    named = str(given["name"]) if isinstance(given.get("name"), str) else None
    for fails_if, severity in _limits(config):
        try:
            for sql in (*filters, *(arguments[key] for key in _SQL if arguments.get(key))):
                spark_sql(sql)
            if config.get("enabled") is False:
                raise UntranslatableError("the test is disabled")
            rest = dict(arguments)
            groups = _groups(kind, rest)
            meaning = _meaning(kind, _Arguments(rest, column, dataset), fails_if)
        except UntranslatableError as error:
            yield ForeignRule(dataset, place, shown, f"{kind}: {error}", severity=severity)
            continue
        yield ForeignRule(
            dataset,
            place,
            shown,
            meaning,
            name=named,
            severity=severity,
            where=" AND ".join(filters) or None,
            groups=groups,
            difference=_difference(kind, is_grouped=bool(groups)),
        )


_ANY_ROW = "> 0"
_WITHIN_STDEVS = "expect_column_values_to_be_within_n_stdevs"


def _limits(config: Mapping[str, Any]) -> list[tuple[str, Severity | None]]:
    """At which number of rows a test fails, and at which one it warns where that is another."""
    asked = [str(config.get(key) or _ANY_ROW).strip() for key in ("error_if", "warn_if")]
    fails, warns = (
        _ANY_ROW if one.replace(" ", "") in (">0", "!=0", ">=1") else one for one in asked
    )
    if str(config.get("severity", "error")).lower() == "warn":
        return [(warns, Severity.P3)]
    return [(fails, None)] if fails == warns else [(fails, None), (warns, Severity.P3)]


def _groups(kind: str, arguments: dict[str, Any]) -> tuple[str, ...]:
    """The columns by which a test groups the rows, taken from its arguments.

    :raises UntranslatableError: it compares groups of two tables.
    """
    named = [arguments.pop(key, None) for key in ("group_by_columns", "group_by")]
    columns = next((one for one in named if one), ())
    if columns and kind.rsplit(".", maxsplit=1)[-1] in _OF_TWO_TABLES:
        raise UntranslatableError("groups of two tables are not compared")
    names = columns if isinstance(columns, list | tuple) else [columns]
    return tuple(column_text(name) for name in names)


def _difference(kind: str, *, is_grouped: bool) -> str | None:
    """When the verdicts of the two tools differ."""
    bare = kind.rsplit(".", maxsplit=1)[-1]
    found = []
    if bare in _ORDERS:
        found.append("NULL is left out, where dbt compares nothing with it")
    if bare == _MOST_COMMON:
        found.append("NULL is left out; of equally common values, all have to be listed")
    if bare == "equality":
        found.append("a row that is there several times must be there as often in both tables")
    if bare == _WITHIN_STDEVS:
        found.append("values that are all equal pass in dbt, and have no z-score here")
    is_measured = bare in (*_ORDERS, *_OF_THE_NEWEST, _MOST_COMMON, "sequential_values")
    if is_measured or is_grouped:
        found.append(_EMPTY)
    return "; ".join(found) or None


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
        parts = [part.strip().strip("'\"") for part in re.split(r"[.,]", names)]
        if not parts[-1]:
            raise UntranslatableError(f"it has no {key}")
        # A source of the same name is another dataset.
        is_other = len(parts) > 1 and column_text(parts[-1]) == self.dataset
        return "_".join(parts) if is_other else parts[-1]

    def list_of(self, key: str) -> list[Any]:
        value = self.get(key)
        if not isinstance(value, list) or not value:
            raise UntranslatableError(f"it has no {key}")
        return value


_Meaning = Translation | Claims | str
_OF_TWO_TABLES = (
    "equal_expression",
    "equal_rowcount",
    "equality",
    "expect_table_aggregation_to_equal_other_table",
    "expect_table_row_count_to_equal_other_table",
    "expect_table_row_count_to_equal_other_table_times_factor",
    "fewer_rows_than",
)
_OF_THE_NEWEST = (
    "recency",
    "expect_row_values_to_have_recent_data",
    "expect_grouped_row_values_to_have_recent_data",
)


def _meaning(kind: str, arguments: _Arguments, fails_if: str) -> _Meaning:
    bare = kind.rsplit(".", maxsplit=1)[-1]
    if bare in _GENERIC:
        demands = _GENERIC[bare](arguments)
        if isinstance(demands, Claims):
            return _untolerant(demands, fails_if)
        about = arguments.path if arguments.column or "column_name" in arguments else None
        return Translation(bare, _tolerant(demands, fails_if, about), about)
    if "dbt_expectations." in kind or kind.startswith("expect_"):
        return _untolerant(_expectation(bare, arguments), fails_if)
    raise UntranslatableError("it has no counterpart")


def _untolerant(meaning: _Meaning, fails_if: str) -> _Meaning:
    """:raises UntranslatableError: the test tolerates a number of rows."""
    if fails_if != _ANY_ROW:
        raise UntranslatableError(f"failing if rows {fails_if} has no counterpart here")
    return meaning


def _tolerant(demands: tuple[Demand, ...], fails_if: str, about: str | None) -> tuple[Demand, ...]:
    """The demands where a test fails at a number of rows alone, such as `> 10`."""
    if fails_if == _ANY_ROW:
        return demands
    found = _FAILS_IF.fullmatch(fails_if)
    opposite = {">": "<=", ">=": "<"}.get(found["op"]) if found else None
    if found is None or opposite is None:
        raise UntranslatableError(f"failing if rows {fails_if} has no counterpart")
    condition = Condition(opposite, int(found["bound"]))
    match demands:
        case (Unique(),):
            raise UntranslatableError("a number of repeated values has no counterpart")
        case (Required(),) if about is not None:
            return (MetricRule("null_count", (about,), condition),)
        case (RowsSatisfy(predicate, dialect),):
            query = aggregate_query(f"count_if(NOT ({predicate}))")
            return (QueryGives(query, condition, dialect),)
        case (OneOf() | Bound() as demand,) if about is not None:
            query = aggregate_query(f"count_if(NOT ({value_predicate(about, demand)}))")
            return (QueryGives(query, condition),)
    raise UntranslatableError(f"failing if rows {fails_if} has no counterpart here")


def _expectation(kind: str, arguments: _Arguments) -> _Meaning:
    if kind in _ORDERS:
        return _in_order(kind, arguments)
    if kind == _MOST_COMMON:
        return _most_common(arguments)
    given = dict(arguments)
    strictly = given.pop("strictly", None)
    flags = given.pop("flags", None)
    if flags not in (None, "", "i"):
        raise UntranslatableError(f"the flags '{flags}' have no counterpart")
    if flags:
        given |= _without_case(given)
    for written, meant in _RENAMED.items():
        if written in given:
            given[meant] = given.pop(written)
    if any("{{" in str(given.get(key)) for key in ("type_", "type_list")):
        raise UntranslatableError("its type is that of the warehouse: write the one that Spark has")
    if strictly:
        given |= {"strict_min": "min_value" in given, "strict_max": "max_value" in given}
    if arguments.column is not None:
        given.setdefault("column", arguments.column)
    given.pop("is_raw", None)  # patterns are read as they are
    if (is_quoted := given.pop("quote_values", None)) is not None:
        given |= _quoted(given, is_quoted=bool(is_quoted))
    return great_expectations.translate({"type": kind, "kwargs": given}, None)


_RENAMED = {"column_name": "column", "column_type": "type_", "column_type_list": "type_list"}


def _quoted(given: Mapping[str, Any], *, is_quoted: bool) -> dict[str, Any]:
    """The values of an expectation: quoted, they are compared as strings; else they are SQL.

    :raises UntranslatableError: one of them is SQL.
    """
    values = given.get("value_set")
    if not isinstance(values, list):
        return {}
    if is_quoted:
        return {"value_set": [str(one) for one in values]}
    if any(isinstance(one, str) for one in values):
        raise UntranslatableError("its values are SQL: quote_values is false")
    return {}


def _without_case(given: dict[str, Any]) -> dict[str, Any]:
    """The regular expressions of an expectation, made indifferent to case."""
    ignored: dict[str, Any] = {}
    if isinstance(given.get("regex"), str):
        ignored["regex"] = f"(?i){given['regex']}"
    if isinstance(given.get("regex_list"), list):
        ignored["regex_list"] = [f"(?i){one}" for one in given["regex_list"]]
    return ignored


_MOST_COMMON = "expect_column_most_common_value_to_be_in_set"
_ORDERS = {
    "expect_column_values_to_be_increasing": "decrease_count",
    "expect_column_values_to_be_decreasing": "increase_count",
}


def _in_order(kind: str, arguments: _Arguments) -> Claims:
    """That no value is smaller, or larger, than the one before; strictly so, if nothing else is
    written."""
    arguments.only("sort_column", "strictly")
    column = arguments.path
    order = column_text(arguments.get("sort_column") or column)
    count = f"{_ORDERS[kind]}({column}, order_by {order})"
    if arguments.get("strictly", True):
        count += f" + unchanged_count({column}, order_by {order})"
    return Claims(kind.removeprefix("expect_column_values_to_be_"), (f"{count} == 0",), column)


def _most_common(arguments: _Arguments) -> Claims:
    arguments.only("value_set", "top_n", "quote_values", "data_type", "strictly")
    column, listed = arguments.path, list_text(arguments.list_of("value_set"))
    most = value_text(number(arguments.get("top_n", 1)))
    return Claims("most_common", (f"{MOST_COMMON}({column}, {most}) in {listed}",), column)


def _recent(arguments: _Arguments) -> tuple[Demand, ...]:
    arguments.only("datepart", "interval", "timestamp_column")
    part = str(arguments.get("datepart"))
    if part not in _SECONDS:
        raise UntranslatableError("it counts minutes, hours, days or weeks")
    column = column_text(arguments.get("timestamp_column") or arguments.path)
    return (Fresh(column, number(arguments.get("interval")) * _SECONDS[part]),)


def _distinct_count(op: str) -> Callable[[_Arguments], tuple[Demand, ...]]:
    def demands(arguments: _Arguments) -> tuple[Demand, ...]:
        arguments.only("value", "quote_values")
        condition = Condition(op, number(arguments.get("value")))
        return (MetricRule("unique_count", (arguments.path,), condition),)

    return demands


def _consistent_casing(arguments: _Arguments) -> tuple[Demand, ...]:
    arguments.only("display_inconsistent_columns")
    name = arguments.sql
    query = aggregate_query(f"count(DISTINCT {name}) - count(DISTINCT lower({name}))")
    return (QueryGives(query, _NONE),)


def _within_stdevs(arguments: _Arguments) -> Claims:
    arguments.only("sigma_threshold")
    most = value_text(number(arguments.get("sigma_threshold", 3)))
    column = arguments.path
    return Claims("within_stdevs", (f"max_z_score({column}) <= {most}",), column)


def _aggregation(arguments: _Arguments) -> Claims:
    arguments.only("expression", "compare_expression", "compare_model")
    expression = spark_sql(arguments.get("expression"))
    other = column_text(arguments.relation("compare_model"))
    own = f"sql({value_text(expression)}, dataset {arguments.dataset})"
    compared = value_text(str(arguments.get("compare_expression") or expression))
    return Claims("aggregation", (f"{own} == sql({compared}, dataset {other})",), others=(other,))


def _column_count(arguments: _Arguments) -> Claims:
    arguments.only("compare_model")
    other = column_text(arguments.relation("compare_model"))
    text = f"column_count(dataset {arguments.dataset}) == column_count(dataset {other})"
    return Claims("column_count", (text,), others=(other,))


def _columns_match_set(arguments: _Arguments) -> Claims:
    arguments.only("column_list", "transform")
    columns = arguments.list_of("column_list")
    closed = f"extra_column_count([{columns_text(columns)}]) == 0"
    return Claims("columns", (*_exist(columns), closed))


def _columns_contain_set(arguments: _Arguments) -> Claims:
    arguments.only("column_list", "transform")
    return Claims("columns", _exist(arguments.list_of("column_list")))


def _exist(columns: list[Any]) -> tuple[str, ...]:
    return tuple(f"column {column_text(one)} exists" for one in columns)


def _rows_times(arguments: _Arguments) -> Claims:
    arguments.only("compare_model", "factor")
    other = column_text(arguments.relation("compare_model"))
    factor = number(arguments.get("factor", 1))
    times = f" * {value_text(factor)}" if factor != 1 else ""
    text = f"num_rows(dataset {arguments.dataset}) == num_rows(dataset {other}){times}"
    return Claims("row_count", (text,), others=(other,))


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


def _relationships_where(arguments: _Arguments) -> tuple[Demand, ...]:
    arguments.only("to", "field", "from_condition", "to_condition")
    if arguments.get("to_condition", "1=1").replace(" ", "") != "1=1":
        raise UntranslatableError("a condition on the rows of the other table has no counterpart")
    reference = Refers(
        (arguments.path,), arguments.relation("to"), (column_text(arguments.get("field")),)
    )
    where = arguments.get("from_condition")
    return (AmongRows(reference, str(where)) if where else reference,)


def _equality(arguments: _Arguments) -> Claims:
    arguments.only("compare_model", "compare_columns")
    if "compare_columns" not in arguments:
        reason = "it names no columns: write `rows of a match b on (key) comparing [columns]`"
        raise UntranslatableError(reason)
    other = column_text(arguments.relation("compare_model"))
    columns = columns_text(arguments.list_of("compare_columns"))
    text = f"rows of {arguments.dataset} match {other} on ({columns})"
    return Claims("equality", (text,), others=(other,))


def _expression_is_true(arguments: _Arguments) -> tuple[Demand, ...]:
    arguments.only("expression")
    expression = spark_sql(arguments.get("expression"))
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
    arguments.only("at_least", "at_most")
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
    arguments.only("interval", "datepart")
    interval, part = arguments.get("interval", 1), arguments.get("datepart")
    step = value_text(number(interval))
    if part is not None:
        if part not in _SECONDS:
            raise UntranslatableError(f"a step of a {part} has no counterpart")
        step = f"{step} {part}{'' if interval == 1 else 's'}"
    column = arguments.path
    gaps = f"gap_count({column}, step {step}) == 0"
    return Claims("sequential_values", (gaps, f"repeated_count({column}) == 0"), column)


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
    "expect_row_values_to_have_recent_data": _recent,
    "expect_grouped_row_values_to_have_recent_data": _recent,
    "expect_column_distinct_count_to_equal": _distinct_count("=="),
    "expect_column_distinct_count_to_be_greater_than": _distinct_count(">"),
    "expect_column_distinct_count_to_be_less_than": _distinct_count("<"),
    "expect_column_values_to_have_consistent_casing": _consistent_casing,
    _WITHIN_STDEVS: _within_stdevs,
    "expect_table_aggregation_to_equal_other_table": _aggregation,
    "expect_table_column_count_to_equal_other_table": _column_count,
    "equal_expression": _aggregation,
    "expect_table_columns_to_contain_set": _columns_contain_set,
    "expect_table_columns_to_match_set": _columns_match_set,
    "expect_table_row_count_to_equal_other_table": _rows_times,
    "expect_table_row_count_to_equal_other_table_times_factor": _rows_times,
    "not_null": _not_null,
    "unique": _unique,
    "accepted_values": _accepted_values,
    "relationships": _relationships,
    "relationships_where": _relationships_where,
    "equality": _equality,
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
"""The tests of dbt and its packages that have a reader of their own, by the last part of their
names."""
