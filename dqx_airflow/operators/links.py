"""The link in the details of a gate's task to its report."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from airflow.providers.common.compat.sdk import BaseOperatorLink
from airflow.providers.common.compat.sdk import conf as airflow_conf

TAB_ROUTE = "dqx-gate"
"""The last part of the tab's address, below the address of its task instance."""


class GateReportLink(BaseOperatorLink):
    """A link to the tab "Data quality" of the task instance. Airflow stores it after each try."""

    name = "Gate report"

    def get_link(self, operator: Any, *, ti_key: Any) -> str:
        """The address of the tab for the last try of a task instance."""
        base = airflow_conf.get("api", "base_url", fallback=None) or ""
        # A space or a slash in an id, or the plus of a time zone, would lead elsewhere.
        parts = [quote(str(part), safe="") for part in (ti_key.dag_id, ti_key.run_id)]
        address = f"{base.rstrip('/')}/dags/{parts[0]}/runs/{parts[1]}/tasks/"
        address += quote(str(ti_key.task_id), safe="")
        if ti_key.map_index is not None and ti_key.map_index >= 0:
            address += f"/mapped/{ti_key.map_index}"
        return f"{address}/plugin/{TAB_ROUTE}"
