"""A request survives an argument list unchanged, and nothing else gets in."""

from __future__ import annotations

import base64
import contextlib
import dataclasses
import random
import time
import tracemalloc
import zlib
from datetime import date

import pytest

from dqx_airflow.errors import RequestError
from dqx_airflow.values import Attempt, DatasetRef, GateRequest, RunKey, SourceFile, to_json
from dqx_airflow.values.json_form import FLAG, from_arguments, to_arguments

LONGEST_ARGUMENT = 131_071  # MAX_ARG_STRLEN of Linux, its closing zero left off
REQUEST = GateRequest(
    run_key=RunKey("gate", date(2024, 2, 29), "manual"),
    attempt=Attempt(1, "id"),
    suite=SourceFile("größe 🦆.dql", 'suite "S" { }'),
    datasets=(DatasetRef("orders", path="/lake/orders"),),
    results_root="/lake/results",
)


def _packed(data: bytes) -> list[str]:
    return [FLAG, base64.urlsafe_b64encode(zlib.compress(data, 9)).decode()]


def test_a_request_survives_a_round_trip() -> None:
    assert from_arguments(to_arguments(REQUEST)) == REQUEST


def test_a_large_request_is_cut_into_arguments_that_linux_takes() -> None:
    chance = random.Random(1)
    noise = "".join(chr(chance.randrange(0x4E00, 0x9FFF)) for _ in range(400_000))
    large = dataclasses.replace(REQUEST, suite=SourceFile("large.dql", noise))
    arguments = to_arguments(large)
    assert len(arguments) > 3
    assert max(len(argument.encode()) for argument in arguments) <= LONGEST_ARGUMENT
    assert from_arguments(arguments) == large


def test_arguments_are_plain_letters_that_no_shell_changes() -> None:
    for argument in to_arguments(REQUEST)[1:]:
        assert argument.replace("-", "").replace("_", "").rstrip("=").isalnum()


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        [FLAG],
        ["--other", "x"],
        [FLAG, ""],
        [FLAG, "x"],
        [FLAG, "größe 🦆"],
        [FLAG, "\0"],
        [FLAG, "A" * 1000],
        [FLAG, to_json(REQUEST)],
        [FLAG, base64.urlsafe_b64encode(b"not compressed").decode()],
        [FLAG, base64.urlsafe_b64encode(zlib.compress(b"{}")[:-6]).decode()],
        _packed(b""),
        _packed(b"null"),
        _packed(b"[]"),
        _packed(b"5"),
        _packed(b"{}"),
        _packed(b"\xff\xfe"),
        _packed(b'{"run_key": 1}'),
        _packed(b"[" * 200_000),
        _packed(b'{"a":' * 200_000),
        _packed(b"9" * 10_000),
        to_arguments(REQUEST)[:-1],
        [FLAG, to_arguments(REQUEST)[1][:-20]],
        [FLAG, to_arguments(REQUEST)[1][20:]],
    ],
)
def test_garbage_is_a_request_error_with_a_hint(arguments: list[str]) -> None:
    with pytest.raises(RequestError) as raised:
        from_arguments(arguments)
    assert raised.value.hint
    assert len(str(raised.value)) < 2000


def test_a_damaged_request_is_a_request_error_or_a_request() -> None:
    chance = random.Random(2)
    sound = to_arguments(REQUEST)[1]
    for _ in range(2000):
        place = chance.randrange(len(sound))
        damaged = sound[:place] + chance.choice("AZaz09-_=!") + sound[place + 1 :]
        with contextlib.suppress(RequestError):
            assert isinstance(from_arguments([FLAG, damaged]), GateRequest)


@pytest.mark.nightly
@pytest.mark.parametrize("filling", [b"[", b" ", b"0"])
def test_a_zip_bomb_is_refused(filling: bytes) -> None:
    packer = zlib.compressobj(9)
    bomb = b"".join(packer.compress(filling * 2**20) for _ in range(400)) + packer.flush()
    started = time.process_time()
    tracemalloc.start()
    with pytest.raises(RequestError):
        from_arguments([FLAG, base64.urlsafe_b64encode(bomb).decode()])
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 200 * 2**20
    assert time.process_time() - started < 5
