"""A contract in the formats of other tools: ONE module for each format, each a plain function."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module

from dqx_airflow.contracts.export.exported import Exported, Loss
from dqx_airflow.contracts.model import Contract

__all__ = ["FORMATS", "ExportFormat", "Exported", "Loss"]


@dataclass(frozen=True, slots=True)
class ExportFormat:
    """A format: its name, and the function that writes it, as `module:function`.

    `is_of_one_model`: it describes one table; the given contract has a single model.
    """

    name: str
    place: str
    is_of_one_model: bool = False

    def write(self, contract: Contract) -> Exported:
        module, _, function = self.place.partition(":")
        writer: Callable[[Contract], Exported]
        writer = getattr(import_module(f"{__name__}.{module}"), function)
        return writer(contract)


_ENTRIES = (
    ExportFormat("great-expectations", "great_expectations:suite", is_of_one_model=True),
    ExportFormat("great-expectations-0", "great_expectations:older_suite", is_of_one_model=True),
    ExportFormat("odcs", "odcs:document"),
    ExportFormat("json-schema", "json_schema:schema", is_of_one_model=True),
    ExportFormat("spark", "spark:columns", is_of_one_model=True),
    ExportFormat("html", "html:page"),
)

FORMATS: dict[str, ExportFormat] = {entry.name: entry for entry in _ENTRIES}
