"""The assets that a gate declares as its outlets, with a description of the validated data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from airflow.providers.common.compat.sdk import Asset
from airflow.sdk.definitions.asset import AssetRef, BaseAsset

from dqx_airflow.operators.outcome import partial_summary, validated_places
from dqx_airflow.values import GateReport


def announce(
    report: GateReport, outlets: Sequence[Any], context: Any, *, is_told: bool = True
) -> list[Any]:
    """The outlets for which Airflow emits an update, with the extra of the event.

    Assets, references to assets and aliases are left out if the data did not pass: a gate that only
    warns lets the task succeed, but nothing was validated, unless it promotes although it is
    blocked: the extra says so. After a pass, an alias is left to the
    code that adds assets to it.

    :param is_told: False for a run that left assertions out, and must not announce the data.
    """
    if not is_told or not report.is_released:
        return [outlet for outlet in outlets if not isinstance(outlet, BaseAsset)]
    for outlet in outlets:
        if isinstance(outlet, Asset | AssetRef):
            context["outlet_events"][outlet].extra = asset_extra(report)
    return list(outlets)


def asset_extra(report: GateReport) -> dict[str, Any]:
    """The extra of an asset event about the data; `read_validated` accepts it like a summary."""
    contract = report.contract
    return {
        "gate": report.run_key.gate,
        "run_id": report.run_id,
        "date": report.dates,
        "outcome": report.outcome.value,
        "partial": partial_summary(report),
        "promoted_blocked": list(report.promoted_blocked),
        "not_promoted": list(report.not_promoted),
        "versions": {name: rows.version for name, rows in report.validated.items()},
        "rows": {item.name: item.rows for item in report.datasets if item.rows is not None},
        "contract": contract.id if contract else None,
        "contract_version": contract.version if contract else None,
        "validated": validated_places(report),
    }
