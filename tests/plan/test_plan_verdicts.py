"""From metric values to verdicts: see the Markdown files.

A case is a suite (or bare assertions, on `orders`), a block of metric values, and the verdicts due.
The options behind `dql`: `date`, `skip` (dates), `fail_on`, `implicit` (show the assertions that
every dataset has), `require_history`, `undated` (datasets without dates), `time_zone` (of the
datasets), `skew` (`max_clock_skew_hours`), `requests` (show what has to be computed), `now` (when
the gate runs, in UTC, or `unknown`; else noon of 2024-11-29), `findings` (show each verdict as a
headline does).

A line of values is `[dataset:] metric(arguments) [@ date] = value`; `no value` stands for a metric
without one and `error: reason` for one that could not be computed, `NaN` for one whose
column holds it, `infinite` for one whose result is. The dataset is `orders` and the
date that of the case where nothing is said. Every date has 100 rows unless `num_rows()` says
otherwise; all other metrics that a case needs are written down.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date, datetime, timezone
from fractions import Fraction
from pathlib import Path

import pytest

from dqx_airflow.diagnostics.verdicts import finding, format_value
from dqx_airflow.dql.checks.assertions import datasets_of
from dqx_airflow.dql.printer import show
from dqx_airflow.metrics.builtin import METRICS
from dqx_airflow.plan.dataset_needs import check_datasets
from dqx_airflow.plan.evaluate import decide, evaluate
from dqx_airflow.plan.model import MetricRequest, Plan, Scanned, row_count
from dqx_airflow.plan.resolve import resolve
from dqx_airflow.plan.schema_check import INFINITE, nan_detail, void
from dqx_airflow.values import DatasetRef, MetricValue, RunOptions, Severity, SourceFile, Verdict
from dqx_airflow.values.exact import parse_exact
from tests.markdown_cases import Block, Case, cases
from tests.sound_suites import sound_suite

CASES = list(cases(*Path(__file__).parent.glob("verdicts/*.md")))
DATE = "2024-11-29"

_LINE = re.compile(
    r"(?:(?P<dataset>\w+): )?(?P<metric>\w+\(.*?\))(?: @ (?P<date>\S+))? = (?P<value>.+)"
)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_verdicts_are_those_of_the_case(case: Case) -> None:
    block = case.block("dql")
    plan = _plan(block)
    found = _values(case.block("values"), plan)
    skip_dates = [date.fromisoformat(day) for day in block.option("skip").split(",") if day]
    clock = block.option("now", f"{DATE}T12:00")
    known = clock != "unknown"
    now = datetime.fromisoformat(clock).replace(tzinfo=timezone.utc) if known else None
    verdicts = evaluate(plan, found, skip_dates, now=now)
    requires = plan.require_history or block.has("require_history")
    fail_on = Severity(block.option("fail_on", "P1"))
    outcome = decide(verdicts, fail_on, require_history=requires)
    lines = []
    if block.has("requests"):
        lines += [f"computes {_name_of(request, plan)}" for request in plan.requests]
    shown = [v for v in verdicts if block.has("implicit") or v.check != "implicit"]
    if block.has("findings"):
        lines += [f"{verdict.name}: {finding(verdict)}" for verdict in shown]
    else:
        lines += [line for verdict in shown for line in _describe(verdict)]
    case.expect("\n".join([*lines, f"outcome: {outcome.value}"]))


def test_titles_of_verdict_cases_are_unique() -> None:
    titles = [str(case) for case in CASES]
    assert len(titles) == len(set(titles))


def _plan(block: Block) -> Plan:
    text = block.text
    if not text.startswith(("suite", "@require_history")):
        if text.startswith(("assert", "@")):
            text = f'check "C" on orders {{\n{text}}}\n'
        text = f'suite "S" {{\n{text}}}\n'
    source = SourceFile("suite.dql", text)
    suite = sound_suite(source)
    undated = block.option("undated").split(",")
    datasets = [
        DatasetRef(
            name,
            path="there",
            date_column=None if name in undated else "day",
            time_zone=block.option("time_zone") or None,
        )
        for name in datasets_of(suite.checks)
    ]
    assert not check_datasets(suite, datasets)
    return resolve(
        suite,
        source,
        datasets,
        date.fromisoformat(block.option("date", DATE)),
        RunOptions(
            allow_empty=block.has("allow_empty"),
            max_clock_skew_hours=float(block.option("skew", "24")),
        ),
    )


def _values(block: Block, plan: Plan) -> Scanned:
    given = {key: value for line in block.text.splitlines() for key, value in _read(line, plan)}
    found = Scanned()
    asked: set[str] = set()
    for request in plan.requests:
        name = _name_of(request, plan)
        rows = given.get(_name_of(row_count(request.dataset, request.date), plan))
        text = given.get(name, "100" if request.metric == "num_rows" else None)
        asked.add(name)
        if text is None:
            assert rows == "0", f"the case gives no value for {name}"
            found.values[request] = METRICS[request.metric].empty
        elif text.startswith("error: "):
            found.failures[request] = text.removeprefix("error: ")
        elif text == "NaN":
            void(request, nan_detail({request.arguments[0]: 2}), found)
        elif text == "infinite":
            void(request, INFINITE, found)
        else:
            found.values[request] = _value(text)
    assert set(given) <= asked, f"nobody asks for {set(given) - asked}"
    return found


def _read(line: str, plan: Plan) -> Iterator[tuple[str, str]]:
    found = _LINE.fullmatch(line)
    assert found, f"not a line of values: {line}"
    dataset, on = found["dataset"] or "orders", found["date"] or plan.date.isoformat()
    days = [on]
    if ".." in on:
        first, last = (date.fromisoformat(day).toordinal() for day in on.split(".."))
        days = [date.fromordinal(day).isoformat() for day in range(first, last + 1)]
    for day in days:
        yield f"{dataset}: {found['metric']} @ {day}", found["value"]


def _name_of(request: MetricRequest, plan: Plan) -> str:
    arguments = []
    if not METRICS[request.metric].is_internal:
        arguments = [
            f"[{', '.join(item)}]" if isinstance(item, tuple) else str(item)
            for item in request.arguments
        ]
    if request.where is not None:
        arguments.append(f"where {show(request.where.node)}")
    on = request.date or plan.date
    return f"{request.dataset}: {request.metric}({', '.join(arguments)}) @ {on.isoformat()}"


def _value(text: str) -> MetricValue:
    if text == "no value":
        return None
    if text.startswith('"'):
        return text.strip('"')
    if text.startswith("exactly "):
        return parse_exact(text.removeprefix("exactly "))
    return int(text) if re.fullmatch(r"-?\d+", text) else float(text)


def _describe(verdict: Verdict) -> list[str]:
    lines = [f"{verdict.status.value} {verdict.severity.value} {verdict.name}"]
    if verdict.status.value in ("passed", "failed"):
        lines.append(f"    {_exact(verdict.value)} {verdict.expected}")
    if verdict.multiplier != 1.0:
        lines.append(f"    times {verdict.multiplier:g} is {_exact(verdict.scaled_value)}")
    if isinstance(verdict.threshold, float | Fraction):
        lines.append(f"    threshold {_exact(verdict.threshold)}")
    if verdict.profiles:
        lines.append(f"    profiles: {', '.join(verdict.profiles)}")
    if verdict.reason:
        lines.append(f"    because {verdict.reason}")
    if verdict.note:
        lines.append(f"    note: {verdict.note}")
    return lines


def _exact(value: MetricValue) -> str:
    """A date or text in quotes, a float always with its point."""
    if isinstance(value, str):
        return f'"{value}"'
    text = format_value(value)
    return f"{text}.0" if isinstance(value, float) and text.lstrip("-").isdigit() else text
