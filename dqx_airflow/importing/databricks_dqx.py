"""Databricks DQX: reads checks in YAML or JSON (`criticality`, `filter`, `check.function`), and
translates each of them.

DQX checks let NULL pass unless documented otherwise, like row predicates here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

from dqx_airflow.contracts.compile.terms import sql_name
from dqx_airflow.contracts.demands import Condition, QueryGives, Refers, RowsSatisfy
from dqx_airflow.contracts.dialects.foreign import Translation
from dqx_airflow.errors import NoCounterpartError
from dqx_airflow.importing import foreign_rule
from dqx_airflow.importing.foreign_rule import Claims, Meaning, column_text, rows_text, value_text
from dqx_airflow.metrics.patterns.bounds import ending_as_in_java
from dqx_airflow.metrics.patterns.syntax import PatternError
from dqx_airflow.metrics.sql import quote_literal
from dqx_airflow.metrics.text_formats import TEXT_FORMATS
from dqx_airflow.values import Severity

Arguments = Mapping[str, Any]
Reader: TypeAlias = Callable[[Arguments], Meaning]
"""Translates a check function of DQX, given its arguments."""


def _rows(kind: str, predicate: str, arguments: Arguments) -> Meaning:
    """A check of each value; the braces stand for the column."""
    if (expression := _expression_for(arguments)) is not None:
        return Translation(kind, (RowsSatisfy(predicate.format(f"({expression})")),))
    column = _column(arguments)
    return Claims(kind, (rows_text(predicate.format(column)),), column)


_PATH = re.compile(r"(`[^`]+`|\w+)(\.(`[^`]+`|\w+))*")


def _expression_for(arguments: Arguments) -> str | None:
    """The SQL expression of a check, if it is not about a column."""
    written = arguments.get("column")
    is_column = not isinstance(written, str) or _PATH.fullmatch(written.strip()) is not None
    return None if is_column else str(written)


def columns_in(names: list[object]) -> list[str]:
    """Columns as DQL writes them.

    :raises NoCounterpartError: one of them is not a column.
    """
    return [_column({"column": name}) for name in names]


def _column(arguments: Arguments, key: str = "column") -> str:
    """:raises NoCounterpartError: the argument is missing, or is an expression."""
    written = arguments.get(key)
    if isinstance(written, str) and _PATH.fullmatch(written.strip()) is None:
        raise NoCounterpartError(f"'{written}' is an expression: check it with sql_expression")
    return column_text(written)


def _not_empty(predicate: str, arguments: Arguments) -> Claims:
    column = _column(arguments)
    value = f"trim({column})" if arguments.get("trim_strings") else column
    return Claims("not_empty", (rows_text(predicate.format(column, value)),), column)


def _in_list(predicate: str, arguments: Arguments) -> Claims:
    column = _column(arguments)
    values = literals_in(arguments)
    texts = [value_text(value) if is_word(value) else _limit(value) for value in values]
    compared = column
    items = f"[{', '.join(texts)}]"
    if arguments.get("case_sensitive", True) is False:
        if not all(isinstance(value, str) for value in values):
            raise NoCounterpartError("case_sensitive: false needs a list of strings")
        compared = f"lower({column})"
        items = items.lower()
    return Claims("values", (rows_text(predicate.format(compared, items, column)),), column)


def literals_in(arguments: Arguments) -> list[object]:
    """The allowed or forbidden values of a check with a list."""
    return list(arguments.get("allowed") or arguments.get("forbidden") or ())


def is_word(value: object) -> bool:
    """True for a string that is neither a number, nor a date, nor an SQL expression."""
    return isinstance(value, str) and _WORD.fullmatch(value) is not None


_WORD = re.compile(r"[A-Za-z_][\w .-]*")
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_MOMENT = re.compile(r"\d{4}-\d{2}-\d{2}[ T]\d{2}:\d{2}(:\d{2}(\.\d+)?)?")


def _decimal(value: object) -> object:
    """The exact number for a decimal in the file; any other value unchanged."""
    match value:
        case {"__decimal__": str(digits)}:
            return foreign_rule.finite(float(digits))
        case _:
            return value


def _limit(value: object) -> str:
    """A limit of a comparison, as DQL. A string is SQL: a literal in quotes, a date, or the name of
    a column.

    :raises _ExpressionError: it is another expression.
    """
    if not isinstance(value, str):
        return value_text(value)
    bare = value.strip()
    if match := re.fullmatch(r"'((?:[^']|'')*)'", bare):
        return value_text(match[1].replace("''", "'"))
    if re.fullmatch(r"[A-Za-z_]\w*", bare):
        return column_text(bare)
    if bare.isdigit() or _DAY.fullmatch(bare):
        return bare
    if _MOMENT.fullmatch(bare):
        return value_text(bare)
    raise _ExpressionError(f"'{value}' is an expression: DQX reads strings as SQL")


class _ExpressionError(NoCounterpartError):
    """A limit is an SQL expression."""


def _compared(kind: str, predicate: str, keys: str, arguments: Arguments) -> Meaning:
    """A check of each value against limits. A limit or a column that is an expression makes it a
    predicate in SQL."""
    limits = [_decimal(arguments.get(key)) for key in keys.split()]
    if any(limit is None for limit in limits):
        raise NoCounterpartError(f"it has no {' and no '.join(keys.split())}")
    expression = _expression_for(arguments)
    if expression is not None:
        return Translation(kind, (_compared_in_sql(predicate, f"({expression})", limits),))
    column = _column(arguments)
    try:
        texts = [_limit(limit) for limit in limits]
    except _ExpressionError:
        return Translation(kind, (_compared_in_sql(predicate, sql_name(column), limits),), column)
    return Claims(kind, (rows_text(predicate.format(column, *texts)),), column)


def _compared_in_sql(predicate: str, value: str, limits: list[object]) -> RowsSatisfy:
    sql = predicate.replace("==", "=")
    return RowsSatisfy(sql.format(value, *map(_limit_sql, limits)))


def _limit_sql(value: Any) -> str:
    if not isinstance(value, str):
        return quote_literal(value)
    if _DAY.fullmatch(value):
        return f"DATE '{value}'"
    return f"TIMESTAMP '{value}'" if _MOMENT.fullmatch(value) else f"({value})"


_HOLE = re.compile(r"\{(?P<key>\w+)(=(?P<default>[^}]*))?\}")
"""An argument in a template: `{days=0}` is 0 if the check has no `days`."""


def _of_sql(kind: str, template: str, arguments: Arguments) -> Meaning:
    """A check in Spark SQL. The first argument in the template is the checked column."""
    first = _HOLE.search(template)
    assert first is not None
    column = _column(arguments, first["key"])
    sql = _HOLE.sub(lambda hole: _filled(hole["key"], hole["default"], arguments), template)
    _refuse_clock(arguments)
    if sql.startswith("count_if("):
        return Claims(kind, (f"sql({value_text(sql)}) == 0",), column)
    if arguments.get("negate"):
        sql = f"NOT ({sql})"
    return Translation(kind, (RowsSatisfy(sql),), column)


def _filled(key: str, default: str | None, arguments: Arguments) -> str:
    """The SQL of an argument in a template."""
    if key.startswith("column"):
        return sql_name(_column(arguments, key))
    value = arguments.get(key)
    if not value and default is not None:
        # A number may be left out, but not be null.
        is_given_number = default.isdigit() and key in arguments
        if not is_given_number:
            return default
    if key.endswith("_format"):
        return f", {quote_literal(str(value))}"
    if key == "base_timestamp":
        return _limit_sql(value)
    return str(foreign_rule.finite(value))


def _refuse_clock(arguments: Arguments) -> None:
    """:raises NoCounterpartError: the check compares with another time than the time of the run."""
    for key in ("curr_date", "curr_timestamp"):
        if arguments.get(key):
            raise NoCounterpartError(f"{key} has no counterpart")


def _case(arguments: Arguments) -> Meaning:
    column = _column(arguments)
    case = arguments.get("case")
    if case not in ("lower", "upper"):
        raise NoCounterpartError(f"the case '{case}' has no counterpart")
    return Claims("case", (rows_text(f"{case}({column}) == {column}"),), column)


def _schema(arguments: Arguments) -> Claims:
    """The claims that the columns exist with their types, and no others if the check is strict."""
    written = arguments.get("expected_schema")
    if not isinstance(written, str) or "<" in written:
        raise NoCounterpartError("only a schema of plain columns has a counterpart")
    parts = (part.strip().partition(" ") for part in re.split(r",(?![^(]*\))", written))
    types = [(name.rstrip(":"), kind.strip().lower()) for name, _, kind in parts]
    return foreign_rule.typed_columns(types, has_others=not arguments.get("strict"))


def _regex(arguments: Arguments) -> Claims:
    column = _column(arguments)
    pattern = str(arguments.get("regex") or "")
    if not arguments.get("negate"):
        return Claims("pattern", (rows_text(f"{column} matches {value_text(pattern)}"),), column)
    try:
        forbidden = value_text(ending_as_in_java(pattern))
    except PatternError as error:
        raise NoCounterpartError(str(error)) from None
    return Claims("pattern", (rows_text(f"{column} not matches {forbidden}"),), column)


def _expression(arguments: Arguments) -> Translation:
    expression = str(arguments.get("expression") or "")
    if not expression:
        raise NoCounterpartError("it has no expression")
    holds = expression
    if arguments.get("negate"):
        holds = f"NOT ({expression})"
    return Translation(str(arguments.get("name") or "sql_expression"), (RowsSatisfy(holds),))


def _unique(arguments: Arguments) -> Claims:
    columns = columns_in(arguments.get("columns") or [arguments.get("column")])
    if arguments.get("nulls_distinct", True) is False:
        names = ", ".join(f"`{str(column).strip('`')}`" for column in columns)
        text = value_text(f"count(*) - count(DISTINCT struct({names}))")
        return Claims("unique", (f"sql({text}) == 0",))
    about = columns[0] if len(columns) == 1 else None
    key = about or f"[{', '.join(columns)}]"
    return Claims("unique", (f"repeated_count({key}) == 0",), about)


def _foreign_key(arguments: Arguments) -> Translation:
    columns = arguments.get("columns") or []
    other_columns = arguments.get("ref_columns") or []
    table = arguments.get("ref_table") or arguments.get("ref_df_name")
    if not columns or len(columns) != len(other_columns) or not table or arguments.get("negate"):
        raise NoCounterpartError(
            "a foreign key needs columns, the same number of ref_columns, and a ref_table"
        )
    paths = tuple(columns_in(columns))
    other_paths = tuple(columns_in(other_columns))
    reference = Refers(paths, str(table).split(".")[-1], other_paths)
    return Translation("reference", (reference,), paths[0] if len(paths) == 1 else None)


_COUNTED_ROWS = "SELECT count_if({}) FROM ( {} ) AS found"


def _query(arguments: Arguments) -> Translation:
    """A query returns no row whose condition is true."""
    view = str(arguments.get("input_placeholder") or "input_view")
    placeholder = rf"\{{\{{\s*{re.escape(view)}\s*\}}\}}"
    query = re.sub(placeholder, "{model}", str(arguments.get("query") or ""))
    query = query.strip().rstrip(";")
    if "{{" in query or not query:
        raise NoCounterpartError("its query reads frames other than the frame of the check")
    fails = sql_name(column_text(arguments.get("condition_column") or "condition"))
    if arguments.get("negate"):
        fails = f"NOT {fails}"
    counted = QueryGives(_COUNTED_ROWS.format(fails, query), Condition("==", 0))
    return Translation("sql_query", (counted,))


def _aggregate(op: str, arguments: Arguments) -> Claims:
    kind = str(arguments.get("aggr_type") or "count")
    metric = _aggregate_metric(kind, arguments.get("aggr_params"))
    limit = value_text(foreign_rule.finite(_decimal(arguments.get("limit"))))
    written = arguments.get("column")
    if kind == "count" and written in ("*", None):
        return Claims(kind, (f"num_rows() {op} {limit}",))
    column = column_text(written)
    return Claims(kind, (f"{metric.format(column)} {op} {limit}",), column)


def _aggregate_metric(kind: str, parameters: object) -> str:
    """The metric of DQL for an aggregate; the braces stand for the column.

    :raises NoCounterpartError: DQL has no metric for it.
    """
    if kind == "percentile":
        match parameters:
            case {"percentile": share, **others} if not others:
                return f"percentile({{}}, {foreign_rule.percent_text(share)})"
    metrics = foreign_rule.listed_rules("databricks-dqx: aggregates")
    if kind not in metrics or parameters:
        raise NoCounterpartError(f"aggr_type '{kind}' has no counterpart")
    (metric,) = metrics[kind]
    return metric


def _older_than(arguments: Arguments) -> Claims:
    column = _column(arguments)
    days = foreign_rule.finite(arguments.get("days"))
    _refuse_clock(arguments)
    is_old = f"{sql_name(column)} < date_sub(current_date(), {days})"
    violates = is_old if arguments.get("negate") else f"NOT ({is_old})"
    return Claims("older", (f"sql({value_text(f'count_if({violates})')}) == 0",), column)


_OUTLIERS = (
    "SELECT count_if({column} < CAST(middle AS DOUBLE) - 3.5D * spread"
    " OR {column} > CAST(middle AS DOUBLE) + 3.5D * spread)"
    " FROM {{model}} CROSS JOIN ("
    " SELECT max(middle) AS middle,"
    " percentile_approx(abs(value - middle), 0.5) AS spread"
    " FROM ("
    " SELECT {column} AS value, middle"
    " FROM {{model}} CROSS JOIN ("
    " SELECT percentile_approx({column}, 0.5) AS middle FROM {{model}} ) ) )"
)
"""The number of values that are farther from the median than 3.5 median absolute deviations."""


def _no_outliers(arguments: Arguments) -> Meaning:
    column = _column(arguments)
    query = _OUTLIERS.format(column=sql_name(column))
    return Translation("no_outliers", (QueryGives(query, Condition("==", 0)),), column)


FUNCTIONS: dict[str, Reader] = {
    **foreign_rule.listed_readers("databricks-dqx: each value", _rows),
    **foreign_rule.listed_readers("databricks-dqx: Spark SQL", _of_sql),
    **foreign_rule.listed_readers("databricks-dqx: not empty", _not_empty),
    **foreign_rule.listed_readers("databricks-dqx: lists", _in_list),
    **foreign_rule.listed_readers("databricks-dqx: limits", _compared),
    **foreign_rule.listed_readers("databricks-dqx: limits of aggregates", _aggregate),
    "regex_match": _regex,
    "sql_expression": _expression,
    "is_unique": _unique,
    "sql_query": _query,
    "foreign_key": _foreign_key,
    "is_older_than_n_days": _older_than,
    "has_no_outliers": _no_outliers,
    "has_valid_string_case": _case,
    "has_valid_schema": _schema,
}


def _refuse(function: str) -> None:
    """:raises NoCounterpartError: why a function has no translation, and what to write instead."""
    reason = f"the function '{function}' has no counterpart"
    if function.startswith("is_valid_") and function.endswith("_code"):
        reason = 'the codes are a list of DQX: write those that may occur, `c in ["CH", "DE"]`'
    foreign_rule.refuse_listed("databricks-dqx", function, reason)


def recognises(document: Any) -> bool:
    """True for a list with a check that has a function."""
    if not isinstance(document, list):
        return False
    return any(
        isinstance(check, Mapping) and isinstance(check.get("check"), Mapping) for check in document
    )


def rules_of(
    document: list[Any], request: foreign_rule.ImportRequest
) -> Iterator[foreign_rule.ForeignRule]:
    """The rule of each check, and of each of its columns if it has several."""
    dataset = request.dataset or "data"
    for index, entry in enumerate(document):
        place = f"{request.file}: [{index}]"
        check = entry.get("check") if isinstance(entry, Mapping) else None
        if not isinstance(check, Mapping):
            yield foreign_rule.ForeignRule(
                dataset, place, foreign_rule.yaml_line(entry), "this is not a check"
            )
            continue
        for arguments in _each(check):
            yield _rule(entry, str(check.get("function")), arguments, dataset, place)


def _each(check: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The arguments of the check, for each of its columns."""
    arguments = {**(check.get("arguments") or {})}
    every = check.get("for_each_column")
    if not isinstance(every, list):
        yield arguments
        return
    for column in every:
        yield {**arguments, ("columns" if isinstance(column, list) else "column"): column}


