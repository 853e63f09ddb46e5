"""Can a gate write its results, and do its lineage events arrive?"""

from __future__ import annotations

import os
from collections.abc import Mapping

from dqx_airflow.cli.doctor_checks import airflow
from dqx_airflow.cli.doctor_checks.airflow import RESULTS_CONNECTION
from dqx_airflow.cli.doctor_checks.finding import Answer, ok, problem, warning
from dqx_airflow.errors import DqxError


def results_store(given: str | None, env: Mapping[str, str] = os.environ) -> Answer:
    """Can the results be written where gates write them?

    :param given: the root on the command line; by default that of the gates in Airflow.
    """
    root = given
    if root is None:
        settings = airflow.gate_settings(env)
        if conn_id := settings.get("results_conn_id"):
            return airflow.connection(conn_id, env, RESULTS_CONNECTION)
        root = settings.get("results_root")
    if not root:
        root_of_commands = env.get("DQX_RESULTS_ROOT")
        meant = (
            f", such as {root_of_commands}, which DQX_RESULTS_ROOT names for the command line"
            if root_of_commands
            else ""
        )
        return warning(
            "no default results root: each gate needs the argument results_root",
            f"set AIRFLOW__DQX__RESULTS_ROOT to a path or URI{meant}",
        )
    from dqx_airflow.request_arguments import storage_options_of
    from dqx_airflow.results.store import ResultsStore

    try:
        ResultsStore(root, storage_options_of(env)).check_writable()
    except DqxError as error:
        return problem(error.problem, error.hint or "choose a root that this user may write to")
    return ok(f"{root} is writable")


def lineage() -> Answer:
    """Is OpenLineage configured, and does its server respond? An outage never fails a gate."""
    from dqx_airflow.lineage.emitter import LineageEmitter

    with LineageEmitter() as emitter:
        lineage_check = emitter.check()
    if not lineage_check.ok:
        return warning(
            lineage_check.line,
            "gates run without it and keep their events; check OPENLINEAGE_URL, "
            "OPENLINEAGE__TRANSPORT or openlineage.yml",
        )
    is_default = "no OpenLineage transport is configured" in lineage_check.line
    return ok(
        lineage_check.line, "set OPENLINEAGE_URL to send them to a server" if is_default else ""
    )
