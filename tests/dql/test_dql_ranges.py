"""What the checker proves is true, on random assertions and random data."""

from __future__ import annotations

import math
import operator
import random
import sys
import time
from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dqx_airflow.diagnostics.diagnostic import Diagnostic
from dqx_airflow.dql.check import check_source
from dqx_airflow.metrics.builtin import METRICS
from dqx_airflow.plan.evaluate import evaluate
from dqx_airflow.plan.model import MetricRequest, Plan, Scanned
from dqx_airflow.plan.resolve import QUIET, resolve
from dqx_airflow.values import DatasetRef, MetricValue, SourceFile, Status, Verdict
from tests.processes import output_of

REPOSITORY = Path(__file__).parents[2]
ON = date(2024, 11, 29)

COUNTS = ("num_rows()", "null_count(a)", "unique_count(a)", "duplicate_count(a)")
LATER = ("num_rows(lag 1)", "null_count(a, lag 1)", "max_length(b)")
OTHERS = ("average(a)", "maximum(c)", "variance(a)", "correlation(a, b)")
NUMBERS = ("0", "1", "2", "-1", "0.5", "1.5", "3", "100", "1e-9", "1e20", "9007199254740993")
CONSTANTS = ("LOW", "HIGH", "SUM")

SUITE = """\
suite "S" {{
    availability_threshold 0%
    const LOW = {low} tunable [0, 2]
    const HIGH = {high} tunable [10.5, 100]
    const SUM = LOW + 1
    check "C" on orders {{
        assert {claim}
    }}
}}
"""


def _grown(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.builds("({} {} {})".format, inner, st.sampled_from("+-*/"), inner),
        st.builds("({} {} {})".format, inner, st.sampled_from("+-*/"), inner),
        st.builds("-({})".format, inner),
        st.builds("{}({})".format, st.sampled_from(("abs", "sqrt", "log", "exp")), inner),
        st.builds("{}({}, {})".format, st.sampled_from(("min", "max", "coalesce")), inner, inner),
        st.builds("day_over_day({})".format, st.sampled_from(COUNTS + OTHERS)),
        st.builds(
            "{}({}, n 3)".format,
            st.sampled_from(("mean", "stddev", "usual")),
            st.sampled_from((*COUNTS, *OTHERS, "null_count(a) / num_rows()")),
        ),
    )


LEAVES = st.sampled_from((*COUNTS, *COUNTS, *LATER, *OTHERS, *NUMBERS, *CONSTANTS))
EXPRESSIONS = st.recursive(LEAVES, _grown, max_leaves=6)
CONDITIONS = st.one_of(
    st.builds("{} {}".format, st.sampled_from(("<", "<=", ">", ">=", "==", "!=")), EXPRESSIONS),
    st.builds(
        "{} {} tolerance {}".format,
        st.sampled_from(("==", "!=")),
        EXPRESSIONS,
        st.sampled_from(("0", "0.5", "2")),
    ),
    st.builds("between {} and {}".format, EXPRESSIONS, EXPRESSIONS),
    st.builds("not between {} and {}".format, EXPRESSIONS, EXPRESSIONS),
    st.sampled_from(("is positive", "is negative", "is None", "is not None")),
)


@settings(
    max_examples=150, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck)
)
@given(EXPRESSIONS, CONDITIONS, st.randoms(use_true_random=False))
@pytest.mark.slow
def test_certain_verdicts_hold_for_all_data(
    expression: str, condition: str, chance: random.Random
) -> None:
    claim = f"{expression} {condition}"
    found = [item for item in _checked(claim)[0] if item.code in ("E104", "W008")]
    assert len(found) <= 1
    for item in found:
        for low, high in ((0, 10.5), (1, 50), (2, 100)):
            plan = _checked(claim, low, high)[1]
            for _ in range(20):
                verdict = evaluate(plan, Scanned(_made_up(plan, chance)))[0]
                assert _agrees(item, verdict), (item.message, verdict)


def _checked(claim: str, low: float = 1, high: float = 50) -> tuple[tuple[Diagnostic, ...], Plan]:
    source = SourceFile("suite.dql", SUITE.format(low=low, high=high, claim=claim))
    checked = check_source(source)
    assert checked.suite is not None
    datasets = [DatasetRef("orders", path="there", date_column="day")]
    return checked.diagnostics, resolve(checked.suite, source, datasets, ON, QUIET)


def _agrees(found: Diagnostic, verdict: Verdict) -> bool:
    if found.code == "E104":
        return verdict.status is not Status.PASSED
    if verdict.status is Status.PASSED:
        return True
    has_no_value = verdict.status is Status.FAILED and "no value" in (verdict.reason or "")
    return "only fails without a value" in found.message and has_no_value


def _made_up(plan: Plan, chance: random.Random) -> dict[MetricRequest, MetricValue]:
    """Values as data could have them: in their ranges, and parts of the rows within the rows."""
    most = chance.choice((0, 1, 3, 100, 2**62))
    rows = {ON - timedelta(days=day): chance.randint(0, most) for day in range(10)}
    values: dict[MetricRequest, MetricValue] = {}
    for request in plan.requests:
        assert request.date is not None
        unit = METRICS[request.metric].unit
        if request.metric == "num_rows":
            values[request] = rows[request.date]
        elif unit.is_part_of_rows:
            number = rows[request.date]
            values[request] = chance.choice((0, number, chance.randint(0, number)))
        elif unit.is_whole:
            values[request] = chance.choice((None, 0, 1, 7, 2**31 - 1))
        else:
            values[request] = _number(request.metric, chance)
    return values


