"""The reference of the metrics as a Markdown page, written from their entries."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dqx_airflow.metrics.builtin import CALLABLE, METRICS
from dqx_airflow.metrics.derived import AGES, ARITY, CHANGES, SHORTCUTS, WINDOWS
from dqx_airflow.metrics.elsewhere import ASSERTIONS, FUNCTIONS, MEASURES
from dqx_airflow.metrics.merging import Merge
from dqx_airflow.metrics.registry import Argument, Arguments, Kind, Metric, Scan
from dqx_airflow.metrics.row_functions import QUANTIFIERS, ROW_FUNCTIONS
from dqx_airflow.metrics.types import Family

_OPENING = """\
# The metrics

A metric is one value of a dataset for a date. Two parameters go with nearly all of them:
`average(price, lag 1)` is that of the day before, `num_rows(dataset returns)` that of another
dataset of the check. A metric may have no value: then every comparison with it fails, and only
`is None` holds.

What an earlier run has measured is not read again. After an append, where files were only added to
a Delta table or a folder of Parquet files, the new ones alone are read for metrics whose results
can be merged exactly; that is told of each."""

_DURATIONS = """\
## Durations

Measured when the gate runs, and compared with `2 hours` or `1 day`."""

_OVER_TIME = """\
## Over time

Of any metric, or of an expression over metrics."""

_ARITHMETIC = """\
## Arithmetic

Besides `+`, `-`, `*` and `/`, on metrics and numbers. Outside of its domain a function has no
value, and where an argument has none, only `coalesce` has one."""

_SHORTCUTS = """\
## Shortcuts

Assertions of their own, without a condition."""

_ROW_FUNCTIONS = """\
## Functions of a row

In predicates, behind `each row:` and `95% of rows:`."""

_ITEMS = """\
## Items of arrays

Predicates about an array, in which `item` stands for an item of it and `item.price` for a field of
an item. Where the array is NULL, they are not evaluated."""

_ELSEWHERE = """\
## In the words of others

What SQL, pandas, Great Expectations, Soda, Deequ, Databricks DQX and dbt have names for. Who types
them is told what to write; upper case and underscores make no difference."""


def reference_page() -> str:
    """The page, metrics in the order of their table."""
    sections = [
        _OPENING,
        *(_metric(METRICS[name]) for name in CALLABLE),
        _DURATIONS,
        _table("value", ((f"{name}(column)", doc) for name, doc in AGES.items())),
        _OVER_TIME,
        _table("value", _over_time()),
        _ARITHMETIC,
        _table("arguments", _arithmetic()),
        _SHORTCUTS,
        _table("stands for", ((f"{name}(...)", f"`{claim}`") for name, claim in SHORTCUTS.items())),
        _ROW_FUNCTIONS,
        _table("value", ((f"{name}(...)", entry.doc) for name, entry in ROW_FUNCTIONS.items())),
        _ITEMS,
        _table(
            "true when", ((f"{name}(array, predicate)", doc) for name, doc in QUANTIFIERS.items())
        ),
        _ELSEWHERE,
        "\n".join(["| elsewhere | here |", "|---|---|", *_elsewhere()]),
    ]
    return "\n\n".join(sections) + "\n"


def _metric(metric: Metric) -> str:
    facts = [_argument(argument) for argument in (*metric.arguments, *metric.parameters)]
    facts.append(f"unit: {metric.unit.value}")
    facts.append(f"without rows: {'no value' if metric.empty is None else metric.empty}")
    if metric.is_void_with_nan:
        facts.append("with NaN in the column: no value, and the reason says so")
    if metric.scan is Scan.FLAT:
        facts.append(f"after an append: {_read_after_an_append(metric)}")
    if metric.scan is Scan.QUERY:
        facts.append("takes neither `lag` nor `dataset`")
    if metric.scan is Scan.SCHEMA:
        facts.append("answered by the schema, without a scan; takes no `lag`")
    listed = "\n".join(f"- {fact}" for fact in facts)
    return f"## {metric.signature}\n\n{metric.doc}\n\n```dql\n{metric.example}\n```\n\n{listed}"


def _read_after_an_append(metric: Metric) -> str:
    """What is read where files were added to those that an earlier run has measured."""
    aggregates = metric.aggregates(_some_arguments(metric))
    if metric.is_of_texts or any(item.merge is None for item in aggregates):
        return "all files are read"
    is_of_values = any(item.merge is not Merge.COUNT and item.column for item in aggregates)
    apart = ", but of floating point numbers all files" if is_of_values else ""
    return f"the new files alone are read{apart}"


def _some_arguments(metric: Metric) -> Arguments:
    some = {Kind.COLUMNS: ("c",), Kind.NAMES: ("c",), Kind.SHARE: 0.5, Kind.SHARES: (("v", 0.5),)}
    given = [some.get(argument.kind, "c") for argument in metric.arguments]
    return (*given, *(None for _ in metric.parameters))


def _argument(argument: Argument) -> str:
    families = ", ".join(family.value for family in Family if family in argument.accepts)
    return f"`{argument.name}`: {argument.kind.value}{f' ({families})' if families else ''}"


def _over_time() -> Iterator[tuple[str, str]]:
    for name, days in CHANGES.items():
        base = "the day before" if days == 1 else f"{days} days before"
        yield f"{name}(metric)", f"the change against {base}: 0.1 is 10% more or less"
    for name in WINDOWS:
        yield f"{name}(metric, n 7)", f"the {name} of the last `n` days, the date itself included"


def _arithmetic() -> Iterator[tuple[str, str]]:
    for name, (fewest, most) in ARITY.items():
        yield f"{name}(...)", str(fewest) if fewest == most else f"{fewest} or more"


def _elsewhere() -> Iterator[str]:
    for table in (MEASURES, ASSERTIONS, FUNCTIONS):
        for written, names in table.items():
            said = ", ".join(f"`{name}`" for name in names.split())
            yield f"| {said} | `{written.format('column')}` |"


def _table(what: str, rows: Iterable[tuple[str, str]]) -> str:
    return "\n".join([f"| call | {what} |", "|---|---|", *(f"| `{a}` | {b} |" for a, b in rows)])
