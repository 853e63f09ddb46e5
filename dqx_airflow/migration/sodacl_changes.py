"""Checks of a change over time in SodaCL: `change percent for row_count < 50%`."""

from __future__ import annotations

import re

from dqx_airflow.migration.dql_text import column_text
from dqx_airflow.migration.foreign_rule import Claims, UntranslatableError
from dqx_airflow.migration.sodacl_levels import comparison_text

CHANGE = re.compile(
    r"change\s+(?P<span>avg\s+last\s+(?P<days>\d+)\s+|same\s+day\s+last\s+week\s+)?"
    r"(?P<percent>percent\s+)?for\s+"
    r"(?P<metric>\w+)(\((?P<column>[^()]+)\))?\s*(?P<comparison>[<>=!b].*)"
)
_CHANGING = {
    "row_count": "num_rows({})",
    "avg": "average({})",
    "sum": "sum({})",
    "min": "minimum({})",
    "max": "maximum({})",
    "missing_count": "null_count({})",
    "duplicate_count": "repeated_count({})",
}
OF_SCANS = "Soda compares with its last scans, DQL with the previous days"
"""How the verdicts of such a check differ."""


def change_claims(match: re.Match[str]) -> Claims:
    """A metric compared with that of another day.

    :raises UntranslatableError: the metric or the comparison has no counterpart.
    """
    metric = _CHANGING.get(match["metric"])
    if metric is None or (match["metric"] == "row_count") == bool(match["column"]):
        raise UntranslatableError(f"a change of {match['metric']} has no counterpart")
    column = column_text(match["column"].strip('"')) if match["column"] else ""

    def measured(*more: str) -> str:
        return metric.format(", ".join(filter(None, (column, *more))))

    span = match["span"] or ""
    before = measured("lag 7" if span.startswith("same") else "lag 1")
    if match["days"]:
        before = f"mean({before}, n {match['days']})"
    change = f"{measured()} - {before}"
    unit = "%" if match["percent"] else ""
    subject = f"({change}) / {before}" if unit else change
    return Claims(
        "change", (f"{subject} {comparison_text(match['comparison'], unit)}",), column or None
    )
