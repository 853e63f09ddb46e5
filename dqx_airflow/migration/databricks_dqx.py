"""Databricks DQX: checks as YAML or JSON, `criticality`, `filter` and `check.function`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from dqx_airflow.migration.documents import one_line
from dqx_airflow.migration.dqx_checks import (
    FORMATS,
    FUNCTIONS,
    Arguments,
    columns_in,
    is_word,
    literals_in,
    reason_against,
)
from dqx_airflow.migration.foreign_rule import ForeignRule, Meaning, UntranslatableError
from dqx_airflow.migration.request import ImportRequest
from dqx_airflow.values import Severity


def recognises(document: Any) -> bool:
    return isinstance(document, list) and any(
        isinstance(check, Mapping) and isinstance(check.get("check"), Mapping) for check in document
    )


def rules_of(document: list[Any], request: ImportRequest) -> Iterator[ForeignRule]:
    dataset = request.dataset or "data"
    for index, entry in enumerate(document):
        place = f"{request.file}: [{index}]"
        check = entry.get("check") if isinstance(entry, Mapping) else None
        if not isinstance(check, Mapping):
            yield ForeignRule(dataset, place, one_line(entry), "this is not a check")
            continue
        for arguments in _each(check):
            yield _rule(entry, str(check.get("function")), arguments, dataset, place)


def _each(check: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The arguments of the check, for each of its columns."""
    arguments = dict(check.get("arguments") or {})
    every = check.get("for_each_column")
    if not isinstance(every, list):
        yield arguments
        return
    for column in every:
        yield {**arguments, ("columns" if isinstance(column, list) else "column"): column}


def _rule(
    entry: Mapping[str, Any], function: str, arguments: dict[str, Any], dataset: str, place: str
) -> ForeignRule:
    shown = f"{function}({', '.join(f'{k}={v!r}' for k, v in arguments.items())})"
    own_filter = arguments.pop("row_filter", None)
    filters = [f"({condition})" for condition in (entry.get("filter"), own_filter) if condition]
    try:
        if function not in FUNCTIONS:
            raise UntranslatableError(reason_against(function))
        reader, parameters = FUNCTIONS[function]
        for key in arguments:
            if key not in parameters:
                raise UntranslatableError(f"'{key}' has no counterpart for {function}")
        groups = tuple(columns_in(arguments.pop("group_by", None) or []))
        meaning: Meaning = reader(arguments)
    except UntranslatableError as error:
        meaning, groups = str(error), ()
    own_name = entry.get("name") or _name_inside(entry)
    return ForeignRule(
        dataset,
        place,
        shown,
        meaning,
        name=str(own_name) if own_name else None,
        severity=Severity.P3 if entry.get("criticality") == "warn" else None,
        where=" AND ".join(filters) or None,
        groups=groups,
        difference=_difference(function, arguments, is_grouped=bool(groups)),
    )


def _name_inside(entry: Mapping[str, Any]) -> object:
    check = entry.get("check")
    return check.get("name") if isinstance(check, Mapping) else None


def _difference(function: str, arguments: Arguments, *, is_grouped: bool) -> str | None:
    """When the verdicts of the two tools differ."""
    if function.endswith("in_list") and any(map(is_word, literals_in(arguments))):
        return (
            "words without quotes are strings, as before DQX 0.16; later versions read "
            "them as columns"
        )
    if function in FORMATS:
        return "the format is checked as DQL defines it"
    return "a dataset without rows passes in DQX but fails here" if is_grouped else None
