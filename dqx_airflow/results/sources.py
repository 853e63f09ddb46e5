"""The texts of suites and contracts: each is stored once for any number of runs."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from dqx_airflow.limits import LONGEST_KEPT_SOURCE
from dqx_airflow.results.column import Row
from dqx_airflow.values import GateReport, SourceDigest, SourceFile


def digest_of(text: str) -> str:
    """The SHA-256 of a text, in hexadecimal digits."""
    return hashlib.sha256(text.encode("utf-8", errors="replace")).hexdigest()


def digests_of(sources: Iterable[SourceFile]) -> tuple[SourceDigest, ...]:
    """The digests of a gate's source texts in its report."""
    return tuple(SourceDigest(source.name, digest_of(source.text)) for source in sources)


def source_rows(report: GateReport, sources: Iterable[SourceFile]) -> dict[str, Row]:
    """A row of the table `sources` for each distinct text to store, by its digest."""
    texts = {digest_of(source.text): source.text for source in sources}
    return {
        digest: {
            "run_id": report.run_id,
            "digest": digest,
            "text": text,
            "stored_at": report.finished_at,
        }
        for digest, text in texts.items()
        if len(text) <= LONGEST_KEPT_SOURCE
    }
