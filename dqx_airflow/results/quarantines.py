"""Lists, shows and discards the rows of a quarantine, a Delta table of bad rows, without Spark.

The columns that the gate adds come before the columns of the dataset.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any

import pyarrow.compute as pc
from deltalake import CommitProperties, DeltaTable, Transaction
from deltalake.exceptions import DeltaError

from dqx_airflow.errors import RequestError, first_line
from dqx_airflow.plan.masks import is_masked
from dqx_airflow.values import MASK, RunKey

RUN_ID, RUN_KEY, DATE, REASONS = "dqx_run_id", "dqx_run_key", "dqx_date", "dqx_reasons"
ASSERTIONS = "dqx_assertions"
"""The assertions behind the reasons: suites may have assertions of the same name."""
SLICE = "dqx_slice"
"""The identity of the data that a row was read from, with the date or the run."""
LINE = "dqx_line"
"""The text of a CSV or JSON line that could not be parsed at all."""
RELEASE = "dqx_release"
"""The ids of the releases that selected a row for its return, the last one at the end."""
MASKED = "dqx.masked"
"""The table property with the columns, as JSON, whose values are masked elsewhere."""

DAY = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
_KEY = re.compile(rf"(.*?)/({DAY})/(.+)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class QuarantinedRows:
    """The quarantined rows of one gate, or of one instance of a mapped gate, and one date.

    `reasons` are the numbers of rows by assertion, `keys` the run keys of the runs."""

    gate: str
    date: date
    rows: int = 0
    reasons: Mapping[str, int] = field(default_factory=Counter)
    keys: tuple[RunKey, ...] = ()

    @property
    def facts(self) -> dict[str, Any]:
        """The entries that commands print as JSON."""
        return {
            "gate": self.gate,
            "date": self.date,
            "map_index": self.keys[0].map_index if self.keys else -1,
            "row_count": self.rows,
            "reasons": self.reasons,
        }


def quarantine_at(path: str, options: Mapping[str, str] | None) -> DeltaTable:
    """:raises RequestError: there is none."""
    try:
        table = DeltaTable(path, storage_options=dict(options or {}))
    except (DeltaError, OSError, ValueError) as error:
        raise RequestError(
            f"no quarantine at {path}: {first_line(error)}",
            f"a gate writes one table for each dataset: {path.rstrip('/')}/DATASET",
        ) from error
    if RUN_KEY not in {column.name for column in table.schema().fields}:
        raise RequestError(
            f"the table at {path} is not a quarantine", f"it has no column {RUN_KEY}"
        )
    return table


def quarantined(
    table: DeltaTable, gate: str | None = None, on: date | None = None, before: date | None = None
) -> list[QuarantinedRows]:
    """The rows in a quarantine, grouped by gate and date, oldest dates first.

    :param before: only rows of dates before this one.
    """
    found: dict[tuple[date, str], QuarantinedRows] = {}
    read = table.to_pyarrow_table(columns=[RUN_KEY, REASONS])
    counted = Counter(
        (key, tuple(reasons or ()))
        for key, reasons in zip(*(column.to_pylist() for column in read.columns), strict=True)
    )
    for (text, reasons), count in counted.items():
        if (match := _KEY.fullmatch(text or "")) is None:  # a row that no gate has written
            continue
        key = RunKey(match[1], date.fromisoformat(match[2]), match[3])
        is_wanted = gate in (None, key.gate, key.gate_instance) and on in (None, key.date)
        if is_wanted and (before is None or key.date < before):
            at = key.date, key.gate_instance
            known = found.get(at) or QuarantinedRows(key.gate_instance, key.date)
            of_reasons = Counter(known.reasons) + Counter(dict.fromkeys(reasons, count))
            keys = tuple(dict.fromkeys((*known.keys, key)))
            found[at] = QuarantinedRows(*at[::-1], known.rows + count, of_reasons, keys)
    return [found[at] for at in sorted(found)]


def shown_rows(
    table: DeltaTable, groups: Sequence[QuarantinedRows], masked: Sequence[str], most: int
) -> list[dict[str, Any]]:
    """At most `most` rows of these groups, with masked values hidden. The text of a line that could
    not be parsed is hidden if any column is masked."""
    hidden = (*masked, LINE) if masked else ()
    keys = [str(key) for group in groups for key in group.keys]
    chosen = table.to_pyarrow_dataset().scanner(filter=pc.field(RUN_KEY).isin(keys))
    return [
        {
            name: MASK if value is not None and is_masked(name, hidden) else value
            for name, value in row.items()
        }
        for row in chosen.head(most).to_pylist()
    ]


def masked_in(table: DeltaTable) -> list[str] | None:
    """The columns that are masked elsewhere; None if no gate has recorded them."""
    recorded = table.metadata().configuration.get(MASKED)
    return None if recorded is None else [str(column) for column in json.loads(recorded)]


def discard(table: DeltaTable, groups: Sequence[QuarantinedRows], author: str, reason: str) -> None:
    """Deletes rows in one commit that records the author and the reason. It conflicts with a
    concurrent run of the gate."""
    keys = [str(key).replace("'", "''") for group in groups for key in group.keys]
    gates = sorted({group.gate for group in groups})
    table.delete(
        " OR ".join(f"{RUN_KEY} = '{key}'" for key in keys),
        commit_properties=CommitProperties(
            custom_metadata={"dqx_discarded_by": author, "dqx_reason": reason},
            app_transactions=[next_change(table, gate) for gate in gates],
        ),
    )


def next_change(table: DeltaTable, gate: str) -> Transaction:
    """The transaction identifier for a commit that changes the quarantined rows of a gate or of an
    instance of a mapped gate: one of two concurrent commits fails."""
    name = f"dqx:quarantine:{gate}"
    return Transaction(name, (table.transaction_version(name) or 0) + 1)
