"""Proofs of engines in the store, which `dql doctor --prove` writes."""

from __future__ import annotations

import uuid
from typing import Any

from dqx_airflow.results import schema
from dqx_airflow.results.query import StoredResults, opened
from dqx_airflow.values import Difference, EngineProof, from_json, to_json
from dqx_airflow.values.engine_proof import PROVE_AGAIN


def write_proof(results: StoredResults | str, proof: EngineProof) -> None:
    """Appends a proof.

    :raises StoreError: the store cannot be written.
    """
    opened(results).write(schema.PROOFS, {str(uuid.uuid4()): _row(proof)})


def _row(proof: EngineProof) -> dict[str, Any]:
    """The row of a proof in the table `proofs`."""
    return {
        "engine_key": proof.key,
        "engine": proof.engine,
        "spark_version": proof.spark_version,
        "proven_at": schema.as_utc(proof.at),
        "agreeing": proof.agreeing,
        "differences": to_json(proof.differences),
        "doubts": proof.doubts,
        "untried": to_json(proof.untried),
    }


def _proof(row: schema.Row) -> EngineProof:
    """The proof of a row of the table `proofs`."""
    return EngineProof(
        key=row["engine_key"],
        engine=row["engine"],
        spark_version=row["spark_version"],
        at=schema.as_utc(row["proven_at"]),
        agreeing=row["agreeing"],
        differences=from_json(tuple[Difference, ...], row["differences"]),
        doubts=tuple(row["doubts"] or ()),
        untried=from_json(tuple[tuple[str, int], ...], row["untried"]),
    )


def read_proofs(results: StoredResults | str) -> tuple[EngineProof, ...]:
    """The proofs of all engines, the newest first.

    :raises StoreError: the store exists and cannot be read.
    """
    order = 'ORDER BY "proven_at" DESC'
    rows = opened(results).whole_rows(schema.PROOFS, order=order)
    return tuple(map(_proof, rows))


def gates_not_proven(results: StoredResults | str) -> dict[str, str]:
    """The gates whose last run was on an engine that has to be proven again, with the mark of that
    run: since then, no engine was proven.

    :raises StoreError: the store exists and cannot be read.
    """
    store = opened(results)
    proofs = read_proofs(store)
    if not proofs or "engine_proof" not in store.columns(schema.RUNS):
        return {}
    newest = proofs[0]
    columns = ("gate", "finished_at", "engine_proof")
    rows = store.select(schema.RUNS, columns, [], 'ORDER BY "finished_at" DESC LIMIT 500')
    last: dict[str, dict[str, Any]] = {}
    for row in rows:
        last.setdefault(row["gate"], row)
    return {
        gate: row["engine_proof"]
        for gate, row in last.items()
        if PROVE_AGAIN in (row["engine_proof"] or "")
        and schema.as_utc(row["finished_at"]) > newest.at
    }
