"""The gates in Airflow's UI: a tab of each task, a board of all gates, a page for each dataset.

Every process of Airflow imports this module, and only the API server needs more of the package than
its names: what serves the pages is imported when the server requests its apps.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Awaitable, Callable, MutableMapping
from pathlib import Path
from typing import Any, TypeAlias

# Airflow moves this class to the SDK; the Spark provider finds it in every version.
from airflow.providers.common.compat.sdk import AirflowPlugin

from dqx_airflow.operators.links import TAB_ROUTE, GateReportLink

log = logging.getLogger(__name__)

_PREFIX = "/dqx"
_Message: TypeAlias = MutableMapping[str, Any]

_HEADERS = [(b"content-type", b"text/plain; charset=utf-8"), (b"cache-control", b"no-store")]
_BODY = (
    b"Closed: this version of Airflow lacks what dqx-airflow needs to see who may read its pages. "
    b"The log of the API server says what is missing.\n"
)
_TASK = "dag_id={DAG_ID}&run_id={RUN_ID}&task_id={TASK_ID}&map_index={MAP_INDEX}"


class DqxPlugin(AirflowPlugin):
    """Registered by the entry point `airflow.plugins`."""

    name = "dqx"
    # Relative addresses, since Airflow itself may live below a path of its host.
    external_views = [  # noqa: RUF012 (Airflow reads this attribute, no one writes it)
        {
            "name": "Data quality",
            "href": f"dqx/gate?{_TASK}",
            "destination": "task_instance",
            "url_route": TAB_ROUTE,
            "icon": "dqx/icon.svg",
        },
        {
            "name": "Data quality",
            "href": "dqx/board",
            "destination": "nav",
            "url_route": "dqx-board",
            "icon": "dqx/icon.svg",
            "category": "browse",
        },
    ]
    operator_extra_links = [GateReportLink()]  # noqa: RUF012

    @property
    def fastapi_apps(self) -> list[dict[str, Any]]:
        return [{"app": _server(), "url_prefix": _PREFIX, "name": "dqx"}]


def _server() -> Any:
    """The app of the pages; one that rejects every request if Airflow lacks names they import."""
    try:
        from dqx_airflow.ui.app import app
    except Exception:
        log.exception(
            "the data quality pages are disabled: this Airflow lacks an interface that they need"
        )
        return closed
    return app


async def closed(
    scope: _Message,
    receive: Callable[[], Awaitable[_Message]],
    send: Callable[[_Message], Awaitable[None]],
) -> None:
    """An ASGI app that rejects every request, for when the pages cannot determine permissions."""
    if scope["type"] == "http":
        await send({"type": "http.response.start", "status": 403, "headers": _HEADERS})
        await send({"type": "http.response.body", "body": _BODY})


_SUITE = """suite "Rows" { check "Rows" on rows {
    assert num_rows() > 0 name "rows"
    assert query("SELECT max(id) FROM rows") > 0 name "id"
} }"""
_CONTRACT = """
{dataContractSpecification: 1.2.1, id: rows, info: {title: Rows, version: 1.0.0},
 models: {rows: {fields: {id: {type: long, required: true}}}}}
"""


def _import_for_gates() -> None:
    """Imports the modules that gates need in DAG files, and checks two gates, which imports the
    rest; only suites with equations import more."""
    from dqx_airflow.contracts.compile.sql_exact import import_dialects
    from dqx_airflow.contracts.dialects import reader_of
    from dqx_airflow.contracts.model import Dialect
    from dqx_airflow.contracts.schema import validator_of
    from dqx_airflow.datasets import dqx_toml  # noqa: F401
    from dqx_airflow.dql.syntax.grammar import scanners
    from dqx_airflow.operators import (  # noqa: F401
        ContractGateOperator,
        DqlGateOperator,
        GateBatchOperator,
        gates_of,
    )
    from dqx_airflow.operators.mistakes import examine
    from dqx_airflow.operators.parse_check import require_sound

    scanners()
    for dialect in Dialect:
        reader_of(dialect)
        validator_of(dialect.value)
    import_dialects()
    for gate in (
        DqlGateOperator(task_id="gate", suite=_SUITE, datasets={"rows": "/rows"}),
        ContractGateOperator(task_id="gate", contract=_CONTRACT, data="/rows"),
    ):
        require_sound(gate)
        examine(gate, Path())


if "dag-processor" in sys.argv:
    # It loads plugins before it forks a process for each DAG file, which then has the modules.
    _import_for_gates()
