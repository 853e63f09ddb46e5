"""The tables for which `dql init` drafts gates: of folders, catalogs and lineage events."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from dqx_airflow.cli import command
from dqx_airflow.datasets.dqx_toml import Settings
from dqx_airflow.datasets.locations import is_inside
from dqx_airflow.errors import DatasetError, RequestError
from dqx_airflow.lineage.coverage import Flow
from dqx_airflow.tuning.column_tables import ColumnTable, format_of
from dqx_airflow.tuning.lake import iceberg_tables
from dqx_airflow.tuning.lake.found_tables import (
    FoundTable,
    is_folder_of_tables,
    table_of_catalog,
    tables_in,
)
from dqx_airflow.tuning.lake.reading import read_table_files
from dqx_airflow.values import DatasetRef

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

T = TypeVar("T")

_SPARK = "table:"
_LIST = "@"
_COMMENT = re.compile(r"(?:^|\s)#")
"""The beginning of a comment in a list; within a name, `#` is a character as any other."""

_OF_ONE_TABLE = re.compile(r"(?:[^\W\d]\w*=)?(?P<path>[^?]*)(?:\?\w+=.*)?")
"""A location as it may be written for one table: with a name, or with settings."""


def is_of_many(locations: Sequence[str]) -> bool:
    """True if locations are of many tables: several, a list in a file, a folder or a catalog."""
    if len(locations) != 1:
        return bool(locations)
    (location,) = locations
    if location.startswith((_LIST, iceberg_tables.SCHEME)):
        return True
    if location.startswith(_SPARK):
        return "*" in location or "?" in location
    return is_folder_of_tables(location)


@dataclass(slots=True)
class LakeSources:
    """Where the tables are, and how they are read.

    :param locations: as they are given: folders, files, `table:` and `iceberg:` with patterns, and
        `@FILE` with a location in each line.
    :param flow: the flow in lineage events, whose tables are found too if there are no locations.
    :param connection: the Spark with the tables of a catalog; by default the one of the settings.
    """

    locations: Sequence[str]
    flow: Flow | None
    settings: Settings
    connection: str | None = None
    _opened: ExitStack = field(default_factory=ExitStack)
    _spark: SparkSession | None = None
    _iceberg: iceberg_tables.IcebergTables = field(default_factory=iceberg_tables.IcebergTables)

    @property
    def title(self) -> str:
        """The locations in a comment."""
        return " ".join(" ".join(self.locations or ["lineage events"]).split())

    def tables(self) -> list[FoundTable]:
        """The tables at all locations, still without names; one with a problem for a location
        without a table, if there are others.

        :raises RequestError: a location has a mistake.
        :raises DatasetError: a folder or a catalog cannot be read.
        """
        found: list[FoundTable] = []
        empty: list[FoundTable] = []
        for location in self._listed():
            own = self._tables_at(location)
            found += own
            if not own:
                problem = "there is no table in it"
                empty.append(FoundTable("", location, location, "", group="", problem=problem))
        if self.flow is not None and not self.locations:
            found += [_of_flow(place) for place in self.flow.places()]
        return [*found, *empty] if found else []

    def covers(self, ref: DatasetRef) -> bool:
        """True if a dataset would be found if it still existed."""
        for location in self._listed():
            if location.startswith((_SPARK, iceberg_tables.SCHEME)):
                schema = location.partition(":")[2].rpartition(".")[0]
                if ref.table and ref.table.rpartition(".")[0] == schema:
                    return True
            elif ref.path and is_inside(ref.path, location):
                return True
        return False

    def read(
        self, table: FoundTable, use: Callable[[ColumnTable], T], only: pa.Field | None = None
    ) -> T:
        """A result computed from the columns of a table.

        :param only: the one column that is used, with its type.
        :raises DatasetError: it cannot be read.
        """
        if not table.table:
            return read_table_files(table, use, only)
        if table.format == iceberg_tables.FORMAT:
            return self._iceberg.read(table, use, only)
        from dqx_airflow.cli.spark import columns_of

        return use(columns_of(self._session(), table.table))

    def close(self) -> None:
        """Ends what was started to read the tables."""
        self._opened.close()

    def _listed(self) -> Iterator[str]:
        """Yields the locations, also those in files.

        :raises RequestError: a file cannot be read.
        """
        for location in self.locations:
            if location.startswith(_LIST):
                yield from _lines_of(Path(location.removeprefix(_LIST)))
            else:
                yield location

    def _tables_at(self, location: str) -> list[FoundTable]:
        if location.startswith(iceberg_tables.SCHEME):
            return self._iceberg.matching(location.partition(":")[2])
        if not location.startswith(_SPARK):
            return _in_folder(location) if Path(location).is_dir() else [_single(location)]
        name = location.removeprefix(_SPARK)
        if not name.strip(" .`"):
            raise RequestError(
                f"{location} names no table", f"write {_SPARK}CATALOG.SCHEMA.*, or the full name"
            )
        if "*" not in name and "?" not in name:
            return [table_of_catalog(name, name.replace("`", "").split("."))]
        from dqx_airflow.cli.spark import tables_of_catalog

        return tables_of_catalog(self._session(), name)

    def _session(self) -> SparkSession:
        """The Spark session, which is started when the first table needs it."""
        if self._spark is None:
            session_over = command.of_spark("dqx_airflow.cli.spark").session_over
            reached = command.connection_in(self.settings, self.connection)
            opened = session_over(reached, self.settings.session, "dql init")
            self._spark = self._opened.enter_context(opened)
        return self._spark


def _lines_of(file: Path) -> list[str]:
    """The lines of a file without comments and empty lines.

    :raises RequestError: the file cannot be read.
    """
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise RequestError(
            f"cannot read {file}: {error}", "give @FILE, with a location in each line"
        ) from error
    stripped = (_COMMENT.split(line, maxsplit=1)[0].strip() for line in text.splitlines())
    return [line for line in stripped if line]


def _in_folder(location: str) -> list[FoundTable]:
    """The tables in a folder; the folder itself, if it is a table, by its name."""
    name = Path(location).absolute().name
    return [
        replace(table, place=name) if table.place == "." else table for table in tables_in(location)
    ]


def _single(location: str) -> FoundTable:
    """A single file, or a location that cannot be read here, as a table."""
    path = Path(location)
    try:
        file_format = format_of(location)
    except DatasetError as error:
        problem = _mistake_in(location) or error.problem
        return FoundTable("", location, location, "", group="", problem=problem)
    if not path.is_file():
        problem = "not on this machine: copy it, or read it with Spark and table:NAME"
        return FoundTable("", location, location, file_format, group="", problem=problem)
    status = path.stat()
    stamp = f"{status.st_size}-{status.st_mtime_ns}"
    place = path.name
    return FoundTable(
        "", place, str(path.absolute()), file_format, group="", size=status.st_size, stamp=stamp
    )


def _mistake_in(location: str) -> str:
    """The mistake in a location at which nothing is: a name or a setting, which only the location
    of a single table may have; empty without one."""
    match = _OF_ONE_TABLE.fullmatch(location)
    if match is None or match["path"] in ("", location):
        return ""
    return f"among several tables a location has no name and no settings: write {match['path']}"


def _of_flow(place: str) -> FoundTable:
    """A table that lineage events name, as far as it can be found here."""
    path = Path(place)
    if path.is_dir():
        found = _in_folder(place)
        if len(found) == 1:
            return found[0]
    elif path.is_file():
        return _single(place)
    if "/" in place:
        problem = "events name it, and nothing is there on this machine"
        return FoundTable("", place, place, "", group="", problem=problem)
    return table_of_catalog(place, place.split("."))


def flow_of(events: Sequence[str]) -> Flow | None:
    """The flow in lineage events; None without events.

    :raises RequestError: there are none at a path, or something there is not an event.
    """
    if not events:
        return None
    from dqx_airflow.cli.lineage.coverage import add_events

    flow = Flow()
    add_events(flow, events)
    return flow
