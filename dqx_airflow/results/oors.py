"""A run as a message of the Open Observability Results Standard (OORS), a draft by Bitol: 0.8.1."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from dqx_airflow.values import GateReport, Verdict

_STATUS = {"passed": "pass", "failed": "fail", "skipped": "skip", "error": "error"}
_WORST_FIRST = ("error", "fail", "warn", "pass", "skip")
_THRESHOLDS = {
    "==": "mustBe",
    "!=": "mustNotBe",
    ">": "mustBeGreaterThan",
    ">=": "mustBeGreaterOrEqualTo",
    "<": "mustBeLessThan",
    "<=": "mustBeLessOrEqualTo",
}
"""The names of comparisons in the standard, which ODCS has, too."""

_NO_VIOLATIONS = "== 0 violating rows"
"""The condition of an assertion about each row."""


def oors_message(report: GateReport) -> dict[str, Any]:
    """The message about a run, with a result for each assertion.

    A failed assertion that cannot block is `warn`. The `status` of the message is derived from the
    results as the standard has it: the first of error, fail, warn, pass and skip that occurs.
    """
    key = report.run_key
    results = [_result(report, verdict) for verdict in report.verdicts]
    statuses = {result["status"] for result in results}
    contract = report.contract
    of_contract = contract and {"contractId": contract.id, "version": contract.version}
    return {
        "apiVersion": "v0.8.1",
        "kind": "ObservabilityResults",
        "id": report.run_id,
        "observedAt": report.finished_at.isoformat(),
        "source": {"process": key.gate, "runId": key.scheduler_run, "vendor": "dqx_airflow"},
        **({"contract": of_contract} if of_contract else {}),
        "status": next((one for one in _WORST_FIRST if one in statuses), "unknown"),
        "results": results,
    }


def _result(report: GateReport, verdict: Verdict) -> dict[str, Any]:
    status = _STATUS[verdict.status]
    dataset = verdict.datasets[:1]
    filters = [one.condition for one in report.datasets if one.name in dataset and one.condition]
    place = ".".join((*dataset, *filter(None, [verdict.column])))
    target = {"resourceType": "column" if verdict.column else "table", "resourceIdentifier": place}
    return {
        "id": f"{verdict.check}/{verdict.name}",
        "type": "check",
        "name": verdict.name,
        "status": "warn" if status == "fail" and not verdict.can_block(report.fail_on) else status,
        **({"relatesTo": verdict.clause} if verdict.clause else {}),
        "severity": verdict.severity.value,
        "target": {**target, "filter": filters[0]} if filters else target,
        "measure": _measure(report, verdict),
        "message": verdict.reason or f"expected {verdict.expected}",
        "tags": [*verdict.tags],
    }


def _measure(report: GateReport, verdict: Verdict) -> dict[str, Any]:
    """The metric with its value, its limit if that is a number, and the rows behind it.

    A limit of a scaled value is not one of the value, and has no place in the standard.
    """
    measure: dict[str, Any] = {"metric": verdict.expression}
    if verdict.value is not None:
        measure["value"] = _number(verdict.value)
    name = _THRESHOLDS.get(verdict.expected.partition(" ")[0])
    if name is not None and verdict.threshold is not None and verdict.multiplier == 1:
        measure["threshold"] = {name: _number(verdict.threshold)}
    rows = [one.rows for one in report.datasets if one.name in verdict.datasets]
    is_of_all_rows = verdict.groups is None and " where " not in verdict.expression
    if len(rows) == 1 and rows[0] is not None and is_of_all_rows:
        measure["rowCount"] = rows[0]
        if verdict.expected == _NO_VIOLATIONS and isinstance(verdict.value, int):
            measure["failedRowCount"] = verdict.value
    return measure


def _number(value: object) -> object:
    return float(value) if isinstance(value, Fraction) else value
