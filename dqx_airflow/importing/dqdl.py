"""DQDL, the language of AWS Glue Data Quality: parses the rules of a file and their composition,
and translates each rule.

The meaning of rules is taken from Deequ, which implements them: `between` leaves both ends out, a
comparison of `ColumnValues` fails for NULL, `not in` and `!=` let NULL pass, a pattern must match
the entire value.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from importlib.resources import files
from typing import Any

from lark import Lark, Token, Tree
from lark.exceptions import UnexpectedInput

from dqx_airflow.contracts.compile.terms import sql_name
from dqx_airflow.errors import NoCounterpartError
from dqx_airflow.importing import foreign_rule
from dqx_airflow.importing.deequ import matching_text, rows_of_repeated_values
from dqx_airflow.importing.foreign_rule import Claims, ForeignRule, column_text, value_text
from dqx_airflow.values.exact import finite_number

_OPS = {"=": "==", "!=": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}


@cache
def parser() -> Lark:
    """The parser of files: a tree of sections with entries."""
    grammar = files("dqx_airflow.importing").joinpath("dqdl.lark").read_text(encoding="utf-8")
    return Lark(grammar, parser="earley", propagate_positions=True, maybe_placeholders=False)


@dataclass(frozen=True, slots=True)
class DqdlCondition:
    """A condition: `op` is a comparison, `between`, `in` or `matches`."""

    op: str
    operands: tuple[Any, ...]
    is_negated: bool = False


@dataclass(frozen=True, slots=True)
class PastMean:
    """A number computed from the mean of the last runs, for which the braces in `text` stand."""

    count: int
    text: str = "{}"


@dataclass(frozen=True, slots=True)
class DqdlKeyword:
    """NULL, EMPTY or WHITESPACES_ONLY."""

    text: str


@dataclass(frozen=True, slots=True)
class Duration:
    """A duration such as `24 hours`, in the syntax of DQL."""

    text: str


@dataclass(frozen=True, slots=True)
class Timestamp:
    """The timestamp `now()`, or an earlier or later one, as Spark SQL."""

    sql: str


@dataclass(frozen=True, slots=True)
class DqdlRule:
    """A parsed rule."""

    name: str
    dataset: str
    parameters: tuple[str, ...]
    condition: DqdlCondition | None
    threshold: DqdlCondition | None
    tags: tuple[str, ...] = ()
    """The names of its other settings, such as `hashAlgorithm`."""

    @property
    def column(self) -> str:
        """:raises NoCounterpartError: the rule is not about a single column."""
        if len(self.parameters) != 1:
            raise NoCounterpartError(f"only {self.name} of one column has a counterpart")
        return column_text(self.parameters[0])


def rule_of(tree: Tree[Token], dataset: str) -> tuple[DqdlRule, str | None]:
    """The rule in an entry, and the filter after it, if there is one.

    :raises NoCounterpartError: an operand has no counterpart.
    """
    name, parameters = "", []
    tags: list[str] = []
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
                if threshold is not None:
                    raise NoCounterpartError("it has two thresholds: remove one of them")
                threshold = _condition(child.children[0])
            case Tree(data="tag"):
                tags.append(str(child.children[0]))
            case Tree(data="filter"):
                if where is not None:
                    raise NoCounterpartError("it has two filters: join them with AND")
                where = _string(child.children[0])
            case Tree(data="labels"):
                pass
            case _:
                condition = _condition(child)
    dataset_name = column_text(dataset)
    rule = DqdlRule(name, dataset_name, tuple(parameters), condition, threshold, tuple(tags))
    return rule, where


def _string(token: object) -> str:
    return str(token)[1:-1].replace('\\"', '"').replace("\\\\", "\\")


def _condition(tree: Any) -> DqdlCondition:
    children = list(tree.children)
    is_negated = bool(children) and isinstance(children[0], Token) and children[0].type == "NOT"
    rest = children[1:] if is_negated else children
    if tree.data == "comparison":
        op, operand = rest
        return DqdlCondition(_OPS[str(op)], (_operand(operand),), is_negated)
    if tree.data == "matching":
        return DqdlCondition("matches", (_string(rest[0]),), is_negated)
    op = {"between": "between", "listed": "in"}[tree.data]
    return DqdlCondition(op, tuple(_operand(operand) for operand in rest), is_negated)


def _operand(tree: Any) -> Any:
    match tree.data:
        case "number":
            return foreign_rule.finite(finite_number(str(tree.children[0])))
        case "string":
            return _string(tree.children[0])
        case "keyword":
            return DqdlKeyword(str(tree.children[0]).upper())
        case "duration":
            count, unit = map(str, tree.children)
            return Duration(f"{count} {unit}")
        case "size":
            return " ".join(map(str, tree.children))
        case "grouped_operand":
            return _operand(tree.children[0])
        case "call" if str(tree.children[0]) == "now":
            return Timestamp("current_timestamp()")
        case "call" if past := _PAST.fullmatch(_written(tree)):
            return PastMean(int(past["count"]))
        case "computed":
            left, sign, right = tree.children
            start, length = _operand(left), _operand(right)
            match start, length:
                case PastMean(runs, text), int() | float():
                    return PastMean(runs, f"{text} {sign} {value_text(length)}")
                case ((int() | float()), PastMean(runs, "{}" as text)):
                    return PastMean(runs, f"{value_text(start)} {sign} {text}")
            if isinstance(start, Timestamp) and isinstance(length, Duration) and sign in "+-":
                count, unit = length.text.split()
                step = f"{unit.upper().removesuffix('S')}, {sign}{count}"
                return Timestamp(f"timestampadd({step}, {start.sql})")
    raise NoCounterpartError(
        "a computed operand has no counterpart: write its value, or `within 3 stddev of 30 days`"
    )


_PAST = re.compile(r"avg\( last\( (?P<count>[1-9]\d{0,2}) \) \)")


def _written(tree: Any) -> str:
    """A parsed call as text, with blanks between its tokens."""
    if isinstance(tree, Token):
        return str(tree)
    head, *rest = map(_written, tree.children)
    return f"{head}( {' '.join(rest)} )" if tree.data == "call" else head


_PRIMARY = re.compile(r"\bprimary\b")
"""The name of the dataset of the rule in a query."""


def claims_of(rule: DqdlRule) -> Claims:
    """Translates a rule to claims.

    :raises NoCounterpartError: it has no counterpart.
    """
    if rule.name not in _RULES:
        foreign_rule.refuse_listed("dqdl", rule.name, f"{rule.name} has no counterpart")
    if rule.tags:
        raise NoCounterpartError(f"`with {rule.tags[0]}` has no counterpart")
    if rule.threshold is not None and rule.name not in _WITH_THRESHOLD:
        raise NoCounterpartError("its threshold has no counterpart")
    return _RULES[rule.name](rule)


# Rules about numbers -----------------------------------------------------------------------------


_CALL = re.compile(r"(?P<metric>[a-z_]+)\((?P<arguments>[^()]*)\)")
"""The only form of a metric whose past values can be requested: one call, without SQL."""


def _compared(
    subject: str, condition: DqdlCondition | None, *, is_share: bool = False
) -> tuple[str, ...]:
    """The claims that a metric satisfies a condition.

    :raises NoCounterpartError: there is no condition, or it is not on numbers.
    """
    if condition is None:
        raise NoCounterpartError("it has no condition")
    values = []
    for operand in condition.operands:
        if isinstance(operand, Duration):
            values.append(operand.text)
        elif isinstance(operand, int | float):
            values.append(foreign_rule.percent_text(operand) if is_share else value_text(operand))
        elif isinstance(operand, PastMean) and (call := _CALL.fullmatch(subject)):
            lagged = ", ".join(filter(None, (call["arguments"], "lag 1")))
            past = f"mean({call['metric']}({lagged}), n {operand.count})"
            values.append(operand.text.format(past))
        else:
            raise NoCounterpartError("its condition does not compare numbers")
    match condition.op, condition.is_negated:
        case "between", False:
            low, high = values
            return f"{subject} > {low}", f"{subject} < {high}"
        case "between", True:
            low, high = values
            return (_block("any", (f"{subject} <= {low}", f"{subject} >= {high}")),)
        case "in", False:
            listed = [f"{subject} == {value}" for value in dict.fromkeys(values)]
            return (listed[0] if len(listed) == 1 else _block("any", listed),)
        case "in", True:
            return tuple(f"{subject} != {value}" for value in dict.fromkeys(values))
        case op, False if op in _OPS.values():
            return (f"{subject} {op} {values[0]}",)
    raise NoCounterpartError("its condition has no counterpart: write it in DQL")


def _metric(kind: str, text: str, rule: DqdlRule, *, is_share: bool = False) -> Claims:
    """The claims of a rule about a metric; the braces in `text` stand for the column."""
    column = rule.column if "{" in text else None
    return Claims(kind, _compared(text.format(column), rule.condition, is_share=is_share), column)


def _claim(kind: str, text: str, rule: DqdlRule) -> Claims:
    """The claim of a rule about a column; the braces in `text` stand for the column."""
    return Claims(kind, (text.format(rule.column),), rule.column)


def _correlation(rule: DqdlRule) -> Claims:
    columns = foreign_rule.columns_text(rule.parameters)
    return Claims("correlation", _compared(f"correlation({columns})", rule.condition))


def _custom_sql(rule: DqdlRule) -> Claims:
    if len(rule.parameters) != 1 or rule.condition is None:
        raise NoCounterpartError(
            "in Glue, the rows that its query returns pass: write it as a row predicate"
        )
    query = _PRIMARY.sub(lambda _: rule.dataset, rule.parameters[0].strip().rstrip(";"))
    return Claims("custom_sql", _compared(f"query({value_text(query)})", rule.condition))


def _rows_against(rule: DqdlRule) -> Claims:
    if len(rule.parameters) != 1:
        raise NoCounterpartError("RowCountMatch takes one dataset")
    other = column_text(rule.parameters[0])
    subject = f"num_rows(dataset {rule.dataset}) / num_rows(dataset {other})"
    return Claims("row_count_match", _compared(subject, rule.condition), others=(other,))


_AGGREGATE = re.compile(r"\s*(?P<metric>sum|avg)\s*\((?P<column>[^()]+)\)\s*", re.IGNORECASE)


def _aggregates_match(rule: DqdlRule) -> Claims:
    """Claims on the ratio of an aggregate to an aggregate of another dataset."""
    matches = [_AGGREGATE.fullmatch(parameter) for parameter in rule.parameters]
    if len(matches) != 2 or matches[0] is None or matches[1] is None:
        raise NoCounterpartError('it takes two aggregates: "sum(a)" "sum(reference.a)"')
    dataset, _, name = matches[1]["column"].rpartition(".")
    if not dataset:
        raise NoCounterpartError("its second aggregate does not name a dataset")
    other = column_text(dataset)
    metrics = {"sum": "sum", "avg": "average"}
    aggregate = f"{metrics[matches[0]['metric'].lower()]}({column_text(matches[0]['column'])}"
    theirs = f"{metrics[matches[1]['metric'].lower()]}({column_text(name)}"
    subject = f"{aggregate}, dataset {rule.dataset}) / {theirs}, dataset {other})"
    return Claims("aggregate_match", _compared(subject, rule.condition), others=(other,))


def _schemas_match(rule: DqdlRule) -> Claims:
    match rule.parameters, rule.condition:
        case [reference], DqdlCondition("==", (1 | 1.0,), False):
            other = column_text(reference)
            text = f"columns of {rule.dataset} match {other}"
            return Claims("schema_match", (text,), others=(other,))
    raise NoCounterpartError("a share of columns that match has no counterpart: write = 1.0")


# Rules about columns -----------------------------------------------------------------------------


def _duplicate_rows(rule: DqdlRule) -> Claims:
    """:raises NoCounterpartError: it is about all columns of the table."""
    if rule.condition == DqdlCondition("==", (0,), False):
        return _unique(rule)
    if not rule.parameters:
        raise NoCounterpartError("it compares all columns without listing them: list the columns")
    columns = [column_text(name) for name in rule.parameters]
    query = rows_of_repeated_values(columns, sql_name(rule.dataset))
    return Claims("duplicate_rows", _compared(f"query({value_text(query)})", rule.condition))


def _unique(rule: DqdlRule) -> Claims:
    """Rows in which all of the columns are NULL do not count."""
    if len(rule.parameters) == 1:
        return Claims("is_unique", (f"repeated_count({rule.column}) == 0",), rule.column)
    columns = foreign_rule.columns_text(rule.parameters)
    present = " or ".join(f"{column_text(column)} is not null" for column in rule.parameters)
    return Claims("is_unique", (f"duplicate_count([{columns}], where {present}) == 0",))


def _primary_key(rule: DqdlRule) -> Claims:
    unique = _unique(rule)
    complete = tuple(f"null_count({column_text(column)}) == 0" for column in rule.parameters)
    return Claims("is_primary_key", (*unique.texts, *complete), unique.column)


def _type(rule: DqdlRule) -> Claims:
    column, types = rule.column, foreign_rule.listed_rules("dqdl: types")
    match rule.condition:
        case DqdlCondition("==", (str(kind),), False) if kind.lower() in types:
            (name,) = types[kind.lower()]
            text = value_text(f"count_if(TRY_CAST(`{column.strip('`')}` AS {name}) IS NULL)")
            return Claims("column_data_type", (f"sql({text}) == 0",), column)
    raise NoCounterpartError('it takes one type, such as = "INTEGER"')


def _references(rule: DqdlRule) -> Claims:
    columns, dataset, others = _keys(rule.parameters)
    other = column_text(dataset)
    share = _least_share(rule.condition)
    if len(columns) == 1 and share is not None:
        (column,) = columns
        looked_up = f"{column} in values({others[0]}, dataset {other})"
        predicate = f"{column} is not null and {looked_up}"
        return Claims("references", (foreign_rule.rows_text(predicate, share),), column)
    equal = " AND ".join(
        f"there.{sql_name(theirs)} = here.{sql_name(ours)}"
        for ours, theirs in zip(columns, others, strict=True)
    )
    table = sql_name(rule.dataset)
    joined = ("AS here LEFT SEMI JOIN", sql_name(other), "AS there ON", equal)
    found = " ".join(("SELECT count(*) FROM", table, *joined))
    query = " ".join(("SELECT", f"({found}) / nullif(count(*), 0)", "FROM", table))
    condition = rule.condition or DqdlCondition("==", (1,), False)
    compared = _compared(f"query({value_text(query)})", condition, is_share=True)
    return Claims("references", compared, others=(other,))


def _keys(parameters: Sequence[str]) -> tuple[list[str], str, list[str]]:
    """The columns of a reference, its dataset, and the columns there: `"a,b" "ref.{c,d}"`; the
    dataset is the table of `"database.table.column"`.

    :raises NoCounterpartError: there are not as many columns on both sides.
    """
    wanted = 'it takes a column, and a column of a dataset, such as "ref.id" or "ref.{id,day}"'
    if len(parameters) != 2 or "." not in parameters[1]:
        raise NoCounterpartError(wanted)
    table, _, names = parameters[1].partition("{")
    if not names:
        table, _, names = parameters[1].rpartition(".")
    dataset = table.rstrip(".").split(".")[-1]
    columns = [column_text(name) for name in parameters[0].split(",")]
    others = [column_text(name) for name in names.rstrip("}").split(",")]
    if len(columns) != len(others) or not dataset:
        raise NoCounterpartError(wanted)
    return columns, dataset, others


def _least_share(condition: DqdlCondition | None) -> float | None:
    """The least share of the rows that a condition requires: 1 without a condition; None if the
    condition has another form."""
    match condition:
        case None | DqdlCondition("==", (1 | 1.0,), False):
            return 1
        case DqdlCondition(">=", (int() | float() as share,), False):
            return share
    return None


def _of_values(rule: DqdlRule, kind: str, subject: str) -> Claims:
    column, condition = rule.column, rule.condition
    if condition is None:
        raise NoCounterpartError("it has no condition")
    if any(isinstance(operand, Timestamp) for operand in condition.operands):
        return _in_time(rule, kind)
    if condition.op in _LIMITING:
        for operand in condition.operands:
            if isinstance(operand, str) and _DAY.match(operand) is None:
                raise NoCounterpartError(f'"{operand}" is neither a number nor a date')
    predicate = _predicate(column, subject.format(column), condition)
    if (share := _least_share(rule.threshold)) is not None:
        return Claims(kind, (foreign_rule.rows_text(predicate, share),), column)
    share_of_rows = f"num_rows(where {predicate}) / num_rows()"
    return Claims(kind, _compared(share_of_rows, rule.threshold, is_share=True), column)


_LIMITING = ("<", "<=", ">", ">=", "between")
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")


def _in_time(rule: DqdlRule, kind: str) -> Claims:
    """The claims that each value satisfies a comparison with dates or the time of the run."""
    condition, column = rule.condition, rule.column
    if rule.threshold is not None or condition is None or condition.is_negated:
        raise NoCounterpartError("a threshold for times has no counterpart")
    limits = []
    for operand in condition.operands:
        match operand:
            case Timestamp(sql):
                limits.append(sql)
            case str() if _DAY.fullmatch(operand):
                limits.append(f"DATE '{operand}'")
            case _:
                raise NoCounterpartError("it does not compare times")
    if condition.op not in _LIMITING:
        raise NoCounterpartError("it does not compare times")
    return _each_in_sql(kind, column, f"`{column.strip('`')}`", condition.op, limits)


def _each_in_sql(kind: str, column: str, subject: str, op: str, limits: Sequence[str]) -> Claims:
    """The claim that an SQL expression satisfies a comparison in each row, and is not NULL."""
    holds = f"{subject} {op} {limits[0]}"
    if op == "between":
        holds = f"{subject} > {limits[0]} AND {subject} < {limits[1]}"
    failing = value_text(f"count_if(NOT coalesce({holds}, false))")
    return Claims(kind, (f"sql({failing}) == 0",), column)


def _predicate(column: str, value: str, condition: DqdlCondition) -> str:
    """A predicate that is never NULL: DQDL defines the result for NULL for each condition."""
    words = [operand.text for operand in condition.operands if isinstance(operand, DqdlKeyword)]
    plain = [operand for operand in condition.operands if not isinstance(operand, DqdlKeyword)]
    if any(isinstance(operand, Duration | PastMean) for operand in plain):
        raise NoCounterpartError("a duration, or a mean of past runs, has no counterpart here")
    present, missing = f"{column} is not null", f"{column} is null"
    op, is_not = condition.op, condition.is_negated
    if op in ("==", "!="):
        op, is_not = "in", is_not != (op == "!=")
    if op == "in":
        return _listed(column, value, plain, words, is_not=is_not)
    if words:
        raise NoCounterpartError(f"{words[0]} is not a limit")
    texts = [value_text(operand) for operand in plain]
    match op:
        case "between" if is_not:
            low, high = texts
            outside = f"({value} <= {low} or {value} >= {high})"
            is_number = value == column and not isinstance(plain[0], str)
            return f"{present} and {outside}" if is_number else f"{missing} or {outside}"
        case "between":
            low, high = texts
            return f"{present} and {value} > {low} and {value} < {high}"
        case "matches" if is_not:
            raise NoCounterpartError("`not matches` has no counterpart: write it in DQL")
        case "matches":
            return matching_text(column, f"^{plain[0]}$")
        case _ if not is_not:
            return f"{present} and {value} {op} {texts[0]}"
    return f"{missing} or not ({value} {op} {texts[0]})"


def _listed(
    column: str, value: str, plain: Sequence[Any], words: Sequence[str], *, is_not: bool
) -> str:
    present, missing = f"{column} is not null", f"{column} is null"
    spaces = f'trim({column}) == "" and {column} != ""'
    blank = {"EMPTY": f'{column} == ""', "WHITESPACES_ONLY": spaces}
    items = ", ".join(map(value_text, plain))
    if is_not:
        parts = [f"({missing} or {value} not in [{items}])"] if plain else []
        parts += [present] if "NULL" in words else []
        parts += [f"({present} and not ({blank[word]}))" for word in words if word in blank]
        return " and ".join(parts)
    parts = [f"({present} and {value} in [{items}])"] if plain else []
    parts += [missing] if "NULL" in words else []
    parts += [f"({present} and {blank[word]})" for word in words if word in blank]
    return " or ".join(parts)


_ENDS = {"<": ("max",), "<=": ("max",), ">": ("min",), ">=": ("min",)}
"""The lengths that a comparison limits; any other comparison limits both."""


def _of_lengths(rule: DqdlRule) -> Claims:
    """Limits are for the shortest and the longest value, without NULL; NULL is in a list with 0."""
    kind, condition, column = "column_length", rule.condition, rule.column
    if condition is None or rule.threshold is not None:
        return _of_values(rule, kind, "length({})")
    match condition.op, condition.is_negated:
        case "between", False:
            low, high = condition.operands
            limits = [("min", ">", low), ("max", "<", high)]
        case op, False if op in _OPS.values():
            limits = [(end, op, condition.operands[0]) for end in _ENDS.get(op, ("min", "max"))]
        case _, True if 0 in condition.operands:
            raise NoCounterpartError("with 0 it only tests for NULL: write the lengths in DQL")
        case _:
            words = (DqdlKeyword("NULL"),) if 0 in condition.operands else ()
            listed = replace(condition, operands=(*condition.operands, *words))
            return _of_values(replace(rule, condition=listed), kind, "length({})")
    texts = (
        f"{end}_length({column}) {op} {value_text(foreign_rule.finite(it))}"
        for end, op, it in limits
    )
    return Claims(kind, tuple(texts), column)


def _fresh(rule: DqdlRule) -> Claims:
    """Every value is of such an age, rounded to hundredths of an hour."""
    column, condition = rule.column, rule.condition
    hours = []
    for operand in condition.operands if condition is not None else ():
        if not isinstance(operand, Duration):
            raise NoCounterpartError("it does not compare with a duration")
        count, unit = operand.text.split()
        amount = float(count) * _HOURS[unit.removesuffix("s")]
        hours.append(value_text(round(amount, 4)))
    name = f"`{column.strip('`')}`"
    seconds = f"unix_timestamp(current_timestamp()) - unix_timestamp(to_timestamp({name}))"
    age = f"round(({seconds}) / 3600, 2)"
    match condition:
        case DqdlCondition(op, _, False) if op == "between" or op in _OPS.values():
            return _each_in_sql("freshness", column, age, op, hours)
    raise NoCounterpartError("its condition has to be about an age, such as <= 24 hours")


_HOURS = {"minute": 1 / 60, "hour": 1, "day": 24}
_WITH_THRESHOLD = ("ColumnValues", "ColumnLength")
_RULES: Mapping[str, Callable[[DqdlRule], Claims]] = {
    "ColumnDataType": _type,
    **foreign_rule.listed_readers("dqdl: metrics", _metric),
    **foreign_rule.listed_readers("dqdl: shares", partial(_metric, is_share=True)),
    **foreign_rule.listed_readers("dqdl: assertions", _claim),
    "IsUnique": _unique,
    "DuplicateRowCount": _duplicate_rows,
    "IsPrimaryKey": _primary_key,
    "ColumnValues": partial(_of_values, kind="column_values", subject="{}"),
    "ColumnLength": _of_lengths,
    "DataFreshness": _fresh,
    "ColumnCorrelation": _correlation,
    "CustomSql": _custom_sql,
    "ReferentialIntegrity": _references,
    "RowCountMatch": _rows_against,
    "AggregateMatch": _aggregates_match,
    "SchemaMatch": _schemas_match,
}
"""The translation of each type of rule."""


_DAYS_NOT_RUNS = "Glue takes the mean of the last runs; here the mean of the last days"
_EMPTY_FILTER = "a rule whose filter selects no rows passes in Glue but fails here"
_BETWEEN_STRINGS = re.compile(r"""\[[^\]]*("[^"]*")\s+("[^"]*")""")
"""Two strings of a list without a comma between them."""
_STRING = re.compile(r"""\"(?:\\.|[^"\\])*\"""")
_RULES_SECTION = re.compile(r"^\s*Rules\s*=\s*\[", re.MULTILINE)


def recognises(text: str) -> bool:
    return _RULES_SECTION.search(text) is not None


def rules_of(text: str, request: foreign_rule.ImportRequest) -> Iterator[ForeignRule]:
    """The rules of a file; an invalid rule does not affect the others.

    :raises NoCounterpartError: the text is not DQDL.
    """
    dataset = request.dataset or "data"
    filled = _with_variables(text)
    try:
        sections = [child for child in parser().parse(filled).children if isinstance(child, Tree)]
    except UnexpectedInput as error:
        entries = _entries(filled)
        if not entries:
            line = error.line if error.line > 0 else len(text.splitlines())  # -1 at the end
            raise NoCounterpartError(f"line {line}: invalid DQDL{_found(error, filled)}") from None
        for line, entry_text in entries:
            yield _single_rule(entry_text, dataset, f"{request.file}: line {line}")
        return
    for section in sections:
        name, *entries_ = section.children
        if name != "Rules":
            continue
        for entry in entries_:
            assert isinstance(entry, Tree)
            yield _rule(entry, filled, dataset, f"{request.file}: line {entry.meta.line}")


def _found(error: UnexpectedInput, text: str) -> str:
    """The text at which a file is invalid, and what to write for a common mistake."""
    if error.pos_in_stream is None or error.pos_in_stream < 0:
        return ": a bracket is not closed"
    if _COMMA.match(text[: error.pos_in_stream + 1][::-1]):
        return ": remove the comma behind the `]`"
    rest = text[error.pos_in_stream :].split()
    return f": unexpected `{rest[0]}`" if rest else ""


_COMMA = re.compile(r"\s*,\s*\]")
"""A comma behind a section, read backwards."""
_DICTIONARY = re.compile(r"\b(?:Metadata|DataSources)\s*=\s*\{[^{}]*\}")
_LABELS = re.compile(r"\bDefaultLabels\s*=\s*\[[^\]]*\]")
_DECLARED = re.compile(r'^[ \t]*(?P<name>\w+)\s*=\s*(?P<value>\[[^\]]*\]|"(?:\\.|[^"\\])*")', re.M)
_USED = re.compile(r"\$(\w+)")
_SECTIONS = ("Rules", "Analyzers")


def _with_variables(text: str) -> str:
    """The text with the values of its variables; sections without rules become blank lines."""
    values: dict[str, str] = {}

    def blank(match: re.Match[str]) -> str:
        return "\n" * match[0].count("\n")

    def declare(match: re.Match[str]) -> str:
        if match["name"] in _SECTIONS:
            return match[0]
        values[match["name"]] = " ".join(match["value"].split())
        return blank(match)

    head, rules, rest = text.partition("Rules")
    head = _DECLARED.sub(declare, _LABELS.sub(blank, _DICTIONARY.sub(blank, head)))
    return _USED.sub(lambda match: values.get(match[1], match[0]), head + rules + rest)


_TOKEN = re.compile(r'"(?:\\.|[^"\\])*"|#[^\n]*|.', re.DOTALL)
_START = re.compile(r"\s*(?:#[^\n]*\s*)*Rules\s*=\s*\[")


def _entries(text: str) -> list[tuple[int, str]]:
    """The entries of `Rules = [...]` with their lines; none if the brackets do not match."""
    start = _START.match(text)
    if start is None:
        return []
    entries: list[tuple[int, str]] = []
    depth, begun = 1, start.end()
    for token in _TOKEN.finditer(text, start.end()):
        depth += {"[": 1, "(": 1, "]": -1, ")": -1}.get(token[0], 0)
        if depth == 0 or (depth == 1 and token[0] == ","):
            entry = text[begun : token.start()]
            begun = token.end()
            if entry.strip():
                ahead = len(entry) - len(entry.lstrip())
                entries.append((text.count("\n", 0, token.start() - len(entry) + ahead) + 1, entry))
        if depth == 0:
            rest = text[token.end() :].lstrip()
            return entries if not rest or rest.startswith("Analyzers") else []
    return []


def _single_rule(text: str, dataset: str, place: str) -> ForeignRule:
    document = f"Rules = [\n{text}\n]"
    try:
        (section,) = parser().parse(document).children
    except UnexpectedInput:
        shown = " ".join(line for line in text.split("\n") if not line.lstrip().startswith("#"))
        variable = _USED.search(shown)
        reason = f"the variable {variable[0]} has no value here" if variable else "unknown DQDL"
        if not variable and (missing := _BETWEEN_STRINGS.search(shown)) is not None:
            reason = f"a comma is missing between {missing[1]} and {missing[2]}"
        return ForeignRule(dataset, place, " ".join(shown.split()), reason)
    assert isinstance(section, Tree)
    entry = section.children[1]
    assert isinstance(entry, Tree)
    return _rule(entry, document, dataset, place)


def _second_rule(shown: str) -> str | None:
    """The name of a second rule within the text of one, whose comma is missing."""
    _, *following = _STRING.sub("", shown).split()
    for word in following:
        if word in _RULES:
            return word
    return None


def _fails_without_rows(claim: str) -> bool:
    """Whether a claim fails if no row meets its filter, where Glue passes. A number of rows or of
    values is 0 in both."""
    is_count = claim.startswith(("num_rows() ", "unique_count("))
    return not is_count and not foreign_rule.passes_without_rows(claim)


def _rule(entry: Tree[Token], text: str, dataset: str, place: str) -> ForeignRule:
    """The rule in an entry of a file; an entry without a counterpart has the reason.

    :param text: the text of the file."""
    shown, where = " ".join(text[entry.meta.start_pos : entry.meta.end_pos].split()), None
    try:
        entry = _ungrouped(entry)
        if entry.data == "rule":
            if (second := _second_rule(shown)) is not None:
                raise NoCounterpartError(f"a comma is missing before {second}")
            rule, where = rule_of(entry, dataset)
            claims = claims_of(rule)
            if where is not None and claims.others:
                raise NoCounterpartError(
                    "a filter of a rule about two datasets has no counterpart: write a `query`"
                )
            meaning: Claims | str = claims
        else:
            meaning = _composite(entry, dataset)
    except NoCounterpartError as error:
        meaning = str(error)
    is_dynamic = isinstance(meaning, Claims) and any("mean(" in text for text in meaning.texts)
    differences = []
    if where and isinstance(meaning, Claims) and any(map(_fails_without_rows, meaning.texts)):
        differences.append(_EMPTY_FILTER)
    if is_dynamic:
        differences.append(_DAYS_NOT_RUNS)
    difference = "; ".join(differences) or None
    return ForeignRule(dataset, place, shown, meaning, where=where, difference=difference)


def _ungrouped(entry: Tree[Token]) -> Tree[Token]:
    while entry.data == "grouped":
        inner = entry.children[0]  # its labels follow
        assert isinstance(inner, Tree)
        entry = inner
    return entry


def _composite(entry: Tree[Token], dataset: str) -> Claims:
    """The claims of rules joined by `or` or `and`, as `any { ... }` or `all { ... }`.

    :raises NoCounterpartError: one of the rules has no counterpart, or a filter.
    """
    parts: list[str] = []
    other_datasets: list[str] = []
    for child in entry.children:
        assert isinstance(child, Tree)
        inner = _ungrouped(child)
        if inner.data == "rule":
            rule, where = rule_of(inner, dataset)
            if where is not None:
                raise NoCounterpartError("a filter inside a composite has no counterpart")
            claims = claims_of(rule)
        else:
            claims = _composite(inner, dataset)
        text = claims.texts[0] if len(claims.texts) == 1 else _block("all", claims.texts)
        parts.append(text)
        other_datasets += claims.others
    word = "all" if entry.data == "both" else "any"
    return Claims(f"{word} of {len(parts)}", (_block(word, parts),), others=tuple(other_datasets))


def _block(word: str, texts: Sequence[str]) -> str:
    return f"{word} {{ {' '.join(f'assert {text}' for text in texts)} }}"
