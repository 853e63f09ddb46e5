"""The claims of a schema check in SodaCL."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from dqx_airflow.migration.dql_text import column_text
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
            return [f"column {column_text(one)} exists" for one in value]
        case "wrong column type" if isinstance(value, Mapping):
            return [
                f"column {column_text(name)} fits {type_text(kind)}" for name, kind in value.items()
            ]
    raise UntranslatableError(_NO_SCHEMA_CLAIMS.get(key, f"'{key}' has no counterpart"))


_NO_SCHEMA_CLAIMS = {
    "when forbidden column present": (
        "a forbidden column has no counterpart: list the allowed "
        "columns, `extra_column_count([...]) == 0`"
    ),
    "when wrong column index": "the order of columns is not checked",
    "when schema changes": "it compares with the last scan: list the columns, or use a contract",
}


def type_text(written: object) -> str:
    """The Spark name of a database type."""
    kind = str(written).lower()
    return _TYPES.get(kind, kind)
