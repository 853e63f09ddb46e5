"""The assets among the outlets of a gate: which are updated, and the extra of their events."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from airflow.providers.common.compat.sdk import Asset
from airflow.sdk.definitions.asset import AssetRef, BaseAsset

from dqx_airflow.operators.summary import MOST_VERDICTS, cut, partial_summary, validated_places
from dqx_airflow.values import GateReport, Severity, Status


def announce(
    report: GateReport,
    outlets: Sequence[Any],
    context: Any,
    *,
    is_announced: bool = True,
    partitions: Sequence[str] = (),
) -> list[Any]:
    """Sets the extra of asset events; returns the outlets for which Airflow emits an update.

    Assets, references to assets and aliases are left out if the data did not pass: a gate that only
    warns lets the task succeed, but nothing was validated, unless it promotes although it is
    blocked: the extra says so. After a pass, an alias is left to the
    code that adds assets to it.

    :param is_announced: False for a run that left assertions out, and must not update assets.
    :param partitions: the keys of the partitions of the assets that are updated; none if the
        assets as a whole are.
    """
    if not is_announced or not report.is_released:
        return [outlet for outlet in outlets if not isinstance(outlet, BaseAsset)]
    for outlet in outlets:
        if isinstance(outlet, Asset | AssetRef):
            update = context["outlet_events"][outlet]
            update.extra = asset_extra(report)
            if partitions:
                update.extra["partitions"] = [*partitions]
                update.add_partitions([*partitions])
            if len(partitions) > 1:  # the dates need not be consecutive
                update.extra["date"] = None
    return list(outlets)


def certified_reports(reports: Sequence[GateReport]) -> list[GateReport]:
    """The reports on dates whose data the next tasks may read, by all suites that judged it."""
    refused = {report.run_key.date for report in reports if not report.is_released}
    return [report for report in reports if report.run_key.date not in refused]


def asset_extra(report: GateReport) -> dict[str, Any]:
    """The extra of an asset event about the data; `read_validated` accepts it like a summary."""
    contract = report.contract
    return {
        "gate": report.run_key.gate,
        "run_id": report.run_id,
        "date": report.dates,
        "outcome": report.outcome.value,
        "accepted": str(report.accepted) if report.accepted else None,
        "partial": partial_summary(report),
        "promoted_blocked": list(report.promoted_blocked),
        "left_out": list(report.left_out),
        "not_promoted": list(report.not_promoted),
        "versions": {name: rows.version for name, rows in report.validated.items()},
        "rows": {item.name: item.rows for item in report.datasets if item.rows is not None},
        "contract": contract.id if contract else None,
        "contract_version": contract.version if contract else None,
        "validated": validated_places(report),
        "airflow.dataquality.result": _quality_result(report),
    }


_WEIGHTS = {Severity.P0: 8, Severity.P1: 4, Severity.P2: 2, Severity.P3: 1}


def _quality_result(report: GateReport) -> dict[str, Any]:
    """The summary by which `require_quality` of Airflow's data quality provider decides.

    Its score is the share of the evaluated assertions that passed, weighted by severity, and 0 with
    a failed P0.
    """
    failed, passed = report.with_status(Status.FAILED), report.with_status(Status.PASSED)
    lost, kept = (sum(_WEIGHTS[one.severity] for one in some) for some in (failed, passed))
    score = kept / (lost + kept) if lost + kept else None
    blocking = [cut(one.name) for one in failed if one.can_block(report.fail_on)]
    warned = [cut(one.name) for one in failed if not one.can_block(report.fail_on)]
    return {
        "run_uid": report.run_id,
        "ruleset": report.suite,
        "table": ", ".join(dataset.name for dataset in report.datasets),
        "score": 0.0 if any(one.severity is Severity.P0 for one in failed) else score,
        "passed": len(passed),
        "warned": len(warned),
        "failed": len(blocking),
        "errored": report.count(Status.ERROR),
        "failed_rules": sorted(blocking)[:MOST_VERDICTS],
        "warned_rules": sorted(warned)[:MOST_VERDICTS],
    }
