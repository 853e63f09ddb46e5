"""Random assertions over several columns on Sail, and on Spark.

`python -m tests.engine.sail_beside_spark --suites 50 --assertions 100` prints the counts. Each
engine runs in a process of its own, over the same files: Parquet, Parquet in folders, Delta,
partitioned Delta, and CSV and JSON with declared columns. The assertions that Sail evaluates must
have the values that Spark has.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, time, timezone
from pathlib import Path
from random import Random
from typing import Any

from dqx_airflow.datasets.spark_address import connection_of
from dqx_airflow.engine.measure import measure
from dqx_airflow.engine.proof.cases import arrow_of
from dqx_airflow.engine.session.connection import open_session
from dqx_airflow.plan.evaluate import evaluate
from dqx_airflow.plan.in_memory.table import Table
from dqx_airflow.values import DatasetRef, Status
from tests.engine.mixed_suites import plan_of_claims, random_claims, random_table
from tests.processes import environment

ENGINES = {"spark": "local[2]", "sail": "sail"}
KINDS = ("parquet", "folders", "delta", "partitioned delta", "csv", "json")
_ODD_TEXTS = {
    "int": ("x", "1.0", " 1 ", "99999999999", "+7"),
    "bigint": ("x", "1.5", "1e3", "99999999999999999999"),
    "decimal(12,3)": ("x", "1.0055", "12345678901", "-.5"),
    "decimal(38,0)": ("x", "0.5", "9" * 39),
    "double": ("x", "1e400", "nan", " 2.5"),
    "float": ("x", "1e400", "0.1"),
    "string": ("NA", " ", "true"),
    "date": ("x", "2024-1-2", "2024", "2024-02-30"),
    "timestamp": ("x", "2024-01-05T10:11Z", "2024-01-05"),
    "boolean": ("maybe", "T", "1", "f"),
}
"""Strings by the declared type, of which some are no values of it."""
_PARTITION = "dd"
INTERPRETED = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.shuffle.partitions": "1",
}
"""To compile a query on few rows takes longer than to interpret it."""


@dataclass
class Comparison:
    """Counts the assertions of both engines; `others` have another value on Sail."""

    claims: int = 0
    judged: int = 0
    by_kind: Counter[str] = field(default_factory=Counter)
    others: list[str] = field(default_factory=list)

    def add(self, seed: int, spark: Sequence[Any], sail: Sequence[Any]) -> None:
        """Compares the verdicts of one suite."""
        kind = KINDS[seed % len(KINDS)]
        for (claim, due_status, due), (_, status, found) in zip(spark, sail, strict=True):
            self.claims += 1
            if status == Status.ERROR.value:
                continue
            self.judged += 1
            self.by_kind[kind] += 1
            if status != due_status or not is_near(found, due):
                self.others.append(f"seed {seed}, {kind}: {claim}: {found!r}, not {due!r}")

    def __str__(self) -> str:
        kinds = ", ".join(f"{kind} {self.by_kind[kind]:,}" for kind in KINDS)
        return (
            f"{self.claims:,} assertions, {self.judged:,} evaluated on Sail ({kinds}), "
            f"{len(self.others)} with another value than on Spark"
        )


def is_near(found: Any, due: Any) -> bool:
    """Equal; Sail may add floating-point numbers in another order."""
    if isinstance(found, float) and isinstance(due, float):
        return math.isclose(found, due, rel_tol=1e-9)
    return bool(found == due)


def compare(seeds: range, claims: int, folder: Path) -> Comparison:
    """The verdicts of both engines for a suite of each seed.

    :param claims: the number of assertions of a suite.
    :param folder: where the verdicts of each engine are kept, a line for each suite.
    """
    found = {}
    for engine in ENGINES:
        file = folder / f"{engine}.jsonl"
        words = [engine, str(file), *map(str, (seeds.start, seeds.stop, seeds.step)), str(claims)]
        module = [sys.executable, "-m", "tests.engine.sail_beside_spark", "--run", *words]
        subprocess.run(module, check=True, env=environment(PYTHONPATH="."))
        found[engine] = [json.loads(line) for line in file.read_text().splitlines()]
    comparison = Comparison()
    for seed, spark, sail in zip(seeds, found["spark"], found["sail"], strict=True):
        comparison.add(seed, spark, sail)
    return comparison


def _run(engine: str, file: Path, seeds: range, claims: int) -> None:
    """Writes the verdicts of one engine, a line for each seed."""
    settings = INTERPRETED if engine == "spark" else {}
    session = open_session(connection_of(ENGINES[engine]), "beside", settings)
    with file.open("w", encoding="utf-8") as lines:
        for seed in seeds:
            with tempfile.TemporaryDirectory() as folder:
                verdicts = _verdicts(session, seed, claims, Path(folder))
            lines.write(json.dumps(verdicts) + "\n")
            lines.flush()
    session.stop()


def _verdicts(session: Any, seed: int, number: int, folder: Path) -> list[tuple[str, str, Any]]:
    """The claims of a seed, each with its status and its value."""
    random = Random(seed)
    kind = KINDS[seed % len(KINDS)]
    tables = {name: random_table(random) for name in ("t", "o")}
    refs = tuple(_stored(table, folder / name, kind, random) for name, table in tables.items())
    claims = random_claims(random, number)
    plan = plan_of_claims(claims, refs)
    now = datetime.combine(plan.date, time(12), timezone.utc)
    verdicts = evaluate(plan, measure(session, refs, plan)[1], now=now)
    by_name = {verdict.name: verdict for verdict in verdicts}
    named = [(claim, by_name[str(position)]) for position, claim in enumerate(claims)]
    return [(claim, verdict.status.value, _plain(verdict.value)) for claim, verdict in named]


def _plain(value: Any) -> Any:
    return value if value is None or isinstance(value, (bool, int, float)) else str(value)


def _stored(table: Table, place: Path, kind: str, random: Random) -> DatasetRef:
    import pyarrow.parquet as pq
    from deltalake import write_deltalake

    rows = arrow_of(table)
    format = "parquet" if kind in ("parquet", "folders") else "delta"
    by = [_PARTITION] if kind == "partitioned delta" else None
    if kind in ("csv", "json"):
        return _stored_as_text(table, place, kind, random)
    if kind == "folders" and rows[_PARTITION].null_count < len(rows):
        pq.write_to_dataset(rows, place, partition_cols=[_PARTITION])
    elif format == "parquet":
        place.mkdir()
        pq.write_table(rows, place / "a.parquet")
    else:
        write_deltalake(str(place), rows, partition_by=by)
    return DatasetRef(place.name, str(place), format=format)


def _stored_as_text(table: Table, place: Path, kind: str, random: Random) -> DatasetRef:
    """A file of CSV or JSON, in which a few values are malformed, and a line is too short."""
    place.mkdir()
    types = {field.name: field.type for field in table.fields}
    rows = [
        [_text(value, type_, random) for value, type_ in zip(row, types.values(), strict=True)]
        for row in table.rows
    ]
    schema = ", ".join(f"{name} {type_}" for name, type_ in types.items())
    options: tuple[tuple[str, str], ...] = ()
    if kind == "json":
        lines = [json.dumps(_object(types, row, random), ensure_ascii=False) for row in rows]
        lines += ['{"i": 1, "b"'] * random.randint(0, 1)
    else:
        separator, null = random.choice((",", ";", "|")), random.choice(("", "NA"))
        options = (("sep", separator), ("nullValue", null)) if null else (("sep", separator),)
        lines = [separator.join(types)]
        lines += [separator.join(null if text is None else text for text in row) for row in rows]
        lines += [separator.join("1" * 3)] * random.randint(0, 1)
    (place / f"a.{kind}").write_text("\n".join([*lines, ""]), encoding="utf-8")
    return DatasetRef(place.name, str(place), format=kind, schema=schema, options=options)


def _text(value: Any, type_: str, random: Random) -> str | None:
    if random.random() < 0.04:
        return random.choice(_ODD_TEXTS[type_])
    if isinstance(value, datetime):
        return value.replace(tzinfo=None).isoformat(" ")
    return None if value is None else str(value)


def _object(types: dict[str, str], row: Sequence[str | None], random: Random) -> dict[str, Any]:
    """An object whose numbers and booleans are strings at random."""
    found: dict[str, Any] = {}
    for (name, type_), text in zip(types.items(), row, strict=True):
        is_bare = type_ in ("int", "bigint", "double") and random.random() < 0.7
        if text is None and random.random() < 0.5:
            continue
        found[name] = json.loads(text) if is_bare and _is_number(text) else text
    return found


def _is_number(text: str | None) -> bool:
    return text is not None and re.fullmatch(r"-?(0|[1-9]\d*)(\.\d+)?", text) is not None


def main() -> None:
    """Compares as many assertions as are asked for, and prints the counts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--suites", type=int, default=50)
    parser.add_argument("--assertions", type=int, default=100, help="of each suite")
    parser.add_argument("--kind", choices=KINDS, help="of files; all in turn by default")
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--run", nargs=6, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.run is not None:
        engine, file, *numbers = given.run
        first, end, step, claims = map(int, numbers)
        _run(engine, Path(file), range(first, end, step), claims)
        return
    first, step = given.first_seed, 1
    if given.kind is not None:
        first, step = first * len(KINDS) + KINDS.index(given.kind), len(KINDS)
    seeds = range(first, first + given.suites * step, step)
    with tempfile.TemporaryDirectory() as folder:
        comparison = compare(seeds, given.assertions, Path(folder))
    print(comparison)
    print("\n".join(comparison.others))


if __name__ == "__main__":
    main()
