"""`dql explain` announces the passes that the run makes: the same dates and aggregates, no others.

Both write a line for each pass and its SQL, which are compared: the run to its log, beforehand and
without Spark for `explain`.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake

from dqx_airflow.dql.check import check_source
from dqx_airflow.engine.measure import measure_together
from dqx_airflow.engine.proof.cases import ProofCase, arrow_of
from dqx_airflow.engine.sources.unopened import UnopenedDataset
from dqx_airflow.plan import passes
from dqx_airflow.plan.description import columns_read, planned_reads, title_of
from dqx_airflow.plan.in_memory.table import Table
from dqx_airflow.plan.model import Plan
from dqx_airflow.plan.passes import Pass, PassKind
from dqx_airflow.plan.resolve import QUIET, resolve
from dqx_airflow.values import DatasetRef, SourceFile
from tests.metrics.conformance_cases import COVERING

pytestmark = pytest.mark.spark
DAY = date(2024, 11, 29)
FEW, MANY = 250_000, -1


def lines_of(scan_pass: Pass) -> list[str]:
    return [title_of(scan_pass), *(f"        {text}" for text in scan_pass.texts)]


def explained(plans: Sequence[Plan], refs: Iterable[DatasetRef]) -> tuple[list[Pass], list[Pass]]:
    """The passes that are announced: those for certain, and those that may be needed."""
    datasets = {ref.name: UnopenedDataset(ref) for ref in refs}
    announced = [
        scan_pass
        for dataset in datasets.values()
        for reads in planned_reads(dataset, plans, datasets)
        for scan_pass in reads.passes
    ]
    certain = [scan_pass for scan_pass in announced if not scan_pass.is_late]
    return certain, [scan_pass for scan_pass in announced if scan_pass.is_late]


def run_lines(
    spark: Any, plans: Sequence[Plan], refs: Sequence[DatasetRef], log: pytest.LogCaptureFixture
) -> list[str]:
    """The lines about passes that a run writes to its log."""
    log.clear()
    with log.at_level(logging.DEBUG, logger="dqx.gate"):
        measure_together(spark, refs, plans)
    messages = [record.getMessage() for record in log.records if record.name == "dqx.gate"]
    return [text for text in messages if text.startswith(("one pass", "one query", "if", "   "))]


def expect_the_run_as_explained(
    spark: Any, plans: Sequence[Plan], refs: Sequence[DatasetRef], log: pytest.LogCaptureFixture
) -> list[Pass]:
    certain, late = explained(plans, refs)
    ran = Counter(run_lines(spark, plans, refs, log))
    announced = Counter(line for scan_pass in certain for line in lines_of(scan_pass))
    may_run = Counter(line for scan_pass in late for line in lines_of(scan_pass))
    assert not announced - ran, "announced, and not run"
    assert not ran - announced - may_run, "run, and not announced"
    return certain


def stored(
    tables: Mapping[str, Table], refs: Iterable[DatasetRef], folder: Path, format: str
) -> list[DatasetRef]:
    """The datasets, their tables stored in a format."""
    kept = []
    for ref in refs:
        path = folder / f"{ref.name}.{format}"
        if ref.table is None:
            kept.append(ref)
        elif format == "delta":
            write_deltalake(str(path), arrow_of(tables[ref.name]))
            kept.append(replace(ref, table=None, path=str(path), format="delta"))
        else:
            pq.write_table(arrow_of(tables[ref.name]), path)
            kept.append(replace(ref, table=None, path=str(path), format="parquet"))
    return kept


def is_storable(case: ProofCase) -> bool:
    rare = (": void", ": variant", " -> error", "| void")
    return case.since is None and not any(
        word in block.text for block in case.blocks for word in rare
    )


@pytest.mark.few(2)
@pytest.mark.parametrize("most_rows", [FEW, MANY])
@pytest.mark.parametrize("case", [case for case in COVERING if is_storable(case)], ids=str)
def test_the_passes_of_a_conformance_suite_are_those_that_are_explained(
    case: ProofCase,
    most_rows: int,
    spark: Any,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(passes, "MOST_ROWS_FUSED", most_rows)
    tables, given = case.tables(tmp_path)
    refs = stored(tables, given, tmp_path, "delta")
    plan = case.plan(tuple(refs))
    expect_the_run_as_explained(spark, [plan], refs, caplog)


SUITE = """suite "S" {
    check "C" on orders {
        assert average(amount) > 0 name "a"
        assert unique(id) name "b"
        assert unique_count(amount) > 1 name "c"
        assert each row: amount between 0 and 100 name "d"
        assert each row: amount between 0 and 90 name "e"
        assert each row: amount between 0 and 80 name "f"
        assert day_over_day(sum(amount)) < 50% name "g"
        assert num_rows() > 3 for each country name "h"
        assert median(amount) > 1 name "i"
        assert median(amount) > 1 where country == "CH" name "j"
        assert values(country) in values(code, dataset countries) name "k"
        assert query("SELECT count(*) FROM orders") > 1 name "l"
        assert rows of orders match countries on (country = code) name "m"
    }
}"""


def plan_of(text: str, refs: Sequence[DatasetRef], on: date) -> Plan:
    source = SourceFile("suite.dql", text)
    checked = check_source(source)
    assert not checked.errors, checked.errors
    return resolve(checked.valid_suite, source, tuple(refs), on, QUIET)


@pytest.fixture
def orders() -> Table:
    days = [DAY - timedelta(days=number % 3) for number in range(60)]
    countries = ["CH", "DE", "FR"]
    return Table.typed(
        {"ds": "date", "id": "bigint", "amount": "bigint", "country": "string"},
        [(day, number, number % 70, countries[number % 3]) for number, day in enumerate(days)],
    )


def test_a_wide_table_is_read_by_whole_columns(
    spark: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    names = [f"c{number}" for number in range(passes.MOST_COLUMNS + 50)]
    wide = Table.typed(dict.fromkeys(names, "bigint"), [tuple(range(len(names)))] * 2)
    refs = stored({"wide": wide}, [DatasetRef("wide", table="wide")], tmp_path, "parquet")
    claims = [f"assert {metric}({name}) >= 0" for metric in ("average", "sum") for name in names]
    suite = 'suite "S" {\ncheck "C" on wide {\n' + "\n".join(claims) + "\n}\n}"
    certain = expect_the_run_as_explained(spark, [plan_of(suite, refs, DAY)], refs, caplog)
    read = [set(columns_read(scan_pass)) for scan_pass in certain]
    assert read == [set(names[: passes.MOST_COLUMNS]), set(names[passes.MOST_COLUMNS :])]


@pytest.mark.few(1)
@pytest.mark.parametrize("format", ["delta", "parquet"])
@pytest.mark.parametrize(("most_rows", "most_bytes"), [(FEW, 4_000_000), (MANY, MANY)])
@pytest.mark.parametrize("days", [1, 2])
def test_one_planner_for_few_and_many_rows_files_and_dates(
    format: str,
    most_rows: int,
    most_bytes: int,
    days: int,
    orders: Table,
    spark: Any,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(passes, "MOST_ROWS_FUSED", most_rows)
    monkeypatch.setattr(passes, "MOST_BYTES_FUSED", most_bytes)
    tables = {
        "orders": orders,
        "countries": Table.typed({"code": "string"}, [("CH",), ("DE",), ("FR",)]),
    }
    given = [
        DatasetRef("orders", table="orders", date_column="ds"),
        DatasetRef("countries", table="countries"),
    ]
    refs = stored(tables, given, tmp_path, format)
    suite = SUITE.replace(
        '        assert rows of orders match countries on (country = code) name "m"\n', ""
    )
    plans = [plan_of(suite, refs, DAY - timedelta(days=number)) for number in range(days)]
    certain = expect_the_run_as_explained(spark, plans, refs, caplog)
    over_rows = [
        one for one in certain if one.dataset == "orders" and one.kind is PassKind.EVERYTHING
    ]
    if most_rows == FEW and days == 1:
        assert len(over_rows) == 1, "few rows: averages, keys and distinct values share one pass"
    if most_rows == MANY:
        assert not over_rows
