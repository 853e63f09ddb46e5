"""Finds text that Spark's readers silently drop.

The JSON parser stops after the first value of a line, and takes the last of two fields with the
same name, unless it infers the columns from all objects. The CSV parser, if values may contain line
breaks, takes everything after an unclosed quote for one value. So the same files are also read as
plain text, in the same pass.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Mapping

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.readwriter import DataFrameReader
from pyspark.sql.types import ArrayType, DataType, MapType, StructType

from dqx_airflow.metrics.sql import quote_literal, quote_name

RAISED = "dqx: "
"""The prefix of errors that a pass raises itself."""

TEXT_OPTIONS = frozenset(
    {"linesep", "pathglobfilter", "recursivefilelookup", "modifiedafter", "modifiedbefore"}
    | {"basepath", "timezone"}
)
"""Options of text files that also apply to plain text, in lower case."""

_LINE = "value"
"""The column of plain text."""
_FAULT = "dqx: fault"
_DECODED = ("utf-16", "utf-16le", "utf-16be", "utf-32")
_PARSING = (
    *("allowBackslashEscapingAnyCharacter", "allowComments", "allowNonNumericNumbers"),
    *("allowNumericLeadingZeros", "allowSingleQuotes", "allowUnquotedControlChars"),
    "allowUnquotedFieldNames",
)
_DEEPEST = 6
_MORE, _TWICE = "a line has more than one JSON value", "a JSON object has a duplicate field"
_OPEN = "an unclosed quote, or one closed in the middle of a value"


def json_faults(
    options: Mapping[str, str], struct: StructType, *, is_inferred: bool
) -> dict[str, str]:
    """Possible faults of JSON text, each with its condition as Spark SQL.

    :param options: those of the dataset.
    :param struct: the columns that are read; objects nested deeper are not checked.
    :param is_inferred: true if Spark has read all objects to infer their columns. It then has
        rejected those that repeat a field.
    """
    value = f"trim(LEADING '\ufeff' FROM {_text(options)})"
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
    conditions = {_MORE: f"(NOT {is_flat} AND NOT {is_alone} AND {begins})"}
    if is_inferred:
        return conditions
    deeper, nested = [], f"array({value})"
    for _ in range(min(_depth(struct), _DEEPEST)):
        nested = _nested(nested, permissive)
        deeper.append(f"exists({nested}, text -> {_repeats('text', permissive)})")
    names_twice = f"({_repeats(value, permissive)} OR (NOT {is_flat} AND ({' OR '.join(deeper)})))"
    return {**conditions, _TWICE: names_twice}


def csv_faults(options: Mapping[str, str]) -> dict[str, str]:
    """Possible faults of a whole CSV file, each with its condition as Spark SQL."""
    by_name = {name.lower(): text for name, text in options.items()}
    quote, escape = by_name.get("quote", '"'), by_name.get("escape", "\\")
    if quote in ("", "\x00"):
        return {}
    quoted, escaping = re.escape(quote), re.escape(escape or quote)
    break_ = re.escape(by_name["linesep"]) if by_name.get("linesep") else r"\r\n|\r|\n"
    between = re.escape(_unescaped(by_name.get("sep", by_name.get("delimiter", ","))))
    blanks = "[ \\t]*+"
    leading = blanks if by_name.get("ignoreleadingwhitespace", "").lower() == "true" else ""
    trailing = blanks if by_name.get("ignoretrailingwhitespace", "").lower() == "true" else ""
    end = rf"(?={trailing}(?:{between}|{break_}|\z))"
    # Possessive, so that the length of a file does not affect the stack.
    inner = quoted * 2
    if by_name.get("unescapedquotehandling", "").upper() == "STOP_AT_CLOSING_QUOTE":
        inner = rf"{quoted}(?!{trailing}(?:{between}|{break_}|\z))"
    escaped = "" if escape in ("", quote) else rf"|{escaping}(?s:.)"
    special = _in_class(quote + (escape if escaped else ""))
    value = (
        rf"{leading}{quoted}(?:[^{special}]{escaped}|{inner})*+{quoted}{end}{trailing}|"
        rf"(?!{leading}{quoted})(?:(?!{between}|{break_})(?s:.))*+"
    )
    comment = by_name.get("comment", "")
    lines = (
        "" if not comment else rf"(?:(?<=\A|\n|\r){re.escape(comment)}[^\r\n]*+(?:{break_}|\z))*+"
    )
    whole = rf"\A(?:{lines}(?:{value})(?:{between}|{break_}))*+{lines}(?:{value})\z"
    return {_OPEN: f"NOT ({_text(options)} RLIKE {quote_literal(whole)})"}


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


def plain_texts(
    reader: Callable[[str], DataFrameReader], options: Mapping[str, str], *, is_whole: bool
) -> DataFrameReader:
    """A reader of files as plain text, line by line or each as a whole.

    :param reader: returns one for a format, with the options that all formats take.
    """
    taken = {name: text for name, text in options.items() if _is_taken(name)}
    texts = reader("text").options(**taken)
    if is_whole:
        return texts.option("wholetext", "true")
    encoding = {name.lower(): text for name, text in options.items()}.get("encoding")
    return texts.option("encoding", encoding) if encoding and "lineSep" in taken else texts


def _is_taken(option: str) -> bool:
    return option.lower() in TEXT_OPTIONS or "." in option


def _text(options: Mapping[str, str]) -> str:
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


def _in_class(characters: str) -> str:
    return "".join(f"\\{character}" for character in dict.fromkeys(characters))


def _unescaped(separator: str) -> str:
    return separator.replace("\\t", "\t")
