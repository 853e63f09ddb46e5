"""The settings of this server: the results store, and the lineage events."""

from __future__ import annotations

import logging

from airflow.configuration import conf
from airflow.providers.common.compat.sdk import AirflowException

from dqx_airflow.operators.results_location import ResultsLocation, results_location_of

log = logging.getLogger(__name__)


def known_results() -> ResultsLocation | None:
    """The results store configured for this server, as for the operators."""
    try:
        return results_location_of()
    except AirflowException as error:
        log.warning("%s", error)
        return None


def lineage_events() -> str | None:
    """The file or folder with OpenLineage events configured for this server."""
    return conf.get("dqx", "lineage_events", fallback=None) or None
