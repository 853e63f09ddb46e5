"""The columns of the results store.

A table may have fewer columns than these (an older writer) or more (a newer one): what is
missing reads as absent, what is unknown is ignored. Every column is therefore nullable. The keys
come first, since Delta keeps statistics for the first 32 columns, and readers skip files by them.

They are said in the Arrow that deltalake brings: whoever reads a report, as the process of a task
does, need not load pyarrow, which is 40 MB.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from arro3.core import DataType, Field, Schema

_Column: TypeAlias = tuple[str, DataType]

RESULTS = "results"
FAILING_ROWS = "failing_rows"
RUNS = "runs"
SOURCES = "sources"

_TEXT = DataType.string()
_TEXTS = DataType.list(Field("item", _TEXT))
_WHOLE = DataType.int64()
_NUMBER = DataType.float64()
_DATE = DataType.date32()
_MOMENT = DataType.timestamp("us", tz="UTC")

_KEYS = [
    ("run_id", _TEXT),
    ("gate", _TEXT),
    ("dataset_date", _DATE),
    ("scheduler_run", _TEXT),
    ("attempt", _WHOLE),
    ("attempt_id", _TEXT),
    ("finished_at", _MOMENT),
    ("suite", _TEXT),
]


def _schema(columns: Iterable[_Column]) -> Schema:
    return Schema([Field(name, kind) for name, kind in columns])


def _value_fields(name: str) -> list[_Column]:
    # A double alone would lose the difference between 1 and 1.0, integers above 2**53, and dates.
    # So the double is there to be charted, and the text is the exact value, read by its kind.
    return [(name, _NUMBER), (f"{name}_text", _TEXT), (f"{name}_kind", _TEXT)]


RESULTS_SCHEMA = _schema(
    [
        *_KEYS,
        ("position", _WHOLE),
        ("name", _TEXT),
        ("check", _TEXT),
        ("status", _TEXT),
        ("severity", _TEXT),
        ("datasets", _TEXTS),
        ("expression", _TEXT),
        ("expected", _TEXT),
        *_value_fields("value"),
        ("multiplier", _NUMBER),
        *_value_fields("scaled_value"),
        *_value_fields("threshold"),
        ("reason", _TEXT),
        ("tags", _TEXTS),
        ("profiles", _TEXTS),
        ("metric", _TEXT),
        ("column", _TEXT),
        ("span_file", _TEXT),
        ("span_line", _WHOLE),
        ("span_column", _WHOLE),
        ("span_end_line", _WHOLE),
        ("span_end_column", _WHOLE),
        ("source_line", _TEXT),
        ("origin", _TEXT),
        ("note", _TEXT),
        ("contract_id", _TEXT),
        ("contract_version", _TEXT),
        ("clause", _TEXT),
        ("disabled_by", _TEXT),
    ]
)
"""One row for each assertion of each attempt. `position` is its place in the suite, from 0.

`value`, `scaled_value` and `threshold` take three columns each: the number as a double (null for
text and for no value), `_text` the exact value as text, `_kind` one of integer, number and text
(null where there is no value). `clause` is the path of what it enforces in the contract, if the
suite was compiled from one.
"""

FAILING_ROWS_SCHEMA = _schema(
    [
        *_KEYS,
        ("position", _WHOLE),
        ("number", _WHOLE),
        ("name", _TEXT),
        ("check", _TEXT),
        ("dataset", _TEXT),
        ("reason", _TEXT),
        ("row", _TEXT),
    ]
)
"""One row for each sampled row of a failed assertion. `position` and `name` are those of the
assertion in `results`, `number` counts its rows from 0, `row` is a JSON object."""

RUNS_SCHEMA = _schema(
    [
        *_KEYS,
        ("outcome", _TEXT),
        ("fail_on", _TEXT),
        ("started_at", _MOMENT),
        ("assertions", _WHOLE),
        ("passed", _WHOLE),
        ("failed", _WHOLE),
        ("skipped", _WHOLE),
        ("errors", _WHOLE),
        ("worst", _TEXT),
        ("worst_severity", _TEXT),
        ("datasets", _TEXT),
        ("failing_rows", _WHOLE),
        ("contract_id", _TEXT),
        ("contract_version", _TEXT),
        ("contract", _TEXT),
        ("sources", _TEXT),
    ]
)
"""One row for each attempt, written last. `datasets` is the JSON form of the snapshots, `worst`
the assertion that the headline names, `failing_rows` the number of its rows in that table,
`contract` the JSON form of the contract that was enforced, if one was, `sources` that of the
digests of all texts that the gate went by."""

SOURCES_SCHEMA = _schema(
    [
        ("run_id", _TEXT),
        ("digest", _TEXT),
        ("text", _TEXT),
        ("stored_at", _MOMENT),
    ]
)
"""One row for each text of a suite, a library or a contract, however many runs went by it: the run
that brought it, and its SHA-256 in hexadecimal digits."""

STATES = "states"

STATES_SCHEMA = _schema(
    [
        ("run_id", _TEXT),
        ("scope", _TEXT),
        ("dataset_date", _DATE),
        ("aggregate", _TEXT),
        ("result", _TEXT),
        ("fingerprint", _TEXT),
        ("stored_at", _MOMENT),
    ]
)
"""One row for each aggregate of each date that was computed. `scope` is the dataset and how it was
read, `result` the JSON form of the value, null where the date had no rows."""
