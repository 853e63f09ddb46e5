"""Deequ and PyDeequ: reads suggested constraints in JSON and chains of `Check` in Python and Scala,
and translates each constraint.

`.isComplete("id").hasMin("price", lambda x: x >= 0)` is parsed, never run; Scala (`_ >= 0.9`,
`Array("a")`) is read as its Python equivalent.

NULL is treated as in Deequ: it passes `isContainedIn` and `isNonNegative`, and fails a pattern or
`satisfies`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from dqx_airflow.contracts.compile.terms import sql_name
from dqx_airflow.contracts.demands import Condition, Demand, QueryGives, Required
from dqx_airflow.contracts.dialects.foreign import Translation, aggregate_query
from dqx_airflow.errors import NoCounterpartError
from dqx_airflow.importing import foreign_rule, python_checks
from dqx_airflow.importing.foreign_rule import Claims, ForeignRule, Meaning, column_text, finite
from dqx_airflow.metrics.sql import quote_literal
from dqx_airflow.values import Severity

_EXACT = "Deequ approximates the value; here it is exact"
_FORMAT = "the format is checked as DQL defines it"
_NO_ROWS = "if no row meets the filter, the constraint fails in Deequ but passes here"


class DeequCondition(tuple[tuple[str, float], ...]):
    """An assertion on a metric: all of these comparisons hold."""

    __slots__ = ()


def differences_of(name: str, meaning: Meaning | str, *, is_filtered: bool) -> Iterator[str]:
    """When the verdicts of the two tools differ."""
    if name.startswith("hasApprox"):
        yield _EXACT
    if name in ("containsEmail", "containsURL"):
        yield _FORMAT
    if is_filtered and _passes_without_rows(name, meaning):
        yield _NO_ROWS


def _passes_without_rows(name: str, meaning: Meaning | str) -> bool:
    """Whether a translation is about each row, so that it passes if there is none. A share of no
    rows is no number in Deequ, and none here where it is compared as one.

    Deequ: `NumMatchesAndCount.metricValue` is NaN, and a sum without rows fails.
    """
    match meaning:
        case Claims(texts=texts):
            return any(map(foreign_rule.passes_without_rows, texts))
        case Translation(demands=demands):
            is_counted = name == "satisfies" and all(_is_none_failing(item) for item in demands)
            return is_counted or any(isinstance(item, Required) for item in demands)
    return False


def _is_none_failing(demand: Demand) -> bool:
    """Whether a demand is that the number of failing rows is 0."""
    return isinstance(demand, QueryGives) and demand.condition == Condition("==", 0)


_ALL = DeequCondition((("==", 1.0),))


def _comparisons_in(condition: Any) -> DeequCondition:
    if not isinstance(condition, DeequCondition):
        raise NoCounterpartError("its assertion cannot be evaluated without running it")
    return condition


def _compared(subject: str, condition: Any, *, is_share: bool = False) -> tuple[str, ...]:
    text_of = foreign_rule.percent_text if is_share else foreign_rule.value_text
    return tuple(f"{subject} {op} {text_of(bound)}" for op, bound in _comparisons_in(condition))


def _metric(kind: str, text: str, given: list[Any], *, is_share: bool = False) -> Meaning:
    """A constraint on a metric; the braces stand for its columns."""
    count = len({name or place for place, name in enumerate(re.findall(r"\{(\d?)\}", text))})
    columns = [column_text(name) for name in given[:count]]
    compared = _compared(text.format(*columns), given[count], is_share=is_share)
    return Claims(kind, compared, columns[0] if count == 1 else None)


def _rows(kind: str, predicate: str, given: list[Any], *, passes_null: bool = False) -> Meaning:
    """A constraint on each value, or on the share of rows that satisfy it."""
    column = column_text(given[0])
    texts = _share_of_rows(predicate.format(column), given[1:], column if passes_null else None)
    return Claims(kind, texts, column)


def _condition_in(given: Sequence[Any]) -> DeequCondition:
    """The assertion among the arguments; without one, all rows satisfy the constraint."""
    return next((argument for argument in given if isinstance(argument, DeequCondition)), _ALL)


def _share_of_rows(predicate: str, rest: list[Any], passes_null: str | None) -> tuple[str, ...]:
    """The claims that all rows satisfy a predicate, or the share that an assertion requires.

    `passes_null` is a column whose NULL satisfies the predicate; a share is a share of all rows.
    """
    condition = _condition_in(rest)
    if tuple(condition) in (((">=", 1),), (("==", 1),)):
        return (foreign_rule.rows_text(predicate),)
    if passes_null is not None:
        predicate = f"({passes_null} is null or {predicate})"
    match tuple(condition):
        case ((">=", share),):
            return (foreign_rule.rows_text(predicate, share),)
    return _compared(f"num_rows(where {predicate}) / num_rows()", condition, is_share=True)


def _aggregate(name: str, expression: str, condition: Any, column: str | None = None) -> Meaning:
    """A constraint on an aggregate of Spark."""
    query, compared = aggregate_query(expression), _comparisons_in(condition)
    demands = (QueryGives(query, Condition(op, bound)) for op, bound in compared)
    return Translation(name, tuple(demands), column)


def rows_of_repeated_values(columns: Sequence[str], table: str) -> str:
    """The query for the number of rows whose values occur more than once; rows in which all of the
    columns are NULL do not count.

    :param columns: as DQL writes them.
    :param table: as SQL writes it.
    """
    names = [sql_name(column) for column in columns]
    present = " OR ".join(f"{name} IS NOT NULL" for name in names)
    grouped = (f"FROM {table} WHERE {present}", "GROUP BY", ", ".join(names))
    counted = " ".join(("SELECT count(*) AS copies", *grouped))
    rows = "coalesce(sum(CASE WHEN copies > 1 THEN copies ELSE 0 END), 0)"
    return " ".join(("SELECT", rows, f"FROM ({counted}) AS counted"))


def _duplicate_rows(given: list[Any]) -> Meaning:
    """:raises NoCounterpartError: it is about all columns of the table."""
    if not isinstance(given[0], list) or not given[0]:
        raise NoCounterpartError("it compares all columns without listing them: list the columns")
    query = rows_of_repeated_values([column_text(name) for name in given[0]], "{model}")
    demands = (QueryGives(query, Condition(op, bound)) for op, bound in _comparisons_in(given[1]))
    return Translation("duplicate_rows", tuple(demands))


def _unique(given: list[Any]) -> Meaning:
    return _ratio("uniqueness", [[name for name in given if isinstance(name, str)], _ALL])


def _ratio(metric: str, given: list[Any]) -> Meaning:
    """A constraint on a ratio of one or several columns."""
    columns = given[0] if isinstance(given[0], list) else [given[0]]
    listed = foreign_rule.columns_text(columns)
    subject = f"{metric}({listed if len(columns) == 1 else f'[{listed}]'})"
    column = column_text(columns[0]) if len(columns) == 1 else None
    return Claims(metric, _compared(subject, given[1], is_share=True), column)


def _contained(given: list[Any]) -> Meaning:
    column = column_text(given[0])
    if isinstance(given[1], list):
        predicate = f"{column} in {foreign_rule.list_text(given[1])}"
        return Claims("values", _share_of_rows(predicate, given[2:], column), column)
    low, high = (foreign_rule.value_text(finite(bound)) for bound in given[1:3])
    ends = [argument for argument in given[3:] if isinstance(argument, bool)]
    predicate = f"{column} between {low} and {high}"
    if False in ends:
        above, below = (">=" if is_in else ">" for is_in in ends), ("<=", "<")
        predicate = f"{column} {next(above)} {low} and {column} {below[not ends[1]]} {high}"
    return Claims("range", _share_of_rows(predicate, given[3:], column), column)


def _pair(op: str, given: list[Any]) -> Meaning:
    column, other = column_text(given[0]), column_text(given[1])
    predicate = f"{column} is not null and {other} is not null and {column} {op} {other}"
    return Claims("pair", _share_of_rows(predicate, given[2:], None), column)


def _satisfies(given: list[Any]) -> Meaning:
    condition = _condition_in(given[1:])
    name = given[1] if len(given) > 1 and isinstance(given[1], str) else "satisfies"
    if condition != _ALL:
        return _aggregate(name, f"try_divide(count_if({given[0]}), count(*))", condition)
    failing = f"count_if(NOT coalesce({given[0]}, false))"
    return _aggregate(name, failing, DeequCondition((("==", 0),)))


def _custom_sql(given: list[Any]) -> Meaning:
    """A constraint on the result of a query, which is one number."""
    if not isinstance(given[1], DeequCondition):
        raise NoCounterpartError("its assertion would have to be run")
    query = re.sub(r"\bprimary\b", "{model}", str(given[0]))
    demands = (QueryGives(query, Condition(op, bound)) for op, bound in given[1])
    return Translation("custom_sql", tuple(demands))


def _complete_columns(link: str, given: list[Any]) -> Meaning:
    """A constraint on the rows in which all columns, or any, have a value."""
    complete = f" {link} ".join(f"{column_text(column)} is not null" for column in given[0])
    condition = _condition_in(given[1:])
    if condition == _ALL:
        return Claims("complete", (foreign_rule.rows_text(complete),))
    subject = f"num_rows(where {complete}) / num_rows()"
    return Claims("complete", _compared(subject, condition, is_share=True))


def _quantile(given: list[Any]) -> Meaning:
    column = column_text(given[0])
    subject = f"percentile({column}, {foreign_rule.percent_text(given[1])})"
    return Claims("quantile", _compared(subject, given[2]), column)


def _pattern(given: list[Any]) -> Meaning:
    column = column_text(given[0])
    predicate = matching_text(column, given[1])
    return Claims("pattern", _share_of_rows(predicate, given[2:], None), column)


def matching_text(column: str, pattern: Any, tool: str = "Deequ") -> str:
    """The predicate that a value contains a match of a pattern, as Deequ and cuallee search.

    :raises NoCounterpartError: it is not a pattern, or an empty match decides.
    """
    predicate = f"{column} is not null and {column} matches {foreign_rule.value_text(pattern)}"
    try:
        may_be_empty = re.search(pattern, "") is not None
    except (re.error, TypeError):
        raise NoCounterpartError(f"{pattern!r} is not a regular expression") from None
    if may_be_empty:  # there an empty match is none
        if not (pattern.startswith("^") and pattern.endswith("$")) or "|" in pattern:
            reason = f"its pattern also matches an empty string, which {tool} ignores"
            raise NoCounterpartError(f"{reason}: anchor it by ^ and $")
        predicate += f' and {column} != ""'
    return predicate


def _data_type(given: list[Any]) -> Meaning:
    column, kind = column_text(given[0]), str(given[1])
    condition = _condition_in(given[2:])
    if kind == "Null":
        subject = f"null_count({column}) / num_rows()"
        return Claims("data_type", _compared(subject, condition, is_share=True), column)
    name = sql_name(column)
    types = foreign_rule.listed_rules("deequ: types")
    patterns = types.get(kind) or (*types["Numeric"], *types["Boolean"])
    fits = " OR ".join(
        f"CAST({name} AS STRING) RLIKE {quote_literal(pattern)}" for pattern in patterns
    )
    counted = fits if kind in types else f"NOT ({fits})"
    share = f"coalesce(try_divide(count_if({counted}), count({name})), 0)"
    return _aggregate("data_type", share, condition, column)


def _distinct_values(given: list[Any]) -> Meaning:
    """A constraint on the number of bins of a histogram; NULL is a bin, too."""
    column = column_text(given[0])
    bins = f"unique_count({column}) + min(null_count({column}), 1)"
    return Claims("distinct_values", _compared(bins, _condition_in(given[1:])), column)


def _standard_deviation(given: list[Any]) -> Meaning:
    column = column_text(given[0])
    return _aggregate("deviation", f"stddev_pop({sql_name(column)})", given[1], column)


CONSTRAINTS: dict[str, Callable[[list[Any]], Meaning]] = {
    "isComplete": lambda given: Translation("is_complete", (Required(),), column_text(given[0])),
    **foreign_rule.listed_readers("deequ: metrics", _metric),
    **foreign_rule.listed_readers("deequ: shares", partial(_metric, is_share=True)),
    **foreign_rule.listed_readers("deequ: pairs", _pair),
    **foreign_rule.listed_readers("deequ: ratios", _ratio),
    **foreign_rule.listed_readers("deequ: each value", _rows),
    **foreign_rule.listed_readers("deequ: each value or NULL", partial(_rows, passes_null=True)),
    "hasColumn": lambda given: Claims(
        "column_exists", foreign_rule.columns_exist(given), column_text(given[0])
    ),
    "isUnique": _unique,
    "isPrimaryKey": _unique,
    "hasStandardDeviation": _standard_deviation,
    "hasNumberOfDistinctValues": _distinct_values,
    "hasExactQuantile": _quantile,
    "hasApproxQuantile": _quantile,
    "areUnique": lambda given: _ratio("uniqueness", [given[0], _ALL]),
    **dict.fromkeys(("areComplete", "haveCompleteness"), partial(_complete_columns, "and")),
    **dict.fromkeys(("areAnyComplete", "haveAnyCompleteness"), partial(_complete_columns, "or")),
    "hasDuplicateRowCount": _duplicate_rows,
    "hasPattern": _pattern,
    "hasDataType": _data_type,
    "isContainedIn": _contained,
    "satisfies": _satisfies,
    "customSql": _custom_sql,
}
"""The constraints of `Check` by their names in Scala, which PyDeequ shares."""


_SCALA = (
    (re.compile(r"\b(Array|Seq|List|Set)\("), "list_of("),
    (re.compile(r"\bSome\("), "some("),
    (re.compile(r"->"), ","),  # a pair, as in Map("a" -> "b")
    (re.compile(r"(?<![\w\"])_ ?(?=[<>=!])"), "lambda x: x "),
    (re.compile(r"\(?\b(\w+)(?:\s*:\s*\w+\))?\s*=>"), r"lambda \1:"),
    (re.compile(r"&&"), " and "),
    (re.compile(r"\|\|"), " or "),
    (re.compile(r"\b(\d+(?:\.\d+)?)[dDfFL]\b"), r"\1"),
    (re.compile(r"\btrue\b"), "True"),
    (re.compile(r"\bfalse\b"), "False"),
)
"""The differences between Scala and Python syntax, outside of strings."""
_STRINGS = re.compile(r'("""(?:.|\n)*?"""|"(?:\\.|[^"\\\n])*")(\.r\b)?')
_COMMENTS = re.compile(_STRINGS.pattern + r"|//[^\n]*|/\*(?:.|\n)*?\*/")
_OPS = {ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}
_FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}
_ENDS = ("includeLowerBound", "includeUpperBound")
_UNUSED = ("hint", "analyzerOptions")
_ARGUMENTS = (
    *("columnA", "columnB", "column", "columns", "columnCondition", "expression"),
    *("constraintName", "quantile", "pattern", "datatype", "dataType"),
    *("allowed_values", "allowedValues", "lowerBound", "upperBound", *_ENDS, "assertion", "name"),
)
"""The names of arguments in Python and Scala, in the order in which each constraint has them."""


def recognises(document: Any) -> bool:
    return isinstance(document, Mapping) and isinstance(
        document.get("constraint_suggestions"), list
    )


def recognises_code(text: str) -> bool:
    return "Check(" in text and any(word in text for word in ("deequ", "addCheck", "CheckLevel"))


def rules_of(
    document: Mapping[str, Any], request: foreign_rule.ImportRequest
) -> Iterator[ForeignRule]:
    """The suggested constraints, each as a rule."""
    dataset = request.dataset or "data"
    for index, suggestion in enumerate(document["constraint_suggestions"]):
        place = f"{request.file}: constraint_suggestions[{index}]"
        code = str(suggestion.get("code_for_constraint") or "")
        yield from _of_chain("check" + code, ForeignRule(dataset, place, code, ""))


def rules_of_code(text: str, request: foreign_rule.ImportRequest) -> Iterator[ForeignRule]:
    """The constraints of all checks in a file of Python or Scala.

    :raises NoCounterpartError: the text is neither, or has no chain of constraints on a `Check`.
    """
    dataset = request.dataset or "data"
    try:
        rules = list(_of_python(ast.parse(text), dataset, request.file))
    except SyntaxError as error:
        if _SCALA_CHECK.search(text) is None and not request.file.endswith((".scala", ".sc")):
            raise NoCounterpartError(f"line {error.lineno}: invalid Python") from None
        rules = list(_of_scala(text, dataset, request.file))
    if not rules:
        raise NoCounterpartError("it contains no chain of constraints on a Check(...)")
    yield from rules


def _of_python(tree: ast.Module, dataset: str, file: str) -> Iterator[ForeignRule]:
    """The chains that start from `Check(...)`, or from a variable with one; constraints on an
    unknown check are translated with a difference."""
    for chain in python_checks.PythonChecks(tree).chains():
        rule = ForeignRule(dataset, file, "", "")
        if chain.check is not None:
            severity = Severity.P3 if _is_warning(chain.check) else None
            yield from _of_links(chain.links, replace(rule, severity=severity))
        elif any(python_checks.name_of(link.func) in CONSTRAINTS for link in chain.links):
            links = [
                link
                for link in chain.links
                if python_checks.name_of(link.func) in {*CONSTRAINTS, "where"}
            ]
            difference = python_checks.of_unknown_check(dataset)
            yield from _of_links(links, replace(rule, difference=difference))


def _is_warning(check: ast.Call) -> bool:
    """Whether the level of a check is `CheckLevel.Warning`."""
    arguments = [*check.args, *(keyword.value for keyword in check.keywords)]
    return any(
        isinstance(argument, ast.Attribute) and argument.attr == "Warning" for argument in arguments
    )


def _shown(link: ast.Call) -> str:
    """A constraint as text: `hasMin('a', lambda x: x > 0)`."""
    arguments = ", ".join(map(ast.unparse, (*link.args, *link.keywords)))
    return f"{python_checks.name_of(link.func)}({arguments})"


_SCALA_CHECK = re.compile(r"\bCheck\(\s*(?:level\s*=\s*)?CheckLevel\s*\.\s*(?P<level>\w+)")
_LINK = re.compile(r"\s*\.\s*\w+\s*(?=\()")


def _of_scala(text: str, dataset: str, file: str) -> Iterator[ForeignRule]:
    """The chains that start from `Check(CheckLevel.Error, ...)`."""
    text = _COMMENTS.sub(_without_comment, text)
    for match in _SCALA_CHECK.finditer(text):
        end = start = _end_of_call(text, text.index("(", match.start()))
        while (link := _LINK.match(text, end)) is not None:
            end = _end_of_call(text, link.end())
        if end > start:
            place = f"{file}: line {text.count(chr(10), 0, match.start()) + 1}"
            severity = Severity.P3 if match["level"] == "Warning" else None
            code = text[start:end]
            rule = ForeignRule(dataset, place, " ".join(code.split()), "", severity=severity)
            yield from _of_chain(f"check{code}", rule)


def _without_comment(match: re.Match[str]) -> str:
    """Keeps a matched string; replaces a comment by its line breaks, or by a blank."""
    return match[0] if match[0].startswith('"') else "\n" * match[0].count("\n") or " "


def _end_of_call(text: str, opening: int) -> int:
    """The position after the parenthesis that closes the parenthesis at `opening`; the end of the
    text if it is not closed."""
    depth, offset = 0, opening
    while offset < len(text):
        if (string := _STRINGS.match(text, offset)) is not None:
            offset = string.end()
            continue
        depth += {"(": 1, ")": -1}.get(text[offset], 0)
        offset += 1
        if depth == 0:
            return offset
    return len(text)


def _as_python(code: str) -> str:
    """A chain of Scala in the syntax of Python; strings stay as they are."""
    written = []
    for index, part in enumerate(_STRINGS.split(code)):
        if index % 3 == 2:  # `.r` after a string makes it a pattern, and no other string
            continue
        if index % 3 == 1:
            written.append(f"r{part}" if part.startswith('"""') else part)
            continue
        plain = part
        for pattern, python in _SCALA:
            plain = pattern.sub(python, plain)
        written.append(" ".join(plain.split("\n")))
    return "".join(written)


