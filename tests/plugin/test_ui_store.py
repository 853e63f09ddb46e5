"""The results store behind the pages: they wait for it a while, and then go without it."""

from __future__ import annotations

import time
from pathlib import Path
from threading import Event
from types import ModuleType
from typing import Any

import pytest

from dqx_airflow.errors import StoreError

pytestmark = pytest.mark.airflow


@pytest.fixture
def store(api_environment: None, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The module, with little patience."""
    from dqx_airflow.plugin import store

    monkeypatch.setattr(store, "PATIENCE_S", 0.2)
    return store


def test_a_store_that_does_not_answer_is_left_alone_for_a_while(
    store: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, released = [], Event()

    def hangs(opened: Any) -> tuple[()]:
        asked.append(opened)
        released.wait(20)
        return ()

    client = store.StoreClient(str(tmp_path))
    for _ in range(3):
        assert client.ask(hangs).problem == store.UNREACHABLE
    assert len(asked) == 1
    released.set()
    monkeypatch.setattr(store, "PATIENCE_S", 20.0)
    in_a_minute = time.monotonic() + 60
    monkeypatch.setattr(store.time, "monotonic", lambda: in_a_minute)
    assert client.ask(lambda opened: ()).problem is None


def test_a_store_that_cannot_be_read_is_a_problem_and_no_error(
    store: ModuleType, tmp_path: Path
) -> None:
    def fails(opened: Any) -> tuple[()]:
        raise StoreError("no permission for the key abc")

    answer = store.StoreClient(str(tmp_path)).ask(fails)
    assert answer.found == ()
    assert "abc" not in answer.problem


def test_without_a_root_there_is_advice(store: ModuleType) -> None:
    assert (
        "set results_root or results_conn_id in section [dqx]"
        in store.StoreClient(None).ask(lambda opened: ()).problem
    )


def test_all_requests_of_a_server_share_what_was_opened(store: ModuleType, tmp_path: Path) -> None:
    assert store.client_of(str(tmp_path)) is store.client_of(str(tmp_path))
