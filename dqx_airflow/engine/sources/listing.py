"""The files of a dataset: their paths, how they are compressed, which belong to a date; and how
Spark reads them."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, partial
from importlib import resources
from itertools import chain
from operator import attrgetter
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from pyarrow.fs import FileInfo, FileSelector, FileSystem, FileType, LocalFileSystem
from pyspark.sql.types import StringType, StructField, StructType

from dqx_airflow.datasets.reader_options import given_options, is_on, option_of
from dqx_airflow.engine.sources.partition_folders import PartitionFolders
from dqx_airflow.engine.sources.partition_values import IN_UTC
from dqx_airflow.values import DatasetRef
from dqx_airflow.values.files import local_path

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.readwriter import DataFrameReader

GLOB = re.compile(r"[*?\[\]{}\\]")
"""The characters that make a path a glob to Spark."""

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")


def absolute(path: str) -> str:
    """Local paths as absolute ones: Spark and deltalake resolve relative paths differently.

    `~` is the home of the user who runs the job. A file URI becomes a path: `%20` in it is a space.
    """
    path = local_path(path)
    return os.path.abspath(os.path.expanduser(path)) if is_local(path) else path


def is_local(path: str) -> bool:
    """True for a path of this machine."""
    return not _SCHEME.match(path)


def for_spark(path: str) -> str:
    """The path for a Spark reader, escaped if the name of a local folder looks like a glob."""
    is_name = is_local(path) and GLOB.search(path) is not None and Path(path).exists()
    return escaped(path) if is_name else path


def escaped(path: str) -> str:
    """The path with all glob characters escaped."""
    return GLOB.sub(r"\\\g<0>", path)


def partition_root(path: str) -> str | None:
    """The folder that contains the partitions, if the path leads to one (`ds=2024-03-02`) or
    several of them (`ds=2024-03-*`)."""
    parts = path.split("/")
    for number, part in enumerate(parts):
        if "=" in part:
            return "/".join(parts[:number]) or None
        if GLOB.search(part):
            return None
    return None


_REFUSED = re.compile(
    # Hadoop has formats of its own for the first three. For any other, it takes the first bytes for
    # a length, and the JVM runs out of memory.
    r"\.(lz4|snappy|deflate|"
    r"zip|7z|rar|xz|lzma|br|z|lzo|gzip|zstd|bzip2|tar|tar\.\w+|tgz|tbz2?|txz|tzst)$",
    re.IGNORECASE,
)
_READ = (".gz", ".bz2", ".zst")
_BEGINNINGS = {
    b"\x1f\x8b\x08": "gzip",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"\x04\x22\x4d\x18": "lz4",
    b"\xfd7zXZ\x00": "xz",
    b"7z\xbc\xaf\x27\x1c": "7z",
    b"PK\x03\x04": "zip",
    b"\x1f\x9d": "compress",
    b"\xff\x06\x00\x00sNaPpY": "snappy",
}
_BZIP2 = re.compile(rb"BZh[1-9]1AY&SY")
_OF_TAR = slice(257, 262)
"""The position of the magic bytes of a tar archive."""

COMPRESSION_HINT = "use gzip (.gz), bzip2 (.bz2) or zstd (.zst) for each file, or no compression"


def refused_suffix(path: str) -> str | None:
    """The file name suffix of a compression or archive that cannot be read as text."""
    match = _REFUSED.search(path)
    return None if match is None else match[0]


def is_compressed(path: str) -> bool:
    """True for a file whose suffix makes readers decompress it."""
    return path.lower().endswith(_READ)


def left_compression(head: bytes) -> str | None:
    """The compression or archive that bytes are still in, such as `zip`; None if none is detected.

    :param head: the first bytes of a file, after the decompression that its name implies.
    """
    if _BZIP2.match(head):
        return "bzip2"
    if head[_OF_TAR] == b"ustar":
        return "tar"
    return next((kind for begin, kind in _BEGINNINGS.items() if head.startswith(begin)), None)


_is_partition = re.compile(r"[^=]+=.+", re.DOTALL).fullmatch
_TOKEN = re.compile(r"\\(.)|\*|\?|\[([!^])?((?:\\.|[^\]])+)\]|[{},]|[^\\*?\[\]{},]+", re.DOTALL)


_THREADS = 16

HEAD_BYTES = 1_000_000
"""The size of the first part of a file that is read to decide how to read it."""

TEXT_COLUMN = "value"
"""The column of files that are read as plain text."""

Read = TypeVar("Read")


class DataFile(NamedTuple):
    """A file in a listing or a log.

    :param changed_ns: the change time of its inode, which cannot be set back; 0 if there is none.
    :param partition: the values of the partition columns, according to a log.
    """

    path: str
    size: int
    modified_ns: int
    changed_ns: int = 0
    inode: int = 0
    partition: tuple[str, ...] = ()


@dataclass(frozen=True)
class ListedFiles:
    """Files at a path, in the order of their paths."""

    files: Sequence[DataFile]

    @cached_property
    def _by_folder(self) -> dict[str, list[int]]:
        folders: dict[str, list[int]] = {}
        for number, file in enumerate(self.files):
            folders.setdefault(file.path.rpartition("/")[0], []).append(number)
        return folders

    @property
    def folders(self) -> Collection[str]:
        """The folders that the files are in."""
        return self._by_folder.keys()

    def in_folders(self, is_wanted: Callable[[str], bool]) -> list[DataFile]:
        """The files in some folders. Each folder is asked for once, however many files it has."""
        folders = [part for path, part in self._by_folder.items() if is_wanted(path)]
        return [self.files[number] for number in sorted(chain.from_iterable(folders))]


def _all_folders(_: str) -> bool:
    return True


def files_at(
    location: str, is_wanted: Callable[[str], bool] = _all_folders
) -> tuple[DataFile, ...] | None:
    """The files that Spark reads at a path or a glob; None if they cannot be listed.

    :param is_wanted: of the path of a folder that may be a partition. What is in other folders, or
        below them, is left out.
    """
    try:
        system, path = FileSystem.from_uri(location)
        is_glob = GLOB.search(path) is not None and for_spark(location) == location
        places = _matching(system, path) if is_glob else system.get_file_info([path])
        files = [file for place in places for file in _below(system, place, is_wanted)]
    except (OSError, ValueError):
        return None
    return tuple(sorted(files, key=attrgetter("path"))) if files else None


def dangling_links(location: str) -> list[str]:
    """The links in a local folder whose targets do not exist: Spark skips them."""
    try:
        system, root = FileSystem.from_uri(location)
    except (OSError, ValueError):
        return []
    if not isinstance(system, LocalFileSystem):
        return []
    links: list[str] = []
    folders = [root]
    while folders:
        with suppress(OSError), os.scandir(folders.pop()) as entries:
            for entry in entries:
                if _is_hidden(entry.name):
                    continue
                if entry.is_symlink():
                    links += [] if os.path.exists(entry.path) else [entry.path]
                elif entry.is_dir():
                    folders.append(entry.path)
    return links


def data_file(system: FileSystem, info: FileInfo) -> DataFile:
    """A listed file, with what this machine knows about it.

    :raises OSError: it does not exist any more.
    """
    if not isinstance(system, LocalFileSystem):
        return DataFile(info.path, info.size, info.mtime_ns)
    return local_file(info.path, os.stat(info.path))


def local_file(path: str, stat: os.stat_result) -> DataFile:
    """A file of this machine."""
    return DataFile(path, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino)


def read_each(
    location: str, files: Iterable[DataFile], read: Callable[[FileSystem, DataFile], Read]
) -> list[Read]:
    """The result of `read` for each file below a location; several files are read at once.

    :raises OSError: the location, or a file, cannot be read.
    :raises ValueError: as above.
    """
    system, _ = FileSystem.from_uri(location)
    with ThreadPoolExecutor(_THREADS) as threads:
        return list(threads.map(partial(read, system), files))


def unread_files(location: str, files: Sequence[DataFile]) -> list[DataFile]:
    """The files at a path or a glob that Spark skips.

    It reads folders that are partitions (`ds=2024-03-02`) and no others; and if there are
    partitions, files next to them are not read.
    """
    try:
        _, path = FileSystem.from_uri(location)
    except (OSError, ValueError):
        return []
    base = partition_root(path) or path
    depth = len(base.strip("/").split("/"))
    listed = ListedFiles(files)
    below: dict[str, dict[str, list[str]]] = {}
    for folder in listed.folders:
        parts = folder.strip("/").split("/")
        below.setdefault("/".join(parts[:depth]), {})[folder] = parts[depth:]
    unread: set[str] = set()
    for placed in below.values():
        is_partitioned = any(_is_partition(name) for names in placed.values() for name in names)
        for folder, names in placed.items():
            is_read = any(map(_is_partition, names)) if names else not is_partitioned
            unread |= set() if is_read else {folder}
    return listed.in_folders(unread.__contains__) if unread else []


def matches_glob(name: str, glob: str) -> bool:
    """True if a glob matches the name of a file, or cannot be parsed here."""
    try:
        return re.fullmatch(_regex(glob), name) is not None
    except (ValueError, re.error):
        return True


def is_folder(location: str) -> bool:
    """True for a folder; False also if that is unknown."""
    try:
        system, path = FileSystem.from_uri(location)
        (info,) = system.get_file_info([path])
    except (OSError, ValueError):
        return False
    return bool(info.type is FileType.Directory)


def changed_files(before: Iterable[DataFile], after: Iterable[DataFile]) -> list[str]:
    """The files that no longer exist, or have other contents."""
    remaining = set(after)
    return [file.path for file in before if file not in remaining]


def newest_paths(location: str, files: Collection[DataFile], most_bytes: int) -> list[str]:
    """The newest files below a location, at least one, as paths for a Spark reader.

    Empty if all files together are no larger than the limit, or if their paths are unknown.
    """
    if sum(file.size for file in files) <= most_bytes or for_spark(location) != location:
        return []
    _, root = FileSystem.from_uri(location)
    if GLOB.search(root) or not all(file.path.startswith(f"{root}/") for file in files):
        return []
    names: list[str] = []
    size = 0
    for file in sorted(files, key=lambda file: file.modified_ns, reverse=True):
        size += file.size
        if names and size > most_bytes:
            break
        names.append(location.rstrip("/") + escaped(file.path[len(root) :]))
    return names


def paths_of(location: str, files: Iterable[DataFile]) -> list[str]:
    """The files at a path or a glob, as paths for a Spark reader; empty if unknown."""
    return paths_for_spark(location, (file.path for file in files))


def paths_for_spark(location: str, paths: Iterable[str]) -> list[str]:
    """Files or folders at a path or a glob, as paths for a Spark reader; empty if unknown."""
    _, root = FileSystem.from_uri(location)
    if not location.rstrip("/").endswith(root.rstrip("/")):
        return []
    start = location.rstrip("/").removesuffix(root.rstrip("/"))
    return [start + escaped(path) for path in paths]


def partitions_of(ref: DatasetRef, path: str, files: ListedFiles) -> PartitionFolders:
    """The folders of a dataset that Spark takes for partitions.

    :param path: its location, absolute on this machine.
    """
    if is_on(ref, "recursiveFileLookup"):
        return PartitionFolders(None, files.folders)
    base = option_of(ref, "basePath")
    place = absolute(base) if base is not None else partition_root(path) or path
    try:
        _, place = FileSystem.from_uri(place)
    except (OSError, ValueError):
        return PartitionFolders(None, files.folders)  # nothing was listed there
    # Each place that a glob matches is a base path.
    return PartitionFolders(len([*filter(None, place.split("/"))]), files.folders)


def _is_hidden(name: str) -> bool:
    """True for the name of a file or folder that Spark does not read: one that begins with a dot or
    an underscore, except for partitions such as `_day=2024-03-02`."""
    return name.startswith(".") or (name.startswith("_") and "=" not in name)


def _below(
    system: FileSystem, place: FileInfo, is_wanted: Callable[[str], bool]
) -> Iterable[DataFile]:
    """The file itself, or the files in a folder.

    :raises OSError: a folder cannot be listed, or a file does not exist any more.
    """
    if place.type is FileType.File:
        return [data_file(system, place)]
    if place.type is not FileType.Directory:
        return []
    if isinstance(system, LocalFileSystem):
        return _below_folder(place.path, is_wanted)
    return [
        data_file(system, info)
        for info in system.get_file_info(FileSelector(place.path, recursive=True))
        if info.type is FileType.File
        and not any(map(_is_hidden, info.path[len(place.path) :].split("/")))
        and is_wanted(info.path.rpartition("/")[0])
    ]


def _below_folder(root: str, is_wanted: Callable[[str], bool]) -> list[DataFile]:
    """The files in a folder of this machine, each looked at once: a table may have a million.

    :raises OSError: a folder cannot be listed, or a file does not exist any more.
    """
    files: list[DataFile] = []
    folders = [root]
    while folders:
        folder = folders.pop()
        if "=" in folder.rpartition("/")[2] and folder != root and not is_wanted(folder):
            continue
        with os.scandir(folder) as entries:
            for entry in entries:
                if _is_hidden(entry.name):
                    continue
                if entry.is_file():
                    files.append(local_file(entry.path, entry.stat()))
                elif entry.is_dir():
                    folders.append(entry.path)
    return files


def _matching(system: FileSystem, path: str) -> list[FileInfo]:
    """The files and folders that match a glob, found folder by folder."""
    patterns = [""]
    places: list[FileInfo] = []
    for part in path.strip("/").split("/"):
        if GLOB.search(part):
            name = re.compile(_regex(part))
            places = [
                info
                for folder in patterns
                for info in system.get_file_info(FileSelector(folder or "/", allow_not_found=True))
                if name.fullmatch(info.base_name)
                and not (info.base_name.startswith((".", "_")) and "=" not in info.base_name)
            ]
        else:
            places = system.get_file_info([f"{folder}/{part}" for folder in patterns])
        patterns = [info.path for info in places if info.type is not FileType.NotFound]
    return places


def _regex(glob: str) -> str:
    """A glob for one name, as Hadoop reads it, as a regular expression.

    :raises ValueError: it is not a valid glob.
    """
    parts = []
    position = 0
    depth = 0
    while position < len(glob):
        token = _TOKEN.match(glob, position)
        if token is None:
            raise ValueError(f"'{glob}' is not a glob for a single name")
        position = token.end()
        text = token[0]
        escaped = token[1]
        negated = token[2]
        members = token[3]
        depth += {"{": 1, "}": -1}.get(text, 0)
        if escaped:
            parts.append(re.escape(escaped))
        elif members:
            parts.append(f"[{'^' if negated else ''}{members}]")
        elif text == "," and depth == 0:
            parts.append(",")
        else:
            special = {"*": ".*", "?": ".", "{": "(?:", "}": ")", ",": "|"}
            parts.append(special.get(text) or re.escape(text))
    if depth != 0:
        raise ValueError(f"'{glob}' is not a glob for a single name")
    return "".join(parts)


_LOGS = {"Delta": "_delta_log", "Hudi": ".hoodie"}
"""The folder in a table with the list of its valid files."""


def table_format(path: str) -> str | None:
    """The format of the table that files at a path belong to; None if they are plain files."""
    root = partition_root(path) or path
    if for_spark(root) == root and (wildcard := GLOB.search(root)):
        root = root[: wildcard.start()].rpartition("/")[0]
    root = root.rstrip("/")
    parent, _, folder = root.rpartition("/")
    # The path may also be a file of the table, or a folder in it.
    for place in filter(None, (root, parent)):
        for name, log in _LOGS.items():
            if is_folder(f"{place}/{log}"):
                return name
    if folder != "data":
        return None
    beside = files_at(f"{parent}/metadata") or ()
    return "Iceberg" if any(file.path.endswith(".metadata.json") for file in beside) else None


NOTHING_IGNORED = MappingProxyType(
    {
        "ignoreCorruptFiles": "false",
        "ignoreMissingFiles": "false",
        "ignoreInvalidPartitionPaths": "false",
    }
)
"""The options of a file reader that make it fail."""

_STRICT: dict[str, dict[str, str]] = json.loads(
    resources.files(__package__).joinpath("strict_options.json").read_text(encoding="utf-8")
)
"""The options with which formats are read strictly, unless the options of a dataset differ.

