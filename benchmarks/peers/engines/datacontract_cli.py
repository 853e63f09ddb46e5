"""datacontract-cli: an ODCS contract on a view.

Rules of its library share one aggregate; what only SQL can say is a query each.
"""

from __future__ import annotations

import logging
from typing import Any

from datacontract.data_contract import DataContract
from workload import events

CONTRACT = """
apiVersion: v3.1.0
kind: DataContract
id: w20
version: 1.0.0
status: active
servers:
  - server: spark
    type: custom
    customProperties:
      - {property: customType, value: dataframe}
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


def judge(spark: Any, table: str) -> dict[str, bool]:
    logging.disable(logging.WARNING)
    events(spark, table).createOrReplaceTempView("events")
    run = DataContract(data_contract_str=CONTRACT, spark=spark).test()
    return {
        check.qualityId.replace("-", " "): check.result == "passed"
        for check in run.checks
        if check.qualityId
    }
