"""The promises of a contract for Fabric: quality, volume, retention, service."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from dqx_airflow.contracts import demands
from dqx_airflow.contracts.column_paths import column_path
from dqx_airflow.contracts.dialects.clause_reader import ClauseReader
from dqx_airflow.contracts.dialects.extensions import PlacedRule
from dqx_airflow.contracts.dialects.periods import DAY_S, HOUR_S, MINUTE_S
from dqx_airflow.contracts.source.yaml_document import Mapping, Node, Scalar, Sequence

_SAY_CLOCK = "name the column: `measured_as: max(column) vs now()`"


_AGE = re.compile(r"\s*max\(\s*`?([^`()]+?)`?\s*\)\s+vs\s+now\(\)\s*", re.IGNORECASE)


_DELAY = re.compile(r"(?P<what>\w+)_p(?P<percentile>\d+)_(?P<unit>seconds|minutes|hours|days)")


_WEEK_DAYS = 7
_IN_TABLE = re.compile(
    r"\s*`?(\w+)`?\s+in\s*\(\s*select\s+(?:distinct\s+)?`?(\w+)`?\s+from\s+(\w+(?:\.\w+)*)\s*\)\s*",
    re.IGNORECASE,
)
_NAME = r"(?:`[^`]+`|[A-Za-z_]\w*)(?:\.(?:`[^`]+`|[A-Za-z_]\w*))*"
_MEMBER = re.compile(
    rf"(?<![\w`.])(?P<own>{_NAME}|\(\s*{_NAME}(?:\s*,\s*{_NAME})+\s*\))\s+(?P<op>(?:not\s+)?in)"
    rf"(?:\s+(?:table\s+)?(?P<table>{_NAME})(?:\s*\(\s*(?P<other>{_NAME})\s*\))?"
    rf"|\s*\(\s*(?:table\s+)?(?P<listed>{_NAME})\s*\))",
    re.IGNORECASE,
)
"""`state_code IN dim_state`: the values of a column of another table."""
_STRINGS = re.compile(r"""('(?:[^']|'')*'|"(?:[^"]|"")*")""")
_BARE_TABLE = re.compile(rf"\bin\s+(?!select\b){_NAME}", re.IGNORECASE)
_NO_TABLES = re.compile(r"null|true|false|current_\w+|select|unnest|values", re.IGNORECASE)
_UNITS_S = {"seconds": 1, "minutes": MINUTE_S, "hours": HOUR_S, "days": DAY_S}


def promised_rules(reading: ClauseReader, top: Mapping) -> Iterator[PlacedRule]:
    """The rules, each with the path of its column; None for the table."""
    quality = reading.mapping(top, "quality")
    freshness = reading.mapping(quality, "freshness")
    clock = _clock(reading, freshness)
    for entry in reading.mappings(quality, "completeness"):
        yield from _completeness(reading, entry)
    for entry in reading.mappings(quality, "uniqueness"):
        yield from _uniqueness(reading, entry)
    tables = _Tables.of(reading, top)
    for entry in reading.mappings(quality, "accuracy"):
        yield from _accuracy(reading, entry, tables)
    yield from _freshness(reading, freshness, clock)
    yield from _volume(reading, reading.mapping(top, "volume"), clock)
    yield from _retention(reading, reading.mapping(top, "lifecycle"), clock)
    yield from _service(reading, reading.mapping(top, "sla"))


def _clock(reading: ClauseReader, freshness: Mapping | None) -> str | None:
    """The column with the time at which a row was created: `event_ts` in `max(event_ts) vs
    now()`."""
    match = _AGE.fullmatch(reading.text(freshness, "measured_as") or "")
    return column_path(match[1]) if match else None


def _completeness(reading: ClauseReader, entry: Mapping) -> Iterator[PlacedRule]:
    column, percent = reading.text(entry, "column"), reading.number(entry, "min_pct")
    if column is None or percent is None:
        reading.unsupported(entry, "it needs a `column` and a `min_pct`")
    else:
        path = column_path(column)
        demand = demands.Complete(path, round(percent / 100, 12))
        nodes = entry.get("min_pct"), entry.get("column")
        yield path, reading.rule("completeness", demand, *nodes)


