"""cuallee: the checks on `Check(CheckLevel.ERROR, "orders")` in a file of Python, which is read and
never run.

They mean what cuallee does on Spark: a row violates a check also if its value is NULL, and `pct` is
the share of the rows that must satisfy it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from dqx_airflow.contracts.compile.terms import sql_name
from dqx_airflow.contracts.demands import Condition, QueryGives, RowsSatisfy
from dqx_airflow.contracts.dialects.foreign import Translation, aggregate_query
from dqx_airflow.errors import NoCounterpartError
from dqx_airflow.importing import foreign_rule, python_checks, sql_conditions
from dqx_airflow.importing.deequ import matching_text
from dqx_airflow.importing.foreign_rule import Claims, ForeignRule, Meaning, column_text, value_text
from dqx_airflow.importing.python_checks import CheckChain, PythonChecks
from dqx_airflow.metrics.sql import quote_literal
from dqx_airflow.values import Severity


@dataclass(frozen=True, slots=True)
class _Call:
    """A call of a check with its arguments by their names."""

    name: str
    arguments: Mapping[str, Any]

    def __getitem__(self, key: str) -> Any:
        if key not in self.arguments:
            raise NoCounterpartError(f"it has no {key}")
        return self.arguments[key]

    @property
    def column(self) -> str:
        return _column_text(self["column"])

    @property
    def columns(self) -> list[str]:
        named = self["column"]
        if not isinstance(named, list | tuple) or not named:
            raise NoCounterpartError("it does not name columns")
        return [_column_text(name) for name in named]

    @property
    def share(self) -> float:
        """:raises NoCounterpartError: it is not a share of the rows."""
        share = foreign_rule.finite(self.arguments.get("pct", 1))
        if not 0 < share <= 1:
            raise NoCounterpartError("its pct is not a share of the rows: write a number up to 1")
        return share

    def of_rows(self, predicate: str, column: str | None) -> Claims:
        return Claims(self.name, (foreign_rule.rows_text(predicate, self.share),), column)

    def of_sql(self, predicate: str, column: str | None = None) -> Translation:
        """A check on each row that is a condition in SQL, which is false instead of NULL."""
        demand = RowsSatisfy(f"coalesce(({predicate}), false)", share=self.share)
        return Translation(self.name, (demand,), column, share=self.share)

    def of_query(self, query: str, condition: Condition) -> Translation:
        return Translation(self.name, (QueryGives(query, condition),))


def _column_text(name: Any) -> str:
    """The name of a column in DQL: a dot is part of it, since cuallee reads no structs."""
    has_dot = isinstance(name, str) and "." in name and "`" not in name
    return column_text(f"`{name}`" if has_dot else name)


def _each_value(predicate: str, call: _Call) -> Claims:
    """A check on each value; the braces stand for the column, and for a limit."""
    column = call.column
    limit = value_text(call["value"]) if "{1}" in predicate else ""
    return call.of_rows(f"{column} is not null and {predicate.format(column, limit)}", column)


def _fixed(predicate: str, call: _Call) -> Claims:
    return call.of_rows(predicate.format(call.column), call.column)


def _complete(call: _Call) -> Claims:
    return call.of_rows(" and ".join(f"{column} is not null" for column in call.columns), None)


def _unique(call: _Call) -> Meaning:
    """The distinct values are as many as the rows, or a share of them."""
    column = call.column
    if call.share == 1:
        texts = [f"repeated_count({column}) == 0"]
        if not call.arguments.get("ignore_nulls"):
            texts.insert(0, f"null_count({column}) == 0")
        return Claims(call.name, tuple(texts), column)
    least = foreign_rule.percent_text(call.share)
    return Claims(call.name, (f"unique_count({column}) / num_rows() >= {least}",), column)


def _unique_columns(call: _Call) -> Meaning:
    columns = call.columns
    if call.share == 1:
        present = (f"null_count({column}) == 0" for column in columns)
        return Claims(call.name, (*present, f"repeated_count([{', '.join(columns)}]) == 0"))
    distinct = f"count(DISTINCT {', '.join(map(sql_name, columns))})"
    return call.of_query(aggregate_query(f"{distinct} / count(*)"), Condition(">=", call.share))


def _metric(metric: str, call: _Call) -> Claims:
    return Claims(call.name, (metric.format(call.column, value_text(call["value"])),), call.column)


def _statistic(sql: str, call: _Call) -> Translation:
    number = sql.format(sql_name(call.column))
    condition = Condition("==", foreign_rule.finite(call["value"]))
    return Translation(call.name, (QueryGives(aggregate_query(number), condition),), call.column)


def _pattern(pattern: str | None, call: _Call) -> Claims:
    column = call.column
    return call.of_rows(matching_text(column, pattern or call["value"], "cuallee"), column)


def _between(call: _Call) -> Meaning:
    column = call.column
    bounds = [*call["value"]]
    if any(map(_is_day, bounds)):
        low, high = map(quote_literal, bounds)
        return call.of_sql(f"{sql_name(column)} BETWEEN {low} AND {high}", column)
    low, high = map(value_text, bounds)
    return call.of_rows(f"{column} is not null and {column} between {low} and {high}", column)


def _is_day(value: Any) -> bool:
    """Whether a string is a day, which Spark compares with dates as well as with strings."""
    return isinstance(value, str) and _DAY.fullmatch(value) is not None


_DAY = re.compile(r"\d{4}-\d\d-\d\d")


def _contained(word: str, call: _Call) -> Meaning:
    column, listed = call.column, foreign_rule.list_text(call["value"])
    if any(map(_is_day, call["value"])):
        values = ", ".join(map(quote_literal, call["value"]))
        return call.of_sql(f"{sql_name(column)} {word} ({values})", column)
    return call.of_rows(f"{column} is not null and {column} {word} {listed}", column)


def _days_ago(days: int | None, call: _Call) -> Translation:
    """The value is the day some days before the run, in UTC."""
    count = foreign_rule.finite(call["value"]) if days is None else days
    today = "CAST(to_utc_timestamp(current_timestamp(), current_timezone()) AS DATE)"
    return call.of_sql(f"{sql_name(call.column)} = date_sub({today}, {count})", call.column)


def _percentile(call: _Call) -> Translation:
    share, precision = foreign_rule.finite(call["percentile"]), call.arguments.get("precision")
    digits = foreign_rule.finite(precision if precision is not None else 10000)
    number = f"percentile_approx(CAST({{}} AS DOUBLE), {share}, {digits})"
    return _statistic(number, call)


def _in_quartiles(call: _Call) -> Translation:
    low, high = map(foreign_rule.finite, call.arguments.get("value", (0.25, 0.75)))
    column = sql_name(call.column)
    ends = f"percentile_approx({column}, {low}) AS low, percentile_approx({column}, {high}) AS high"
    inside = f"count_if({column} BETWEEN ends.low AND ends.high) / count(*)"
    of_all = " ".join(("SELECT", ends, "FROM {model}"))
    query = " ".join(("SELECT", inside, "FROM {model} CROSS JOIN (", of_all, ") AS ends"))
    return call.of_query(query, Condition(">=", call.share))


def _by_extreme(function: str, call: _Call) -> Translation:
    """The value of one column where another is greatest or least."""
    target, source = _column_text(call["column_target"]), _column_text(call["column_source"])
    value = call["value"]
    if value is None:
        raise NoCounterpartError("its value is None: write `is null` in DQL")
    found = f"{function}({sql_name(target)}, {sql_name(source)})"
    query = aggregate_query(f"CAST(coalesce({found} = {quote_literal(value)}, false) AS INT)")
    return call.of_query(query, Condition("==", 1))


def _correlation(call: _Call) -> Claims:
    left, right = _column_text(call["column_left"]), _column_text(call["column_right"])
    return Claims(call.name, (f"correlation({left}, {right}) == {value_text(call['value'])}",))


def _satisfies(call: _Call) -> Translation:
    predicate = foreign_rule.sql_text(call["predicate"])
    demand = sql_conditions.rows_hold(predicate, call.share)
    return Translation(call.name, (demand,), share=call.share)


def _entropy(call: _Call) -> Translation:
    """The entropy of the labels, NULL among them, divided by its greatest value."""
    value = foreign_rule.finite(call["value"])
    tolerance = foreign_rule.finite(call.arguments.get("tolerance", 0.01))
    of_labels = "(log2(sum(n)) - sum(n * log2(n)) / sum(n)) / nullif(log2(count(*)), 0)"
    labels = " ".join(("SELECT count(*) AS n FROM {model} GROUP BY", sql_name(call.column)))
    query = " ".join(("SELECT", f"coalesce({of_labels}, 0)", "FROM (", labels, ") AS labels"))
    return call.of_query(query, Condition("between", value - tolerance, value + tolerance))


def _days(condition: str, call: _Call) -> Translation:
    return call.of_sql(condition.format(sql_name(call.column)), call.column)


def _schedule(call: _Call) -> Translation:
    low, high = map(foreign_rule.finite, call["value"])
    return call.of_sql(f"hour({sql_name(call.column)}) BETWEEN {low} AND {high}", call.column)


def _daily(call: _Call) -> Translation:
    """No such day of the week is missing between the first day and the last one."""
    if call.share < 1:
        raise NoCounterpartError("its share of missing days has no counterpart: leave out pct")
    listed = call.arguments.get("value") or (2, 3, 4, 5, 6)
    weekdays = ", ".join(str(foreign_rule.finite(day)) for day in listed)
    column = sql_name(call.column)
    ends = f"CAST(min({column}) AS DATE), CAST(max({column}) AS DATE), INTERVAL 1 DAY"
    every = " ".join(("SELECT", f"explode(sequence({ends})) AS day", "FROM {model}"))
    given = " ".join(("SELECT", f"CAST({column} AS DATE) AS day", "FROM {model}"))
    missing = ("LEFT ANTI JOIN (", given, ") AS given ON days.day = given.day WHERE")
    chosen = f"dayofweek(days.day) IN ({weekdays})"
    query = " ".join(("SELECT count(*) FROM (", every, ") AS days", *missing, chosen))
    return call.of_query(query, Condition("==", 0))


def _workflow(call: _Call) -> Translation:
    """Each event and the next one of its group are one of the edges."""
    group, event, order = (
        sql_name(_column_text(call[key]))
        for key in ("column_group", "column_event", "column_order")
    )
    edges = [_edge(*edge) for edge in call["edges"]]
    following = f"lead({event}) OVER (PARTITION BY {group} ORDER BY {order}) AS following"
    pairs = " ".join(("SELECT", f"{event} AS event,", following, "FROM {model}"))
    share = f"count_if({' OR '.join(edges)}) / count(*)"
    query = " ".join(("SELECT", share, "FROM (", pairs, ") AS edges"))
    return call.of_query(query, Condition(">=", call.share))


def _edge(event: Any, following: Any) -> str:
    sides = []
    for name, value in (("event", event), ("following", following)):
        is_equal = "IS NULL" if value is None else f"<=> {quote_literal(value)}"
        sides.append(f"{name} {is_equal}")
    return f"({' AND '.join(sides)})"


_WEEKDAYS = ("sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday")
_AMINO_ACIDS = "ARNDBCEQZGHILKMFPSTWYV"
_OF_COLUMN = ("column", "pct")
_OF_VALUE = ("column", "value", "pct", "options")
_OF_STATISTIC = ("column", "value")
_OF_PAIR = ("column_source", "column_target", "value")
_DOWNLOADED = 'its codes are downloaded when it runs: write them, as in `c in ["CH", "DE"]`'
_CHANGES = "it changes rules that are written above it: change them instead"

_CHECKS: dict[str, tuple[tuple[str, ...], Callable[[_Call], Meaning]]] = {
    "is_complete": (_OF_COLUMN, partial(_fixed, "{} is not null")),
    "is_empty": (_OF_COLUMN, partial(_fixed, "{} is null")),
    "are_complete": (_OF_COLUMN, _complete),
    "is_unique": (("column", "pct", "approximate", "ignore_nulls"), _unique),
    "is_primary_key": (_OF_COLUMN, _unique),
    "are_unique": (_OF_COLUMN, _unique_columns),
    "is_composite_key": (_OF_COLUMN, _unique_columns),
    "is_greater_than": (_OF_VALUE, partial(_each_value, "{0} > {1}")),
    "is_greater_or_equal_than": (_OF_VALUE, partial(_each_value, "{0} >= {1}")),
    "is_less_than": (_OF_VALUE, partial(_each_value, "{0} < {1}")),
    "is_less_or_equal_than": (_OF_VALUE, partial(_each_value, "{0} <= {1}")),
    "is_equal_than": (_OF_VALUE, partial(_each_value, "{0} == {1}")),
    "is_positive": (_OF_COLUMN, partial(_each_value, "{0} > 0")),
    "is_negative": (_OF_COLUMN, partial(_each_value, "{0} < 0")),
    "is_in_millions": (_OF_COLUMN, partial(_each_value, "{0} >= 1_000_000")),
    "is_in_billions": (_OF_COLUMN, partial(_each_value, "{0} >= 1_000_000_000")),
    "has_pattern": (_OF_VALUE, partial(_pattern, None)),
    "is_legit": (_OF_COLUMN, partial(_pattern, r"^\S+$")),
    "has_min": (_OF_STATISTIC, partial(_metric, "minimum({}) == {}")),
    "has_max": (_OF_STATISTIC, partial(_metric, "maximum({}) == {}")),
    "has_mean": (_OF_STATISTIC, partial(_metric, "average({}) == {}")),
    "has_sum": (_OF_STATISTIC, partial(_metric, "sum({}) == {}")),
    "has_std": (_OF_STATISTIC, partial(_statistic, "stddev_pop({})")),
    "has_cardinality": (_OF_STATISTIC, partial(_metric, "unique_count({}) == {}")),
    "has_infogain": (
        _OF_COLUMN,
        lambda call: Claims(call.name, (f"unique_count({call.column}) > 1",), call.column),
    ),
    "has_percentile": (("column", "value", "percentile", "precision"), _percentile),
    "has_max_by": (_OF_PAIR, partial(_by_extreme, "max_by")),
    "has_min_by": (_OF_PAIR, partial(_by_extreme, "min_by")),
    "has_correlation": (("column_left", "column_right", "value"), _correlation),
    "has_entropy": (("column", "value", "tolerance"), _entropy),
    "has_workflow": (("column_group", "column_event", "column_order", "edges", "pct"), _workflow),
    "is_between": (_OF_VALUE, _between),
    "is_inside_interquartile_range": (_OF_VALUE, _in_quartiles),
    **dict.fromkeys(("is_contained_in", "is_in"), (_OF_VALUE, partial(_contained, "in"))),
    **dict.fromkeys(("not_contained_in", "not_in"), (_OF_VALUE, partial(_contained, "not in"))),
    "satisfies": (("column", "predicate", "pct", "options"), _satisfies),
    "is_t_minus_n": (_OF_VALUE, partial(_days_ago, None)),
    "is_today": (_OF_COLUMN, partial(_days_ago, 0)),
    **dict.fromkeys(("is_yesterday", "is_t_minus_1"), (_OF_COLUMN, partial(_days_ago, 1))),
    "is_t_minus_2": (_OF_COLUMN, partial(_days_ago, 2)),
    "is_t_minus_3": (_OF_COLUMN, partial(_days_ago, 3)),
    "is_on_weekday": (_OF_COLUMN, partial(_days, "dayofweek({}) BETWEEN 2 AND 6")),
    "is_on_weekend": (_OF_COLUMN, partial(_days, "dayofweek({}) IN (1, 7)")),
    **{
        f"is_on_{day}": (_OF_COLUMN, partial(_days, f"dayofweek({{}}) = {number}"))
        for number, day in enumerate(_WEEKDAYS, 1)
    },
    "is_on_schedule": (_OF_VALUE, _schedule),
    "is_daily": (_OF_VALUE, _daily),
    "is_dna": (_OF_COLUMN, partial(_pattern, "^[GTCA]*$")),
    "is_protein": (_OF_COLUMN, partial(_pattern, f"^[{_AMINO_ACIDS}]*$")),
    "is_cds": (
        _OF_COLUMN,
        partial(
            _days,
            "left({0}, 3) = 'ATG' and right({0}, 3) IN ('TAA', 'TAG', 'TGA') "
            "and length({0}) % 3 = 0",
        ),
    ),
}
"""The checks of cuallee with the names of their arguments, and what they mean."""
_REFUSED = {
    "is_custom": "it runs your Python: write a predicate, or `sql(...)`",
    **dict.fromkeys(("iso_4217", "iso_3166"), _DOWNLOADED),
    **dict.fromkeys(
        ("adjust_rule_coverage", "delete_rule_by_key", "delete_rule_by_attribute"), _CHANGES
    ),
}
_ENDS = frozenset({"validate", "ok"})


_IMPORTED = re.compile(r"^[ \t]*(?:from|import)[ \t]+(?:[^#\n]*\W)?cuallee\b", re.MULTILINE)


def recognises_code(text: str) -> bool:
    return _IMPORTED.search(text) is not None and "Check" in text


def rules_of_code(text: str, request: foreign_rule.ImportRequest) -> Iterator[ForeignRule]:
    """The checks in a file of Python.

    :raises NoCounterpartError: it is not Python, or has no chain of checks on a `Check`.
    """
    try:
        checks = python_checks.PythonChecks(ast.parse(text), _ENDS)
    except (SyntaxError, ValueError) as error:
        line = f"line {error.lineno}: " if isinstance(error, SyntaxError) else ""
        raise NoCounterpartError(f"{line}invalid Python") from None
    rules = [rule for chain in checks.chains() for rule in _of_chain(chain, request, checks)]
    if not rules:
        raise NoCounterpartError("it contains no chain of checks on a Check(...)")
    yield from rules


def _of_chain(
    chain: CheckChain, request: foreign_rule.ImportRequest, checks: PythonChecks
) -> Iterator[ForeignRule]:
    """The rules of a chain; without a translation if its table is unknown."""
    rule = ForeignRule(request.dataset or "data", request.file, "", "")
    if chain.check is None:
        links = [link for link in chain.links if _is_check(link)]
        difference = python_checks.of_unknown_check(rule.dataset)
        rule = replace(rule, difference=difference)
    else:
        links = chain.links
        rule = replace(rule, severity=_severity(chain.check))
        try:
            dataset = request.dataset or _named(chain.check, checks) or "data"
            rule = replace(rule, dataset=dataset)
        except NoCounterpartError as error:
            rule = replace(rule, meaning=f"its table_name {error}: add --dataset")
    yield from _of_links(links, rule, checks)


def _is_check(link: ast.Call) -> bool:
    """Whether a method of an unknown object is probably a check of cuallee."""
    has_arguments = bool(link.args or link.keywords)
    return has_arguments and python_checks.name_of(link.func) in {*_CHECKS, *_REFUSED}


def _named(check: ast.Call, checks: PythonChecks) -> str | None:
    """The table of a check, which only some engines of cuallee need.

    :raises NoCounterpartError: it cannot be evaluated without running it.
    """
    for keyword in check.keywords:
        if keyword.arg == "table_name":
            name = str(checks.value_of(keyword.value))
            return name.rsplit(".", maxsplit=1)[-1]
    return None


def _severity(check: ast.Call) -> Severity | None:
    """P3 for a warning, the level of a check that does not say otherwise."""
    level = next((keyword.value for keyword in check.keywords if keyword.arg == "level"), None)
    if level is None and check.args:
        level = check.args[0]
    written = ast.unparse(level) if level is not None else "WARNING"
    return Severity.P3 if "WARN" in written.upper() or written == "0" else None


def _of_links(
    links: Sequence[ast.Call], rule: ForeignRule, checks: PythonChecks
) -> Iterator[ForeignRule]:
    """The rules of the calls of a chain, each a copy of `rule`: with its translation, unless `rule`
    has a reason why there is none."""
    for link in links:
        name, written = python_checks.name_of(link.func), [*link.args]
        if name == "add_rule" and written and isinstance(written[0], ast.Constant):
            name, written = str(written[0].value), written[1:]
        if name in _ENDS:  # what follows is about the result
            return
        keywords = [ast.unparse(keyword) for keyword in link.keywords]
        shown = f"{name}({', '.join([*map(ast.unparse, written), *keywords])})"
        one = replace(rule, place=f"{rule.place}: line {link.end_lineno}", shown=shown)
        if rule.meaning:
            yield one
            continue
        try:
            call = _call_of(name, written, link.keywords, checks)
            _, reader = _CHECKS[name]
            differences = [one.difference, _difference_of(call)]
            difference = "; ".join(filter(None, differences)) or None
            yield replace(one, meaning=reader(call), difference=difference)
        except foreign_rule.REFUSALS as refusal:
            yield replace(one, meaning=foreign_rule.reason_of(refusal), difference=None)


def _call_of(
    name: str, written: Sequence[ast.expr], keywords: Sequence[ast.keyword], checks: PythonChecks
) -> _Call:
    """:raises NoCounterpartError: the check or an argument is unknown."""
    if name in _REFUSED:
        raise NoCounterpartError(_REFUSED[name])
    if name not in _CHECKS:
        raise NoCounterpartError(f"cuallee has no check {name}")
    parameters, _ = _CHECKS[name]
    if len(written) > len(parameters):
        raise NoCounterpartError(f"{name} takes at most {len(parameters)} arguments")
    arguments = dict(zip(parameters, map(checks.value_of, written), strict=False))
    for keyword in keywords:
        if keyword.arg is None:
            raise NoCounterpartError(f"`{ast.unparse(keyword)}`: write its arguments one by one")
        if keyword.arg not in (*parameters, "options"):
            raise NoCounterpartError(f"{name} has no argument {keyword.arg}")
        arguments[keyword.arg] = checks.value_of(keyword.value)
    return _Call(name, arguments)


def _difference_of(call: _Call) -> str | None:
    """When the verdicts differ from those of cuallee on Spark."""
    if call.name != "is_unique":
        return None
    if call.arguments.get("ignore_nulls") and call.share == 1:
        return "on Spark, cuallee counts NULL as a violation in spite of ignore_nulls"
    return "the values are counted exactly" if call.arguments.get("approximate") else None
