"""Counts how many assertions of the docs, the examples and our importers Sail evaluates.

`python -m benchmarks.sail_share` makes a table for each dataset of these suites, with the columns
that the suite names, in the types that it needs, and evaluates the suites on Sail in this process.
`--reasons 10` adds the most common reasons for assertions that are refused. What is an error on
every engine, such as a column of a type that no made table has, does not count.
"""

from __future__ import annotations

import argparse
import re
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import sqlglot
from sqlglot import expressions as exp

from dqx_airflow.datasets.spark_address import SAIL
from dqx_airflow.dql.check import check_source
from dqx_airflow.dql.checks.assertions import datasets_of
from dqx_airflow.engine.measure import measure
from dqx_airflow.engine.proof.cases import arrow_of
from dqx_airflow.engine.proof.operations import _names_of
from dqx_airflow.engine.session.connection import open_session
from dqx_airflow.errors import DqxError
from dqx_airflow.metrics.metric import Scan
from dqx_airflow.plan.evaluate import evaluate
from dqx_airflow.plan.in_memory.table import Table
from dqx_airflow.plan.model import MetricRequest, Plan
from dqx_airflow.plan.predicates import lookups_of
from dqx_airflow.plan.resolve import QUIET, resolve
from dqx_airflow.plan.schema_check import (
    Match,
    Schema,
    is_about_rows,
    objection_to,
    objection_to_lookup,
)
from dqx_airflow.values import DatasetRef, SourceFile, Status

ROOT = Path(__file__).parents[1]
TODAY = date(2024, 11, 29)
NOW = datetime(2024, 11, 29, 12, tzinfo=timezone.utc)

SOURCES = {
    "docs": ("README.md", "dqx_airflow/docs/**/*.md"),
    "examples": ("dags_examples/**/*.dql",),
    "importers": ("tests/importing/expected/*.dql",),
}

VALUES: Mapping[str, Sequence[Any]] = {
    "bigint": (1, 2, 3),
    "string": ("a", "b", "c"),
    "double": (1.5, 2.5, 3.5),
    "decimal(12,2)": (Decimal("1.50"), Decimal("2.50"), Decimal("3.50")),
    "date": (TODAY, TODAY, TODAY - timedelta(1)),
    "timestamp": (NOW, NOW, NOW - timedelta(hours=1)),
    "boolean": (True, False, True),
    "array<string>": (("a", "b"), ("c",), ()),
}
"""The values of a made column by its type."""

_NUMBERS = ("bigint", "double", "decimal(12,2)")

_TYPE_BY_NAME = (
    (r"(^|_)(at|ts)$|time|timestamp|^valid_(from|to)", "timestamp"),
    (r"date|day|(_on|_ds)$|^(ds|dt)$", "date"),
    (r"amount|price|total|cost|revenue|fare|fee|tax", "decimal(12,2)"),
    (r"^(items|lines|tags)$", "array<string>"),
    (r"(^|_)(n|count|qty|quantity|age|number)$|(^|_)id$", "bigint"),
    (r"rate|score|share|weight|ratio|^(lat|lon|lng)|(^|_)[xy]$", "double"),
    (r"^(is|has)_|active|flag", "boolean"),
)
"""The usual types of columns by their names; text otherwise."""


@dataclass
class Share:
    """The assertions of a kind of source: all, and those over several columns."""

    judged: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)

    def row(self, name: str) -> str:
        """A row of the table."""
        cells = [name]
        for kind in ("all", "several columns"):
            judged, refused = self.judged[kind], self.refused[kind]
            percent = 100 * judged / max(1, judged + refused)
            cells.append(f"{judged:,} of {judged + refused:,} ({percent:.1f} %)")
        return f"| {' | '.join(cells)} |"


