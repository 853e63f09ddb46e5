"""The reference of the metrics as a Markdown page, generated from their entries."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dqx_airflow.metrics.aliases import ASSERTIONS, FUNCTIONS, MEASURES
from dqx_airflow.metrics.builtin import CALLABLE, METRICS
from dqx_airflow.metrics.calls import AGES, ARITY, CHANGES, FUNCTION_DOCS, SHORTCUTS, WINDOW_DOCS
from dqx_airflow.metrics.drift import BINS, DRIFT_DOCS, MOST_CATEGORIES, MOST_STEPS, SMALLEST_SHARE
from dqx_airflow.metrics.metric import Argument, ArgumentKind, Arguments, Merge, Metric, Scan
from dqx_airflow.metrics.row_functions import QUANTIFIERS, ROW_FUNCTIONS
from dqx_airflow.metrics.types import Family

_OPENING = """\
# The metrics

A metric is one value of a dataset for a date. Nearly all metrics take two parameters:
`average(price, lag 1)` is the value of the previous day, `num_rows(dataset returns)` the value of
another dataset of the check. A metric may have no value: then every comparison with it fails, and
only `is None` passes.

Results of earlier runs are reused. After an append to a Delta table or a folder of Parquet files,
only the new files are read for metrics whose results can be merged exactly, as listed below."""

_DURATIONS = """\
## Durations

Measured when the gate runs, and compared with `2 hours` or `1 day`."""

_OVER_TIME = """\
## Over time

For any metric or expression over metrics."""

_DRIFT = """\
## Drift

How far the distribution of a column is from the distribution of an earlier day,
`psi(country, lag 7)`, or of the rows of several days before the date together,
`psi(amount, usual n 28)`. With
`usual n 4, step 7` these are of the same weekday. `where`, `dataset` and `for each` work as for
metrics.

```dql
assert psi(amount, usual n 28) < 0.2
assert js(country, lag 7, where status == "paid") < 0.1
assert ks(latency_ms, usual n 4, step 7) < 0.15
```"""

_HOW_DRIFT = f"""\
- **Strings and booleans** are exact: each value is a category, and so is NULL. With more than
  {MOST_CATEGORIES:,} different strings on a day there is no value, and the reason says so.
- **Numbers** are compared in {BINS} bins, with NULL as another. The edges are the deciles of
  the reference: the smallest values up to which 10%, 20%, ... of its rows lie. If the
  reference has at most {BINS} different numbers, each number is a category.
- **Up to {MOST_STEPS:,} different numbers** a day are exact. Beyond that, a day is kept as
  {MOST_STEPS:,} steps of equal share. The share of rows up to a value is then known to
  {1 / MOST_STEPS:.1%}, and drift is approximate. The verdict then has a note with its bounds:
  `psi(amount) is approximate, since a day has more than {MOST_STEPS:,} different numbers: the
  exact value is from 0.181 to 0.214`. The exact value is always between them. `ks` is off by
  {2 / MOST_STEPS:.1%} at most. The bounds of `psi` and `js` depend on the rows. If normally
  distributed numbers moved by 0.45 standard deviations, `psi` is 0.184 to 0.196 from yesterday,
  and 0.181 to 0.214 from seven days together. Leave that much room between a
  limit and the values of normal days. Strings have no `ks`.
- Numbers are compared as doubles: whole numbers beyond 2^53 that share one are the same value.
- `psi` is the sum of `(p - q) * ln(p / q)` over the shares of the day and of the reference. A share
  below {SMALLEST_SHARE:.2%}, even of a bin without rows, counts as {SMALLEST_SHARE:.2%}.
- `js` is the distance, the square root of the divergence, as in
  `scipy.spatial.distance.jensenshannon(p, q, base=2)`.
- **Without history** the assertion is skipped, by the rule of `usual(metric, n 28)`: too few of the
  dates have data. The date itself is never part of the reference, nor is a day in `skip_dates`, or
  one that is labeled as an issue, unless all of them are.
