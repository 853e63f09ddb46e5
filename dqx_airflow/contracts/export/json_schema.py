"""A JSON Schema (draft 2020-12) of one row of a model, written as JSON."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from dqx_airflow.contracts import demands
from dqx_airflow.contracts.export import Exported, Loss, keywords_of, loss_of, unsupported_clauses
from dqx_airflow.contracts.field_types import names_in
from dqx_airflow.contracts.model import Contract, Field, Model, Rule
from dqx_airflow.metrics.text_formats import TEXT_FORMATS, whole
from dqx_airflow.values.exact import is_finite_number

_DRAFT = "https://json-schema.org/draft/2020-12/schema"
_AS_TEXTS = {
    "date": {"format": "date"},
    "timestamp": {"format": "date-time"},
    "binary": {"contentEncoding": "base64"},
}
_FORMATS = {
    **{name: name for name in ("email", "uuid", "uri", "hostname", "ipv4", "ipv6", "date")},
    "url": "uri",
}
_STRUCTURE = (demands.Presence, demands.OfType, demands.Required)
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
    text = json.dumps(plain, indent=2, ensure_ascii=False) + "\n"
    return Exported(text, (*writer.losses, *unsupported_clauses(contract)))


def _remark(key: str, text: str | None) -> dict[str, str]:
    return {key: text.strip()} if text and text.strip() else {}


@dataclass(slots=True)
class _SchemaWriter:
    """Writes fields as schemas, and records what those cannot express."""

    contract: Contract
    model: Model
    losses: list[Loss] = field(default_factory=list)

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
            if isinstance(rule.demand, _STRUCTURE):
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
            case demands.OneOf() as demand:
                return _enum(item, demand)
            case demands.OfFormat() as demand:
                if TEXT_FORMATS[demand.name].check_digits is not None:
                    self.lose(item, rule, "a JSON Schema computes no check digits")
                return _format(demand)
        keywords = keywords_of(rule.demand, is_array=item.type == "array")
        if keywords is None:
            self.lose(item, rule, _OF_ROWS)
        return keywords or {}

    def lose(self, item: Field | None, rule: Rule, reason: str) -> None:
        self.losses.append(loss_of(self.contract, self.model, item, rule, reason))


def _meaning(item: Field) -> str | None:
    words = (item.semantic or "").strip()
    if item.unit:
        words = f"{words}\nUnit: {item.unit}."
    return words


def _enum(item: Field, demand: demands.OneOf) -> dict[str, Any]:
    values = list(demand.values)
    return {"enum": [*values, None] if item.is_nullable and None not in values else values}


def _format(demand: demands.OfFormat) -> dict[str, Any]:
    # Most validators do not check `format`, but they check the pattern.
    named = {"format": _FORMATS[demand.name]} if demand.name in _FORMATS else {}
    return {**named, "pattern": whole(TEXT_FORMATS[demand.name].pattern)}
