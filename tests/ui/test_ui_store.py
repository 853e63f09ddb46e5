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
    from dqx_airflow.ui import store

    monkeypatch.setattr(store, "PATIENCE_S", 0.2)
    return store


def test_an_unresponsive_store_is_not_asked_for_a_while(
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


def test_an_unreadable_store_is_a_problem_and_not_an_exception(
    store: ModuleType, tmp_path: Path
) -> None:
    def fails(opened: Any) -> tuple[()]:
        raise StoreError("no permission for the key abc")

    answer = store.StoreClient(str(tmp_path)).ask(fails)
    assert answer.found == ()
    assert "abc" not in answer.problem


def test_a_missing_root_names_the_settings(store: ModuleType) -> None:
    assert (
        "set results_root or results_conn_id in section [dqx]"
        in store.StoreClient(None).ask(lambda opened: ()).problem
    )


def test_all_requests_of_a_server_share_one_client(store: ModuleType, tmp_path: Path) -> None:
    assert store.client_of(str(tmp_path)) is store.client_of(str(tmp_path))
