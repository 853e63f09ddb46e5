"""Measures how long a gate waits for lineage, from its first event to its last, per broken
endpoint."""

from __future__ import annotations

import json
import logging
import os
import resource
import tempfile
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from dqx_airflow.lineage import spool as spools
from dqx_airflow.lineage.emitter import LineageEmitter
from dqx_airflow.lineage.transport import rebuilt
from tests.hostile_endpoints import KINDS, bomb, endpoint, full_backlog

EVENT = {
    "eventTime": "2024-03-02T06:00:00+00:00",
    "eventType": "START",
    "run": {"runId": "01939b7e-0000-7000-8000-000000000001"},
    "job": {"namespace": "benchmarks", "name": "gate"},
    "producer": "https://example.com/benchmarks",
}
PARTS = 5


@contextmanager
def nobody() -> Iterator[int]:
    yield 1


def measure(scheme: str, place: AbstractContextManager[int], parts: int = 1) -> tuple[float, int]:
    """The seconds for both events of a gate, and the number of events in the spool afterwards."""
    with place as port, tempfile.TemporaryDirectory() as folder:
        transport = {"type": "http", "url": f"{scheme}://127.0.0.1:{port}", "timeout": 60}
        asked = {"type": "composite", "transports": {f"p{n}": transport for n in range(parts)}}
        os.environ["OPENLINEAGE__TRANSPORT"] = json.dumps(asked if parts > 1 else transport)
        began = time.monotonic()
        with LineageEmitter(Path(folder)) as emitter:
            for kind in ("START", "COMPLETE"):
                emitter.emit(rebuilt({**EVENT, "eventType": kind}))
            emitter.resend()
        return time.monotonic() - began, len(spools.kept(Path(folder)))


def main() -> None:
    logging.disable(logging.CRITICAL)
    bomb()
    measure("http", nobody())  # imports
    print("| endpoint | seconds | of 2 events in the spool |\n|---|---|---|")
    for name, behave in KINDS.items():
        seconds, kept = measure("http", endpoint(behave))
        print(f"| {name} | {seconds:.2f} | {kept} |")
    others = {
        "has a full backlog": measure("http", full_backlog()),
        "refuses": measure("http", nobody()),
        "hangs in the TLS handshake": measure("https", endpoint(KINDS["hangs on accept"])),
        f"is {PARTS} that hang": measure("http", endpoint(KINDS["reads and hangs"]), PARTS),
    }
    for name, (seconds, kept) in others.items():
        print(f"| {name} | {seconds:.2f} | {kept} |")
    peak_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(f"\nmost memory of the process, which makes the bomb itself: {peak_kb // 1024} MB")


if __name__ == "__main__":
    main()
