"""Everything that can be called in DQL, with signature, meaning and example: in expressions over
metrics, in row predicates and in dates. Editors and the methods for suites in Python read these
tables.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import Enum
from typing import TypeAlias

from dqx_airflow.dql.checks.expressions import WITH_CONDITION
from dqx_airflow.dql.dates import MONTHS
from dqx_airflow.metrics import calls
from dqx_airflow.metrics.builtin import CALLABLE, METRICS
from dqx_airflow.metrics.drift import DRIFT_DOCS, DRIFT_PARAMETERS
from dqx_airflow.metrics.metric import ArgumentKind, Metric, Scan
from dqx_airflow.metrics.row_functions import QUANTIFIERS, ROW_FUNCTIONS


class CallableKind(Enum):
    """The kind of a callable."""

    METRIC = "a metric of a dataset"
    EXTENDED = "a metric over several days, such as day_over_day"
    FUNCTION = "a function of metric values"
    SHORTCUT = "an assertion in one word, such as unique"
    ROW_FUNCTION = "a function of the values of a row"
    DATE = "a function of dates in profiles"


Taken: TypeAlias = tuple[tuple[str, ArgumentKind | None], ...]
"""The arguments of a callable by name, each with its kind: None for an expression."""

_COLUMNS = (ArgumentKind.COLUMN, ArgumentKind.COLUMNS, ArgumentKind.NAMES)


@dataclass(frozen=True, slots=True)
class Called:
    """A callable.

    `repeats` is set if the last of its arguments may be repeated. `parameters` are the named ones,
    `column_parameters` the ones among them that take a column.
    """

    name: str
    group: CallableKind
    signature: str
    doc: str
    arguments: Taken = ()
    parameters: tuple[str, ...] = ()
    column_parameters: tuple[str, ...] = ()
    example: str = ""
    repeats: bool = False

    @property
    def has_arguments(self) -> bool:
        """False if it is called with named parameters only."""
        return not self.signature.endswith("()")

    def is_column(self, position: int) -> bool:
        """True if the argument at an index, from 0, is a column."""
        is_taken = self.repeats or position < len(self.arguments)
        return is_taken and self.kind(position) in _COLUMNS

    def kind(self, position: int) -> ArgumentKind | None:
        """The kind of an argument, also if there is one too many."""
        return self.arguments[: position + 1][-1][1] if self.arguments else None


_METRIC: Taken = (("metric", None),)
_COLUMN: Taken = (("column", ArgumentKind.COLUMN),)
_SHORTCUT_ARGUMENTS: dict[str, tuple[str, Taken]] = {
    "in_set": ('column, ["A", "B"]', (*_COLUMN, ("values", ArgumentKind.LITERALS))),
    "is_sorted": ("column, order_by other", _COLUMN),
    "not_empty": ("", ()),
}
_OF_COLUMNS: tuple[str, Taken] = ("column, ...", (("columns", ArgumentKind.COLUMN),))
_PARAMETERS = {
    Scan.FLAT: ("lag", "dataset"),
    Scan.SCHEMA: ("dataset",),
    Scan.LOG: ("dataset",),
    Scan.QUERY: (),
    Scan.MATCH: (),
}
_DATES = {
    "weekday": ("weekday", "This weekday of every week."),
    "nth_weekday": ("month, weekday, n", "The nth weekday of a month; -1 is the last."),
    "last_day_of_month": ("", "The last day of the month of the run."),
    **{name: ("day", f"A day of {name.capitalize()}, in the year of the run.") for name in MONTHS},
}


def _measures() -> Iterator[Called]:
    """The calls that may stand in an expression over metrics."""
    yield from (_metric(METRICS[name]) for name in CALLABLE)
    for name, days in calls.CHANGES.items():
        before = "the day before" if days == 1 else f"{days} days before"
        doc = (
            f"The absolute change against the value of {before}:"
            " `abs((today - base) / base)`. 0.1 is a change of 10%."
        )
        yield Called(name, CallableKind.EXTENDED, f"{name}(metric)", doc, _METRIC, ("lag",))
    for name, doc in calls.WINDOW_DOCS.items():
        signature = f"{name}(metric, n 7)"
        sentence = f"{doc[0].upper()}{doc[1:]}."
        parameters = calls.window_parameters(name)
        yield Called(name, CallableKind.EXTENDED, signature, sentence, _METRIC, parameters)
    for name, doc in calls.AGES.items():
        sentence = f"{doc[0].upper()}{doc[1:]}."
        example = f"assert {name}(updated_at) < 2 hours"
        yield _of_column(name, f"{name}(column)", sentence, example)
    for name, doc in DRIFT_DOCS.items():
        sentence = (
            f"{doc[0].upper()}{doc[1:]}. Between the rows of the day and the rows of earlier days."
        )
        signature = f"{name}(column, usual n 28)"
        example = f"assert {name}(amount, usual n 28) < 0.2"
        yield replace(_of_column(name, signature, sentence, example), parameters=DRIFT_PARAMETERS)
    for name, written in WITH_CONDITION.items():
        doc = "Only valid together with its condition."
        called = _of_column(name, f"{name}(column)", doc, f"assert {written}")
        if name == calls.MOST_COMMON:
            taken = (*_COLUMN, ("n", ArgumentKind.COUNT))
            called = replace(called, signature=f"{name}(column, 3)", arguments=taken)
        yield called
    for name, (fewest, most) in calls.ARITY.items():
        signature = f"{name}(x)" if most == 1 else f"{name}(x, y, ...)"
        doc = calls.FUNCTION_DOCS[name]
        taken = _METRIC * fewest
        yield Called(name, CallableKind.FUNCTION, signature, doc, taken, repeats=most is None)
    for name, meaning in calls.SHORTCUTS.items():
        arguments, taken = _SHORTCUT_ARGUMENTS.get(name, _OF_COLUMNS)
        of_shortcut = ("order_by",) if name == "is_sorted" else ()
        yield Called(
            name,
            CallableKind.SHORTCUT,
            f"{name}({arguments})",
            f"A complete assertion, short for `{meaning}`.",
            taken,
            (*of_shortcut, "dataset", "where"),
            of_shortcut,
            repeats=name not in _SHORTCUT_ARGUMENTS,
        )


def _metric(metric: Metric) -> Called:
    names = tuple(parameter.name for parameter in metric.parameters)
    of_columns = (one.name for one in metric.parameters if one.kind in _COLUMNS)
    return Called(
        metric.name,
        CallableKind.METRIC,
        metric.signature,
        f"{metric.doc}\n\nUnit: {metric.unit.value}.",
        tuple((argument.name, argument.kind) for argument in metric.arguments),
        (*names, *_PARAMETERS[metric.scan], *(("where",) if metric.takes_where else ())),
        tuple(of_columns),
        metric.example,
    )


def _of_column(name: str, signature: str, doc: str, example: str) -> Called:
    parameters = ("dataset", "where")
    return Called(name, CallableKind.METRIC, signature, doc, _COLUMN, parameters, (), example)


def _in_rows() -> Iterator[Called]:
    for function in ROW_FUNCTIONS.values():
        arguments = "x" if function.most == 1 else "x, y"
        signature = f"{function.name}({arguments})"
        yield Called(function.name, CallableKind.ROW_FUNCTION, signature, function.doc)
    for name, doc in QUANTIFIERS.items():
        example = f"assert each row: {name}(lines, item.price > 0)"
        signature = f"{name}(array, predicate)"
        yield Called(name, CallableKind.ROW_FUNCTION, signature, doc, example=example)


MEASURES: dict[str, Called] = {called.name: called for called in _measures()}
"""Callables in an expression over metrics, and shortcuts."""

IN_ROWS: dict[str, Called] = {called.name: called for called in _in_rows()}
"""Callables in a row predicate."""

IN_DATES: dict[str, Called] = {
    name: Called(name, CallableKind.DATE, f"{name}({arguments})", doc)
    for name, (arguments, doc) in _DATES.items()
}
"""Callables in a date of a profile."""
