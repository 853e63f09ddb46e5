"""SQL on Sail, and on Spark: `python -m tests.engine.sql_beside_spark` tries `sql_on_sail.txt`.

Each engine runs in a process of its own, over tables with values at which engines differ, over one
row, over nothing but NULL, and over no rows. What Sail accepts must have the values of Spark. With
`--random 500`, it is random SQL of which Sail accepts 500 texts; `--seed 7` is another one.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

from pyspark.errors import PySparkException

from dqx_airflow.datasets.spark_address import connection_of
from dqx_airflow.engine.proof import sql_on_sail
from dqx_airflow.engine.proof.operations import SeenDataset
from dqx_airflow.engine.session.connection import open_session
from dqx_airflow.engine.session.spark_errors import spark_failures
from dqx_airflow.engine.sources.open import open_dataset
from dqx_airflow.plan.model import MetricRequest
from dqx_airflow.plan.schema_check import Schema
from dqx_airflow.values import DatasetRef
from tests.engine.random_sql import RandomSql
from tests.engine.sail_beside_spark import ENGINES, INTERPRETED
from tests.processes import environment

ACCEPTED = Path(__file__).with_name("sql_on_sail.txt")

TYPES = {
    "i": "int",
    "n": "int",
    "b": "bigint",
    "d": "decimal(12,2)",
    "e": "decimal(5,1)",
    "w": "decimal(38,0)",
    "x": "double",
    "y": "double",
    "f": "float",
    "s": "string",
    "g": "string",
    "dd": "date",
    "dt": "date",
    "ts": "timestamp",
    "tn": "timestamp_ntz",
    "ok": "boolean",
    "arr": "array<string>",
}

_AT_ONCE = 32
_ERROR = "error"
_TEXTS = (
    *("a", "b", "", " a", "a ", "Z\u00fcrich", "Z\u00dcRICH", "stra\u00dfe", "\u0130", "ab", "a%b"),
    *("a_b", "1", "1.5", "+1", " 1 ", "1e3", "2024-01-01", "x\ny", "\u00e9", "e\u0301", "A"),
    *("\U0001f600", "99999999999", "-", "0x1", "NaN", "true", "\t1", "1\n"),
)


def expressions() -> list[str]:
    """The aggregates and queries that Sail accepts."""
    return [line for line in ACCEPTED.read_text(encoding="utf-8").splitlines() if line]


def is_query(text: str) -> bool:
    return text.upper().startswith(("SELECT", "WITH"))


def random_expressions(number: int, seed: int) -> list[str]:
    """Random aggregates and queries that Sail accepts."""
    sql = RandomSql(seed)
    accepted: dict[str, None] = {}
    while len(accepted) < number:
        text = sql.text()
        if objection_to(text) is None:
            accepted[text] = None
    return [*accepted]


def objection_to(text: str) -> str | None:
    """Why Sail does not evaluate SQL over the table; None if it does."""
    seen = SeenDataset(Schema("t", TYPES), "parquet")
    request = MetricRequest("t", "query" if is_query(text) else "sql", (text,), date(2024, 3, 1))
    return sql_on_sail.objection_to_request("0.7.2", request, {"t": seen})


def others(texts: Sequence[str]) -> list[str]:
    """The expressions with another value on Sail than on Spark, or with a value on Sail where Spark
    has an error."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        given = Path(folder, "expressions.json")
        given.write_text(json.dumps(texts))
        for engine in ENGINES:
            file = Path(folder, f"{engine}.json")
            words = (sys.executable, "-m", "tests.engine.sql_beside_spark")
            run = [*words, "--engine", engine, "--given", str(given), "--file", str(file)]
            subprocess.run(run, check=True, env=environment(PYTHONPATH="."))
            found[engine] = json.loads(file.read_text())
    return [
        f"{name}: {due}, on Sail {found['sail'][name]}"
        for name, due in found["spark"].items()
        if not _is_same(found["sail"][name], due)
    ]


def _is_same(found: str, due: str) -> bool:
    """True for an error on Sail, which evaluates nothing, and for a value that is near Spark's."""
    if found in (due, _ERROR):
        return True
    with suppress(ValueError):
        return math.isclose(float(found), float(due), rel_tol=1e-9)
    return False


def _tables(random: Random) -> Iterator[tuple[str, Any]]:
    yield "some NULL", _table(random, 60, 0.15)
    yield "no NULL", _table(random, 40, 0)
    yield "one row", _table(random, 1, 0)
    yield "NULL", _table(random, 2, 1)
    yield "no rows", _table(random, 0, 0)


