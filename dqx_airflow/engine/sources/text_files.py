"""What text files are, as their first bytes tell: their encoding, the header lines of CSV, and the
layout of JSON: one value per line, or documents and arrays over several lines.

Finds text that Spark's readers silently drop.

The JSON parser stops after the first value of a line, and takes the last of two fields with the
same name, unless it infers the columns from all objects. The CSV parser, if values may contain line
breaks, takes everything after an unclosed quote for one value. So the same files are also read as
plain text, in the same pass.
"""

from __future__ import annotations

import codecs
import csv
import json
import re
import uuid
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow.fs import FileSystem
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, MapType, StructType

from dqx_airflow.datasets.reader_options import given_options, is_on, option_of
from dqx_airflow.dql.syntax.source_file import BYTE_ORDER_MARKS
from dqx_airflow.engine.session.sail import INSTEAD
from dqx_airflow.engine.session.spark_versions import is_valid_utf8
from dqx_airflow.engine.sources import listing
from dqx_airflow.engine.sources.listing import COMPRESSION_HINT, DataFile, read_each
from dqx_airflow.errors import DatasetError
from dqx_airflow.metrics.sql import quote_literal, quote_name
from dqx_airflow.metrics.types import spelled_like
from dqx_airflow.plan.masks import is_masked
from dqx_airflow.values import MASK, DatasetRef

_MOST_BYTES = 1_000_000
"""How much of a file is read at once."""
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
    """What is wrong with the header of a file, from Spark's message; None if the message is about
    something else.

    The first line of such a file may be a row of data, so it is not quoted.
    """
    if match := _OTHER_LENGTH.search(message):
        width, other_width = match.groups()
        columns = f"{width} column{'' if width == '1' else 's'}"
        return f"its header has {columns}, and that of other files {other_width}; {_ALIKE}"
    if (match := _OTHER_NAMES.search(message)) is None:
        return None
    header, schema = (match[name].split(", ") for name in ("header", "schema"))
    for at, (name, column) in enumerate(zip(header, schema, strict=False)):
        if name.casefold() != column.casefold() and column.casefold() == f"{name.casefold()}{at}":
            return f"its header names the column '{name}' twice; rename one of them"
        if column == f"_c{at}":
            return f"its header has no name for column {at + 1}; write one"
    return f"its header is not that of other files: {', '.join(schema)}; {_ALIKE}"


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
        while b"\n" not in line and len(line) < _MOST_BYTES and (part := stream.read(4096)):
            line += part
    return bytes(line.partition(b"\n")[0].rstrip(b"\r"))


_LINE_OF_NULS = re.compile(rb"(?:\A|\n)\0+(?:\r?\n|\Z)")
_DECODED_BY_SPARK = ("utf-16", "utf-32")
_PADDED = "ends with NUL bytes, so it may be incomplete", "write the file again"


def require_text(ref: DatasetRef, location: str, files: Sequence[DataFile]) -> dict[str, str]:
    """Rejects CSV and JSON files that are in another encoding than they would be read in, or still
    compressed; returns the faults of texts that are left to be found, with their conditions as
    Spark SQL.

    Also rejects CSV files whose header is missing because they are empty: Spark skips such a file
    if there are others.

    Here the first megabyte of each file is read, which is enough to name the place of most faults,
    and the end of CSV files that are not compressed, for a padding of NUL bytes. Files in encodings
    that Spark SQL does not know are read whole. Files that cannot be opened are left to Spark.

    :raises DatasetError: there is one.
    """
    for path in [file.path for file in files] or [location]:
        if (suffix := listing.refused_suffix(path)) is not None:
            message = f"dataset '{ref.name}': {path}: {suffix} files are not supported"
            raise DatasetError(message, COMPRESSION_HINT)
    options = {name.lower(): value for name, value in given_options(ref).items()}
    encoding = options.get("encoding", options.get("charset", "UTF-8"))
    try:
        codecs.lookup(encoding)
    except LookupError:
        return {}
    is_csv = ref.format == "csv"
    needs_line = is_csv and has_header(ref)

    def look(system: FileSystem, file: DataFile) -> tuple[tuple[str, str] | None, bool]:
        fault, is_whole = _objection(system, file, encoding, is_csv=is_csv, needs_line=needs_line)
        return fault or (_padding(system, file, encoding) if is_csv else None), is_whole

    filled = [file for file in files if file.size > 0]
    try:
        looks = read_each(location, filled, look)
    except (OSError, ValueError):
        return {}
    for file, (fault, _) in zip(filled, looks, strict=True):
        if fault is not None:
            raise DatasetError(f"dataset '{ref.name}': {file.path} {fault[0]}", fault[1])
    if all(is_whole for _, is_whole in looks):
        return {}
    lines_are_skipped = is_csv and not is_on(ref, "multiLine")
    return unseen_faults(codecs.lookup(encoding).name, lines_are_skipped=lines_are_skipped)


