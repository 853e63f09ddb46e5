"""W20: slot machine telemetry, and the twenty checks that every engine here is measured on.

Imports nothing but pyspark: it also runs in the environments of the other tools. `naive` is what a
careful engineer writes: one aggregate with everything flat, and one exact grouping for the key.
`tuned` is what an engineer writes after measuring.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, timedelta
from types import MappingProxyType
from typing import Any

DAY = date(2024, 3, 2)
CHECKS = MappingProxyType(
    {
        "rows": "num_rows() > 1000",
        "machine null": "null_count(machine_id) == 0",
        "casino null": "null_count(casino_id) == 0",
        "time null": "null_count(event_ts) == 0",
        "player null rate": "null_count(player_id) / num_rows() < 40%",
        "tax null rate": "null_count(tax_id_hashed) / num_rows() < 60%",
        "wagered least": "minimum(amount_wagered) >= 0",
        "wagered most": "maximum(amount_wagered) < 1000",
        "wagered mean": "average(amount_wagered) between 10 and 90",
        "won total": "sum(amount_won) > 0",
        "won deviation": "sqrt(variance(amount_won)) < 100",
        "machine format": 'each row: machine_id matches "^M[0-9]{4}$"',
        "tax format": 'each row: tax_id_hashed matches "^[0-9a-f]{64}$"',
        "game": 'each row: game_type in ["slots", "poker", "roulette"]',
        "wagered range": "each row: amount_wagered between 0 and 1000",
        "won at most": "each row: amount_won <= amount_wagered * 100",
        "machines": "unique_count(machine_id) == 5000",
        "newest": 'maximum(event_ts) > "2024-01-01"',
        "won most": "maximum(amount_won) < 1000",
        "key": "unique(machine_id, event_ts)",
    }
)
"""The checks by name, in our language."""

SUITE = "\n".join(
    [
        'suite "Telemetry" {',
        '    check "W20" on events {',
        *(f'        assert {text} name "{name}"' for name, text in CHECKS.items()),
        "    }",
        "}",
    ]
)

_EPOCH = date(1970, 1, 1)
_COLUMNS = MappingProxyType(
    {
        "machine_id": "concat('M', lpad(cast(id % 5000 AS string), 4, '0'))",
        "casino_id": "cast(id % 40 AS int)",
        "event_ts": "timestamp_seconds(86400 * day + id DIV 5000)",
        "amount_wagered": "cast(1 + rand(1) * 99 AS decimal(18,2))",
        "amount_won": "cast(rand(2) * 90 AS decimal(18,2))",
        "game_type": "elt(cast(id % 3 AS int) + 1, 'slots', 'poker', 'roulette')",
        "player_id": "if(rand(3) < 0.35, NULL, id % 100000)",
        "tax_id_hashed": "if(rand(4) < 0.5, NULL, sha2(cast(id AS string), 256))",
        "event_date": "date_from_unix_date(day)",
    }
)
"""The columns in terms of the number of the row within its day, and of the day since 1970."""

_FAULTS = MappingProxyType(
    {
        "machine_id": "WHEN 11 THEN NULL WHEN 12 THEN 'X0012' WHEN 18 THEN 'M0017'",
        "casino_id": "WHEN 21 THEN NULL",
        "amount_wagered": "WHEN 22 THEN -5.00 WHEN 23 THEN 1.00",
        "amount_won": "WHEN 23 THEN 5000.00",
        "game_type": "WHEN 24 THEN 'bingo'",
        "tax_id_hashed": "WHEN 25 THEN 'none'",
    }
)
"""What single rows of the faulty table have instead."""

CAUGHT = frozenset(
    {
        "machine null",
        "casino null",
        "wagered least",
        "machine format",
        "tax format",
        "game",
        "wagered range",
        "won at most",
        "machines",
        "won most",
        "key",
    }
)
"""The checks that fail on the faulty table. On the sound one all hold."""


def write_events(spark: Any, path: str, rows: int, *, days: int = 1, faulty: bool = False) -> None:
    """Writes this number of rows for each of the days up to DAY."""
    columns = dict(_COLUMNS)
    if faulty:
        for name, cases in _FAULTS.items():
            columns[name] = f"CASE id {cases} ELSE {columns[name]} END"
    first = (DAY - timedelta(days=days - 1) - _EPOCH).days
    spark.sql(
        f"""
        SELECT {", ".join(f"{expression} AS {name}" for name, expression in columns.items())}
        FROM (SELECT id % {rows} AS id, cast({first} + id DIV {rows} AS int) AS day
              FROM range({rows * days}))
        """
    ).write.partitionBy("event_date").mode("overwrite").parquet(path)


def events(spark: Any, path: str) -> Any:
    """The rows of DAY as a DataFrame."""
    return of_days(spark.read.parquet(path), [DAY])


def of_days(frame: Any, dates: Sequence[date]) -> Any:
    listed = ", ".join(f"DATE'{day}'" for day in dates)
    return frame.where(f"event_date IN ({listed})")


_KEY = ("machine_id", "event_ts")
_SHARED = MappingProxyType(
    {
        "rows": "count(1)",
        "machine null": "count_if(machine_id IS NULL)",
        "casino null": "count_if(casino_id IS NULL)",
        "time null": "count_if(event_ts IS NULL)",
        "player null rate": "count_if(player_id IS NULL) / count(1)",
        "tax null rate": "count_if(tax_id_hashed IS NULL) / count(1)",
        "wagered least": "min(amount_wagered)",
        "wagered most": "max(amount_wagered)",
        "wagered mean": "avg(amount_wagered)",
        "won total": "sum(amount_won)",
        "newest": "max(event_ts)",
        "won most": "max(amount_won)",
        "game": "count_if(NOT game_type IN ('slots', 'poker', 'roulette'))",
        "won at most": "count_if(NOT amount_won <= amount_wagered * 100)",
    }
)
_NAIVE = MappingProxyType(
    {
        **_SHARED,
        "won deviation": "stddev_samp(amount_won)",
        "machine format": "count_if(NOT machine_id RLIKE '^M[0-9]{4}$')",
        "tax format": "count_if(NOT tax_id_hashed RLIKE '^[0-9a-f]{64}$')",
        "wagered range": "count_if(NOT amount_wagered BETWEEN 0 AND 1000)",
        "machines": "count(DISTINCT machine_id)",
    }
)
TUNED = MappingProxyType(
    {
        **_SHARED,
        "won deviation": "stddev_samp(CAST(amount_won AS DOUBLE))",
        "machine format": "count_if(NOT machine_id RLIKE '^M[0123456789]{4}$')",
        "tax format": "count_if(NOT tax_id_hashed RLIKE '^[0123456789abcdef]{64}$')",
    }
)

_HOLDS: Mapping[str, Callable[[Any], bool]] = MappingProxyType(
    {
        "rows": lambda value: value > 1000,
        "player null rate": lambda value: value < 0.4,
        "tax null rate": lambda value: value < 0.6,
        "wagered least": lambda value: value >= 0,
        "wagered most": lambda value: value < 1000,
        "wagered mean": lambda value: 10 <= value <= 90,
        "won total": lambda value: value > 0,
        "won deviation": lambda value: value < 100,
        "machines": lambda value: value == 5000,
        "newest": lambda value: value > datetime(2024, 1, 1),
        "won most": lambda value: value < 1000,
    }
)
"""When a value is as it should be. All others count what should not be there."""


def naive(spark: Any, path: str) -> dict[str, bool]:
    frame = events(spark, path)
    values = values_of(frame, _NAIVE)
    values["key"] = copied_keys(frame, _KEY)
    return _verdicts(values)


def tuned(spark: Any, path: str) -> dict[str, bool]:
    """The plan after measuring: extremes answer the range, and the distinct machines get their own
    pass.
    """
    frame = events(spark, path)
    values = values_of(frame, TUNED)
    values["wagered range"] = not 0 <= values["wagered least"] <= values["wagered most"] <= 1000
    values |= values_of(frame, {"machines": "count(DISTINCT machine_id)"})
    values["key"] = copied_keys_by_hash(frame, _KEY)
    return _verdicts(values)


def values_of(frame: Any, aggregates: Mapping[str, str]) -> dict[str, Any]:
    columns = (f"{sql} AS `{check}`" for check, sql in aggregates.items())
    return dict(frame.selectExpr(*columns).collect()[0].asDict())


def copied_keys(frame: Any, key: Sequence[str]) -> int:
    """The number of keys that occur more than once."""
    return int(frame.groupBy(*key).count().where("count > 1").count())


def copied_keys_by_hash(frame: Any, key: Sequence[str]) -> int:
    """The number of keys that occur more than once, found by hashes: if no hash occurs twice, no
    key does, and hashes are cheap to count."""
    hashes = frame.selectExpr(f"xxhash64({', '.join(key)}) AS hash").repartition("hash")
    copies = hashes.selectExpr("count(1) OVER (PARTITION BY hash) AS copies")
    most = copies.selectExpr("max(copies)").collect()[0][0]
    return 0 if most == 1 else copied_keys(frame, key)


def _verdicts(values: Mapping[str, Any]) -> dict[str, bool]:
    return {
        check: bool(_HOLDS[check](values[check]) if check in _HOLDS else values[check] == 0)
        for check in CHECKS
    }
