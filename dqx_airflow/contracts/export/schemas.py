"""Exports the models of a contract as schemas of other tools: the columns and comments of a table
in Spark SQL, and a JSON Schema (draft 2020-12) of one row, written as JSON.
"""

from __future__ import annotations

from typing import Any

from dqx_airflow.contracts import demands
from dqx_airflow.contracts.export.exported import Exported, Loss, ModelWriter, unsupported_clauses
from dqx_airflow.contracts.field_types import NUMBER_WORDS, names_in, spark_type
from dqx_airflow.contracts.model import Contract, Field, Model, Rule, column_path
from dqx_airflow.metrics.sql import quote_literal
from dqx_airflow.metrics.text_formats import TEXT_FORMATS, whole
from dqx_airflow.values import ContractDescription, FieldDescription
from dqx_airflow.values.exact import is_finite_number

_SAID = (demands.Presence, demands.OfType, demands.Required)
_WORDS = (*NUMBER_WORDS, "any", None)
"""Types that are not a single Spark type; strings replace them there."""


def columns(contract: Contract) -> Exported:
    """The columns in Spark SQL, one on each line: type, nullability, and meaning."""
    (model,) = contract.models
    lines = (column_definition(item, column_path(item.name)) for item in model.fields)
    text = ",\n".join(lines) + "\n"
    losses = [
        Loss(
            f"{model.name}.{item.path}",
            f"written as {spark_type(item)}: "
            + (f"Spark has no type {item.type}" if item.type else "no type is named"),
        )
        for item in model.walk()
        if item.type in _WORDS and table_type(item) == spark_type(item)
    ]
    left_out = [
        rule
        for _, item, rule in contract.rules()
        if not isinstance(rule.demand, _SAID if item in model.fields else _SAID[:2])
    ]
    if left_out:
        reason = f"a schema says types and NULL alone: {len(left_out)} rules are not in it"
        losses.append(Loss(model.name, reason))
    return Exported(text, (*losses, *unsupported_clauses(contract)))


def column_definition(item: Field, name: str) -> str:
    """A column of a table in SQL, by its name as written there."""
    null = "" if item.is_nullable else " NOT NULL"
    text = column_comment(item)
    comment = f" COMMENT {quote_literal(text)}" if text else ""
    return f"{name} {table_type(item)}{null}{comment}"


def description_of(contract: Contract, model: Model) -> ContractDescription:
    """The description of a contract for the table of one of its models."""
    owners = (contract.owner, *contract.contacts)
    return ContractDescription(
        contract.id,
        contract.version,
        _line(model.description or contract.description),
        tuple(dict.fromkeys(owner for owner in owners if owner)),
        tuple(
            FieldDescription(
                item.name, item.written_type or spark_type(item), column_comment(item), item.inputs
            )
            for item in model.fields
        ),
    )


def column_comment(item: Field) -> str | None:
    """The meaning of a column in the comment of its table."""
    words = _line(item.semantic or item.title)
    return f"{words} Unit: {item.unit}." if words and item.unit else words


def _line(text: str | None) -> str | None:
    """A text on one line: catalogs display comments in tables."""
    return " ".join(text.split()) if text and text.strip() else None


_DRAFT = "https://json-schema.org/draft/2020-12/schema"
_AS_TEXTS = {
    "date": {"format": "date"},
    "timestamp": {"format": "date-time"},
    "binary": {"contentEncoding": "base64"},
}
_JSON_FORMATS = {
    **{name: name for name in ("email", "uuid", "uri", "hostname", "ipv4", "ipv6", "date")},
    "url": "uri",
}
_OF_ROWS = "a JSON Schema sees one row, and each value alone"


def schema(contract: Contract) -> Exported:
    """The schema of a row. Nullable columns are also optional."""
    (model,) = contract.models
    writer = _SchemaWriter(contract, model)
    is_closed = any(isinstance(rule.demand, demands.OnlyColumns) for rule in model.rules)
    version = f" {contract.version}" if contract.version else ""
    plain = {
        "$schema": _DRAFT,
        "$comment": f"Exported from the contract {contract.id}{version}.",
        "title": model.title or model.name,
        **_remark("description", model.description or contract.description),
        "type": "object",
        **writer.members(model.fields),
        **({"additionalProperties": False} if is_closed else {}),
    }
    for rule in model.rules:
        if not isinstance(rule.demand, demands.OnlyColumns):
            writer.lose(None, rule, _OF_ROWS)
    return writer.exported(plain)


