"""Demands on single values: patterns, bounds, lists, lengths."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from math import floor
from typing import Any, ClassVar

from dqx_airflow.contracts import demand as base
from dqx_airflow.contracts.compile import (
    claims,
    expectations,
    nested_values,
    rule_context,
    spark_predicates,
    terms,
)
from dqx_airflow.contracts.compile.ecma_regex import java_pattern
from dqx_airflow.contracts.compile.terms import ValueKind, kind_of
from dqx_airflow.contracts.model import Field, day_of, parts_of
from dqx_airflow.contracts.time_texts import TimeFormat, iso_value_sql, literal_sql
from dqx_airflow.diagnostics.diagnostic import did_you_mean
from dqx_airflow.dql import nodes
from dqx_airflow.errors import NoCounterpartError
from dqx_airflow.metrics.patterns.bounds import bounded
from dqx_airflow.metrics.patterns.syntax import PatternError
from dqx_airflow.metrics.sql import quote_literal, quote_name
from dqx_airflow.metrics.text_formats import TEXT_FORMATS, whole
from dqx_airflow.values.exact import exact, is_finite_number
from dqx_airflow.values.json_form import iso_timestamp

_NUMBERS = ("integer", "number")
_TIMES = ("date", "timestamp", "time")
_KEYWORDS = {">=": "minimum", ">": "exclusiveMinimum", "<=": "maximum", "<": "exclusiveMaximum"}


class ValueDemand(base.Demand, dimension="conformity"):
    """A demand that each value satisfies or not, independently of the others."""

    is_of_text: ClassVar[bool] = False
    """Whether values of other types are compared as strings."""

    def claim(self, context: rule_context.RuleContext) -> claims.CompiledClaim:
        """The claim about each value of the column, or each value nested in it."""
        share = context.rule.share
        kind = kind_of(context.item)
        if self.is_of_text and kind not in (ValueKind.TEXT, ValueKind.UNKNOWN):
            return _matches_as_text(context, self, kind)
        if not nested_values.is_expressible(context.way):
            predicate = self.predicate(nested_values.ITEM, context.item)
            wrong = f"NOT {spark_predicates.spark_text(predicate)}"
            return claims.no_rows(claims.rows_with(context.way, wrong), share)
        way = nested_values.steps_of(context)
        return claims.each_row(
            nested_values.of_every(way, self.predicate(way[-1].operand, context.item)), share
        )

    def predicate(self, operand: nodes.Expression, item: Field | None) -> nodes.Expression:
        """The predicate over a value; `item` is its field, if it is known.

        :raises NoCounterpartError: DQL cannot express it, with the reason.
        """
        raise NotImplementedError


class _Limit(ValueDemand):
    """A minimum or a maximum. Two of them are versions of one demand if both have the same side."""

    op: str

    @property
    def subject(self) -> tuple[Any, ...]:
        return (type(self), self.op[0])


class Pattern(ValueDemand, words="matches {expression}", odcs_types=("string",)):
    """An expression of the ECMA dialect matches the string, or a substring if it has no anchors."""

    is_of_text = True
    expression: str

    def expectation(self, place: expectations.ExportedRule) -> expectations.Expectation:
        return _matching(place, self.expression)

    def keywords(self, *, is_array: bool) -> dict[str, Any]:
        return {"pattern": self.expression}

    def predicate(self, operand: nodes.Expression, item: Field | None) -> nodes.Expression:
        try:
            pattern = java_pattern(self.expression)
        except NoCounterpartError as error:
            message = f"the pattern cannot be translated to Java: {error}"
            raise NoCounterpartError(message) from error
        try:
            bounded(pattern)
        except PatternError as error:
            raise NoCounterpartError(f"the pattern is refused: {error}") from error
        return nodes.Matches(operand, terms.text(pattern))


class OfFormat(ValueDemand, words="has the format {name}", odcs_types=("string",)):
    """The string has a format: `email`, or another of `metrics.text_formats`."""

    is_of_text = True
    name: str

    def keywords(self, *, is_array: bool) -> dict[str, Any]:
        return {"format": self.name}

    def predicate(self, operand: nodes.Expression, item: Field | None) -> nodes.Expression:
        if self.name not in TEXT_FORMATS:
            hint = did_you_mean(self.name, TEXT_FORMATS)
            raise NoCounterpartError(f"unknown format '{self.name}': {hint}")
        return nodes.HasFormat(operand, nodes.Name(self.name))

    def expectation(self, place: expectations.ExportedRule) -> expectations.Expectation:
        form = TEXT_FORMATS[self.name]
        if form.check_digits is not None:
            raise NoCounterpartError("no expectation computes check digits")
        return _matching(place, whole(form.pattern))


def _listed_values(old: tuple[base.Literal, ...], new: tuple[base.Literal, ...]) -> base.Order:
    return base.admitting(map(_typed, old), map(_typed, new))


def _typed(value: base.Literal) -> tuple[str, base.Literal]:
    """A value that equals only itself: `1` is not `true`, but `1.0` is `1`."""
    if isinstance(value, bool):
        return ("bool", value)
    if isinstance(value, int | float):
        return ("number", float(value) if is_finite_number(value) else str(value))
    return ("text", value)


class OneOf(
    ValueDemand, is_by_type=True, words="one of {values}", stricter={"values": _listed_values}
):
    """The value is one of these."""

    values: tuple[base.Literal, ...]

    def predicate(self, operand: nodes.Expression, item: Field | None) -> nodes.Expression:
        return among(operand, self.values, item)

    def expectation(self, place: expectations.ExportedRule) -> expectations.Expectation:
        kwargs = {"column": place.column, "value_set": list(self.values), **place.mostly}
        return expectations.Expectation("expect_column_values_to_be_in_set", kwargs)


class Bound(_Limit, words="{op} {value}", odcs_types=(*_NUMBERS, "date", "timestamp")):
    """The value satisfies a comparison: op is one of > >= < <=. Dates are ISO strings."""

    value: base.Literal

    def keywords(self, *, is_array: bool) -> dict[str, Any]:
        return {_KEYWORDS[self.op]: self.value}

    def order(self, new: Any, *, is_whole: bool = False) -> base.Order:
        before, after = _comparable(self.value), _comparable(new.value)
        if self.op[0] != new.op[0] or before is None or type(before) is not type(after):
            return base.Order.OTHER
        ranks = _bound_rank(self.op, before, is_whole), _bound_rank(new.op, after, is_whole)
        return (base.rising if self.op[0] == ">" else base.falling)(*ranks)

    def predicate(self, operand: nodes.Expression, item: Field | None) -> nodes.Expression:
        kind = kind_of(item)
        if kind in (ValueKind.NESTED, ValueKind.BINARY, ValueKind.BOOLEAN):
            raise NoCounterpartError(f"values of type {kind.value} have no order")
        if kind is ValueKind.TEXT and not isinstance(self.value, str):
            raise NoCounterpartError("a string cannot be compared with a number")
        return nodes.Compare(self.op, operand, terms.literal(self.value, kind))

    @property
    def is_range(self) -> bool:
        """Whether Great Expectations compares with it: numbers, dates and timestamps. It reads
        other strings as numbers, or refuses them."""
        return not isinstance(self.value, str) or day_of(self.value) is not None

    def expectation(self, place: expectations.ExportedRule) -> expectations.Expectation:
        if isinstance(self.value, str) and not self.is_range:
            beyond = f"NOT ({place.sql_column} {self.op} {quote_literal(self.value)})"
            return _without(place, beyond)
        ends = (self, None) if self.op.startswith(">") else (None, self)
        expectation = bounds_of(place.column, *ends)
        return expectations.Expectation(expectation.type, expectation.kwargs | place.mostly)


def _bound_rank(op: str, value: Any, is_whole: bool) -> tuple[Any, int]:
    """The rank of a bound: its value, and for an exclusive bound the side."""
    is_exclusive = not op.endswith("=")
    side = 1 if op[0] == ">" else -1
    if is_whole and isinstance(value, Decimal):
        if value != floor(value):
            return (Decimal(floor(value) + (side > 0)), 0)
        return (value + side if is_exclusive else value, 0)
    return (value, side if is_exclusive else 0)


def _comparable(value: base.Literal) -> Any:
    """A number or a timestamp; None for values without a common order."""
    if isinstance(value, bool) or value is None:
        return None
    try:
        number = Decimal(str(value))
        return number if number.is_finite() else None
    except InvalidOperation:
        pass
    try:
        timestamp = iso_timestamp(str(value))
    except ValueError:
        return None
    return timestamp.replace(tzinfo=None) - (timestamp.utcoffset() or timestamp - timestamp)


class _OfMoment(ValueDemand):
    """A demand on the moment that a string stands for."""

    def holds(self, text: str) -> str:
        """The predicate over a string, given as SQL; NULL or false if it is not a moment."""
        raise NotImplementedError

    def predicate(self, operand: nodes.Expression, item: Field | None) -> nodes.Expression:
        raise NoCounterpartError("only SQL reads times in strings")

    def claim(self, context: rule_context.RuleContext) -> claims.CompiledClaim:
        share = context.rule.share
        if context.is_reachable and context.item is not None:
            return claims.satisfied(self.holds(terms.sql_name(context.item.path)), share)
        wrong = f"NOT ({self.holds(quote_name(nested_values.ITEM.text))})"
        return claims.no_rows(claims.rows_with(context.way, wrong), share)

    def expectation(self, place: expectations.ExportedRule) -> expectations.Expectation:
        return _without(place, f"NOT ({self.holds(place.sql_column)})")


class TimeText(_OfMoment, words="a time of the format {format}", odcs_types=_TIMES):
    """The string is a date or a time of a format of Spark; a time of day if it `is_time`."""

    format: str
    is_time: bool = False

    def keywords(self, *, is_array: bool) -> dict[str, Any]:
        return {"format": self.format}

    def holds(self, text: str) -> str:
        return f"{text} IS NULL OR {TimeFormat(self.format).value_sql(text)} IS NOT NULL"


class TimeBound(_OfMoment, words="{op} {value}", odcs_types=_TIMES):
    """The moment in a string satisfies a comparison: op is one of > >= < <=.

    `value` is a timestamp in UTC, of 1970-01-01 for a time of day. Without a format, strings are in
    ISO form. A string that is not a moment violates it if it `is_alone`: no other rule reports it.
    """

    op: str
    value: str
    format: str | None = None
    is_time: bool = False
    is_alone: bool = False

    @property
    def text(self) -> str:
        return f"{self.op} {self._shown}"

    @property
    def _shown(self) -> str:
        return self.value.partition("T")[2] if self.is_time else self.value

    def keywords(self, *, is_array: bool) -> dict[str, Any]:
        return {_KEYWORDS[self.op]: self._shown}

    @property
    def subject(self) -> tuple[Any, ...]:
        return (type(self), self.op[0])

    def order(self, new: Any, *, is_whole: bool = False) -> base.Order:
        if (self.format, self.is_time) != (new.format, new.is_time):
            return base.Order.OTHER  # other strings are moments
        return Bound(self.op, self.value).order(Bound(new.op, new.value))

    def holds(self, text: str) -> str:
        if self.format is None:
            moment = iso_value_sql(text, is_time=self.is_time)
        else:
            moment = TimeFormat(self.format).value_sql(text)
        compared = f"{moment} {self.op} {literal_sql(datetime.fromisoformat(self.value))}"
        return f"{text} IS NULL OR coalesce({compared}, false)" if self.is_alone else compared


class Length(_Limit, words="length {op} {count}", odcs_types=("string", "array")):
    """The number of characters of a string, or of items of an array, with `>=` or `<=`."""

    count: int

    def keywords(self, *, is_array: bool) -> dict[str, Any]:
        end = "min" if self.op == ">=" else "max"
        return {end + ("Items" if is_array else "Length"): self.count}

    def order(self, new: Any, *, is_whole: bool = False) -> base.Order:
        if self.op != new.op:
            return base.Order.OTHER
        return (base.rising if self.op == ">=" else base.falling)(self.count, new.count)

    def predicate(self, operand: nodes.Expression, item: Field | None) -> nodes.Expression:
        kind = kind_of(item)
        if kind not in (ValueKind.TEXT, ValueKind.NESTED, ValueKind.UNKNOWN) or (
            item and item.type == "struct"
        ):
            message = f"values of type {kind.value} have no length: only strings and arrays do"
            raise NoCounterpartError(message)
        measured = terms.call("size" if kind is ValueKind.NESTED else "length", operand)
        return nodes.Compare(self.op, measured, terms.number(self.count))

    def expectation(self, place: expectations.ExportedRule) -> expectations.Expectation:
        if place.item is None or place.item.type == "array":
            raise NoCounterpartError(base.NO_EXPECTATION)
        ends = (self.count, None) if self.op == ">=" else (None, self.count)
        bounds = {"min_value": ends[0], "max_value": ends[1]}
        kwargs = {"column": place.column, **bounds, **place.mostly}
        return expectations.Expectation("expect_column_value_lengths_to_be_between", kwargs)


def _multiples(old: int | float, new: int | float) -> base.Order:
    before, after = Fraction(str(old)), Fraction(str(new))
    return base.order_of(not _divides(before, after), not _divides(after, before))


def _divides(divisor: Fraction, number: Fraction) -> bool:
    return divisor != 0 and (number / divisor).denominator == 1


class MultipleOf(
    ValueDemand,
    words="a multiple of {divisor}",
    stricter={"divisor": _multiples},
    odcs_types=_NUMBERS,
):
    """The value is a multiple of a number."""

    divisor: int | float

    def keywords(self, *, is_array: bool) -> dict[str, Any]:
        return {"multipleOf": self.divisor}

    def predicate(self, operand: nodes.Expression, item: Field | None) -> nodes.Expression:
        _demand_number(item, "a multiple")
        if self.divisor <= 0:
            message = f"{self.divisor} is not a valid divisor: write a number above 0"
            raise NoCounterpartError(message)
        terms.number(self.divisor)
        divisor = Fraction(str(self.divisor))
        multiplied = _times(operand, divisor.denominator)
        part: int | Fraction = divisor.numerator
        written = "" if item is None else (item.type or "")
        if written in _DIVIDED_AS_DOUBLES:
            # A tenth is a decimal, and a quotient of decimals has enough digits.
            tenth = Fraction(1, 10)
            multiplied = nodes.Arithmetic("*", multiplied, terms.number(tenth))
            part = exact(part * tenth)
        quotient = _over(multiplied, part)
        is_exact = terms.is_whole(item) or written.startswith("decimal")
        if is_exact or divisor.denominator == 1:
            return nodes.Compare("==", _times(terms.call("round", quotient), part), multiplied)
        rest = nodes.Arithmetic("-", quotient, terms.call("round", quotient))
        return nodes.Compare("<=", terms.call("abs", rest), terms.number(_NEARLY))

    def expectation(self, place: expectations.ExportedRule) -> expectations.Expectation:
        kind = place.item.type if place.item is not None else None
        if kind in ("float", "double"):
            quotient = f"{place.sql_column} / {self.divisor}"
            return _without(place, f"abs({quotient} - round({quotient})) > {_NEARLY:f}")
        return _without(place, f"{place.sql_column} % {self.divisor} <> 0")


class Digits(ValueDemand, words="at most {precision} digits, {scale} after the point"):
    """The maximum number of digits of a number, and of digits after the point."""

    precision: int
    scale: int

    def order(self, new: Any, *, is_whole: bool = False) -> base.Order:
        whole = base.falling(self.precision - self.scale, new.precision - new.scale)
        return base.all_of(whole, base.falling(self.scale, new.scale))

    def predicate(self, operand: nodes.Expression, item: Field | None) -> nodes.Expression:
        _demand_number(item, "digits")
        rounded = terms.call("round", operand, terms.number(self.scale))
        has_scale = nodes.Compare("==", rounded, operand)
        limit = terms.number(10 ** max(0, self.precision - self.scale))
        has_room = nodes.Compare("<", terms.call("abs", operand), limit)
        return has_room if terms.is_whole(item) else nodes.Junction("and", has_scale, has_room)

    def expectation(self, place: expectations.ExportedRule) -> expectations.Expectation:
        return _without(place, self.too_many(place.sql_column))

    def too_many(self, column: str) -> str:
        """A predicate for the numbers with more digits."""
        most = 10 ** max(0, self.precision - self.scale)
        return f"{column} <> round({column}, {self.scale}) OR abs({column}) >= {most}"


class UniqueItems(
    ValueDemand, words="no duplicate items", dimension="uniqueness", odcs_types=("array",)
):
    """No array contains a value twice."""

    def keywords(self, *, is_array: bool) -> dict[str, Any]:
        return {"uniqueItems": True}

    def claim(self, context: rule_context.RuleContext) -> claims.CompiledClaim:
        """No array contains a value twice; NULL counts as a value."""
        if context.item is None or context.item.type != "array":
            raise NoCounterpartError("only the items of an array can be unique")
        if not nested_values.is_expressible(context.way):
            # As structs, since Spark 3.5 tells 0.0 from -0.0 where these are the items themselves.
            distinct = "array_distinct(transform(item, x -> struct(x)))"
            repeated = f"item -> size(item) <> size({distinct})"
            repeating = f"exists({nested_values.nested(context.way)}, {repeated})"
            return claims.no_rows(claims.sql(f"count_if({repeating})"), context.rule.share)
        way = nested_values.steps_of(context)
        array = way[-1].operand
        once = terms.call("size", terms.call("distinct", array))
        predicate = nodes.Compare("==", terms.call("size", array), once)
        return claims.each_row(nested_values.of_every(way, predicate), context.rule.share)


def _matches_as_text(
    context: rule_context.RuleContext, demand: ValueDemand, kind: ValueKind
) -> claims.CompiledClaim:
    """A pattern on values that are not strings, applied to their string form."""
    share = context.rule.share
    if kind in (ValueKind.NESTED, ValueKind.BINARY):
        message = f"only strings can match a pattern, and this is of type {kind.value}"
        raise NoCounterpartError(message)
    if not context.is_reachable:
        wrong = f"NOT {spark_predicates.spark_text(demand.predicate(nested_values.ITEM, None))}"
        return claims.no_rows(claims.rows_with(context.way, wrong), share)
    claim = demand.predicate(nested_values.column_of(context), None)
    assert context.item is not None
    column = quote_name(*parts_of(context.item.path))
    text = f"CAST({column} AS STRING)"
    if isinstance(claim, nodes.Matches):
        like = spark_predicates.matches_sql(text, claim.pattern.value)
    else:
        assert isinstance(claim, nodes.HasFormat)
        form = TEXT_FORMATS[claim.format.text]
        like = form.sql(text, spark_predicates.matches_sql(text, whole(form.pattern)))
    unlike = f"count_if(NOT {like})"
    return claims.no_rows(claims.sql(unlike), share, claims.sql(f"count({column})"))


def among(
    operand: nodes.Expression, values: tuple[base.Literal, ...], item: Field | None
) -> nodes.Expression:
    """The predicate that a value is one of these. NULL and values that the type cannot have are
    dropped.

    :raises NoCounterpartError: nothing is left, or a number may be meant as a string.
    """
    kind = kind_of(item)
    if kind in (ValueKind.NESTED, ValueKind.BINARY):
        raise NoCounterpartError(f"a list cannot contain values of type {kind.value}")
    present = [value for value in values if value is not None]
    if kind is ValueKind.UNKNOWN and len({_sort_of(value) for value in present}) > 1:
        kind = ValueKind.TEXT
    choices: dict[nodes.Expression, None] = {}
    for value in present:
        try:
            choices[terms.literal(value, kind)] = None
        except NoCounterpartError:
            if kind is ValueKind.TEXT:
                raise
    if not choices and present:
        raise NoCounterpartError(f"none of the values is of type {kind.value}")
    return terms.member(operand, *choices) if choices else nodes.IsNull(operand)


_NEARLY = 0.000001
"""The tolerance for multiples, as a share of the divisor, for floating-point numbers."""


def _sort_of(value: base.Literal) -> type:
    if isinstance(value, bool | str):
        return type(value)
    return float


def _demand_number(item: Field | None, limit: str) -> None:
    kind = kind_of(item)
    if kind not in (ValueKind.NUMBER, ValueKind.UNKNOWN):
        raise NoCounterpartError(f"only a number has {limit}, and this is a {kind.value}")


_DIVIDED_AS_DOUBLES = ("bigint", "whole_number")
"""Types of integers that may have more digits than a double."""


def _over(operand: nodes.Expression, divisor: int | Fraction) -> nodes.Expression:
    return operand if divisor == 1 else nodes.Arithmetic("/", operand, terms.number(divisor))


def _times(operand: nodes.Expression, factor: int | Fraction) -> nodes.Expression:
    return operand if factor == 1 else nodes.Arithmetic("*", operand, terms.number(factor))


def bounds_of(column: str, lowest: Bound | None, highest: Bound | None) -> expectations.Expectation:
    """The expectation for both bounds of a range."""
    kwargs: dict[str, Any] = {
        "column": column,
        "min_value": lowest.value if lowest else None,
        "max_value": highest.value if highest else None,
    }
    if lowest is not None and lowest.op == ">":
        kwargs["strict_min"] = True
    if highest is not None and highest.op == "<":
        kwargs["strict_max"] = True
    return expectations.Expectation("expect_column_values_to_be_between", kwargs)


def _matching(place: expectations.ExportedRule, regex: str) -> expectations.Expectation:
    kwargs = {"column": place.column, "regex": regex, **place.mostly}
    return expectations.Expectation("expect_column_values_to_match_regex", kwargs)


def _without(place: expectations.ExportedRule, wrong: str) -> expectations.Expectation:
    if place.rule.share < 1:
        raise NoCounterpartError(base.NO_EXPECTATION)
    return expectations.rows_where(wrong)
