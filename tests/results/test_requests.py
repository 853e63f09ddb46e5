"""Requests beside the results: read once, and exactly as they were stored."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from dqx_airflow.errors import RequestError, StoreError
from dqx_airflow.results.store import (
    ResultsStore,
    checksum_of,
    discard_request,
    store_request,
    take_request,
)
from dqx_airflow.results.tables import locate
from dqx_airflow.values import Attempt, GateRequest, SourceFile
from dqx_airflow.values.json_form import from_arguments

from .samples import RUN_KEY


def sample_request(root: str, attempt: str = "attempt-1", text: str = "suite") -> GateRequest:
    return GateRequest(RUN_KEY, Attempt(1, attempt), SourceFile("s.dql", text), (), root)


@pytest.fixture(params=["path", "uri"])
def root(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    folder = tmp_path / "results with spaces"
    return str(folder) if request.param == "path" else folder.as_uri().replace("%20", " ")


@pytest.fixture
def store(root: str) -> Callable[[GateRequest], str]:
    return lambda request: store_request(locate(root, None), request)


def test_a_request_is_read_once(root: str, store: Callable[[GateRequest], str]) -> None:
    request = sample_request(root, text="word " * 100_000)
    address = store(request)
    assert from_arguments(take_request(address, None)) == request
    with pytest.raises(StoreError, match="is gone: its gate has ended, or another job has read it"):
        take_request(address, None)


def test_the_address_is_that_of_one_request(root: str, store: Callable[[GateRequest], str]) -> None:
    first, again = store(sample_request(root)), store(sample_request(root))
    other = store(sample_request(root, attempt="attempt-2"))
    assert first == again != other
    assert len(checksum_of(first)) == 64


def test_a_changed_request_is_refused(
    root: str, store: Callable[[GateRequest], str], tmp_path: Path
) -> None:
    address = store(sample_request(root))
    (path,) = tmp_path.glob("*/_dqx_requests/*")
    path.write_bytes(path.read_bytes()[:-8])
    with pytest.raises(RequestError, match="was changed after it was submitted"):
        take_request(address, None)


def test_a_discarded_request_is_gone_and_may_be_discarded_again(
    root: str, store: Callable[[GateRequest], str], tmp_path: Path
) -> None:
    address = store(sample_request(root))
    for _ in range(2):
        discard_request(address, None)
    assert [*tmp_path.glob("*/_dqx_requests/*")] == []


def test_a_store_with_requests_is_read_and_written_as_before(tmp_path: Path) -> None:
    root = str(tmp_path / "results")
    store_request(locate(root, None), sample_request(root))
    ResultsStore(root).check_writable()


def test_a_root_that_cannot_be_written_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    root = str(tmp_path / "file" / "results")
    with pytest.raises(StoreError, match="cannot write the results store"):
        store_request(locate(root, None), sample_request(root))
