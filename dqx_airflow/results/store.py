"""Writes reports. Append-only, each of them once, with any number of concurrent writers."""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

import pyarrow as pa
from arro3.core import Schema
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from deltalake.exceptions import DeltaError
from deltalake.fs import DeltaStorageHandler

from dqx_airflow.errors import StoreError
from dqx_airflow.results import report_rows, schema
from dqx_airflow.results.tables import (
    NO_LOG_CLEANUP,
    ResultsRoot,
    committed,
    locate,
    open_table,
    store_errors,
)
from dqx_airflow.values import GateReport, SourceFile

_TIDY_EVERY = 32
OF_GATES = tuple(name for name, table in schema.TABLES.items() if not table.is_of_people)
"""The names of the tables that gates write."""
OF_PEOPLE = tuple(name for name, table in schema.TABLES.items() if table.is_of_people)
"""The names of the tables that users write."""
_log = logging.getLogger("dqx.gate")


@dataclass(frozen=True, slots=True)
class ResultsStore:
    """The results under `root`: a local path (`~` and relative ones are resolved), or a URI.

    Nothing is accessed before the first call. The first `write` creates the tables.
    """

    root: str
    storage_options: Mapping[str, str] | None = field(
        default=None, repr=False
    )  # may contain secrets

    @property
    def location(self) -> ResultsRoot:
        """The resolved root.

        :raises StoreError: the root cannot be used.
        """
        return locate(self.root, self.storage_options)

    def write(self, report: GateReport, sources: Iterable[SourceFile] = ()) -> None:
        """Appends the report: the rows of its assertions, failing rows, and finally the row of the
        run.

        :param sources: the sources whose digests the report contains.
        :raises StoreError: the store cannot be written.
        """
        self.write_all([(report, sources)])

    def write_all(self, reports: Sequence[tuple[GateReport, Iterable[SourceFile]]]) -> None:
        """Appends reports, each with the sources whose digests it contains: one commit per table.

        If the process is killed in between, readers do not see the runs. Writing a `run_id` again
        appends only what is missing, so it is safe to repeat. No source is stored twice.

        :raises StoreError: the store cannot be written.
        """
        results: dict[str, list[schema.Row]] = {}
        failing: dict[str, list[schema.Row]] = {}
        source_files: dict[str, list[schema.Row]] = {}
        runs: dict[str, list[schema.Row]] = {}
        for report, sources in reports:
            results[report.run_id] = [
                *report_rows.results_rows(report),
                *report_rows.shadow_rows(report),
            ]
            failing[report.run_id] = [*report_rows.failing_rows(report)]
            source_files.update(
                {digest: [row] for digest, row in report_rows.source_rows(report, sources).items()}
            )
            runs[report.run_id] = [report_rows.run_row(report)]
        self.append_rows(
            {
                schema.RESULTS: results,
                schema.FAILING_ROWS: failing,
                schema.SOURCES: source_files,
                schema.RUNS: runs,
            }
        )

    def append_rows(self, tables: Mapping[str, Mapping[str, Sequence[schema.Row]]]) -> None:
        """Appends rows, by table and by a key whose rows are never appended twice.

        :raises StoreError: the store cannot be written.
        """
        location = self.location
        written = []
        with store_errors(location, "write"):
            for name, rows in tables.items():
                nonempty = {key: own for key, own in rows.items() if own}
                if nonempty:
                    written.append(append_once(location, name, nonempty))
        for appended in filter(None, written):
            tidy(location, *appended)

    def check_writable(self, names: Collection[str] = OF_GATES) -> None:
        """Returns if this process can read and write the store; leaves nothing behind.

        A local root that does not exist is accepted if it can be created.

        :param names: the tables to check.
        :raises StoreError: the store cannot be read or written.
        """
        location = self.location
        for name in names:
            open_table(location, name)
        with store_errors(location, "write"):
            if location.is_local:
                _probe_folders(location, names)
            else:
                probe_objects(location)


