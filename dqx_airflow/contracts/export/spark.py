"""A contract as columns and comments of a table in Spark SQL."""

from __future__ import annotations

from dqx_airflow.contracts.demands import OfType, Presence, Required
from dqx_airflow.contracts.dialects.clause_reader import NUMBER_WORDS
from dqx_airflow.contracts.export import Exported, Loss, unsupported_clauses
from dqx_airflow.contracts.field_types import spark_type, table_type
from dqx_airflow.contracts.model import Contract, Field, Model, Rule, column_path
from dqx_airflow.metrics.sql import quote_literal
from dqx_airflow.values import ContractDescription, FieldDescription

_SAID = (Presence, OfType, Required)
_WORDS = (*NUMBER_WORDS, "any", None)
"""Types that are not a single Spark type; strings replace them there."""


def columns(contract: Contract) -> Exported:
    """One column on each line: its type, nullability, and meaning."""
    (model,) = contract.models
    text = ",\n".join(_column(item) for item in model.fields) + "\n"
    losses = [
        Loss(f"{model.name}.{item.path}", f"written as {spark_type(item)}: {_why(item)}")
        for item in model.walk()
        if item.type in _WORDS and table_type(item) == spark_type(item)
    ]
    left_out = [
        rule
        for _, item, rule in contract.rules()
        if not _is_said(rule, is_column=item in model.fields)
    ]
    if left_out:
        reason = f"a schema says types and NULL alone: {len(left_out)} rules are not in it"
        losses.append(Loss(model.name, reason))
    return Exported(text, (*losses, *unsupported_clauses(contract)))


def _is_said(rule: Rule, *, is_column: bool) -> bool:
    return isinstance(rule.demand, _SAID if is_column else (Presence, OfType))


def _column(item: Field) -> str:
    null = "" if item.is_nullable else " NOT NULL"
    text = column_comment(item)
    comment = f" COMMENT {quote_literal(text)}" if text else ""
    return f"{column_path(item.name)} {table_type(item)}{null}{comment}"


def _why(item: Field) -> str:
    return "no type is named" if item.type is None else f"Spark has no type {item.type}"


def description_of(contract: Contract, model: Model) -> ContractDescription:
    """The description of a contract in the table of one of its models."""
    owners = (contract.owner, *contract.contacts)
    return ContractDescription(
        contract.id,
        contract.version,
        _line(model.description or contract.description),
        tuple(dict.fromkeys(owner for owner in owners if owner)),
        tuple(_described(item) for item in model.fields),
    )


def _described(item: Field) -> FieldDescription:
    return FieldDescription(
        item.name, item.written_type or spark_type(item), column_comment(item), item.inputs
    )


def column_comment(item: Field) -> str | None:
    """The meaning of a column in the comment of its table."""
    words = _line(item.semantic or item.title)
    return f"{words} Unit: {item.unit}." if words and item.unit else words


def _line(text: str | None) -> str | None:
    """A text on one line: catalogs display comments in tables."""
    return " ".join(text.split()) if text and text.strip() else None
