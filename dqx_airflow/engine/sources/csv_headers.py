"""The header lines of CSV files: whether they are headers, and of which columns."""

from __future__ import annotations

import csv
import re
from collections.abc import Collection, Sequence

from pyarrow.fs import FileSystem

from dqx_airflow.datasets.reader_options import is_on, option_of
from dqx_airflow.engine.sources import listing
from dqx_airflow.engine.sources.listing import HEAD_BYTES, DataFile, read_each
from dqx_airflow.engine.sources.partition_values import IN_BOTH
from dqx_airflow.errors import DatasetError
from dqx_airflow.metrics.types import spelled_like
from dqx_airflow.plan.masks import is_masked
from dqx_airflow.values import MASK, DatasetRef

_NO_NAME = re.compile(r"[+-]?[0-9][0-9.,:/eEtT+ZzE -]*|_c[0-9]+")
"""A number, a date, or Spark's name for a column without one."""
_NO_TEXT = re.compile("[\x00-\x08\x0e-\x1f\ufffd]")
_HINT = "write the header, or set the option header=false"

_OTHER_NAMES = re.compile(
    r"CSV header does not conform to the schema\.\s+Header: (?P<header>.*)\s+Schema: (?P<schema>.*)"
)
_OTHER_LENGTH = re.compile(
    r"Number of column in CSV header is not equal.*\s+Header length: (\d+), schema size: (\d+)"
)
_ALIKE = "write the same header into all files"


def has_header(ref: DatasetRef) -> bool:
    """True for CSV files whose first line names their columns."""
    return is_on(ref, "header", by_default=True)


def require_names(
    ref: DatasetRef, names: Sequence[str], file: str, folders: Collection[str] = ()
) -> None:
    """Rejects a header that is a row of data, or not text.

    :param names: the columns that Spark took from it.
    :param file: the path of the file, or of all of them.
    :param folders: the columns of folders.
    :raises DatasetError: it is one.
    """
    hidden = () if ref.schema is not None else ref.masked
    is_foreign = hidden and not any(is_masked(name, hidden) for name in (*names, *folders))
    if not names or all(map(_NO_NAME.fullmatch, names)) or is_foreign:
        detail = f": its first line is {_shown_line(ref, names)}" if names else ""
        hint = f"{_HINT}, or correct masked={', '.join(hidden)}" if is_foreign else _HINT
        raise DatasetError(f"dataset '{ref.name}': {file} has no header{detail}", hint)
    if any(map(_NO_TEXT.search, names)):
        raise DatasetError(
            f"dataset '{ref.name}': the header of {file} is not valid text",
            "check its compression and encoding: Spark detects the compression by the file name",
        )


def require_no_columns_of_folders(
    ref: DatasetRef, location: str, file: DataFile, folders: Collection[str]
) -> None:
    """Rejects a header with a column that is also in the names of folders: Spark leaves it out, and
    then finds other columns than in the header.

    :raises DatasetError: there is one.
    """
    separator = (option_of(ref, "sep") or option_of(ref, "delimiter") or ",").replace("\\t", "\t")
    encoding = option_of(ref, "encoding") or option_of(ref, "charset") or "utf-8-sig"
    try:
        (line,) = read_each(location, [file], _first_line)
        (names,) = csv.reader([line.decode(encoding)], delimiter=separator)
    except (OSError, ValueError, LookupError, TypeError, csv.Error):
        return  # Spark reports what is wrong with it
    for name in names:
        if spelled_like(name, folders) is not None:
            raise DatasetError(
                f"dataset '{ref.name}': column '{name}' is in {file.path}, {IN_BOTH}",
                "remove the column from the files",
            )


def _shown_line(ref: DatasetRef, names: Sequence[str]) -> str:
    """A row of data in place of a header, unless its values must stay hidden."""
    return MASK if ref.masked else ",".join(names)[:80]


def require_declared(
    ref: DatasetRef, names: Sequence[str], declared: Collection[str], file: str
) -> None:
    """Rejects a header that does not match the declared columns.

    A declared column may be missing. If all of them are, the first line is no header.

    :param names: the columns that Spark took from it.
    :raises DatasetError: none is declared, one occurs twice, or has spaces around it.
    """
    require_names(ref, names, file)
    wanted = {name.casefold(): name for name in declared}
    in_file = {name.casefold() for name in names}
    # Spark adds positions to columns with the same name.
    for key, column in wanted.items():
        twice = [at for at, name in enumerate(names) if name.casefold() == f"{key}{at}"]
        if key not in in_file and len(twice) > 1:
            raise DatasetError(
                f"dataset '{ref.name}': the header of {file} names the column '{column}' twice",
                "rename one of them",
            )
    if wanted and in_file.isdisjoint(wanted) and not any(_plain(n) in wanted for n in names):
        raise DatasetError(
            f"dataset '{ref.name}': {file} has no header: its first line is "
            f"{_shown_line(ref, names)}, without any of the declared columns",
            _HINT,
        )
    for name in names:
        plain = _plain(name)
        if plain in wanted and name.casefold() != plain:
            raise DatasetError(
                f"dataset '{ref.name}': the header of {file} has {name!r} for the column "
                f"'{wanted[plain]}'",
                "write the name alone, or set ignoreLeadingWhiteSpace and "
                "ignoreTrailingWhiteSpace to true",
            )


def header_fault(message: str) -> str | None:
    """The fault of the header of a file, from Spark's message; None if the message is about
    something else.

    The first line of such a file may be a row of data, so it is not quoted.
    """
    if match := _OTHER_LENGTH.search(message):
        width, other_width = match.groups()
        columns = f"{width} column{'' if width == '1' else 's'}"
        return f"its header has {columns}, other files have {other_width}; {_ALIKE}"
    if (match := _OTHER_NAMES.search(message)) is None:
        return None
    header, schema = (match[name].split(", ") for name in ("header", "schema"))
    for at, (name, column) in enumerate(zip(header, schema, strict=False)):
        if name.casefold() != column.casefold() and column.casefold() == f"{name.casefold()}{at}":
            return f"its header names the column '{name}' twice; rename one of them"
        if column == f"_c{at}":
            return f"its header has no name for column {at + 1}; write one"
    return f"its header differs from the header of other files: {', '.join(schema)}; {_ALIKE}"


def _plain(name: str) -> str:
    return name.strip().strip("\ufeff\"'").strip().casefold()


def groups_by_header(location: str, files: Sequence[DataFile]) -> list[list[str]]:
    """The paths of files, grouped by their first line.

    No groups if they are not needed, or if the files cannot be read.
    """
    filled = [file for file in files if file.size > 0]
    paths = listing.paths_of(location, filled)
    if len(paths) < 2:
        return []
    try:
        lines = read_each(location, filled, _first_line)
    except (OSError, ValueError):
        return []
    groups: dict[bytes, list[str]] = {}
    for line, path in zip(lines, paths, strict=True):
        groups.setdefault(line, []).append(path)
    return list(groups.values()) if len(groups) > 1 else []


def _first_line(system: FileSystem, file: DataFile) -> bytes:
    with system.open_input_stream(file.path, buffer_size=65536) as stream:
        line = b""
        while b"\n" not in line and len(line) < HEAD_BYTES and (part := stream.read(4096)):
            line += part
    return bytes(line.partition(b"\n")[0].rstrip(b"\r"))