def _uniqueness(reading: ClauseReader, entry: Mapping) -> Iterator[PlacedRule]:
    columns = tuple(map(column_path, reading.texts(entry, "keys")))
    percent = reading.number(entry, "max_dup_pct")
    if not columns:
        reading.unsupported(entry, "it needs the `keys` that are unique")
        return
    column = columns[0] if len(columns) == 1 else None
    keys = entry.get("keys")
    if percent is None:
        yield column, reading.rule("unique", demands.Unique(columns), keys)
    else:
        demand = demands.Distinct(columns, round(percent / 100, 12))
        yield column, reading.rule("uniqueness", demand, entry.get("max_dup_pct"), keys)


@dataclass(frozen=True, slots=True)
class _Tables:
    """What names in a rule may mean: the columns of the table, and the schemas that the contract
    names, both in lower case."""

    columns: frozenset[str]
    schemas: frozenset[str]

    @classmethod
    def of(cls, reading: ClauseReader, top: Mapping) -> _Tables:
        columns = [*reading.mappings(reading.mapping(top, "schema"), "columns")]
        consumers = reading.mappings(top, "consumers")
        tables = [reading.text(reading.mapping(top, "format"), "table_name")]
        tables += [reading.text(consumer, "table_used") for consumer in consumers]
        keys = (reading.text(column, "foreign_key") or "" for column in columns)
        tables += [key.rpartition(".")[0] for key in keys]
        schemas = ((table or "").rpartition(".")[0].lower() for table in tables)
        names = ((reading.text(column, "name") or "").lower() for column in columns)
        return cls(frozenset(names), frozenset(schemas) - {""})

    def with_queries(self, predicate: str) -> str:
        """The predicate with a query for each table after `IN`; strings are left alone."""
        parts = _STRINGS.split(predicate.strip().rstrip(";"))
        parts[::2] = [_MEMBER.sub(self._query, part) for part in parts[::2]]
        return "".join(parts)

    def _query(self, match: re.Match[str]) -> str:
        table, listed = match["table"], match["listed"]
        if _NO_TABLES.fullmatch(table or listed) or (listed or "").lower() in self.columns:
            return match[0]
        own = [name.rpartition(".")[2] for name in re.findall(_NAME, match["own"])]
        table, others = table or listed, [match["other"]] if match["other"] else own
        first, _, last = table.rpartition(".")
        is_column = last.lower() in map(str.lower, own) or first.lower() not in self.schemas
        if first and len(own) == 1 and not match["other"] and is_column:
            table, others = first, [last]
        query = " ".join(("SELECT", ", ".join(others), "FROM", table))
        return f"{match['own']} {match['op']} ({query})"


def _accuracy(reading: ClauseReader, entry: Mapping, tables: _Tables) -> Iterator[PlacedRule]:
    written = reading.text(entry, "rule")
    if written is None:
        reading.unsupported(entry, "it needs a `rule`, a SQL predicate")
        return
    predicate = tables.with_queries(written)
    bare = _BARE_TABLE.search("".join(_STRINGS.split(predicate)[::2]))
    if match := _IN_TABLE.fullmatch(predicate):
        column, other, table = match.groups()
        demand = demands.Refers((column_path(column),), table, (column_path(other),))
        yield column_path(column), reading.rule("references", demand, entry.get("rule"))
    elif bare is not None:
        reason = f"the column is ambiguous in '{bare[0]}'"
        hint = "write `IN (SELECT column FROM table)`"
        reading.unsupported(entry.get("rule"), reason, "E420", hint)
    else:
        yield None, reading.rule("accuracy", demands.RowsSatisfy(predicate), entry.get("rule"))


