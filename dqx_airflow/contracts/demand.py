"""Base class of the demands of contracts: wording, quality dimension, strictness, export.

The kinds are in `contracts.demands`, each with everything that its readers need.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from enum import Flag
from functools import reduce
from math import inf
from operator import or_
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from dqx_airflow.diagnostics.diagnostic import listed
from dqx_airflow.diagnostics.renderers import without_controls
from dqx_airflow.errors import NoCounterpartError

if TYPE_CHECKING:
    from typing_extensions import dataclass_transform

    from dqx_airflow.contracts.compile.claims import CompiledClaim, EnforcedByType
    from dqx_airflow.contracts.compile.expectations import Expectation, ExportedRule
    from dqx_airflow.contracts.compile.rule_context import RuleContext

else:  # `typing` has it since Python 3.11

    def dataclass_transform(**_: object) -> Callable[[type], type]:
        return lambda kind: kind


Literal: TypeAlias = "str | int | float | bool | None"
"""A value in a contract."""
_MOST_VALUES = 12
_UNITS = (("days", 86400), ("hours", 3600), ("minutes", 60), ("seconds", 1))


def literal_text(value: object) -> str:
    """A value in the notation of contracts."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return "null" if value is None else str(value)


def columns_text(columns: Iterable[str]) -> str:
    """`(a, b)`."""
    return f"({', '.join(columns)})"


def values_text(values: tuple[Literal, ...]) -> str:
    """`A, B and 3 more`."""
    return listed(list(map(literal_text, values)), most=_MOST_VALUES)


def percent_text(share: float) -> str:
    """A share as `99.5%`."""
    return f"{round(share * 100, 6):g}%"


def number_text(value: float) -> str:
    """A number without `.0`."""
    return str(int(value)) if float(value).is_integer() else str(value)


def range_text(low: float | None, high: float | None) -> str:
    """`at least 5`, `at most 5`, `1 to 5`."""
    if low is None:
        return f"at most {number_text(high)}" if high is not None else "any"
    if high is None:
        return f"at least {number_text(low)}"
    return f"{number_text(low)} to {number_text(high)}"


