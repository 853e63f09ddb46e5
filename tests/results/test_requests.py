"""Requests beside the results: read once, and exactly as they were stored."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dqx_airflow.errors import RequestError, StoreError
from dqx_airflow.results.store import ResultsStore
from dqx_airflow.results.stored_requests import (
    RequestTakenError,
    checksum_of,
    discard_request,
    request_state,
    store_request,
    take_request,
)
from dqx_airflow.results.tables import locate
from dqx_airflow.values import Attempt, GateRequest, SourceFile
from dqx_airflow.values.json_form import from_arguments
from tests.processes import environment
from tests.results.samples import RUN_KEY
from tests.small_s3 import SmallS3, small_s3


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
    taken = take_request(address, None, "the first job")
    assert from_arguments(taken.arguments) == request
    assert taken.warning is None
    with pytest.raises(RequestTakenError, match="was taken by another job: the first job, at 20"):
        take_request(address, None)
    assert not taken.is_dropped()
    discard_request(address, None)
    assert taken.is_dropped()
    with pytest.raises(StoreError, match="is gone: its gate has ended"):
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
    take_request(address, None)
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


# Of several jobs one gets it

RACER = Path(__file__).with_name("request_racer.py")


def raced(root: str, options: dict[str, str] | None, gap_s: float, rounds: int) -> None:
    """Lets three processes take requests at the same time, or one shortly after the other."""
    place = locate(root, options)
    requests = [sample_request(root, attempt=str(number)) for number in range(rounds)]
    addresses = [store_request(place, request) for request in requests]
    variables = {"DQX_RESULTS_STORAGE": json.dumps(options)} if options else {}
    start = time.time() + 4
    racers = [
        subprocess.Popen(
            [sys.executable, RACER, f"job {n}", str(start), str(n * gap_s), *addresses],
            env=environment(**variables),
            stdout=subprocess.PIPE,
            text=True,
        )
        for n in range(3)
    ]
    outputs = [racer.communicate(timeout=300)[0].splitlines() for racer in racers]
    assert [len(lines) for lines in outputs] == [rounds] * 3
    for lines in zip(*outputs, strict=True):
        words = sorted(line.partition(" ")[0] for line in lines)
        names = {line.partition(" ")[2] for line in lines}
        assert words == ["lost", "lost", "won"], lines
        assert len(names) == 1, "the losers know who has won"


ROUNDS = [pytest.param(15), pytest.param(150, marks=pytest.mark.nightly)]


@pytest.mark.more
@pytest.mark.few(1)
@pytest.mark.parametrize("gap_s", [0, 0.002, 0.01])
@pytest.mark.parametrize("rounds", ROUNDS)
def test_of_jobs_that_come_at_once_one_gets_the_request(
    tmp_path: Path, gap_s: float, rounds: int
) -> None:
    raced(str(tmp_path / "results"), None, gap_s, rounds)


@pytest.fixture
def bucket() -> Iterator[SmallS3]:
    with small_s3() as store:
        yield store


@pytest.mark.more
@pytest.mark.parametrize("rounds", ROUNDS)
def test_of_jobs_that_come_at_once_one_gets_the_request_from_an_object_store(
    bucket: SmallS3, rounds: int
) -> None:
    raced("s3://lake/dqx", bucket.options, 0, rounds)


@pytest.mark.more
def test_without_the_right_to_delete_one_job_gets_the_request_and_says_so(bucket: SmallS3) -> None:
    place = locate("s3://lake/dqx", bucket.options)
    address = store_request(place, sample_request("s3://lake/dqx"))
    bucket.allow_deletion(False)
    taken = take_request(address, bucket.options, "the first job")
    assert taken.warning is not None
    assert "give this job the right to delete there" in taken.warning
    for _ in range(2):
        with pytest.raises(RequestTakenError, match="was taken by another job: the first job"):
            take_request(address, bucket.options)
        with pytest.raises(StoreError, match="cannot delete from the results store"):
            discard_request(address, bucket.options)
    assert not taken.is_dropped()
    bucket.allow_deletion(True)
    discard_request(address, bucket.options)
    assert taken.is_dropped()
    assert bucket.keys == []


def test_the_store_tells_how_the_job_of_a_request_is(root: str) -> None:
    address = store_request(locate(root, None), sample_request(root))
    assert request_state(address, None).taker is None
    taken = take_request(address, None, "the first job")
    first = request_state(address, None)
    assert first.taker == taken.taker
    assert (first.code, first.reason) == (None, None)
    taken.sign()
    assert request_state(address, None).sign != first.sign
    taken.end(4, "no such bucket")
    ended = request_state(address, None)
    assert (ended.code, ended.reason) == (4, "no such bucket")


def test_a_gate_that_has_ended_has_no_job_that_comes_later(root: str) -> None:
    request = sample_request(root)
    address = store_request(locate(root, None), request)
    discard_request(address, None)
    with pytest.raises(StoreError, match="is gone: its gate has ended"):
        take_request(address, None)
    assert store_request(locate(root, None), request) == address, "a task restarted in its try"
    assert from_arguments(take_request(address, None).arguments) == request