def _freshness(
    reading: ClauseReader, freshness: Mapping | None, clock: str | None
) -> Iterator[PlacedRule]:
    minutes = reading.number(freshness, "max_age_minutes")
    if freshness is None or minutes is None:
        reading.unsupported(freshness, "it needs a number of minutes: max_age_minutes")
        return
    nodes = freshness.get("max_age_minutes"), freshness.get("measured_as")
    if clock is None and nodes[1] is not None:
        for node in nodes:
            reading.unsupported(node, f"the column is ambiguous: {_SAY_CLOCK}")
        return
    yield clock, reading.rule("freshness", demands.Fresh(clock, minutes * MINUTE_S), *nodes)


def _volume(
    reading: ClauseReader, volume: Mapping | None, clock: str | None
) -> Iterator[PlacedRule]:
    if volume is None:
        return
    baseline = reading.number(volume, "baseline_rows_per_day")
    baseline_node = volume.get("baseline_rows_per_day")
    # Two spellings with two meanings: the mean of a week, and each day.
    for key, days in (("alert_band", _WEEK_DAYS), ("alert_if_outside_band", 1)):
        band = _band(volume.get(key))
        if band is None:
            reading.unsupported(volume.get(key), "not a band: write [0.5, 2.0] or 0.5..2.0")
        else:
            demand = demands.Volume(*band, baseline, days if baseline is not None else _WEEK_DAYS)
            yield None, reading.rule("volume", demand, volume.get(key), baseline_node)
    reading.documented(baseline_node, "has no effect without an `alert_band`")
    low, high = (
        reading.number(volume, key) for key in ("trough_rows_per_hour", "peak_rows_per_hour")
    )
    if low is None and high is None:
        return
    nodes = volume.get("trough_rows_per_hour"), volume.get("peak_rows_per_hour")
    yield clock, reading.rule("hourly_volume", demands.HourlyVolume(clock, low, high), *nodes)


def _band(node: Node | None) -> tuple[float, float] | None:
    """The multiples in `[0.5, 2.0]` and `0.5..2.0`."""
    if isinstance(node, Sequence):
        parts = [item.text for item in node.items if isinstance(item, Scalar)]
    else:
        parts = node.text.split("..") if isinstance(node, Scalar) else []
    try:
        low, high = map(float, parts)
    except ValueError:
        return None
    return low, high


def _retention(
    reading: ClauseReader, life: Mapping | None, clock: str | None
) -> Iterator[PlacedRule]:
    days = reading.number(life, "retention_days")
    node = reading.node(life, "retention_days")
    if days is None:
        reading.documented(node)
    else:
        yield clock, reading.rule("retention", demands.Retained(clock, days * DAY_S), node)


def _service(reading: ClauseReader, sla: Mapping | None) -> Iterator[PlacedRule]:
    """The delays: `x-bronze_landing: {from: event_ts, to: landed_at}` names the two columns of
    `bronze_landing_p99_minutes`."""
    reading.documented_keys(
        sla,
        "incident_response",
        "incident_runbook",
        "business_hours",
        reason="shown when a rule fails",
    )
    for key, entry in sla.entries.items() if sla is not None else ():
        if (match := _DELAY.fullmatch(key)) is None:
            continue
        named = f"x-{match['what']}"
        columns = reading.mapping(sla, named)
        source, processed = (reading.text(columns, end) for end in ("from", "to"))
        most = reading.number(sla, key)
        digits = match["percentile"]
        share = 1.0 if digits == "100" else float(f"0.{digits:0>2}")  # p99, p999
        if source is None or processed is None:
            reason = (
                f"the two columns of the delay are unknown: add `{named}: {{from: ..., to: ...}}`"
            )
            reading.unsupported(entry.node, reason)
        elif most is None or most <= 0 or share <= 0:
            reading.unsupported(entry.node, "not a number of minutes above 0")
        else:
            ends = column_path(source), column_path(processed)
            demand = demands.Prompt(*ends, most * _UNITS_S[match["unit"]], share)
            assert columns is not None
            nodes = entry.node, columns.get("from"), columns.get("to")
            yield None, reading.rule(f"{match['what']}_latency", demand, *nodes)
