"""Spark SQL text for names and literals. Identifiers are always quoted."""

from __future__ import annotations

from datetime import date


def quote_name(name: str) -> str:
    """A column name as one identifier, whatever characters it holds."""
    return "`" + name.replace("`", "``") + "`"


def quote_literal(value: str | int | float | bool | date) -> str:
    """A literal of Spark SQL. Text cannot end the literal, whatever it holds."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        # Spark unescapes backslashes in quoted text.
        return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
    if isinstance(value, date):
        return f"DATE'{value.isoformat()}'"
    if isinstance(value, float):
        return f"{value!r}D"
    return str(value)
