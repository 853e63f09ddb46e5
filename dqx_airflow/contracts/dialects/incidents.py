"""What to do when a contract is violated, if its dialect has no keys for it.

    x-dqx-incident:
      channel: "#orders"
      runbook: https://wiki.example.com/orders
      response: page data-platform
      business_hours: 9x5

In ODCS it is a custom property with the mapping as its value.
"""

from __future__ import annotations

from dataclasses import replace

from dqx_airflow.contracts.dialects.clause_reader import ClauseReader
from dqx_airflow.contracts.dialects.extensions import at_the_top
from dqx_airflow.contracts.model import IncidentResponse
from dqx_airflow.contracts.source.yaml_document import Mapping

KEY = "x-dqx-incident"


def with_extension(reading: ClauseReader, incident: IncidentResponse) -> IncidentResponse:
    """The information of the dialect, completed by the extension of the document."""
    node = at_the_top(reading, KEY)
    extension = node if isinstance(node, Mapping) else None
    reading.documented(extension, "how incidents are handled")
    return replace(
        incident,
        channel=reading.text(extension, "channel") or incident.channel,
        runbook=reading.text(extension, "runbook") or incident.runbook,
        response=reading.text(extension, "response") or incident.response,
        business_hours=reading.text(extension, "business_hours") or incident.business_hours,
    )
