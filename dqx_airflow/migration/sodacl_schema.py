"""The claims of a schema check in SodaCL."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from dqx_airflow.migration.dql_text import column_text, columns_exist, list_text, number
from dqx_airflow.migration.foreign_rule import Claims, UntranslatableError
from dqx_airflow.values import Severity

_TYPES = {"varchar": "string", "text": "string", "integer": "int", "float8": "double"}


def schema_claims(levels: Mapping[str, Any]) -> Iterator[tuple[Severity | None, Claims | str]]:
    """The claims of a schema check at each of its levels, for each kind of mistake."""
    if not levels:
        yield None, "schema: it is empty"
    for level, rules in levels.items():
        if level not in ("fail", "warn") or not isinstance(rules, Mapping):
            yield None, f"schema: '{level}' has no counterpart"
            continue
        severity = Severity.P3 if level == "warn" else None
        for key, value in rules.items():
            try:
                yield severity, Claims("schema", tuple(_claims_of(str(key), value)))
            except UntranslatableError as error:
                yield severity, f"schema: {error}"


def _claims_of(key: str, value: Any) -> list[str]:
    match key.removeprefix("when "):
        case "required column missing" if isinstance(value, list):
            return [*columns_exist(value)]
        case "wrong column type" if isinstance(value, Mapping):
            return [
                f"column {column_text(name)} fits {type_text(kind)}" for name, kind in value.items()
            ]
        case "forbidden column present" if isinstance(value, list):
            names = list_text(str(pattern).replace("%", "*") for pattern in value)
            return [f"forbidden_column_count({names}) == 0"]
        case "wrong column index" if isinstance(value, Mapping):
            # A column that is not there has no wrong place.
            return [
                f"coalesce(column_position({column_text(name)}), {place}) == {place}"
                for name, place in ((name, number(index) + 1) for name, index in value.items())
            ]
        case "schema changes":
            raise UntranslatableError(
                "it compares with the last scan: list the columns, or use a contract"
            )
    raise UntranslatableError(f"'{key}' has no counterpart")


def type_text(written: object) -> str:
    """The Spark name of a database type."""
    kind = str(written).lower()
    return _TYPES.get(kind, kind)