def _rule(
    entry: Mapping[str, Any], function: str, arguments: dict[str, Any], dataset: str, place: str
) -> foreign_rule.ForeignRule:
    shown = ", ".join(f"{key}={value!r}" for key, value in arguments.items())
    own_filter = arguments.pop("row_filter", None)
    groups: tuple[str, ...] = ()
    meaning: Meaning | str
    try:
        _demand_known(function, arguments)
        groups = tuple(columns_in(arguments.pop("group_by", None) or []))
        meaning = FUNCTIONS[function](arguments)
    except foreign_rule.REFUSALS as refusal:
        meaning = foreign_rule.reason_of(refusal)
        groups = ()
    return foreign_rule.ForeignRule(
        dataset,
        place,
        f"{function}({shown})",
        meaning,
        name=foreign_rule.name_in(entry, entry["check"]),
        severity=Severity.P3 if entry.get("criticality") == "warn" else None,
        where=foreign_rule.all_hold(entry.get("filter"), own_filter),
        groups=groups,
        difference=_difference(function, arguments, is_grouped=bool(groups)),
    )


def _demand_known(function: str, arguments: Arguments) -> None:
    """:raises NoCounterpartError: the function, or one of its arguments, has no translation."""
    if function not in FUNCTIONS:
        _refuse(function)
    (parameters,) = foreign_rule.listed_rules("databricks-dqx: arguments")[function]
    for key in arguments:
        if key not in parameters.split():
            raise NoCounterpartError(f"'{key}' has no counterpart for {function}")


def _difference(function: str, arguments: Arguments, *, is_grouped: bool) -> str | None:
    """The reason why the verdicts of the two tools may differ; None if they do not."""
    if function.endswith("in_list") and any(map(is_word, literals_in(arguments))):
        return (
            "words without quotes are strings, as before DQX 0.16; later versions read "
            "them as columns"
        )
    of_each_value = foreign_rule.listed_rules("databricks-dqx: each value")
    if function in of_each_value and of_each_value[function][0] in TEXT_FORMATS:
        return "the format is checked as DQL defines it"
    return "a dataset without rows passes in DQX but fails here" if is_grouped else None