def suites(kind: str) -> Iterator[tuple[str, str]]:
    """The text of each suite of a kind of source, with its name; parts of suites as suites."""
    for pattern in SOURCES[kind]:
        for path in sorted(ROOT.glob(pattern)):
            text = path.read_text(encoding="utf-8")
            name = str(path.relative_to(ROOT))
            if path.suffix == ".dql":
                yield name, text
                continue
            for number, block in enumerate(re.findall(r"```dql\n(.*?)```", text, re.S)):
                yield f"{name} {number}", block


def plan_of(name: str, text: str) -> Plan | None:
    """The plan of a suite, or of the assertions of a snippet; None if it is neither."""
    forms = (
        text,
        f'suite "S" {{\n{text}\n}}',
        f'suite "S" {{ check "C" on orders {{\n{text}\n}} }}',
    )
    for form in forms:
        source = SourceFile(name, form)
        checked = check_source(source)
        if checked.errors or checked.suite is None:
            continue
        refs = tuple(DatasetRef(one, one) for one in datasets_of(checked.suite.checks))
        try:
            return resolve(checked.suite, source, refs, TODAY, QUIET)
        except DqxError:
            return None
    return None


def tables_of(plan: Plan) -> dict[str, dict[str, str]]:
    """The columns that a plan names, by dataset, with types that suit most of its requests."""
    columns: dict[str, dict[str, None]] = defaultdict(dict)
    for dataset, column in _columns(plan):
        if "." not in column:
            columns[dataset][column] = None
    types = {
        dataset: {name: _usual_type(name) for name in names} for dataset, names in columns.items()
    }
    for name in plan.reads:
        types.setdefault(name, {})["id"] = "bigint"
    for request in plan.requests:
        _fit_comparisons(request, types)
    for _ in range(2):
        for dataset, own in types.items():
            for column in own:
                _choose(plan, types, dataset, column)
    return types


def _columns(plan: Plan) -> Iterator[tuple[str, str]]:
    for request in plan.requests:
        for name in _names_of(request):
            yield request.dataset, name
        if is_about_rows(request):
            match = Match.of(request)
            for name in (*match.keys, *(match.compared or ())):
                yield request.dataset, name
                yield match.reference, name
        yield from _columns_in_sql(request)
    for lookup in plan.lookups:
        yield lookup.dataset, lookup.column
        yield lookup.reference, lookup.reference_column


def _columns_in_sql(request: MetricRequest) -> Iterator[tuple[str, str]]:
    """The columns in the SQL of a request, with the dataset of each."""
    if not request.definition.is_sql:
        return
    parsed = sqlglot.parse_one(str(request.arguments[0]), dialect="spark")
    for column in parsed.find_all(exp.Column):
        yield _dataset_of(column, parsed, request), column.name


def _dataset_of(column: exp.Column, parsed: exp.Expression, request: MetricRequest) -> str:
    """The table whose alias or name stands before a column; the dataset of the request if none."""
    for table in parsed.find_all(exp.Table):
        if column.table and table.alias_or_name == column.table:
            return table.name
    return request.dataset


def _fit_comparisons(request: MetricRequest, types: dict[str, dict[str, str]]) -> None:
    """Gives a column that SQL compares with a number the type of the number, and a column that it
    compares with another one the type of the other: the rules are written for such tables."""
    if not request.definition.is_sql:
        return
    parsed = sqlglot.parse_one(str(request.arguments[0]), dialect="spark")
    for comparison in parsed.find_all(exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE):
        column, other = comparison.this, comparison.expression
        if not isinstance(column, exp.Column):
            continue
        own = types.get(_dataset_of(column, parsed, request), {})
        is_number = own.get(column.name) in _NUMBERS
        if isinstance(other, exp.Literal) and not other.is_string and not is_number:
            own[column.name] = "bigint" if other.is_int else "double"
        elif isinstance(other, exp.Column):
            others = types.get(_dataset_of(other, parsed, request), {})
            own[column.name] = others.get(other.name, own.get(column.name, "string"))


