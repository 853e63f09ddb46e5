"""The words of the language as an editor displays them: everything that can be called, with
signature, meaning and example, and the keywords and annotations in a sentence each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from dqx_airflow.dql.checks.metric_expressions import WITH_CONDITION
from dqx_airflow.dql.dates import MONTHS
from dqx_airflow.metrics import derived
from dqx_airflow.metrics.builtin import CALLABLE, METRICS
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
    for name, days in derived.CHANGES.items():
        doc = (
            f"The absolute change against the value of {_days_before(days)}:"
            " `abs((today - base) / base)`. 0.1 is a change of 10%."
        )
        yield Called(name, CallableKind.EXTENDED, f"{name}(metric)", doc, parameters=("lag",))
    for name, doc in derived.WINDOW_DOCS.items():
        signature, sentence = f"{name}(metric, n 7)", f"{doc[0].upper()}{doc[1:]}."
        parameters = derived.window_parameters(name)
        yield Called(name, CallableKind.EXTENDED, signature, sentence, parameters=parameters)
    for name, doc in derived.AGES.items():
        sentence = f"{doc[0].upper()}{doc[1:]}."
        example = f"assert {name}(updated_at) < 2 hours"
        yield _of_column(name, f"{name}(column)", sentence, example)
    for name, written in WITH_CONDITION.items():
        doc = "Only valid together with its condition."
        signature = f"{name}(column, 3)" if name == derived.MOST_COMMON else f"{name}(column)"
        yield _of_column(name, signature, doc, f"assert {written}")
    for name, (_, most) in derived.ARITY.items():
        signature = f"{name}(x)" if most == 1 else f"{name}(x, y, ...)"
        yield Called(name, CallableKind.FUNCTION, signature, derived.FUNCTION_DOCS[name])
    for name, meaning in derived.SHORTCUTS.items():
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


KEYWORDS: dict[str, str] = {
    "all": (
        "Requires all of several claims: `assert all { ... }`; or compares all columns: "
        "`comparing all`."
    ),
    "allowing": "The largest share of rows that may differ: `... match b on (id) allowing 0.1%`.",
    "and": "Both must be true; in `between A and B`, the upper bound.",
    "any": "Requires at least one of several claims: `assert any { ... }`.",
    "as": 'Gives an import an alias: `import "nulls.dql" as nulls`, then `nulls.name`.',
    "assert": "States a rule about the data: `assert <metrics> <condition>`.",
    "assertion": 'Selects one assertion of a check: `disable assertion "a" in "check"`.',
    "availability_threshold": "The share of the dates that must have data, by default 90%. Below"
    " it an assertion is skipped.",
    "between": "Within two bounds, both included: `between 0.5 and 2.0`.",
    "by": "A time of day (`timeliness(day) by 06:00 UTC`), a factor (`scale ... by 2.0x`), or the"
    " columns of groups (`for 95% of groups by country`).",
    "check": 'A group of assertions on datasets: `check "Volume" on orders { ... }`.',
    "column": "States a rule about the schema: `assert column email exists`.",
    "columns": "The names and types of columns: `assert columns of silver match bronze`.",
    "comparing": "The columns whose values must match: `... on (id) comparing [amount]`.",
    "const": "A value with a name: `const MAX = 5% tunable [0%, 20%]`.",
    "disable": "Skips the assertions that it selects while the profile is active.",
    "downgrade": 'Changes the severity while the profile is active: `downgrade tag "x" to P3`.',
    "each": "States a rule for every row (`assert each row: price > 0`), or for every group:"
    " `assert num_rows() > 99 for each country`.",
    "exists": "The dataset has this column.",
    "export": "Makes a constant or a macro visible to files that import this one.",
    "false": "The truth value.",
    "fits": "The type of the column, or a narrower one: `column price fits number`.",
    "for": "Judges every group (`for each country`), or a share of them; or iterates over the"
    " arguments of a variadic parameter: `for col in columns { ... }`.",
    "from": 'The first day of a profile, or the file of `import { name } from "file.dql"`.',
    "groups": "The share of groups that must pass: `for 95% of groups by country`.",
    "if": "A conditional claim: `assert if num_rows() > 0 then unique(id)`.",
    "import": "Imports the exports of another file.",
    "in": "One of a list, the values of another dataset, or the check of an assertion.",
    "is": "`is positive`, `is negative`, `is None`; over rows `is null`, `is nan`"
    " or a format: `is email`.",
    "like": 'The whole string, with `%` for any characters and `_` for one: `sku like "A-%"`.',
    "macro": "A pattern of assertions with parameters: `macro nulls(column) { ... }`.",
    "match": "The same in another dataset: `assert rows of silver match bronze on (id)`.",
    "matches": "A regular expression found in the string; or the shares of a distribution.",
    "name": 'The name of an assertion, unique within its check: `name "orders.volume.rows"`.',
    "nan": "The value is not a number: NaN, of a float or double column.",
    "negative": "Below zero.",
    "None": "No value: of an empty dataset, or of a division by zero.",
    "not": "The opposite.",
    "null": "The value is missing.",
    "of": "`95% of rows: ...`, `for 95% of groups by ...`, `rows of a match b`, or"
    " `within 3 stddev of 7 days`.",
    "on": "The datasets of a check: `on orders, returns`; or the key by which rows match.",
    "or": "At least one must be true.",
    "positive": "Above zero.",
    "profile": 'Changes assertions on certain days: `profile "Christmas" { ... }`.',
    "row": "`each row:` states a rule for every row.",
    "rows": "`95% of rows:` states a rule for a share of the rows; `rows of a match b` for those of"
    " two datasets.",
    "scale": 'Multiplies the value before it is compared: `scale tag "volume" by 2.0x`.',
    "severity": "The severity of a failure: P0 is the highest, P3 the lowest, P1 the default.",
    "stddev": "Standard deviations: `within 3 stddev of 7 days`.",
    "suite": "What a gate checks: constants, macros, checks and profiles.",
    "tag": 'Selects the assertions that have a tag: `scale tag "volume" by 2.0x`.',
    "tags": "Labels by which profiles select assertions: `tags [volume, trend]`.",
    "then": "The claim that must be true if the first one is: `assert if ... then ...`.",
    "to": "The last day of a profile, or the severity of `downgrade`.",
    "tolerance": "The allowed difference between the sides of `==` or `!=`, also written `+/-`; or"
    " between the numbers of rows that match.",
    "true": "The truth value.",
    "tunable": "The bounds within which algorithms may change a constant: `tunable [0%, 20%]`.",
    "type": "The kind of a profile, `holiday` or `recurring`; or the type of a column.",
    "use": "Inserts the assertions of a macro: `use nulls(email)`.",
    "where": 'Selects the rows of a metric, an assertion or a check: `where status == "paid"`.',
    "within": "Near the mean of the preceding days: `average(price) within 3 stddev of 7 days`.",
}
"""All keywords."""

ANNOTATIONS: dict[str, str] = {
    "experimental": "Proposed by an algorithm and not validated yet; such an assertion never"
    " blocks, and is not required, even with severity P0.",
    "required": "Algorithms and profiles cannot weaken, remove or disable this assertion.",
    "cost": "The costs of a false alarm and a missed problem:"
    " `@cost(false_positive=1, false_negative=100)`.",
    "human_review": "Changes of this assertion need the approval of a person.",
    "auto_approve": "`dql tune --propose` writes new values for this assertion without asking.",
    "max_groups": "How many groups there may be, by default 10,000: `@max_groups(count=50_000)`.",
    "allow_required": "Allows this profile to mute required assertions.",
    "require_history": "Makes the gate broken if an assertion lacks data of other dates.",
}
"""All annotations."""

PROFILE_TYPES: dict[str, str] = {
    "holiday": "Fixed dates; date expressions are evaluated for each year.",
    "recurring": "Dates relative to the date of the run, such as the end of each month.",
}
"""The words that may follow `type` in a profile."""

PARAMETERS: dict[str, str] = {
    "lag": "The number of calendar days before the date: `average(price, lag 1)`.",
    "dataset": "The dataset to measure: `num_rows(dataset returns)`.",
    "n": "The number of days of the window: `stddev(average(price), n 7)`.",
    "where": 'The rows to measure: `average(price, where status == "paid")`.',
    "tolerance": "The allowed difference between numbers:"
    " `changed_count(id, amount, dataset bronze, tolerance 0.01)`.",
    "order_by": "The column that orders the rows: `first(price, order_by day)`.",
    "step": "How far apart the values of a sequence are, `gap_count(read_at, step 1 hour)`, or the"
    " days of a window: `usual(num_rows(), n 4, step 7)`.",
}
"""The named parameters of calls."""
