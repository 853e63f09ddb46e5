"""Columns that the files of a date lack, or have in addition to those of the first file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

from dqx_airflow.engine.job import try_gates
from dqx_airflow.values import DatasetRef, Verdict
from tests.engine.lake import TODAY, YESTERDAY, request

pytestmark = pytest.mark.spark

OLD = {"id": [1], "price": [1.5]}
WITHOUT = {"id": [2]}
WITH_MORE = {"ID": [3], "price": [2.5], "discount": [0.1]}
SUITE = """
assert column price exists name "price"
assert extra_column_count([id, price, ds]) == 0 name "others"
assert num_rows() > 0 name "rows"
assert average(discount) < 1 name "discount"
"""
READ = (
    "column 'discount' of dataset 'orders' cannot be read: files of the date have it, but the first"
)

Verdicts = dict[str, Verdict]
Judge = Callable[..., Verdicts]


@pytest.fixture
def judge(spark: Any, tmp_path: Path) -> Judge:
    def run(ref: DatasetRef, on: Any = TODAY) -> Verdicts:
        report = try_gates([request(tmp_path, SUITE, [ref], on)], lambda _: spark)[0]
        return {verdict.name: verdict for verdict in report.verdicts}

    return run


def written(folder: Path, format: str, *days: tuple[Any, dict[str, list[Any]]]) -> DatasetRef:
    """A dataset with a file for each day, which has the columns that are given."""
    for number, (day, columns) in enumerate(days):
        part = folder / f"ds={day.isoformat()}"
        part.mkdir(parents=True, exist_ok=True)
        write = pq.write_table if format == "parquet" else orc.write_table
        write(pa.table(columns), part / f"{number}.{format}")
    return DatasetRef("orders", str(folder), format=format, date_column="ds")


@pytest.mark.few(1)
@pytest.mark.parametrize("format", ["parquet", "orc"])
def test_a_column_that_is_missing_on_the_date_does_not_exist(
    judge: Judge, tmp_path: Path, format: str
) -> None:
    ref = written(tmp_path / "t", format, (YESTERDAY, OLD), (TODAY, WITHOUT))
    found = judge(ref)
    assert (found["price"].status.value, found["rows"].status.value) == ("failed", "passed")
    assert found["price"].reason == (
        f"the column does not exist; {tmp_path}/t/ds={TODAY}/1.{format} is without it"
    )
    assert judge(ref, YESTERDAY)["price"].status.value == "passed"


def test_a_column_must_be_in_all_files_of_the_date(judge: Judge, tmp_path: Path) -> None:
    ref = written(tmp_path / "t", "parquet", (TODAY, OLD), (TODAY, WITHOUT), (TODAY, OLD))
    reason = judge(ref)["price"].reason or ""
    assert reason.endswith("/1.parquet is without it")


@pytest.mark.few(1)
@pytest.mark.parametrize("format", ["parquet", "orc"])
def test_a_new_column_is_unlisted_and_not_read(judge: Judge, tmp_path: Path, format: str) -> None:
    ref = written(tmp_path / "t", format, (YESTERDAY, OLD), (TODAY, WITH_MORE))
    found = judge(ref)
    assert (found["others"].value, found["others"].reason) == (1, "not listed: discount")
    assert found["price"].status.value == "passed"
    assert found["discount"].status.value == "error"
    assert (found["discount"].reason or "").startswith(READ)
    assert judge(ref, YESTERDAY)["others"].status.value == "passed"
    assert "did you mean" not in (found["discount"].reason or "")


@pytest.mark.more
def test_where_schemas_are_merged_files_may_differ(judge: Judge, tmp_path: Path) -> None:
    options = (("MergeSchema", "true"),)
    ref = written(tmp_path / "t", "parquet", (TODAY, WITHOUT), (TODAY, OLD))
    assert judge(replace(ref, options=options))["price"].status.value == "passed"
    ref = written(tmp_path / "s", "parquet", (YESTERDAY, OLD), (TODAY, WITHOUT), (TODAY, WITHOUT))
    assert judge(replace(ref, options=options))["price"].status.value == "failed"
    ref = written(tmp_path / "u", "parquet", (YESTERDAY, OLD), (TODAY, WITH_MORE))
    merged = judge(replace(ref, options=(("mergeSchema", "true"),)))
    assert merged["discount"].status.value == "passed"
    apart = judge(replace(ref, options=(("mergeSchema", "false"),)))
    assert (apart["discount"].reason or "").startswith(READ)


def test_names_differing_in_case_are_two_columns_in_a_case_sensitive_session(
    spark: Any, tmp_path: Path
) -> None:
    small, large = {"id": [1], "y": [1]}, {"id": [2], "Y": [-5]}
    ref = written(tmp_path / "t", "parquet", (TODAY, small), (TODAY, large))
    suite = """
        assert minimum(Y) >= 0 name "large"
        assert column y exists name "small"
    """

    def statuses() -> list[str]:
        report = try_gates([request(tmp_path, suite, [ref])], lambda _: spark)[0]
        found = {verdict.name: verdict.status.value for verdict in report.verdicts}
        return [found["large"], found["small"]]

    assert statuses() == ["failed", "passed"]
    spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        assert statuses() == ["error", "failed"]
    finally:
        spark.conf.unset("spark.sql.caseSensitive")


def test_files_that_an_option_leaves_out_do_not_count(judge: Judge, tmp_path: Path) -> None:
    ref = written(tmp_path / "t", "parquet", (TODAY, OLD), (TODAY, WITHOUT))
    chosen = replace(ref, options=(("pathGlobFilter", "0.*"),))
    assert judge(chosen)["price"].status.value == "passed"


def test_with_a_declared_schema_files_may_have_more_and_not_less(
    judge: Judge, tmp_path: Path
) -> None:
    declared = "id bigint, price double, ds date"
    ref = written(tmp_path / "t", "parquet", (YESTERDAY, OLD), (TODAY, WITH_MORE))
    assert judge(replace(ref, schema=declared))["others"].status.value == "passed"
    ref = written(tmp_path / "u", "parquet", (YESTERDAY, OLD), (TODAY, WITHOUT))
    assert judge(replace(ref, schema=declared))["price"].status.value == "failed"


def test_a_struct_with_other_fields_in_a_file_has_another_type(spark: Any, tmp_path: Path) -> None:
    with_city = {"address": [{"city": "Bern", "lines": [{"text": "a"}]}]}
    with_zip = {"address": [{"city": "Bern", "lines": [{"text": "a", "zip": 3000}]}]}
    without = {"address": [{"lines": [{"text": "a"}]}]}
    type_ = "struct<city:string,lines:array<struct<text:string>>>"
    suite = f"""
        assert column address type "{type_}" name "type"
        assert column address.city exists name "city"
    """

    def statuses(ref: DatasetRef) -> list[str]:
        report = try_gates([request(tmp_path, suite, [ref])], lambda _: spark)[0]
        found = {verdict.name: verdict for verdict in report.verdicts}
        for name in ("type", "city"):
            if found[name].status.value == "failed":
                assert "/1.parquet it is struct<" in (found[name].reason or "")
        return [found[name].status.value for name in ("type", "city")]

    alike = written(tmp_path / "t", "parquet", (TODAY, with_city), (TODAY, with_city))
    assert statuses(alike) == ["passed", "passed"]
    more = written(tmp_path / "u", "parquet", (TODAY, with_city), (TODAY, with_zip))
    assert statuses(more) == ["failed", "passed"]
    declared = replace(more, schema=f"address {type_}, ds date")
    assert statuses(declared) == ["passed", "passed"]
    less = written(tmp_path / "v", "parquet", (TODAY, with_city), (TODAY, without))
    assert statuses(less) == ["failed", "failed"]
    assert statuses(replace(less, options=(("mergeSchema", "true"),))) == ["passed", "passed"]


def test_a_variant_is_not_taken_for_the_struct_that_a_file_holds(
    spark: Any, tmp_path: Path
) -> None:
    for day in (YESTERDAY, TODAY):
        rows = spark.sql(
            "SELECT parse_json('{\"a\": 1}') v, named_struct('w', parse_json('[2]')) s"
        )
        rows.write.parquet(str(tmp_path / "t" / f"ds={day}"))
    ref = DatasetRef("orders", str(tmp_path / "t"), format="parquet", date_column="ds")
    suite = """
        assert column v type "variant"
        assert column s type "struct<w:variant>"
    """
    report = try_gates([request(tmp_path, suite, [ref])], lambda _: spark)[0]
    assert {verdict.status.value for verdict in report.verdicts} == {"passed"}


def test_without_dates_all_files_are_inspected(judge: Judge, tmp_path: Path) -> None:
    ref = written(tmp_path / "t", "parquet", (YESTERDAY, OLD), (TODAY, WITHOUT))
    undated = replace(ref, date_column=None)
    for number in range(100):  # which are newer
        pq.write_table(pa.table(OLD), tmp_path / "t" / f"ds={YESTERDAY}" / f"{number}.parquet")
    assert judge(undated)["price"].status.value == "failed"