def _of_chain(code: str, rule: ForeignRule) -> Iterator[ForeignRule]:
    """The rules of a chain, each a copy of `rule` with its own translation and text."""
    try:
        links, _ = python_checks.links_of(ast.parse(_as_python(code), mode="eval").body)
    except SyntaxError:
        links = []
    if not links:
        yield replace(rule, meaning="this is not a constraint")
        return
    for one in _of_links(links, rule):
        yield replace(one, shown=rule.shown) if len(links) == 1 else one


def _of_links(links: Sequence[ast.Call], rule: ForeignRule) -> Iterator[ForeignRule]:
    for index, link in enumerate(links):
        name = python_checks.name_of(link.func)
        if name == "where":
            continue
        following = links[index + 1] if index + 1 < len(links) else None
        where = None
        shown = _shown(link)
        at = rule.place if ":" in rule.place else f"{rule.place}: line {link.lineno}"
        one = replace(rule, place=at, shown=shown)
        try:
            if following is not None and python_checks.name_of(following.func) == "where":
                where = str(_evaluated(following.args[0]))
            if name not in CONSTRAINTS:
                raise NoCounterpartError(f"{name} has no counterpart")
            meaning: Meaning | str = CONSTRAINTS[name](_given(link))
        except foreign_rule.REFUSALS as refusal:
            meaning = foreign_rule.reason_of(refusal, f"{name} has unsupported arguments")
        found = differences_of(name, meaning, is_filtered=where is not None)
        difference = "; ".join(filter(None, (rule.difference, *found))) or None
        yield replace(one, meaning=meaning, where=where, difference=difference)


