"""Custom properties of an ODCS document: facts that the standard has no key for.

customProperties:
  - {property: deprecationNoticeDays, value: 30}
  - {property: breakingChangeCadence, value: quarterly_max}
  - {property: consumers, value: [{team: bi, useCase: Reports, pin: "2"}]}
"""

from __future__ import annotations

from collections.abc import Iterator

from dqx_airflow.contracts.dialects.clause_reader import ClauseReader
from dqx_airflow.contracts.document import Mapping
from dqx_airflow.contracts.model import Consumer


def read_consumers(reading: ClauseReader) -> Iterator[Consumer]:
    """Reads the consumers in custom properties; a consumer without a team is left out."""
    for name, item in custom_properties(reading):
        if name != "consumers":
            continue
        for consumer in reading.mappings(item, "value"):
            team = consumer.text("team")
            if team is not None:
                yield Consumer(team, use_case=consumer.text("useCase"), pin=consumer.text("pin"))


def custom_properties(reading: ClauseReader) -> Iterator[tuple[str, Mapping]]:
    """The custom properties of the document, each with its name."""
    for item in reading.mappings(reading.root, "customProperties"):
        yield item.text("property") or "", item
