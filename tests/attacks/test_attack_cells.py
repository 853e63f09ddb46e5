"""One bad cell of each kind breaks every claim about it, from every source that can hold it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake

from dqx_airflow.engine.job import run_gates
from dqx_airflow.values import DatasetRef, GateReport, Status
from tests.attacks.attack_gates import gate_request
from tests.attacks.bad_cells import BAD_CELLS, BadCell

pytestmark = pytest.mark.spark

_SPARK_TYPES = {
    pa.float64(): "double",
    pa.float32(): "float",
    pa.int16(): "smallint",
    pa.int32(): "int",
    pa.int64(): "bigint",
    pa.string(): "string",
    pa.date32(): "date",
}


def _delta(folder: Path, table: pa.Table) -> dict[str, str]:
    write_deltalake(str(folder), table)
    return {"format": "delta"}


def _parquet(folder: Path, table: pa.Table) -> dict[str, str]:
    folder.mkdir()
    pq.write_table(table, folder / "a.parquet")
    return {"format": "parquet"}


def _csv(folder: Path, table: pa.Table) -> dict[str, str]:
    """A CSV file with declared types; of what CSV cannot write, Parquet."""
    kind = table.schema.field("x").type
    name = f"decimal({kind.precision},{kind.scale})" if pa.types.is_decimal(kind) else ""
    name = name or _SPARK_TYPES.get(kind, "")
    if not name or kind == pa.string():
        return _parquet(folder, table)
    folder.mkdir()
    words = [[_word(cell) for cell in row.values()] for row in table.to_pylist()]
    lines = ["id,x,y", *(",".join(row) for row in words)]
    (folder / "a.csv").write_text("\n".join(lines) + "\n")
    return {"format": "csv", "schema": f"id bigint, x {name}, y {name}"}


def _word(cell: Any) -> str:
    words = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity", "None": ""}
    text = f"{cell:f}" if hasattr(cell, "as_tuple") else repr(cell) if cell is not None else ""
    return words.get(
        text, str(cell) if not hasattr(cell, "as_tuple") and cell is not None else text
    )


@pytest.mark.nightly
@pytest.mark.parametrize("source", [_delta, _parquet, _csv])
def test_a_bad_cell_fails_every_claim_about_its_column(
    source: Callable[[Path, pa.Table], dict[str, str]],
    spark: Any,
    tmp_path: Path,
    attack: Callable[[str], Any],
) -> None:
    tally = attack("one bad cell: claims that must not pass")
    sound = _gate(spark, tmp_path / "sound", source, with_bad=False)
    broken = _gate(spark, tmp_path / "broken", source, with_bad=True)
    false_alarms = [
        f"{name}, without it: `{claim}` {verdict.status} ({verdict.value!r}, {verdict.reason})"
        for name, claim, verdict in _verdicts(sound)
        if verdict.status is not Status.PASSED
    ]
    assert not false_alarms, "\n".join(false_alarms)
    for name, claim, verdict in _verdicts(broken):
        tally.tried(
            verdict.status in (Status.FAILED, Status.ERROR),
            f"{name}, {source.__name__}: `{claim}` {verdict.status} ({verdict.value!r})",
        )


def _gate(
    spark: Any, folder: Path, source: Callable[[Path, pa.Table], dict[str, str]], with_bad: bool
) -> GateReport:
    folder.mkdir()
    refs, checks = [], []
    for number, cell in enumerate(BAD_CELLS):
        name = f"t{number}"
        settings = source(folder / name, cell.table(with_bad))
        refs.append(DatasetRef(name, path=str(folder / name), **settings))  # type: ignore[arg-type]
        checks.append(_check(number, cell))
    suite = 'suite "Cells" {\n' + "\n".join(checks) + "\n}"
    return run_gates([gate_request(folder, suite, refs, sample_rows=0)], lambda _: spark)[0]


def _check(number: int, cell: BadCell) -> str:
    claims = (claim.replace("dataset t)", f"dataset t{number})") for claim in cell.claims)
    lines = "\n".join(
        f'assert {claim} name "{number}.{place}"' for place, claim in enumerate(claims)
    )
    return f'check "c{number}" on t{number} {{\n{lines}\n}}'


def _verdicts(report: GateReport) -> list[tuple[str, str, Any]]:
    by_name = {verdict.name: verdict for verdict in report.verdicts}
    return [
        (cell.name, claim, by_name[f"{number}.{place}"])
        for number, cell in enumerate(BAD_CELLS)
        for place, claim in enumerate(cell.claims)
    ]