def _given(link: ast.Call) -> list[Any]:
    """The arguments of a constraint in the order of its signature. An interval includes its ends
    unless the constraint says otherwise.

    :raises NoCounterpartError: an argument is unknown, or cannot be evaluated without running it.
    """
    given = [_evaluated(argument) for argument in link.args]
    named: dict[str, ast.expr] = {}
    for keyword in link.keywords:
        if keyword.arg is None:
            raise NoCounterpartError(f"`{ast.unparse(keyword)}`: write its arguments one by one")
        if keyword.arg not in (*_ARGUMENTS, *_UNUSED):
            raise NoCounterpartError(f"its argument {keyword.arg} has no counterpart")
        named[keyword.arg] = keyword.value
    has_ends = not named.keys().isdisjoint(_ENDS)
    for name in _ARGUMENTS:
        if name in named:
            given.append(_evaluated(named[name]))
        elif has_ends and name in _ENDS:
            given.append(True)
    return given


def _evaluated(node: ast.expr) -> Any:
    """A literal, a list, or a condition.

    :raises NoCounterpartError: it is something else, which cannot be evaluated without running it.
    """
    match node:
        case ast.Constant(value=value):
            return value
        case ast.List(elts=items) | ast.Tuple(elts=items):
            return [_evaluated(item) for item in items]
        case ast.Call(func=ast.Name(id="list_of"), args=items):
            return [_evaluated(item) for item in items]
        case ast.Call(func=ast.Name(id="some"), args=[option]):
            return _evaluated(option)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -finite(_evaluated(operand))
        case ast.BinOp(op=ast.Div(), left=left, right=right) if finite(_evaluated(right)):
            # Scala divides whole numbers without a rest.
            above, below = finite(_evaluated(left)), finite(_evaluated(right))
            if isinstance(above, int) and isinstance(below, int):
                raise NoCounterpartError(f"`{ast.unparse(node)}` is another number in Scala")
            return above / below
        case ast.Attribute(value=ast.Constant(value=value), attr="r"):
            return value
        case ast.Attribute(attr="IsOne") | ast.Name(id="IsOne"):
            return _ALL
        case ast.Attribute(value=ast.Name(id="ConstrainableDataTypes"), attr=name):
            return name
        case ast.Lambda(body=body):
            return DeequCondition(_comparisons(body))
    raise NoCounterpartError(f"`{ast.unparse(node)}` cannot be evaluated without running it")


def _comparisons(body: ast.expr) -> Iterator[tuple[str, float]]:
    match body:
        case ast.BoolOp(op=ast.And(), values=values):
            for value in values:
                yield from _comparisons(value)
        case ast.Compare(left=left, ops=ops, comparators=comparators):
            sides = [left, *comparators]
            for before, op, after in zip(sides, ops, sides[1:], strict=False):
                sign = _OPS.get(type(op))
                if sign is None:
                    raise NoCounterpartError(f"`{ast.unparse(body)}` has no counterpart")
                if isinstance(before, ast.Name):
                    yield sign, finite(_evaluated(after))
                else:
                    yield _FLIPPED[sign], finite(_evaluated(before))
        case _:
            raise NoCounterpartError(f"`{ast.unparse(body)}` has no counterpart")
