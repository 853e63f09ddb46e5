"""Which passes a scan makes: no more than needed, and none that computes much in vain."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from pyspark.sql.types import StructType

from dqx_airflow.engine.scan.aggregates import describe_pass
from dqx_airflow.engine.sources.dataset import OpenDataset
from dqx_airflow.engine.sources.date_column import DateColumn
from dqx_airflow.engine.sources.delta_files import DeltaLog, struct_of
from dqx_airflow.engine.sources.delta_table import table_at
from dqx_airflow.metrics.builtin import METRICS
from dqx_airflow.metrics.metric import Aggregate
from dqx_airflow.plan import passes as rules
from dqx_airflow.plan.passes import (
    MOST_COLUMNS,
    MOST_COMPILED,
    AggregateRequest,
    EngineLimits,
    split_into_passes,
)
from dqx_airflow.values import DatasetRef

TODAY = date(2024, 11, 29)
ROWS = METRICS["num_rows"].aggregates(())[0]
MEAN = [Aggregate(f"avg(c{n})") for n in range(6)]
VALUES = METRICS["unique_count"].aggregates(("status",))[0]
KEY = METRICS["duplicate_count"].aggregates((("id", "line"),))[1]


def files() -> OpenDataset:
    """A dataset of which nobody knows how many rows it has."""
    return OpenDataset(DatasetRef("t", path="t"), StructType(), lambda _: None, "t", None)  # type: ignore[arg-type,return-value]


def delta(folder: Path) -> OpenDataset:
    """A Delta table of one row."""
    path = str(folder / "t")
    write_deltalake(path, pa.table({"id": [1], "ds": pa.array([TODAY], pa.date32())}))
    ref = DatasetRef("t", path=path, date_column="ds")
    table = table_at(ref, path)
    struct = struct_of(table)
    dates = DateColumn.of(ref, struct)
    log = DeltaLog(table, path, struct, dates, True)
    return OpenDataset(ref, struct, lambda _: None, path, dates, 0, log)  # type: ignore[arg-type,return-value]


def needs(*aggregates: Aggregate, days_before: int = 0) -> list[AggregateRequest]:
    return [AggregateRequest(TODAY - timedelta(days_before), item) for item in aggregates]


def test_row_metrics_share_one_pass() -> None:
    wanted = needs(ROWS, *MEAN)
    assert list(split_into_passes(files(), wanted)) == [wanted]


def test_distinct_values_and_keys_are_counted_apart_on_their_own_days() -> None:
    flat, distinct = needs(ROWS), needs(VALUES, KEY, days_before=1)
    parts = [flat, needs(KEY, days_before=1), needs(VALUES, days_before=1)]
    assert list(split_into_passes(files(), flat + distinct)) == parts


def test_keys_and_distinct_values_are_counted_apart_however_few(tmp_path: Path) -> None:
    for dataset in (files(), delta(tmp_path)):
        assert list(split_into_passes(dataset, needs(VALUES, KEY))) == [needs(KEY), needs(VALUES)]


def test_keys_of_few_rows_are_counted_apart_only_where_they_cannot_share_a_pass(
    tmp_path: Path,
) -> None:
    dataset, wanted = delta(tmp_path), needs(ROWS, KEY)
    assert list(split_into_passes(dataset, wanted)) == [wanted]
    parts = list(split_into_passes(dataset, wanted, EngineLimits(fuses_keys=False)))
    assert parts == [needs(ROWS), needs(KEY)]


@pytest.mark.parametrize(
    ("aggregates", "expected"),
    [
        ((ROWS,), "one aggregate"),
        ((ROWS, *MEAN, VALUES), "8 aggregates"),
        ((KEY,), "keys"),
        ((VALUES, KEY), "distinct values"),
    ],
)
def test_a_pass_has_a_short_description(aggregates: tuple[Aggregate, ...], expected: str) -> None:
    assert describe_pass(aggregates) == expected


def test_comparison_days_are_read_only_for_their_own_metrics() -> None:
    today, before = needs(ROWS, *MEAN), needs(ROWS, days_before=1) + needs(ROWS, days_before=7)
    assert list(split_into_passes(files(), before + today)) == [today, before]


def test_days_that_need_the_same_are_read_together() -> None:
    days = [need for n in range(8) for need in needs(ROWS, MEAN[0], days_before=n)]
    days += needs(MEAN[1])
    assert list(split_into_passes(files(), days)) == [days]


def test_with_few_rows_everything_is_one_pass(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = delta(tmp_path)
    wanted = needs(ROWS, *MEAN, VALUES) + needs(ROWS, days_before=1)
    assert list(split_into_passes(dataset, wanted)) == [wanted]
    monkeypatch.setattr(rules, "MOST_ROWS_FUSED", 0)
    assert len(list(split_into_passes(dataset, wanted))) == 3


def test_no_pass_has_more_aggregates_than_spark_compiles() -> None:
    wide = needs(ROWS, *(Aggregate(f"max(c{n})") for n in range(MOST_COMPILED * 2)))
    parts = list(split_into_passes(files(), wide))
    assert list(map(len, parts)) == [250, 250, 1]
    assert {need for part in parts for need in part} == set(wide)


def test_no_pass_has_more_columns_than_java_compiles_however_few_rows(tmp_path: Path) -> None:
    names = [f"c{n}" for n in range(MOST_COLUMNS * 2)]
    columns = {
        Aggregate(f"{function}({name})"): {name} for function in ("min", "max") for name in names
    }
    wide = needs(ROWS, *columns)
    for dataset in (files(), delta(tmp_path)):
        parts = list(split_into_passes(dataset, wide, columns=columns))
        assert list(map(len, parts)) == [MOST_COLUMNS * 2 + 1, MOST_COLUMNS * 2]
        assert {need for part in parts for need in part} == set(wide)
        read = [
            {name for need in part for name in columns.get(need.aggregate, ())} for part in parts
        ]
        assert read == [set(names[:MOST_COLUMNS]), set(names[MOST_COLUMNS:])]
