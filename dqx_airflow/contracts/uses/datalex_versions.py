"""The version of a DataLex contract that its users rely on, from the manifest with all versions."""

from __future__ import annotations

from collections.abc import Iterable

from dqx_airflow.contracts.datalex.manifest import Manifest
from dqx_airflow.contracts.uses.consumers import ConsumerUse, Reliance


def promise_reliances(
    manifest: Manifest, contract_id: str, uses: Iterable[ConsumerUse]
) -> tuple[Reliance, ...]:
    """What is relied on: the pinned version, or else the newest of the manifest."""
    versions = [str(promise.version) for promise in manifest.versions_of(contract_id)]
    reliances = []
    for use in uses:
        pin = use.pin or versions[0]
        concern = None if pin == versions[0] else f"version {versions[0]} is there"
        if pin not in versions:
            concern = f"{manifest.source.name} has no version {pin}"
        reliances.append(Reliance(use, pin if pin in versions else None, concern))
    return tuple(reliances)
