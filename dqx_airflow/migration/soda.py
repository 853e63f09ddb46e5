"""Soda: SodaCL (`checks for orders:`), data contracts of Soda 4 and older ones.

A check becomes what contracts make of it; the checks of Soda 4 are turned into those of 3.x first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from dqx_airflow.contracts.dialects.foreign import Translation, soda, sodacl
from dqx_airflow.migration.documents import one_line
from dqx_airflow.migration.dql_text import column_text
from dqx_airflow.migration.foreign_rule import Claims, ForeignRule, UntranslatableError
from dqx_airflow.migration.request import Request
from dqx_airflow.values import Severity

_CHECKS_FOR = "checks for "
_FILTER = "filter "
_TYPES = {"varchar": "string", "text": "string", "integer": "int", "float8": "double"}
_UNITS = {"minute": "freshness_in_minutes", "hour": "freshness_in_hours"}
_UNITS |= {"day": "freshness_in_days"}
_THRESHOLD_KEYS = ("metric", "unit", "level")


def recognises(document: Any) -> bool:
    if not isinstance(document, Mapping):
        return False
    if any(str(key).startswith((_CHECKS_FOR, _FILTER)) for key in document):
        return True
    return isinstance(document.get("dataset"), str) and bool({"columns", "checks"} & set(document))


def rules_of(document: Mapping[str, Any], request: Request) -> Iterator[ForeignRule]:
    if isinstance(document.get("dataset"), str):
        yield from _of_contract(document, request)
    else:
        yield from _of_sodacl(document, request)


# SodaCL ------------------------------------------------------------------------------------------


def _of_sodacl(document: Mapping[str, Any], request: Request) -> Iterator[ForeignRule]:
    filters = {
        key.removeprefix(_FILTER): str(value["where"])
        for key, value in document.items()
        if key.startswith(_FILTER) and isinstance(value, Mapping) and "where" in value
    }
    for key, checks in document.items():
        if key.startswith(_FILTER):
            continue
        name = key.removeprefix(_CHECKS_FOR)
        if not key.startswith(_CHECKS_FOR) or not isinstance(checks, list):
            place = f"{request.file}: {key}"
            reason = "only `checks for` a dataset, with a list of checks, have a counterpart"
            yield ForeignRule(request.dataset or "data", place, one_line(checks), reason)
            continue
        table, _, partition = name.partition(" [")
        where = filters.get(name) if partition else None
        for number, check in enumerate(checks):
            place = f"{request.file}: {key}[{number}]"
            dataset = request.dataset or table.strip()
            if partition and where is None:
                reason = f"there is no `filter {name}`"
                yield ForeignRule(dataset, place, one_line(check), reason)
                continue
            yield _sodacl_rule(check, dataset, place, where)


def _sodacl_rule(check: object, dataset: str, place: str, where: str | None) -> ForeignRule:
    severity, name, own = None, None, None
    plain = check
    if isinstance(check, Mapping) and check:
        text, given = next(iter(check.items()))
        if isinstance(given, Mapping):
            settings = dict(given)
            name = settings.pop("name", None)
            own = settings.pop("filter", None)
            settings.pop("attributes", None)
            settings.pop("identity", None)
            settings.pop("samples limit", None)
            settings.pop("samples columns", None)
            plain = {text: settings}
            # Of a schema, `fail` and `warn` hold what is forbidden; else they are comparisons.
            keys = ("fail", "warn") if text != "schema" else ()
            levels = {key: settings.pop(key) for key in keys if key in settings}
            if levels:
                level, condition = next(iter(levels.items()))
                if len(levels) > 1 or not str(condition).startswith("when "):
                    reason = "two levels: import it once for each"
                    return ForeignRule(dataset, place, one_line(check), reason)
                severity = Severity.P3 if level == "warn" else None
                plain = {f"{text} {_negated(str(condition)[5:])}": settings}
    filters = [f"({one})" for one in (where, own) if one]
    meaning = _schema(plain) or sodacl.translate(plain)
    return ForeignRule(
        dataset,
        place,
        check if isinstance(check, str) else one_line(check),
        meaning,
        name=str(name) if name else None,
        severity=severity,
        where=" AND ".join(filters) or None,
    )


_OPPOSITES = {"<=": ">", ">=": "<", "<": ">=", ">": "<=", "!=": "=", "=": "!="}


def _negated(condition: str) -> str:
    """What holds where a condition of a failure does not."""
    bare = condition.strip()
    if bare.startswith("between "):
        return f"not {bare}"
    if bare.startswith("not between "):
        return bare.removeprefix("not ")
    for op, opposite in _OPPOSITES.items():
        if bare.startswith(op):
            return f"{opposite} {bare.removeprefix(op).strip()}"
    return condition


def _schema(check: object) -> Claims | str | None:
    """What a check of the schema claims; None for any other check."""
    if check != "schema" and not (isinstance(check, Mapping) and "schema" in check):
        return None
    given = check["schema"] if isinstance(check, Mapping) else None
    levels = dict(given) if isinstance(given, Mapping) else {}
    claims: list[str] = []
    try:
        for level, rules in levels.items():
            if level not in ("fail", "warn") or not isinstance(rules, Mapping):
                return f"schema: '{level}' has no counterpart"
            for key, value in rules.items():
                claims += _schema_claims(str(key), value)
    except UntranslatableError as error:
        return f"schema: {error}"
    return Claims("schema", tuple(claims)) if claims else "schema: it says nothing"


def _schema_claims(key: str, value: Any) -> list[str]:
    match key.removeprefix("when "):
        case "required column missing" if isinstance(value, list):
            return [f"column {column_text(one)} exists" for one in value]
        case "wrong column type" if isinstance(value, Mapping):
            return [
                f"column {column_text(name)} fits {_type(kind)}" for name, kind in value.items()
            ]
    raise UntranslatableError(f"'{key}' has no counterpart")


def _type(written: object) -> str:
    kind = str(written).lower()
    return _TYPES.get(kind, kind)


# Contracts ---------------------------------------------------------------------------------------


def _of_contract(document: Mapping[str, Any], request: Request) -> Iterator[ForeignRule]:
    dataset = request.dataset or str(document["dataset"]).split("/")[-1].split(".")[-1]
    where = str(document["filter"]) if isinstance(document.get("filter"), str) else None
    columns = document.get("columns")
    for column in columns if isinstance(columns, list) else []:
        if not isinstance(column, Mapping) or not column.get("name"):
            continue
        name = str(column["name"])
        for number, check in enumerate(column.get("checks") or []):
            place = f"{request.file}: columns.{name}.checks[{number}]"
            yield _contract_rule(check, name, column, dataset, place, where)
    for number, check in enumerate(document.get("checks") or []):
        place = f"{request.file}: checks[{number}]"
        if check == "schema" or (isinstance(check, Mapping) and "schema" in check):
            yield _columns_rule(columns, check, dataset, place)
        else:
            yield _contract_rule(check, None, {}, dataset, place, where)


def _columns_rule(columns: object, check: object, dataset: str, place: str) -> ForeignRule:
    """The check `schema`: the columns of the contract are there, with their types, and no other."""
    settings = check.get("schema") if isinstance(check, Mapping) else None
    settings = settings if isinstance(settings, Mapping) else {}
    named = (
        [one for one in columns if isinstance(one, Mapping)] if isinstance(columns, list) else []
    )
    claims, names = [], []
    try:
        for column in named:
            name = column_text(column.get("name"))
            names.append(name)
            kind = _type(column.get("data_type") or "")
            claims.append(f"column {name} fits {kind}" if kind else f"column {name} exists")
    except UntranslatableError as error:
        return ForeignRule(dataset, place, one_line(check), str(error))
    if not settings.get("allow_extra_columns"):
        claims.append(f"extra_column_count([{', '.join(names)}]) == 0")
    difference = "the order of columns is not checked"
    if settings.get("allow_other_column_order"):
        return ForeignRule(dataset, place, "schema", Claims("schema", tuple(claims)))
    return ForeignRule(
        dataset, place, "schema", Claims("schema", tuple(claims)), difference=difference
    )


def _contract_rule(
    check: object,
    column: str | None,
    described: Mapping[str, Any],
    dataset: str,
    place: str,
    where: str | None,
) -> ForeignRule:
    """A check of a contract, of Soda 4 (`missing:`) or of 3.x (`type: no_missing_values`)."""
    shown = check if isinstance(check, str) else one_line(check)
    if isinstance(check, str):
        check = {check: None}
    if not isinstance(check, Mapping) or not check:
        return ForeignRule(dataset, place, shown, "this is not a check")
    path = column_text(column) if column else None
    if "type" in check:
        return ForeignRule(dataset, place, shown, soda.translate(check, path), where=where)
    kind, given = next(iter(check.items()))
    settings = dict(given) if isinstance(given, Mapping) else {}
    inherited = {k: v for k, v in described.items() if k.startswith(("valid_", "invalid_"))}
    inherited |= {k: v for k, v in described.items() if k.startswith("missing_")}
    own = settings.pop("filter", None)
    name = settings.pop("name", None)
    settings.pop("qualifier", None)
    settings.pop("attributes", None)
    threshold = settings.pop("threshold", None)
    threshold = dict(threshold) if isinstance(threshold, Mapping) else {}
    meaning = _older(str(kind), {**inherited, **settings}, threshold, path)
    filters = [f"({one})" for one in (where, own) if one]
    return ForeignRule(
        dataset,
        place,
        shown,
        meaning,
        name=str(name) if name else None,
        severity=Severity.P3 if threshold.get("level") == "warn" else None,
        where=" AND ".join(filters) or None,
    )


def _older(
    kind: str, settings: dict[str, Any], threshold: Mapping[str, Any], column: str | None
) -> Translation | str:
    """A check of Soda 4 as one of 3.x, translated."""
    compared = {key: value for key, value in threshold.items() if key not in _THRESHOLD_KEYS}
    for key, value in tuple(compared.items()):
        if key == "must_be_between" and isinstance(value, Mapping):
            del compared[key]
            compared |= {
                f"must_be_{bound}": value[bound]
                for bound in value
                if bound.startswith(("greater_than", "less_than"))
            }
    metric = threshold.get("metric", "count")
    check: dict[str, Any]
    match kind:
        case "missing" | "invalid" | "duplicate":
            if metric not in ("count", "percent"):
                return f"{kind}: the metric '{metric}' has no counterpart"
            unused = "invalid_" if kind != "invalid" else "missing_"
            kept = {
                key: value
                for key, value in settings.items()
                if not key.startswith((unused, "valid_" if kind != "invalid" else unused))
            }
            check = {"type": f"{kind}_{metric}", **kept, **(compared or {"must_be": 0})}
        case "row_count":
            check = {"type": "row_count", **(compared or {"must_be_greater_than": 0})}
        case "aggregate":
            check = {"type": str(settings.pop("function", "")), **settings, **compared}
        case "freshness":
            of = settings.pop("column", None)
            unit = str(threshold.get("unit", "hour"))
            if unit not in _UNITS or settings:
                return "freshness has a column and a threshold in minutes, hours or days"
            return soda.translate({"type": _UNITS[unit], **compared}, column_text(of))
        case "metric":
            key = "expression_sql" if "expression" in settings else "query_sql"
            kind = "metric_expression" if "expression" in settings else "metric_query"
            text = settings.pop("expression", None) or settings.pop("query", None)
            check = {"type": kind, key: text, **settings, **compared}
        case "failed_rows" if isinstance(settings.get("expression"), str):
            expression = settings.pop("expression")
            if settings or compared:
                return "failed_rows: a threshold of failed rows has no counterpart"
            sql = f"count_if({expression})"
            check = {"type": "metric_expression", "expression_sql": sql, "must_be": 0}
        case _:
            return f"Soda's check '{kind}' has no counterpart"
    return soda.translate(check, column)