def _usual_type(name: str) -> str:
    for pattern, type_ in _TYPE_BY_NAME:
        if re.search(pattern, name.lower()):
            return type_
    return "string"


def _choose(plan: Plan, types: dict[str, dict[str, str]], dataset: str, column: str) -> None:
    """Gives a column the type to which the fewest requests object, its own type if there are
    several."""
    own = types[dataset][column]
    fewest, best = _objections(plan, types), own
    for type_ in VALUES:
        if not fewest:
            break
        types[dataset][column] = type_
        found = _objections(plan, types)
        if found < fewest:
            fewest, best = found, type_
    types[dataset][column] = best


def _objections(plan: Plan, types: Mapping[str, Mapping[str, str]]) -> int:
    schemas = {name: Schema(name, columns) for name, columns in types.items()}
    unusable = {}
    for lookup in lookups_of(*plan.requests):
        reference = schemas.get(lookup.reference)
        if reason := objection_to_lookup(lookup, schemas[lookup.dataset], reference):
            unusable[lookup] = reason
    return sum(
        objection_to(request, schemas[request.dataset], unusable) is not None
        for request in plan.requests
        if request.dataset in schemas
    )


def add(share: Share, session: Any, plan: Plan, folder: Path) -> None:
    """Evaluates a suite on Sail over made tables, and counts its assertions."""
    import pyarrow.parquet as pq

    refs = []
    for name, types in tables_of(plan).items():
        place = folder / name
        place.mkdir(parents=True)
        rows = zip(*(VALUES[type_] for type_ in types.values()), strict=True)
        pq.write_table(arrow_of(Table.typed(types, rows)), place / "a.parquet")
        refs.append(DatasetRef(name, str(place), format="parquet"))
    requests = {one.name: one.requests for one in plan.assertions}
    for verdict in evaluate(plan, measure(session, refs, plan)[1], now=NOW):
        asked = requests[verdict.name]
        over = {(one.dataset, name) for one in asked for name in _all_names(one)}
        kinds = ("all", "several columns") if len(over) > 1 else ("all",)
        if verdict.status is not Status.ERROR:
            share.judged.update(kinds)
        elif _is_refused(verdict.reason or ""):
            share.refused.update(kinds)
            share.reasons[_short(verdict.reason or "")] += 1
        else:
            share.reasons[f"(does not count) {_short(verdict.reason or '')}"] += 1


def _all_names(request: MetricRequest) -> Iterator[str]:
    yield from _names_of(request)
    for dataset, name in _columns_in_sql(request):
        yield name if dataset == request.dataset else f"{dataset}.{name}"
    for lookup in lookups_of(request):
        yield f"{lookup.reference}.{lookup.reference_column}"
    if request.definition.scan is Scan.MATCH:
        yield from ("both", "sides")


def _is_refused(reason: str) -> bool:
    causes = ("Sail", "this engine was found", "[JAVA_EXCEPTION]", "[UNSUPPORTED_PATTERN]")
    return any(cause in reason for cause in causes)


def _short(reason: str) -> str:
    return re.sub(r"(?<=differently from) .*", " Spark", reason)[:110]


def main() -> None:
    """Prints a row for each kind of source, and the reasons."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reasons", type=int, default=0)
    given = parser.parse_args()
    session = open_session(SAIL, "share", {})
    every = Share()
    print("| assertions of | all | over several columns |\n|---|---|---|")
    for kind in SOURCES:
        share = Share()
        for name, text in suites(kind):
            if (plan := plan_of(name, text)) is not None:
                with tempfile.TemporaryDirectory() as folder:
                    add(share, session, plan, Path(folder))
        print(share.row(kind), flush=True)
        every.judged += share.judged
        every.refused += share.refused
        every.reasons += share.reasons
    print(every.row("all"))
    for reason, number in every.reasons.most_common(given.reasons):
        print(f"{number:5} {reason}")


if __name__ == "__main__":
    main()
