"""The reference of the tables of a results store as a Markdown page, generated from their
schemas."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from dqx_airflow.results.schema import (
    FAILING_ROWS,
    INCIDENT_NOTES,
    LABELS,
    PROOFS,
    PROPOSALS,
    RECEIPTS,
    RESULTS,
    RUNS,
    SOURCES,
    STATES,
    TABLES,
    WAIVERS,
)

_OPENING = """\
# The results tables

Every verdict is a row that you can query. A results root contains ten Delta tables,
which deltalake, Spark and DuckDB can read. Gates, users and tuners only append
rows.

A run key is a gate, a date of its data, and a run of the scheduler. Each attempt of a task appends
its rows: the attempt with the latest `started_at` counts, and `dql results` and the pages in
Airflow show only that one. The row in `runs` is written last. An attempt without a row there did
not finish: ignore it.

Later versions may add columns; every column may be NULL. All tables are partitioned by the column
`month`. The end of this page explains how to keep a store small and fast."""

_OPERATING = """\
## Operating the store

A store stays readable without maintenance. Two commands keep it small: `dql results prune` deletes
old runs, and `dql results vacuum` frees the space. A third, `dql results optimize`, speeds up
reading. Run them once a day from one place, such as the DAG in `dags_examples/results_upkeep.py`:

```sh
dql results prune --older-than 400d --yes
dql results optimize --yes
dql results vacuum --yes
```

All three take `--results-root` (or `DQX_RESULTS_ROOT`) and `--format json`. They may run while
gates write and people read. If one is interrupted, run it again: it continues where it stopped. In
Python they are the functions `prune`, `optimize` and `vacuum` of `dqx_airflow.results.upkeep`.

### How the store is laid out

Each gate appends one file to each table, in the folder of the month in which it ran. After every
32nd append, the gate that wrote it merges the small files of that month into one, up to 20,000
rows and 128 files. This takes a fraction of a second. It cannot fail the gate: if another process
is quicker, or the merge fails, the files are left for the next gate. So a month has a few dozen
files at most, even if you never run `optimize`.

`optimize` merges the other files into files of up to 50,000 rows, sorted by gate and time. So the
history of a gate is read from a few row groups. It also drops states that a newer one has
replaced, writes a checkpoint, and trims the log.

The tables have a checkpoint every 50 commits, a log of one day, and statistics for the columns
that readers search by. Removed files are kept for 7 days. There is no time travel beyond that.

### prune

`--older-than 400d` deletes the runs that finished more than 400 days ago, with their results and
failing rows, and states of that age. The row in `runs` goes first, so a run is either complete or
absent. Whole months are deleted without reading them. The source of a suite or a contract is
deleted once no remaining run uses it, and at least 40 days after it was stored. The age counts
from the time of the run, not from the date of its data, so a backfill of old data is kept.

### vacuum

`vacuum` deletes files that have been in no version of a table for 7 days, and files of gates that
were killed while they wrote. It also deletes the files of
[batches](deploy.md#many-gates-in-one-spark) in `_dqx_batches` that have not changed for 7 days. If
no gate has taken its report, these may contain failing rows, as the store does. `--keep 14d` keeps
all of them for longer, and `--dry-run` only counts them. The shortest time is one day, because a
query may still read the files.

### Sizes

5,000,000 results of 250,000 runs over 400 days take about 150 MB in about 110 files. On two
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
them while gates run. deltalake 1.6 does not notice when two processes rewrite the same files, and
duplicates their rows. Our own commits guard against each other. Tables that another tool
has given deletion vectors or column mapping are still read, but no longer merged or pruned.

`dql results export latest --format oors --output run.json` writes one run as a message of the Open
Observability Results Standard (OORS) of Bitol, 0.8.1. **That is a draft**, and the message
changes with it. Each assertion is a result of type `check`: `pass`, `fail`, `warn` (it failed and
cannot block), `skip` or `error` (it could not be evaluated). As far as they are known, it has its
value, a limit that is one number, and the numbers of rows and failing rows. `relatesTo` is the
clause of the contract, and `target.filter` the rows that it is about. The message has the
status of its worst result. No rows are exported.

`dql results export latest --format oors --url https://quality.example/oors` posts the message
instead. A token in `DQX_RESULTS_TOKEN` is sent as `Authorization: Bearer`. If the server is busy or
cannot be reached, it is tried three times; a message that arrives twice has the same `id`. Exit
code 2 if the server refuses it, 4 if it failed. No output names more of the address than its host.
"""

_TABLES: Mapping[str, str] = {
    RUNS: "One row for each attempt of a gate.",
    RESULTS: (
        "One row for each assertion of each attempt. A key of `measured` consists of the dataset, "
        "the metric, its arguments, the lag in days, and the columns of the groups. For groups, "
        "the values of all groups are stored."
    ),
    FAILING_ROWS: "One row for each sampled row of a failed assertion.",
    SOURCES: (
        "One row for each source of a suite, a library or a contract that gates used, however "
        "many runs did. Sources of more than 256 Ki characters are not kept."
    ),
    STATES: (
        "One row for each computed aggregate of each date, which later runs reuse as long as the "
        "files are unchanged. If files were only added to a Delta table or a folder of Parquet "
        "files, only the new ones are read for counts, sums and extremes. Their results are merged "
        "with the state if the value is exactly the same as from all files. "
        "[What a gate trusts](promises.md#what-a-gate-trusts) lists what a state depends on."
    ),
    LABELS: (
        "One row for each label: someone said whether there was a real issue. If there are several "
        "for the same gate, date and assertion, the last one counts. Labels are never pruned."
    ),
    PROPOSALS: (
        "One row for each event of a proposed change of a suite: `proposed`, `approved`, "
        "`rejected`, `applied`. Proposals are never pruned."
    ),
    INCIDENT_NOTES: (
        "One row for each note about an incident. The author handles it (`acknowledged`), ended it "
        "(`closed`), accepts the data that was checked (`accepted`), keeps it blocked, or wrote a "
        "comment. `released` and `discarded` are about rows of a quarantine. A gate writes `asked` "
        "while it waits, and `no report` for a run that ended without one. `text` is what happens "
        "at the end of its time, or the reason. Notes are never pruned."
    ),
    PROOFS: (
        "One row for each engine that `dql doctor --prove` tried. If there are several for "
        "the same engine, the last one counts. Proofs are never pruned."
    ),
    WAIVERS: (
        "One row for each waiver of an assertion, which may fail until a date, and another with "
        "the same `event_id` if someone ends it early. Waivers are never pruned."
    ),
    RECEIPTS: (
        "One row for each [receipt](promote-rows.md#receipts) of a promotion. Receipts are never "
        "pruned: they are needed as long as the files that they name are read."
    ),
}


def results_page() -> str:
    """The page, with tables in reading order."""
    tables = (_table(name, _TABLES[name]) for name in TABLES)
    return "\n\n".join([_OPENING, *tables, _OPERATING])


def _table(name: str, opening: str) -> str:
    table = TABLES[name]
    # pyarrow spells types in the usual way.
    types = pa.schema(table.schema).types
    listed = "\n".join(
        f"| `{column.name}` | `{type_}` | {column.meaning} |"
        for column, type_ in zip(table.columns, types, strict=True)
    )
    return f"## {name}\n\n{opening}\n\n| column | type | what it holds |\n|---|---|---|\n{listed}"
