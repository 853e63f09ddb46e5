"""datacontract-cli: an ODCS contract on a view.

Rules of its library share one aggregate; each rule in SQL is a query of its own.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from typing import Any

from datacontract.data_contract import DataContract
from simple_checks import Kind, SimpleCheck, day_by_day
from workload import events

HEAD = """
apiVersion: v3.1.0
kind: DataContract
id: events
version: 1.0.0
status: active
servers:
  - server: spark
    type: custom
    customProperties:
      - {property: customType, value: dataframe}
"""
CONTRACT = (
    HEAD
    + """
schema:
  - name: events
    properties:
      - name: machine_id
        quality:
          - {id: machine-null, metric: nullValues, mustBe: 0}
          - id: machine-format
            metric: invalidValues
            arguments: {pattern: '^M[0-9]{4}$'}
            mustBe: 0
      - name: casino_id
        quality:
          - {id: casino-null, metric: nullValues, mustBe: 0}
      - name: event_ts
        quality:
          - {id: time-null, metric: nullValues, mustBe: 0}
      - name: player_id
        quality:
          - {id: player-null-rate, metric: nullValues, unit: percent, mustBeLessThan: 40}
      - name: tax_id_hashed
        quality:
          - {id: tax-null-rate, metric: nullValues, unit: percent, mustBeLessThan: 60}
          - id: tax-format
            metric: invalidValues
            arguments: {pattern: '^[0-9a-f]{64}$'}
            mustBe: 0
      - name: game_type
        quality:
          - id: game
            metric: invalidValues
            arguments: {validValues: [slots, poker, roulette]}
            mustBe: 0
    quality:
      - {id: rows, metric: rowCount, mustBeGreaterThan: 1000}
      - id: wagered-least
        type: sql
        query: SELECT min(amount_wagered) FROM events
        mustBeGreaterOrEqualTo: 0
      - id: wagered-most
        type: sql
        query: SELECT max(amount_wagered) FROM events
        mustBeLessThan: 1000
      - id: wagered-mean
        type: sql
        query: SELECT avg(amount_wagered) FROM events
        mustBeBetween: [10, 90]
      - id: won-total
        type: sql
        query: SELECT sum(amount_won) FROM events
        mustBeGreaterThan: 0
      - id: won-deviation
        type: sql
        query: SELECT stddev(amount_won) FROM events
        mustBeLessThan: 100
      - id: wagered-range
        type: sql
        query: SELECT count(*) FROM events WHERE NOT amount_wagered BETWEEN 0 AND 1000
        mustBe: 0
      - id: won-at-most
        type: sql
        query: SELECT count(*) FROM events WHERE amount_won > amount_wagered * 100
        mustBe: 0
      - id: machines
        type: sql
        query: SELECT count(DISTINCT machine_id) FROM events
        mustBe: 5000
      - id: newest
        type: sql
        query: SELECT CASE WHEN max(event_ts) > '2024-01-01' THEN 1 ELSE 0 END FROM events
        mustBe: 1
      - id: won-most
        type: sql
        query: SELECT max(amount_won) FROM events
        mustBeLessThan: 1000
      - id: key
        metric: duplicateValues
        arguments: {properties: [machine_id, event_ts]}
        mustBe: 0
"""
)


def judge(spark: Any, table: str) -> dict[str, bool]:
    return _named(_checks(spark, events(spark, table), CONTRACT))


# The library gives one verdict for all `duplicateValues` of a table, so keys are SQL too.
_VIOLATIONS = {
    Kind.BETWEEN: "SELECT count(*) FROM events WHERE NOT {column} BETWEEN {least} AND {most}",
    Kind.LEAST: "SELECT count(*) FROM events WHERE {column} < {least}",
    Kind.MOST: "SELECT count(*) FROM events WHERE {column} > {most}",
    Kind.UNIQUE: (
        "SELECT count(*) FROM (SELECT 1 FROM events GROUP BY {columns} HAVING count(*) > 1) AS key"
    ),
}
_OPTIONS = {Kind.LEAST: "minimum", Kind.MOST: "maximum"}


@day_by_day
def verify(spark: Any, frame: Any, checks: Sequence[SimpleCheck]) -> dict[str, bool]:
    """A column takes one minimum and one maximum; further ones are rules in SQL."""
    properties: dict[str, Any] = {
        it.column: {"name": it.column, "quality": []} for it in checks if it.kind is not Kind.UNIQUE
    }
    queries, names = [], {}
    for it in checks:
        rule = {"id": it.name.replace(" ", "-"), "mustBe": 0}
        option = _OPTIONS.get(it.kind)
        if it.kind is Kind.COMPLETE:
            properties[it.column]["quality"].append({**rule, "metric": "nullValues"})
        elif option and (it.column, f"field_{option}") not in names:
            bound = it.least if it.kind is Kind.LEAST else it.most
            properties[it.column]["logicalType"] = "number"
            properties[it.column].setdefault("logicalTypeOptions", {})[option] = bound
            names[it.column, f"field_{option}"] = it.name
        else:
            queries.append({**rule, "type": "sql", "query": it.said_in(_VIOLATIONS)})
    schema = {"name": "events", "properties": list(properties.values()), "quality": queries}
    # JSON is YAML.
    found = _checks(spark, frame, f"{HEAD}schema: {json.dumps([schema])}\n")
    of_options = {
        names[check.field, check.type]: check.result == "passed"
        for check in found
        if (check.field, check.type) in names
    }
    return _named(found) | of_options


def _checks(spark: Any, frame: Any, contract: str) -> Sequence[Any]:
    logging.disable(logging.WARNING)
    frame.createOrReplaceTempView("events")
    return DataContract(data_contract_str=contract, spark=spark).test().checks


def _named(checks: Sequence[Any]) -> dict[str, bool]:
    return {
        check.qualityId.replace("-", " "): check.result == "passed"
        for check in checks
        if check.qualityId
    }