def unseen_faults(encoding: str, *, lines_are_skipped: bool) -> dict[str, str]:
    """What may be wrong with text beyond what was read of it, with the conditions as Spark SQL.

    :param encoding: its name in Python.
    :param lines_are_skipped: true if the reader skips lines of nothing but NUL bytes.
    """
    faults = {}
    if encoding == "utf-8":
        faults["it is not valid UTF-8; set the option encoding"] = f"NOT {is_valid_utf8('value')}"
    elif encoding.startswith(_DECODED_BY_SPARK):
        decoded = f"decode(CAST(value AS BINARY), '{encoding}')"
        faults[f"it is not valid {encoding}"] = f"{decoded} IS NULL"  # it fails by itself
    if lines_are_skipped and _has_nul_bytes(encoding):
        faults["a line has only NUL bytes, so it may be incomplete"] = (
            "(startswith(value, chr(0)) AND trim(LEADING chr(0) FROM value) = '')"
        )
    return faults


def _objection(
    system: FileSystem, file: DataFile, encoding: str, *, is_csv: bool, needs_line: bool
) -> tuple[tuple[str, str] | None, bool]:
    """What is wrong with the bytes of a file and how to fix it, and whether all were read."""
    name = codecs.lookup(encoding).name
    decoder, line = codecs.getincrementaldecoder(encoding)(), 1
    try:
        with system.open_input_stream(file.path) as stream:  # which decompresses by the file name
            head = part = bytes(stream.read(_MOST_BYTES))
            is_whole = len(head) < _MOST_BYTES
            if (fault := _of_head(head, name, encoding, needs_line=needs_line)) is not None:
                return fault, is_whole
            while True:
                decoder.decode(part, final=len(part) < _MOST_BYTES)
                is_whole = len(part) < _MOST_BYTES
                if is_whole or name.startswith(("utf-", "iso8859-1")):
                    break
                line += part.count(b"\n")
                part = bytes(stream.read(_MOST_BYTES))
    except OSError:
        return None, True
    except UnicodeDecodeError as error:
        read = error.object  # with the rest of a character from the part before
        line += read[: error.start].count(b"\n")
        return (
            f"is not valid {encoding}: byte 0x{read[error.start]:02X} in line {line}",
            'set the option encoding to that of the file, such as encoding="ISO-8859-1"',
        ), is_whole
    return _nuls(head, encoding) if is_csv else None, is_whole and part is head


def _of_head(head: bytes, name: str, encoding: str, *, needs_line: bool) -> tuple[str, str] | None:
    """What is wrong with the first bytes of a file."""
    if (kind := listing.left_compression(head)) is not None:
        return f"contains {kind} data, but its name does not have that suffix", COMPRESSION_HINT
    if needs_line and len(head) < _MOST_BYTES and not head.removeprefix(codecs.BOM_UTF8).strip():
        return "has no header: it is empty", "remove it, or write the header"
    mark = next(
        (encoding for mark, encoding in BYTE_ORDER_MARKS.items() if head.startswith(mark)), None
    )
    if mark is not None and name in ("utf-8", "iso8859-1", "cp1252", "ascii"):
        return (
            f"starts with a {mark} byte order mark, but would be read as {encoding}",
            f'set the options encoding="{mark}" and multiLine="true"',
        )
    return None


def _nuls(head: bytes, encoding: str) -> tuple[str, str] | None:
    """The objection to the first bytes of a CSV file with a line that Spark skips."""
    if not _has_nul_bytes(encoding):
        return None
    if len(head) < _MOST_BYTES and head.endswith(b"\0"):
        return _PADDED
    if (found := _LINE_OF_NULS.search(head)) is None:
        return None
    line = head[: found.start()].count(b"\n") + 1 + found[0].startswith(b"\n")
    return f"has only NUL bytes in line {line}, so it may be incomplete", "write the file again"


