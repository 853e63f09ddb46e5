"""Writes a lake of 40 small tables in five areas, with faults in seven of them.

    python make_lake.py /tmp/lake

Each area has three tables of things (Delta, Parquet and CSV) and five of events, with rows for each
of the last 30 days up to yesterday (Delta, and Parquet in a folder a day).
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from datetime import date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
from deltalake import write_deltalake

AREAS = {
    "sales": (
        ("customers", "products", "stores"),
        ("orders", "order_lines", "returns", "quotes", "deliveries"),
    ),
    "web": (
        ("visitors", "pages", "campaigns"),
        ("visits", "clicks", "sessions", "searches", "signups"),
    ),
    "hr": (
        ("employees", "teams", "sites"),
        ("absences", "trainings", "interviews", "reviews", "shifts"),
    ),
    "finance": (
        ("accounts", "currencies", "vendors"),
        ("invoices", "payments", "bookings", "budgets", "rates"),
    ),
    "ops": (
        ("machines", "parts", "plants"),
        ("jobs", "alarms", "inspections", "repairs", "shipments"),
    ),
}
"""The tables of things and of events in each area."""

DAYS = 30
THINGS = 120
ROWS_A_DAY = 60

Columns = dict[str, list[Any]]


def singular(name: str) -> str:
    if name.endswith("ies"):
        return f"{name[:-3]}y"
    return name[:-2] if name.endswith("ches") else name[:-1]


def things(name: str, chance: random.Random) -> Columns:
    numbers = range(1, THINGS + 1)
    return {
        f"{singular(name)}_id": list(numbers),
        "name": [f"{singular(name)} {number}" for number in numbers],
        "region": [chance.choice(["north", "south", "west"]) for _ in numbers],
    }


def events(name: str, area: str, days: list[date], chance: random.Random) -> Columns:
    on = [day for day in days for _ in range(ROWS_A_DAY + chance.randint(-2, 2))]
    columns: Columns = {f"{singular(name)}_id": list(range(1, len(on) + 1))}
    for other in AREAS[area][0][:2]:
        columns[f"{singular(other)}_id"] = [chance.randint(1, THINGS - 1) for _ in on]
    columns["amount"] = [round(chance.uniform(10, 20), 2) for _ in on]
    columns["status"] = [chance.choice(["new", "done", "failed"]) for _ in on]
    columns["code"] = [f"{area[:2].upper()}-{chance.randint(0, 9999):04}" for _ in on]
    columns["day"] = on
    return columns


# The faults --------------------------------------------------------------------------------------


def repeat_a_key(columns: Columns) -> None:
    key = next(iter(columns))
    columns[key][-1] = columns[key][-2]


def lose_a_key(columns: Columns) -> None:
    columns[next(iter(columns))][-1] = None


def refer_to_nothing(columns: Columns) -> None:
    reference = list(columns)[1]
    columns[reference][-3:] = [9999, 9999, 9998]


def stop_early(columns: Columns) -> None:
    last = max(columns["day"]) - timedelta(days=9)
    keep(columns, lambda row: columns["day"][row] <= last)


def load_half_a_day(columns: Columns) -> None:
    last = max(columns["day"])
    kept = [row for row, day in enumerate(columns["day"]) if day == last][:5]
    keep(columns, lambda row: columns["day"][row] < last or row in kept)


def lose_amounts(columns: Columns) -> None:
    last = max(columns["day"])
    columns["amount"] = [
        None if day == last and row % 3 == 0 else amount
        for row, (day, amount) in enumerate(zip(columns["day"], columns["amount"], strict=True))
    ]


def keep(columns: Columns, is_kept: Callable[[int], bool]) -> None:
    rows = [row for row in range(len(columns["day"])) if is_kept(row)]
    kept = {name: [values[row] for row in rows] for name, values in columns.items()}
    columns.update(kept)


FAULTS: dict[str, Callable[[Columns], None]] = {
    "sales/orders": repeat_a_key,
    "web/pages": lose_a_key,
    "hr/absences": refer_to_nothing,
    "finance/payments": stop_early,
    "ops/jobs": load_half_a_day,
    "web/clicks": lose_amounts,
}
BROKEN = "finance/currencies"
"""A table whose file is cut off, the seventh fault."""


def write_lake(root: Path, today: date) -> None:
    """Writes the lake into a new folder."""
    chance = random.Random(52)
    days = [today - timedelta(days=back) for back in range(DAYS, 0, -1)]
    for area, (things_of_area, events_of_area) in AREAS.items():
        for number, name in enumerate((*things_of_area, *events_of_area)):
            is_thing = name in things_of_area
            columns = things(name, chance) if is_thing else events(name, area, days, chance)
            place = f"{area}/{name}"
            if place in FAULTS:
                FAULTS[place](columns)
            kind = number if is_thing else 3 + number % 2
            write_table(root / area / name, pa.table(columns), kind)
            if place == BROKEN:
                (root / area / name / "part-0.parquet").write_bytes(b"PAR1")


def write_table(path: Path, table: pa.Table, kind: int) -> None:
    """Writes a table as Delta (0 and 3), Parquet (1), CSV (2) or Parquet in a folder a day (4)."""
    path.mkdir(parents=True)
    if kind in (0, 3):
        write_deltalake(str(path), table)
    elif kind == 1:
        pq.write_table(table, path / "part-0.parquet")
    elif kind == 2:
        pyarrow.csv.write_csv(table, path / f"{path.name}.csv")
    else:
        pq.write_to_dataset(table, str(path), partition_cols=["day"])


if __name__ == "__main__":
    write_lake(Path(sys.argv[1]), datetime.now(timezone.utc).date())
    print(f"wrote 40 tables into {sys.argv[1]}; something is wrong in {len(FAULTS) + 1} of them")
