"""What `dql doctor --prove` found about engines. Append-only; of an engine the last one counts."""

from __future__ import annotations

import uuid

from dqx_airflow.results.query import StoredResults, equals, opened
from dqx_airflow.results.schema import PROOFS, PROOFS_COLUMNS, PROOFS_SCHEMA, fields_of, written
from dqx_airflow.values import EngineProof


def write_proof(results: StoredResults | str, proof: EngineProof) -> None:
    """Appends a proof.

    :raises StoreError: the store cannot be written.
    """
    from dqx_airflow.results.store import ResultsStore  # pyarrow, which readers do not need

    results = opened(results)
    rows = {str(uuid.uuid4()): [written(PROOFS_COLUMNS, proof)]}
    ResultsStore(results.root, results.storage_options).append_rows({PROOFS: rows})


def read_proof(results: StoredResults | str, key: str) -> EngineProof | None:
    """The last proof of an engine; None if there is none.

    :raises StoreError: the store exists and cannot be read.
    """
    order = 'ORDER BY "proven_at" DESC LIMIT 1'
    rows = opened(results).select(PROOFS, PROOFS_SCHEMA.names, [equals("engine_key", key)], order)
    return EngineProof(**fields_of(PROOFS_COLUMNS, rows[0])) if rows else None
