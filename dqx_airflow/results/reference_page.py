"""The reference of the tables of a results store as a Markdown page, written from their schemas."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
from arro3.core import Schema

from dqx_airflow.results.schema import (
    FAILING_ROWS,
    RESULTS,
    RUNS,
    SOURCES,
    STATES,
    TABLES,
)

_OPENING = """\
# The results tables

Below a results root there are five Delta tables. Gates append to them and never change a row.
They can be read with deltalake, Spark or DuckDB.

A run key is a gate, a date of its data, and a run of the scheduler. Each attempt of a task appends
its rows: the attempt with the last `started_at` counts, and `dql results` and the pages in Airflow
show that one alone. The row in `runs` is written last. What has no row there was not finished, and
is to be ignored.

Columns may be added in later versions; every column may be NULL. All tables are partitioned by the
column `month`. How to keep a store small and quick is at the end of this page."""

_OPERATING = """\
## Operating the store

Nothing has to be done for a store to stay readable. Two things keep it small: `dql results prune`
deletes old runs, and `dql results vacuum` frees the space. A third, `dql results optimize`, makes
reading quicker. Run them once a day from one place, such as the DAG in
`dags_examples/results_upkeep.py`:

```sh
dql results prune --older-than 400d
dql results optimize
dql results vacuum
```

All three take `--root` (or `DQX_RESULTS_ROOT`) and `--format json`. They may run while gates write
and people read. If one is interrupted, run it again: it continues where it stopped, and does
nothing where nothing is left to do. In Python they are the functions `prune`, `optimize` and
`vacuum` of `dqx_airflow.results.upkeep`.

### How the store is laid out

Each gate appends one file to each table, in the folder of the month in which it ran. After every
32nd append, the gate that wrote it merges the small files of that month into one, up to 20,000
rows and 128 files. This takes a fraction of a second. It cannot fail the gate: if another process
is quicker, or the merge fails, the files are left for the next gate. So a month has a few dozen
files at most, even if you never run `optimize`.

`optimize` merges what is left into files of up to 50,000 rows, sorted by gate and time, so that
the history of a gate is read from a few row groups. It also drops states that a newer one has
replaced, writes a checkpoint, and trims the log.

The tables have these Delta properties: a checkpoint every 50 commits, a log of one day, removed
files kept for 7 days, and statistics for the columns that readers search by. There is no time
travel beyond that.

### prune

`--older-than 400d` deletes the runs that finished more than 400 days ago, with their results and
failing rows, and states of that age. The row in `runs` goes first, so a run is either complete or
not there. Months that are old as a whole are deleted without reading them. The text of a suite or
a contract is deleted once no run is left that used it, 40 days after it was stored at the
earliest. The age counts from when the gate ran, not from the date of its data, so a backfill of
old data is kept.

### vacuum

`vacuum` deletes files that have been in no version of a table for 7 days, and files of gates that
were killed while they wrote. `--keep 14d` keeps them for longer, and `--dry-run` only counts them.
The shortest time is one day, because a query may still read the files.

### Sizes

5,000,000 results of 250,000 runs over 400 days take about 150 MB in some 110 files. On two
cores, each of these takes less than 0.7 s of processor time and 190 MB of memory, imports
included: `dql results list`, `dql results show latest`, the page of a gate, a page of ten gates,
90 days of one assertion, and the states of 31 dates. A write takes 0.08 s of processor time
(median; 0.27 s at most). `benchmarks/store_scale.py` measures it.

### Stores of older versions

Versions before the partitions left one file in each table for every run. Such a store can be read
and written as before. The first `optimize` merges its files and partitions it by month, in place.
Gates of the older version may go on writing: the next `optimize` moves their rows to the right
month.

### Other tools

Read the tables with any tool. Do not run `OPTIMIZE` of Spark or `optimize.compact` of deltalake on
them while gates run: deltalake 1.6 does not notice when two processes rewrite the same files, and
the rows are then there twice. Our own commits guard against each other. Tables that another tool
has given deletion vectors or column mapping are still read, but no longer merged or pruned.
"""

_TABLES: Mapping[str, str] = {
    RUNS: "One row for each attempt of a gate.",
    RESULTS: "One row for each assertion of each attempt.",
    FAILING_ROWS: "One row for each sampled row of a failed assertion.",
    SOURCES: (
        "One row for each text of a suite, a library or a contract that gates went by, however "
        "many runs did. A text of more than 256 Ki characters is not kept."
    ),
    STATES: (
        "One row for each aggregate of each date that was computed: what later runs reuse as long "
        "as the files are the same. Where files were only added, to a Delta table or a folder of "
        "Parquet files, the new ones alone are read for counts, sums and extremes, and what they "
        "hold is merged with the state, if that gives the very same value as reading all would. "
        "[What is believed](believed.md) says what a state depends on."
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
    "month": "the month in which the row was written, as in `2024-02`",
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
    tables = (_table(name, TABLES[name].schema, opening) for name, opening in _TABLES.items())
    return "\n\n".join([_OPENING, *tables, _OPERATING])


def _table(name: str, schema: Schema, opening: str) -> str:
    rows = (
        f"| `{one.name}` | `{one.type}` | {_meaning(name, one.name)} |" for one in pa.schema(schema)
    )
    listed = "\n".join(["| column | type | what it holds |", "|---|---|---|", *rows])
    return f"## {name}\n\n{opening}\n\n{listed}"


_KINDS = "`integer`, `decimal`, `fraction` (such as `1/3`), `number` (a float) or `text`"


def _meaning(table: str, column: str) -> str:
    if (table, column) in _MEANING_HERE:
        return _MEANING_HERE[table, column]
    for suffix, form in (("_text", "exactly, as text"), ("_kind", _KINDS)):
        if column.endswith(suffix) and column not in _MEANING:
            return f"`{column.removesuffix(suffix)}`: {form}"
    return _MEANING[column]
