"""References between tables: columns with keys of another one as values, in every format."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake

from dqx_airflow.tuning.lake.found_tables import tables_in, with_names
from dqx_airflow.tuning.lake.references import Reference, references_between
from dqx_airflow.tuning.lake.table_draft import table_draft

NOW = datetime(2026, 11, 28, tzinfo=timezone.utc)
FORMATS = ("parquet", "delta", "csv", "json")


def write(table: pa.Table, folder: Path, file_format: str) -> None:
    if file_format == "delta":
        write_deltalake(str(folder), table)
        return
    folder.mkdir(parents=True)
    file = folder / f"part-0.{file_format}"
    if file_format == "parquet":
        pq.write_table(table, file)
    elif file_format == "csv":
        pyarrow.csv.write_csv(table, file)
    else:
        table.to_pandas().to_json(file, orient="records", lines=True)


def references_of(lake: Path) -> list[Reference]:
    return references_between([table_draft(one, 30, NOW) for one in with_names(tables_in(lake))])


@pytest.mark.parametrize("file_format", FORMATS)
def test_numbers_and_strings_refer_to_keys_in_every_format(
    tmp_path: Path, file_format: str
) -> None:
    countries = [f"C{number}" for number in range(30)]
    customers = {"id": range(40), "name": [f"person {number}" for number in range(40)]}
    orders: dict[str, Any] = {
        "order_id": list(range(1000, 1200)),
        "customer_id": [row % 40 for row in range(199)] + [999],
        "country": [countries[row % 30] for row in range(200)],
        "note": ["a, b" if row % 3 else 'say "hi"' for row in range(200)],
    }
    write(pa.table(orders), tmp_path / "orders", file_format)
    write(
        pa.table({"id": list(customers["id"]), "name": customers["name"]}),
        tmp_path / "customers",
        file_format,
    )
    write(pa.table({"code": countries}), tmp_path / "countries", file_format)
    assert references_of(tmp_path) == [
        Reference("orders", "country", "countries", "code", 30),
        Reference("orders", "customer_id", "customers", "id", 41, 1, 1),
    ]


def test_a_row_of_json_may_be_longer_than_a_megabyte(tmp_path: Path) -> None:
    rows = [f'{{"id": {number}, "text": "{"x" * 1_500_000}"}}\n' for number in range(3)]
    (tmp_path / "long.json").write_text("".join(rows))
    (table,) = with_names(tables_in(tmp_path))
    draft = table_draft(table, 30, NOW)
    assert (draft.problem, draft.rows) == ("", 3)
