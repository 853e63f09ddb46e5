"""A contract as a suite of Great Expectations, of version 1 and of those before.

First the existence of columns, then for each of them its type, NULL, range, pattern and values,
then completeness and unique keys, and finally all other demands of the contract.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from math import ceil, floor
from typing import Any

from dqx_airflow.contracts import demands
from dqx_airflow.contracts.dialects import reader_of
from dqx_airflow.contracts.dialects.foreign import sql_name
from dqx_airflow.contracts.dialects.foreign.great_expectations import MEASURED
from dqx_airflow.contracts.export import Exported, Loss, loss_of, unsupported_clauses
from dqx_airflow.contracts.field_types import names_in
from dqx_airflow.contracts.model import Contract, Field, Model, Rule, plain_name
from dqx_airflow.errors import NoCounterpartError
from dqx_airflow.metrics.text_formats import TEXT_FORMATS, whole
from dqx_airflow.values import Severity

NO_COUNTERPART = "Great Expectations has no counterpart"

_WHOLE = ("ByteType", "ShortType", "IntegerType", "LongType")
_SEVERAL = {
    "whole_number": [*_WHOLE],
    "number": [*_WHOLE, "FloatType", "DoubleType", "DecimalType"],
}
_COUNTS = ("num_rows", "unique_count", "column_count")
_SEVERITIES = {
    Severity.P0: "critical",
    Severity.P1: "critical",
    Severity.P2: "warning",
    Severity.P3: "info",
}


@dataclass(frozen=True, slots=True)
class Expectation:
    """An expectation: its name, and its arguments in order."""

    type: str
    kwargs: dict[str, Any]
    severity: str | None = field(default=None)

    def as_plain(self) -> dict[str, Any]:
        severity = {} if self.severity is None else {"severity": self.severity}
        return {"type": self.type, "kwargs": self.kwargs, **severity}


@dataclass(frozen=True, slots=True)
class ExportedRule:
    """The rule to export as an expectation, and its context. `item` is None for a model."""

    model: Model
    item: Field | None
    rule: Rule

    @property
    def column(self) -> str:
        return plain_name(self.item.path) if self.item is not None else ""

    @property
    def sql_column(self) -> str:
        return sql_name(self.item.path if self.item is not None else "")

    @property
    def mostly(self) -> dict[str, float]:
        return {"mostly": self.rule.share} if self.rule.share < 1 else {}


def expectation_of(place: ExportedRule) -> Expectation:
    """The expectation that is equivalent to a rule.

    :raises NoCounterpartError: there is none.
    """
    if place.item is not None and place.item not in place.model.fields:
        raise NoCounterpartError("Great Expectations has no names for nested columns")
    writer = _WRITERS.get(type(place.rule.demand))
    if writer is None:
        raise NoCounterpartError(NO_COUNTERPART)
    expectation = writer(place, place.rule.demand)
    if place.rule.severity is None:
        return expectation
    return replace(expectation, severity=_SEVERITIES[place.rule.severity])


def type_name(spark_type: str | None) -> str | None:
    """The class of a type in PySpark; None if several of them hold the values."""
    return names_in("written to GX").get(spark_type.partition("(")[0]) if spark_type else None


def bounds_of(
    column: str, lowest: demands.Bound | None, highest: demands.Bound | None
) -> Expectation:
    """Both bounds of a range are one expectation."""
    kwargs: dict[str, Any] = {
        "column": column,
        "min_value": lowest.value if lowest else None,
        "max_value": highest.value if highest else None,
    }
    if lowest is not None and lowest.op == ">":
        kwargs["strict_min"] = True
    if highest is not None and highest.op == "<":
        kwargs["strict_max"] = True
    return Expectation("expect_column_values_to_be_between", kwargs)


def _required(place: ExportedRule, _: demands.Required) -> Expectation:
    return Expectation("expect_column_values_to_not_be_null", {"column": place.column})


def _type(place: ExportedRule, _: demands.OfType) -> Expectation:
    kind = place.item.type if place.item is not None else None
    if (name := type_name(kind)) is not None:
        kwargs: dict[str, Any] = {"column": place.column, "type_": name}
        return Expectation("expect_column_values_to_be_of_type", kwargs)
    if kind in _SEVERAL:
        kwargs = {"column": place.column, "type_list": _SEVERAL[kind]}
        return Expectation("expect_column_values_to_be_in_type_list", kwargs)
    raise NoCounterpartError(NO_COUNTERPART)


def _bound(place: ExportedRule, demand: demands.Bound) -> Expectation:
    is_lowest = demand.op.startswith(">")
    expectation = bounds_of(
        place.column, demand if is_lowest else None, None if is_lowest else demand
    )
    return Expectation(expectation.type, expectation.kwargs | place.mostly)


def _format(place: ExportedRule, demand: demands.OfFormat) -> Expectation:
    form = TEXT_FORMATS[demand.name]
    if form.check_digits is not None:
        raise NoCounterpartError("no expectation computes check digits")
    return _matching(place, whole(form.pattern))


def _matching(place: ExportedRule, regex: str) -> Expectation:
    kwargs = {"column": place.column, "regex": regex, **place.mostly}
    return Expectation("expect_column_values_to_match_regex", kwargs)


def _one_of(place: ExportedRule, demand: demands.OneOf) -> Expectation:
    kwargs = {"column": place.column, "value_set": list(demand.values), **place.mostly}
    return Expectation("expect_column_values_to_be_in_set", kwargs)


def _length(place: ExportedRule, demand: demands.Length) -> Expectation:
    if place.item is None or place.item.type == "array":
        raise NoCounterpartError(NO_COUNTERPART)
    ends = (demand.count, None) if demand.op == ">=" else (None, demand.count)
    kwargs = {"column": place.column, "min_value": ends[0], "max_value": ends[1], **place.mostly}
    return Expectation("expect_column_value_lengths_to_be_between", kwargs)


def _complete(_: ExportedRule, demand: demands.Complete) -> Expectation:
    # Written as a percentage in contracts: 0.0007 is 0.07 / 100, and not its neighbor.
    kwargs = {"column": plain_name(demand.column), "mostly": round(demand.share * 100, 10) / 100}
    return Expectation("expect_column_values_to_not_be_null", kwargs)


def _unique(_: ExportedRule, demand: demands.Unique) -> Expectation:
    return _of_keys(demand.columns, {"ignore_row_if": "any_value_is_missing"})


def _distinct(_: ExportedRule, demand: demands.Distinct) -> Expectation:
    if demand.duplicates > 0:
        raise NoCounterpartError("Great Expectations permits no share of duplicates")
    return _of_keys(demand.columns, {})


def _of_keys(columns: tuple[str, ...], of_several: dict[str, str]) -> Expectation:
    names = [plain_name(column) for column in columns]
    if len(names) == 1:
        return Expectation("expect_column_values_to_be_unique", {"column": names[0]})
    kwargs = {"column_list": names, **of_several}
    return Expectation("expect_compound_columns_to_be_unique", kwargs)


def _measured(_: ExportedRule, demand: demands.MetricRule) -> Expectation:
    if demand.metric == "null_count" and demand.is_percent:
        if demand.condition.op != "<=":
            raise NoCounterpartError(NO_COUNTERPART)
        share = round(1 - demand.condition.bound / 100, 12)
        kwargs: dict[str, Any] = {"column": plain_name(demand.arguments[0]), "mostly": share}
        return Expectation("expect_column_values_to_not_be_null", kwargs)
    if demand.metric == "most_common" and len(demand.arguments) == 1:
        values = [value for value in demand.values if value is not None]
        kwargs = {"column": plain_name(demand.arguments[0]), "value_set": values}
        return Expectation("expect_column_most_common_value_to_be_in_set", kwargs)
    ends = _ends(demand.condition, is_count=demand.metric in _COUNTS)
    if ends is None or demand.is_percent or demand.values or demand.pattern is not None:
        raise NoCounterpartError(NO_COUNTERPART)
    if demand.metric == "num_rows":
        return Expectation("expect_table_row_count_to_be_between", ends)
    if demand.metric == "column_count":
        return Expectation("expect_table_column_count_to_be_between", ends)
    if demand.metric not in MEASURED or len(demand.arguments) != 1:
        raise NoCounterpartError(NO_COUNTERPART)
    kwargs = {"column": plain_name(demand.arguments[0]), **ends}
    return Expectation(MEASURED[demand.metric], kwargs)


def _ends(condition: demands.Condition, *, is_count: bool) -> dict[str, Any] | None:
    """A comparison as a range; None if it is not one. Ranges of counts are inclusive."""
    op, bound, high = condition.op, condition.bound, condition.high
    if op == "==" or (op == "between" and high is not None):
        return {"min_value": bound, "max_value": bound if high is None else high}
    if op not in (">", ">=", "<", "<="):
        return None
    end, step, nearest = ("min", 1, floor) if op[0] == ">" else ("max", -1, ceil)
    ends = {"min_value": None, "max_value": None}
    if not is_count:
        strict = {f"strict_{end}": True} if len(op) == 1 else {}
        return {**ends, f"{end}_value": bound, **strict}
    inclusive = nearest(bound) + step if len(op) == 1 else -nearest(-bound)
    return {**ends, f"{end}_value": inclusive}


# Only SQL can express these: the rows that must not exist -----------------------------------------


def _rows(query: str) -> Expectation:
    return Expectation("unexpected_rows_expectation", {"unexpected_rows_query": query})


def _satisfying(_: ExportedRule, demand: demands.RowsSatisfy) -> Expectation:
    if demand.share < 1:
        raise NoCounterpartError("Great Expectations permits no share of rows that a query finds")
    return _rows(f"SELECT * FROM {{batch}} WHERE NOT ({demand.predicate})")  # noqa: S608


def _multiple_of(place: ExportedRule, demand: demands.MultipleOf) -> Expectation:
    return _without(place, f"{place.sql_column} % {demand.divisor} <> 0")


def _digits(place: ExportedRule, demand: demands.Digits) -> Expectation:
    return _without(place, too_many_digits(place.sql_column, demand))


def _without(place: ExportedRule, wrong: str) -> Expectation:
    if place.rule.share < 1:
        raise NoCounterpartError(NO_COUNTERPART)
    return _rows(f"SELECT * FROM {{batch}} WHERE {wrong}")  # noqa: S608


def too_many_digits(column: str, demand: demands.Digits) -> str:
    """A predicate for the numbers with more digits."""
    most = 10 ** (demand.precision - demand.scale)
    return f"{column} <> round({column}, {demand.scale}) OR abs({column}) >= {most}"


def _refers(place: ExportedRule, demand: demands.Refers) -> Expectation:
    if "." not in demand.dataset:
        raise NoCounterpartError(
            "Great Expectations reads one table: the location of the other one is unknown"
        )
    return _rows(missing_rows("{batch}", demand))


def missing_rows(table: str, demand: demands.Refers) -> str:
    """A query for the rows of a table whose values are missing in the other one."""
    columns, other_columns = (
        tuple(map(sql_name, names)) for names in (demand.columns, demand.other_columns)
    )
    present = " AND ".join(f"here.{name} IS NOT NULL" for name in columns)
    pairs = zip(columns, other_columns, strict=True)
    same = " AND ".join(f"there.{other} = here.{name}" for name, other in pairs)
    other = sql_name(demand.dataset)
    partner = f"SELECT 1 FROM {other} AS there WHERE {same}"  # noqa: S608
    return f"SELECT * FROM {table} AS here WHERE {present} AND NOT EXISTS ({partner})"  # noqa: S608


def _aged(_: ExportedRule, demand: demands.DemandOnPeriod) -> Expectation:
    if demand.column is None:
        raise NoCounterpartError("it does not name a column")
    extreme = "max" if isinstance(demand, demands.Fresh) else "min"
    timestamp = f"{extreme}({sql_name(demand.column)})"
    oldest = f"current_timestamp() - INTERVAL {demand.seconds:.10g} SECONDS"
    return _rows(
        f"SELECT {timestamp} AS moment FROM {{batch}} HAVING {timestamp} < {oldest}"  # noqa: S608
    )


def _prompt(_: ExportedRule, demand: demands.Prompt) -> Expectation:
    if demand.share < 1:
        raise NoCounterpartError("Great Expectations permits no share of rows that a query finds")
    deadline = f"{sql_name(demand.source)} + INTERVAL {demand.delay_s:.10g} SECONDS"
    late = f"{sql_name(demand.processed)} > {deadline}"
    return _rows(f"SELECT * FROM {{batch}} WHERE {late}")  # noqa: S608


def _among_rows(place: ExportedRule, demand: demands.AmongRows) -> Expectation:
    if demand.sql_dialect not in (None, "spark", "databricks"):
        raise NoCounterpartError(NO_COUNTERPART)
    expectation = expectation_of(replace(place, rule=replace(place.rule, demand=demand.demand)))
    if "unexpected_rows_query" in expectation.kwargs:
        raise NoCounterpartError(NO_COUNTERPART)
    where = {"row_condition": demand.where, "condition_parser": "spark"}
    return replace(expectation, kwargs={**expectation.kwargs, **where})


_WRITERS: dict[type[demands.Demand], Callable[[ExportedRule, Any], Expectation]] = {
    demands.Required: _required,
    demands.OfType: _type,
    demands.Bound: _bound,
    demands.Pattern: lambda place, demand: _matching(place, demand.expression),
    demands.OfFormat: _format,
    demands.OneOf: _one_of,
    demands.Length: _length,
    demands.Complete: _complete,
    demands.Unique: _unique,
    demands.Distinct: _distinct,
    demands.MetricRule: _measured,
    demands.RowsSatisfy: _satisfying,
    demands.AmongRows: _among_rows,
    demands.MultipleOf: _multiple_of,
    demands.Digits: _digits,
    demands.Refers: _refers,
    demands.Fresh: _aged,
    demands.Retained: _aged,
    demands.Prompt: _prompt,
}


_OLDER_TYPES = ("string", "bigint", "int", "timestamp", "decimal(18,2)", "double", "boolean")
_STRICTER = "exported stricter than it is: Great Expectations permits no share of duplicates"


def suite(contract: Contract) -> Exported:
    """The suite as Great Expectations 1 loads it: `ExpectationSuite(**json.load(file))`."""
    drafting = _SuiteWriter(contract, contract.models[0])
    expectations = [*drafting.generated(), *drafting.further()]
    plain = {
        "name": _name(contract),
        "meta": _meta(contract),
        "expectations": [expectation.as_plain() for expectation in expectations],
    }
    return _exported(plain, contract, drafting)


def older_suite(contract: Contract) -> Exported:
    """The suite in the form before version 1, limited to what the generator of seed 003
    supports."""
    drafting = _SuiteWriter(contract, contract.models[0], is_older=True)
    expectations = [
        {"expectation_type": expectation.type, "kwargs": expectation.kwargs}
        for expectation in drafting.generated()
    ]
    drafting.leave_the_rest()
    plain = {
        "expectation_suite_name": _name(contract),
        "meta": _meta(contract),
        "expectations": expectations,
    }
    return _exported(plain, contract, drafting)


def _exported(plain: dict[str, Any], contract: Contract, drafting: _SuiteWriter) -> Exported:
    text = json.dumps(plain, indent=2, ensure_ascii=False) + "\n"
    return Exported(text, (*drafting.losses, *unsupported_clauses(contract)))


def _name(contract: Contract) -> str:
    return contract.id.replace(".", "_") + "_suite"


def _meta(contract: Contract) -> dict[str, Any]:
    return {
        "contract_id": contract.id,
        "contract_version": contract.version,
        "generated_from": f"contracts/{contract.id.split('.')[-1]}.contract.yaml",
    }


@dataclass(slots=True)
class _SuiteWriter:
    """Writes the rules of a model as expectations. `written` holds the `id` of finished rules."""

    contract: Contract
    model: Model
    is_older: bool = False
    losses: list[Loss] = field(default_factory=list)
    written: set[int] = field(default_factory=set)

    def generated(self) -> Iterator[Expectation]:
        """The expectations of the generator, in its order."""
        model = self.model
        if model.fields:
            closing = [rule for rule in model.rules if isinstance(rule.demand, demands.OnlyColumns)]
            self._mark_written(*closing)
            names = [item.name for item in model.fields]
            kwargs = {"column_set": names, "exact_match": bool(closing)}
            yield Expectation("expect_table_columns_to_match_set", kwargs)
        for item in model.fields:
            yield from self._of_column(item)
        for kinds in ((demands.Complete,), (demands.Unique, demands.Distinct)):
            for owner, rule in self._written_in_order(kinds):
                yield self._promise(owner, rule)

    def further(self) -> Iterator[Expectation]:
        """The expectations that the generator does not support."""
        for item, rule in self._left():
            try:
                yield expectation_of(ExportedRule(self.model, item, rule))
            except NoCounterpartError as error:
                self._lose(item, rule, str(error))

    def leave_the_rest(self) -> None:
        for item, rule in self._left():
            self._lose(item, rule, "the generator knows no such expectation")

    def _of_column(self, item: Field) -> Iterator[Expectation]:
        rules = [rule for rule in item.rules if rule.share >= 1]
        column = item.name
        for rule in rules:
            if isinstance(rule.demand, demands.Presence):
                self._mark_written(rule)
                yield Expectation("expect_column_to_exist", {"column": column})
        for rule in rules:
            if isinstance(rule.demand, demands.OfType) and self._has_type(item):
                yield from self._as_expectation(item, rule)
        for rule in rules:
            if isinstance(rule.demand, demands.Required):
                yield from self._as_expectation(item, rule)
        yield from self._range(column, rules)
        for kind in (demands.Pattern, demands.OneOf):
            for rule in rules:
                if isinstance(rule.demand, kind):
                    yield from self._as_expectation(item, rule)

    def _as_expectation(self, item: Field, rule: Rule) -> Iterator[Expectation]:
        with suppress(NoCounterpartError):
            expectation = expectation_of(ExportedRule(self.model, item, rule))
            self._mark_written(rule)
            yield expectation

    def _has_type(self, item: Field) -> bool:
        if self.is_older:
            written = item.written_type if self._keeps_types else item.type
            return written in _OLDER_TYPES
        return type_name(item.type) is not None

    def _range(self, column: str, rules: list[Rule]) -> Iterator[Expectation]:
        """The first lower and the first upper bound in one. A bound with a severity stays
        separate."""
        ends: dict[str, Rule] = {}
        for rule in rules:
            if isinstance(rule.demand, demands.Bound) and rule.severity is None:
                ends.setdefault(rule.demand.op[0], rule)
        if not ends:
            return
        self._mark_written(*ends.values())
        lowest, highest = (ends[sign].demand if sign in ends else None for sign in "><")
        assert isinstance(lowest, demands.Bound | None)
        assert isinstance(highest, demands.Bound | None)
        yield bounds_of(column, lowest, highest)

    def _promise(self, item: Field | None, rule: Rule) -> Expectation:
        self._mark_written(rule)
        demand = rule.demand
        if isinstance(demand, demands.Distinct) and demand.duplicates > 0:
            self._lose(item, rule, _STRICTER)
            rule = replace(rule, demand=demands.Distinct(demand.columns, 0))
        if isinstance(demand, demands.Unique | demands.Distinct) and self._is_compound(
            demand.columns
        ):
            columns = [plain_name(column) for column in demand.columns]
            return Expectation("expect_compound_columns_to_be_unique", {"column_list": columns})
        return expectation_of(ExportedRule(self.model, None, rule))

    def _is_compound(self, columns: tuple[str, ...]) -> bool:
        """Whether a key is written as by the generator; the current form requires two columns."""
        return self.is_older or (self._keeps_types and len(columns) > 1)

    @property
    def _keeps_types(self) -> bool:
        return reader_of(self.contract.dialect).names_types_as_written

    def _written_in_order(self, kinds: tuple[type, ...]) -> list[tuple[Field | None, Rule]]:
        pairs = [pair for pair in self._left() if isinstance(pair[1].demand, kinds)]
        pairs = [pair for pair in pairs if pair[0] is None or pair[0] in self.model.fields]
        return sorted(pairs, key=lambda pair: _line(pair[1]))

    def _left(self) -> Iterator[tuple[Field | None, Rule]]:
        for _, item, rule in self.contract.rules():
            if id(rule) not in self.written:
                yield item, rule

    def _mark_written(self, *rules: Rule) -> None:
        self.written.update(map(id, rules))

    def _lose(self, item: Field | None, rule: Rule, reason: str) -> None:
        self.losses.append(loss_of(self.contract, self.model, item, rule, reason))


def _line(rule: Rule) -> tuple[int, int]:
    span = rule.clauses[0].span if rule.clauses else None
    return (span.line, span.column) if span is not None else (0, 0)
