"""Expectations of Great Expectations as demands: `expectation_type` of 0.x, `type` of 1.x, and
`kwargs`. `contracts/export/great_expectations.py` writes them, with the same names of metrics.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import combinations
from typing import Any, TypeAlias

from dqx_airflow.contracts import demands as kinds
from dqx_airflow.contracts.compile.terms import sql_name
from dqx_airflow.contracts.database_types import physical_type
from dqx_airflow.contracts.demands.measures import MEASURED
from dqx_airflow.contracts.dialects import foreign
from dqx_airflow.contracts.dialects.foreign.row_conditions import row_condition
from dqx_airflow.contracts.field_types import spark_type_of, types_named
from dqx_airflow.contracts.mistyped_types import hint_at_type, meant_type
from dqx_airflow.contracts.model import dotted_path
from dqx_airflow.dql.printer import show_text
from dqx_airflow.errors import NoCounterpartError
from dqx_airflow.metrics.sql import quote_literal
from dqx_airflow.metrics.types import TYPE_WORDS
from dqx_airflow.values.exact import is_finite_number

Demands: TypeAlias = tuple[kinds.Demand, ...]
Bounds: TypeAlias = "list[tuple[str, Any]]"
_IGNORED = {
    **dict.fromkeys(("all", "all_values_are_missing", "both_values_are_missing"), " AND "),
    **dict.fromkeys(("any_value_is_missing", "either_value_is_missing"), " OR "),
    **dict.fromkeys(("never", "neither"), ""),
}
"""The operator between the `IS NULL` of columns that selects the rows an expectation ignores."""
_DIRECTIVES = {"Y": "yyyy", "y": "yy", "m": "M", "d": "d", "H": "H", "M": "m", "S": "s", "b": "MMM"}
_PART_OF_FORM = re.compile(r"%(?P<directive>.)|(?P<word>[A-Za-z']+)|(?P<sign>[^%A-Za-z']+)")


def conditions_in(bounds: Bounds, factor: int = 1) -> tuple[kinds.Condition, ...]:
    """The bounds as conditions on a number, multiplied by a factor."""
    if not all(is_finite_number(value) for _, value in bounds):
        raise NoCounterpartError("its bounds are not numbers")
    sizes = [value if factor == 1 else round(factor * value, 9) for _, value in bounds]
    match bounds:
        case [(">=", low), ("<=", high)] if low <= high:
            return (kinds.Condition("between", *sizes),)
    return tuple(kinds.Condition(op, size) for (op, _), size in zip(bounds, sizes, strict=True))


def _equals(name: str, value: Any) -> str:
    if value is None:
        return f"{name} IS NULL"
    if not foreign.is_value(value):
        raise NoCounterpartError(f"{value!r} cannot be compared with")
    return f"{name} = {foreign.literals((value,))}"


_NUMBER_INSIDE = re.compile(r"[<:,](?:whole_)?number(?=[>,])")
"""A number of any size in a nested type: `array<number>`."""
_OF_PYSPARK = re.compile(r"(?P<name>\w+)Type(\((?P<parts>.*)\))?")


def _type_claim(written: str) -> str | None:
    """The type check in DQL for a name of a type, such as `type bigint` for `LongType`, or
    `fits whole_number` for `int`, by which Great Expectations means a family; None if Spark has no
    such type."""
    match = _OF_PYSPARK.fullmatch(written.strip())
    if match is not None:
        name = match["name"].lower()
        if match["parts"]:
            name = f"{name}({match['parts']})"
        elif name == "timestampntz":
            name = "timestamp_ntz"
    else:
        name = written.strip().lower()
    is_of_pyspark = match is not None
    if is_of_pyspark and name in ("integer", "float"):
        return f"type {spark_type_of(name)}"
    found = types_named("read from GX").get(name)
    if found is None and name in TYPE_WORDS[-3:]:
        found = name
    if found is None:
        physical = physical_type(name, None, is_spark=True)
        if physical is None:
            return None
        found = "text" if physical.spark_type == "string" else physical.spark_type
    # A timestamp of files without a time zone is read as the other type.
    is_family = found in TYPE_WORDS or found == "timestamp" or _NUMBER_INSIDE.search(found)
    shown = show_text(found) if "<" in found else found
    return f"fits {shown}" if is_family else f"type {shown}"


def _is_type(written: str) -> bool:
    return _type_claim(written) is not None


def _regex(text: object) -> str:
    if not isinstance(text, str) or not text:
        raise NoCounterpartError("its regular expression is not a string")
    if "(?P" in text:
        raise NoCounterpartError("(?P...) works only in Python: write (?:...) for a group")
    return text


def _form_of_spark(written: str) -> str:
    """A Python date format for Spark. A single letter parses 5 and 05, as in Python; if another
    number follows directly, two digits are meant."""
    parts = list(_PART_OF_FORM.finditer(written))
    form = []
    for index, part in enumerate(parts):
        if part["directive"] is None:
            word = (part["word"] or "").replace("'", "''")
            form.append(f"'{word}'" if word else part["sign"])
            continue
        letters = _DIRECTIVES.get(part["directive"])
        if letters is None:
            raise NoCounterpartError(f"%{part['directive']} has no counterpart in Spark")
        around = (parts[near] for near in (index - 1, index + 1) if 0 <= near < len(parts))
        is_adjacent = any(near["directive"] is not None for near in around)
        form.append(letters * 2 if is_adjacent and len(letters) == 1 else letters)
    return "".join(form)


@dataclass(slots=True)
class _Expectation:
    """The `kwargs` of an expectation, and the methods that translate it to demands.

    `requested` are the keys that were read. `share` is the share of values for a single demand, as
    in `Rule`.
    """

    given: Mapping[str, Any]
    column: str | None
    sql_dialect: str | None
    share: float = 1.0
    requested: set[str] = field(default_factory=set)

    def take(self, key: str, default: Any = None) -> Any:
        self.requested.add(key)
        value = self.given.get(key)
        return default if value is None else value

    def text(self, key: str) -> str:
        value = self.take(key)
        if not isinstance(value, str) or not value:
            raise NoCounterpartError(f"it has no {key}")
        return value

    def items(self, key: str) -> list[Any]:
        value = self.take(key)
        if not isinstance(value, list) or not value:
            raise NoCounterpartError(f"it has no {key}, or an empty one")
        return value

    def values(self, key: str) -> tuple[kinds.Literal, ...]:
        values = foreign.values_in(self.take(key))
        if values is None:
            raise NoCounterpartError(f"its {key} is not a list of values")
        return values

    def number(self, key: str) -> int | float:
        value = self.take(key)
        if not is_finite_number(value):
            raise NoCounterpartError(f"its {key} is not a number")
        return value

    def path(self, key: str) -> str:
        """A column as DQL writes it; a dot leads into a struct, as in Spark."""
        return dotted_path(self.text(key))

    def one_or_more(self, key: str) -> list[Any]:
        """The items at a key that ends in `_list`; for any other key its string, as a list."""
        return self.items(key) if key.endswith("_list") else [self.text(key)]

    def paths(self, key: str) -> tuple[str, ...]:
        return tuple(dotted_path(str(name)) for name in self.items(key))

    def names(self, *keys: str) -> list[str]:
        """The columns at some keys as SQL."""
        return [sql_name(self.path(key)) for key in keys]

    @property
    def name(self) -> str:
        """The column of the expectation as SQL."""
        return sql_name(self.own_column())

    def own_column(self) -> str:
        """The column of the expectation; by default the column of its field."""
        if self.column is None or self.given.get("column") is not None:
            self.column = self.path("column")
        return self.column

    def mostly(self) -> float:
        share = self.take("mostly", 1)
        if not is_finite_number(share) or not 0 <= share <= 1:
            raise NoCounterpartError("mostly must be between 0 and 1")
        return float(share)

    # Demands -------------------------------------------------------------------------------------

    def each_value(self, *demands: foreign.ColumnDemand) -> Demands:
        """The demands on each value; if `mostly` is less than 1, one predicate for that share of
        the values."""
        share = self.mostly()
        if share == 1:
            return demands
        if len(demands) == 1:
            self.share = share
            return demands
        return (kinds.RowsSatisfy(foreign.all_hold(self.own_column(), demands), share=share),)

    def each_row(self, predicate: str) -> Demands:
        """A predicate over the rows, or `mostly` of them."""
        return (kinds.RowsSatisfy(predicate, share=self.mostly()),)

    def bounds(self) -> Bounds:
        """The bounds as comparisons: `(">=", 1)`."""
        bounds = []
        for key, strict, ops in (("min", "strict_min", ">>="), ("max", "strict_max", "<<=")):
            value = self.take(f"{key}_value")
            op = ops[0] if self.take(strict, False) is True else ops[1:]
            if value is not None and not foreign.is_value(value):
                raise NoCounterpartError(f"its {key}_value is not a value")
            if value is not None:
                bounds.append((op, value))
        if not bounds:
            raise NoCounterpartError("it has neither min_value nor max_value")
        return bounds

    def measured(self, metric: str) -> Demands:
        """An expectation about a metric of DQL, of the table or of a column; a percentage is a
        share in its bounds."""
        columns = () if "_table_" in MEASURED.get(metric, "") else (self.own_column(),)
        is_share = metric == "count"
        return tuple(
            kinds.MetricRule(metric, columns, condition, is_share)
            for condition in conditions_in(self.bounds(), 100 if is_share else 1)
        )

    def computed(self, expression: str) -> Demands:
        """An expectation about an aggregate of Spark; the braces stand for the column."""
        query = foreign.aggregate_query(expression.format(self.name))
        return tuple(kinds.QueryGives(query, bound) for bound in conditions_in(self.bounds()))

    def quantiles(self) -> Demands:
        match self.take("quantile_ranges"):
            case {"quantiles": [*shares], "value_ranges": [*ranges]} if len(shares) == len(ranges):
                pass
            case _:
                raise NoCounterpartError("quantile_ranges needs one value range for each quantile")
        demands: list[kinds.Demand] = []
        for share, bounds in zip(shares, ranges, strict=True):
            if not is_finite_number(share) or not 0 <= share <= 1:
                raise NoCounterpartError("a quantile is a number between 0 and 1")
            match bounds:
                case [low, high] if is_finite_number(low) and is_finite_number(high):
                    condition = kinds.Condition("between", low, high)
                case [None, high] if is_finite_number(high):
                    condition = kinds.Condition("<=", high)
                case [low, None] if is_finite_number(low):
                    condition = kinds.Condition(">=", low)
                case _:
                    raise NoCounterpartError("a value range is a list of two numbers")
            query = foreign.aggregate_query(f"percentile({self.name}, {share})")
            demands.append(kinds.QueryGives(query, condition))
        return tuple(demands)

    def distinct_in_set(self) -> Demands:
        return (kinds.OneOf(self.values("value_set")),)

    def distinct_contain_set(self) -> Demands:
        name = self.name
        values = tuple(dict.fromkeys(self.values("value_set")))
        found = f"count(DISTINCT CASE WHEN {name} IN ({foreign.literals(values)}) THEN {name} END)"
        return (
            kinds.QueryGives(foreign.aggregate_query(found), kinds.Condition("==", len(values))),
        )

    def distinct_equal_set(self) -> Demands:
        return (*self.distinct_in_set(), *self.distinct_contain_set())

    def most_common(self) -> Demands:
        self.take("ties_okay")
        column = self.own_column()
        values = self.values("value_set")
        return (kinds.MetricRule("most_common", (column,), kinds.NONE, values=values),)

    def z_scores(self) -> Demands:
        name = self.name
        threshold = self.number("threshold")
        is_double = self.take("double_sided", True)
        share = self.mostly()
        if is_double and share == 1:
            below = kinds.Condition("<", threshold)
            return (kinds.MetricRule("max_z_score", (self.own_column(),), below),)
        if share == 1:
            query = foreign.aggregate_query(f"(max({name}) - avg({name})) / stddev_samp({name})")
            return (kinds.QueryGives(query, kinds.Condition("<", threshold)),)
        distance = f"abs({name} - center)" if is_double else f"({name} - center)"
        near = f"spread > 0 AND {distance} < {threshold} * spread"
        query = " ".join(
            (
                f"SELECT count(CASE WHEN {near} THEN 1 END) / count({name}) FROM",
                f"(SELECT {name}, avg({name}) OVER () AS center,",
                f"stddev_samp({name}) OVER () AS spread FROM {{model}}) AS rows",
            )
        )
        return (kinds.QueryGives(query, kinds.Condition(">=", share)),)

    def exists(self) -> Demands:
        return (kinds.Presence(),)

    def in_order(self, metric: str) -> Demands:
        """An expectation about the order of rows, which a table does not have."""
        claim = f"{metric}({self.own_column()}, order_by ...) == 0"
        raise NoCounterpartError(f"the rows of a table have no order: write {claim} in DQL")

    def compound_unique(self) -> Demands:
        columns = self.paths("column_list")
        if self.mostly() < 1:
            raise NoCounterpartError("mostly, a share of rows that are unique, has no counterpart")
        ignored = self.take("ignore_row_if", "all_values_are_missing")
        if ignored == "any_value_is_missing":
            return (kinds.Unique(columns),)
        # Here a row with some NULLs counts, which `Unique` excludes.
        names = [sql_name(column) for column in columns]
        query = foreign.aggregate_query(f"count(*) - count(DISTINCT struct({', '.join(names)}))")
        if ignored == "all_values_are_missing":
            query += " WHERE " + " OR ".join(f"{name} IS NOT NULL" for name in names)
        return (kinds.QueryGives(query, kinds.NONE),)

    def unique_within_record(self) -> Demands:
        names = [sql_name(column) for column in self.paths("column_list")]
        if len(names) < 2:
            raise NoCounterpartError("its column_list needs two columns")
        # NULL equals NULL.
        predicate = " AND ".join(
            f"({name} IS NOT NULL OR {other_name} IS NOT NULL) AND "
            f"({name} IS NULL OR {other_name} IS NULL OR {name} <> {other_name})"
            for name, other_name in combinations(names, 2)
        )
        return self._of_kept_rows(names, predicate, is_total=True)

    def pair_in_set(self) -> Demands:
        names = self.names("column_A", "column_B")
        pairs = []
        for pair in self.items("value_pairs_set"):
            match pair:
                case [first, second]:
                    pairs.append(f"({_equals(names[0], first)} AND {_equals(names[1], second)})")
                case _:
                    raise NoCounterpartError("its value_pairs_set is not a list of pairs")
        return self._of_kept_rows(names, " OR ".join(pairs), is_of_nulls=True)

    def pair_greater(self) -> Demands:
        return self.pair(">=" if self.take("or_equal", False) is True else ">")

    def pair(self, op: str) -> Demands:
        names = self.names("column_A", "column_B")
        return self._of_kept_rows(names, f" {op} ".join(names))

    def _of_kept_rows(
        self,
        names: list[str],
        predicate: str,
        dialect: str | None = None,
        *,
        is_total: bool = False,
        is_of_nulls: bool = False,
    ) -> Demands:
        """The demand that a predicate holds in all rows that are not ignored; NULL is a failure.
        Ignored rows do not count for `mostly`.

        :param is_total: the predicate is never NULL. `is_of_nulls`: it may hold for NULL.
        """
        ignored = self.take("ignore_row_if", "all")
        share = self.mostly()
        if ignored not in _IGNORED:
            raise NoCounterpartError(f"its ignore_row_if is '{ignored}'")
        link = _IGNORED[ignored]
        missing = link.join(f"{name} IS NULL" for name in names)
        if link == " OR " and not (is_total or is_of_nulls):
            pass  # NULL for the ignored rows alone
        elif link and share < 1:
            predicate = f"if({missing}, NULL, coalesce({predicate}, false))"
        elif link == " OR " or (link and is_total):
            predicate = f"{missing} OR ({predicate})"
        elif not is_total:
            predicate = f"coalesce({predicate}, {missing if link else 'false'})"
        return (kinds.RowsSatisfy(predicate, dialect, share),)

    def typed(self, key: str) -> Demands:
        """The demand that a column has a type, or one of several. A list may have types that Spark
        does not have: they are left out."""
        written = [str(name) for name in self.one_or_more(key)]
        claims = dict.fromkeys(filter(None, map(_type_claim, written)))
        if not claims:
            hint = hint_at_type(meant_type(written[0], _is_type)) if len(written) == 1 else None
            reason = f"Spark has no type '{', '.join(written[:5])}'"
            raise NoCounterpartError(reason + (f": {hint}" if hint else ""))
        self.mostly()  # a column has one type
        return (kinds.OfOneType(self.own_column(), tuple(claims), tuple(written)),)

    def multicolumn_sum(self) -> Demands:
        names = [sql_name(column) for column in self.paths("column_list")]
        total = self.number("sum_total")
        return self._of_kept_rows(names, f"{' + '.join(names)} = {total}", "spark")

    def count_equal(self, metric: str) -> Demands:
        """An expectation about the number of rows or columns."""
        return (kinds.MetricRule(metric, (), kinds.Condition("==", self.number("value"))),)

    def unexpected_rows(self) -> Demands:
        rows = self.text("unexpected_rows_query").strip().rstrip(";")
        query = " ".join(
            ("SELECT count(*) FROM (", rows.replace("{batch}", "{model}"), ") AS rows")
        )
        return (kinds.QueryGives(query, kinds.NONE, self.sql_dialect),)

    def not_null(self) -> Demands:
        share = self.mostly()
        return (kinds.Required(),) if share == 1 else (kinds.Complete(self.own_column(), share),)

    def null(self) -> Demands:
        column = self.own_column()
        share = self.mostly()
        if share == 1:
            return (kinds.MetricRule("count", (column,), kinds.NONE),)
        most = kinds.Condition("<=", round(100 * (1 - share), 9))
        return (kinds.MetricRule("count", (column,), most, is_percent=True),)

    def unique(self) -> Demands:
        column = self.own_column()
        share = self.mostly()
        if share < 1:
            return (kinds.MetricRule("uniqueness", (column,), kinds.Condition(">=", share)),)
        return (kinds.Unique((column,)),)

    def values_between(self) -> Demands:
        return self.each_value(*(kinds.Bound(op, value) for op, value in self.bounds()))

    def lengths_between(self) -> Demands:
        lengths = []
        for op, value in self.bounds():
            if not isinstance(value, int):
                raise NoCounterpartError("its bounds are not whole numbers")
            strict = {">": 1, "<": -1}.get(op, 0)
            lengths.append(kinds.Length(f"{op[0]}=", value + strict))
        return self.each_value(*lengths)

    def lengths_equal(self) -> Demands:
        value = self.take("value")
        if not isinstance(value, int):
            raise NoCounterpartError("its value is not a whole number")
        return self.each_value(kinds.Length(">=", value), kinds.Length("<=", value))

    def in_set(self) -> Demands:
        return self.each_value(kinds.OneOf(self.values("value_set")))

    def not_in_set(self) -> Demands:
        values = foreign.literals(self.values("value_set"))
        return self.each_row(f"{self.name} NOT IN ({values})")

    def match_regex(self) -> Demands:
        return self.each_value(kinds.Pattern(_regex(self.take("regex"))))

    def match_regex_list(self) -> Demands:
        expressions = [_regex(item) for item in self.items("regex_list")]
        if self.take("match_on", "any") == "all":
            return self.each_value(*map(kinds.Pattern, expressions))
        return self.each_row(" OR ".join(foreign.rlike(self.name, item) for item in expressions))

    def none_match(self, key: str) -> Demands:
        expressions = self.items(key) if key.endswith("_list") else [self.take(key)]
        matches = (
            foreign.rlike(self.name, _regex(item), is_forbidden=True) for item in expressions
        )
        return self.each_row(" AND ".join(f"NOT ({match})" for match in matches))

    def like(self, key: str, negation: str = "") -> Demands:
        """The demands of an expectation with one or several LIKE patterns."""
        patterns = [quote_literal(str(item)) for item in self.one_or_more(key)]
        is_any = not negation and self.take("match_on", "any") != "all"
        operator = f"{negation} LIKE".strip()
        likes = (f"{self.name} {operator} {pattern}" for pattern in patterns)
        return self.each_row((" OR " if is_any else " AND ").join(likes))

    def strftime(self) -> Demands:
        form = quote_literal(_form_of_spark(self.text("strftime_format")))
        return self.readable("try_to_timestamp", form)

    def readable(self, function: str, *more: str) -> Demands:
        """An expectation that a function of Spark reads each value."""
        name = self.name
        call = f"{function}({', '.join((self.name, *more))})"
        return self.each_row(f"if({name} IS NULL, NULL, {call} IS NOT NULL)")


_REMARKS = ("meta", "notes", "description", "id", "severity", "rendered_content")
_ARGUMENT_REMARKS = (
    "result_format",
    "include_config",
    "catch_exceptions",
    "batch_id",
    "meta",
    "allow_relative_error",
    "severity",
)
_STRUCTURE = ("type", "expectation_type", "kwargs")
_OF_TABLES: dict[str, Callable[[_Expectation], Demands]] = {
    "expect_column_pair_values_a_to_be_greater_than_b": _Expectation.pair_greater,
    "expect_column_pair_values_to_be_equal": lambda it: it.pair("="),
    "expect_column_pair_values_to_be_in_set": _Expectation.pair_in_set,
    "expect_column_values_to_be_in_type_list": lambda it: it.typed("type_list"),
    "expect_column_values_to_be_of_type": lambda it: it.typed("type_"),
    "expect_compound_columns_to_be_unique": _Expectation.compound_unique,
    "expect_multicolumn_sum_to_equal": _Expectation.multicolumn_sum,
    "expect_multicolumn_values_to_be_unique": _Expectation.unique_within_record,
    "expect_select_column_values_to_be_unique_within_record": _Expectation.unique_within_record,
    "expect_table_column_count_to_equal": lambda it: it.count_equal("column_count"),
    "expect_table_row_count_to_equal": lambda it: it.count_equal("num_rows"),
    "unexpected_rows_expectation": _Expectation.unexpected_rows,
}
"""Expectations about a table, or about several columns."""
_OF_COLUMNS: dict[str, Callable[[_Expectation], Demands]] = {
    "expect_column_unique_value_proportion_to_be_between": lambda it: it.measured("distinctness"),
    "expect_column_distinct_values_to_be_in_set": _Expectation.distinct_in_set,
    "expect_column_distinct_values_to_contain_set": _Expectation.distinct_contain_set,
    "expect_column_distinct_values_to_equal_set": _Expectation.distinct_equal_set,
    "expect_column_most_common_value_to_be_in_set": _Expectation.most_common,
    "expect_column_proportion_of_non_null_values_to_be_between": lambda it: it.measured("count"),
    "expect_column_quantile_values_to_be_between": _Expectation.quantiles,
    "expect_column_stdev_to_be_between": lambda it: it.computed("stddev_samp({})"),
    "expect_column_to_exist": _Expectation.exists,
    "expect_column_value_z_scores_to_be_less_than": _Expectation.z_scores,
    "expect_column_values_to_be_decreasing": lambda it: it.in_order("increase_count"),
    "expect_column_values_to_be_increasing": lambda it: it.in_order("decrease_count"),
}
"""Expectations about a column, except for ranges of metrics: see `MEASURED`."""
_OF_VALUES: dict[str, Callable[[_Expectation], Demands]] = {
    "expect_column_value_lengths_to_be_between": _Expectation.lengths_between,
    "expect_column_value_lengths_to_equal": _Expectation.lengths_equal,
    "expect_column_values_to_be_between": _Expectation.values_between,
    "expect_column_values_to_be_in_set": _Expectation.in_set,
    "expect_column_values_to_be_json_parseable": lambda it: it.readable("try_parse_json"),
    "expect_column_values_to_be_null": _Expectation.null,
    "expect_column_values_to_be_unique": _Expectation.unique,
    "expect_column_values_to_match_like_pattern": lambda it: it.like("like_pattern"),
    "expect_column_values_to_match_like_pattern_list": lambda it: it.like("like_pattern_list"),
    "expect_column_values_to_match_regex": _Expectation.match_regex,
    "expect_column_values_to_match_strftime_format": _Expectation.strftime,
    "expect_column_values_to_match_regex_list": _Expectation.match_regex_list,
    "expect_column_values_to_not_be_in_set": _Expectation.not_in_set,
    "expect_column_values_to_not_be_null": _Expectation.not_null,
    "expect_column_values_to_not_match_like_pattern": lambda it: it.like("like_pattern", "NOT"),
    "expect_column_values_to_not_match_like_pattern_list": lambda it: it.like(
        "like_pattern_list", "NOT"
    ),
    "expect_column_values_to_not_match_regex": lambda it: it.none_match("regex"),
    "expect_column_values_to_not_match_regex_list": lambda it: it.none_match("regex_list"),
}
"""Expectations about each value of a column."""
_OF_METRICS: dict[str, Callable[[_Expectation], Demands]] = {
    kind: partial(_Expectation.measured, metric=metric) for metric, kind in MEASURED.items()
}
"""Expectations about a range for a metric of DQL."""
_TRANSLATORS = {**_OF_VALUES, **_OF_METRICS, **_OF_COLUMNS, **_OF_TABLES}


def snake_case(kind: str) -> str:
    """The name of an expectation as in 0.x; in 1.x it may be the name of a class."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", kind).lower()


