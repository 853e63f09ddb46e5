"""Translates the generic tests of dbt, dbt-utils, dbt-expectations and Elementary."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from typing import Any

from dqx_airflow.contracts import demands as kinds
from dqx_airflow.contracts.compile.terms import sql_name
from dqx_airflow.contracts.dialects.durations import DAY_S, HOUR_S, MINUTE_S
from dqx_airflow.contracts.dialects.foreign import Translation, aggregate_query, great_expectations
from dqx_airflow.contracts.dialects.foreign import predicate as value_predicate
from dqx_airflow.errors import NoCounterpartError
from dqx_airflow.importing import foreign_rule
from dqx_airflow.importing.foreign_rule import Claims, column_text, finite, value_text
from dqx_airflow.metrics.calls import MOST_COMMON
from dqx_airflow.metrics.sql import quote_literal

PERIOD_S = {"minute": MINUTE_S, "hour": HOUR_S, "day": DAY_S, "week": 7 * DAY_S}
"""The seconds in each period of dbt that has a constant length."""

_REF = re.compile(r"""\{?\{?\s*(?:ref|source)\((?P<names>[^)]*)\)\s*\}?\}?""")


class Arguments(dict[str, Any]):
    """The arguments of a test; `column` is the column that it is attached to, if any."""

    def __init__(self, given: Mapping[str, Any], column: str | None, dataset: str) -> None:
        super().__init__(given)
        self.column = column
        self.dataset = column_text(dataset)

    @property
    def path(self) -> str:
        """The column of the test.

        :raises NoCounterpartError: the test is attached to no column, and has no `column_name`."""
        return column_text(self.get("column_name") or self.column)

    @property
    def sql(self) -> str:
        return sql_name(self.path)

    def only(self, *known: str) -> None:
        """:raises NoCounterpartError: there is an argument other than these."""
        for key in self:
            if key not in known and key != "column_name":
                raise NoCounterpartError(f"'{key}' has no counterpart")

    def relation(self, key: str) -> str:
        """The dataset in an argument such as `ref('orders')` or `source('shop', 'orders')`."""
        written = str(self.get(key) or "")
        match = _REF.search(written)
        names = match["names"] if match else written
        parts = [part.strip().strip("'\"") for part in re.split(r"[.,]", names)]
        if not parts[-1]:
            raise NoCounterpartError(f"it has no {key}")
        # A source with the same name is another dataset.
        is_other = len(parts) > 1 and column_text(parts[-1]) == self.dataset
        return "_".join(parts) if is_other else parts[-1]

    def list_of(self, key: str) -> list[Any]:
        value = self.get(key)
        if not isinstance(value, list) or not value:
            raise NoCounterpartError(f"it has no {key}")
        return value


ANOMALIES = "a run compares one day with the days before, and is skipped without enough of them"
"""When the verdicts of the two tools differ."""

_DAYS = {"day": 1, "week": 7}


def _usual(metric: str, arguments: Arguments) -> str:
    """The claim that a metric is near its mean of the days before.

    :raises NoCounterpartError: its buckets are no days, or the test depends on the season.
    """
    if arguments.get("seasonality"):
        example = "num_rows() >= 0.7 * usual(num_rows(), n 4, step 7)"
        raise NoCounterpartError(f"its seasonality has no counterpart: write `{example}`")
    bucket = arguments.get("time_bucket")
    if bucket and bucket != {"period": "day", "count": 1}:
        raise NoCounterpartError("its time_bucket must be one day: a run checks a day")
    limit = arguments.get("anomaly_sensitivity", arguments.get("sensitivity", 3))
    far, days = value_text(finite(limit)), _training_days(arguments)
    direction = arguments.get("anomaly_direction", "both")
    delay = _delay_days(arguments)
    delayed = _days_before(metric, delay)
    if direction == "both":
        return f"{delayed} within {far} stddev of {days} days"
    if direction not in ("spike", "drop"):
        raise NoCounterpartError(f"the anomaly_direction '{direction}' is unknown")
    op, sign = ("<=", "+") if direction == "spike" else (">=", "-")
    before = _days_before(metric, delay + 1)
    mean, deviation = (f"{kind}({before}, n {days})" for kind in ("mean", "stddev"))
    return f"{delayed} {op} {mean} {sign} {far} * {deviation}"


def _days_before(metric: str, days: int) -> str:
    """A metric some days earlier: `mean` and `stddev` end with the date itself.

    :raises NoCounterpartError: it is an expression over metrics.
    """
    if days == 0:
        return metric
    if " / " in metric or metric.startswith("sqrt("):
        raise NoCounterpartError("the delay, or the direction, of a share has no counterpart")
    inside = metric[metric.index("(") + 1 : -1]
    return f"{metric[:-1]}{', ' if inside else ''}lag {days})"


def _delay_days(arguments: Arguments) -> int:
    """The number of the last days that a test leaves out."""
    match arguments.get("detection_delay"):
        case None:
            return 0
        case {"period": str(period), "count": int(count)} if period in _DAYS and count >= 0:
            return count * _DAYS[period]
    raise NoCounterpartError("its detection_delay must be a number of days or weeks")


def _training_days(arguments: Arguments) -> int:
    match arguments.get("training_period"):
        case None:
            return int(finite(arguments.get("days_back", 14)))
        case {"period": str(period), "count": int(count)} if period in _DAYS:
            return count * _DAYS[period]
    raise NoCounterpartError("its training_period must be a number of days or weeks")


def _rows(arguments: Arguments) -> tuple[str, ...]:
    counted = _days_before("num_rows()", _delay_days(arguments))
    more = (f"{counted} > 0",) if arguments.get("fail_on_zero") else ()
    return (*more, _usual("num_rows()", arguments))


def _dimensions(arguments: Arguments) -> Claims:
    columns = [Arguments({}, column, "data").path for column in arguments.list_of("dimensions")]
    texts = (f"{text}{foreign_rule.groups_text(columns)}" for text in _rows(arguments))
    return Claims("dimension_anomalies", tuple(texts))


def _column(arguments: Arguments) -> Claims:
    column = arguments.path
    if "column_anomalies" not in arguments:
        raise NoCounterpartError("name its monitors in column_anomalies: they depend on the type")
    by = arguments.get("dimensions") or []
    groups = foreign_rule.groups_text([Arguments({}, column, "data").path for column in by])
    texts, monitors = [], foreign_rule.listed_rules("dbt: Elementary")
    for name in arguments.list_of("column_anomalies"):
        if name not in monitors:
            raise NoCounterpartError(f"the monitor '{name}' has no counterpart")
        texts.append(_usual(monitors[name][0].format(column), arguments) + groups)
    return Claims("column_anomalies", tuple(texts), column)


ELEMENTARY: Mapping[str, Callable[[Arguments], Claims]] = {
    "volume_anomalies": lambda arguments: Claims("volume_anomalies", _rows(arguments)),
    "dimension_anomalies": _dimensions,
    "column_anomalies": _column,
}


def elementary_claims(kind: str, arguments: Arguments) -> Claims | None:
    """The claims of a test of Elementary; None for any other test.

    :raises NoCounterpartError: it has no counterpart.
    """
    package, _, bare = kind.rpartition(".")
    if package != "elementary":
        return None
    foreign_rule.refuse_listed("dbt", bare)
    if bare not in ELEMENTARY:
        return None
    arguments.only(*_keys_of(bare))
    return ELEMENTARY[bare](arguments)


def _keys_of(test: str) -> list[str]:
    """The arguments that a test takes besides the column."""
    (keys,) = foreign_rule.listed_rules("dbt: arguments").get(test, ("",))
    return keys.split()


def is_anomaly_test(kind: str) -> bool:
    """True for a test that compares with earlier days."""
    return kind.startswith("elementary.") and kind.endswith("_anomalies")


MOST_COMMON_VALUE = "expect_column_most_common_value_to_be_in_set"
ORDERS = {
    "expect_column_values_to_be_increasing": "decrease_count",
    "expect_column_values_to_be_decreasing": "increase_count",
}
"""Expectations about the order of rows, and the metric that counts violations."""

_RENAMED = {"column_name": "column", "column_type": "type_", "column_type_list": "type_list"}


def expectation_of(kind: str, arguments: Arguments) -> foreign_rule.Meaning:
    """The translation of an expectation.

    :raises NoCounterpartError: an argument has no counterpart.
    """
    if kind in ORDERS:
        return _in_order(kind, arguments)
    if kind == MOST_COMMON_VALUE:
        return _most_common(arguments)
    given = dict(arguments)
    strictly = given.pop("strictly", None)
    flags = given.pop("flags", None)
    if flags not in (None, "", "i"):
        raise NoCounterpartError(f"the flags '{flags}' have no counterpart")
    if flags:
        given |= _without_case(given)
    for written, meant in _RENAMED.items():
        if written in given:
            given[meant] = given.pop(written)
    if any("{{" in str(given.get(key)) for key in ("type_", "type_list")):
        raise NoCounterpartError("its type is a warehouse type: write the Spark type")
    if strictly:
        given |= {"strict_min": "min_value" in given, "strict_max": "max_value" in given}
    if arguments.column is not None:
        given.setdefault("column", arguments.column)
    given.pop("is_raw", None)  # patterns are used as they are
    if (is_quoted := given.pop("quote_values", None)) is not None:
        given |= _quoted(given, is_quoted=bool(is_quoted))
    return great_expectations.translate({"type": kind, "kwargs": given}, None)


def _quoted(given: Mapping[str, Any], *, is_quoted: bool) -> dict[str, Any]:
    """The values of an expectation: quoted, they are compared as strings; otherwise they are SQL.

    :raises NoCounterpartError: a value is SQL.
    """
    values = given.get("value_set")
    if not isinstance(values, list):
        return {}
    if is_quoted:
        return {"value_set": [str(value) for value in values]}
    if any(isinstance(value, str) for value in values):
        raise NoCounterpartError("its values are SQL expressions, since quote_values is false")
    return {}


def _without_case(given: dict[str, Any]) -> dict[str, Any]:
    """The regular expressions of an expectation, made case-insensitive."""
    ignored: dict[str, Any] = {}
    if isinstance(given.get("regex"), str):
        ignored["regex"] = f"(?i){given['regex']}"
    if isinstance(given.get("regex_list"), list):
        ignored["regex_list"] = [f"(?i){pattern}" for pattern in given["regex_list"]]
    return ignored


def _in_order(kind: str, arguments: Arguments) -> Claims:
    """Claims that no value is smaller, or larger, than the previous value; by default strictly."""
    arguments.only("sort_column", "strictly")
    column = arguments.path
    order = column_text(arguments.get("sort_column") or column)
    count = f"{ORDERS[kind]}({column}, order_by {order})"
    if arguments.get("strictly", True):
        count += f" + unchanged_count({column}, order_by {order})"
    return Claims(kind.removeprefix("expect_column_values_to_be_"), (f"{count} == 0",), column)


def _most_common(arguments: Arguments) -> Claims:
    arguments.only("value_set", "top_n", "quote_values", "data_type", "strictly")
    column, listed = arguments.path, foreign_rule.list_text(arguments.list_of("value_set"))
    most = value_text(finite(arguments.get("top_n", 1)))
    return Claims("most_common", (f"{MOST_COMMON}({column}, {most}) in {listed}",), column)


_NONE = kinds.Condition("==", 0)
_FAILS_IF = re.compile(r"\s*(?P<op><=|>=|!=|==|=|<|>)\s*(?P<bound>\d+)\s*")
_EMPTY = "an empty table passes in dbt but fails here"
ANY_ROW = "> 0"
"""The default condition under which a test fails."""


def groups_of(kind: str, arguments: dict[str, Any]) -> tuple[str, ...]:
    """The columns by which a test groups the rows, taken from its arguments.

    :raises NoCounterpartError: it compares groups of two tables.
    """
    named = [arguments.pop(key, None) for key in ("group_by_columns", "group_by")]
    columns = next((value for value in named if value), ())
    if columns and kind.rsplit(".", maxsplit=1)[-1] in foreign_rule.listed_rules(
        "dbt: tests of two models"
    ):
        raise NoCounterpartError("comparing groups of two tables has no counterpart")
    names = columns if isinstance(columns, list | tuple) else [columns]
    return tuple(column_text(name) for name in names)


def difference_of(kind: str, arguments: Collection[str] = (), *, is_grouped: bool) -> str | None:
    """Describes when the verdicts of the two tools differ; None if they never do.

    :param arguments: the names of the arguments of the test.
    """
    bare = kind.rsplit(".", maxsplit=1)[-1]
    differences = [ANOMALIES] if is_anomaly_test(kind) else []
    differences += foreign_rule.listed_rules("dbt: differences").get(bare, ())
    if bare == "equality" and "compare_columns" in arguments:
        differences.append("a repeated row must occur the same number of times in both tables")
    if bare == "equality" and "compare_columns" not in arguments:
        differences.append("columns are compared by their position in the tables")
    if is_grouped or bare in foreign_rule.listed_rules("dbt: tests that an empty table passes"):
        differences.append(_EMPTY)
    return "; ".join(differences) or None


_COLUMNS = (
    *("column_name", "combination_of_columns", "dimensions", "column_A", "column_B"),
    *("column_list", "compare_columns", "group_by", "group_by_columns", "partition_by", "field"),
)
"""Arguments with columns, which dbt puts into its SQL as they are."""
_PART = r'(?:[\w$]+|"[^"]+"|`[^`]+`|\[[^\]]+\])'
_NAME = re.compile(rf"\s*{_PART}(?:\.{_PART})*\s*")


def _require_name(column: object) -> None:
    """:raises NoCounterpartError: it is SQL instead of the name of a column."""
    if isinstance(column, str) and "{{" not in column and not _NAME.fullmatch(column):
        raise NoCounterpartError(
            f"'{column}' is an expression, and no column: write the rule with `sql(...)`"
        )


def meaning_of(kind: str, arguments: Arguments, fails_if: str) -> foreign_rule.Meaning:
    """The translation of a test that fails at a number of rows, such as `> 0`.

    :raises NoCounterpartError: it has no counterpart.
    """
    for key in _COLUMNS:
        given = arguments.get(key)
        for column in given if isinstance(given, list) else [given]:
            _require_name(column)
    bare = kind.rsplit(".", maxsplit=1)[-1]
    if (claims := elementary_claims(kind, arguments)) is not None:
        return _untolerant(claims, fails_if)
    if bare in GENERIC:
        arguments.only(*_keys_of(bare))
        demands = GENERIC[bare](arguments)
        if isinstance(demands, Claims):
            return _untolerant(demands, fails_if)
        about = arguments.path if arguments.column or "column_name" in arguments else None
        return Translation(bare, _tolerant(demands, fails_if, about), about)
    if "dbt_expectations." in kind or kind.startswith("expect_"):
        return _untolerant(expectation_of(bare, arguments), fails_if)
    raise NoCounterpartError(
        "it is a macro of the project, or of a package that is not translated: write it in DQL"
    )


def _untolerant(meaning: foreign_rule.Meaning, fails_if: str) -> foreign_rule.Meaning:
    """:raises NoCounterpartError: the test tolerates a number of rows."""
    if fails_if != ANY_ROW:
        raise NoCounterpartError(f"failing if rows {fails_if} has no counterpart here")
    return meaning


def _tolerant(
    demands: tuple[kinds.Demand, ...], fails_if: str, about: str | None
) -> tuple[kinds.Demand, ...]:
    """The demands of a test that fails at a number of rows, such as `> 10`."""
    if fails_if == ANY_ROW:
        return demands
    match = _FAILS_IF.fullmatch(fails_if)
    opposite = {">": "<=", ">=": "<"}.get(match["op"]) if match else None
    if match is None or opposite is None:
        raise NoCounterpartError(f"failing if rows {fails_if} has no counterpart")
    condition = kinds.Condition(opposite, int(match["bound"]))
    match demands:
        case (kinds.Unique(columns=columns),):
            return (kinds.QueryGives(_repeated_values(columns), condition),)
        case (kinds.Required(),) if about is not None:
            return (kinds.MetricRule("null_count", (about,), condition),)
        case (kinds.RowsSatisfy(predicate, dialect),):
            query = aggregate_query(f"count_if(NOT ({predicate}))")
            return (kinds.QueryGives(query, condition, dialect),)
        case (kinds.OneOf() | kinds.Bound() as demand,) if about is not None:
            query = aggregate_query(f"count_if(NOT ({value_predicate(about, demand)}))")
            return (kinds.QueryGives(query, condition),)
    raise NoCounterpartError(f"failing if rows {fails_if} has no counterpart here")


def _recent(arguments: Arguments) -> tuple[kinds.Demand, ...]:
    part = str(arguments.get("datepart"))
    if part not in PERIOD_S:
        raise NoCounterpartError("its interval must be in minutes, hours, days or weeks")
    column = column_text(arguments.get("timestamp_column") or arguments.path)
    return (kinds.Fresh(column, finite(arguments.get("interval")) * PERIOD_S[part]),)


def _counted(metric: str, op: str, bound: str, arguments: Arguments) -> tuple[kinds.Demand, ...]:
    """A test that compares a metric of the column with a number, or with an argument."""
    column = arguments.path
    value = int(bound) if bound.isdigit() else finite(arguments.get(bound))
    return (kinds.MetricRule(metric, (column,), kinds.Condition(op, value)),)


def _consistent_casing(arguments: Arguments) -> tuple[kinds.Demand, ...]:
    name = arguments.sql
    query = aggregate_query(f"count(DISTINCT {name}) - count(DISTINCT lower({name}))")
    return (kinds.QueryGives(query, _NONE),)


def _within_stdevs(arguments: Arguments) -> Claims:
    most = value_text(finite(arguments.get("sigma_threshold", 3)))
    column = arguments.path
    return Claims("within_stdevs", (f"max_z_score({column}) <= {most}",), column)


def _aggregation(arguments: Arguments) -> Claims:
    expression = foreign_rule.sql_text(arguments.get("expression"))
    other = column_text(arguments.relation("compare_model"))
    expected = f"sql({value_text(expression)}, dataset {arguments.dataset})"
    compared = value_text(str(arguments.get("compare_expression") or expression))
    return Claims(
        "aggregation", (f"{expected} == sql({compared}, dataset {other})",), others=(other,)
    )


def _about_columns(claims: Callable[[list[Any]], tuple[str, ...]]) -> Callable[[Arguments], Claims]:
    """A test about the columns that a table has."""
    return lambda arguments: Claims("columns", claims(arguments.list_of("column_list")))


def _beside_other(kind: str, metric: str, op: str, arguments: Arguments) -> Claims:
    """A test that compares a metric of two tables; the braces stand for the table."""
    dataset, other = arguments.dataset, column_text(arguments.relation("compare_model"))
    factor = finite(arguments.get("factor", 1))
    times = f" * {value_text(factor)}" if factor != 1 else ""
    text = f"{metric.format(dataset)} {op} {metric.format(other)}{times}"
    return Claims(kind, (text,), others=(other,))


def _accepted_values(arguments: Arguments) -> tuple[kinds.Demand, ...]:
    values = arguments.list_of("values")
    if arguments.get("quote") is not False:
        # dbt compares strings unless configured otherwise, and casts the column.
        return (kinds.RowsSatisfy(_among_strings(arguments, "IN", values)),)
    return (kinds.OneOf(tuple(values)),)


def _not_accepted_values(arguments: Arguments) -> tuple[kinds.Demand, ...]:
    values = arguments.list_of("values")
    return (kinds.RowsSatisfy(_among_strings(arguments, "NOT IN", values)),)


def _among_strings(arguments: Arguments, op: str, values: list[Any]) -> str:
    text = f"{arguments.sql} {op} ({', '.join(quote_literal(str(value)) for value in values)})"
    # Spark casts the strings beside a column of numbers, which DQL does not.
    return text if all(isinstance(value, str) for value in values) else f"({text}) = true"


def _reference(arguments: Arguments) -> kinds.Refers:
    field = column_text(arguments.get("field"))
    return kinds.Refers((arguments.path,), arguments.relation("to"), (field,))


def _relationships_where(arguments: Arguments) -> tuple[kinds.Demand, ...] | Claims:
    among = str(arguments.get("to_condition", "1=1"))
    if among.replace(" ", "") != "1=1":
        return _refers_to_some(arguments, foreign_rule.sql_text(among))
    reference, where = _reference(arguments), arguments.get("from_condition")
    return (kinds.AmongRows(reference, str(where)) if where else reference,)


def _refers_to_some(arguments: Arguments, among: str) -> Claims:
    """Claims that the values occur in the rows of the other table that meet a condition."""
    other, field = column_text(arguments.relation("to")), column_text(arguments.get("field"))
    name = sql_name(field)
    referenced = " ".join(
        ("SELECT", name, "FROM", sql_name(other), f"WHERE ({among}) AND {name} IS NOT NULL")
    )
    condition = foreign_rule.sql_text(arguments.get("from_condition") or "1=1")
    lost = f"WHERE ({condition}) AND {arguments.sql} NOT IN ({referenced})"
    query = " ".join(("SELECT count(*) FROM", sql_name(arguments.dataset), lost))
    return Claims(
        "relationships", (f"query({value_text(query)}) == 0",), arguments.path, others=(other,)
    )


def _repeated_values(columns: tuple[str, ...]) -> str:
    """The query for the number of values that rows share."""
    names = ", ".join(map(sql_name, columns))
    present = " AND ".join(f"{sql_name(column)} IS NOT NULL" for column in columns)
    rows = ("SELECT 1 FROM {model} WHERE", present, "GROUP BY", names, "HAVING count(*) > 1")
    return " ".join(("SELECT count(*) FROM (", *rows, ") AS repeated"))


def _equality(arguments: Arguments) -> Claims:
    other = column_text(arguments.relation("compare_model"))
    if "compare_columns" not in arguments:
        rows = [
            " ".join(("SELECT * FROM", sql_name(dataset))) for dataset in (arguments.dataset, other)
        ]
        return Claims("equality", (_are_equal(*rows),), others=(other,))
    columns = foreign_rule.columns_text(arguments.list_of("compare_columns"))
    text = f"rows of {arguments.dataset} match {other} on ({columns})"
    return Claims("equality", (text,), others=(other,))


def _are_equal(rows: str, other_rows: str) -> str:
    """The claim that two queries return the same rows, regardless of repetitions."""
    differences = f"(({rows} EXCEPT {other_rows}) UNION ALL ({other_rows} EXCEPT {rows}))"
    text = " ".join(("SELECT count(*) FROM", differences, "AS differing"))
    return f"query({value_text(text)}) == 0"


def _cardinality_equality(arguments: Arguments) -> Claims:
    """Claims that each value has the same number of rows in both tables."""
    other = column_text(arguments.relation("to"))
    counts = [
        " ".join(("SELECT", f"{name}, count(*) FROM {table}", "GROUP BY", name))
        for name, table in (
            (arguments.sql, sql_name(arguments.dataset)),
            (sql_name(column_text(arguments.get("field"))), sql_name(other)),
        )
    ]
    return Claims("cardinality_equality", (_are_equal(*counts),), others=(other,))


_NO_GAPS = {"not_allowed": "=", "allowed": "<=", "required": "<"}
"""The operator between the end of a range and the start of the next one, by the argument `gaps`."""


def _exclusive_ranges(arguments: Arguments) -> tuple[kinds.Demand, ...]:
    """Demands that ranges, sorted by their lower bounds, do not overlap."""
    lower, upper = (
        sql_name(column_text(arguments.get(f"{end}_bound_column"))) for end in ("lower", "upper")
    )
    beside = _NO_GAPS.get(str(arguments.get("gaps", "allowed")))
    if beside is None:
        raise NoCounterpartError(
            f"gaps are allowed, not_allowed or required, not '{arguments['gaps']}'"
        )
    within = "<=" if arguments.get("zero_length_range_allowed") else "<"
    partition = arguments.get("partition_by")
    over = f"PARTITION BY {partition} " if partition else ""
    window = f"({over}ORDER BY {lower}, {upper})"
    ranges = (
        f"SELECT {lower} AS low, {upper} AS high, lead({lower}) OVER {window} AS following,",
        f"lead(true) OVER {window} IS NULL AS is_last FROM {{model}}",
    )
    fits = (
        f"coalesce(low {within} high, false) AND coalesce(high {beside} following, is_last, false)"
    )
    text = " ".join(("SELECT", f"count_if(NOT ({fits}))", "FROM (", *ranges, ") AS ranges"))
    return (kinds.QueryGives(text, _NONE),)


def _expression_is_true(arguments: Arguments) -> tuple[kinds.Demand, ...]:
    expression = foreign_rule.sql_text(arguments.get("expression"))
    if arguments.column is not None:
        expression = f"{arguments.sql} {expression}"
    return (kinds.RowsSatisfy(expression),)


def _not_empty_string(arguments: Arguments) -> tuple[kinds.Demand, ...]:
    trimmed = arguments.get("trim_whitespace", True)
    value = f"trim({arguments.sql})" if trimmed else arguments.sql
    return (kinds.RowsSatisfy(f"{value} <> ''"),)


def _accepted_range(arguments: Arguments) -> tuple[kinds.Demand, ...]:
    ends = "=" if arguments.get("inclusive", True) else ""
    demands: list[kinds.Demand] = []
    for key, sign in (("min_value", ">"), ("max_value", "<")):
        if (value := arguments.get(key)) is None:
            continue
        if isinstance(value, str):  # another column, or an expression
            demands.append(kinds.RowsSatisfy(f"{arguments.sql} {sign}{ends} {value}"))
        else:
            demands.append(kinds.Bound(f"{sign}{ends}", finite(value)))
    if not demands:
        raise NoCounterpartError("it has neither min_value nor max_value")
    return tuple(demands)


def _not_null_proportion(arguments: Arguments) -> tuple[kinds.Demand, ...]:
    demands: list[kinds.Demand] = [
        kinds.Complete(arguments.path, float(finite(arguments.get("at_least", 0))))
    ]
    if (most := arguments.get("at_most")) is not None and most < 1:
        least_null = kinds.Condition(">=", round(100 * (1 - float(finite(most))), 9))
        demands.append(
            kinds.MetricRule("null_count", (arguments.path,), least_null, is_percent=True)
        )
    return tuple(demands)


def _combination(arguments: Arguments) -> tuple[kinds.Demand, ...]:
    columns = arguments.list_of("combination_of_columns")
    names = ", ".join(sql_name(column_text(column)) for column in columns)
    # NULL counts as a value of a combination.
    query = aggregate_query(f"count(*) - count(DISTINCT struct({names}))")
    return (kinds.QueryGives(query, _NONE),)


def _recency(arguments: Arguments) -> tuple[kinds.Demand, ...]:
    part = str(arguments.get("datepart"))
    if part not in PERIOD_S or arguments.get("ignore_time_component"):
        raise NoCounterpartError(
            "its interval must be in minutes, hours, days or weeks, with their time"
        )
    age = finite(arguments.get("interval")) * PERIOD_S[part]
    return (kinds.Fresh(column_text(arguments.get("field")), age),)


def _sequential_values(arguments: Arguments) -> Claims:
    interval, part = arguments.get("interval", 1), arguments.get("datepart")
    step = value_text(finite(interval))
    if part is not None:
        if part not in PERIOD_S:
            raise NoCounterpartError(f"a step of a {part} has no counterpart")
        step = f"{step} {part}{'' if interval == 1 else 's'}"
    column = arguments.path
    gaps = f"gap_count({column}, step {step}) == 0"
    return Claims("sequential_values", (gaps, f"repeated_count({column}) == 0"), column)


GENERIC: Mapping[str, Callable[[Arguments], tuple[kinds.Demand, ...] | Claims]] = {
    **foreign_rule.listed_readers("dbt: counts", _counted),
    **foreign_rule.listed_readers("dbt: two models", _beside_other),
    "expect_row_values_to_have_recent_data": _recent,
    "expect_grouped_row_values_to_have_recent_data": _recent,
    "expect_column_values_to_have_consistent_casing": _consistent_casing,
    "expect_column_values_to_be_within_n_stdevs": _within_stdevs,
    "equal_expression": _aggregation,
    "expect_table_aggregation_to_equal_other_table": _aggregation,
    "expect_table_columns_to_contain_set": _about_columns(foreign_rule.columns_exist),
    "expect_table_columns_to_match_set": _about_columns(foreign_rule.only_columns),
    "expect_table_columns_to_match_ordered_list": _about_columns(foreign_rule.columns_in_order),
    "not_null": lambda arguments: (kinds.Required(),),
    "unique": lambda arguments: (kinds.Unique((arguments.path,)),),
    "accepted_values": _accepted_values,
    "relationships": lambda arguments: (_reference(arguments),),
    "relationships_where": _relationships_where,
    "equality": _equality,
    "cardinality_equality": _cardinality_equality,
    "mutually_exclusive_ranges": _exclusive_ranges,
    "expression_is_true": _expression_is_true,
    "not_empty_string": _not_empty_string,
    "accepted_range": _accepted_range,
    "not_null_proportion": _not_null_proportion,
    "not_accepted_values": _not_accepted_values,
    "unique_combination_of_columns": _combination,
    "recency": _recency,
    "sequential_values": _sequential_values,
}
"""The tests of dbt and its packages with a translation of their own, by the last part of their
names."""
