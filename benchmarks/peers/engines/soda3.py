"""Soda 3: SodaCL on a view. Checks that its metrics lack are expressions in SQL."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from typing import Any

from simple_checks import Kind, SimpleCheck, day_by_day
from soda.scan import Scan
from workload import events

CHECKS = """
checks for events:
  - row_count > 1000: {name: rows}
  - missing_count(machine_id) = 0: {name: machine null}
  - missing_count(casino_id) = 0: {name: casino null}
  - missing_count(event_ts) = 0: {name: time null}
  - missing_percent(player_id) < 40: {name: player null rate}
  - missing_percent(tax_id_hashed) < 60: {name: tax null rate}
  - min(amount_wagered) >= 0: {name: wagered least}
  - max(amount_wagered) < 1000: {name: wagered most}
  - avg(amount_wagered) between 10 and 90: {name: wagered mean}
  - sum(amount_won) > 0: {name: won total}
  - deviation < 100:
      name: won deviation
      deviation expression: stddev(amount_won)
  - invalid_count(machine_id) = 0:
      name: machine format
      valid regex: ^M[0-9]{4}$
  - invalid_count(tax_id_hashed) = 0:
      name: tax format
      valid regex: ^[0-9a-f]{64}$
  - invalid_count(game_type) = 0:
      name: game
      valid values: [slots, poker, roulette]
  - invalid_count(amount_wagered) = 0:
      name: wagered range
      valid min: 0
      valid max: 1000
  - won_too_much = 0:
      name: won at most
      won_too_much expression: count(CASE WHEN amount_won > amount_wagered * 100 THEN 1 END)
  - machines = 5000:
      name: machines
      machines expression: count(DISTINCT machine_id)
  - is_new = 1:
      name: newest
      is_new expression: CASE WHEN max(event_ts) > '2024-01-01' THEN 1 ELSE 0 END
  - max(amount_won) < 1000: {name: won most}
  - duplicate_count(machine_id, event_ts) = 0: {name: key}
"""


_METRICS = {
    Kind.COMPLETE: "missing_count({column}) = 0",
    Kind.BETWEEN: "invalid_count({column}) = 0",
    Kind.LEAST: "min({column}) >= {least}",
    Kind.MOST: "max({column}) <= {most}",
    Kind.UNIQUE: "duplicate_count({columns}) = 0",
}


def judge(spark: Any, table: str) -> dict[str, bool]:
    return _verdicts(spark, events(spark, table), CHECKS)


@day_by_day
def verify(spark: Any, frame: Any, checks: Sequence[SimpleCheck]) -> dict[str, bool]:
    # JSON is YAML.
    return _verdicts(spark, frame, json.dumps({"checks for events": [_check(it) for it in checks]}))


def _check(it: SimpleCheck) -> dict[str, Any]:
    is_range = it.kind is Kind.BETWEEN
    valid = {"valid min": it.least, "valid max": it.most} if is_range else {}
    return {it.said_in(_METRICS): {"name": it.name, **valid}}


def _verdicts(spark: Any, frame: Any, checks: str) -> dict[str, bool]:
    logging.getLogger("soda").setLevel(logging.ERROR)
    frame.createOrReplaceTempView("events")
    scan = Scan()
    scan.disable_telemetry()
    scan.set_data_source_name("spark_df")
    scan.add_spark_session(spark)
    scan.add_sodacl_yaml_str(checks)
    scan.execute()
    return {
        check["name"]: check["outcome"] == "pass"
        for check in scan.get_scan_results()["checks"]
        if check["outcome"] is not None
    }
