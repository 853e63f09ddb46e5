"""Soda: SodaCL (`checks for orders:`), data contracts of Soda 4 and older ones.

A check is translated as in contracts; the checks of Soda 4 are first converted to those of 3.x.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from dqx_airflow.contracts.dialects.foreign import Translation, soda
from dqx_airflow.errors import NoCounterpartError
from dqx_airflow.importing import sodacl
from dqx_airflow.importing.foreign_rule import (
    Claims,
    ForeignRule,
    ImportRequest,
    column_text,
    meaning_or_reason,
    yaml_line,
)
from dqx_airflow.importing.sodacl import IS_SHARE, OF_NO_ROWS, count_of, type_text
from dqx_airflow.values import Severity

_UNITS = {"minute": "freshness_in_minutes", "hour": "freshness_in_hours"}
_UNITS |= {"day": "freshness_in_days"}
_THRESHOLD_KEYS = ("metric", "unit", "level")


def recognises(document: Any) -> bool:
    if not isinstance(document, Mapping):
        return False
    if any(
        str(key).startswith((sodacl.CHECKS_FOR, sodacl.FOR_EACH, sodacl.FILTER)) for key in document
    ):
        return True
    return isinstance(document.get("dataset"), str) and bool({"columns", "checks"} & set(document))


def rules_of(document: Mapping[str, Any], request: ImportRequest) -> Iterator[ForeignRule]:
    if isinstance(document.get("dataset"), str):
        yield from _of_contract(document, request)
    else:
        yield from sodacl.rules_of(document, request)


def _of_contract(document: Mapping[str, Any], request: ImportRequest) -> Iterator[ForeignRule]:
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
    """The check `schema`: the columns of the contract exist, with their types, and no others."""
    settings = check.get("schema") if isinstance(check, Mapping) else None
    settings = settings if isinstance(settings, Mapping) else {}
    named = (
        [column for column in columns if isinstance(column, Mapping)]
        if isinstance(columns, list)
        else []
    )

    def claimed() -> Claims:
        names = [column_text(column.get("name")) for column in named]
        kinds = [type_text(column.get("data_type") or "") for column in named]
        claims = [
            f"column {name} fits {kind}" if kind else f"column {name} exists"
            for name, kind in zip(names, kinds, strict=True)
        ]
        if not settings.get("allow_extra_columns"):
            claims.append(f"extra_column_count([{', '.join(names)}]) == 0")
        return Claims("schema", tuple(claims))

    meaning = meaning_or_reason(claimed)
    shown = yaml_line(check) if isinstance(meaning, str) else "schema"
    is_in_any_order = settings.get("allow_other_column_order") or isinstance(meaning, str)
    difference = None if is_in_any_order else "the order of columns is not checked"
    return ForeignRule(dataset, place, shown, meaning, difference=difference)


def _contract_rule(
    check: object,
    column: str | None,
    described: Mapping[str, Any],
    dataset: str,
    place: str,
    where: str | None,
) -> ForeignRule:
    """A check of a contract, of Soda 4 (`missing:`) or of 3.x (`type: no_missing_values`)."""
    shown = check if isinstance(check, str) else yaml_line(check)
    if isinstance(check, str):
        check = {check: None}
    if not isinstance(check, Mapping) or not check:
        return ForeignRule(dataset, place, shown, "this is not a check")
    path = column_text(column) if column else None
    if "type" in check:
        is_share = where and IS_SHARE.match(str(check["type"]))
        meaning = meaning_or_reason(lambda: soda.translate(check, path))
        difference = OF_NO_ROWS if is_share else None
        return ForeignRule(dataset, place, shown, meaning, where=where, difference=difference)
    kind, given = next(iter(check.items()))
    settings = dict(given) if isinstance(given, Mapping) else {}
    inherited = {k: v for k, v in described.items() if k.startswith(("valid_", "invalid_"))}
    inherited |= {k: v for k, v in described.items() if k.startswith("missing_")}
    own_filter = settings.pop("filter", None)
    name = settings.pop("name", None)
    settings.pop("qualifier", None)
    settings.pop("attributes", None)
    threshold = settings.pop("threshold", None)
    threshold = dict(threshold) if isinstance(threshold, Mapping) else {}
    filters = [f"({condition})" for condition in (where, own_filter) if condition]
    settings = {**inherited, **settings}
    meaning = meaning_or_reason(lambda: _older(str(kind), settings, threshold, path))
    return ForeignRule(
        dataset,
        place,
        shown,
        meaning,
        name=str(name) if name else None,
        severity=Severity.P3 if threshold.get("level") == "warn" else None,
        where=" AND ".join(filters) or None,
        difference=OF_NO_ROWS if filters and threshold.get("metric") == "percent" else None,
    )


def _older(
    kind: str, settings: dict[str, Any], threshold: Mapping[str, Any], column: str | None
) -> Translation:
    """A check of Soda 4 as one of 3.x, translated.

    :raises NoCounterpartError: it has no counterpart.
    """
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
                raise NoCounterpartError(f"{kind}: the metric '{metric}' has no counterpart")
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
                raise NoCounterpartError(
                    "freshness needs a column and a threshold in minutes, hours or days"
                )
            return soda.translate({"type": _UNITS[unit], **compared}, column_text(of))
        case "metric":
            key = "expression_sql" if "expression" in settings else "query_sql"
            kind = "metric_expression" if "expression" in settings else "metric_query"
            text = settings.pop("expression", None) or settings.pop("query", None)
            check = {"type": kind, key: text, **settings, **compared}
        case "failed_rows" if isinstance(settings.get("expression"), str):
            sql = f"count_if({settings.pop('expression')})"
            compared = compared or {"must_be": 0}
            check = {"type": "metric_expression", "expression_sql": sql, **settings, **compared}
        case "failed_rows" if isinstance(settings.get("query"), str):
            sql = count_of(settings.pop("query"))
            compared = compared or {"must_be": 0}
            check = {"type": "metric_query", "query_sql": sql, **settings, **compared}
        case _:
            raise NoCounterpartError(f"Soda's check '{kind}' has no counterpart")
    return soda.translate(check, column)