- Few rows drift by chance: without any change, `psi` is about the number of bins times `1/n + 1/m`
  for `n` and `m` rows. A limit that suits a table of a million rows fails daily on one of a
  hundred; the limit of [`watch orders drift`](usual.md#watch-a-dataset) depends on the rows.
- What is kept of a day is the number of rows of each value or step. It is stored once, and serves
  every later day. Nothing from masked columns is kept: each run reads all of the days, and only the
  drift is shown.
- A backtest needs what was kept of each day. Verdicts keep nothing about groups, so it leaves these
  out. Of columns with many values they keep only the date itself, so it also needs runs on the
  earlier days."""

_ARITHMETIC = """\
## Arithmetic

In addition to `+`, `-`, `*` and `/`, for metrics and numbers. If an argument has no value, only
`coalesce` has one."""

_SHORTCUTS = """\
## Shortcuts

Complete assertions, without a condition."""

_ROW_FUNCTIONS = """\
## Functions of a row

In predicates, after `each row:` and `95% of rows:`."""

_ITEMS = """\
## Items of arrays

Predicates over an array, in which `item` is the current item and `item.price` one of its fields.
For a NULL array they are not evaluated."""

_ELSEWHERE = """\
## Names in other tools

Names in SQL, pandas, Great Expectations, Soda, Deequ, Databricks DQX and dbt. If you use one, the
error suggests the DQL form; case and underscores do not matter."""


def metrics_page() -> str:
    """The page, metrics in the order of their table."""
    sections = [
        _OPENING,
        *(_metric(METRICS[name]) for name in CALLABLE),
        _DURATIONS,
        _table("value", ((f"{name}(column)", doc) for name, doc in AGES.items())),
        _OVER_TIME,
        _table("value", _over_time()),
        _DRIFT,
        _table("value", ((f"{name}(column, usual n 28)", doc) for name, doc in DRIFT_DOCS.items())),
        _HOW_DRIFT,
        _ARITHMETIC,
        _table("value", _arithmetic()),
        _SHORTCUTS,
        _table("short for", ((f"{name}(...)", f"`{claim}`") for name, claim in SHORTCUTS.items())),
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
        facts.append("answered from the schema, without a scan; takes no `lag`")
    if metric.scan is Scan.LOG:
        facts.append("answered from the transaction log, without a scan; takes no `lag`")
        facts.append("of anything but the newest version of a Delta table: an error")
    if metric.scan is Scan.MATCH:
        facts.append("reads both datasets, each on its date; takes no `lag`, and is never stored")
    listed = "\n".join(f"- {fact}" for fact in facts)
    return f"## {metric.signature}\n\n{metric.doc}\n\n```dql\n{metric.example}\n```\n\n{listed}"


def _read_after_an_append(metric: Metric) -> str:
    """The reads after files were added to those that an earlier run has measured."""
    aggregates = metric.aggregates(_some_arguments(metric))
    if metric.is_of_texts or any(aggregate.merge is None for aggregate in aggregates):
        return "all files are read"
    is_of_values = any(
        aggregate.merge is not Merge.COUNT and aggregate.column for aggregate in aggregates
    )
    exception = ", but all files for floating-point numbers" if is_of_values else ""
    return f"only the new files are read{exception}"


def _some_arguments(metric: Metric) -> Arguments:
    examples = {
        ArgumentKind.COLUMNS: ("c",),
        ArgumentKind.NAMES: ("c",),
        ArgumentKind.SHARE: 0.5,
        ArgumentKind.SHARES: (("v", 0.5),),
        ArgumentKind.COUNT: 1,
    }
    given = [examples.get(argument.kind, "c") for argument in metric.arguments]
    return (*given, *("c" if parameter.is_required else None for parameter in metric.parameters))


def _argument(argument: Argument) -> str:
    families = ", ".join(family.value for family in Family if family in argument.accepts)
    return f"`{argument.name}`: {argument.kind.value}{f' ({families})' if families else ''}"


def _over_time() -> Iterator[tuple[str, str]]:
    for name, days in CHANGES.items():
        base = "the previous day" if days == 1 else f"the value {days} days before"
        yield f"{name}(metric)", f"the change against {base}: 0.1 is 10% more or less"
    for name, doc in WINDOW_DOCS.items():
        yield f"{name}(metric, n 7)", doc


def _arithmetic() -> Iterator[tuple[str, str]]:
    for name, (fewest, most) in ARITY.items():
        arguments = ("x", "y")[:fewest] if most is not None else ("x", "y", "...")
        yield f"{name}({', '.join(arguments)})", FUNCTION_DOCS[name]


def _elsewhere() -> Iterator[str]:
    for table in (MEASURES, ASSERTIONS, FUNCTIONS):
        for written, names in table.items():
            calls = ", ".join(f"`{name}`" for name in names.split())
            yield f"| {calls} | `{written.format('column')}` |"


def _table(heading: str, rows: Iterable[tuple[str, str]]) -> str:
    return "\n".join([f"| call | {heading} |", "|---|---|", *(f"| `{a}` | {b} |" for a, b in rows)])
