"""A run as a message of the Open Observability Results Standard (OORS), a draft by Bitol: 0.8.1."""

from __future__ import annotations

import re
import time
from fractions import Fraction
from typing import Any

from dqx_airflow.errors import DqxError, RequestError
from dqx_airflow.values import GateReport, Verdict

_ADDRESS = re.compile(r"https?://(?:[^/?#]*@)?(?P<host>[^/?#@]+)")
_PATIENCE_S = 15
_WAITS_S = (0.0, 1.0, 3.0)
"""The seconds before each of the attempts to send a message."""

_TRY_AGAIN = frozenset({408, 429, 500, 502, 503, 504})
_HINTS = {3: "give the address that it redirects to", 4: "see the address and DQX_RESULTS_TOKEN"}
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
    if len(rows) == 1 and rows[0] is not None and " where " not in verdict.expression:
        measure["rowCount"] = rows[0]
        if verdict.expected == _NO_VIOLATIONS and isinstance(verdict.value, int):
            measure["failedRowCount"] = verdict.value
    return measure


def _number(value: object) -> object:
    return float(value) if isinstance(value, Fraction) else value


def send_message(message: dict[str, Any], url: str, token: str | None = None) -> None:
    """Posts a message as JSON, again if the server is busy or cannot be reached: receivers
    recognise a message that arrives twice by its id. Errors contain only the host of the URL, since
    the rest may be a secret.

    :param token: for `Authorization: Bearer`; by default the credentials in `.netrc`.
    :raises RequestError: the server refuses the message, or the address is invalid.
    :raises DqxError: the server failed, or was not reached.
    """
    import requests

    def authorize(request: requests.PreparedRequest) -> requests.PreparedRequest:
        request.headers["Authorization"] = f"Bearer {token}"
        return request

    address = _ADDRESS.match(url)
    failed = f"{address['host'] if address else 'the server'} did not take the message"
    problem = ""
    for wait_s in _WAITS_S:
        time.sleep(wait_s)
        try:
            with requests.post(
                url,
                json=message,
                auth=authorize if token else None,
                timeout=_PATIENCE_S,
                allow_redirects=False,
                stream=True,
            ) as answer:
                status = answer.status_code
        except requests.exceptions.SSLError:
            raise DqxError(f"{failed}: its certificate is not trusted") from None
        except requests.Timeout:
            problem = f"no response within {_PATIENCE_S} s"
        except requests.ConnectionError:
            problem = "no connection"
        except (requests.RequestException, ValueError):
            hint = "give --url https://HOST/PATH, and a token without spaces"
            raise RequestError(f"{failed}: the address or the token is invalid", hint) from None
        else:
            if status < 300:
                return
            problem = f"it answered {status}"
            if status not in _TRY_AGAIN:
                raise RequestError(f"{failed}: {problem}", _HINTS.get(status // 100, ""))
    raise DqxError(f"{failed} in {len(_WAITS_S)} attempts: {problem}")
