"""Stored states: the results of aggregates over the files of a date, for later runs.

A state counts only for the fingerprint that it was stored with. The newest one of a scope, date and
aggregate is its state; older ones are obsolete.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from fractions import Fraction
from typing import Any, TypeAlias

from deltalake import DeltaTable

from dqx_airflow.results.query import StoredResults, equals
from dqx_airflow.results.schema import STATES, TABLES
from dqx_airflow.results.store import append, dated, open_or_create, tidy
from dqx_airflow.results.tables import ResultsRoot, committed, store_errors
from dqx_airflow.values import MetricValue
from dqx_airflow.values.exact import exact_text, parse_exact

Results: TypeAlias = Mapping[str, MetricValue]

_EXACT = "exact"


@dataclass(frozen=True, slots=True)
class State:
    """The results of aggregates, by their SQL, over the rows of a date.

    `results` is None if the date had no rows at all. `fingerprints` are per aggregate: those that
    look into other datasets also depend on the files of these.
    """

    date: date | None
    results: Results | None
    fingerprints: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class StateStore:
    """The states below a results root."""

    location: ResultsRoot

    def recall(self, scope: str, dates: Sequence[date | None]) -> tuple[State, ...]:
        """The newest states of a scope for some dates.

        :raises StoreError: the store exists and cannot be read.
        """
        results = StoredResults(self.location.root, self.location.storage_options)
        days = ", ".join(f"DATE '{on}'" for on in dates if on)
        conditions = [f'"dataset_date" IN ({days})'] if days else []
        conditions += ['"dataset_date" IS NULL'] if None in dates else []
        where = [equals("scope", scope), f"({' OR '.join(conditions)})"]
        columns = ("dataset_date", "aggregate", "result", "fingerprint")
        return tuple(_states(results.select(STATES, columns, where, 'ORDER BY "stored_at"')))

    def keep(self, scope: str, run_id: str, at: datetime, states: Iterable[State]) -> None:
        """Appends states.

        :raises StoreError: the store cannot be written.
        """
        rows = [
            {
                "run_id": run_id,
                "scope": scope,
                "dataset_date": state.date,
                "aggregate": aggregate,
                "result": None
                if state.results is None
                else result_as_json(state.results[aggregate]),
                "fingerprint": fingerprint,
                "stored_at": at,
            }
            for state in states
            for aggregate, fingerprint in state.fingerprints.items()
        ]
        if not rows:
            return
        definition = TABLES[STATES]
        with store_errors(self.location, "write"):
            added = dated(rows, definition)

            def commit() -> DeltaTable:
                table = open_or_create(self.location, definition)
                append(table, added)
                return table

            table = committed(commit)
        tidy(self.location, definition, table)


def result_as_json(result: MetricValue) -> str:
    """A result as JSON, in which an exact number that is not an integer is `{"exact": "0.1"}`."""
    return json.dumps(plain_result(result))


def result_from_json(text: str) -> MetricValue:
    """The result from the output of `result_as_json`."""
    return result_in(json.loads(text))


def plain_result(result: MetricValue) -> Any:
    """A result as a part of JSON."""
    return {_EXACT: exact_text(result)} if isinstance(result, Fraction) else result


def result_in(plain: Any) -> MetricValue:
    """The result from the output of `plain_result`."""
    value: MetricValue = parse_exact(plain[_EXACT]) if isinstance(plain, dict) else plain
    return value


def _states(rows: Iterable[Mapping[str, object]]) -> Iterable[State]:
    """One state for each date; of the rows of an aggregate the last one counts."""
    newest: dict[object, dict[str, Mapping[str, object]]] = {}
    for row in rows:
        newest.setdefault(row["dataset_date"], {})[str(row["aggregate"])] = row
    for on, by_aggregate in newest.items():
        present = {sql: row for sql, row in by_aggregate.items() if row["result"] is not None}
        absent = {sql: row for sql, row in by_aggregate.items() if row["result"] is None}
        for group in (present, absent):
            if group:
                results = {
                    sql: result_from_json(str(row["result"])) for sql, row in present.items()
                }
                yield State(
                    on if isinstance(on, date) else None,
                    results if group is present else None,
                    {sql: str(row["fingerprint"]) for sql, row in group.items()},
                )
