"""The reference of the tables of a results store as a Markdown page, written from their schemas."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
from arro3.core import Schema

from dqx_airflow.results.schema import (
    FAILING_ROWS,
    FAILING_ROWS_SCHEMA,
    RESULTS,
    RESULTS_SCHEMA,
    RUNS,
    RUNS_SCHEMA,
    SOURCES,
    SOURCES_SCHEMA,
    STATES,
    STATES_SCHEMA,
)

_OPENING = """\
# The results tables

Below a results root there are five Delta tables. Gates append to them and never change a row.
They can be read with deltalake, Spark or DuckDB.

A run key is a gate, a date of its data, and a run of the scheduler. Each attempt of a task appends
its rows: the attempt with the last `started_at` counts, and `dql results` and the pages in Airflow
show that one alone. The row in `runs` is written last. What has no row there was not finished, and
is to be ignored.

Columns may be added in later versions; every column may be NULL."""

_TABLES: Mapping[str, tuple[Schema, str]] = {
    RUNS: (RUNS_SCHEMA, "One row for each attempt of a gate."),
    RESULTS: (RESULTS_SCHEMA, "One row for each assertion of each attempt."),
    FAILING_ROWS: (FAILING_ROWS_SCHEMA, "One row for each sampled row of a failed assertion."),
    SOURCES: (
        SOURCES_SCHEMA,
        "One row for each text of a suite, a library or a contract that gates went by, however "
        "many runs did. A text of more than 256 Ki characters is not kept.",
    ),
    STATES: (
        STATES_SCHEMA,
        "One row for each aggregate of each date that was computed: what later runs reuse as long "
        "as the files are the same. Where files were only added, to a Delta table or a folder of "
        "Parquet files, the new ones alone are read for counts, sums and extremes, and what they "
        "hold is merged with the state, if that gives the very same value as reading all would. "
        "[What is believed](believed.md) says what a state depends on.",
    ),
}

_MEANING = {
    "run_id": "a UUID of this attempt, the same as in lineage",
    "gate": "the name of the gate, `dag_id.task_id` if it has no other",
    "dataset_date": "the date of the data",
    "scheduler_run": "the run id of Airflow, with the map index of a mapped task",
    "attempt": "the number of the try",
    "attempt_id": "the id that Airflow gives to this try",
    "finished_at": "when the gate came to its verdict",
    "started_at": "when the job began",
    "suite": "the file of the suite",
    "outcome": "`passed`, `warned`, `blocked` or `broken`",
    "fail_on": "the mildest severity that blocks",
    "assertions": "how many assertions there are",
    "passed": "how many of them passed",
    "failed": "how many failed",
    "skipped": "how many were skipped",
    "errors": "how many could not be evaluated",
    "worst": "the assertion that the headline names",
    "worst_severity": "its severity",
    "datasets": "JSON: each dataset with its place, version, rows, columns and metrics",
    "failing_rows": "how many rows of this run are in the table `failing_rows`",
    "contract_id": "the contract that was enforced",
    "contract_version": "its version",
    "contract": "JSON: the contract with its dialect, the version that the gate pins, and how many "
    "of its clauses were checked",
    "sources": "JSON: the files that the gate went by, each with the SHA-256 of its text",
    "digest": "the SHA-256 of the text, in hexadecimal digits",
    "text": "the text",
    "clause": "the path of the clause that the assertion enforces",
    "disabled_by": "the profile that disabled the assertion, if one did",
    "position": "the place of the assertion in the suite, from 0",
    "name": "the name of the assertion",
    "check": "the check that it stands in",
    "status": "`passed`, `failed`, `skipped` or `error` (could not be evaluated)",
    "severity": "`P0` (the worst) to `P3`",
    "expression": "what was measured",
    "expected": "the condition, as text",
    "value": "the value as a number, for charts",
    "multiplier": "the factor of the active profiles",
    "scaled_value": "the value times the multiplier: what was compared",
    "threshold": "the limit as a number",
    "reason": "why it did not pass; of a failing row, why it counts",
    "tags": "its tags",
    "profiles": "the profiles that were active",
    "metric": "the metric, where the assertion is about one",
    "column": "the column, where the assertion is about one",
    "span_file": "the file that the assertion, or the clause of the contract, stands in",
    "span_line": "the line where it begins, from 1",
    "span_column": "the column where it begins, from 1",
    "span_end_line": "the line where it ends",
    "span_end_column": "the column behind its last character",
    "source_line": "the text of its first line",
    "origin": "where the value comes from: `scan`, `stored state`, `stored state and new files` or "
    "`transaction log`",
    "note": "why there is no sample of failing rows where one was due",
    "number": "the place of the row in the sample, from 0",
    "dataset": "the dataset that the row is in",
    "row": "JSON: the key columns and those at fault, masked",
    "scope": "the dataset, how it was read, by which versions and in what session",
    "aggregate": "what was computed",
    "result": "JSON: its value; NULL where the date had no rows",
    "fingerprint": "the files that it was computed from, in their order, and what lookups saw",
    "stored_at": "when it was stored",
}

_MEANING_HERE = {
    (RESULTS, "datasets"): "the datasets that the assertion is about",
    (FAILING_ROWS, "reason"): "why the row counts against the assertion",
    (RESULTS, "reason"): "why it did not pass",
    (SOURCES, "run_id"): "the run that brought it",
    (STATES, "run_id"): "the run that computed it",
    (STATES, "dataset_date"): "the date that was aggregated",
}


def reference_page() -> str:
    """The page, tables in the order in which people read them."""
    tables = (_table(name, schema, opening) for name, (schema, opening) in _TABLES.items())
    return "\n\n".join([_OPENING, *tables]) + "\n"


def _table(name: str, schema: Schema, opening: str) -> str:
    rows = (
        f"| `{one.name}` | `{one.type}` | {_meaning(name, one.name)} |" for one in pa.schema(schema)
    )
    listed = "\n".join(["| column | type | what it holds |", "|---|---|---|", *rows])
    return f"## {name}\n\n{opening}\n\n{listed}"


def _meaning(table: str, column: str) -> str:
    if (table, column) in _MEANING_HERE:
        return _MEANING_HERE[table, column]
    for suffix, form in (("_text", "exactly, as text"), ("_kind", "`integer`, `number` or `text`")):
        if column.endswith(suffix) and column not in _MEANING:
            return f"`{column.removesuffix(suffix)}`: {form}"
    return _MEANING[column]
