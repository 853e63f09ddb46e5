"""Everything that can be called, as an editor displays it: signature, meaning, example."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from dqx_airflow.dql.checks.metric_expressions import WITH_CONDITION
from dqx_airflow.dql.dates import MONTHS
from dqx_airflow.metrics.builtin import CALLABLE, METRICS
from dqx_airflow.metrics.derived import (
    AGES,
    ARITY,
    CHANGES,
    FUNCTION_DOCS,
    MOST_COMMON,
    SHORTCUTS,
    WINDOW_DOCS,
    window_parameters,
)
from dqx_airflow.metrics.metric import ArgumentKind, Metric, Scan
from dqx_airflow.metrics.row_functions import QUANTIFIERS, ROW_FUNCTIONS


class CallableKind(str, Enum):
    """The kind of a callable."""

    METRIC = "metric"
    EXTENDED = "extended metric"
    FUNCTION = "function"
    SHORTCUT = "shortcut"
    ROW_FUNCTION = "function over a row"
    DATE = "date of a profile"


@dataclass(frozen=True, slots=True)
class Called:
    """A callable. `columns` says which of its arguments are columns.

    `columns` counts the arguments from the left that are columns; None for all of them.
    `parameters` are the named ones, `column_parameters` those of them that take a column.
    """

    name: str
    group: CallableKind
    signature: str
    doc: str
    columns: int | None = 0
    parameters: tuple[str, ...] = ()
    column_parameters: tuple[str, ...] = ()
    example: str = ""

    @property
    def has_arguments(self) -> bool:
        """False if it is called with named parameters only."""
        return not self.signature.endswith("()")

    def is_column(self, position: int) -> bool:
        """True if the argument at an index, from 0, is a column."""
        return self.columns is None or position < self.columns


_SHORTCUT_ARGUMENTS: dict[str, tuple[str, int | None]] = {
    "in_set": ('column, ["A", "B"]', 1),
    "is_sorted": ("column, order_by other", 1),
    "not_empty": ("", 0),
}
_COLUMNS = (ArgumentKind.COLUMN, ArgumentKind.COLUMNS, ArgumentKind.NAMES)
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
    yield from (_metric(METRICS[name]) for name in CALLABLE)
    for name, days in CHANGES.items():
        doc = (
            f"The absolute change against the value of {_days_before(days)}:"
            " `abs((today - base) / base)`. 0.1 is a change of 10%."
        )
        yield Called(name, CallableKind.EXTENDED, f"{name}(metric)", doc, parameters=("lag",))
    for name, doc in WINDOW_DOCS.items():
        signature, sentence = f"{name}(metric, n 7)", f"{doc[0].upper()}{doc[1:]}."
        parameters = window_parameters(name)
        yield Called(name, CallableKind.EXTENDED, signature, sentence, parameters=parameters)
    for name, doc in AGES.items():
        sentence = f"{doc[0].upper()}{doc[1:]}."
        example = f"assert {name}(updated_at) < 2 hours"
        yield _of_column(name, f"{name}(column)", sentence, example)
    for name, written in WITH_CONDITION.items():
        doc = "Only valid together with its condition."
        signature = f"{name}(column, 3)" if name == MOST_COMMON else f"{name}(column)"
        yield _of_column(name, signature, doc, f"assert {written}")
    for name, (_, most) in ARITY.items():
        signature = f"{name}(x)" if most == 1 else f"{name}(x, y, ...)"
        yield Called(name, CallableKind.FUNCTION, signature, FUNCTION_DOCS[name])
    for name, meaning in SHORTCUTS.items():
        arguments, columns = _SHORTCUT_ARGUMENTS.get(name, ("column, ...", None))
        doc = f"A complete assertion, short for `{meaning}`."
        signature = f"{name}({arguments})"
        of_shortcut = ("order_by",) if name == "is_sorted" else ()
        parameters = (*of_shortcut, "dataset", "where")
        yield Called(name, CallableKind.SHORTCUT, signature, doc, columns, parameters, of_shortcut)


def _metric(metric: Metric) -> Called:
    columns = [argument.kind in _COLUMNS for argument in metric.arguments]
    names = tuple(parameter.name for parameter in metric.parameters)
    of_columns = tuple(
        parameter.name for parameter in metric.parameters if parameter.kind in _COLUMNS
    )
    return Called(
        metric.name,
        CallableKind.METRIC,
        metric.signature,
        f"{metric.doc}\n\nUnit: {metric.unit.value}.",
        columns.index(False) if False in columns else len(columns),
        (*names, *_PARAMETERS[metric.scan], *(("where",) if metric.takes_where else ())),
        of_columns,
        metric.example,
    )


def _of_column(name: str, signature: str, doc: str, example: str) -> Called:
    return Called(name, CallableKind.METRIC, signature, doc, 1, ("dataset", "where"), (), example)


def _days_before(days: int) -> str:
    return "the day before" if days == 1 else f"{days} days before"


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
