"""DQDL, the language of AWS Glue Data Quality.

What its rules mean is taken from Deequ, which implements them: `between` leaves both ends out, a
comparison of `ColumnValues` fails for NULL, `not in` and `!=` let NULL pass, a pattern is matched
as a whole.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from lark import Lark, Token, Tree
from lark.exceptions import UnexpectedInput

from dqx_airflow.migration.dql_text import (
    column_text,
    columns_text,
    percent_text,
    rows_text,
    value_text,
)
from dqx_airflow.migration.foreign_rule import Claims, ForeignRule, UntranslatableError
from dqx_airflow.migration.request import ImportRequest

_OPS = {"=": "==", "!=": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
_TYPES = {"boolean": "boolean", "date": "date", "timestamp": "timestamp", "integer": "int"}
_TYPES |= {"double": "double", "float": "float", "long": "bigint"}
_PRIMARY = re.compile(r"\bprimary\b")
"""What a query calls the dataset of its rule."""
_EMPTY_FILTER = "a rule whose filter selects no rows passes in Glue"


_RULES_SECTION = re.compile(r"^\s*Rules\s*=\s*\[", re.MULTILINE)


def recognises(text: str) -> bool:
    return _RULES_SECTION.search(text) is not None


def rules_of(text: str, request: ImportRequest) -> Iterator[ForeignRule]:
    """The rules of a file; what is no DQDL in one of them leaves the others as they are.

    :raises UntranslatableError: it is no DQDL.
    """
    dataset = request.dataset or "data"
    filled = _with_variables(text)
    try:
        sections = [child for child in _parser().parse(filled).children if isinstance(child, Tree)]
    except UnexpectedInput as error:
        entries = _entries(filled)
        if not entries:
            raise UntranslatableError(f"line {error.line}: not DQDL") from None
        for line, entry_text in entries:
            yield _single_rule(entry_text, dataset, f"{request.file}: line {line}")
        return
    for section in sections:
        name, *entries_ = section.children
        if name != "Rules":
            continue
        for entry in entries_:
            assert isinstance(entry, Tree)
            place = f"{request.file}: line {entry.meta.line}"
            shown = " ".join(filled[entry.meta.start_pos : entry.meta.end_pos].split())
            yield _rule(entry, dataset, place, shown)


_DICTIONARY = re.compile(r"\b(?:Metadata|DataSources)\s*=\s*\{[^{}]*\}")
_LABELS = re.compile(r"\bDefaultLabels\s*=\s*\[[^\]]*\]")
_DECLARED = re.compile(r'^[ \t]*(?P<name>\w+)\s*=\s*(?P<value>\[[^\]]*\]|"(?:\\.|[^"\\])*")', re.M)
_USED = re.compile(r"\$(\w+)")
_SECTIONS = ("Rules", "Analyzers")


def _with_variables(text: str) -> str:
    """The text with the values of its variables; sections that have no rules are blank lines."""
    values: dict[str, str] = {}

    def blank(found: re.Match[str]) -> str:
        return "\n" * found[0].count("\n")

    def declare(found: re.Match[str]) -> str:
        if found["name"] in _SECTIONS:
            return found[0]
        values[found["name"]] = " ".join(found["value"].split())
        return blank(found)

    head, rules, rest = text.partition("Rules")
    head = _DECLARED.sub(declare, _LABELS.sub(blank, _DICTIONARY.sub(blank, head)))
    return _USED.sub(lambda found: values.get(found[1], found[0]), head + rules + rest)


_TOKEN = re.compile(r'"(?:\\.|[^"\\])*"|#[^\n]*|.', re.DOTALL)
_START = re.compile(r"\s*(?:#[^\n]*\s*)*Rules\s*=\s*\[")


def _entries(text: str) -> list[tuple[int, str]]:
    """The entries of `Rules = [...]` with their lines; none where the brackets do not match."""
    start = _START.match(text)
    if start is None:
        return []
    found: list[tuple[int, str]] = []
    depth, begun = 1, start.end()
    for token in _TOKEN.finditer(text, start.end()):
        depth += {"[": 1, "(": 1, "]": -1, ")": -1}.get(token[0], 0)
        if depth == 0 or (depth == 1 and token[0] == ","):
            entry = text[begun : token.start()]
            begun = token.end()
            if entry.strip():
                ahead = len(entry) - len(entry.lstrip())
                found.append((text.count("\n", 0, token.start() - len(entry) + ahead) + 1, entry))
        if depth == 0:
            rest = text[token.end() :].lstrip()
            return found if not rest or rest.startswith("Analyzers") else []
    return []


def _single_rule(text: str, dataset: str, place: str) -> ForeignRule:
    document = f"Rules = [\n{text}\n]"
    try:
        (section,) = _parser().parse(document).children
    except UnexpectedInput:
        shown = " ".join(line for line in text.split("\n") if not line.lstrip().startswith("#"))
        return ForeignRule(dataset, place, " ".join(shown.split()), "not DQDL that is known")
    assert isinstance(section, Tree)
    entry = section.children[1]
    assert isinstance(entry, Tree)
    shown = " ".join(document[entry.meta.start_pos : entry.meta.end_pos].split())
    return _rule(entry, dataset, place, shown)


@cache
def _parser() -> Lark:
    grammar = files("dqx_airflow.migration").joinpath("dqdl.lark").read_text(encoding="utf-8")
    return Lark(grammar, parser="earley", propagate_positions=True, maybe_placeholders=False)


@dataclass(frozen=True, slots=True)
class _DqdlCondition:
    """A condition: `op` is a comparison, `between`, `in` or `matches`."""

    op: str
    operands: tuple[Any, ...]
    is_negated: bool = False


@dataclass(frozen=True, slots=True)
class _Keyword:
    """NULL, EMPTY or WHITESPACES_ONLY."""

    text: str


@dataclass(frozen=True, slots=True)
class _Rule:
    """A rule that is being translated."""

    name: str
    dataset: str
    parameters: tuple[str, ...]
    condition: _DqdlCondition | None
    threshold: _DqdlCondition | None

    @property
    def column(self) -> str:
        """:raises UntranslatableError: the rule is not about one column."""
        if len(self.parameters) != 1:
            raise UntranslatableError(f"{self.name} takes one column")
        return column_text(self.parameters[0])


def _rule(entry: Tree[Token], dataset: str, place: str, shown: str) -> ForeignRule:
    where = None
    try:
        entry = _ungrouped(entry)
        if entry.data == "rule":
            rule, where = _read(entry, dataset)
            meaning: Claims | str = _claims(rule)
        else:
            meaning = _composite(entry, dataset)
    except UntranslatableError as error:
        meaning = str(error)
    difference = _EMPTY_FILTER if where else None
    return ForeignRule(dataset, place, shown, meaning, where=where, difference=difference)


def _ungrouped(entry: Tree[Token]) -> Tree[Token]:
    while entry.data == "grouped":
        (inner,) = entry.children
        assert isinstance(inner, Tree)
        entry = inner
    return entry


def _claims(rule: _Rule) -> Claims:
    if rule.name not in _RULES:
        raise UntranslatableError(_REASONS.get(rule.name, f"{rule.name} has no counterpart"))
    reader, takes_threshold = _RULES[rule.name]
    if rule.threshold is not None and not takes_threshold:
        raise UntranslatableError("its threshold has no counterpart")
    return reader(rule)


def _composite(entry: Tree[Token], dataset: str) -> Claims:
    """`any { ... }` or `all { ... }` of the rules that `or` or `and` joins.

    :raises UntranslatableError: one of them has no counterpart, or a filter.
    """
    parts: list[str] = []
    others: list[str] = []
    for child in entry.children:
        assert isinstance(child, Tree)
        inner = _ungrouped(child)
        if inner.data == "rule":
            rule, where = _read(inner, dataset)
            if where is not None:
                raise UntranslatableError("a filter inside a composite has no counterpart")
            claims = _claims(rule)
        else:
            claims = _composite(inner, dataset)
        text = claims.texts[0] if len(claims.texts) == 1 else _block("all", claims.texts)
        parts.append(text)
        others += claims.others
    word = "all" if entry.data == "both" else "any"
    return Claims(f"{word} of {len(parts)}", (_block(word, parts),), others=tuple(others))


def _block(word: str, texts: Sequence[str]) -> str:
    return f"{word} {{ {' '.join(f'assert {text}' for text in texts)} }}"


def _read(tree: Tree[Token], dataset: str) -> tuple[_Rule, str | None]:
    name, parameters = "", []
    condition = threshold = where = None
    for child in tree.children:
        match child:
            case Token(type="NAME"):
                name = str(child)
            case Token(type="BARE"):
                parameters.append(str(child))
            case Token(type="STRING"):
                parameters.append(_string(child))
            case Tree(data="threshold"):
                threshold = _condition(child.children[0])
            case Tree(data="filter"):
                where = _string(child.children[0])
            case Tree(data="labels"):
                pass
            case _:
                condition = _condition(child)
    return _Rule(name, column_text(dataset), tuple(parameters), condition, threshold), where


def _string(token: object) -> str:
    return str(token)[1:-1].replace('\\"', '"').replace("\\\\", "\\")


def _condition(tree: Any) -> _DqdlCondition:
    children = list(tree.children)
    is_negated = bool(children) and isinstance(children[0], Token) and children[0].type == "NOT"
    rest = children[is_negated:]
    if tree.data == "comparison":
        op, operand = rest
        return _DqdlCondition(_OPS[str(op)], (_operand(operand),), is_negated)
    if tree.data == "matching":
        return _DqdlCondition("matches", (_string(rest[0]),), is_negated)
    op = {"between": "between", "listed": "in"}[tree.data]
    return _DqdlCondition(op, tuple(_operand(one) for one in rest), is_negated)


@dataclass(frozen=True, slots=True)
class _Duration:
    """`24 hours`, as DQL writes it."""

    text: str


def _operand(tree: Any) -> Any:
    match tree.data:
        case "number":
            text = str(tree.children[0])
            return float(text) if "." in text else int(text)
        case "string":
            return _string(tree.children[0])
        case "keyword":
            return _Keyword(str(tree.children[0]).upper())
        case "duration":
            count, unit = map(str, tree.children)
            return _Duration(f"{count} {unit}")
        case "grouped_operand":
            return _operand(tree.children[0])
        case "call" if str(tree.children[0]) == "now":
            return _Moment("current_timestamp()")
        case "computed":
            left, sign, right = tree.children
            start, length = _operand(left), _operand(right)
            if isinstance(start, _Moment) and isinstance(length, _Duration) and sign in "+-":
                count, unit = length.text.split()
                step = f"{unit.upper().removesuffix('S')}, {sign}{count}"
                return _Moment(f"timestampadd({step}, {start.sql})")
    raise UntranslatableError(
        "a computed operand has no counterpart: write its value, or `within 3 stddev of 30 days`"
    )


@dataclass(frozen=True, slots=True)
class _Moment:
    """`now()`, or a time before or after it, as Spark SQL."""

    sql: str


# Rules about numbers -----------------------------------------------------------------------------


def _compared(subject: str, condition: _DqdlCondition | None, *, unit: str = "") -> tuple[str, ...]:
    """The claims that a metric satisfies a condition.

    :raises UntranslatableError: there is none, or not one on numbers.
    """
    if condition is None:
        raise UntranslatableError("it has no condition")
    values = []
    for operand in condition.operands:
        if isinstance(operand, _Duration):
            values.append(operand.text)
        elif isinstance(operand, int | float):
            values.append(percent_text(operand) if unit == "share" else value_text(operand))
        else:
            raise UntranslatableError("its condition is not on numbers")
    match condition.op, condition.is_negated:
        case "between", False:
            low, high = values
            return f"{subject} > {low}", f"{subject} < {high}"
        case (("between" | "in" | "matches"), _):
            raise UntranslatableError("a list, or what lies outside of a range, is not one claim")
        case op, False:
            return (f"{subject} {op} {values[0]}",)
    raise UntranslatableError("its negation has no counterpart")


def _metric(kind: str, text: str, *, unit: str = "") -> Callable[[_Rule], Claims]:
    """A rule about a metric of a column; the braces stand for it."""

    def claims(rule: _Rule) -> Claims:
        column = rule.column
        return Claims(kind, _compared(text.format(column), rule.condition, unit=unit), column)

    return claims


def _row_count(rule: _Rule) -> Claims:
    return Claims("row_count", _compared("num_rows()", rule.condition))


def _correlation(rule: _Rule) -> Claims:
    columns = columns_text(rule.parameters)
    return Claims("correlation", _compared(f"correlation({columns})", rule.condition))


def _column_count(rule: _Rule) -> Claims:
    return Claims("column_count", _compared("column_count()", rule.condition))


def _custom_sql(rule: _Rule) -> Claims:
    if len(rule.parameters) != 1 or rule.condition is None:
        raise UntranslatableError(
            "Glue takes the rows of its query for those that pass: write it as a row predicate"
        )
    query = _PRIMARY.sub(lambda _: rule.dataset, rule.parameters[0].strip().rstrip(";"))
    return Claims("custom_sql", _compared(f"query({value_text(query)})", rule.condition))


def _freshness(rule: _Rule) -> Claims:
    column = rule.column
    return Claims("freshness", _compared(f"freshness({column})", rule.condition), column)


def _rows_against(rule: _Rule) -> Claims:
    if len(rule.parameters) != 1:
        raise UntranslatableError("RowCountMatch takes one dataset")
    other = column_text(rule.parameters[0])
    subject = f"num_rows(dataset {rule.dataset}) / num_rows(dataset {other})"
    return Claims("row_count_match", _compared(subject, rule.condition), others=(other,))


_AGGREGATE = re.compile(r"\s*(?P<metric>sum|avg)\s*\((?P<column>[^()]+)\)\s*", re.IGNORECASE)


def _aggregates_match(rule: _Rule) -> Claims:
    """The ratio of an aggregate to that of another dataset."""
    found = [_AGGREGATE.fullmatch(one) for one in rule.parameters]
    if len(found) != 2 or found[0] is None or found[1] is None:
        raise UntranslatableError('it takes two aggregates: "sum(a)" "sum(reference.a)"')
    dataset, _, name = found[1]["column"].rpartition(".")
    if not dataset:
        raise UntranslatableError("its second aggregate names no dataset")
    other = column_text(dataset)
    metrics = {"sum": "sum", "avg": "average"}
    own = f"{metrics[found[0]['metric'].lower()]}({column_text(found[0]['column'])}"
    theirs = f"{metrics[found[1]['metric'].lower()]}({column_text(name)}"
    subject = f"{own}, dataset {rule.dataset}) / {theirs}, dataset {other})"
    return Claims("aggregate_match", _compared(subject, rule.condition), others=(other,))


def _schemas_match(rule: _Rule) -> Claims:
    match rule.parameters, rule.condition:
        case [reference], _DqdlCondition("==", (1 | 1.0,), False):
            other = column_text(reference)
            text = f"columns of {rule.dataset} match {other}"
            return Claims("schema_match", (text,), others=(other,))
    raise UntranslatableError("a share of columns that match has no counterpart: write = 1.0")


# Rules about columns -----------------------------------------------------------------------------


def _complete(rule: _Rule) -> Claims:
    return Claims("is_complete", (f"null_count({rule.column}) == 0",), rule.column)


def _unique(rule: _Rule) -> Claims:
    """Rows in which all of the columns are NULL do not count."""
    if len(rule.parameters) == 1:
        return Claims("is_unique", (f"repeated_count({rule.column}) == 0",), rule.column)
    columns = columns_text(rule.parameters)
    there = " or ".join(f"{column_text(one)} is not null" for one in rule.parameters)
    return Claims("is_unique", (f"duplicate_count([{columns}], where {there}) == 0",))


def _primary_key(rule: _Rule) -> Claims:
    unique = _unique(rule)
    complete = tuple(f"null_count({column_text(one)}) == 0" for one in rule.parameters)
    return Claims("is_primary_key", (*unique.texts, *complete), unique.column)


def _exists(rule: _Rule) -> Claims:
    column = rule.column
    return Claims("column_exists", (f"column {column} exists",), column)


def _type(rule: _Rule) -> Claims:
    column, condition = rule.column, rule.condition
    match condition:
        case _DqdlCondition("==", (str(kind),), False) if kind.lower() in _TYPES:
            name = _TYPES[kind.lower()]
            text = value_text(
                f"count_if(`{column.strip('`')}` IS NOT NULL AND "
                f"TRY_CAST(`{column.strip('`')}` AS {name}) IS NULL)"
            )
            return Claims("column_data_type", (f"sql({text}) == 0",), column)
    raise UntranslatableError('it takes one type, such as = "INTEGER"')


def _references(rule: _Rule) -> Claims:
    if len(rule.parameters) != 2 or "." not in rule.parameters[1] or "," in rule.parameters[0]:
        raise UntranslatableError('it takes a column, and a column of a dataset: "ref.id"')
    own = column_text(rule.parameters[0])
    dataset, _, name = rule.parameters[1].partition(".")
    other = column_text(dataset)
    predicate = f"{own} in values({column_text(name.strip('{}'))}, dataset {other})"
    match rule.condition:
        case None | _DqdlCondition("==", (1 | 1.0,), False):
            share: float = 1
        case _DqdlCondition(">=", (int() | float() as share,), False):
            pass
        case _:
            raise UntranslatableError("its condition is a share of the rows, such as >= 0.9")
    return Claims("references", (rows_text(predicate, share),), own)


def _lengths(rule: _Rule) -> Claims:
    return _of_values(rule, "column_length", "length({})")


def _values(rule: _Rule) -> Claims:
    return _of_values(rule, "column_values", "{}")


def _of_values(rule: _Rule, kind: str, subject: str) -> Claims:
    column, condition = rule.column, rule.condition
    if condition is None:
        raise UntranslatableError("it has no condition")
    if any(isinstance(one, _Moment) for one in condition.operands):
        return _in_time(rule, kind)
    if condition.op in _LIMITING:
        for one in condition.operands:
            if isinstance(one, str) and _DAY.match(one) is None:
                raise UntranslatableError(f'"{one}" is neither a number nor a date')
    predicate = _predicate(column, subject.format(column), condition)
    match rule.threshold:
        case (
            None | _DqdlCondition(">=", (1 | 1.0,), False) | _DqdlCondition("==", (1 | 1.0,), False)
        ):
            return Claims(kind, (rows_text(predicate),), column)
        case _DqdlCondition(">=", (int() | float() as share,), False):
            return Claims(kind, (rows_text(predicate, share),), column)
    share_of_rows = f"num_rows(where {predicate}) / num_rows()"
    return Claims(kind, _compared(share_of_rows, rule.threshold, unit="share"), column)


_LIMITING = ("<", "<=", ">", ">=", "between")
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")


def _in_time(rule: _Rule, kind: str) -> Claims:
    """That each value compares so with the time of the run."""
    condition, column = rule.condition, rule.column
    if rule.threshold is not None or condition is None or condition.is_negated:
        raise UntranslatableError("a threshold for times has no counterpart")
    limits = []
    for one in condition.operands:
        match one:
            case _Moment(sql):
                limits.append(sql)
            case str() if _DAY.fullmatch(one):
                limits.append(f"DATE '{one}'")
            case _:
                raise UntranslatableError("it compares times with something else")
    name = f"`{column.strip('`')}`"
    match condition.op, limits:
        case "between", [low, high]:
            holds = f"{name} > {low} AND {name} < {high}"
        case ("<" | "<=" | ">" | ">=") as op, [limit]:
            holds = f"{name} {op} {limit}"
        case _:
            raise UntranslatableError("it compares times with something else")
    failing = value_text(f"count_if(NOT coalesce({holds}, false))")
    return Claims(kind, (f"sql({failing}) == 0",), column)


def _predicate(column: str, value: str, condition: _DqdlCondition) -> str:
    """A predicate that is never NULL: DQDL says what becomes of NULL, condition by condition."""
    words = [one.text for one in condition.operands if isinstance(one, _Keyword)]
    plain = [one for one in condition.operands if not isinstance(one, _Keyword)]
    if any(isinstance(one, _Duration) for one in plain):
        raise UntranslatableError("a duration has no counterpart here")
    there, missing = f"{column} is not null", f"{column} is null"
    op, is_not = condition.op, condition.is_negated
    if op in ("==", "!="):
        op, is_not = "in", is_not != (op == "!=")
    if op == "in":
        return _listed(column, value, plain, words, is_not=is_not)
    if words:
        raise UntranslatableError(f"{words[0]} is not a limit")
    texts = [value_text(one) for one in plain]
    match op:
        case "between" if is_not:
            low, high = texts
            return f"{there} and ({value} <= {low} or {value} >= {high})"
        case "between":
            low, high = texts
            return f"{there} and {value} > {low} and {value} < {high}"
        case "matches" if is_not:
            raise UntranslatableError(
                "`not matches` means a word that is not there: write it in DQL"
            )
        case "matches":
            pattern = value_text(f"^({plain[0]})$")
            return f"{there} and {value} matches {pattern}"
        case _ if not is_not:
            return f"{there} and {value} {op} {texts[0]}"
    return f"{missing} or not ({value} {op} {texts[0]})"


def _listed(
    column: str, value: str, plain: Sequence[Any], words: Sequence[str], *, is_not: bool
) -> str:
    there, missing = f"{column} is not null", f"{column} is null"
    blank = {"EMPTY": f'{column} == ""', "WHITESPACES_ONLY": f'{column} matches "^\\\\s+$"'}
    items = ", ".join(map(value_text, plain))
    if is_not:
        parts = [f"({missing} or {value} not in [{items}])"] if plain else []
        parts += [there] if "NULL" in words else []
        parts += [f"({missing} or not ({blank[word]}))" for word in words if word in blank]
        return " and ".join(parts)
    parts = [f"({there} and {value} in [{items}])"] if plain else []
    parts += [missing] if "NULL" in words else []
    parts += [f"({there} and {blank[word]})" for word in words if word in blank]
    return " or ".join(parts)


_BY_HISTORY = (
    "Glue learns its bounds from past runs: write a bound, or `within 3 stddev of 30 days`"
)
_REASONS = {
    "DetectAnomalies": _BY_HISTORY,
    "AllStatistics": _BY_HISTORY,
    "FileFreshness": "it is about files, not rows: `commit_age()` or `freshness(column)`",
    "FileUniqueness": "it is about files, not rows",
    "FileMatch": "it is about files, not rows",
    "FileSize": "it is about files, not rows",
    "DatasetMatch": "it compares all columns, and names none: write `rows of a match b on (key) "
    "comparing [columns]`",
    "ColumnNamesMatchPattern": "names of columns are listed: `extra_column_count([...]) == 0`",
}
_RULES: dict[str, tuple[Callable[[_Rule], Claims], bool]] = {
    "RowCount": (_row_count, False),
    "ColumnCount": (_column_count, False),
    "ColumnExists": (_exists, False),
    "ColumnDataType": (_type, False),
    "IsComplete": (_complete, False),
    "Completeness": (_metric("completeness", "count({0}) / num_rows()", unit="share"), False),
    "IsUnique": (_unique, False),
    "IsPrimaryKey": (_primary_key, False),
    "Uniqueness": (_metric("uniqueness", "uniqueness({})", unit="share"), False),
    "UniqueValueRatio": (
        _metric("unique_value_ratio", "unique_value_ratio({})", unit="share"),
        False,
    ),
    "Entropy": (_metric("entropy", "entropy({})"), False),
    "DistinctValuesCount": (_metric("distinct_values_count", "unique_count({})"), False),
    "ColumnValues": (_values, True),
    "ColumnLength": (_lengths, True),
    "Mean": (_metric("mean", "average({})"), False),
    "Sum": (_metric("sum", "sum({})"), False),
    "StandardDeviation": (_metric("standard_deviation", 'sql("stddev_pop({})")'), False),
    "ColumnCorrelation": (_correlation, False),
    "CustomSql": (_custom_sql, False),
    "ReferentialIntegrity": (_references, False),
    "DataFreshness": (_freshness, False),
    "RowCountMatch": (_rows_against, False),
    "AggregateMatch": (_aggregates_match, False),
    "SchemaMatch": (_schemas_match, False),
}
"""The rule types: how each is read, and whether it takes a threshold."""
