"""The tables in a folder: Delta tables, folders of Parquet, CSV or JSON files, and single files.

A folder is one table if its files have one format, and names that differ only in numbers:
`part-00000.parquet` and `part-00001.parquet`. Otherwise, each of its files is a table. Folders with
names such as `day=2026-11-28` belong to the table above them; other folders have tables of their
own.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType

from dqx_airflow.contracts.dialects.rule_names import slug
from dqx_airflow.datasets.locations import place_of
from dqx_airflow.datasets.name_patterns import is_match
from dqx_airflow.errors import DatasetError
from dqx_airflow.tuning.column_tables import ENDINGS
from dqx_airflow.values import DatasetRef

_FORMATS = {**ENDINGS, ".orc": "orc", ".avro": "avro"}
"""The formats of files by their endings, also of formats that a draft does not read."""

_NUMBERS = re.compile(r"[0-9a-f]{8,}|[0-9]+|[-_.]c[0-9]+", re.IGNORECASE)
"""The parts of the name of a file that differ between the files of a table: numbers, dates and ids
in hexadecimal digits."""

_LEVEL = re.compile(r"[^=]+=.*")
"""A folder of a partition, as Hive names it."""

_PERIOD = re.compile(r"[0-9][0-9_.-]*")
"""A folder of a period that does not name its column, such as `2026` or `2026-11-28`."""


@dataclass(frozen=True, slots=True)
class FoundTable:
    """A table in a folder of tables.

    :param name: the name of its dataset, unique among the tables of the folder.
    :param place: its path below the folder, with `/`: `sales/orders`. Patterns match this.
    :param path: its absolute path; empty for a table of a catalog.
    :param group: the folder that it is in, below the folder of tables; empty at the top.
    :param size: the bytes of its files. For a Delta table they include files of old versions.
    :param stamp: changes when a file is added, removed or written again; empty if that is unknown.
    :param masked: the columns that `dqx.toml` masks.
    :param options: the options of the reader in `dqx.toml`.
    :param table: its full name in a catalog, `catalog.schema.table`; empty for files.
    :param problem: why no suite can be drafted; empty if it may be possible.
    """

    name: str
    place: str
    path: str
    format: str
    group: str
    size: int = 0
    stamp: str = ""
    masked: tuple[str, ...] = ()
    options: tuple[tuple[str, str], ...] = ()
    problem: str = ""
    table: str = ""

    @property
    def location(self) -> str:
        """Its path as `place_of` compares it, or its name in a catalog."""
        return self.table or place_of(self.path)

    @property
    def names(self) -> tuple[str, str]:
        """Its place and its name, by which users choose it."""
        return self.place, self.name

    @property
    def ref(self) -> DatasetRef:
        """Its dataset, as far as it is known before it is read."""
        if self.table:
            return DatasetRef(self.name, table=self.table)
        return DatasetRef(self.name, path=self.path, format=self.format)


def location_of(ref: DatasetRef) -> str:
    """The location of a dataset, equal to that of a found table if they are the same."""
    return place_of(ref.path) if ref.path else ref.location


def table_of_catalog(table: str, parts: Sequence[str], format: str = "") -> FoundTable:
    """A table of a catalog, still without a name.

    :param table: its full name, quoted as in SQL where needed.
    :param parts: the parts of its name, of which the first is the catalog.
    """
    place = ".".join(parts)
    return FoundTable("", place, "", format, group="/".join(parts[1:-1]), table=table)


@dataclass(frozen=True, slots=True)
class _DataFile:
    """A file with data, or of a log: its path, size and time of modification."""

    path: Path
    size: int
    modified_ns: int


def is_folder_of_tables(location: str) -> bool:
    """True for a folder that is not itself a table, but contains some.

    :raises DatasetError: the folder cannot be read.
    """
    folder = Path(location)
    if "://" in location or not folder.is_dir():
        return False
    found = list(_tables_in(folder, folder))
    return bool(found) and [table.place for table in found] != ["."]


def tables_in(location: str) -> list[FoundTable]:
    """The tables in a folder, still without names.

    :raises DatasetError: the folder cannot be read.
    """
    folder = Path(location).absolute()
    return list(_tables_in(folder, folder))


def with_names(
    found: Iterable[FoundTable],
    known: Mapping[str, str] = MappingProxyType({}),
    taken: Collection[str] = (),
) -> list[FoundTable]:
    """The tables with their names, each once, ordered by their place.

    :param known: the names of tables by their location, which they keep.
    :param taken: names that no new table gets.
    """
    unique = {table.location: table for table in found}
    ordered = sorted(unique.values(), key=lambda table: (table.place, table.location))
    return _with_names(ordered, known, taken)


def chosen_tables(
    tables: Iterable[FoundTable], only: Collection[str] = (), exclude: Collection[str] = ()
) -> list[FoundTable]:
    """The tables that are wanted.

    :param only: patterns of places or names; a table must match one of them, if there are any.
    :param exclude: patterns of places or names that a table must not match.
    """
    return [
        table
        for table in tables
        if (not only or is_match(table.names, only)) and not is_match(table.names, exclude)
    ]


def _with_names(
    found: Sequence[FoundTable], known: Mapping[str, str], taken: Collection[str]
) -> list[FoundTable]:
    """The tables with unique names: the last part of their place, or as much of it as differs."""
    used = {*taken, *known.values()}
    places = [table.location for table in found]
    short = Counter(
        _name_of(table, 1) for table, place in zip(found, places, strict=True) if place not in known
    )
    named = []
    for table, place in zip(found, places, strict=True):
        name = known.get(place)
        if name is None:
            name = _new_name(table, used, is_unique=short[_name_of(table, 1)] == 1)
            used.add(name)
        named.append(replace(table, name=name))
    return named


def _new_name(table: FoundTable, used: Collection[str], *, is_unique: bool) -> str:
    """A name that is not used yet.

    :param is_unique: no other table has the same last part.
    """
    wanted = _name_of(table, 1)
    name = wanted
    parts = 1
    while name in used or (parts == 1 and not is_unique):
        parts += 1
        longer = _name_of(table, parts)
        name = f"{wanted}_{parts}" if longer in (name, wanted) else longer
    return name


def _name_of(table: FoundTable, parts: int) -> str:
    """The last parts of a place as the name of a dataset."""
    if table.table:
        own = table.place.split(".")[-parts:]
    else:
        place = Path(table.path).name if table.place == "." else table.place
        own = place.split("/")[-parts:]
        own[-1] = own[-1].partition(".")[0]
    name = slug("_".join(own)) or "data"
    return name if name[0].isalpha() else f"t_{name}"


def _tables_in(folder: Path, top: Path) -> Iterator[FoundTable]:
    """The tables in a folder and below, still without names."""
    special = _special_table(folder, top)
    if special is not None:
        yield special
        return
    files, folders = _entries(folder)
    files = [one for one in files if not (one.path.is_symlink() and _is_within(one.path, top))]
    levels = [one for one in folders if _LEVEL.fullmatch(one.name)]
    others = [one for one in folders if one not in levels]
    if levels or _is_one_table(folder, files):
        below = [file for level in levels for file in _files_below(level)]
        formats = {_format_of(file.path) for file in (*files, *below)}
        if formats:
            table = _table(folder, top, "+".join(sorted(formats)), [*files, *below])
            if len(formats) > 1:
                table = replace(table, problem=f"files of several formats: {table.format}")
            elif stray := _file_in(others):
                where = stray.path.parent.relative_to(folder).as_posix()
                problem = f"a gate refuses it: its folder {where} has files, and is not a partition"
                table = replace(table, problem=problem)
            yield table
    else:
        for file in files:
            yield _table(file.path, top, _format_of(file.path), [file])
    periods = [one for one in others if _PERIOD.fullmatch(one.name) and _files_below(one)]
    if periods:
        yield _of_periods(folder, top, periods)
    for one in others:
        if one not in periods:
            yield from _tables_below(one, top)
    for link in _links_to_folders(folder, top):
        problem = f"a link to a folder: draft it with --dataset {link.resolve()}"
        yield replace(_table(link, top, "", []), problem=problem)


def _file_in(folders: Sequence[Path]) -> _DataFile | None:
    """The first data file in folders, at any depth; None without one, or if none can be read."""
    for folder in folders:
        try:
            files = _files_below(folder)
        except DatasetError:
            continue  # which is a row of the report
        if files:
            return files[0]
    return None


def _tables_below(folder: Path, top: Path) -> list[FoundTable]:
    """The tables in a folder below the top; one with a problem if the folder cannot be read."""
    try:
        return list(_tables_in(folder, top))
    except DatasetError as error:
        return [replace(_table(folder, top, "", []), problem=error.problem)]


def _links_to_folders(folder: Path, top: Path) -> list[Path]:
    """The links in a folder to folders elsewhere, which are not followed: they may have cycles."""
    with os.scandir(folder) as entries:
        links = [Path(entry.path) for entry in entries if entry.is_symlink() and entry.is_dir()]
    return sorted(link for link in links if link.name[0] not in "._" and not _is_within(link, top))


def _is_within(link: Path, top: Path) -> bool:
    """True for a link to something in the folder of tables, which is found without the link."""
    return link.resolve().is_relative_to(top.resolve())


def _special_table(folder: Path, top: Path) -> FoundTable | None:
    """The Delta or Iceberg table that a folder is; None if it is neither."""
    if os.path.isdir(folder / "_delta_log"):  # is_dir() raises without permission
        log = [_data_file(path) for path in sorted((folder / "_delta_log").glob("*.json"))]
        data = [file for file in _files_below(folder) if _format_of(file.path) == "parquet"]
        return replace(_table(folder, top, "delta", log), size=sum(file.size for file in data))
    metadata = folder / "metadata"
    if os.path.isdir(metadata) and any(metadata.glob("*.metadata.json")):
        problem = "an Iceberg table: read its catalog with --dataset iceberg:CATALOG.NAMESPACE.*"
        return replace(_table(folder, top, "iceberg", []), problem=problem)
    return None


def _of_periods(folder: Path, top: Path, periods: Sequence[Path]) -> FoundTable:
    """The files in folders such as `2026/11/28`, which no reader takes for partitions."""
    files = [file for period in periods for file in _files_below(period)]
    problem = (
        f"folders such as {periods[0].name} do not name their column: "
        "name them like day=2026-11-28, or read the table with recursiveFileLookup"
    )
    table = _table(folder, top, _format_of(files[0].path), files)
    return replace(table, problem=problem)


def _table(path: Path, top: Path, format_name: str, files: Sequence[_DataFile]) -> FoundTable:
    place = path.relative_to(top).as_posix()
    group = path.parent.relative_to(top).as_posix() if path != top else "."
    digest = sha256()
    for file in files:
        name = file.path.relative_to(top).as_posix()
        line = f"{name}\0{file.size}\0{file.modified_ns}\n"
        digest.update(line.encode(errors="surrogateescape"))
    try:
        place.encode()
        problem = ""
    except UnicodeEncodeError:
        place = place.encode(errors="backslashreplace").decode()
        problem = "its path is not UTF-8"
    return FoundTable(
        name="",
        place=place,
        path=str(path.absolute()),
        format=format_name,
        group="" if group == "." else group,
        size=sum(file.size for file in files),
        stamp=digest.hexdigest()[:16],
        problem=problem,
    )


def _is_one_table(folder: Path, files: Sequence[_DataFile]) -> bool:
    """True for files of one format whose names differ only in numbers; false for a single file,
    which is a table by itself unless it is named like a part, or like its folder."""
    kinds = {(_format_of(file.path), _stem(file.path)) for file in files}
    if len(kinds) != 1:
        return False
    return len(files) > 1 or _stem(files[0].path) in ("part", "data", "", folder.name.casefold())


def _stem(path: Path) -> str:
    """The name of a file without numbers, ids and endings: `part` for `part-00000.parquet`."""
    return _NUMBERS.sub("", path.name.partition(".")[0]).strip("-_ ").casefold()


def _format_of(path: Path) -> str:
    """The format of a data file by its endings: `csv` for `orders.csv.gz`; empty for others."""
    for ending in path.suffixes:
        if ending.lower() in _FORMATS:
            return _FORMATS[ending.lower()]
    return ""


def _entries(folder: Path) -> tuple[list[_DataFile], list[Path]]:
    """The data files directly in a folder, and its folders, without hidden ones, as in Spark.

    :raises DatasetError: the folder cannot be read.
    """
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError as error:
        raise DatasetError(f"{folder} cannot be read: {error.strerror}") from error
    shown = [entry for entry in entries if entry.name[0] not in "._"]
    files = [Path(entry.path) for entry in shown if entry.is_file()]
    folders = [Path(entry.path) for entry in shown if entry.is_dir(follow_symlinks=False)]
    return [_data_file(file) for file in files if _format_of(file)], folders


def _files_below(folder: Path) -> list[_DataFile]:
    """The data files in a folder, at any depth."""
    files, folders = _entries(folder)
    return [*files, *(file for one in folders for file in _files_below(one))]


def _data_file(path: Path) -> _DataFile:
    """:raises DatasetError: the file is gone, or is not permitted."""
    try:
        status = path.stat()
    except OSError as error:
        raise DatasetError(f"{path} cannot be read: {error.strerror}") from error
    return _DataFile(path, status.st_size, status.st_mtime_ns)