def _table(random: Random, size: int, nulls: float) -> Any:
    import pyarrow as pa

    def column(type_: Any, *values: Any) -> Any:
        drawn = [None if random.random() < nulls else random.choice(values) for _ in range(size)]
        return pa.array(drawn, type_)

    utc = timezone.utc
    late = (23, 59, 59, 999_999)
    return pa.table(
        {
            "i": column(pa.int32(), 0, 1, -1, 7, 25, 100, 2**31 - 1, -(2**31)),
            "n": column(pa.int32(), 0, 1, -1, 7, 25),
            "b": column(pa.int64(), 0, 1, -1, 2**53, 2**53 + 1, 2**62, -(2**63)),
            "d": column(
                pa.decimal128(12, 2),
                *map(Decimal, ("0", "0.10", "0.30", "1.01", "2.50", "-2.50", "9999999999.99")),
            ),
            "e": column(pa.decimal128(5, 1), *map(Decimal, ("0", "0.1", "1.5", "-2.5", "99.9"))),
            "w": column(pa.decimal128(38, 0), *map(Decimal, ("0", "12", "9" * 38, str(2**53 + 1)))),
            "x": column(
                pa.float64(), 0.0, -0.0, 0.1, 0.3, 1.005, 2.5, -2.5, 1e100, math.nan, math.inf
            ),
            "y": column(pa.float64(), 0.0, 0.5, 2.5, -1.25, 3.0),
            "f": column(pa.float32(), 0.0, 0.5, 2.5, 0.1, 16777216.0),
            "s": column(pa.string(), *_TEXTS),
            "g": column(pa.string(), "a", "b", "ab", "Z\u00fcrich"),
            "dd": column(
                pa.date32(),
                *(date(2024, 1, 1), date(2024, 2, 29), date(1969, 12, 31), date(2024, 12, 29)),
                *(date.min, date.max, date(1582, 10, 4)),
            ),
            "dt": column(pa.date32(), date(2024, 1, 1), date(2024, 2, 29), date(2024, 2, 28)),
            "ts": column(
                pa.timestamp("us", "UTC"),
                *(datetime(2024, 1, 1, tzinfo=utc), datetime(2024, 1, 1, *late, tzinfo=utc)),
                *(datetime(1969, 12, 31, *late, tzinfo=utc), datetime(9999, 12, 31, tzinfo=utc)),
                *(datetime(2024, 2, 29, 12, 30, tzinfo=utc), datetime(1582, 10, 4, 5, tzinfo=utc)),
            ),
            "tn": column(
                pa.timestamp("us"),
                *(datetime(2024, 1, 1), datetime(2024, 1, 1, *late), datetime(2024, 2, 29, 12)),
            ),
            "ok": column(pa.bool_(), True, False),
            "arr": column(pa.list_(pa.string()), [], ["a"], ["a", None], [None], ["a", "b"]),
        }
    )


def _run(engine: str, texts: Sequence[str], file: Path) -> None:
    """Writes the values of expressions over all tables, as an engine has them."""
    import pyarrow.parquet as pq

    settings = INTERPRETED if engine == "spark" else {}
    session = open_session(connection_of(ENGINES[engine]), "sql", settings)
    values: dict[str, str] = {}
    aggregates = [text for text in texts if not is_query(text)]
    for name, table in _tables(Random(5)):
        with tempfile.TemporaryDirectory() as folder:
            pq.write_table(table, Path(folder, "a.parquet"))
            rows = open_dataset(session, DatasetRef("t", folder, format="parquet")).read({None})
            rows.createOrReplaceTempView("t")
            for start in range(0, len(aggregates), _AT_ONCE):
                some = aggregates[start : start + _AT_ONCE]
                found = _values(rows, some)
                values |= {f"{name}: {text}": found[text] for text in some}
            for text in filter(is_query, texts):
                values[f"{name}: {text}"] = _value(session, text)
    file.write_text(json.dumps(values))
    session.stop()


def _values(rows: Any, texts: Sequence[str]) -> dict[str, str]:
    """The values of aggregates: together, or each half alone if one is an error."""
    try:
        named = [f"{text} AS c{number}" for number, text in enumerate(texts)]
        with spark_failures():
            row = rows.selectExpr(*named).collect()[0]
    except (PySparkException, ValueError, OverflowError):  # dates that Python does not have
        if len(texts) == 1:
            return {texts[0]: _ERROR}
        half = len(texts) // 2
        return _values(rows, texts[:half]) | _values(rows, texts[half:])
    return {text: str(value) for text, value in zip(texts, row, strict=True)}


def _value(session: Any, text: str) -> str:
    try:
        with spark_failures():
            return str(session.sql(text).collect()[0][0])
    except (PySparkException, ValueError, OverflowError):  # dates that Python does not have
        return _ERROR


def main() -> None:
    """Prints the expressions that differ; with an engine, writes the values that it has."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--random", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--engine", choices=ENGINES, help=argparse.SUPPRESS)
    parser.add_argument("--given", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--file", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.engine is not None:
        _run(given.engine, json.loads(given.given.read_text()), given.file)
        return
    texts = random_expressions(given.random, given.seed) if given.random else expressions()
    differing = others(texts)
    print("\n".join([*differing, f"{len(texts)} expressions, {len(differing)} others"]))


if __name__ == "__main__":
    main()