def _padding(system: FileSystem, file: DataFile, encoding: str) -> tuple[str, str] | None:
    """The objection to a CSV file that ends with NUL bytes, as a file does whose writer crashed:
    Spark trims them off the last value, and skips a line that has nothing else."""
    if listing.is_compressed(file.path) or not _has_nul_bytes(encoding):
        return None
    try:
        with system.open_input_file(file.path) as opened:
            opened.seek(file.size - 1)
            last = bytes(opened.read(1))
    except OSError:
        return None
    return _PADDED if last == b"\0" else None


def _has_nul_bytes(encoding: str) -> bool:
    """True if a NUL byte stands for itself, and for nothing else."""
    return "\0".encode(encoding) == b"\0"


_LINE_BREAK = re.compile(r"[\r\n]")


def with_json_layout(ref: DatasetRef, location: str, files: Sequence[DataFile]) -> DatasetRef:
    """The dataset with `multiLine` if its JSON files are documents and no option decides.

    Otherwise Spark reads one value per line. Files that cannot be read count as lines: Spark
    reports what is wrong with them.

    :raises DatasetError: some files are documents, and others are not.
    """
    if ref.format != "json" or option_of(ref, "multiLine") is not None:
        return ref
    filled = [file for file in files if file.size > 0]
    try:
        answers = read_each(location, filled, is_document)
    except (OSError, ValueError):
        return ref
    documents = [file.path for file, answer in zip(filled, answers, strict=True) if answer]
    lines = [file.path for file, answer in zip(filled, answers, strict=True) if answer is False]
    if documents and lines:
        raise DatasetError(
            f"dataset '{ref.name}': {documents[0]} is a JSON document, {lines[0]} has one value a "
            "line",
            "separate them by folders or by a glob: one reader cannot read both",
        )
    if not documents:
        return ref
    return replace(ref, options=(*ref.options, ("multiLine", "true")))


def is_document(system: FileSystem, file: DataFile) -> bool | None:
    """True for a value over several lines; None if both layouts read the same, or neither.

    :raises OSError: the file cannot be read.
    """
    with system.open_input_stream(file.path) as stream:  # which decompresses by the file name
        head = stream.read(_MOST_BYTES)
    text = head.decode("utf-8-sig", errors="replace").strip()
    first_line = _LINE_BREAK.split(text, maxsplit=1)[0]
    try:
        _, end = json.JSONDecoder(parse_int=str).raw_decode(text)
    except json.JSONDecodeError as error:
        # The readable beginning of a large value is enough to decide.
        return True if len(head) == _MOST_BYTES and error.pos > len(first_line) else None
    except RecursionError:
        return None
    if end > len(first_line):
        return True
    return False if text != first_line else None


RAISED = "dqx: "
"""The prefix of errors that a pass raises itself."""

_LINE = "value"
"""The column of plain text."""
_FAULT = "dqx: fault"
_DECODED = ("utf-16", "utf-16le", "utf-16be", "utf-32", "iso-8859-1")
_PARSING = (
    *("allowBackslashEscapingAnyCharacter", "allowComments", "allowNonNumericNumbers"),
    *("allowNumericLeadingZeros", "allowSingleQuotes", "allowUnquotedControlChars"),
    "allowUnquotedFieldNames",
)
_DEEPEST = 6
MORE, TWICE = "a line has more than one JSON value", "a JSON object has a duplicate field"


def json_faults(
    options: Mapping[str, str], struct: StructType, *, is_inferred: bool
) -> dict[str, str]:
    """Possible faults of JSON text, each with its condition as Spark SQL.

    :param options: those of the dataset.
    :param struct: the columns that are read; objects nested deeper are not checked.
    :param is_inferred: true if Spark has read all objects to infer their columns. It then has
        rejected those that repeat a field.
    """
    value = f"trim(LEADING '\ufeff' FROM {text_of(options)})"
    by_name = {name.lower(): text for name, text in options.items()}
    parsing = {name: by_name[name.lower()] for name in _PARSING if name.lower() in by_name}
    permissive = _map({**parsing, "mode": "PERMISSIVE"})
    # An object without a nested one, and nothing after it: most lines are of this form, and need no
    # parser. For the others, the value is put into an array with a second value that no data
    # contains: anything after the first value makes that array something else.
    braces = f"length({value}) - length(replace({value}, '}}', ''))"
    is_flat = f"({value} LIKE '{{%}}' AND {braces} = 1)"
    last = str(uuid.uuid4())
    array = f"""from_json(concat('[', {value}, '\n,"{last}"]'), 'array<string>', {permissive})"""
    is_alone = _of_one(array, f"size(it) = 2 AND element_at(it, 2) = '{last}'")
    corrupt = _map({**parsing, "mode": "PERMISSIVE", "columnNameOfCorruptRecord": "c"})
    # Spark itself reports text that is not JSON from the beginning.
    begins = f"from_json({value}, 'array<struct<c:string>>', {corrupt}) IS NOT NULL"
    conditions = {MORE: f"(NOT {is_flat} AND NOT {is_alone} AND {begins})"}
    if is_inferred:
        return conditions
    deeper, nested = [], f"array({value})"
    for _ in range(min(_depth(struct), _DEEPEST)):
        nested = _nested(nested, permissive)
        deeper.append(f"exists({nested}, text -> {_repeats('text', permissive)})")
    names_twice = f"({_repeats(value, permissive)} OR (NOT {is_flat} AND ({' OR '.join(deeper)})))"
    return {**conditions, TWICE: names_twice}