def probe_objects(location: ResultsRoot) -> None:
    """Writes and deletes one object below the root of an object store."""
    handler = DeltaStorageHandler(location.root, location.options)
    # Always the same name: if deletion is forbidden (appending does not need it), a single object
    # stays, not one for each gate. Two concurrent probes may delete each other's. deltalake's
    # stream only takes bytes, and pyarrow passes its own buffers through. Buffered output arrives
    # as bytes.
    with pa.BufferedOutputStream(handler.open_output_stream("_dqx_probe", {}), 64) as stream:
        stream.write(b"dqx")
    with suppress(Exception):
        handler.delete_file("_dqx_probe")


def _probe_folders(location: ResultsRoot, names: Collection[str]) -> None:
    root = Path(location.root)
    folders = [Path(location.table(name)) for name in names]
    folders += [folder / "_delta_log" for folder in folders]
    base = next((folder for folder in (root, *root.parents) if folder.exists()), root)
    if not base.is_dir():
        raise StoreError(
            f"the results root {location.root} cannot be created: {base} is a file",
            "give the path of a folder; the first gate that writes results creates it",
        )
    for folder in (base, *(folder for folder in folders if folder.is_dir())):
        # A permission proves little (read-only mounts, quotas), so a file is really written.
        with tempfile.TemporaryFile(dir=folder) as probe:
            probe.write(b"dqx")


def arrow_table(rows: Iterable[schema.Row], schema: Schema) -> pa.Table:
    """The rows to write: the Arrow of deltalake does not convert Python's dates."""
    return pa.Table.from_pylist([*rows], schema=pa.schema(schema))


def dated(rows: Iterable[schema.Row], definition: schema.TableDefinition) -> pa.Table:
    """The rows to write to a table, each with its month."""
    with_month = [{**row, schema.MONTH: f"{row[definition.clock]:%Y-%m}"} for row in rows]
    return arrow_table(with_month, definition.schema)


def append_once(
    location: ResultsRoot, name: str, rows: Mapping[str, Sequence[schema.Row]]
) -> tuple[schema.TableDefinition, DeltaTable] | None:
    """Appends, in one commit, the rows whose key does not exist yet; None if all of them exist.

    Delta records transaction identifiers (Delta protocol, "Transaction Identifiers") without
    checking them. So this function checks them, and appends to exactly the version that it checked.
    Delta then refuses the commit if another writer recorded one of them meanwhile, or added
    columns; both are checked again.
    """
    definition = schema.TABLES[name]

    def commit() -> tuple[schema.TableDefinition, DeltaTable] | None:
        table = open_or_create(location, definition)
        new = [key for key in rows if table.transaction_version(f"dqx:{key}") is None]
        if not new:
            return None
        added = dated(chain.from_iterable(rows[key] for key in new), definition)
        once = CommitProperties(app_transactions=[Transaction(f"dqx:{key}", 1) for key in new])
        append(table, added, once)
        return definition, table

    return committed(commit)


def tidy(location: ResultsRoot, definition: schema.TableDefinition, table: DeltaTable) -> None:
    """Merges small files after every 32nd version of a table, in less than a second.

    It never fails.

    :param table: its state after the append.
    """
    if table.version() % _TIDY_EVERY:
        return
    try:
        # Imported late: the other 31 gates do not need it.
        from dqx_airflow.results.compaction import compact_a_little

        compact_a_little(location, definition, table)
    except Exception as error:  # the rows are written, which is what counts
        _log.info("%s is left to the next gate to compact: %s", definition.name, error)


def append(table: DeltaTable, rows: pa.Table, properties: CommitProperties | None = None) -> None:
    """Appends rows from `dated`, adding columns that the table does not have yet.

    :raises CommitFailedError: a concurrent change of the table conflicts.
    """
    write_deltalake(
        table,
        rows,
        mode="append",
        schema_mode="merge",
        commit_properties=properties,
        post_commithook_properties=NO_LOG_CLEANUP,
    )


def open_or_create(location: ResultsRoot, definition: schema.TableDefinition) -> DeltaTable:
    """The table, created if it does not exist."""
    table = open_table(location, definition.name)
    if table is not None:
        return table
    try:
        return DeltaTable.create(
            location.table(definition.name),
            schema=definition.schema,
            mode="ignore",
            partition_by=[schema.MONTH],
            configuration=definition.properties,
            storage_options=location.options,
        )
    except DeltaError:
        # Another writer has just created it. If not, the error is raised here.
        table = open_table(location, definition.name)
        if table is None:
            raise
        return table
