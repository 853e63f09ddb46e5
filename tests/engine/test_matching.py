"""Rows of two datasets, compared on a real Spark."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from dqx_airflow.engine.scan import matching
from dqx_airflow.engine.scan.frames import ReferenceTables
from dqx_airflow.engine.scan.matching import run_matches
from dqx_airflow.engine.sources.dataset import OpenDataset
from dqx_airflow.metrics.spark_values import EXACT
from dqx_airflow.metrics.types import LONGEST_DECIMAL, ColumnPath
from dqx_airflow.plan.model import MetricRequest, Scanned
from dqx_airflow.plan.number_comparison import is_within
from dqx_airflow.plan.schema_check import ColumnPair
from dqx_airflow.values import DatasetRef, Outcome, Status, Verdict
from tests.engine.lake import Run, delta, request

pytestmark = [pytest.mark.spark, pytest.mark.compiled]


@pytest.mark.slow
def test_two_versions_of_a_table_differ_in_the_rows_that_are_shown(
    run: Run, tmp_path: Path
) -> None:
    before = delta(tmp_path, "orders", _orders([1, 2, 3, 4], [1.0, 2.0, 3.0, 4.0]))
    assert before.path is not None
    write_deltalake(before.path, _orders([1, 2, 4, 5], [1.0, 2.5, 4.004, 5.0]), mode="overwrite")
    earlier = replace(before, name="earlier", version=0, masked=("email",))
    suite = """
        suite "Test" { check "All" on orders {
            assert rows of orders match earlier on (id) comparing [amount, email] tolerance 0.01
                name "rows"
            assert rows of orders match earlier on (id) allowing 50% name "share"
            assert missing_count(id, dataset earlier) == 0 name "missing"
            assert any {
                assert missing_count(id, dataset earlier) == 0
                assert extra_count(id, dataset earlier) == 0
            }
                name "either"
            assert rows of orders match lost on (id) name "lost"
            assert columns of orders match earlier name "columns"
        } }
    """
    lost = DatasetRef("lost", path=str(tmp_path / "nowhere"))
    report = run(request(tmp_path, suite, [before, earlier, lost]))
    verdicts = {verdict.name: verdict for verdict in report.verdicts}
    assert report.outcome is Outcome.BLOCKED
    assert verdicts["rows"].value == 3
    assert verdicts["rows"].reason == "1 missing, 1 extra, 1 changed"
    assert verdicts["rows"].datasets == ("orders", "earlier")
    assert _rows(verdicts["rows"]) == [
        ("orders", "amount differs", {"id": 2, "orders.amount": 2.5, "earlier.amount": 2.0}),
        ("earlier", "missing in orders", {"id": 3, "amount": 3.0, "email": "***"}),
        ("orders", "extra in orders", {"id": 5, "amount": 5.0, "email": "***"}),
    ]
    assert [row[1] for row in _rows(verdicts["missing"])] == ["missing in orders"]
    reasons = [row[1] for row in _rows(verdicts["either"])]
    assert reasons == ["missing in orders", "extra in orders"]
    assert verdicts["share"].status is Status.PASSED
    assert verdicts["columns"].status is Status.PASSED
    assert verdicts["lost"].status is Status.ERROR
    (unreadable,) = (one for one in report.verdicts if one.datasets == ("lost",))
    assert verdicts["lost"].reason == unreadable.reason
    event = json.loads((tmp_path / "lineage.jsonl").read_text().splitlines()[-1])
    assert {item["name"] for item in event["inputs"]} == {before.path, lost.path}


@pytest.mark.slow
@pytest.mark.parametrize("repeats", [False, True], ids=["unique", "repeated"])
def test_a_join_and_groups_find_the_same_differences(
    spark: Any, monkeypatch: pytest.MonkeyPatch, repeats: bool
) -> None:
    chance = random.Random(7)
    keys = [chance.randrange(40) if repeats else number for number in range(60)]
    left = [(key, round(chance.random(), 2)) for key in keys]
    right = [
        (key + 100 * (chance.randrange(10) // 9), value + chance.choice((0, 0, 0, 0.004, 0.5)))
        for key, value in left
        if chance.random() < 0.9
    ]
    opened = {"left": _opened(spark, "left", left), "right": _opened(spark, "right", right)}
    requests = [
        MetricRequest("left", "changed_count", ("id", "x", "right", None), None),
        MetricRequest("left", "changed_count", ("id", "x", "right", 0.01), None),
        MetricRequest("left", "missing_count", ("id", "right"), None),
        MetricRequest("left", "extra_count", ("id", "right"), None),
    ]
    references = ReferenceTables(opened, date(2024, 3, 2))
    rows = {"left": len(left), "right": len(right)}
    grouped = run_matches(spark, requests, references, rows)
    monkeypatch.setattr(matching, "_MOST_SORTED", 10)  # more partitions than Spark would make
    joined = run_matches(spark, requests, references, rows, most_grouped=0)
    assert not grouped.failures
    assert [*grouped.values.values()] == [*joined.values.values()]
    assert [one for one in requests if _value(grouped, one) <= 0] == []


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("left", "right", "is_counted", "differences"),
    [
        ([1, 2, 2], [1, 2, 3], True, (1, 1, 0)),
        ([1, 2, 3], [1, 2, 2], False, (1, 1, 0)),
        ([1, 2, None], [1, None, None], True, (1, 1, 0)),
    ],
    ids=["twice left", "twice right, not counted", "NULL"],
)
@pytest.mark.parametrize("is_overlooked", [False, True], ids=["seen", "overlooked"])
def test_many_rows_are_matched_exactly_where_keys_repeat_or_are_null(
    spark: Any,
    monkeypatch: pytest.MonkeyPatch,
    is_overlooked: bool,
    left: Sequence[int | None],
    right: Sequence[int | None],
    is_counted: bool,
    differences: tuple[int, int, int],
) -> None:
    if is_overlooked:  # by the sample
        monkeypatch.setattr(matching, "_MOST_REPEATED", math.inf)
    sides = {"left": left, "right": right}
    opened = {name: _opened(spark, name, [(key, 0.5) for key in sides[name]]) for name in sides}
    requests = [
        MetricRequest("left", "missing_count", ("id", "right"), None),
        MetricRequest("left", "extra_count", ("id", "right"), None),
        MetricRequest("left", "changed_count", ("id", "x", "right", None), None),
    ]
    rows = {name: len(keys) for name, keys in sides.items()} if is_counted else {}
    references = ReferenceTables(opened, date(2024, 3, 2))
    found = run_matches(spark, requests, references, rows, most_grouped=0)
    assert not found.failures
    assert tuple(_value(found, one) for one in requests) == differences


@pytest.mark.few(2, apart=True)
@pytest.mark.parametrize("scale", range(LONGEST_DECIMAL + 1))
def test_a_tolerance_between_decimals_of_every_size_is_exact(spark: Any, scale: int) -> None:
    chance = random.Random(scale)
    for precision in sorted({max(scale, 1), min(scale + 3, 38), max(scale, 37), 38}):
        top = 10**precision - 1
        numbers = [0, 1, -1, top, -top, top - 5, *(chance.randrange(-top, top) for _ in range(4))]
        units = [1, 5, top // 2, top - 1, top, top + 1, 2 * top - 1, 2 * top, chance.randrange(top)]
        pairs = [(a, b) for a in numbers for b in numbers]
        ends = [(a, a + sign * d) for a in numbers for d in units for sign in (-1, 1)]
        pairs += [(a, b + one) for a, b in ends for one in (0, 1) if abs(b + one) <= top]
        rows = ", ".join(
            f"({number}, '{_written(a, scale)}', '{_written(b, scale)}')"
            for number, (a, b) in enumerate(pairs)
        )
        kind = f"decimal({precision},{scale})"
        column = ColumnPath(("x",), kind)
        tolerances = [Fraction(unit, 10**scale) for unit in units]
        nearness = [
            matching._Nearness.of(ColumnPair("x", column, column), tolerance)
            for tolerance in tolerances
        ]
        near = (
            f"{one and one.is_near('a', 'b')} AS is_near_{at}" for at, one in enumerate(nearness)
        )
        found = spark.sql(
            f"SELECT number, {', '.join(near)} FROM (SELECT number, CAST(a AS {kind}) AS a, "
            f"CAST(b AS {kind}) AS b FROM VALUES {rows} AS pairs (number, a, b))"
        ).collect()
        assert len(found) == len(pairs)
        for number, *answers in found:
            a, b = (Fraction(side, 10**scale) for side in pairs[number])
            due = [is_within(a, b, tolerance) for tolerance in tolerances]
            assert answers == due, (kind, a, b, tolerances)


def _written(units: int, scale: int) -> str:
    return f"{Decimal(units).scaleb(-scale, EXACT):f}"


def _value(found: Scanned, asked: MetricRequest) -> int:
    value = found.values[asked]
    assert isinstance(value, int)
    return value


def _orders(ids: Sequence[int], amounts: Sequence[float]) -> pa.Table:
    emails = [f"{number}@example.com" for number in ids]
    return pa.table({"id": pa.array(ids, pa.int64()), "amount": list(amounts), "email": emails})


def _opened(spark: Any, name: str, rows: Sequence[tuple[int | None, float]]) -> OpenDataset:
    frame = spark.createDataFrame(list(rows), "id INT, x DOUBLE")
    return OpenDataset.of_frame(DatasetRef(name, table=name), frame, name)


def _rows(verdict: Verdict) -> list[tuple[str, str, dict[str, Any]]]:
    return [(row.dataset, row.reason, json.loads(row.row)) for row in verdict.failing_rows]
