"""Results over parts of the rows merge to exactly the result over all rows, or not at all.

The laws hold for results of the reference, in the form that states have, and for those of Spark.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import date, datetime, timezone
from decimal import Decimal
from fractions import Fraction
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dqx_airflow.engine.scan.states import plain_result, result_in
from dqx_airflow.metrics.builtin import METRICS
from dqx_airflow.metrics.metric import Aggregate, Merge
from dqx_airflow.metrics.spark_values import ColumnValues, SumOverflow, metric_value
from dqx_airflow.metrics.sql import typed
from dqx_airflow.metrics.types import family_of
from dqx_airflow.values import MetricValue

VALUES: dict[str, st.SearchStrategy[Any]] = {
    "tinyint": st.integers(-(2**7), 2**7 - 1),
    "bigint": st.integers(-(2**63), 2**63 - 1) | st.integers(-5, 5),
    "decimal(10,2)": st.decimals(-(10**8) + 1, 10**8 - 1, places=2),
    "decimal(38,0)": st.integers(-(10**38) + 1, 10**38 - 1).map(Decimal),
    "decimal(38,18)": st.decimals(-(10**19), 10**19, places=18),
    "string": st.text(st.characters(codec="utf-8"), max_size=4),
    "boolean": st.booleans(),
    "date": st.dates(),
    "timestamp": st.datetimes(timezones=st.just(timezone.utc)),
    "timestamp_ntz": st.datetimes(),
}
OF_ONE_COLUMN = {
    "num_rows": (),
    **dict.fromkeys(("count", "minimum", "maximum", "newest", "sum"), ("c",)),
    **dict.fromkeys(("min_length", "max_length"), ("c",)),
}
"""The metrics whose value is that of one aggregate, with their arguments."""


def merge_of(metric: str) -> tuple[Merge, Aggregate]:
    found = METRICS[metric].aggregates(OF_ONE_COLUMN[metric])[0]
    assert found.merge is not None
    return found.merge, found


def accepts(metric: str, spark_type: str) -> bool:
    families = [argument.accepts for argument in METRICS[metric].arguments]
    return all(not wanted or family_of(spark_type) in wanted for wanted in families)


CALLS = [(m, t) for m in OF_ONE_COLUMN for t in VALUES if accepts(m, t)]


def result_of(metric: str, spark_type: str, values: Sequence[Any]) -> MetricValue:
    """What the reference measures, in the form that a state keeps."""
    compute = METRICS[metric].in_python
    assert compute is not None
    try:
        result = plain_result(metric_value(compute(ColumnValues(spark_type, tuple(values)))))
        return result_in(json.loads(json.dumps(result)))
    except SumOverflow:
        return None


def is_exact(metric: str, spark_type: str, *results: MetricValue) -> bool:
    merge, found = merge_of(metric)
    merged_type = "bigint" if found.column is None else spark_type
    return all(merge.is_exact(merged_type, result) for result in results)


@pytest.mark.few(13, apart=True)
@settings(max_examples=30)
@pytest.mark.parametrize(("metric", "spark_type"), CALLS)
@given(data=st.data())
def test_results_over_parts_make_the_result_over_all(
    metric: str, spark_type: str, data: st.DataObject
) -> None:
    merge, _ = merge_of(metric)
    parts = data.draw(st.tuples(*[st.lists(st.none() | VALUES[spark_type], max_size=4)] * 3))
    results = [result_of(metric, spark_type, part) for part in parts]
    if not is_exact(metric, spark_type, *results):
        return
    a, b, c = results
    assert merge.merged(a, None) == merge.merged(None, a) == a
    assert merge.merged(a, b) == merge.merged(b, a)
    merged = merge.merged(merge.merged(a, b), c)
    assert merged == merge.merged(a, merge.merged(b, c))
    if is_exact(metric, spark_type, merge.merged(a, b), merged):
        whole = result_of(metric, spark_type, [value for part in parts for value in part])
        assert (type(merged), merged) == (type(whole), whole)


@pytest.mark.parametrize(
    ("metric", "spark_type", "result"),
    [
        ("count", "double", 5),
        ("sum", "bigint", -5),
        ("sum", "bigint", None),
        ("sum", "bigint", 2**63),
        ("sum", "decimal(18,2)", Fraction(123425, 100)),
        ("sum", "decimal(38,18)", 10**19),
        ("minimum", "int", None),
        ("minimum", "string", "a"),
        ("maximum", "boolean", 1),
        ("newest", "timestamp", "2024-03-02 10:00:00"),
        ("max_length", "string", 7),
    ],
)
def test_complete_results_are_merged(metric: str, spark_type: str, result: MetricValue) -> None:
    assert is_exact(metric, spark_type, result)


@pytest.mark.parametrize(
    ("metric", "spark_type", "result", "why"),
    [
        ("sum", "double", 1.5, "the sum of doubles depends on their order"),
        ("minimum", "double", None, "it may be NaN or an infinity"),
        ("sum", "decimal(18,2)", None, "it may have overflowed"),
        ("sum", "decimal(38,18)", 10**20, "it overflows"),
        ("sum", "decimal(38,18)", 1234.5, "a double does not hold all of its digits"),
        ("newest", "timestamp", None, "it may be in the year 10000"),
        ("minimum", "string", "\ufffd", "it may stand for bytes that are no text"),
        ("minimum", "string collate UNICODE_CI", "a", "texts are ordered otherwise"),
    ],
)
def test_incomplete_results_are_not_merged(
    metric: str, spark_type: str, result: MetricValue, why: str
) -> None:
    assert not is_exact(metric, spark_type, result), why


TABLES = 150
# A sum of decimals of both signs may overflow in Spark in one order of them, and not in another.
COLUMNS: dict[str, tuple[str, list[Any]]] = {
    "n": ("bigint", [0, 1, -3, 2**40, 2**63 - 1, -(2**63)]),
    "i": ("int", [0, 1, -3, 2**31 - 1, -(2**31)]),
    "m": ("decimal(12,2)", [Decimal(text) for text in ("0", "0.01", "-2.25", "9999999999.99")]),
    "w": ("decimal(38,18)", [Decimal(text) for text in ("1E-18", "0.1", "12345678901234567890")]),
    "d": ("double", [0.1, 0.2, -0.0, 1e300, float("nan"), float("-inf")]),
    "s": ("string", ["", "a", "A", "\ud7ff", "\ue000", "🦆", "b\n"]),
    "b": ("boolean", [True, False]),
    "day": ("date", [date(2024, 2, 29), date(1, 1, 1), date(9999, 12, 31)]),
    "at": ("timestamp", [datetime(2024, 1, 2, 12, 30, s, tzinfo=timezone.utc) for s in (0, 7)]),
    "local": ("timestamp_ntz", [datetime(1900, 1, 1), datetime(1900, 1, 1, 0, 0, 0, 5)]),
}


@pytest.mark.slow
@pytest.mark.spark
def test_results_of_spark_over_parts_make_the_result_over_all(spark: Any) -> None:
    from pyspark.sql import functions as F

    from dqx_airflow.engine.scan.collected_values import collect

    random = Random(0)
    rows = [
        (table, part, *(random.choice([None, *values]) for _, values in COLUMNS.values()))
        for table in range(TABLES)
        for part in range(random.randint(1, 3))
        for _ in range(random.randint(1, 4))
    ]
    types = ", ".join(f"{name} {kind}" for name, (kind, _) in COLUMNS.items())
    frame = spark.createDataFrame(rows, f"table int, part int, {types}")
    kinds = {name: kind for name, (kind, _) in COLUMNS.items()}
    asked = [
        (kind if item.column is not None else "bigint", typed(item, lambda _, kind=kind: kind))
        for name, kind in kinds.items()
        for metric, arguments in OF_ONE_COLUMN.items()
        if accepts(metric, kind)
        for item in METRICS[metric].aggregates(arguments and (name,))
    ]
    texts = [F.expr(item.sql).alias(str(n)) for n, (_, item) in enumerate(asked)]
    whole = {row[0]: row[1:] for row in collect(frame.groupBy("table").agg(*texts))}
    parts: dict[Any, list[Any]] = {}
    for table, _, *results in collect(frame.groupBy("table", "part").agg(*texts)):
        parts.setdefault(table, []).append(results)
    merged_often = dict.fromkeys(Merge, 0)
    for table, results in parts.items():
        for n, (kind, item) in enumerate(asked):
            assert item.merge is not None
            found: MetricValue = None
            for part in results:
                found = item.merge.merged(found, part[n])
                if not (item.merge.is_exact(kind, part[n]) and item.merge.is_exact(kind, found)):
                    break
            else:
                due = whole[table][n]
                assert (type(found), found) == (type(due), due), (item.sql, results)
                merged_often[item.merge] += len(results) > 1
    assert min(merged_often.values()) > TABLES
