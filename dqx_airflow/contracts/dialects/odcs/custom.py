"""What the standard has no place for, in the custom properties that our own export writes.

customProperties:
  - {property: deprecationNoticeDays, value: 30}
  - {property: breakingChangeCadence, value: quarterly_max}
  - {property: consumers, value: [{team: bi, useCase: Reports, pin: "2"}]}
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from dqx_airflow.contracts.dialects.clause_reader import ClauseReader
from dqx_airflow.contracts.model import Consumer, Lifecycle
from dqx_airflow.contracts.source.yaml_document import Mapping

_TEXTS = {
    "deprecationDate": "deprecation_date",
    "successor": "successor",
    "breakingChangeCadence": "cadence",
}
_DAYS = {
    "deprecationNoticeDays": "notice_days",
    "breakingChangeNoticeDays": "breaking_notice_days",
    "dualWriteDays": "dual_write_days",
}


def with_policy(reading: ClauseReader, lifecycle: Lifecycle) -> Lifecycle:
    """The lifecycle, with the dates, the periods and the cadence that the document adds."""
    policy: dict[str, Any] = {}
    for name, item in _properties(reading):
        if name in _TEXTS:
            policy[_TEXTS[name]] = reading.text(item, "value")
        elif name in _DAYS and (days := reading.number(item, "value")) is not None:
            policy[_DAYS[name]] = int(days)
    return replace(lifecycle, **policy)


def read_consumers(reading: ClauseReader) -> Iterator[Consumer]:
    for name, item in _properties(reading):
        for consumer in reading.mappings(item, "value") if name == "consumers" else ():
            if (team := reading.text(consumer, "team")) is not None:
                yield Consumer(
                    team, reading.text(consumer, "useCase"), reading.text(consumer, "pin")
                )


def _properties(reading: ClauseReader) -> Iterator[tuple[str, Mapping]]:
    for item in reading.mappings(reading.root, "customProperties"):
        yield reading.text(item, "property") or "", item
