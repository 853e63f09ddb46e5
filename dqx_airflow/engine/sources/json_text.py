"""JSON as text: its layout, one value per line or documents and arrays over several lines; and the
values that Spark's parser silently drops.

The parser stops after the first value of a line, and takes the last of two fields with the same
name, unless it infers the columns from all objects. It infers one column from fields whose names
differ only in case, and reads those that are spelled as the first one.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from pyarrow.fs import FileSystem
from pyspark.sql.types import ArrayType, DataType, MapType, NumericType, StructType

from dqx_airflow.datasets.reader_options import option_of
from dqx_airflow.engine.sources.listing import HEAD_BYTES, DataFile, read_each
from dqx_airflow.engine.sources.partition_values import IN_BOTH, IN_BOTH_HINT
from dqx_airflow.engine.sources.text_encoding import text_of
from dqx_airflow.errors import DatasetError
from dqx_airflow.metrics.sql import quote_literal, quote_name
from dqx_airflow.values import DatasetRef

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
        head = stream.read(HEAD_BYTES)
    text = head.decode("utf-8-sig", errors="replace").strip()
    first_line = _LINE_BREAK.split(text, maxsplit=1)[0]
    try:
        _, end = json.JSONDecoder(parse_int=str).raw_decode(text)
    except json.JSONDecodeError as error:
        # The readable beginning of a large value is enough to decide.
        return True if len(head) == HEAD_BYTES and error.pos > len(first_line) else None
    except RecursionError:
        return None
    if end > len(first_line):
        return True
    return False if text != first_line else None


_PARSING = (
    *("allowBackslashEscapingAnyCharacter", "allowComments", "allowNonNumericNumbers"),
    *("allowNumericLeadingZeros", "allowSingleQuotes", "allowUnquotedControlChars"),
    "allowUnquotedFieldNames",
)
_DEEPEST = 6
MORE_VALUES = "a line has more than one JSON value"
DUPLICATE_FIELD = "a JSON object has a duplicate field"
OTHER_CASE = "a JSON object has a field in another case"


def json_faults(
    options: Mapping[str, str], struct: StructType, *, is_inferred: bool
) -> dict[str, str]:
    """Possible faults of JSON text, each with its condition as Spark SQL.

    :param options: the reader options of the dataset.
    :param struct: the columns that are read; objects nested deeper are not checked.
    :param is_inferred: true if Spark has read all objects to infer their columns. It then has
        rejected those that repeat a field.
    """
    value = f"trim(LEADING '\ufeff' FROM {text_of(options)})"
    parsing = _parsing(options)
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
    conditions = {MORE_VALUES: f"(NOT {is_flat} AND NOT {is_alone} AND {begins})"}
    is_list = f"trim(LEADING ' \t\r\n' FROM {value}) LIKE '[%'"
    objects = f"CASE WHEN {is_list} THEN {_items(value, permissive)} ELSE array({value}) END"
    misspelled = [*_misspelled(objects, struct, permissive)]
    if misspelled:
        is_other = f"coalesce({' OR '.join(misspelled)}, false)"
        conditions[OTHER_CASE] = f"({_may_misspell(value, struct, parsing)} AND {is_other})"
    if is_inferred:
        return conditions
    deeper = []
    nested = f"array({value})"
    for _ in range(min(_depth(struct), _DEEPEST)):
        nested = _nested(nested, permissive)
        deeper.append(f"exists({nested}, text -> {_repeats('text', permissive)})")
    names_twice = f"({_repeats(value, permissive)} OR (NOT {is_flat} AND ({' OR '.join(deeper)})))"
    return {**conditions, DUPLICATE_FIELD: names_twice}


def folder_faults(
    options: Mapping[str, str], folders: Mapping[str, DataType], texts: Mapping[str, str]
) -> dict[str, str]:
    """The faults of JSON text with a field that the names of folders have with another value, each
    with its condition as Spark SQL over the text and the columns of folders.

    :param options: the reader options of the dataset.
    :param folders: the columns of folders.
    :param texts: Spark SQL for the strings of some of them.
    """
    value = f"trim(LEADING '\ufeff \t\r\n' FROM {text_of(options)})"
    permissive = _map({**_parsing(options), "mode": "PERMISSIVE"})
    array = f"from_json({value}, 'array<map<string,string>>', {permissive})"
    objects = (
        f"CASE WHEN {value} LIKE '[%' THEN {array} ELSE array({_object(value, permissive)}) END"
    )
    faults = {}
    for name, kind in folders.items():
        folder = quote_name(name)
        key = quote_literal(name.lower())
        is_same = f"field.value = {texts.get(name, f'CAST({folder} AS STRING)')}"
        if isinstance(kind, NumericType):
            number = "AS DECIMAL(38,18))"
            is_same += f" OR try_cast(field.value {number} = try_cast({folder} {number}"
        differs = f"field.value IS NOT NULL AND NOT coalesce({is_same}, false)"
        is_field = f"lower(field.key) = {key} AND {differs}"
        # Most lines do not have the name, and need no parser.
        may_have = f"(contains(lower({value}), {key}) OR contains({value}, '\\\\u'))"
        has_field = f"exists({objects}, it -> exists(map_entries(it), field -> {is_field}))"
        problem = f"column '{name}' is in it, {IN_BOTH}; {IN_BOTH_HINT}"
        faults[problem] = f"({may_have} AND coalesce({has_field}, false))"
    return faults


def _parsing(options: Mapping[str, str]) -> dict[str, str]:
    """The options that decide what is JSON."""
    by_name = {name.lower(): text for name, text in options.items()}
    return {name: by_name[name.lower()] for name in _PARSING if name.lower() in by_name}


def _repeats(text: str, options: str) -> str:
    """Spark SQL that is true if an object repeats a field."""
    return _of_one(_names(text, options), "size(it) <> size(array_distinct(it))")


def _misspelled(texts: str, kind: DataType, options: str) -> Iterator[str]:
    """Conditions as Spark SQL, one of which is true if an object has a field in another case than
    its type, and not also in the same case.

    :param texts: an array with the texts of all values of the type.
    """
    match kind:
        case StructType() if kind.fields:
            fields = f"array({', '.join(map(quote_literal, kind.names))})"
            others = f"transform(array_except(it, {fields}), name -> lower(name))"
            missing = f"transform(array_except({fields}, it), name -> lower(name))"
            is_other = _of_one(_names("text", options), f"arrays_overlap({others}, {missing})")
            yield f"exists({texts}, text -> {is_other})"
            for field in kind.fields:
                value = f"element_at({_object('text', options)}, {quote_literal(field.name)})"
                yield from _misspelled(
                    f"transform({texts}, text -> {value})", field.dataType, options
                )
        case ArrayType():
            items = f"coalesce({_items('text', options)}, array())"
            inner = f"flatten(transform({texts}, text -> {items}))"
            yield from _misspelled(inner, kind.elementType, options)
        case MapType():
            values = f"coalesce(map_values({_object('text', options)}), array())"
            inner = f"flatten(transform({texts}, text -> {values}))"
            yield from _misspelled(inner, kind.valueType, options)


def _may_misspell(text: str, struct: StructType, parsing: Mapping[str, str]) -> str:
    """Spark SQL that is false for a text without a name in another case, which needs no parser."""
    names = sorted({*_names_in(struct)})
    may_be_bare = parsing.get("allowUnquotedFieldNames", "false").lower() == "true"
    if may_be_bare or not all(map(str.isascii, names)):
        return "true"
    any_name, quote = "|".join(map(re.escape, names)), "[\"']"
    pattern = f"{quote}(?!(?:{any_name}){quote})(?i:{any_name}){quote}"
    return f"(contains({text}, '\\\\') OR {text} RLIKE {quote_literal(pattern)})"


def _names_in(kind: DataType) -> Iterator[str]:
    """The names of all fields in a type, at any depth."""
    match kind:
        case StructType():
            for field in kind.fields:
                yield field.name
                yield from _names_in(field.dataType)
        case ArrayType():
            yield from _names_in(kind.elementType)
        case MapType():
            yield from _names_in(kind.valueType)


def _names(text: str, options: str) -> str:
    """The names of the fields of an object, as Spark SQL."""
    return f"coalesce(json_object_keys({text}), map_keys({_object(text, options)}))"


def _items(text: str, options: str) -> str:
    return f"from_json({text}, 'array<string>', {options})"


def _of_one(value: str, condition: str) -> str:
    """Spark SQL that is true if a condition is true for `it`, a value that is computed once."""
    return f"coalesce(exists(array({value}), it -> {condition}), false)"


def _nested(texts: str, options: str) -> str:
    """The objects and arrays nested in the values of some texts."""
    array = _items("text", options)
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