SOME_LINE = "a line does not match the columns"


def may_contain(location: str, files: Sequence[DataFile], text: str) -> bool:
    """False only if all files are small and none of them contains a text of ASCII."""
    wanted = text.encode()

    def look(system: FileSystem, file: DataFile) -> bool:
        with system.open_input_stream(file.path) as stream:  # which decompresses by the file name
            head = bytes(stream.read(_MOST_BYTES))
        return len(head) == _MOST_BYTES or wanted in head

    try:
        return not files or any(read_each(location, files, look))
    except (OSError, ValueError):
        return True


def with_faults_raised(frame: DataFrame, texts: DataFrame, faults: Mapping[str, str]) -> DataFrame:
    """The frame, which fails to be read if one of the conditions is true for a text.

    :param texts: the same files, read as plain text.
    """
    place = f"concat({quote_literal(RAISED)}, _metadata.file_path, ' cannot be read: ', "
    cases = " ".join(
        f"WHEN {condition} THEN raise_error({place}{quote_literal(problem)}))"
        for problem, condition in faults.items()
    )
    # The error is also the value of each column: a filter on one of them must not be answered
    # before the text was checked.
    faulty = texts.withColumn(_FAULT, F.expr(f"CASE {cases} END"))
    columns = [
        F.expr(quote_name(field.name))
        if field.name in texts.columns
        else F.expr(quote_name(_FAULT)).cast(field.dataType).alias(field.name)
        for field in frame.schema.fields
    ]
    broken = faulty.where(f"{quote_name(_FAULT)} IS NOT NULL").select(*columns)
    return frame.unionByName(broken)


def with_faults_as_lines(
    frame: DataFrame, texts: DataFrame, faults: Mapping[str, str], line: str
) -> DataFrame:
    """The frame with an additional row for each text for which one of the conditions is true.

    :param line: the column of lines that are malformed as a whole.
    """
    condition = " OR ".join(faults.values())
    columns = [
        F.expr(quote_name(field.name))
        if field.name in texts.columns
        else F.expr(f"{quote_name(_LINE) if field.name == line else 'NULL'}")
        .cast(field.dataType)
        .alias(field.name)
        for field in frame.schema.fields
    ]
    return frame.unionByName(texts.where(condition).select(*columns))


def text_of(options: Mapping[str, str]) -> str:
    """The text of a line or a file, as Spark SQL."""
    by_name = {name.lower(): text for name, text in options.items()}
    encoding = by_name.get("encoding", by_name.get("charset", "")).lower()
    if encoding in _DECODED:
        return f"decode(CAST({_LINE} AS BINARY), '{encoding}')"
    return _LINE


def _repeats(text: str, options: str) -> str:
    """True if an object repeats a field."""
    names = f"coalesce(json_object_keys({text}), map_keys({_object(text, options)}))"
    return _of_one(names, "size(it) <> size(array_distinct(it))")


def _of_one(value: str, condition: str) -> str:
    """Whether a condition is true for `it`, a value that is computed once; false if it is NULL."""
    return f"coalesce(exists(array({value}), it -> {condition}), false)"


def _nested(texts: str, options: str) -> str:
    """The objects and arrays nested in the values of some texts."""
    array = f"from_json(text, 'array<string>', {options})"
    values = f"map_values({_object('text', options)})"
    inside = f"coalesce(CASE WHEN text LIKE '[%' THEN {array} ELSE {values} END, array())"
    is_inside = "text LIKE '{%' OR text LIKE '[%'"
    return f"filter(flatten(transform({texts}, text -> {inside})), text -> {is_inside})"


