"""Merges many small files into few sorted ones: a little while gates write, and completely in `dql
results optimize`.

Every gate appends a file to each table. The cost of opening and reading is the number of files.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa
from deltalake import DeltaTable

from dqx_airflow.results.files import (
    LiveFile,
    is_partitioned,
    live_files,
    read_files,
    replace_files,
    require_plain,
)
from dqx_airflow.results.schema import TableDefinition
from dqx_airflow.results.tables import ResultsRoot

_log = logging.getLogger("dqx.gate")


@dataclass(frozen=True, slots=True)
class Portion:
    """How much is merged at once, which limits the time and memory of a merge.

    Files with less than half of the rows and the bytes count as small. They are merged if there are
    at least `fewest_files` of them in a month.
    """

    rows: int
    size: int
    files: int
    fewest_files: int

    def is_small(self, file: LiveFile) -> bool:
        """Whether a file has less than half of the rows and of the bytes."""
        return 2 * file.rows < self.rows and 2 * file.size < self.size


OF_A_GATE = Portion(rows=20_000, size=8_000_000, files=128, fewest_files=32)
OF_UPKEEP = Portion(rows=50_000, size=32_000_000, files=5_000, fewest_files=2)

_MOST_FILES_LOOKED_AT = 2_000


def compact_a_little(location: ResultsRoot, definition: TableDefinition, table: DeltaTable) -> None:
    """Merges small files of one month if there are many, in well below a second.

    :param table: its state after a gate has appended to it.
    :raises CommitFailedError: another process rewrote files of the table concurrently.
    """
    if len(table.file_uris()) > _MOST_FILES_LOOKED_AT:
        _log.info("%s: many small files; run `dql results optimize`", definition.name)
        return
    require_plain(table)
    by_month = is_partitioned(table)
    if files := next_portion(live_files(definition, table), OF_A_GATE, by_month=by_month):
        merge(location, definition, table, files)
    table.cleanup_metadata()


def next_portion(files: Iterable[LiveFile], most: Portion, *, by_month: bool) -> list[LiveFile]:
    """The files to merge next, oldest first; empty if there are few small ones.

    :param by_month: the table is partitioned, so that rows without a month have to get one.
    """
    small: dict[str | None, list[LiveFile]] = defaultdict(list)
    for file in files:
        if most.is_small(file) or (by_month and file.month is None):
            small[file.month].append(file)
    for month, of_month in sorted(small.items(), key=lambda item: -len(item[1])):
        is_astray = by_month and month is None
        if len(of_month) >= most.fewest_files or (is_astray and of_month):
            return _first(of_month, most)
    return []


def merge(
    location: ResultsRoot, definition: TableDefinition, table: DeltaTable, files: list[LiveFile]
) -> None:
    """Replaces some files by one sorted file for each month.

    :raises CommitFailedError: another process rewrote files of the table concurrently.
    """
    rows = read_files(location, table, files)
    kept = _newest(rows, definition)
    dropped = len(kept) < len(rows) and not _is_append_only(table)
    replace_files(location, definition, table, files, kept if dropped else rows, deletes=dropped)


def _first(files: list[LiveFile], most: Portion) -> list[LiveFile]:
    taken: list[LiveFile] = []
    rows = size = 0
    for file in sorted(files, key=lambda file: (file.oldest is not None, file.oldest, file.path)):
        rows, size = rows + file.rows, size + file.size
        if taken and (rows > most.rows or size > most.size or len(taken) == most.files):
            break
        taken.append(file)
    return taken


def _newest(rows: pa.Table, definition: TableDefinition) -> pa.Table:
    """The rows without those that a newer one among them replaces."""
    if not definition.newest_of:
        return rows
    places = rows.select([*definition.newest_of, definition.clock])
    places = places.append_column("place", pa.array(range(len(rows)), pa.int64()))
    ordered = places.sort_by([(definition.clock, "ascending"), ("place", "ascending")])
    newest = ordered.group_by([*definition.newest_of], use_threads=False).aggregate(
        [("place", "last")]
    )
    return rows.take(newest["place_last"])


def _is_append_only(table: DeltaTable) -> bool:
    return bool(table.metadata().configuration.get("delta.appendOnly") == "true")
