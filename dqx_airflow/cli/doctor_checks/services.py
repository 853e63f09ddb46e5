"""Can a gate write its results, and do its lineage events arrive?"""

from __future__ import annotations

import os

from dqx_airflow.cli.doctor_checks.finding import Answer, ok, problem, warning
from dqx_airflow.errors import DqxError


def results_store(root: str | None) -> Answer:
    """Can the results be written below `root`?"""
    if not root:
        return warning(
            "not checked: no results root is set",
            "dql doctor --results-root ROOT, or set DQX_RESULTS_ROOT",
        )
    from dqx_airflow.request_arguments import storage_options_of
    from dqx_airflow.results.store import ResultsStore

    try:
        ResultsStore(root, storage_options_of(os.environ)).check_writable()
    except DqxError as error:
        return problem(error.problem, error.hint or "choose a root that this user may write to")
    return ok(f"{root} is writable")


def lineage() -> Answer:
    """Is OpenLineage configured, and is it there? An outage never fails a gate."""
    from dqx_airflow.lineage.emitter import LineageEmitter

    with LineageEmitter() as emitter:
        found = emitter.check()
    if not found.ok:
        return warning(
            found.line,
            "gates run without it and keep their events; check OPENLINEAGE_URL, "
            "OPENLINEAGE__TRANSPORT or openlineage.yml",
        )
    is_default = "no OpenLineage transport is configured" in found.line
    return ok(found.line, "set OPENLINEAGE_URL to send them to a server" if is_default else "")
