"""The fields of a verdict other than its status, and how failing rows are counted."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, datetime, timezone

import pytest

from dqx_airflow.diagnostics.verdicts import finding, format_like_limit
from dqx_airflow.dql.check import check_source
from dqx_airflow.plan.evaluate import decide, evaluate
from dqx_airflow.plan.model import MetricRequest, Plan, Scanned
from dqx_airflow.plan.resolve import resolve
from dqx_airflow.plan.term_values import KnownValues
from dqx_airflow.values import MASK, DatasetRef, MetricValue, Origin, Outcome, Severity, SourceFile

TODAY, YESTERDAY = date(2024, 11, 29), date(2024, 11, 28)


def planned(assertions: str, *, masked: tuple[str, ...] = ()) -> Plan:
    source = SourceFile("s.dql", f'suite "S" {{ check "C" on orders {{\n{assertions}\n}} }}')
    suite = check_source(source).suite
    assert suite is not None
    ref = DatasetRef("orders", path="there", date_column="day", masked=masked)
    return resolve(suite, source, [ref], TODAY)


def found(plan: Plan, value: MetricValue = 5, **of_metrics: MetricValue) -> Scanned:
    return Scanned({item: of_metrics.get(item.metric, value) for item in plan.requests})


def test_a_verdict_has_its_datasets_expression_and_columns() -> None:
    plan = planned(
        "assert average(price) > 1 tags [money, daily]\n"
        "assert average(price) / average(tax) > 1\n"
        "assert correlation(price, tax) > 1\n"
        "assert duplicate_count([price, tax]) > 1"
    )
    verdicts = evaluate(plan, found(plan))
    one, two, both, several = (item for item in verdicts if item.check == "C")
    assert one.datasets == ("orders",)
    assert one.expression == "average(price)"
    assert one.tags == ("money", "daily")
    assert (one.metric, one.column) == ("average", "price")
    assert (one.span.line, two.span.line) == (2, 3)
    assert one.source_line == "assert average(price) > 1 tags [money, daily]"
    assert (two.metric, two.column) == (None, None)
    assert (both.metric, both.column) == ("correlation", None)
    assert (several.metric, several.column) == ("duplicate_count", None)


def test_a_verdict_has_the_costliest_origin_of_its_values() -> None:
    plan = planned("assert average(price) / average(tax) > 0")
    scanned = found(plan)
    price, tax = (item for item in plan.requests if item.metric == "average")
    due: list[tuple[dict[MetricRequest, Origin], Origin | None]] = [
        ({}, None),
        ({price: Origin.STATE}, Origin.STATE),
        ({price: Origin.STATE, tax: Origin.SCAN}, Origin.SCAN),
        ({price: Origin.MERGED, tax: Origin.LOG}, Origin.MERGED),
    ]
    for origins, origin in due:
        verdicts = evaluate(plan, replace(scanned, origins=origins))
        assert [item.origin for item in verdicts if item.check == "C"] == [origin]


def test_the_value_of_a_masked_column_is_hidden() -> None:
    plan = planned("assert maximum(price) < 4\nassert maximum(tax) < 4", masked=("price",))
    price, tax = (item for item in evaluate(plan, found(plan)) if item.check == "C")
    assert (price.value, tax.value) == (MASK, 5)


def test_history_is_required_only_on_request() -> None:
    plan = planned("assert average(price, lag 1) > 0\nassert num_rows() > 0")
    scanned = found(plan)
    for item in plan.requests:
        if item.date == YESTERDAY:
            scanned.values[item] = 0
    verdicts = evaluate(plan, scanned)
    assert decide(verdicts, Severity.P1) is Outcome.WARNED
    assert decide(verdicts, Severity.P1, require_history=True) is Outcome.BROKEN


def test_both_sides_are_those_that_are_compared() -> None:
    plan = planned(
        "assert coalesce(sum(price, lag 1), 7) <= coalesce(sum(tax, lag 1), average(tax))"
    )
    (assertion,) = (item for item in plan.assertions if item.check == "C")
    known = KnownValues(found(plan).values, None, plan, frozenset())
    assert known.sides_of(assertion) == (5, (5,))
    skipped = KnownValues(found(plan, average=3).values, None, plan, frozenset({YESTERDAY}))
    assert skipped.sides_of(assertion) == (7, (3,))
    assert skipped.sides_of(replace(assertion, multiplier=2)) == (14, (3,))


def test_the_side_of_the_clock_shows_its_time() -> None:
    plan = planned("assert timeliness(at) by 06:00")
    (assertion,) = (item for item in plan.assertions if item.check == "C")
    now = datetime(2024, 11, 30, 5, tzinfo=timezone.utc)
    known = KnownValues(found(plan, "2024-11-29").values, now, plan, frozenset())
    assert known.sides_of(assertion) == (
        "2024-11-30 05:00:00+00:00",
        ("2024-11-30 06:00:00+00:00",),
    )


@pytest.mark.parametrize(
    ("expression", "value", "expected", "limit", "shown"),
    [
        ("freshness(at)", 48240, "< 2 days", 172800, "13 hours 24 minutes"),
        ("freshness(at)", 262830, "<= 73 hours", 262800, "262830 seconds"),
        ("freshness(at)", 262800, "<= 73 hours", 262800, "3 days 1 hour"),
        ("freshness(at) / 3600", 36000, "< 24", 24, "36000"),
        ("num_rows()", 48240, "> mean(num_rows(), 7 days)", None, "48240"),
    ],
)
def test_an_age_is_a_duration_in_tables_and_headlines(
    expression: str, value: int, expected: str, limit: int | None, shown: str
) -> None:
    assert format_like_limit(value, expression, expected, limit) == shown


def test_a_finding_names_the_worst_group_and_says_that_there_is_no_value() -> None:
    plan = planned("assert average(price) > 1")
    verdict = next(one for one in evaluate(plan, found(plan, None)) if one.check == "C")
    assert finding(verdict) == "average(price) has no value, expected > 1"
    of_group = replace(verdict, scaled_value=0, worst_group='"basel"')
    assert finding(of_group) == 'average(price) is 0 for "basel", expected > 1'
