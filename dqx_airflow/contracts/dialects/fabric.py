"""The dialect of lakehouse tables in Fabric: one table, all that is said below `contract:`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import TypeAlias

from dqx_airflow.contracts.demands import (
    Complete,
    Digits,
    Distinct,
    Fresh,
    HourlyVolume,
    OfType,
    OneOf,
    Pattern,
    Presence,
    Prompt,
    Refers,
    Required,
    Retained,
    RowsSatisfy,
    Unique,
    Volume,
)
from dqx_airflow.contracts.dialects import DialectReader
from dqx_airflow.contracts.dialects.clause_reader import ClauseReader
from dqx_airflow.contracts.dialects.durations import DAY_S, HOUR_S, MINUTE_S
from dqx_airflow.contracts.dialects.field_types import (
    bound_rule,
    most_digits,
    report_unknown_type,
    spark_type_of,
    with_type,
)
from dqx_airflow.contracts.dialects.frequencies import CADENCES
from dqx_airflow.contracts.dialects.naming import column_path, told_apart
from dqx_airflow.contracts.dialects.sensitivity import is_sensitive
from dqx_airflow.contracts.model import (
    Consumer,
    Contract,
    Dialect,
    Field,
    IncidentResponse,
    Lifecycle,
    Model,
    Rule,
)
from dqx_airflow.contracts.source.schemas import load_schema
from dqx_airflow.contracts.source.unknown_keys import has_misspelled
from dqx_airflow.contracts.source.yaml_document import Mapping, Node, Scalar, Sequence
from dqx_airflow.diagnostics.nearest import did_you_mean
from dqx_airflow.values import FORMATS

PlacedRule: TypeAlias = "tuple[str | None, Rule]"
"""A rule, with the column that it is about; None where it is about the table."""

_WEEK_DAYS = 7
_STATUS = {
    "draft": "draft",
    "proposed": "draft",
    "stable": "active",
    "active": "active",
    "deprecated": "deprecated",
    "sunset": "sunset",
}
_CADENCES = ("weekly_max", "monthly_max", "quarterly_max", "yearly_max")
_CONVENTIONS = {
    "snake_case": r"[a-z][a-z0-9]*(_[a-z0-9]+)*",
    "upper_snake_case": r"[A-Z][A-Z0-9]*(_[A-Z0-9]+)*",
    "screaming_snake_case": r"[A-Z][A-Z0-9]*(_[A-Z0-9]+)*",
    "camelcase": r"[a-z][a-zA-Z0-9]*",
    "pascalcase": r"[A-Z][a-zA-Z0-9]*",
    "lowercase": r"[^A-Z]+",
    "uppercase": r"[^a-z]+",
    "kebab_case": r"[a-z][a-z0-9]*(-[a-z0-9]+)*",
}
_MASK_ALL = {"restricted", "confidential", "secret"}
_SAY_CLOCK = "name it: `measured_as: max(column) vs now()`"

_AGE = re.compile(r"\s*max\(\s*`?([^`()]+?)`?\s*\)\s+vs\s+now\(\)\s*", re.IGNORECASE)
_IN_TABLE = re.compile(
    r"\s*`?(\w+)`?\s+in\s*\(\s*select\s+(?:distinct\s+)?`?(\w+)`?\s+from\s+(\w+(?:\.\w+)*)\s*\)\s*",
    re.IGNORECASE,
)
_DECIMALS = re.compile(r"\s*(\d+)\s+decimals?\b.*", re.IGNORECASE | re.DOTALL)
_DELAY = re.compile(r"(?P<what>\w+)_p(?P<percentile>\d+)_(?P<unit>seconds|minutes|hours|days)")
_UNITS_S = {"seconds": 1, "minutes": MINUTE_S, "hours": HOUR_S, "days": DAY_S}


def _recognises(root: Mapping) -> bool:
    contract = root.get("contract")
    if not isinstance(contract, Mapping):
        return False
    if "schema" in contract.entries:
        return True
    return "schema" not in root.entries and not has_misspelled(root, "schema")


def _read(reading: ClauseReader) -> Contract:
    top = reading.mapping(reading.root, "contract")
    reading.documented_keys(
        top, "id", "version", "status", "description", "owner", "producer", "consumers"
    )
    owner = reading.mapping(top, "owner")
    versioning = reading.mapping(top, "versioning")
    contacts = (reading.text(owner, key) for key in ("primary", "secondary"))
    sla = reading.mapping(top, "sla")
    return Contract(
        Dialect.FABRIC,
        dialect_version=None,
        id=reading.text(top, "id") or "",
        version=reading.text(top, "version") or reading.text(versioning, "current_version"),
        span=reading.root.span_of("contract"),
        description=reading.text(top, "description"),
        owner=reading.text(owner, "team") or reading.text(top, "owner"),
        contacts=tuple(filter(None, contacts)),
        models=(_model(reading, top),) if top is not None else (),
        consumers=tuple(_consumers(reading, top)),
        lifecycle=_lifecycle(reading, top, versioning),
        tags=reading.texts(reading.mapping(top, "compliance"), "classifications"),
        parts=tuple(top.entries) if top is not None else (),
        incident=IncidentResponse(
            channel=reading.text(owner, "slack") or reading.text(owner, "channel"),
            runbook=reading.text(sla, "incident_runbook"),
            response=reading.text(sla, "incident_response"),
            business_hours=reading.text(sla, "business_hours"),
        ),
    )


def _consumers(reading: ClauseReader, top: Mapping | None) -> Iterator[Consumer]:
    for item in reading.mappings(top, "consumers"):
        team = reading.text(item, "team")
        if team is not None:
            yield Consumer(team, reading.text(item, "use_case"), reading.text(item, "pin"))


def _lifecycle(reading: ClauseReader, top: Mapping | None, versioning: Mapping | None) -> Lifecycle:
    life = reading.mapping(top, "lifecycle")
    reading.documented_keys(life, "status", "deprecation_date", "sunset_date", "successor")
    reading.documented_keys(
        versioning,
        "scheme",
        "current_version",
        "breaking_change_cadence",
        "deprecation_notice_days",
        "dual_write_window_days",
    )
    reading.one_of(top, "status", _STATUS)
    reading.one_of(life, "status", _STATUS)
    reading.one_of(versioning, "scheme", ("semver",))
    cadence = reading.text(versioning, "breaking_change_cadence")
    if cadence is not None and not cadence.strip().lower().startswith((*CADENCES,)):
        reading.one_of(versioning, "breaking_change_cadence", _CADENCES)
    written = reading.text(life, "status") or reading.text(top, "status")
    return Lifecycle(
        status=_STATUS.get(written.lower()) if written else None,
        written_status=written,
        deprecation_date=reading.text(life, "deprecation_date"),
        sunset_date=reading.text(life, "sunset_date"),
        successor=reading.text(life, "successor"),
        notice_days=_days(reading, versioning, "deprecation_notice_days"),
        dual_write_days=_days(reading, versioning, "dual_write_window_days"),
        cadence=reading.text(versioning, "breaking_change_cadence"),
    )


def _days(reading: ClauseReader, node: Mapping | None, key: str) -> int | None:
    days = reading.number(node, key)
    return int(days) if days is not None else None


# The table and its columns -----------------------------------------------------------------------


def _model(reading: ClauseReader, top: Mapping) -> Model:
    layout = reading.mapping(top, "format")
    location = reading.text(layout, "table_name")
    reading.documented_keys(layout, "table_name", reason="the table of the contract")
    stored = "how the table is stored: no value depends on it"
    reading.documented_keys(
        layout, "storage", "partition_by", "z_order_by", "v_order", reason=stored
    )
    reading.documented_keys(layout, "rls_policy", reason="who may see which rows")
    reading.one_of(layout, "storage", (*FORMATS, "hudi"))
    schema = reading.mapping(top, "schema")
    name = (location or reading.text(top, "id") or "data").rpartition(".")[2]
    with reading.of_model(name):
        fields = [_field(reading, column) for column in reading.mappings(schema, "columns")]
        _check_layout(reading, layout, fields)
        promises = tuple(_promises(reading, top))
    masks_all = _masks_all(reading, top, fields)
    return Model(
        name,
        top.span_of("schema"),
        tuple(
            replace(
                item,
                is_sensitive=item.is_sensitive or masks_all,
                rules=told_apart((*item.rules, *_about(item.path, promises))),
            )
            for item in fields
        ),
        told_apart(_about_none_of(fields, promises)),
        description=reading.text(top, "description"),
        location=location,
        partition_by=reading.texts(layout, "partition_by"),
    )


def _check_layout(reading: ClauseReader, layout: Mapping | None, fields: list[Field]) -> None:
    """Whether the table is partitioned and ordered by its columns, and these are named alike."""
    names = [item.name for item in fields]
    for key in ("partition_by", "z_order_by"):
        for node in reading.items(layout, key):
            column = getattr(node, "text", "")
            if column not in names:
                reason = f"{key} names '{column}', which is not a column of the schema"
                reading.mistaken(node, "W037", reason, did_you_mean(column, names))
    convention = reading.text(layout, "naming_convention")
    reading.documented_keys(layout, "naming_convention", reason="how the columns are named")
    if layout is None or convention is None:
        return
    form = _CONVENTIONS.get(convention.strip().lower().replace("-", "_"))
    if form is None:
        reading.one_of(layout, "naming_convention", _CONVENTIONS)
    elif broken := [name for name in names if not re.fullmatch(form, name)]:
        reason = f"not in {convention}: {', '.join(broken)}"
        reading.mistaken(
            layout.get("naming_convention"),
            "W038",
            reason,
            "rename the columns, or change the convention",
        )


def _about(path: str, promises: tuple[PlacedRule, ...]) -> Iterator[Rule]:
    return (rule for column, rule in promises if column == path)


def _about_none_of(fields: list[Field], promises: tuple[PlacedRule, ...]) -> Iterator[Rule]:
    """The rules about the table, and those about columns that the contract does not have."""
    paths = {item.path for item in fields}
    return (rule for column, rule in promises if column not in paths)


def _field(reading: ClauseReader, column: Mapping) -> Field:
    name = reading.text(column, "name") or ""
    classification = reading.text(column, "pii_classification")
    item = Field(
        name,
        column_path(name),
        None,
        column.span,
        written_type=reading.text(column, "type"),
        semantic=reading.text(column, "semantic") or reading.text(column, "description"),
        unit=reading.text(column, "unit"),
        default=reading.literal(column, "default"),
        has_default="default" in column.entries,
        is_sensitive=is_sensitive(classification),
        classification=classification,
    )
    reading.documented_keys(column, "semantic", "description", "unit")
    reading.documented_keys(column, "default", reason="the producer fills it in")
    reading.documented_keys(column, "pii_classification", reason="decides which values are masked")
    spark_type = spark_type_of(item.written_type) if item.written_type else None
    if spark_type is None:
        report_unknown_type(reading, column, "type")
    else:
        item = with_type(item, spark_type)
    rules = (make(reading, column, item) for make in _COLUMN_RULES)
    return replace(item, rules=tuple(rule for rule in rules if rule is not None))


def _presence(reading: ClauseReader, column: Mapping, _item: Field) -> Rule:
    return reading.rule("exists", Presence(), column.get("name"))


def _type(reading: ClauseReader, column: Mapping, item: Field) -> Rule | None:
    return reading.rule("type", OfType(), column.get("type")) if item.type else None


def _required(reading: ClauseReader, column: Mapping, _item: Field) -> Rule | None:
    if reading.truth(column, "nullable") is False:
        return reading.rule("required", Required(), column.get("nullable"))
    reading.documented_keys(column, "nullable", reason="NULL is permitted")
    return None


def _pattern(reading: ClauseReader, column: Mapping, _item: Field) -> Rule | None:
    expression = reading.text(column, "regex")
    if expression is None:
        return None
    return reading.rule("pattern", Pattern(expression), column.get("regex"))


def _enum(reading: ClauseReader, column: Mapping, _item: Field) -> Rule | None:
    values = reading.items(column, "enum")
    accepted = tuple(value.value for value in values if isinstance(value, Scalar))
    return reading.rule("enum", OneOf(accepted), column.get("enum")) if accepted else None


def _bound(
    reading: ClauseReader, column: Mapping, item: Field, *, key: str, name: str, op: str
) -> Rule | None:
    return bound_rule(reading, column, key, name, op, item.type)


def _precision(reading: ClauseReader, column: Mapping, item: Field) -> Rule | None:
    """The digits behind the point that a text such as `2 decimals (cents)` allows."""
    node, written = column.get("precision"), reading.text(column, "precision")
    match = _DECIMALS.fullmatch(written) if written is not None else None
    if match is None:
        reading.unsupported(node, "no number of digits: write it as `2 decimals`")
        return None
    return reading.rule("digits", Digits(most_digits(item.type), int(match[1])), node)


def _foreign_key(reading: ClauseReader, column: Mapping, item: Field) -> Rule | None:
    node = column.get("foreign_key")
    table, _, other = (reading.text(column, "foreign_key") or "").strip().rpartition(".")
    if not table or not other:
        reading.unsupported(node, "names no table and column: write `schema.table.column`")
        return None
    return reading.rule("references", Refers((item.path,), table, (column_path(other),)), node)


_COLUMN_RULES = (
    _presence,
    _type,
    _required,
    _pattern,
    _enum,
    partial(_bound, key="min", name="minimum", op=">="),
    partial(_bound, key="max", name="maximum", op="<="),
    _precision,
    _foreign_key,
)


def _masks_all(reading: ClauseReader, top: Mapping, fields: list[Field]) -> bool:
    """Whether no value may be shown: of a restricted table, and of one with personal data of which
    no column is said to hold it.
    """
    compliance = reading.mapping(top, "compliance")
    reading.documented_keys(
        compliance, "classifications", "sensitivity_label", "regulations", "requires_sorn"
    )
    classes = {name.lower() for name in reading.texts(compliance, "classifications")}
    is_personal = any(name.startswith("pii") for name in classes)
    is_marked = any(item.is_sensitive for item in fields)
    return bool(classes & _MASK_ALL) or (is_personal and not is_marked)


# What is promised of the data --------------------------------------------------------------------


def _promises(reading: ClauseReader, top: Mapping) -> Iterator[PlacedRule]:
    quality = reading.mapping(top, "quality")
    freshness = reading.mapping(quality, "freshness")
    clock = _clock(reading, freshness)
    for entry in reading.mappings(quality, "completeness"):
        yield from _completeness(reading, entry)
    for entry in reading.mappings(quality, "uniqueness"):
        yield from _uniqueness(reading, entry)
    for entry in reading.mappings(quality, "accuracy"):
        yield from _accuracy(reading, entry)
    yield from _freshness(reading, freshness, clock)
    yield from _volume(reading, reading.mapping(top, "volume"), clock)
    yield from _retention(reading, reading.mapping(top, "lifecycle"), clock)
    yield from _service(reading, reading.mapping(top, "sla"))


def _clock(reading: ClauseReader, freshness: Mapping | None) -> str | None:
    """The column that tells when a row came to be: `event_ts` of `max(event_ts) vs now()`."""
    match = _AGE.fullmatch(reading.text(freshness, "measured_as") or "")
    return column_path(match[1]) if match else None


def _completeness(reading: ClauseReader, entry: Mapping) -> Iterator[PlacedRule]:
    column, percent = reading.text(entry, "column"), reading.number(entry, "min_pct")
    if column is None or percent is None:
        reading.unsupported(entry, "it needs a `column` and a `min_pct`")
    else:
        path = column_path(column)
        demand = Complete(path, round(percent / 100, 12))
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
        yield column, reading.rule("unique", Unique(columns), keys)
    else:
        demand = Distinct(columns, round(percent / 100, 12))
        yield column, reading.rule("uniqueness", demand, entry.get("max_dup_pct"), keys)


def _accuracy(reading: ClauseReader, entry: Mapping) -> Iterator[PlacedRule]:
    predicate = reading.text(entry, "rule")
    if predicate is None:
        reading.unsupported(entry, "it needs a `rule`, a predicate of SQL")
        return
    if match := _IN_TABLE.fullmatch(predicate):
        column, other, table = match.groups()
        demand = Refers((column_path(column),), table, (column_path(other),))
        yield column_path(column), reading.rule("references", demand, entry.get("rule"))
    else:
        yield None, reading.rule("accuracy", RowsSatisfy(predicate), entry.get("rule"))


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
            reading.unsupported(node, f"the age of which column? {_SAY_CLOCK}")
        return
    yield clock, reading.rule("freshness", Fresh(clock, minutes * MINUTE_S), *nodes)


def _volume(
    reading: ClauseReader, volume: Mapping | None, clock: str | None
) -> Iterator[PlacedRule]:
    if volume is None:
        return
    baseline = reading.number(volume, "baseline_rows_per_day")
    baseline_node = volume.get("baseline_rows_per_day")
    # Two spellings with two meanings: of the mean of a week, and of each day.
    for key, days in (("alert_band", _WEEK_DAYS), ("alert_if_outside_band", 1)):
        band = _band(volume.get(key))
        if band is None:
            reading.unsupported(volume.get(key), "no band: write it as [0.5, 2.0] or 0.5..2.0")
        else:
            demand = Volume(*band, baseline, days if baseline is not None else _WEEK_DAYS)
            yield None, reading.rule("volume", demand, volume.get(key), baseline_node)
    reading.documented(baseline_node, "bounds nothing without an `alert_band`")
    low, high = (
        reading.number(volume, key) for key in ("trough_rows_per_hour", "peak_rows_per_hour")
    )
    if low is None and high is None:
        return
    nodes = volume.get("trough_rows_per_hour"), volume.get("peak_rows_per_hour")
    yield clock, reading.rule("hourly_volume", HourlyVolume(clock, low, high), *nodes)


def _band(node: Node | None) -> tuple[float, float] | None:
    """The multiples of `[0.5, 2.0]` and `0.5..2.0`."""
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
    node = life.get("retention_days") if life is not None else None
    if days is None:
        reading.documented(node)
    else:
        yield clock, reading.rule("retention", Retained(clock, days * DAY_S), node)


def _service(reading: ClauseReader, sla: Mapping | None) -> Iterator[PlacedRule]:
    """The delays: `x-bronze_landing: {from: event_ts, to: landed_at}` names the two columns of
    `bronze_landing_p99_minutes`."""
    reading.documented_keys(
        sla, "incident_response", "incident_runbook", "business_hours", reason="shown in failures"
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
            reason = f"a delay between which columns? add `{named}: {{from: ..., to: ...}}`"
            reading.unsupported(entry.node, reason)
        elif most is None or most <= 0 or share <= 0:
            reading.unsupported(entry.node, "no number of minutes above 0")
        else:
            ends = column_path(source), column_path(processed)
            demand = Prompt(*ends, most * _UNITS_S[match["unit"]], share)
            assert columns is not None
            nodes = entry.node, columns.get("from"), columns.get("to")
            yield None, reading.rule(f"{match['what']}_latency", demand, *nodes)


READER = DialectReader(
    Dialect.FABRIC,
    _recognises,
    partial(load_schema, "fabric"),
    _read,
    sign="`contract:` at the top, with `schema.columns` in it",
    meaning_key="semantic",
    weighs_meaning=True,
    elements=("quality", "volume", "format", "versioning", "lifecycle"),
    change_kinds=((("format", "storage"), "format_changed"),),
    names_types_as_written=True,
)
