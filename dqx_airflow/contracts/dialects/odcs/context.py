"""The context for all parts of an ODCS contract."""

from __future__ import annotations

from dataclasses import dataclass

from dqx_airflow.contracts.dialects.clause_reader import ClauseReader
from dqx_airflow.contracts.dialects.odcs.elements import Elements
from dqx_airflow.contracts.source.yaml_document import Mapping

_ABOUT = ("id", "tags", "customProperties", "authoritativeDefinitions")
_ABOUT_ELEMENTS = ("name", "physicalName", "businessName", "description", "synonyms", "context")


@dataclass(frozen=True, slots=True)
class OdcsContext:
    """A reading, the elements of the document, and its server.

    `is_spark`: the physical types are those of Spark. `is_3_0`: there is a single logical type for
    dates and times. `model` is the object being read.
    """

    reading: ClauseReader
    elements: Elements
    sql_dialect: str | None
    is_spark: bool
    is_3_0: bool
    model: str = ""

    def document_remarks(self, node: Mapping, *keys: str) -> None:
        """Marks what is for readers, and data cannot violate."""
        self.reading.documented_keys(node, *_ABOUT, *keys)

    def document_element(self, node: Mapping, *keys: str) -> None:
        """Marks the description of an object or a property."""
        self.document_remarks(node, *_ABOUT_ELEMENTS, "deprecated", *keys)
