"""Tables from which contracts are drafted: a table of orders in every format."""

from __future__ import annotations

import json
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
from deltalake import write_deltalake

ROWS = 40
_START = datetime(2024, 1, 1, tzinfo=timezone.utc)


def orders() -> pa.Table:
    """Orders with a key, few-valued and alike texts, numbers, data about people, and NULL."""
    count = range(ROWS)
    return pa.table(
        {
            "amount": pa.array([Decimal(i * 725 + 99) / 100 for i in count], pa.decimal128(18, 2)),
            "order_id": pa.array([1000 + i for i in count], pa.int64()),
            "machine": [f"M{i:04d}" for i in count],
            "status": [("OPEN", "PAID", "SENT")[i % 3] for i in count],
            "weight": pa.array([None if i % 8 == 0 else i / 4 for i in count], pa.float64()),
            "email": [f"person{i}@example.com" for i in count],
            "contact": [f"+4930{i:07d}" for i in count],
            "surname": ["Lovelace" for _ in count],
            "birth_date": [date(1950, 1, 1) + timedelta(days=i) for i in count],
            "created_at": pa.array(
                [_START + timedelta(hours=i) for i in count], pa.timestamp("us", "UTC")
            ),
            "zip": [f"{i * 131:05d}" for i in count],
            "is_new": [i % 2 == 0 for i in count],
            "tags": [["a", "b"] for _ in count],
            "place": [{"lat": 1.5, "name": "x"} for _ in count],
            "nothing": pa.array([None for _ in count], pa.string()),
        }
    )


def write(table: pa.Table, folder: Path, file_format: str) -> Path:
    """The table in a folder, as the format has it. CSV has no nested columns."""
    path = folder / f"orders.{file_format}"
    match file_format:
        case "delta":
            path = folder / "orders"
            write_deltalake(path, table)
        case "parquet":
            pyarrow.parquet.write_table(table, path)
        case "csv":
            pyarrow.csv.write_csv(table.drop_columns(["tags", "place"]), path)
        case "json":
            path.write_text("".join(f"{json.dumps(row, default=str)}\n" for row in _plain(table)))
    return path


def _plain(table: pa.Table) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = table.to_pylist()
    moments = [row | {"created_at": row["created_at"].isoformat()} for row in rows]  # type: ignore[attr-defined]
    return [row | {"amount": float(row["amount"])} for row in moments]  # type: ignore[arg-type]
