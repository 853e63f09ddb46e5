"""What filters cost: the twenty checks, each with its own `where`, against the same checks
without.

Every filter keeps most rows, so that none makes a check cheaper. Each round runs both suites in
turn, in changing order; the figures are ratios within a round. `flat` are the eighteen checks that
need no grouping.

    python benchmarks/filter_cost.py [--rows ROWS] [--rounds 5]
"""

from __future__ import annotations

import argparse
import platform
import tempfile
from collections.abc import Iterable, Mapping

from measuring import java_version, rounds
from scan_cost import gate, session, table
from workload import CHECKS, write_events

from dqx_airflow.values import DatasetRef

GROUPED = ("machines", "key")
"""The checks that count distinct values."""


def suite(checks: Mapping[str, str], filters: Iterable[str]) -> str:
    pairs = zip(checks.items(), filters, strict=True)
    lines = (f'assert {text}{where} name "{name}"' for (name, text), where in pairs)
    return "\n".join(['suite "Telemetry" {', 'check "W20" on events {', *lines, "}", "}"])


def filters_of(checks: Mapping[str, str]) -> list[str]:
    """A different filter for each check: comparisons of numbers, strings or both."""
    forms = (
        " where casino_id >= -{n}",
        ' where game_type != "game {n}"',
        " where casino_id < 10{n} and amount_wagered > -{n}",
        ' where machine_id > "A{n}" or casino_id == {n}',
    )
    return [forms[n % len(forms)].format(n=n) for n in range(len(checks))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    spark = session()
    java = java_version(spark)
    print(f"Spark {spark.version}, Java {java}, Python {platform.python_version()}, local[2]")
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/events"
        write_events(spark, path, options.rows)
        ref = DatasetRef("events", path, format="parquet", date_column="event_date")
        flat = {name: text for name, text in CHECKS.items() if name not in GROUPED}
        for title, checks in (("flat", flat), ("all", CHECKS)):
            ways = {
                "without filters": gate(spark, ref, suite(checks, [""] * len(checks))),
                "with filters": gate(spark, ref, suite(checks, filters_of(checks))),
            }
            told = rounds(spark, ways, options.rounds)
            head = f"{len(checks)} checks ({title}), {options.rows:,} rows, warm"
            print("\n".join(table(head, "without filters", told)), flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
