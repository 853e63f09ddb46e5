"""Filters in a plan: which of them must not be treated as equal."""

from __future__ import annotations

from datetime import date

import pytest
from sqlglot import exp, parse_one

from dqx_airflow.dql.check import check_source
from dqx_airflow.metrics.builtin import METRICS
from dqx_airflow.metrics.metric import ArgumentKind
from dqx_airflow.metrics.sql import filtered
from dqx_airflow.plan.masks import snapshot_of
from dqx_airflow.plan.measurements import request_key
from dqx_airflow.plan.model import Plan, Scanned
from dqx_airflow.plan.resolve import resolve
from dqx_airflow.values import DatasetRef, SourceFile

ON = date(2024, 11, 29)
REF = DatasetRef("orders", path="orders.csv", format="csv", schema="price int, status string")
_ARGUMENTS = {
    ArgumentKind.COLUMN: "c",
    ArgumentKind.COLUMNS: ("c", "d"),
    ArgumentKind.LITERALS: 1,
    ArgumentKind.SHARE: 0.5,
    ArgumentKind.SHARES: (("a", 1),),
    ArgumentKind.NAMES: ("c",),
    ArgumentKind.COUNT: 3,
    ArgumentKind.STEP: 2,
}


def _plan(claims: str) -> Plan:
    source = SourceFile("s.dql", f'suite "S" {{ check "C" on orders {{ {claims} }} }}')
    suite = check_source(source).suite
    assert suite is not None
    return resolve(suite, source, [REF], ON)


def test_a_malformed_count_of_a_column_is_excluded_from_the_implicit_assertion() -> None:
    def besides(claim: str) -> object:
        (request,) = (one for one in _plan(claim).requests if one.metric == "malformed_rows")
        return request.arguments[0]

    assert besides("assert malformed_count(price) < 5") == ("price",)
    assert besides('assert malformed_count(price) < 5 where status == "paid"') == ()


def test_filtered_metrics_are_not_reported_for_the_column() -> None:
    plan = _plan('assert average(price, where status == "paid") > average(price)')
    found = Scanned(dict.fromkeys(plan.requests, 7))
    reported = snapshot_of(REF, plan, found).metrics
    assert sorted(result.metric for result in reported) == ["average", "num_rows"]


def test_stored_values_of_different_filters_have_different_keys() -> None:
    plan = _plan('assert average(price) > 0 where status == "a" assert average(price) > 0')
    keys = [request_key(one, ON) for one in plan.requests]
    assert len(set(keys)) == len(keys)
    assert '["orders","average",["price"],null]' in keys


@pytest.mark.parametrize(
    "name",
    [
        metric.name
        for metric in METRICS.values()
        if metric.takes_where
        and all(argument.kind is not ArgumentKind.PREDICATE for argument in metric.arguments)
    ],
)
def test_every_aggregate_function_of_a_metric_has_the_filter(name: str) -> None:
    metric = METRICS[name]
    arguments = tuple(_ARGUMENTS[argument.kind] for argument in metric.arguments)
    given = tuple(_ARGUMENTS[one.kind] for one in metric.parameters)
    least = tuple(_ARGUMENTS[one.kind] if one.is_required else None for one in metric.parameters)
    for item in (part for own in (given, least) for part in metric.aggregates((*arguments, *own))):
        if item.over is not None:
            assert filtered(item, "`f` > 1").where == "`f` > 1"
            continue
        for kind in ("", *dict(item.sql_by_type)):
            made = filtered(item.of_type(kind), "`f` > 1")
            assert made.statistic is None
            assert made.shortcut is None
            known = made.sql.replace("try_sum(", "sum(")  # sqlglot takes it for a scalar
            functions = list(parse_one(known, dialect="spark").find_all(exp.AggFunc))
            assert functions
            for function in functions:
                assert isinstance(function.parent, exp.Filter), made.sql
