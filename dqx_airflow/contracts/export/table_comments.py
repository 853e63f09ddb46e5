"""The description of a contract for readers of the table."""

from __future__ import annotations

from dqx_airflow.contracts.enforcement.dataset_locations import spark_type
from dqx_airflow.contracts.model import Contract, Field, Model
from dqx_airflow.values import ContractDescription, FieldDescription


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