def _remark(key: str, text: str | None) -> dict[str, str]:
    return {key: text.strip()} if text and text.strip() else {}


class _SchemaWriter(ModelWriter):
    """Writes fields as schemas."""

    def members(self, fields: tuple[Field, ...]) -> dict[str, Any]:
        required = [item.name for item in fields if not item.is_nullable]
        return {
            "properties": {item.name: self.value(item) for item in fields},
            **({"required": required} if required else {}),
        }

    def value(self, item: Field) -> dict[str, Any]:
        plain = {
            **_remark("title", item.title),
            **_remark("description", _meaning(item)),
            **self._type(item),
        }
        more = []
        for rule in item.rules:
            if isinstance(rule.demand, _SAID):
                continue
            keywords = self._keywords(item, rule)
            # Two patterns for a value are combined by `allOf`.
            if any(key in plain for key in keywords):
                more.append(keywords)
            else:
                plain |= keywords
        if more:
            plain["allOf"] = more
        if item.has_default:
            plain["default"] = item.default
        if item.examples:
            plain["examples"] = list(item.examples)
        return plain

    def _type(self, item: Field) -> dict[str, Any]:
        kind = (item.type or "any").partition("(")[0]
        plain: dict[str, Any] = {}
        if kind in names_in("JSON"):
            name = names_in("JSON")[kind]
            may_be_null = item.is_nullable and not item.path.endswith("{key}")
            plain = {"type": [name, "null"] if may_be_null else name, **_AS_TEXTS.get(kind, {})}
        elif kind != "any":
            self.losses.append(Loss(f"{self.model.name}.{item.path}", f"JSON has no type {kind}"))
        if item.items is not None:
            plain["items"] = self.value(item.items)
        if item.values is not None:
            plain["additionalProperties"] = self.value(item.values)
        if item.keys is not None:
            names = {
                key: keyword for key, keyword in self.value(item.keys).items() if key != "type"
            }
            plain |= {"propertyNames": names} if names else {}
        if item.fields:
            plain |= self.members(item.fields)
        return plain

    def _keywords(self, item: Field, rule: Rule) -> dict[str, Any]:
        if rule.share < 1:
            self.lose(item, rule, "a JSON Schema permits no share of the values")
            return {}
        match rule.demand:
            case demands.Bound(value=value) if not is_finite_number(value):
                self.lose(item, rule, "JSON compares numbers alone")
                return {}
            case demands.OneOf(values=values):
                is_added = item.is_nullable and None not in values
                return {"enum": [*values, None] if is_added else [*values]}
            case demands.OfFormat() as demand:
                if TEXT_FORMATS[demand.name].check_digits is not None:
                    self.lose(item, rule, "a JSON Schema computes no check digits")
                return _format(demand)
        keywords = rule.demand.keywords(is_array=item.type == "array")
        if keywords is None:
            self.lose(item, rule, _OF_ROWS)
        return keywords or {}


def _meaning(item: Field) -> str | None:
    words = (item.semantic or "").strip()
    if item.unit:
        words = f"{words}\nUnit: {item.unit}."
    return words


def _format(demand: demands.OfFormat) -> dict[str, Any]:
    # Most validators do not check `format`, but they check the pattern.
    named = {"format": _JSON_FORMATS[demand.name]} if demand.name in _JSON_FORMATS else {}
    return {**named, "pattern": whole(TEXT_FORMATS[demand.name].pattern)}


def table_type(item: Field) -> str:
    """The type of a column in its table: a decimal if the contract states the digits."""
    digits = next(
        (rule.demand for rule in item.rules if isinstance(rule.demand, demands.Digits)), None
    )
    if item.type == "number" and digits is not None:
        return f"decimal({digits.precision},{digits.scale})"
    return spark_type(item)
