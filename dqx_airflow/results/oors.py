"""A run as a message of the Open Observability Results Standard (OORS), a draft by Bitol: 0.8.1."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from dqx_airflow.values import GateReport, Verdict

_STATUS = {"passed": "pass", "failed": "fail", "skipped": "skip", "error": "error"}


def oors_message(report: GateReport) -> dict[str, Any]:
    """The message about a run, with a result for each assertion.

    What failed and cannot block is `warn`. There is no `status` of the whole, which the standard
    derives from the results, and a gate does not.
    """
    key, contract = report.run_key, report.contract
    of_contract = contract and {"contractId": contract.id, "version": contract.version}
    return {
        "apiVersion": "v0.8.1",
        "kind": "ObservabilityResults",
        "id": report.run_id,
        "observedAt": report.finished_at.isoformat(),
        "source": {"process": key.gate, "runId": key.scheduler_run, "vendor": "dqx_airflow"},
        **({"contract": of_contract} if of_contract else {}),
        "results": [_result(report, verdict) for verdict in report.verdicts],
    }


def _result(report: GateReport, verdict: Verdict) -> dict[str, Any]:
    status, value, dataset = _STATUS[verdict.status], verdict.scaled_value, verdict.datasets[:1]
    filters = [one.condition for one in report.datasets if one.name in dataset and one.condition]
    place = ".".join((*dataset, *filter(None, [verdict.column])))
    target = {"resourceType": "column" if verdict.column else "table", "resourceIdentifier": place}
    number = float(value) if isinstance(value, Fraction) else value
    return {
        "id": f"{verdict.check}/{verdict.name}",
        "type": "check",
        "name": verdict.name,
        "status": "warn" if status == "fail" and not verdict.can_block(report.fail_on) else status,
        **({"relatesTo": verdict.clause} if verdict.clause else {}),
        "severity": verdict.severity.value,
        "target": {**target, "filter": filters[0]} if filters else target,
        "measure": {"metric": verdict.expression} | ({} if number is None else {"value": number}),
        "message": verdict.reason or f"expected {verdict.expected}",
        "tags": [*verdict.tags],
    }
