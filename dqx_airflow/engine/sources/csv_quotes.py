"""Quotes and escapes of CSV: which texts Spark reads as they are meant.

Spark takes a backslash for the escape unless an option names another, and then does not read a
doubled quote as one quote: it ends the value there, or keeps both. RFC 4180, and most programs that
write CSV, double quotes, and take a backslash for a character like others. A text that both read
alike is sound, as is one that only the escape of the options explains. All others are refused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from dqx_airflow.engine.sources.text_encoding import text_of
from dqx_airflow.metrics.sql import quote_literal

MISREAD = (
    "a value in quotes has no end, or quotes or escapes that Spark may misread; set "
    'escape="\\"" if quotes are doubled, escape="\\\\" if a backslash is the escape, or '
    'multiLine="true" if values have line breaks'
)
SKIPPED = "a line of nothing but spaces, which Spark skips"

_BLANKS = "[ \\t]*+"
_SPACES = r"[\x01-\x20]*+"
"""Characters that Spark trims off a line to see whether it is empty; NUL bytes are looked for
elsewhere."""
_KEEPS_THE_REST = ("STOP_AT_DELIMITER", "BACK_TO_DELIMITER", "SKIP_VALUE")
"""Values of `unescapedQuoteHandling` that decide about a value with text after its quote."""


@dataclass(frozen=True, slots=True)
class RecordFit:
    """Whether Spark reads a record as it is meant, and whether it is a record if quotes are
    doubled, or if the escape is an escape."""

    is_sound: bool
    if_doubled: bool
    if_escaped: bool


@dataclass(frozen=True, slots=True)
class CsvDialect:
    """The form of CSV according to the options of a dataset; an empty quote, escape or comment is
    none.

    `escapes_escape` is set if another character than the escape itself escapes an escape. Without
    `line_break`, lines end as usual.
    """

    separator: str = ","
    quote: str = '"'
    escape: str = "\\"
    is_escape_stated: bool = False
    escapes_escape: str = ""
    comment: str = ""
    line_break: str = ""
    ignores_leading: bool = False
    ignores_trailing: bool = False
    handling: str = ""

    @classmethod
    def of(cls, options: Mapping[str, str]) -> CsvDialect:
        """The dialect of a dataset with these reader options."""
        given = {name.lower(): text for name, text in options.items()}
        separator = given.get("sep") or given.get("delimiter") or ","
        escape = given.get("escape", "\\").strip("\0")
        escaping = given.get("chartoescapequoteescaping", "").strip("\0")
        return cls(
            separator=separator.replace("\\t", "\t"),
            quote=given.get("quote", '"').strip("\0"),
            escape=escape,
            is_escape_stated="escape" in given,
            escapes_escape="" if escaping == escape else escaping,
            comment=given.get("comment", "").strip("\0"),
            line_break=given.get("linesep", ""),
            ignores_leading=given.get("ignoreleadingwhitespace", "").lower() == "true",
            ignores_trailing=given.get("ignoretrailingwhitespace", "").lower() == "true",
            handling=given.get("unescapedquotehandling", "").upper(),
        )

    def is_sound(self, text: str, *, is_file: bool) -> str:
        """Spark SQL that is true if Spark reads a text as it is meant.

        :param text: Spark SQL for a line, or for a whole file.
        """

        def fits(inside: str) -> str:
            pattern = self._file(inside) if is_file else rf"\A{self._record(inside)}\z"
            return f"{text} RLIKE {quote_literal(pattern)}"

        if self.escape == self.quote:
            return fits(self._doubled)
        if self.is_escape_stated:
            return fits(self._escaped)
        by_escape = f"({fits(self._escaped)} AND NOT {fits(self._doubled)})"
        return f"({fits(self._same)} OR {by_escape})"

    def fit_of(self, record: str) -> RecordFit:
        """The readings of quotes and escapes that a record fits."""
        if_doubled = self._end(self._doubled, record, 0) == len(record)
        if_escaped = self._end(self._escaped, record, 0) == len(record)
        if self.escape == self.quote:
            is_sound = if_doubled
        elif self.is_escape_stated:
            is_sound = if_escaped
        else:
            has_one_meaning = self._end(self._same, record, 0) == len(record)
            is_sound = has_one_meaning or (if_escaped and not if_doubled)
        return RecordFit(is_sound, if_doubled, if_escaped)

    def end_of_record(self, text: str, start: int) -> int | None:
        """The position of the line break behind a record of a whole file, which has no value that
        is still open there; None without such a position."""
        insides = (self._same, self._doubled, self._escaped)
        if self.escape == self.quote:
            insides = (self._doubled, self._same, self._escaped)
        for inside in insides:
            end = self._end(inside, text, start)
            if end is not None:
                return end
        return None

    def end_of_line(self, text: str, start: int) -> int:
        """The position of the first line break."""
        found = re.compile(self._break).search(text, start)
        return len(text) if found is None else found.start()

    def after_break(self, text: str, position: int) -> int:
        """The position behind the line break at a position, or the end."""
        found = re.compile(self._break).match(text, position)
        return len(text) if found is None else found.end()

    def _end(self, inside: str, text: str, start: int) -> int | None:
        """The position behind a record, at a line break or the end of the text."""
        pattern = rf"{self._record(inside)}(?={self._break}|\z)"
        # Without possessive quantifiers, which Python has only from 3.11 on.
        in_python = pattern.replace("*+", "*").replace("\\z", "\\Z")
        found = re.compile(in_python).match(text, start)
        return None if found is None else found.end()

    @property
    def _break(self) -> str:
        return re.escape(self.line_break) if self.line_break else r"\r\n|\r|\n"

    @property
    def _doubled(self) -> str:
        """The inside of quotes where quotes are doubled, and no other character is special."""
        quote = re.escape(self.quote)
        lost = re.escape(self.escapes_escape)
        return rf"[^{quote}{lost}]|{quote}{quote}{self._lone_quote}"

    @property
    def _escaped(self) -> str:
        """The inside of quotes where only the escape makes a quote part of a value."""
        if not self.escape or self.escape == self.quote:
            return self._same
        quote = re.escape(self.quote)
        escape = re.escape(self.escape)
        if not self.escapes_escape:
            return rf"[^{quote}{escape}]|{escape}(?s:.){self._lone_quote}"
        # Spark drops this character before some others.
        special = f"{quote}{escape}{re.escape(self.escapes_escape)}"
        return rf"[^{special}]|{escape}(?:{quote}|(?![{special}])){self._lone_quote}"

    @property
    def _same(self) -> str:
        """The inside of quotes that has one meaning, whatever the escape is."""
        quote = re.escape(self.quote)
        lost = re.escape(self.escapes_escape)
        if not self.escape or self.escape == self.quote:
            return rf"[^{quote}{lost}]{self._lone_quote}"
        escape = re.escape(self.escape)
        return rf"[^{quote}{escape}{lost}]|{escape}(?![{quote}{escape}{lost}]){self._lone_quote}"

    @property
    def _lone_quote(self) -> str:
        """A single quote that ends no value, where an option makes it part of one."""
        if self.handling != "STOP_AT_CLOSING_QUOTE":
            return ""
        quote = re.escape(self.quote)
        return rf"|{quote}(?!{quote}|{self._end_of_value})"

    @property
    def _end_of_value(self) -> str:
        trailing = _BLANKS if self.ignores_trailing else ""
        return rf"{trailing}(?:{re.escape(self.separator)}|{self._break}|\z)"

    def _record(self, inside: str) -> str:
        quote = re.escape(self.quote)
        separator = re.escape(self.separator)
        leading = _BLANKS if self.ignores_leading else ""
        trailing = _BLANKS if self.ignores_trailing else ""
        rest = rf"(?:(?!{separator}|{self._break})(?s:.))*+"
        after = f"(?!{quote}){rest}" if self.handling in _KEEPS_THE_REST else ""
        # Without an escape, Spark reads "" at the end of a line as a quote.
        filled = "" if self.escape else f"(?!{quote})"
        behind = rf"{after}(?={self._end_of_value}){trailing}"
        quoted = rf"{leading}{quote}{filled}(?:{inside})*+{quote}{behind}"
        value = rf"(?:{quoted}|(?!{leading}{quote}){rest})"
        return rf"(?:{value}{separator})*+{value}"

    def _file(self, inside: str) -> str:
        lines = ""
        if self.comment:
            comment = re.escape(self.comment)
            lines = rf"(?:(?<=\A|\n|\r){comment}[^\r\n]*+(?:{self._break}|\z))*+"
        record = self._record(inside)
        # Possessive, so that the length of a file does not affect the stack.
        return rf"\A(?:{lines}{record}(?:{self._break}))*+{lines}{record}\z"

    def loses_blank_lines(self, columns: int) -> bool:
        """True if a line of nothing but spaces is a row, which Spark skips."""
        if self.ignores_leading or self.ignores_trailing:
            return False
        return columns == 1 or not self.separator.strip()

    def values_in(self, record: str) -> tuple[int, bool]:
        """The number of values in a record, and whether it ends within one in quotes."""
        count = 0
        position = 0
        while True:
            count += 1
            if self.quote and record.startswith(self.quote, position):
                end = self._end_of_quoted(record, position + 1)
                if end is None:
                    return count, True
                position = end
            following = record.find(self.separator, position)
            if following < 0:
                return count, False
            position = following + len(self.separator)

    def _end_of_quoted(self, line: str, position: int) -> int | None:
        """The position after the closing quote; None if there is none."""
        while position < len(line):
            character = line[position]
            if character == self.escape != self.quote:
                position += 2
            elif character != self.quote:
                position += 1
            elif line.startswith(self.quote, position + 1):
                position += 2
            else:
                return position + 1
        return None


def faults_of_file(options: Mapping[str, str]) -> dict[str, str]:
    """Possible faults of the text of a CSV file, each with its condition as Spark SQL."""
    dialect = CsvDialect.of(options)
    if not dialect.quote:
        return {}
    return {MISREAD: f"NOT {dialect.is_sound(text_of(options), is_file=True)}"}


def faults_of_lines(
    options: Mapping[str, str], columns: int, *, may_quote: bool = True
) -> dict[str, str]:
    """Possible faults of a line of CSV, each with its condition as Spark SQL.

    :param columns: the number of columns of the file.
    :param may_quote: false if the files are known to have no quotes.
    """
    dialect = CsvDialect.of(options)
    text = text_of(options)
    faults = {}
    if dialect.quote and may_quote:
        is_quoted = f"instr({text}, {quote_literal(dialect.quote)}) > 0"
        is_sound = dialect.is_sound(text, is_file=False)
        faults[MISREAD] = f"({is_quoted}{_no_comment(dialect, text)} AND NOT {is_sound})"
    if dialect.loses_blank_lines(columns):
        separators = re.escape(dialect.separator) if columns > 1 else ""
        # As many separators as there are columns, all of them spaces to Spark.
        value = rf"(?:(?!{separators})[\x01-\x20])*+" if separators else _SPACES
        line = rf"\A(?=[\x01-\x20])(?:{value}{separators}){{{columns - 1}}}{value}\z"
        faults[SKIPPED] = f"({text} RLIKE {quote_literal(line)})"
    return faults


def misread_lines(
    options: Mapping[str, str], columns: int, *, may_quote: bool = True
) -> dict[str, str]:
    """The faults of lines that Spark does not count as malformed, with their conditions."""
    faults = faults_of_lines(options, columns, may_quote=may_quote)
    if MISREAD not in faults:
        return faults
    fields = ", ".join([*(f"c{number} STRING" for number in range(columns)), "line STRING"])
    parsing = {name: text for name, text in options.items() if name.lower() in _OF_PARSER}
    given = {**parsing, "mode": "PERMISSIVE", "columnNameOfCorruptRecord": "line"}
    pairs = ", ".join(quote_literal(word) for pair in given.items() for word in pair)
    parsed = f"from_csv({text_of(options)}, {quote_literal(fields)}, map({pairs}))"
    return {**faults, MISREAD: f"({faults[MISREAD]} AND {parsed}.line IS NULL)"}


_OF_PARSER = frozenset(
    {"sep", "delimiter", "quote", "escape", "chartoescapequoteescaping", "comment"}
    | {"ignoreleadingwhitespace", "ignoretrailingwhitespace", "unescapedquotehandling"}
    | {"maxcolumns", "maxcharspercolumn", "linesep"}
)
"""Options that decide how a line is split into values, in lower case."""


def _no_comment(dialect: CsvDialect, text: str) -> str:
    comment = dialect.comment
    return f" AND NOT startswith({text}, {quote_literal(comment)})" if comment else ""
