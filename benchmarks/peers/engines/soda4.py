"""Soda 4: a contract on a view. Checks that it lacks are metrics in SQL."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from typing import Any

from simple_checks import Kind, SimpleCheck, day_by_day
from soda_core.common.yaml import ContractYamlSource
from soda_core.contracts.contract_verification import CheckOutcome, ContractVerificationSession
from soda_sparkdf import SparkDataFrameDataSource
from workload import events

CONTRACT = """
dataset: spark/events
columns:
  - name: machine_id
    checks:
      - missing: {name: machine null}
      - invalid: {name: machine format, valid_format: {name: a machine, regex: '^M[0-9]{4}$'}}
  - name: casino_id
    checks:
      - missing: {name: casino null}
  - name: event_ts
    checks:
      - missing: {name: time null}
  - name: player_id
    checks:
      - missing: {name: player null rate, threshold: {metric: percent, must_be_less_than: 40}}
  - name: tax_id_hashed
    checks:
      - missing: {name: tax null rate, threshold: {metric: percent, must_be_less_than: 60}}
      - invalid: {name: tax format, valid_format: {name: a hash, regex: '^[0-9a-f]{64}$'}}
  - name: game_type
    checks:
      - invalid: {name: game, valid_values: [slots, poker, roulette]}
  - name: amount_wagered
    checks:
      - aggregate:
          name: wagered least
          function: min
          threshold: {must_be_greater_than_or_equal: 0}
      - aggregate:
          name: wagered most
          qualifier: most
          function: max
          threshold: {must_be_less_than: 1000}
      - aggregate:
          name: wagered mean
          qualifier: mean
          function: avg
          threshold: {must_be_between: {greater_than_or_equal: 10, less_than_or_equal: 90}}
      - invalid: {name: wagered range, valid_min: 0, valid_max: 1000}
  - name: amount_won
    checks:
      - aggregate:
          name: won total
          function: sum
          threshold: {must_be_greater_than: 0}
      - aggregate:
          name: won most
          qualifier: most
          function: max
          threshold: {must_be_less_than: 1000}
checks:
  - row_count: {name: rows, threshold: {must_be_greater_than: 1000}}
  - metric:
      name: won deviation
      qualifier: deviation
      expression: stddev(amount_won)
      threshold: {must_be_less_than: 100}
  - failed_rows: {name: won at most, expression: amount_won > amount_wagered * 100}
  - metric:
      name: machines
      qualifier: machines
      expression: count(DISTINCT machine_id)
      threshold: {must_be: 5000}
  - metric:
      name: newest
      qualifier: newest
      expression: CASE WHEN max(event_ts) > '2024-01-01' THEN 1 ELSE 0 END
      threshold: {must_be: 1}
  - duplicate: {name: key, columns: [machine_id, event_ts]}
"""


def judge(spark: Any, table: str) -> dict[str, bool]:
    return _verdicts(spark, events(spark, table), CONTRACT)


@day_by_day
def verify(spark: Any, frame: Any, checks: Sequence[SimpleCheck]) -> dict[str, bool]:
    columns: dict[str, list[Any]] = {}
    keys = []
    for it in checks:
        said = {"name": it.name, "qualifier": it.name}
        if it.kind is Kind.UNIQUE:
            keys.append({"duplicate": {**said, "columns": list(it.columns)}})
        else:
            columns.setdefault(it.column, []).append(_check(it, said))
    listed = [{"name": column, "checks": own} for column, own in columns.items()]
    contract = {"dataset": "spark/events", "columns": listed}
    # JSON is YAML. The key columns is required, and checks must not be an empty list.
    return _verdicts(spark, frame, json.dumps(contract | ({"checks": keys} if keys else {})))


def _check(it: SimpleCheck, said: dict[str, Any]) -> dict[str, Any]:
    if it.kind is Kind.COMPLETE:
        return {"missing": said}
    if it.kind is Kind.BETWEEN:
        return {"invalid": {**said, "valid_min": it.least, "valid_max": it.most}}
    function, threshold = (
        ("min", {"must_be_greater_than_or_equal": it.least})
        if it.kind is Kind.LEAST
        else ("max", {"must_be_less_than_or_equal": it.most})
    )
    return {"aggregate": {**said, "function": function, "threshold": threshold}}


def _verdicts(spark: Any, frame: Any, contract: str) -> dict[str, bool]:
    logging.disable(logging.WARNING)
    frame.createOrReplaceTempView("events")
    found = ContractVerificationSession.execute(
        contract_yaml_sources=[ContractYamlSource.from_str(contract)],
        data_source_impls=[SparkDataFrameDataSource.from_existing_session(spark, "spark")],
    )
    return {
        one.check.name: one.outcome is CheckOutcome.PASSED
        for result in found.contract_verification_results
        for one in result.check_results
        if one.outcome in (CheckOutcome.PASSED, CheckOutcome.FAILED)
    }