def translate(
    expectation: Mapping[str, Any], column: str | None, sql_dialect: str | None = None
) -> foreign.Translation:
    """The demands of an expectation. Its `column` wins over the column of its field.

    :param sql_dialect: the dialect of the SQL in the expectation.
    :raises NoCounterpartError: there are none.
    """
    written = str(expectation.get("type") or expectation.get("expectation_type") or "")
    kind = snake_case(written)
    if kind not in _TRANSLATORS:
        raise NoCounterpartError(f"the expectation '{written}' has no counterpart")
    for key in expectation:
        if key not in (*_REMARKS, *_STRUCTURE):
            raise NoCounterpartError(f"an expectation has no '{key}'")
    given = expectation.get("kwargs") or {}
    if not isinstance(given, Mapping):
        raise NoCounterpartError("its kwargs are not a mapping")
    arguments = _Expectation(given, column, sql_dialect)
    try:
        demands = _demands(kind, arguments)
    except NoCounterpartError as error:
        raise NoCounterpartError(f"{kind}: {error}") from None
    for key, value in given.items():
        if key not in arguments.requested and key not in _ARGUMENT_REMARKS and value is not None:
            raise NoCounterpartError(f"{kind}: '{key}' has no counterpart")
    remarks = tuple(key for key in _REMARKS if key in expectation)
    return foreign.Translation(
        kind.removeprefix("expect_"),
        demands,
        arguments.column,
        severity=foreign.severity_of(expectation.get("severity")),
        share=arguments.share,
        remarks=remarks,
    )


def _demands(kind: str, arguments: _Expectation) -> Demands:
    """The demands of an expectation, on the rows that it is about.

    :raises NoCounterpartError: there are none.
    """
    if kind not in _OF_TABLES and "_table_" not in kind:
        arguments.own_column()
    demands = _TRANSLATORS[kind](arguments)
    where = row_condition(arguments.take("row_condition"), arguments.take("condition_parser"))
    if where is None:
        return demands
    return tuple(kinds.AmongRows(demand, where, "spark") for demand in demands)
