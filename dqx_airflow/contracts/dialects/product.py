"""The dialect of data products: `contract`, `schema.fields`, `quality`, `sla` and `usage`.

As in its own validator, a column that is not in the contract is a violation, and a pattern matches
from the first character on.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from dqx_airflow.contracts import demands
from dqx_airflow.contracts.dialects import DialectReader
from dqx_airflow.contracts.dialects.clause_reader import ClauseReader, with_examples
from dqx_airflow.contracts.dialects.durations import DAY_S, HOUR_S
from dqx_airflow.contracts.dialects.frequencies import frequency_of
from dqx_airflow.contracts.dialects.rule_names import PlacedRule, with_rules
from dqx_airflow.contracts.document import Mapping, Node, Scalar
from dqx_airflow.contracts.field_types import is_spark_type, spark_type_of, types_named, with_type
from dqx_airflow.contracts.model import (
    Contract,
    Dialect,
    Field,
    IncidentResponse,
    Lifecycle,
    Model,
    Rule,
    column_path,
)
from dqx_airflow.metrics.types import LONGEST_DECIMAL

_LENGTHS = (("min_length", "min_length", ">="), ("max_length", "max_length", "<="))


def _read(reading: ClauseReader) -> Contract:
    top = reading.mapping(reading.root, "contract")
    reading.remarks(top, "data product: contract")
    name = top.text("name") or ""
    lifecycle = _lifecycle(reading)
    with reading.of_model(name):
        model = _model(reading)
    return Contract(
        dialect=Dialect.PRODUCT,
        dialect_version=None,
        id=name,
        version=top.text("version"),
        span=reading.root.span_of("contract"),
        name=top.text("name"),
        description=top.text("description"),
        owner=top.text("owner"),
        domain=top.text("domain"),
        models=(model,),
        lifecycle=lifecycle,
        incident=_incident(reading),
    )


def _incident(reading: ClauseReader) -> IncidentResponse:
    support = reading.mapping(reading.mapping(reading.root, "sla"), "support")
    response = []
    if tier := support.text("tier"):
        response.append(f"tier {tier}")
    if response_time := support.text("response_time"):
        response.append(f"response within {response_time}")
    return IncidentResponse(
        channel=reading.text(support, "escalation", "channel"),
        runbook=support.text("runbook"),
        response=", ".join(response) or None,
        business_hours=support.text("hours"),
    )


def _lifecycle(reading: ClauseReader) -> Lifecycle:
    sla = reading.mapping(reading.root, "sla")
    reading.documented(sla, "concerns the service: the data does not show it")
    usage = reading.mapping(reading.root, "usage")
    reading.documented_keys(reading.root, "support", reason="who answers questions")
    reading.documented(usage, "what the data may be used for")
    reading.documented_keys(usage, "retention", reason="concerns rows that no column identifies")
    contract = reading.mapping(reading.root, "contract")
    changes = reading.mapping(sla, "changes")
    return Lifecycle(
        effective_date=reading.lifecycle_date(
            contract, "effective_date", "effective date", ends=False
        ),
        deprecation_date=reading.lifecycle_date(
            contract, "deprecation_date", "deprecation", ends=True
        ),
        notice_days=reading.notice_days(changes, "notification_days"),
        breaking_notice_days=changes.whole_number("breaking_change_notice"),
    )


# The fields --------------------------------------------------------------------------------------


def _model(reading: ClauseReader) -> Model:
    schema = reading.mapping(reading.root, "schema")
    quality = reading.mapping(reading.root, "quality")
    columns = tuple(reading.mappings(schema, "fields"))
    keys = [column for column in columns if column.truth("business_key")]
    key_paths = tuple(column_path(key.text("name") or "") for key in keys)
    fields = [_field(reading, column) for column in columns]
    promises = (*_completeness(reading, quality), *_uniqueness(reading, quality, key_paths))
    fields = [_valid(reading, quality, item) for item in fields]
    rules = []
    further = []
    if keys:
        marks = (key.get("business_key") for key in keys)
        rules.append(reading.rule("business_key", demands.Unique(key_paths), *marks))
    if columns:
        names = (column.get("name") for column in columns)
        further.append(reading.rule("only_columns", demands.OnlyColumns(), *names))
    reading.documented(quality.get("validity"), "no field has a rule for individual values")
    for key in ("accuracy", "accuracy_target"):
        reading.unsupported(quality.get(key), "the dataset to compare with is not named")
    further += _times(reading, reading.mapping(quality, "freshness"), quality)
    contract = reading.mapping(reading.root, "contract")
    model = Model(
        name=contract.text("name") or "",
        span=reading.root.span_of("schema"),
        fields=tuple(fields),
        rules=tuple(rules),
        description=contract.text("description"),
        is_closed=True,
    )
    return with_rules(model, (*promises, *((None, rule) for rule in further)))


def _field(reading: ClauseReader, column: Mapping) -> Field:
    name = column.text("name") or ""
    is_personal = column.truth("pii") is True
    item = Field(
        name=name,
        path=column_path(name),
        type=None,
        span=column.span,
        written_type=column.text("type"),
        semantic=column.text("description"),
        default=column.literal("default"),
        has_default="default" in column.entries,
        is_key=column.truth("business_key") is True,
        is_sensitive=is_personal,
        classification="pii" if is_personal else None,
    )
    item = with_examples(item, column.scalars("examples"))
    reading.remarks(column, "data product: field")
    item, type_rules = _typed(reading, column, item)
    rules = [
        reading.rule("exists", demands.Presence(), column.get("name")),
        *type_rules,
        *_key_rules(reading, column, item),
        *_value_rules(reading, column, item),
    ]
    return replace(item, rules=tuple(rules))


def _typed(reading: ClauseReader, column: Mapping, item: Field) -> tuple[Field, tuple[Rule, ...]]:
    """The field with its type, and the demands of that, including the digits of a number."""
    written = item.written_type or ""
    precision = column.number("precision")
    scale = column.number("scale")
    sizes = (column.get("precision"), column.get("scale"))
    if written == "decimal" and precision is not None and scale is not None and scale <= precision:
        item = replace(item, type=f"decimal({int(precision)},{int(scale)})")
        return item, (reading.rule("type", demands.OfType(), column.get("type"), *sizes),)
    spark_type = spark_type_of(written)
    if written in types_named("data product"):
        item = replace(item, type=types_named("data product")[written])
    elif spark_type is not None:
        item = with_type(item, spark_type)
    else:
        reading.report_unknown_type(column, "type", _is_type)
        return item, ()
    rules = [reading.rule("type", demands.OfType(), column.get("type"))]
    if precision is not None or scale is not None:
        most = int(LONGEST_DECIMAL if precision is None else precision)
        demand = demands.Digits(most, most if scale is None else int(scale))
        rules.append(reading.rule("digits", demand, *sizes))
    return item, tuple(rules)


def _is_type(written: str) -> bool:
    return written in types_named("data product") or is_spark_type(written)


def _key_rules(reading: ClauseReader, column: Mapping, item: Field) -> Iterator[Rule]:
    if column.truth("nullable") is False:
        yield reading.rule("required", demands.Required(), column.get("nullable"))
    elif item.is_key:
        yield reading.rule("required", demands.Required(), column.get("business_key"))
    if column.text("foreign_key") is not None:
        wanted = "a dataset and a field: write `dataset.field`"
        yield from reading.reference_rule(column, item.path, wanted)


def _value_rules(reading: ClauseReader, column: Mapping, item: Field) -> Iterator[Rule]:
    if (pattern := column.text("pattern")) is not None:
        is_anchored = pattern.startswith("^") and "|" not in pattern
        expression = pattern if is_anchored else f"^(?:{pattern})"
        yield reading.rule("pattern", demands.Pattern(expression), column.get("pattern"))
    if accepted := column.values("valid_values"):
        yield reading.rule("enum", demands.OneOf(accepted), column.get("valid_values"))
    yield from reading.length_rules(column, _LENGTHS)
    yield from reading.bound_rules(column, "min_value", "max_value", item.type)
    for key in ("pattern", "valid_values", "min_value", "max_value", "foreign_key"):
        if isinstance(node := column.get(key), Scalar) and node.value is None:
            reading.documented(node)


# Quality ------------------------------------------------------------------------------------------


def _valid(reading: ClauseReader, quality: Mapping, item: Field) -> Field:
    """The field, with the share of `validity` in the rules about single values."""
    share = quality.number("validity")
    node = quality.get("validity")
    if share is None or node is None:
        return item
    rules = tuple(
        replace(rule, share=float(share), clauses=(*rule.clauses, reading.clause(node)))
        if isinstance(rule.demand, demands.ValueDemand)
        else rule
        for rule in item.rules
    )
    return replace(item, rules=rules)


def _completeness(reading: ClauseReader, quality: Mapping) -> Iterator[PlacedRule]:
    """The rules on the completeness of fields; a single share applies to all values together."""
    for column, share, node in _shares(reading, quality, "completeness"):
        yield column, reading.rule("completeness", demands.Complete(column, share), node)
    of_all = quality.number("completeness")
    whole = quality.get("completeness")
    if of_all is not None:
        yield None, reading.rule("completeness", demands.AllComplete(float(of_all)), whole)
    elif isinstance(whole, Scalar):
        reading.unsupported(whole, "not a share: write 0.95, or one for each field")


def _uniqueness(
    reading: ClauseReader, quality: Mapping, keys: tuple[str, ...]
) -> Iterator[PlacedRule]:
    """The rules on the uniqueness of fields; a single share applies to the business key."""
    for column, share, node in _shares(reading, quality, "uniqueness"):
        demand = demands.Distinct((column,), round(1 - share, 12))
        yield column, reading.rule("uniqueness", demand, node)
    of_keys = quality.number("uniqueness")
    if of_keys is not None and keys:
        demand = demands.Distinct(keys, round(1 - of_keys, 12))
        rule = reading.rule("uniqueness", demand, quality.get("uniqueness"))
        yield (keys[0] if len(keys) == 1 else None), rule
    elif of_keys is not None:
        reason = "the fields are unknown: none is a business key"
        reading.unsupported(quality.get("uniqueness"), reason)


def _shares(reading: ClauseReader, quality: Mapping, key: str) -> Iterator[tuple[str, float, Node]]:
    """The fields in a mapping of `completeness` or `uniqueness`, with their shares."""
    shares = reading.mapping(quality, key)
    for name, entry in shares.entries.items():
        share = shares.number(name)
        if share is not None:
            yield column_path(name), float(share), entry.node


def _times(reading: ClauseReader, freshness: Mapping, quality: Mapping) -> Iterator[Rule]:
    """The rules on times: the age of the data in `freshness.max_hours` or `freshness_hours`, its
    frequency, and the days of `usage`."""
    named = freshness.text("column")
    column_node = freshness.get("column")
    column = column_path(named) if named is not None else None
    for node, key in ((freshness, "max_hours"), (quality, "freshness_hours")):
        if (hours := node.number(key)) is not None:
            demand = demands.Fresh(column, hours * HOUR_S)
            yield reading.rule("freshness", demand, node.get(key), column_node)
    frequency = freshness.get("update_frequency")
    stated = frequency_of(freshness.text("update_frequency") or "")
    if stated is None:
        reason = "this is not an interval: write hourly, daily, `6 hours` or a cron expression"
        reading.unsupported(frequency, reason, "E422")
    else:
        arrives = demands.Arrives(column, stated.interval_s, stated.schedule)
        yield reading.rule("frequency", arrives, frequency, column_node)
    usage = reading.mapping(reading.root, "usage")
    days = usage.number("retention_days")
    node_of_days = usage.get("retention_days")
    if days is None:
        reading.unsupported(node_of_days, "not a number of days")
    else:
        retained = demands.Retained(column, days * DAY_S)
        yield reading.rule("retention", retained, node_of_days, column_node)


READER = DialectReader(
    Dialect.PRODUCT, _read, sign="`contract:` and `schema:` with `fields` side by side at the top"
)
