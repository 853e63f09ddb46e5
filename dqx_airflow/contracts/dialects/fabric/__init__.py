"""The dialect of lakehouse tables in Fabric: one table, with everything below `contract:`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from dqx_airflow.contracts.demands import Digits, OfType, OneOf, Pattern, Presence, Required
from dqx_airflow.contracts.dialects import DialectReader
from dqx_airflow.contracts.dialects.clause_reader import (
    ClauseReader,
    bound_rules,
    field_of,
    most_digits,
    reference_rule,
    report_unknown_type,
    spark_type_of,
    with_type,
)
from dqx_airflow.contracts.dialects.extensions import (
    is_sensitive,
    rules_of_no_field,
    with_rules,
    with_unique_names,
)
from dqx_airflow.contracts.dialects.fabric.promises import promised_rules
from dqx_airflow.contracts.dialects.periods import CADENCES
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
from dqx_airflow.contracts.source.yaml_document import Mapping
from dqx_airflow.diagnostics.diagnostic import did_you_mean
from dqx_airflow.values import FORMATS

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

_DECIMALS = re.compile(r"\s*(\d+)\s+decimals?\b.*", re.IGNORECASE | re.DOTALL)


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
        notice_days=reading.whole_number(versioning, "deprecation_notice_days"),
        dual_write_days=reading.whole_number(versioning, "dual_write_window_days"),
        cadence=reading.text(versioning, "breaking_change_cadence"),
    )


# The table and its columns -----------------------------------------------------------------------


def _model(reading: ClauseReader, top: Mapping) -> Model:
    layout = reading.mapping(top, "format")
    location = reading.text(layout, "table_name")
    reading.documented_keys(layout, "table_name", reason="the table of the contract")
    stored = "a storage setting: it does not affect values"
    reading.documented_keys(
        layout, "storage", "partition_by", "z_order_by", "v_order", reason=stored
    )
    reading.documented_keys(layout, "rls_policy", reason="access rules for rows")
    reading.one_of(layout, "storage", (*FORMATS, "hudi"))
    schema = reading.mapping(top, "schema")
    name = (location or reading.text(top, "id") or "data").rpartition(".")[2]
    with reading.of_model(name):
        fields = [_field(reading, column) for column in reading.mappings(schema, "columns")]
        _check_layout(reading, layout, fields)
        promises = tuple(promised_rules(reading, top))
    masks_all = _masks_all(reading, top, fields)
    masked = (replace(item, is_sensitive=item.is_sensitive or masks_all) for item in fields)
    return Model(
        name,
        top.span_of("schema"),
        with_rules(masked, promises),
        with_unique_names(rules_of_no_field(fields, promises)),
        description=reading.text(top, "description"),
        location=location,
        partition_by=reading.texts(layout, "partition_by"),
    )


def _check_layout(reading: ClauseReader, layout: Mapping | None, fields: list[Field]) -> None:
    """Whether the table is partitioned and ordered by existing columns."""
    names = [item.name for item in fields]
    for key in ("partition_by", "z_order_by"):
        for node in reading.items(layout, key):
            column = getattr(node, "text", "")
            if column not in names:
                reason = f"{key} lists '{column}', which is not a column of the schema"
                reading.mistaken(node, "W037", reason, did_you_mean(column, names))
    convention = reading.text(layout, "naming_convention")
    reading.documented_keys(
        layout, "naming_convention", reason="the naming convention of the columns"
    )
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


def _field(reading: ClauseReader, column: Mapping) -> Field:
    classification = reading.text(column, "pii_classification")
    item = replace(
        field_of(reading, column),
        semantic=reading.text(column, "semantic") or reading.text(column, "description"),
        unit=reading.text(column, "unit"),
        is_sensitive=is_sensitive(classification),
        classification=classification,
    )
    reading.documented_keys(column, "semantic", "description", "unit")
    reading.documented_keys(
        column, "pii_classification", reason="determines which values are masked"
    )
    spark_type = spark_type_of(item.written_type) if item.written_type else None
    if spark_type is None:
        report_unknown_type(reading, column, "type")
    else:
        item = with_type(item, spark_type)
    return replace(item, rules=tuple(_column_rules(reading, column, item)))


def _column_rules(reading: ClauseReader, column: Mapping, item: Field) -> Iterator[Rule]:
    yield reading.rule("exists", Presence(), column.get("name"))
    if item.type:
        yield reading.rule("type", OfType(), column.get("type"))
    if reading.truth(column, "nullable") is False:
        yield reading.rule("required", Required(), column.get("nullable"))
    else:
        reading.documented_keys(column, "nullable", reason="NULL is permitted")
    if (expression := reading.text(column, "regex")) is not None:
        yield reading.rule("pattern", Pattern(expression), column.get("regex"))
    if accepted := reading.values(column, "enum"):
        yield reading.rule("enum", OneOf(accepted), column.get("enum"))
    yield from bound_rules(reading, column, "min", "max", item.type)
    yield from _precision(reading, column, item)
    wanted = "a table and a column: write `schema.table.column`"
    yield from reference_rule(reading, column, item.path, wanted)


def _precision(reading: ClauseReader, column: Mapping, item: Field) -> Iterator[Rule]:
    """The decimal places that a text such as `2 decimals (cents)` allows."""
    node, written = column.get("precision"), reading.text(column, "precision")
    match = _DECIMALS.fullmatch(written) if written is not None else None
    if match is None:
        reading.unsupported(node, "not a number of digits: write it as `2 decimals`")
    else:
        yield reading.rule("digits", Digits(most_digits(item.type), int(match[1])), node)


def _masks_all(reading: ClauseReader, top: Mapping, fields: list[Field]) -> bool:
    """Whether all values are masked: for a restricted table, and for one with personal data in
    unspecified columns."""
    compliance = reading.mapping(top, "compliance")
    reading.documented_keys(
        compliance, "classifications", "sensitivity_label", "regulations", "requires_sorn"
    )
    classes = {name.lower() for name in reading.texts(compliance, "classifications")}
    is_personal = any(name.startswith("pii") for name in classes)
    is_marked = any(item.is_sensitive for item in fields)
    return bool(classes & _MASK_ALL) or (is_personal and not is_marked)


READER = DialectReader(
    Dialect.FABRIC,
    _read,
    sign="`contract:` at the top, with `schema.columns` in it",
    meaning_key="semantic",
    weighs_meaning=True,
    elements=("quality", "volume", "format", "versioning", "lifecycle"),
    change_kinds=((("format", "storage"), "format_changed"),),
    names_types_as_written=True,
)