def _number(metric: str, chance: random.Random) -> MetricValue:
    if chance.random() < 0.1:
        return None
    if metric == "maximum" and chance.random() < 0.2:
        return chance.choice(("text", "2024-11-29"))
    low, high = METRICS[metric].range
    extreme = chance.choice((0.0, 1.0, -1.0, 1e-320, 1e300, -1e300, 0.1, 1e16, 7))
    number = chance.choice((extreme, chance.uniform(-10, 10)))
    return min(max(number, low), high)


# Predicates over rows: trees beside their text, judged as SQL does for single rows.

Truth = bool | None
Row = dict[str, float | None]
Predicate = tuple[str, Callable[[Row], Truth]]

_COMPARED: dict[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}


def _compare(column: str, op: str, literal: int, is_mirrored: bool) -> Predicate:
    compared = _COMPARED[op]

    def judge(row: Row) -> Truth:
        value = row[column]
        if value is None:
            return None
        return compared(literal, value) if is_mirrored else compared(value, literal)

    return (f"{literal} {op} {column}" if is_mirrored else f"{column} {op} {literal}"), judge


def _between(column: str, low: int, high: int) -> Predicate:
    def judge(row: Row) -> Truth:
        value = row[column]
        return None if value is None else low <= value <= high

    return f"{column} between {low} and {high}", judge


def _listed(column: str, literals: list[int]) -> Predicate:
    def judge(row: Row) -> Truth:
        value = row[column]
        return None if value is None else value in literals

    return f"{column} in {literals}", judge


def _null(column: str) -> Predicate:
    return f"{column} is null", lambda row: row[column] is None


def _not(inner: Predicate) -> Predicate:
    def judge(row: Row) -> Truth:
        truth = inner[1](row)
        return None if truth is None else not truth

    return f"not ({inner[0]})", judge


def _junction(left: Predicate, op: str, right: Predicate) -> Predicate:
    decisive = op == "or"

    def judge(row: Row) -> Truth:
        truths = (left[1](row), right[1](row))
        if decisive in truths:
            return decisive
        return None if None in truths else not decisive

    return f"({left[0]}) {op} ({right[0]})", judge


COLUMNS = st.sampled_from("xxxy")
LITERALS = st.integers(0, 3)
TESTS = st.one_of(
    st.builds(_compare, COLUMNS, st.sampled_from(tuple(_COMPARED)), LITERALS, st.booleans()),
    st.builds(_between, COLUMNS, LITERALS, LITERALS),
    st.builds(_listed, COLUMNS, st.lists(LITERALS, min_size=1, max_size=2)),
    st.builds(_null, COLUMNS),
)
PREDICATES = st.recursive(
    TESTS,
    lambda inner: st.one_of(
        st.builds(_not, inner), st.builds(_junction, inner, st.sampled_from(("and", "or")), inner)
    ),
    max_leaves=5,
)
CELLS = (None, -1, 0, 0.5, 1, 1.5, 2, 2.5, 3, 99, math.inf)


@pytest.mark.slow
@settings(max_examples=150, deadline=None, derandomize=True)
@given(PREDICATES)
def test_certain_row_predicates_hold_for_every_row(predicate: Predicate) -> None:
    text, judge = predicate
    found = [item for item in _checked(f"each row: {text}")[0] if item.code in ("E104", "W008")]
    for item in found:
        if item.message.startswith("no row can"):
            truths = {judge({"x": x, "y": y}) for x in CELLS for y in CELLS}
            assert item.code == "W008" or True not in truths, text
            assert item.code == "E104" or False not in truths, text


# What it costs


@pytest.mark.slow
def test_ordinary_suites_are_checked_without_sympy() -> None:
    suites = [*REPOSITORY.glob("tests/dql/seed/*.dql"), *REPOSITORY.glob("dags_examples/**/*.dql")]
    assert suites
    claims = (
        "(num_rows() - null_count(a)) / num_rows() > 95%",
        "(maximum(a) - minimum(a)) / maximum(a) < 50%",
        "average(a) - average(a, lag 1) between -5 and 5",
        "num_rows() - num_rows() == 0",
        "null_count(a) <= num_rows()",
    )
    texts = [path.read_text(encoding="utf-8") for path in suites]
    texts += [SUITE.format(low=1, high=50, claim=claim) for claim in claims]
    assert "sympy" not in _loaded_by_checking(texts)


@pytest.mark.slow
def test_a_metric_that_occurs_twice_may_need_sympy() -> None:
    claim = "2 * num_rows() - num_rows() >= 0"
    assert "sympy" in _loaded_by_checking([SUITE.format(low=1, high=50, claim=claim)])


@pytest.mark.nightly
def test_sympy_is_not_asked_thousands_of_times() -> None:
    claims = (f"count(c{i}) * count(c{i}) - count(c{i}) >= 0" for i in range(3000))
    lines = "\n".join(f'assert {claim} name "{claim}"' for claim in claims)
    started = time.process_time()
    check_source(SourceFile("s", f'suite "S" {{ check "C" on orders {{\n{lines}\n}} }}'))
    assert time.process_time() - started < 10


def _loaded_by_checking(texts: list[str]) -> set[str]:
    """The modules that a fresh interpreter has loaded after checking the suites."""
    code = (
        "import sys\n"
        "from dqx_airflow.dql.check import check_source\n"
        "from dqx_airflow.values import SourceFile\n"
        f"for text in {texts!r}:\n"
        "    check_source(SourceFile('suite.dql', text))\n"
        "print('\\n'.join(sys.modules))"
    )
    run = [sys.executable, "-c", code]
    printed = output_of(run, timeout=120)
    return set(printed.splitlines())
