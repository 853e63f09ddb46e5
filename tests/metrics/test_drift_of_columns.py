"""Drift against the formulas written out in numpy, on Spark as in memory, and what a suite may say
of it."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import date, timedelta
from decimal import Decimal
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dqx_airflow.dql.check import check_source
from dqx_airflow.dql.printer import show
from dqx_airflow.metrics.builtin import METRICS
from dqx_airflow.metrics.drift import (
    DRIFT,
    MOST_CATEGORIES,
    MOST_STEPS,
    SMALLEST_SHARE,
    drift_bounds,
)
from dqx_airflow.metrics.spark_values import ColumnValues
from dqx_airflow.plan.dataset_needs import check_datasets
from dqx_airflow.plan.evaluate import evaluate
from dqx_airflow.plan.in_memory.measure import measure
from dqx_airflow.plan.in_memory.table import Table
from dqx_airflow.plan.masks import reveals
from dqx_airflow.plan.measurements import keys_of, measured_json, measurements_from
from dqx_airflow.plan.model import Plan, Scanned
from dqx_airflow.plan.resolve import QUIET, resolve
from dqx_airflow.results.past_days import PastDay
from dqx_airflow.tuning.past_judge import with_earlier_values
from dqx_airflow.values import DatasetRef, SourceFile, Status, Verdict
from tests.sound_suites import sound_suite

DATE = date(2024, 11, 29)
TYPES = {"ds": "date", "c": "string", "n": "bigint", "d": "double", "m": "decimal(38,18)"}
REF = DatasetRef("t", table="drifting", date_column="ds")
Column = list[Any]


def table_of(column: str, *days: Sequence[Any]) -> Table:
    """The rows of the date, of the day before it, and so on, with values in one column."""
    place = [*TYPES].index(column)
    rows = []
    for before, values in enumerate(days):
        for value in values:
            row: list[Any] = [DATE - timedelta(before), None, None, None, None]
            row[place] = value
            rows.append(tuple(row))
    return Table.typed(TYPES, rows)


def plan_of(*claims: str, ref: DatasetRef = REF) -> Plan:
    body = "\n".join(f'assert {claim} name "{number}"' for number, claim in enumerate(claims))
    source = SourceFile("suite.dql", f'suite "S" {{ check "C" on t {{\n{body}\n}} }}')
    suite = sound_suite(source)
    assert not check_datasets(suite, [ref])
    return resolve(suite, source, [ref], DATE, QUIET)


def judged(claim: str, table: Table) -> Verdict:
    plan = plan_of(claim)
    (verdict,) = evaluate(plan, measure(plan, [REF], {"t": table}))
    return verdict


def value_of(call: str, table: Table) -> Any:
    return judged(f"{call} >= 0", table).value


# The formulas, written out


def shares_of(day: Sequence[Any], reference: Sequence[Any], bins: Sequence[Any]) -> list[Any]:
    return [
        np.array([sum(value == one for value in values) / len(values) for one in bins])
        for values in (day, reference)
    ]


def psi_of(p: Any, q: Any) -> float:
    p, q = np.maximum(p, SMALLEST_SHARE), np.maximum(q, SMALLEST_SHARE)
    return float(np.sum((p - q) * np.log(p / q)))


def js_of(p: Any, q: Any) -> float:
    middle = (p + q) / 2
    parts = [np.sum(side[side > 0] * np.log2(side[side > 0] / middle[side > 0])) for side in (p, q)]
    return math.sqrt(max(0.0, sum(parts) / 2))


CATEGORIES = st.lists(st.sampled_from(["a", "b", "c", "é", "", None]), min_size=1, max_size=40)


@settings(deadline=None)
@given(CATEGORIES, CATEGORIES, CATEGORIES)
def test_drift_of_categories_is_that_of_the_formulas(
    day: Column, first: Column, second: Column
) -> None:
    table = table_of("c", day, first, second)
    bins = list(dict.fromkeys([*day, *first]))
    p, q = shares_of(day, first, bins)
    assert value_of("psi(c, lag 1)", table) == pytest.approx(psi_of(p, q), abs=1e-12)
    assert value_of("js(c, lag 1)", table) == pytest.approx(js_of(p, q), abs=1e-7)
    pooled = [*first, *second]
    p, q = shares_of(day, pooled, list(dict.fromkeys([*day, *pooled])))
    assert value_of("psi(c, usual n 2)", table) == pytest.approx(psi_of(p, q), abs=1e-12)
    p, q = shares_of(day, second, list(dict.fromkeys([*day, *second])))
    assert value_of("js(c, usual n 1, step 2)", table) == pytest.approx(js_of(p, q), abs=1e-7)


NUMBERS = st.lists(st.integers(-20, 20), min_size=1, max_size=80)


@pytest.mark.more
@settings(deadline=None)
@given(NUMBERS, NUMBERS)
def test_ks_is_the_largest_distance_of_two_cumulative_shares(day: Column, other: Column) -> None:
    points = np.array(sorted({*day, *other}))
    sides = [
        np.searchsorted(np.sort(values), points, side="right") / len(values)
        for values in (day, other)
    ]
    due = float(np.max(np.abs(sides[0] - sides[1])))
    assert value_of("ks(n, lag 1)", table_of("n", day, other)) == pytest.approx(due, abs=1e-12)


def test_numbers_are_compared_in_the_deciles_of_the_reference() -> None:
    reference = [*range(1, 101)]
    # Half of the rows move into the first bin, below 11; the edges are 10, 20 ... 90.
    day = [5] * 50 + [*range(1, 101, 2)]
    edges = np.arange(10, 100, 10)
    p, q = (
        np.bincount(np.searchsorted(edges, values), minlength=10) / len(values)
        for values in (day, reference)
    )
    table = table_of("n", day, reference)
    assert q.tolist() == [0.1] * 10
    assert value_of("psi(n, lag 1)", table) == pytest.approx(psi_of(p, q), abs=1e-12)
    assert value_of("js(n, lag 1)", table) == pytest.approx(js_of(p, q), abs=1e-12)


def test_a_value_that_the_reference_lacks_is_seen_among_few_numbers() -> None:
    same = table_of("n", [0, 1] * 10, [0, 1] * 30)
    assert value_of("psi(n, lag 1)", same) == 0
    below = table_of("n", [-7, 1] * 10, [0, 1] * 30)
    assert value_of("psi(n, lag 1)", below) > 4


@pytest.mark.few(1)
@pytest.mark.parametrize("column", ["d", "n", "m"])
def test_many_numbers_are_kept_in_steps_of_equal_share(column: str) -> None:
    random = Random(3)
    to_type = {"d": float, "n": round, "m": lambda value: round(Decimal(value), 6)}[column]
    day, other = ([to_type(random.gauss(mean, 900)) for _ in range(4000)] for mean in (0, 90))
    points = np.array(sorted({*map(float, day), *map(float, other)}))
    sides = [
        np.searchsorted(np.sort([*map(float, values)]), points, side="right") / len(values)
        for values in (day, other)
    ]
    due = float(np.max(np.abs(sides[0] - sides[1])))
    table = table_of(column, day, other)
    assert value_of(f"ks({column}, lag 1)", table) == pytest.approx(due, abs=1 / MOST_STEPS)
    plan = plan_of(f"ks({column}, lag 1) < 1")
    found = measure(plan, [REF], {"t": table})
    (request, _) = plan.assertions[0].requests
    *kept, nulls = json.loads(str(found.values[request]))["steps"]
    assert nulls == [None, 0]
    assert kept[0][0] == min(map(float, day))
    assert len(kept) <= MOST_STEPS + 1
    assert sum(rows for _, rows in kept) == 4000
    assert max(rows for _, rows in kept) <= 3 * 4000 / MOST_STEPS


# Bounds of what is computed from steps


def exact(kind: str, day: Any, reference: Any) -> float:
    """Drift of arrays of all rows, in which NaN is NULL."""
    sides = [values[~np.isnan(values)] for values in (day, reference)]
    if kind == "ks":
        points = np.unique(np.concatenate(sides))
        first, second = (
            np.searchsorted(np.sort(side), points, side="right") / len(side) for side in sides
        )
        return float(np.max(np.abs(first - second)))
    listed = np.sort(sides[1])
    edges = np.unique([listed[-(-len(listed) * part // 10) - 1] for part in range(1, 10)])
    if len(np.unique(listed)) <= 10:
        edges = np.unique(np.concatenate(sides))
    p, q = (
        np.append(
            np.bincount(np.searchsorted(edges, side), minlength=len(edges) + 1),
            np.isnan(values).sum(),
        )
        / len(values)
        for side, values in zip(sides, (day, reference), strict=True)
    )
    return psi_of(p, q) if kind == "psi" else js_of(p, q)


SHAPES: dict[str, Callable[[Any, int], Any]] = {
    "normal": lambda random, rows: random.normal(0, 1, rows),
    "heavy tails": lambda random, rows: random.standard_cauchy(rows) ** 3,
    "skew": lambda random, rows: random.lognormal(0, 2, rows),
    "ties": lambda random, rows: np.round(random.lognormal(6, 2, rows)),
    "a tie of half": lambda random, rows: np.maximum(random.normal(0, 1, rows), 0),
    "two peaks": lambda random, rows: random.normal(9, 1, rows) * random.choice([-1, 1], rows),
    "constant": lambda random, rows: np.full(rows, 7.0),
    "two values": lambda random, rows: random.choice([0.0, 7.0], rows),
    "twelve values": lambda random, rows: np.floor(random.uniform(0, 12, rows)),
    "large whole numbers": lambda random, rows: np.floor(random.normal(2.0**61, 2.0**12, rows)),
    "moved": lambda random, rows: random.normal(0.45, 1, rows),
    "elsewhere": lambda random, rows: random.normal(1e6, 1, rows),
    "NULL": lambda random, rows: np.where(random.random(rows) < 0.3, np.nan, random.random(rows)),
}


DAYS = st.lists(
    st.tuples(st.sampled_from([*SHAPES]), st.sampled_from([0, 1, 2, 3, 7])), min_size=2, max_size=4
)
"""The shape of each day, and its rows in steps: 0 for nine rows."""


@settings(deadline=None, max_examples=25)
@given(DAYS, st.integers(0, 2**32))
def test_the_exact_drift_is_within_the_bounds(days: list[tuple[str, int]], seed: int) -> None:
    check_bounds(10, days, seed)


@pytest.mark.nightly
@pytest.mark.parametrize("steps", [10, 30, MOST_STEPS])
@settings(deadline=None, max_examples=400)
@given(DAYS, st.integers(0, 2**32))
def test_the_exact_drift_of_any_rows_is_within_the_bounds(
    steps: int, days: list[tuple[str, int]], seed: int
) -> None:
    check_bounds(steps, days, seed)


def check_bounds(steps: int, shapes: list[tuple[str, int]], seed: int) -> None:
    random = np.random.default_rng(seed)
    days = [SHAPES[shape](random, size * steps + 1 if size else 9) for shape, size in shapes]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dqx_airflow.metrics.drift.MOST_STEPS", steps)
        patch.setattr("dqx_airflow.metrics.builtin.frequencies.MOST_STEPS", steps)
        texts = [summary_of(day) for day in days]
        for kind in ("psi", "js", "ks"):
            reference = np.concatenate(days[1:])
            value = DRIFT[kind](*texts)
            if kind == "ks" and (np.isnan(days[0]).all() or np.isnan(reference).all()):
                assert value is None
                continue
            due = exact(kind, days[0], reference)
            assert isinstance(value, float)
            bounds = drift_bounds(kind, texts)
            if bounds is None:
                assert value == pytest.approx(due, abs=1e-7)
                continue
            low, high = bounds
            assert low - 1e-7 <= due <= high + 1e-7
            assert low <= value <= high
            if kind == "ks":
                assert high - low <= 4 / steps + 1e-9


def summary_of(values: Any) -> Any:
    listed = [None if math.isnan(value) else value for value in values.tolist()]
    in_python = METRICS["value_summary"].in_python
    assert in_python is not None
    return in_python(ColumnValues("double", tuple(listed)))


def test_a_verdict_on_steps_says_between_which_values_the_exact_one_is() -> None:
    random = np.random.default_rng(3)
    days = [random.normal(mean, 1, 4000) for mean in (0.45, 0, 0)]
    table = table_of("d", *(day.tolist() for day in days))
    for claim in ("psi(d, usual n 2) < 0.2", "psi(d, usual n 2) < 0.1", "0.2 > js(d, usual n 2)"):
        verdict = judged(claim, table)
        kind = "js" if "js" in claim else "psi"
        found = re.fullmatch(
            rf"{kind}\(d\) is approximate, since a day has more than 1,000 different numbers: "
            r"the exact value is from ([0-9.]+) to ([0-9.]+)",
            verdict.note or "",
        )
        assert found, verdict.note
        low, high = map(float, found.groups())
        assert low <= exact(kind, days[0], np.concatenate(days[1:])) <= high
        assert high - low < 0.05
    few = table_of("d", *(day[:1000].tolist() for day in days))
    assert judged("psi(d, usual n 2) < 0.2", few).note is None


def test_too_many_categories_are_no_value_and_the_reason_says_so() -> None:
    names = [f"n{number}" for number in range(MOST_CATEGORIES + 1)]
    few = table_of("c", names[1:], names[1:])
    assert value_of("psi(c, lag 1)", few) == 0
    for days in ([names, ["a"]], [["a"], names]):
        verdict = judged("psi(c, lag 1) < 1", table_of("c", *days))
        assert verdict.status is Status.FAILED
        assert "1,000 different strings" in (verdict.reason or "")
    # One of several days is enough: what it had is not left out in silence.
    verdict = judged("psi(c, usual n 2) < 1", table_of("c", ["a"], ["a"], names))
    assert verdict.status is Status.FAILED


@pytest.mark.more
def test_without_history_drift_is_skipped_as_usual_is() -> None:
    table = table_of("c", ["a", "b"])
    for drift, usual in (
        ("psi(c, usual n 7) < 1", "num_rows() > usual(num_rows(), n 7)"),
        ("js(c, lag 7) < 1", "num_rows() > num_rows(lag 7)"),
    ):
        verdict, other = judged(drift, table), judged(usual, table)
        assert verdict.status is other.status is Status.SKIPPED
        assert (verdict.reason or "")[:50] == (other.reason or "")[:50]


def test_the_judged_day_is_no_part_of_its_reference() -> None:
    table = table_of("c", ["b"] * 1000, ["a"], ["a"])
    assert value_of("js(c, usual n 2)", table) == 1


def test_only_the_drift_of_a_masked_column_is_shown_and_nothing_is_kept() -> None:
    ref = DatasetRef("t", table="drifting", date_column="ds", masked=("c",))
    plan = plan_of("psi(c, lag 1) < 0.1", "ks(n, lag 1) < 1", ref=ref)
    found = measure(plan, [ref], {"t": table_of("c", ["secret"], ["other"])})
    first, _ = evaluate(plan, found)
    assert isinstance(first.value, float)
    assert first.value > 1
    stored = measured_json(plan.assertions[0], plan, found)
    assert stored is not None
    assert "secret" not in stored
    assert [reveals(request, plan.masked) for request in plan.assertions[0].requests] == [True] * 2
    others = plan.assertions[1].requests
    assert [request for request in others if reveals(request, plan.masked)] == []


def test_a_verdict_stores_its_day_and_with_those_of_earlier_days_it_is_the_same() -> None:
    random = Random(5)
    days = [[random.gauss(10 + before % 3, 4) for _ in range(300)] for before in range(8)]
    plan, other = (
        plan_of("psi(d, usual n 7) < 0.05"),
        plan_of("psi(d, usual n 7) < 0.05 for each c"),
    )
    found = measure(plan, [REF], {"t": table_of("d", *days)})
    text = measured_json(plan.assertions[0], plan, found)
    assert text is not None
    assert len(text) < 2 * MOST_STEPS * 35, "what is stored of a day is bounded"
    keys = keys_of(plan.requests, DATE)
    own = measurements_from(text)
    (own_key,) = [key for key in own.values if "summary" in key]
    past = []
    for request, key in keys.items():
        if request.metric == "value_summary":
            assert request.date is not None
            assert (key in own.values) == (request.date == DATE)
            values = {**own.values, own_key: found.values[request]}
            past.append(PastDay(request.date, replace(own, values=values)))
    filled = with_earlier_values(past, keys.values())
    (day,) = [one for one in filled if one.date == DATE]
    again = day.measured.scanned(keys)
    assert evaluate(plan, again)[0].value == evaluate(plan, found)[0].value
    by_group = measure(other, [REF], {"t": table_of("d", *days)})
    assert "summary" not in str(measured_json(other.assertions[0], other, by_group))


def test_a_suite_in_python_says_the_same() -> None:
    from dqx_airflow import MetricProvider

    expression = MetricProvider().psi("c", usual_n=28, step=7)
    assert show(expression.node) == "psi(c, usual n 28, step 7)"


def test_a_condition_that_no_drift_can_meet_is_an_error() -> None:
    for claim in ("psi(n, lag 1) < 0", "js(n, lag 1) > 1", "ks(n, usual n 7) > 100%"):
        source = SourceFile(
            "s.dql", f'suite "S" {{ check "C" on t {{ assert {claim} name "n" }} }}'
        )
        assert [found.code for found in check_source(source).errors] == ["E104"], claim


# Spark


def _column(random: Random, column: str) -> Column:
    size, nulls = random.choice([1, 2, 30, 1600]), random.choice([0, 0.3])
    values: dict[str, Any] = {
        "c": lambda: random.choice(["a", "A", "", "é", "1", "🦆"]),
        "n": lambda: random.choice([random.randint(-3, 3), random.randint(-(2**60), 2**60)]),
        "d": lambda: random.choice([-0.0, 0.0, 1.5, random.gauss(0, 1e6), math.inf, -math.inf]),
        "m": lambda: Decimal(random.randint(-(10**30), 10**30)).scaleb(-12),
    }
    return [None if random.random() < nulls else values[column]() for _ in range(size)]


@pytest.mark.more
@pytest.mark.spark
def test_spark_keeps_of_random_columns_what_the_reference_keeps(spark: Any) -> None:
    from dqx_airflow.engine.measure import measure as measure_in_spark

    random = Random(11)
    rows = []
    for before in range(8):
        columns = [_column(random, column) for column in ("c", "n", "d", "m")]
        for number in range(max(map(len, columns))):
            cells = (values[number] if number < len(values) else None for values in columns)
            rows.append((DATE - timedelta(before), *cells))
    many = [(DATE - timedelta(9), f"n{number}", None, None, None) for number in range(1001)]
    rows += many
    spark.createDataFrame(
        rows, ", ".join(f"{k} {v}" for k, v in TYPES.items())
    ).createOrReplaceTempView("drifting")
    plan = plan_of(
        *(f"{name}({column}, usual n 9) >= 0" for name in ("psi", "js") for column in "cndm"),
        *(f"ks({column}, usual n 7) >= 0" for column in "ndm"),
        *(f"psi({column}, lag 3, where n > 0 or n is null) >= 0" for column in "cnm"),
        "js(c, lag 2) >= 0 for each c",
        "psi(n, lag 2) >= 0 for each c",
    )
    expected = measure(plan, [REF], {"t": Table.typed(TYPES, rows)})
    found = measure_in_spark(spark, (REF,), plan)[1]
    assert found.failures == expected.failures == {}
    assert _texts(found) == _texts(expected)


def _texts(found: Scanned) -> dict[Any, Any]:
    return {
        **{request: value for request, value in found.values.items() if isinstance(value, str)},
        **{request: groups.values for request, groups in found.groups.items()},
    }


@pytest.mark.parametrize(
    ("issues", "expected"), [([], "mixed"), ([2], "like day 1"), ([1, 2], "mixed")]
)
def test_a_day_labelled_as_an_issue_is_no_reference_unless_all_are(
    issues: list[int], expected: str
) -> None:
    table = table_of("c", ["a", "b"], ["a", "b"], ["b", "b"])
    plan = plan_of("js(c, usual n 2) >= 0")
    labels = {DATE - timedelta(days=before): True for before in issues}
    labelled = replace(plan, labels={"t": {DATE: True, **labels}})
    (verdict,) = evaluate(labelled, measure(plan, [REF], {"t": table}))
    without = judged("js(c, lag 1) >= 0", table).value
    assert (verdict.value == without) == (expected == "like day 1")
