"""The events of a block and its contract: catalogs see the binding without reading a manifest."""

from __future__ import annotations

from datetime import datetime

from openlineage.client.event_v2 import InputDataset, Run, RunEvent, RunState

from dqx_airflow.lineage import sanitize
from dqx_airflow.lineage.events import error_message, job_event

CONTRACTS = "datalex"
"""The namespace of the contracts, which are the inputs of their blocks."""


def block_events(
    block: str,
    contract: str,
    problem: str | None,
    run_id: str,
    when: datetime,
    namespace: str,
) -> tuple[RunEvent, RunEvent]:
    """START of the job `<block>.block`, whose input is the contract that it relies on, and its end:
    COMPLETE, or FAIL with the problem.

    :param contract: the id with its version: `commerce.Customer.active@1`.
    """
    begun = _event(RunState.START, block, contract, Run(run_id), when, namespace)
    if problem is None:
        return begun, _event(RunState.COMPLETE, block, contract, Run(run_id), when, namespace)
    failed = Run(run_id, facets={"errorMessage": error_message(problem)})
    return begun, _event(RunState.FAIL, block, contract, failed, when, namespace)


def _event(
    state: RunState, block: str, contract: str, run: Run, when: datetime, namespace: str
) -> RunEvent:
    job = sanitize.text(f"{block}.block", sanitize.NAME)
    inputs = [InputDataset(CONTRACTS, sanitize.text(contract, sanitize.NAME))]
    return job_event(state, run, when, namespace, job, "BLOCK", inputs)
