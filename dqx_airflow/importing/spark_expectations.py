"""Spark Expectations of Nike: its rules as YAML or JSON, as rows of its table, and as the INSERT
statements that fill the table.

`fail` is the default severity, `drop` P2, `ignore` P3. Rules about the target are about the rows
that are left after `drop`, which is a filter here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from dqx_airflow.contracts.dialects.foreign import Translation
from dqx_airflow.errors import NoCounterpartError
from dqx_airflow.importing import foreign_rule, sql_conditions
from dqx_airflow.importing.foreign_rule import ForeignRule, ImportRequest
from dqx_airflow.values import Severity

_COLUMNS = (
    *("product_id", "table_name", "rule_type", "rule", "column_name", "expectation"),
    *("action_if_failed", "tag", "description", "enable_for_source_dq_validation"),
    *("enable_for_target_dq_validation", "is_active", "enable_error_drop_alert"),
    "error_drop_threshold",
)
"""The first columns of the table of rules, which all of its versions have in this order."""
_DEFAULTS = {
    "action_if_failed": "ignore",
    "enable_for_source_dq_validation": True,
    "enable_for_target_dq_validation": True,
    "is_active": True,
    "enable_error_drop_alert": False,
    "error_drop_threshold": 0,
}
_SEVERITIES = {"fail": None, "drop": Severity.P2, "ignore": Severity.P3}
_KINDS = ("row_dq", "agg_dq", "query_dq")
_DROPPED = "Spark Expectations drops these rows and goes on: set `quarantine` of the gate"
_INSERT = re.compile(r"insert\s+into\b[^;]*?\bvalues\b", re.IGNORECASE | re.DOTALL)
_PARAMETER = re.compile(r"\{([A-Za-z_]\w*)\}")


def recognises(document: Any) -> bool:
    rules = document.get("rules") if isinstance(document, Mapping) else document
    return isinstance(rules, list) and any(
        isinstance(rule, Mapping) and {"rule", "expectation"} <= {*rule} for rule in rules
    )


def recognises_code(text: str) -> bool:
    return _INSERT.search(text) is not None and any(f"'{kind}'" in text for kind in _KINDS)


def rules_of(document: Any, request: ImportRequest) -> Iterator[ForeignRule]:
    """The rules of a file, each with the defaults of its environment."""
    defaults: dict[str, Any] = dict(_DEFAULTS)
    listed, environment = document, None
    if isinstance(document, Mapping):
        listed = document["rules"]
        environment, settings = _environment(document.get("dq_env"))
        shared = document.get("defaults") or {}
        defaults |= {"table_name": document.get("table_name"), **shared, **settings}
    about = f" ({environment})" if environment else ""
    rows: list[tuple[str, Mapping[str, Any]]] = []
    for number, rule in enumerate(listed):
        written = rule if isinstance(rule, Mapping) else {}
        given = {key: value for key, value in written.items() if value is not None}
        rows.append((f"{request.file}: rules[{number}]{about}", {**defaults, **given}))
    yield from _of_rows(rows, request)


def _environment(environments: Any) -> tuple[str | None, Mapping[str, Any]]:
    """The environment whose settings count: production, or else the last one.

    :raises NoCounterpartError: there is none.
    """
    if environments is None:
        return None, {}
    named = {str(name): it for name, it in {**environments}.items() if isinstance(it, Mapping)}
    if not named:
        raise NoCounterpartError("its dq_env has no environment")
    chosen = [*named][-1]
    for name in named:
        if name.lower().startswith("prod"):
            chosen = name
    return chosen, named[chosen]


def rules_of_code(text: str, request: ImportRequest) -> Iterator[ForeignRule]:
    """The rules of the INSERT statements in a file of SQL.

    :raises NoCounterpartError: a statement cannot be parsed.
    """
    from sqlglot import exp

    from dqx_airflow.dql.sql_parser import InvalidSqlError, parse_sql

    rows: list[tuple[str, Mapping[str, Any]]] = []
    try:
        statements = parse_sql(text, "databricks")
    except InvalidSqlError as error:
        raise NoCounterpartError(f"invalid SQL: {error}") from None
    writing = [it for it in statements if isinstance(it, exp.Insert | exp.Merge | exp.Update)]
    for number, statement in enumerate(writing, 1):
        place = f"{request.file}: {statement.key.upper()} {number}"
        if not isinstance(statement.args.get("expression"), exp.Values):
            reason = "only the rows of INSERT INTO ... VALUES are read"
            shown = " ".join(statement.sql("spark").split())
            yield ForeignRule(request.dataset or "data", place, shown, reason)
            continue
        columns: Sequence[str] = _COLUMNS
        if isinstance(statement.this, exp.Schema):
            columns = [column.name.lower() for column in statement.this.expressions]
        for row, values in enumerate(statement.expression.expressions, 1):
            cells = [_cell(value) for value in values.expressions]
            given = dict(zip(columns, cells, strict=False))
            rows.append((f"{place}, row {row}", {**_DEFAULTS, **given}))
    yield from _of_rows(rows, request)


def _cell(node: Any) -> Any:
    from sqlglot import exp

    match node:
        case exp.Boolean():
            return bool(node.this)
        case exp.Literal() if node.is_string:
            return node.name
        case exp.Literal():
            return int(node.name) if node.name.isdigit() else node.name
    return None


def _of_rows(
    rows: Sequence[tuple[str, Mapping[str, Any]]], request: ImportRequest
) -> Iterator[ForeignRule]:
    """The rules of rows of the table."""
    for place, row in rows:
        dataset = request.dataset or _dataset(row)
        shown = f"{row.get('rule_type')} {row.get('rule')}: {row.get('expectation')}"
        severity = _SEVERITIES.get(str(row.get("action_if_failed")).lower())
        name = foreign_rule.name_in({"name": row.get("rule")})
        rule = ForeignRule(dataset, place, " ".join(shown.split()), "", name, severity)
        others = [other for _, other in rows if other.get("table_name") == row.get("table_name")]
        try:
            _refuse(row)
            yield from _translated(rule, row, others)
        except foreign_rule.REFUSALS as refusal:
            yield replace(rule, meaning=foreign_rule.reason_of(refusal))


def _dataset(row: Mapping[str, Any]) -> str:
    table = str(row.get("table_name") or "").split(".")[-1].strip("`")
    return re.sub(r"\W+", "_", table).strip("_") or "data"


def _is_on(row: Mapping[str, Any], key: str) -> bool:
    value = row.get(key)
    if isinstance(value, str):
        return value.lower() in ("true", "1", "yes")
    return bool(value)


def _refuse(row: Mapping[str, Any]) -> None:
    """:raises NoCounterpartError: the rule does not run, or only with a parameter."""
    kind, action = row.get("rule_type"), str(row.get("action_if_failed")).lower()
    if kind not in _KINDS:
        raise NoCounterpartError(f"its rule_type is {kind}: write row_dq, agg_dq or query_dq")
    if not _is_on(row, "is_active"):
        raise NoCounterpartError("the rule is not active")
    if action not in _SEVERITIES or (action == "drop" and kind != "row_dq"):
        raise NoCounterpartError(f"its action_if_failed is {action}: write fail, drop or ignore")
    stages = ("enable_for_source_dq_validation", "enable_for_target_dq_validation")
    if kind != "row_dq" and not any(_is_on(row, stage) for stage in stages):
        raise NoCounterpartError("it is enabled neither for the source nor for the target")


def _expectation(row: Mapping[str, Any]) -> str:
    """The condition of a rule, with the queries that it names behind a delimiter in their places.

    :raises NoCounterpartError: it has none, or a parameter."""
    if not isinstance(row.get("expectation"), str):
        raise NoCounterpartError(
            "its expectation is not a string: in SQL, write it in double quotes"
        )
    text = foreign_rule.sql_text(row["expectation"])
    named: dict[str, str] = {}
    delimiter = str(row.get("query_dq_delimiter") or "@")
    if row.get("rule_type") == "query_dq" and delimiter in text:
        text, *rest = text.split(delimiter)
        named = dict(zip(rest[::2], rest[1::2], strict=False))
    text = _PARAMETER.sub(lambda match: named.get(match[1], match[0]), text)
    if (parameter := _PARAMETER.search(text)) is not None:
        raise NoCounterpartError(f"write the value of the parameter {parameter[0]}")
    return text


def _translated(
    rule: ForeignRule, row: Mapping[str, Any], others: Sequence[Mapping[str, Any]]
) -> Iterator[ForeignRule]:
    """The rule of a row: two, if it is judged before and after rows are dropped, or if it has an
    alert."""
    expectation, kind = _expectation(row), str(row["rule_type"])
    column = str(row.get("column_name") or "").strip()
    about = foreign_rule.column_text(column) if re.fullmatch(r"[\w.]+", column) else None
    if kind == "row_dq":
        demand = sql_conditions.rows_hold(expectation)
        is_dropped = row.get("action_if_failed") == "drop"
        difference = _DROPPED if is_dropped else None
        yield replace(rule, meaning=Translation(kind, (demand,), about), difference=difference)
        threshold = _threshold(row)
        if _is_on(row, "enable_error_drop_alert") and threshold:
            alert = Translation(kind, (sql_conditions.share_below(expectation, threshold),))
            name = f"{rule.name}: alert at {threshold}%"
            yield replace(rule, meaning=alert, name=name, severity=Severity.P3)
        return
    if kind == "query_dq":
        # Its view of the rows that are left.
        expectation = re.sub(rf"\b{re.escape(_dataset(row))}_view\b", rule.dataset, expectation)
    meaning = Translation(kind, sql_conditions.aggregates_hold(expectation))
    metrics = sql_conditions.metrics_hold(kind, expectation)
    dropped = _conditions_of_rows_left(others)
    if _is_on(row, "enable_for_source_dq_validation") or not dropped:
        yield replace(rule, meaning=metrics or meaning)
    if _is_on(row, "enable_for_target_dq_validation") and dropped:
        left = replace(rule, meaning=meaning, name=f"{rule.name}: target")
        if kind == "query_dq":
            reason = "its view has only the rows that are left after `drop`: here it has all rows"
            yield replace(left, difference=reason)
        else:
            yield replace(left, where=foreign_rule.all_hold(*dropped))


def _threshold(row: Mapping[str, Any]) -> int:
    """The percentage of failing rows that alerts, which Spark Expectations reads as a whole number.

    :raises NoCounterpartError: it is none.
    """
    written = row.get("error_drop_threshold") or 0
    try:
        return int(written)
    except (TypeError, ValueError):
        raise NoCounterpartError(f"its error_drop_threshold {written!r} is not a number") from None


def _conditions_of_rows_left(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """The conditions that the rows of a table satisfy after rows are dropped."""
    found = []
    for row in rows:
        is_of_rows = row.get("rule_type") == "row_dq" and _is_on(row, "is_active")
        if is_of_rows and row.get("action_if_failed") == "drop":
            found.append(sql_conditions.rows_hold(_expectation(row)).predicate)
    return found
