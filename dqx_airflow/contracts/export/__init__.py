"""Exports a contract to formats of other tools: one module with a function for each format."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from dqx_airflow.contracts.export.exported import Exported
from dqx_airflow.contracts.model import Contract

__all__ = ["FORMATS", "ExportFormat"]


@dataclass(frozen=True, slots=True)
class ExportFormat:
    """A format: its name, and the function that writes it, whose module is imported on first use.

    `is_of_one_model`: the format describes one table, so the given contract has a single model.
    """

    name: str
    write: Callable[[Contract], Exported]
    is_of_one_model: bool = False


def _great_expectations(contract: Contract) -> Exported:
    from dqx_airflow.contracts.export import great_expectations

    return great_expectations.suite(contract)


def _great_expectations_0(contract: Contract) -> Exported:
    from dqx_airflow.contracts.export import great_expectations

    return great_expectations.older_suite(contract)


def _odcs(contract: Contract) -> Exported:
    from dqx_airflow.contracts.export import odcs

    return odcs.document(contract)


def _json_schema(contract: Contract) -> Exported:
    from dqx_airflow.contracts.export import schemas

    return schemas.schema(contract)


def _spark(contract: Contract) -> Exported:
    from dqx_airflow.contracts.export import schemas

    return schemas.columns(contract)


def _html(contract: Contract) -> Exported:
    from dqx_airflow.contracts.export import html

    return html.page(contract)


_ENTRIES = (
    ExportFormat("great-expectations", _great_expectations, is_of_one_model=True),
    ExportFormat("great-expectations-0", _great_expectations_0, is_of_one_model=True),
    ExportFormat("odcs", _odcs),
    ExportFormat("json-schema", _json_schema, is_of_one_model=True),
    ExportFormat("spark", _spark, is_of_one_model=True),
    ExportFormat("html", _html),
)

FORMATS: dict[str, ExportFormat] = {entry.name: entry for entry in _ENTRIES}
