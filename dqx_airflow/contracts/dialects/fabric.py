"""The dialect of lakehouse tables in Fabric: one table, with everything below `contract:`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

from dqx_airflow.contracts import demands, model
from dqx_airflow.contracts.demands import Digits, OfType, OneOf, Pattern, Presence, Required
from dqx_airflow.contracts.dialects import DialectReader
from dqx_airflow.contracts.dialects.clause_reader import ClauseReader
from dqx_airflow.contracts.dialects.durations import DAY_S, HOUR_S, MINUTE_S
from dqx_airflow.contracts.dialects.personal_data import is_sensitive
from dqx_airflow.contracts.dialects.rule_names import PlacedRule, with_rules
from dqx_airflow.contracts.document import NOTHING, Mapping, Node, Scalar, Sequence
from dqx_airflow.contracts.field_types import is_spark_type, most_digits, spark_type_of, with_type
from dqx_airflow.contracts.model import CADENCES
from dqx_airflow.diagnostics.diagnostic import did_you_mean
from dqx_airflow.values import FORMATS

PlacedRules: TypeAlias = Iterator[PlacedRule]

_CLOCK_HINT = "name the column: `measured_as: max(column) vs now()`"
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


def promised_rules(reading: ClauseReader, top: Mapping) -> PlacedRules:
    """The rules, each with the path of its column; None for the table."""
    quality = reading.mapping(top, "quality")
    freshness = reading.mapping(quality, "freshness")
    # The time at which a row was created: `event_ts` in `max(event_ts) vs now()`.
    match = _AGE.fullmatch(freshness.text("measured_as") or "")
    clock = model.column_path(match[1]) if match else None
    for entry in reading.mappings(quality, "completeness"):
        yield from _completeness(reading, entry)
    for entry in reading.mappings(quality, "uniqueness"):
        yield from _uniqueness(reading, entry)
    tables = _Tables.of(reading, top)
    for entry in reading.mappings(quality, "accuracy"):
        yield from _accuracy(reading, entry, tables)
    yield from _freshness(reading, freshness, clock)
    yield from _volume(reading, reading.mapping(top, "volume"), clock)
    life = reading.mapping(top, "lifecycle")
    days = life.number("retention_days")
    node = life.get("retention_days")
    if days is None:
        reading.documented(node)
    else:
        yield clock, reading.rule("retention", demands.Retained(clock, days * DAY_S), node)
    yield from _service(reading, reading.mapping(top, "sla"))


def _completeness(reading: ClauseReader, entry: Mapping) -> PlacedRules:
    column = entry.text("column")
    percent = entry.number("min_pct")
    if column is None or percent is None:
        reading.unsupported(entry, "it needs a `column` and a `min_pct`")
    else:
        path = model.column_path(column)
        demand = demands.Complete(path, round(percent / 100, 12))
        nodes = entry.get("min_pct"), entry.get("column")
        yield path, reading.rule("completeness", demand, *nodes)


def _uniqueness(reading: ClauseReader, entry: Mapping) -> PlacedRules:
    columns = tuple(map(model.column_path, entry.texts("keys")))
    percent = entry.number("max_dup_pct")
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
    """The names that SQL in a rule may refer to: the columns of the table, and the schemas in the
    contract, both in lower case."""

    columns: frozenset[str]
    schemas: frozenset[str]

    @classmethod
    def of(cls, reading: ClauseReader, top: Mapping) -> _Tables:
        columns = [*reading.mappings(reading.mapping(top, "schema"), "columns")]
        consumers = reading.mappings(top, "consumers")
        tables = [reading.mapping(top, "format").text("table_name")]
        tables += [consumer.text("table_used") for consumer in consumers]
        keys = (column.text("foreign_key") or "" for column in columns)
        tables += [key.rpartition(".")[0] for key in keys]
        schemas = ((table or "").rpartition(".")[0].lower() for table in tables)
        names = ((column.text("name") or "").lower() for column in columns)
        return cls(frozenset(names), frozenset(schemas) - {""})

    def with_queries(self, predicate: str) -> str:
        """The predicate with a query for each table after `IN`; strings are left alone."""
        parts = _STRINGS.split(predicate.strip().rstrip(";"))
        parts[::2] = [_MEMBER.sub(self._query, part) for part in parts[::2]]
        return "".join(parts)

    def _query(self, match: re.Match[str]) -> str:
        table = match["table"]
        listed = match["listed"]
        if _NO_TABLES.fullmatch(table or listed) or (listed or "").lower() in self.columns:
            return match[0]
        own = [name.rpartition(".")[2] for name in re.findall(_NAME, match["own"])]
        table = table or listed
        others = [match["other"]] if match["other"] else own
        first, _, last = table.rpartition(".")
        is_column = last.lower() in map(str.lower, own) or first.lower() not in self.schemas
        if first and len(own) == 1 and not match["other"] and is_column:
            table = first
            others = [last]
        query = " ".join(("SELECT", ", ".join(others), "FROM", table))
        return f"{match['own']} {match['op']} ({query})"


def _accuracy(reading: ClauseReader, entry: Mapping, tables: _Tables) -> PlacedRules:
    written = entry.text("rule")
    if written is None:
        reading.unsupported(entry, "it needs a `rule`, a SQL predicate")
        return
    predicate = tables.with_queries(written)
    bare = _BARE_TABLE.search("".join(_STRINGS.split(predicate)[::2]))
    if match := _IN_TABLE.fullmatch(predicate):
        column, other, table = match.groups()
        demand = demands.Refers((model.column_path(column),), table, (model.column_path(other),))
        yield model.column_path(column), reading.rule("references", demand, entry.get("rule"))
    elif bare is not None:
        reason = f"the column is ambiguous in '{bare[0]}'"
        hint = "write `IN (SELECT column FROM table)`"
        reading.unsupported(entry.get("rule"), reason, "E420", hint)
    else:
        yield None, reading.rule("accuracy", demands.RowsSatisfy(predicate), entry.get("rule"))


def _freshness(reading: ClauseReader, freshness: Mapping, clock: str | None) -> PlacedRules:
    minutes = freshness.number("max_age_minutes")
    if minutes is None:
        reading.unsupported(freshness, "it needs a number of minutes: max_age_minutes")
        return
    nodes = freshness.get("max_age_minutes"), freshness.get("measured_as")
    if clock is None and nodes[1] is not None:
        for node in nodes:
            reading.unsupported(node, f"the column is ambiguous: {_CLOCK_HINT}")
        return
    yield clock, reading.rule("freshness", demands.Fresh(clock, minutes * MINUTE_S), *nodes)


def _volume(reading: ClauseReader, volume: Mapping, clock: str | None) -> PlacedRules:
    baseline = volume.number("baseline_rows_per_day")
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
    low = volume.number("trough_rows_per_hour")
    high = volume.number("peak_rows_per_hour")
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


def _service(reading: ClauseReader, sla: Mapping) -> PlacedRules:
    """The rules for delays: `x-bronze_landing: {from: event_ts, to: landed_at}` has the two columns
    of `bronze_landing_p99_minutes`."""
    reading.remarks(sla, "fabric: sla")
    for key, entry in sla.entries.items():
        if (match := _DELAY.fullmatch(key)) is None:
            continue
        named = f"x-{match['what']}"
        columns = reading.mapping(sla, named)
        source = columns.text("from")
        processed = columns.text("to")
        most = sla.number(key)
        digits = match["percentile"]
        share = 1.0 if digits == "100" else float(f"0.{digits:0>2}")  # p99, p999
        if source is None or processed is None:
            hint = f"add `{named}: {{from: ..., to: ...}}`"
            reading.unsupported(entry.node, f"the two columns of the delay are unknown: {hint}")
        elif most is None or most <= 0 or share <= 0:
            reading.unsupported(entry.node, "not a number of minutes above 0")
        else:
            ends = model.column_path(source), model.column_path(processed)
            demand = demands.Prompt(*ends, most * _UNITS_S[match["unit"]], share)
            nodes = entry.node, columns.get("from"), columns.get("to")
            yield None, reading.rule(f"{match['what']}_latency", demand, *nodes)


_STATUSES = ("draft", "proposed", "stable", "active", "deprecated", "sunset")
_CADENCES = ("weekly_max", "monthly_max", "quarterly_max", "yearly_max")
_CONVENTIONS = {
    "snake_case": "[a-z][a-z0-9]*(_[a-z0-9]+)*",
    "upper_snake_case": "[A-Z][A-Z0-9]*(_[A-Z0-9]+)*",
    "screaming_snake_case": "[A-Z][A-Z0-9]*(_[A-Z0-9]+)*",
    "camelcase": "[a-z][a-zA-Z0-9]*",
    "pascalcase": "[A-Z][a-zA-Z0-9]*",
    "lowercase": "[^A-Z]+",
    "uppercase": "[^a-z]+",
    "kebab_case": "[a-z][a-z0-9]*(-[a-z0-9]+)*",
}
"""The naming conventions, and the names of columns that follow them."""
_MASK_ALL = {"restricted", "confidential", "secret"}

_DECIMALS = re.compile(r"\s*(\d+)\s+decimals?\b.*", re.IGNORECASE | re.DOTALL)


def _read(reading: ClauseReader) -> model.Contract:
    top = reading.mapping(reading.root, "contract")
    reading.remarks(top, "fabric: contract")
    return model.Contract(
        dialect=model.Dialect.FABRIC,
        dialect_version=None,
        id=top.text("id") or "",
        version=reading.text(top, "version", "versioning.current_version"),
        span=reading.root.span_of("contract"),
        description=top.text("description"),
        owner=reading.text(top, "owner.team", "owner"),
        contacts=reading.texts(top, "owner.primary", "owner.secondary"),
        models=(_model(reading, top),) if top is not NOTHING else (),
        consumers=tuple(_consumers(reading, top)),
        lifecycle=_lifecycle(reading, top),
        tags=reading.texts(top, "compliance.classifications"),
        parts=tuple(top.entries),
        incident=_incident(reading, top),
    )


def _consumers(reading: ClauseReader, top: Mapping) -> Iterator[model.Consumer]:
    for item in reading.mappings(top, "consumers"):
        team = item.text("team")
        if team is not None:
            yield model.Consumer(team, use_case=item.text("use_case"), pin=item.text("pin"))


def _incident(reading: ClauseReader, top: Mapping) -> model.IncidentResponse:
    return model.IncidentResponse(
        channel=reading.text(top, "owner.slack", "owner.channel"),
        runbook=reading.text(top, "sla.incident_runbook"),
        response=reading.text(top, "sla.incident_response"),
        business_hours=reading.text(top, "sla.business_hours"),
    )


def _lifecycle(reading: ClauseReader, top: Mapping) -> model.Lifecycle:
    life = reading.mapping(top, "lifecycle")
    versioning = reading.mapping(top, "versioning")
    reading.remarks(life, "fabric: lifecycle")
    reading.remarks(versioning, "fabric: versioning")
    of_lifecycle = reading.status(life, "status", _STATUSES)
    status = reading.status(top, "status", _STATUSES)
    if status != "sunset" and life.text("status"):
        status = of_lifecycle
    reading.one_of(versioning, "scheme", ("semver",))
    cadence = versioning.text("breaking_change_cadence")
    if cadence is not None and not cadence.strip().lower().startswith((*CADENCES,)):
        reading.one_of(versioning, "breaking_change_cadence", _CADENCES)
    return model.Lifecycle(
        status=status,
        written_status=reading.text(top, "lifecycle.status", "status"),
        deprecation_date=reading.lifecycle_date(life, "deprecation_date", "deprecation", ends=True),
        sunset_date=reading.lifecycle_date(life, "sunset_date", "sunset", ends=True),
        successor=life.text("successor"),
        notice_days=reading.notice_days(versioning, "deprecation_notice_days"),
        dual_write_days=versioning.whole_number("dual_write_window_days"),
        cadence=cadence,
    )


# The table and its columns -----------------------------------------------------------------------


def _model(reading: ClauseReader, top: Mapping) -> model.Model:
    layout = reading.mapping(top, "format")
    location = layout.text("table_name")
    reading.remarks(layout, "fabric: format")
    reading.one_of(layout, "storage", (*FORMATS, "hudi"))
    schema = reading.mapping(top, "schema")
    name = (location or top.text("id") or "data").rpartition(".")[2]
    with reading.of_model(name):
        fields = [_field(reading, column) for column in reading.mappings(schema, "columns")]
        _check_layout(reading, layout, fields)
        promises = tuple(promised_rules(reading, top))
    masks_all = _masks_all(reading, top, fields)
    masked = (replace(item, is_sensitive=item.is_sensitive or masks_all) for item in fields)
    table = model.Model(
        name=name,
        span=top.span_of("schema"),
        fields=tuple(masked),
        description=top.text("description"),
        location=location,
        partition_by=reading.texts(layout, "partition_by"),
    )
    return with_rules(table, promises)


def _check_layout(reading: ClauseReader, layout: Mapping, fields: list[model.Field]) -> None:
    """Reports columns of the layout that the table does not have."""
    names = [item.name for item in fields]
    for key in ("partition_by", "z_order_by"):
        for node in layout.scalars(key):
            if node.text not in names:
                reason = f"{key} lists '{node.text}', which is not a column of the schema"
                reading.mistaken(node, "W037", reason, did_you_mean(node.text, names))
    convention = layout.text("naming_convention")
    if convention is None:
        return
    form = _CONVENTIONS.get(convention.strip().lower().replace("-", "_"))
    if form is None:
        reading.one_of(layout, "naming_convention", _CONVENTIONS)
    elif broken := [name for name in names if not re.fullmatch(form, name)]:
        reason = f"not in {convention}: {', '.join(broken)}"
        help_line = "rename the columns, or change the convention"
        reading.mistaken(layout.get("naming_convention"), "W038", reason, help_line)


def _field(reading: ClauseReader, column: Mapping) -> model.Field:
    name = column.text("name") or ""
    classification = column.text("pii_classification")
    item = model.Field(
        name=name,
        path=model.column_path(name),
        type=None,
        span=column.span,
        written_type=column.text("type"),
        semantic=reading.text(column, "semantic", "description"),
        unit=column.text("unit"),
        default=column.literal("default"),
        has_default="default" in column.entries,
        is_sensitive=is_sensitive(classification),
        classification=classification,
    )
    reading.remarks(column, "fabric: column")
    spark_type = spark_type_of(item.written_type) if item.written_type else None
    if spark_type is None:
        reading.report_unknown_type(column, "type", is_spark_type)
    else:
        item = with_type(item, spark_type)
    return replace(item, rules=tuple(_rules(reading, column, item)))


def _rules(reading: ClauseReader, column: Mapping, item: model.Field) -> Iterator[model.Rule]:
    yield reading.rule("exists", Presence(), column.get("name"))
    if item.type:
        yield reading.rule("type", OfType(), column.get("type"))
    if column.truth("nullable") is False:
        yield reading.rule("required", Required(), column.get("nullable"))
    if (expression := column.text("regex")) is not None:
        yield reading.rule("pattern", Pattern(expression), column.get("regex"))
    if accepted := column.values("enum"):
        yield reading.rule("enum", OneOf(accepted), column.get("enum"))
    yield from reading.bound_rules(column, "min", "max", item.type)
    # The decimal places that a text such as `2 decimals (cents)` allows.
    node = column.get("precision")
    match = _DECIMALS.fullmatch(column.text("precision") or "")
    if match is None:
        reading.unsupported(node, "not a number of digits: write it as `2 decimals`")
    else:
        yield reading.rule("digits", Digits(most_digits(item.type), int(match[1])), node)
    wanted = "a table and a column: write `schema.table.column`"
    yield from reading.reference_rule(column, item.path, wanted)


def _masks_all(reading: ClauseReader, top: Mapping, fields: list[model.Field]) -> bool:
    """Whether all values are masked: for a restricted table, and for a table with personal data in
    unspecified columns."""
    compliance = reading.mapping(top, "compliance")
    reading.remarks(compliance, "fabric: compliance")
    classes = {name.lower() for name in compliance.texts("classifications")}
    is_personal = any(name.startswith("pii") for name in classes)
    is_marked = any(item.is_sensitive for item in fields)
    return bool(classes & _MASK_ALL) or (is_personal and not is_marked)


READER = DialectReader(
    model.Dialect.FABRIC,
    _read,
    sign="`contract:` at the top, with `schema.columns` in it",
    meaning_key="semantic",
    weighs_meaning=True,
    elements=("quality", "volume", "format", "versioning", "lifecycle"),
    change_kinds=((("format", "storage"), "format_changed", ()),),
    names_types_as_written=True,
)