def _object(text: str, options: str) -> str:
    return f"from_json({text}, 'map<string,string>', {options})"


def _map(options: Mapping[str, str]) -> str:
    pairs = (quote_literal(word) for pair in options.items() for word in pair)
    return f"map({', '.join(pairs)})"


def _depth(kind: DataType) -> int:
    """The maximum depth of nested objects and arrays."""
    match kind:
        case StructType():
            return 1 + max((_depth(field.dataType) for field in kind.fields), default=0)
        case ArrayType():
            inner = _depth(kind.elementType)
            return inner + 1 if inner else 0
        case MapType():
            return 1 + _depth(kind.valueType)
    return 0


MOST_SENT_BYTES = 50_000_000
"""The maximum size of the CSV files of a dataset that are sent to an engine."""

_READ_OTHERWISE = re.compile(
    r"[\\\0-\x08\x0b\x0c\x0e-\x1f\x7f\ufffd]|\r(?!\n)|\A\ufeff|^[ \t]+\r?$", re.MULTILINE
)
"""Escapes, control characters, a byte order mark, and lines of spaces."""
_QUOTED = re.compile(r'(?:^|(?<=,))"[^"\r\n]*"(?=,|\r?$)', re.MULTILINE)
_CAST_OTHERWISE = {
    "boolean": r"(?i)^\s*(tr|tru|ye|on|fa|fal|fals|off?)\s*$",
    "decimal": "[0-9.][eE]",
    "date": r"^\s*[0-9]+-[0-9]+-[0-9]+[T\s]|\t",
    # All zones but Z and those of the form +01:00.
    "timestamp": r"-.*:.*([^0-9:.Z+-]|[+-](.{0,4}|.{6,}|..[^:]..)$)|^\s*0001-01-01.*[+]",
}
"""By type, the strings that may be cast otherwise."""


def read_strings(
    ref: DatasetRef, location: str, files: Sequence[DataFile], types: Mapping[str, str], line: str
) -> pa.Table:
    """The strings of CSV files with declared columns that this process reads, to send them to an
    engine that would read them unlike Spark; and in the column `line` the lines with too few or too
    many values. Only files that all readers of CSV take alike, with strings that both cast alike.

    :param types: those of the declared columns.
    :raises DatasetError: they may be read or cast otherwise, or are too large to be sent.
    """

    def refused(other: str) -> DatasetError:
        message = f"dataset '{ref.name}': Sail may read {other} differently from Spark"
        return DatasetError(message, f"write the data as Parquet, or {INSTEAD}")

    def read(system: FileSystem, file: DataFile) -> pa.Table:
        with system.open_input_stream(file.path) as stream:  # which decompresses by the file name
            text = str(stream.read(), "utf-8", "replace")
        lines = [one for one in text.replace("\r\n", "\n").split("\n") if one]
        is_plain = max(map(len, lines), default=0) < csv.field_size_limit()
        is_plain &= text.count('"') == 2 * len(_QUOTED.findall(text))
        if not is_plain or _READ_OTHERWISE.search(text):
            raise refused(f"escapes, quotes, spaces, or control characters in {file.path}")
        names, *rows = [*csv.reader(lines)] or [[]]
        require_declared(ref, names, types, file.path)
        if not all(names) or len({name.casefold() for name in names}) < len(names):
            raise refused(f"the header of {file.path}")
        width, found = len(names), []
        for row, one in zip(rows, lines[1:], strict=True):
            cells = [cell or None for cell in [*row, *[""] * width][:width]]
            found.append([*cells, None if len(row) == width else one])
        schema = pa.schema([(name, pa.string()) for name in (*names, line)])
        columns = map(pa.array, zip(*found, strict=True))
        return pa.table([*columns], schema=schema) if found else schema.empty_table()

    if folders := listing.partition_names(files):
        raise refused(f"the values of {folders[0]} in the names of folders")
    if sum(file.size for file in files) > MOST_SENT_BYTES:
        raise refused(f"more than {MOST_SENT_BYTES // 1_000_000} MB of CSV")
    table = pa.concat_tables(read_each(location, files, read), promote_options="default")
    for name, kind in types.items():
        others = _CAST_OTHERWISE.get(kind.split("(")[0])
        column = spelled_like(name, table.schema.names)
        if others and column and pc.any(pc.match_substring_regex(table[column], others)).as_py():
            raise refused(f"the form of some {kind} values of column '{column}'")
    return table