def duration_text(seconds: float) -> str:
    """Seconds as `2 hours`, in the largest unit with an integer amount."""
    for unit, length in _UNITS:
        if seconds % length == 0 and seconds:
            count = int(seconds // length)
            return f"{count} {unit if count != 1 else unit[:-1]}"
    return f"{seconds:g} seconds"


def one_line(text: str) -> str:
    """A text without its line breaks."""
    return " ".join(text.split())


def printable_line(text: str) -> str:
    """A text without its line breaks and without characters that cannot be printed."""
    return one_line(without_controls(text, instead=" "))


def share_of_rows(share: float) -> str:
    """` for 99% of the rows`; nothing for all of them."""
    return "" if share >= 1 else f" for {percent_text(share)} of the rows"


# Strictness --------------------------------------------------------------------------------------


class Order(Flag):
    """How strict a new demand is, compared with the old one. `OTHER`: each accepts values that the
    other rejects."""

    SAME = 0
    LOOSER = 1
    TIGHTER = 2
    OTHER = LOOSER | TIGHTER


def order_of(allows_more: bool, allows_less: bool) -> Order:
    """The order of a new demand.

    :param allows_more: the new demand accepts values that the old one rejected.
    :param allows_less: the new demand rejects values that the old one accepted.
    """
    return Order(allows_more + 2 * allows_less)


def rising(old: Any, new: Any) -> Order:
    """The order of two values of which the larger one demands more."""
    return order_of(new < old, new > old)


def falling(old: Any, new: Any) -> Order:
    """The order of two values of which the smaller one demands more."""
    return rising(new, old)


def admitting(old: Iterable[Any], new: Iterable[Any]) -> Order:
    """The order of two sets of allowed values."""
    before, after = frozenset(old), frozenset(new)
    return order_of(not after <= before, not before <= after)


def all_of(*orders: Order) -> Order:
    """The order of demands that apply together."""
    return reduce(or_, orders, Order.SAME)


Interval: TypeAlias = "tuple[tuple[float, int], tuple[float, int]]"
"""Two bounds of numbers, each with its side of the value: -1 before it, 1 after it."""


@dataclass(frozen=True, slots=True)
class Condition:
    """A comparison of a number: op is one of == != > >= < <= between `not between`.

    The last two take both `bound` and `high`, inclusive.
    """

    op: str
    bound: int | float
    high: int | float | None = None

    @property
    def text(self) -> str:
        """`> 0`, or `between 1 and 5`."""
        if self.high is None:
            return f"{self.op} {number_text(self.bound)}"
        return f"{self.op} {number_text(self.bound)} and {number_text(self.high)}"

    @property
    def accepted(self) -> tuple[Interval, ...]:
        """The intervals of the numbers that satisfy it, in ascending order."""
        bound, high = self.bound, self.high if self.high is not None else self.bound
        bottom = (-inf, -1)
        top = (inf, 1)
        below = (bottom, (bound, -1))
        above = ((high, 1), top)
        by_op: dict[str, tuple[Interval, ...]] = {
            **dict.fromkeys(("==", "between"), (((bound, -1), (high, 1)),)),
            **dict.fromkeys(("!=", "not between"), (below, above)),
            **{">": (above,), ">=": (((bound, -1), top),)},
            **{"<": (below,), "<=": ((bottom, (bound, 1)),)},
        }
        return by_op[self.op]

    def order(self, new: Condition) -> Order:
        """The strictness of a new condition on the same number, compared with this one."""
        return order_of(not self._covers(new), not new._covers(self))

    def _covers(self, other: Condition) -> bool:
        return all(
            any(low <= start and end <= high for low, high in self.accepted)
            for start, end in other.accepted
        )


NONE = Condition("==", 0)
"""The condition that a count is 0."""


# The form of all kinds ---------------------------------------------------------------------------

NO_EXPECTATION = "Great Expectations has no counterpart"

_COLUMNS = ("column", "columns", "arguments", "source", "processed")
"""The fields that hold a column of the model, several, or None."""
_SQL = ("predicate", "query", "where")
_WORDS: Mapping[str, Callable[[Any], str]] = {
    **dict.fromkeys(("columns", "other_columns"), columns_text),
    **dict.fromkeys(("share", "duplicates"), percent_text),
    **dict.fromkeys(("demand", "condition"), lambda value: value.text),
    **dict.fromkeys(("age_s", "period_s"), duration_text),
    "column": lambda column: column or "data",
    **dict.fromkeys(_SQL, one_line),
    "values": values_text,
}
"""Functions that format a field of a demand for `words`, by the name of the field."""


@dataclass_transform(frozen_default=True)
@dataclass(frozen=True)
class Demand:
    """A demand on data. Its kinds are frozen dataclasses."""

    words: ClassVar[str] = ""
    """The demand in a few words, with its fields in braces."""
    dimension: ClassVar[str | None] = None
    """The quality dimension that the demand measures, in the terms of ODCS; None if it depends on
    the rule."""
    subject_fields: ClassVar[tuple[str, ...]] = ()
    """The fields that identify a demand: they are equal in two versions of it."""
    stricter: ClassVar[Mapping[str, Callable[[Any, Any], Order]]] = {}
    """The fields whose values can be compared, each with its function; if another field differs,
    the demands cannot be compared."""
    is_quality: ClassVar[bool] = False
    """Whether it is a demand on the data beyond its schema."""
    is_by_type: ClassVar[bool] = False
    """Whether it distinguishes `1` from `true`, unlike Python."""
    is_required: ClassVar[bool] = False
    """Whether no value of the column may be NULL."""
    odcs_types: ClassVar[tuple[str, ...]] = ()
    """The logical types of ODCS with an option that is equivalent to it."""
    is_service_level: ClassVar[bool] = False
    """Whether it is about the time and volume of deliveries."""
    odcs_property: ClassVar[str | None] = None
    """The name of the service level in `slaProperties` of ODCS; None if it has none."""

    def __init_subclass__(cls, **properties: Any) -> None:
        """Makes a kind a dataclass, with its properties: `class Required(Demand, words="not
        NULL")`."""
        for name, value in properties.items():
            if not hasattr(Demand, name):
                raise TypeError(f"a demand has no property '{name}'")
            setattr(cls, name, value)
        dataclass(frozen=True)(cls)

    @property
    def text(self) -> str:
        """The demand in a few words: `>= 1`, `one of A, B`, `unique by (a, b)`."""
        return self.words.format(
            **{name: _WORDS.get(name, str)(value) for name, value in self._values.items()}
        )

    @property
    def key(self) -> tuple[str, ...]:
        """The columns that identify a row if the demand holds; none for other kinds."""
        return ()

    @property
    def named_columns(self) -> tuple[str, ...]:
        """The columns of the model in the demand."""
        columns = (value for name, value in self._values.items() if name in _COLUMNS)
        return tuple(
            name
            for value in columns
            for name in ((value,) if isinstance(value, str) else value or ())
        )

    @property
    def subject(self) -> tuple[Any, ...]:
        """The identity of the demand; two demands with the same subject are versions of one."""
        return (type(self), *(getattr(self, name) for name in self.subject_fields))

    def claim(self, context: RuleContext) -> CompiledClaim | EnforcedByType:
        """Compiles the demand to a claim in DQL.

        :raises NoCounterpartError: DQL cannot express it, with the reason.
        """
        raise NotImplementedError

    def expectation(self, place: ExportedRule) -> Expectation:
        """The expectation of Great Expectations that is equivalent to the demand.

        :raises NoCounterpartError: there is none.
        """
        raise NoCounterpartError(NO_EXPECTATION)

    def keywords(self, *, is_array: bool) -> dict[str, Any] | None:
        """The keyword for the demand in a JSON Schema, with its value; None without one.

        :param is_array: the values are arrays, whose items are counted.
        """
        return None

    def order(self, new: Any, *, is_whole: bool = False) -> Order:
        """The strictness of a new version of the demand, compared with this one.

        :param is_whole: the values are integers, so that `> 0` is equivalent to `>= 1`.
        """
        other = new._values
        if any(
            value != other[name]
            for name, value in self._values.items()
            if name not in self.stricter
        ):
            return Order.OTHER
        return all_of(
            *(order(self._values[name], other[name]) for name, order in self.stricter.items())
        )

    def renamed(self, names: Mapping[str, str]) -> Demand:
        """The demand after columns were renamed, including those in its SQL."""
        changed: dict[str, Any] = {}
        for name, value in self._values.items() if names else ():
            if name in _COLUMNS:
                is_list = isinstance(value, tuple)
                changed[name] = (
                    tuple(names.get(column, column) for column in value)
                    if is_list
                    else names.get(value, value)
                )
            elif isinstance(value, Demand):
                changed[name] = value.renamed(names)
            elif name in _SQL:
                changed[name] = _in_sql(value, names)
        return replace(self, **changed) if changed else self

    @property
    def _values(self) -> dict[str, Any]:
        return {item.name: getattr(self, item.name) for item in fields(self)}


def _in_sql(text: str, names: Mapping[str, str]) -> str:
    words = "|".join(sorted(map(re.escape, names), key=len, reverse=True))
    return re.sub(rf"(?<!\w)({words})(?!\w)", lambda match: names[match[1]], text)


def compare_demands(old: Demand, new: Demand, *, is_whole: bool = False) -> Order:
    """The order of two demands about the same column.

    :param is_whole: the values are integers, so that `> 0` is equivalent to `>= 1`.
    """
    if type(old) is not type(new):
        return Order.OTHER
    if old == new and not old.is_by_type:
        return Order.SAME
    return old.order(new, is_whole=is_whole)
