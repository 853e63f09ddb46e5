"""Checks of SodaCL, the older language of Soda: `row_count > 0`, `freshness(at) < 24h`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from dqx_airflow.contracts.column_paths import dotted_path
from dqx_airflow.contracts.demands import Fresh, QueryGives, Refers
from dqx_airflow.contracts.dialects.foreign import Translation, soda
from dqx_airflow.contracts.dialects.foreign.values import aggregate_query, sql_name
from dqx_airflow.contracts.dialects.periods import seconds_of
from dqx_airflow.errors import NoCounterpartError
from dqx_airflow.values.exact import finite_number

_CHECK = re.compile(
    r"\s*(?P<metric>\w+)\s*(\((?P<arguments>[^()]*)\))?\s*(?P<comparison>.*?)\s*", re.DOTALL
)
_COMPARISON = re.compile(r"(?P<op><=|>=|!=|<>|<|>|=)\s*(?P<bound>\S.*)")
_RANGE = re.compile(r"(?P<negation>not\s+)?between\s+(?P<low>\S+)\s+and\s+(?P<high>\S+)")
_REFERENCE = re.compile(
    r"\s*values\s+in\s+\((?P<columns>[^()]+)\)\s+must\s+exist\s+in\s+"
    r"(?P<dataset>[^\s()]+)\s*\((?P<others>[^()]+)\)\s*"
)
_THRESHOLDS = {
    "=": "must_be",
    "!=": "must_not_be",
    "<>": "must_not_be",
    "<": "must_be_less_than",
    "<=": "must_be_less_than_or_equal_to",
    ">": "must_be_greater_than",
    ">=": "must_be_greater_than_or_equal_to",
}
_OF_ROWS = ("row_count",)
_OF_COLUMNS = ("duplicate_count", "duplicate_percent")


def translate(check: object) -> Translation:
    """The demands of a check: a string, or a mapping from one to its configuration.

    :raises NoCounterpartError: there are none.
    """
    text, given = next(iter(check.items())) if isinstance(check, dict) and check else (check, {})
    if not isinstance(text, str) or not isinstance(given, Mapping):
        raise NoCounterpartError(f"SodaCL's check '{text}' has no counterpart")
    settings = {str(key).replace(" ", "_"): value for key, value in given.items()}
    if (match := _REFERENCE.fullmatch(text)) is not None:
        if settings:
            raise NoCounterpartError("a reference with further settings")
        return _reference(match)
    parts = _CHECK.fullmatch(text)
    if parts is None:
        raise NoCounterpartError(f"SodaCL's check '{text}' has no counterpart")
    arguments = _names(parts["arguments"] or "")
    if parts["metric"] == "freshness":
        return _freshness(arguments, parts["comparison"])
    compared = threshold(parts["comparison"])
    if compared is None:
        raise NoCounterpartError(f"SodaCL's check '{text}' does not compare with a number")
    if parts["metric"] == "percentile":
        return _percentile(arguments, compared)
    if (own_metric := _own_metric(parts["metric"], settings)) is not None and not arguments:
        return soda.translate({**own_metric, **compared}, None)
    rule = {"type": parts["metric"], **settings, **compared}
    if parts["metric"] in _OF_COLUMNS and len(arguments) > 1:
        return soda.translate({**rule, "columns": arguments}, None)
    expected = 0 if parts["metric"] in _OF_ROWS else 1
    if len(arguments) != expected:
        raise NoCounterpartError(f"SodaCL's check '{text}' has no counterpart")
    return soda.translate(rule, dotted_path(arguments[0]) if arguments else None)


def _names(text: str) -> list[str]:
    return [name.strip().strip('"`') for name in text.split(",") if name.strip()]


def _number(text: str) -> int | float | None:
    """A number; SodaCL writes percentages with or without a percent sign."""
    bare = text.strip().removesuffix("%").strip()
    return finite_number(bare) if re.fullmatch(r"[-+]?\d+(\.\d+)?", bare) else None


def _own_metric(metric: str, settings: Mapping[str, Any]) -> dict[str, Any] | None:
    """The metric that a check defines itself: `avg_span expression: AVG(a - b)`."""
    rest = dict(settings)
    for kind in ("expression", "query"):
        if (sql := rest.pop(f"{metric}_{kind}", None)) is not None:
            return {"type": f"metric_{kind}", f"{kind}_sql": sql, **rest}
    return None


def threshold(comparison: str) -> dict[str, Any] | None:
    """A comparison with numbers as Soda's keys: `> 5` is `must_be_greater_than: 5`; None for other
    comparisons."""
    if match := _RANGE.fullmatch(comparison):
        bounds = [_number(match["low"]), _number(match["high"])]
        key = "must_not_be_between" if match["negation"] else "must_be_between"
        return {key: bounds} if None not in bounds else None
    match = _COMPARISON.fullmatch(comparison)
    bound = _number(match["bound"]) if match else None
    return {_THRESHOLDS[match["op"]]: bound} if match and bound is not None else None


def _reference(match: re.Match[str]) -> Translation:
    columns, other_columns = _names(match["columns"]), _names(match["others"])
    if len(columns) != len(other_columns):
        raise NoCounterpartError("a reference needs the same number of columns on both sides")
    paths, other_paths = tuple(map(dotted_path, columns)), tuple(map(dotted_path, other_columns))
    demand = Refers(paths, match["dataset"], other_paths)
    return Translation("references", (demand,), paths[0] if len(paths) == 1 else None)


def _freshness(arguments: list[str], comparison: str) -> Translation:
    match = _COMPARISON.fullmatch(comparison)
    seconds = seconds_of(match["bound"]) if match and match["op"] in ("<", "<=") else None
    if seconds is None or len(arguments) != 1 or "::" in arguments[0]:
        raise NoCounterpartError("freshness needs `<` and a duration: write `freshness(at) < 24h`")
    path = dotted_path(arguments[0])
    return Translation("freshness", (Fresh(path, seconds),), path)


def _percentile(arguments: list[str], threshold: dict[str, Any]) -> Translation:
    share = _number(arguments[1]) if len(arguments) == 2 else None
    if share is None or not 0 <= share <= 1:
        raise NoCounterpartError("a percentile needs a column and a number between 0 and 1")
    path = dotted_path(arguments[0])
    query = aggregate_query(f"percentile({sql_name(path)}, {share})")
    demands = tuple(QueryGives(query, condition) for condition in soda.comparisons(threshold))
    return Translation("percentile", demands, path)