For a line that does not fit, PERMISSIVE would return NULLs, which most rules let pass. To notice
such lines Spark must read them whole, including the names in each file. The log of Iceberg has
counts and extremes of files that may no longer exist.
"""
_OF_TEXTS = frozenset(
    {"linesep", "pathglobfilter", "recursivefilelookup", "modifiedafter", "modifiedbefore"}
    | {"basepath", "timezone"}
)
"""Options of text files that also apply to plain text, in lower case."""


@dataclass(frozen=True)
class DatasetFiles:
    """The files of a dataset at a path, as far as they can be listed, and Spark's readers of them.

    Listed before Spark lists them, so that no change goes unnoticed.
    """

    spark: SparkSession
    ref: DatasetRef
    path: str
    listed: tuple[DataFile, ...]

    @cached_property
    def partitions(self) -> PartitionFolders:
        """The folders of the files, and which of them are partitions."""
        return partitions_of(self.ref, self.path, self.by_folder)

    @property
    def folders(self) -> list[str]:
        """The columns in the names of folders."""
        return self.partitions.names

    @cached_property
    def by_folder(self) -> ListedFiles:
        """The files, to be found by their folders."""
        return ListedFiles(self.listed)

    @property
    def names_no_zone(self) -> bool:
        """True if there are folders of partitions, and no option has the time zone of their
        timestamps."""
        return bool(self.folders) and option_of(self.ref, "timeZone") is None

    @property
    def place(self) -> str:
        """The path for a reader."""
        return for_spark(self.path)

    def strict_reader(self) -> DataFrameReader:
        """A new reader with the options of the dataset, strict where these are silent."""
        strict = self._reader(self.ref.format).options(**_STRICT.get(self.ref.format, {}))
        return strict.options(**given_options(self.ref))

    def reader_of_some(self) -> DataFrameReader:
        """A new strict reader of some of the files or folders, with the columns that the folders
        above them name."""
        base = partition_root(self.path) or self.path
        return self.strict_reader().option("basePath", base)

    def texts(
        self, in_folders: Sequence[StructField] = (), place: str | list[str] | None = None
    ) -> DataFrame:
        """The files as plain text, line by line, or each as a whole if values may have line breaks.

        :param in_folders: the columns of folders, if they are needed.
        :param place: some of the files; by default all of them.
        """
        taken = {
            name: text
            for name, text in given_options(self.ref).items()
            if name.lower() in _OF_TEXTS or "." in name
        }
        reader = self._reader("text").options(**taken)
        if is_on(self.ref, "multiLine"):
            reader = reader.option("wholetext", "true")
        elif (encoding := option_of(self.ref, "encoding")) and "lineSep" in taken:
            reader = reader.option("encoding", encoding)
        if in_folders:
            text = StructField(TEXT_COLUMN, StringType())
            reader = reader.schema(StructType([text, *in_folders]))
        return reader.load(self.place if place is None else place)

    def _reader(self, format: str) -> DataFrameReader:
        reader = self.spark.read.format(format)
        if format != "iceberg":
            reader = reader.options(**NOTHING_IGNORED)
        # The values in text files have a time zone of their own.
        has_guessed_texts = format in ("csv", "json") and self.ref.schema is None
        if self.names_no_zone and not has_guessed_texts:
            reader = reader.options(**IN_UTC)
        root = partition_root(self.path)
        return reader if root is None else reader.option("basePath", root)
