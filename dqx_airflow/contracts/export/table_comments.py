"""What a contract tells those who look a table up."""

from __future__ import annotations

from dqx_airflow.contracts.enforcement.dataset_locations import spark_type
from dqx_airflow.contracts.model import Contract, Field, Model
from dqx_airflow.values import ContractDescription, FieldDescription


def description_of(contract: Contract, model: Model) -> ContractDescription:
    """A contract as the table of one of its models tells it."""
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
    """What a column means, as its comment in the table tells it."""
    words = _line(item.semantic or item.title)
    return f"{words} Unit: {item.unit}." if words and item.unit else words


def _line(text: str | None) -> str | None:
    """A text on one line: catalogs show comments in tables."""
    return " ".join(text.split()) if text and text.strip() else None
