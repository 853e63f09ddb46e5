"""Outages of the lineage endpoint cost a gate two seconds in total and lose no event."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from random import Random
from typing import Any

import pytest

from dqx_airflow.lineage import spool as spools
from dqx_airflow.lineage.emitter import LineageEmitter
from dqx_airflow.lineage.events import start_event
from dqx_airflow.values import DatasetRef
from tests.attacks.attack_gates import gate_request
from tests.hostile_endpoints import ACCEPTS, KINDS, bomb, endpoint
from tests.http_stub import Asked, Reply, http_stub

SEEDS = [*(pytest.param(seed, marks=pytest.mark.nightly) for seed in range(1, 20)), 0]
SECONDS = 2.0
SLACK_S = 2.0
"""What a machine that does other things besides may add."""


@pytest.mark.parametrize("seed", SEEDS)
def test_no_event_is_lost_while_the_catalog_is_away(
    seed: int, tmp_path: Path, attack: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    bomb()
    monkeypatch.setenv("NO_PROXY", "*")
    chance, spool = Random(seed), tmp_path / "spool"
    tally = attack("outages of lineage: gates held up, or events lost")
    waiting: list[str] = []
    for kind in chance.sample(sorted(KINDS), 3):
        with endpoint(KINDS[kind]) as port:
            _configure(monkeypatch, f"http://127.0.0.1:{port}")
            runs = [f"0193{chance.randrange(16**4):04x}-0000-7000-8000-{n:012x}" for n in range(3)]
            began = time.monotonic()
            with LineageEmitter(spool) as emitter:
                for run in runs:
                    emitter.emit(_event(tmp_path, run))
                emitter.resend()
            took_s = time.monotonic() - began
        tally.tried(took_s < SECONDS + SLACK_S, f"seed {seed}: {kind} took {took_s:.1f} s")
        waiting = [] if kind in ACCEPTS else [*waiting, *runs]
        kept = [spools.event_in(event)["run"]["runId"] for event in spools.kept(spool)]
        tally.tried(set(waiting) <= set(kept), f"seed {seed}: {kind} lost an event")
    seen: set[str] = set()

    def answer(asked: Asked) -> Reply:
        seen.add(asked.json()["run"]["runId"])
        return Reply()

    with http_stub(answer) as catalog:
        _configure(monkeypatch, catalog)
        with LineageEmitter(spool) as emitter:
            emitter.resend()
    tally.tried(
        seen == set(waiting) and not list(spools.kept(spool)),
        f"seed {seed}: {len(set(waiting))} waited, {len(seen)} arrived",
    )


def _configure(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    monkeypatch.setenv("OPENLINEAGE__TRANSPORT", json.dumps({"type": "http", "url": url}))


def _event(folder: Path, run: str) -> Any:
    request = gate_request(folder, 'suite "S" { }', [DatasetRef("t", path=str(folder))])
    return start_event(request, run, datetime(2024, 3, 2, tzinfo=timezone.utc))
