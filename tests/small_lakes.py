"""A lake of a few small tables, with faults, for tests of `dql init` over a folder of tables."""

from __future__ import annotations

import random
from datetime import date, datetime, timedelta, timezone
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import write_deltalake

TODAY = datetime.now(timezone.utc).date()
DAYS = [TODAY - timedelta(days=back) for back in range(20, 0, -1)]
ORDERS_A_DAY = 40


def write_parquet(path: Path, columns: dict[str, object]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path)


def write_small_lake(root: Path) -> None:
    """Customers and orders (Delta), visits by day (Parquet), countries (CSV), and two tables that
    cannot be read: a file that is not Parquet, and folders of months without names.

    Of the visits, two of the newest day are of an order that does not exist.
    """
    chance = random.Random(1)
    ids = list(range(1, 101))
    countries = [chance.choice(["CH", "DE", "FR"]) for _ in ids]
    mails = [f"person{number}@example.org" for number in ids]
    customers = pa.table({"id": ids, "email": mails, "country": countries})
    write_deltalake(str(root / "sales" / "customers"), customers)
    write_deltalake(str(root / "sales" / "orders"), orders(chance, DAYS))
    for number, day in enumerate(DAYS):
        visited = [chance.randrange(len(DAYS) * ORDERS_A_DAY) for _ in range(50)]
        if day == DAYS[-1]:
            visited[:2] = [999_999, 999_999]
        visits = {"visit_id": [number * 50 + one for one in range(50)], "order_id": visited}
        write_parquet(root / "web" / "visits" / f"ds={day}" / "part-0.parquet", visits)
    (root / "ref").mkdir()
    names = "code,title\nCH,Switzerland\nDE,Germany\nFR,France\n"
    (root / "ref" / "countries.csv").write_text(names)
    (root / "ref" / "broken.parquet").write_bytes(b"not Parquet")
    write_parquet(root / "old" / "2024" / "01" / "part-0.parquet", {"a": [1]})


def orders(chance: random.Random, days: list[date], first: int = 0) -> pa.Table:
    """The orders of some days."""
    on = [day for day in days for _ in range(ORDERS_A_DAY)]
    return pa.table(
        {
            "order_id": list(range(first, first + len(on))),
            "customer_id": [chance.randint(1, 100) for _ in on],
            "amount": [chance.uniform(1, 99) for _ in on],
            "status": [chance.choice(["new", "paid"]) for _ in on],
            "ordered_on": on,
        }
    )
