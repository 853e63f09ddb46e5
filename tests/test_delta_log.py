"""Commits of Delta tables that a crashed writer left incomplete: no reader takes them for whole."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

from dqx_airflow.datasets.delta_log import log_files, require_whole_commits
from dqx_airflow.engine.sources.delta_table import table_at
from dqx_airflow.errors import DatasetError, StoreError
from dqx_airflow.results.tables import locate, open_table
from dqx_airflow.values import DatasetRef

_INFO = '{"commitInfo":{"operation":"WRITE","operationMetrics":%s}}\n'
LOSSES: dict[str, bytes | Callable[[bytes], bytes]] = {
    "0 bytes": b"",
    "a newline": b"\n",
    "blanks": b" " * 300,
    "{}": b"{}",
    "{} in lines": b"{}\n" * 100,
    "an unknown action": b'{"future":{"path":"part-1"}}\n',
    "an action without content": b'{"add":null}\n',
    "NUL bytes": b"\0" * 300,
    "half a line": lambda text: text[:-40],
    "the first line of two": lambda text: text.splitlines(keepends=True)[0],
    "Spark's first line": (_INFO % '{"numFiles":"2","numOutputRows":"9"}').encode(),
    "a merge without its files": (_INFO % '{"numTargetFilesAdded":"1"}').encode(),
}


@pytest.fixture
def path(tmp_path: Path) -> str:
    """A table of three commits, with x = 1, -1 and 2."""
    path = str(tmp_path / "orders")
    for x in (1, -1, 2):
        write_deltalake(path, pa.table({"x": [x], "run_id": ["r"]}), mode="append")
    return path


def _damage(path: str, at: int, loss: str) -> None:
    commit = Path(path) / "_delta_log" / f"{at:020}.json"
    damage = LOSSES[loss]
    commit.write_bytes(damage if isinstance(damage, bytes) else damage(commit.read_bytes()))


@pytest.mark.parametrize("at", [1, 2])
@pytest.mark.parametrize("loss", LOSSES)
def test_an_incomplete_commit_is_an_error_in_the_middle_and_at_the_end(
    path: str, loss: str, at: int
) -> None:
    _damage(path, at, loss)
    with pytest.raises(DatasetError, match="cannot be read"):
        table_at(DatasetRef("orders", path), path)
    with pytest.raises(StoreError, match="cannot read"):
        open_table(locate(str(Path(path).parent)), "orders")


@pytest.mark.parametrize("version", [1, 2])
def test_a_requested_version_needs_only_the_commits_before_it(path: str, version: int) -> None:
    _damage(path, 2, "{}")
    ref = DatasetRef("orders", path, version=version)
    if version == 1:
        assert table_at(ref, path).version() == 1
        return
    with pytest.raises(DatasetError, match=r"the commit 0+2\.json is incomplete: it has no action"):
        table_at(ref, path)


def test_an_empty_commit_is_an_error_also_where_a_checkpoint_includes_it(path: str) -> None:
    _damage(path, 1, "{}")
    DeltaTable(path).create_checkpoint()
    write_deltalake(path, pa.table({"x": [3], "run_id": ["r"]}), mode="append")
    with pytest.raises(DatasetError, match=r"the commit 0+1\.json is incomplete"):
        table_at(DatasetRef("orders", path), path)


def test_an_empty_commit_is_an_error_where_a_checkpoint_is_not_whole(path: str) -> None:
    DeltaTable(path).create_checkpoint()
    folder = Path(path) / "_delta_log"
    checkpoint = folder / f"{2:020}.checkpoint.parquet"
    for count in (2, 3):  # the first parts of two
        name = f"{2:020}.checkpoint.{1:010}.{count:010}.parquet"
        (folder / name).write_bytes(checkpoint.read_bytes())
    checkpoint.write_bytes(b"")
    (folder / "_last_checkpoint").unlink()
    _damage(path, 1, "blanks")
    assert DeltaTable(path).to_pyarrow_table()["x"].to_pylist() == [2, 1]
    with pytest.raises(DatasetError, match=r"the commit 0+1\.json is incomplete"):
        table_at(DatasetRef("orders", path), path)


def test_commits_without_files_are_whole_if_they_say_so(path: str) -> None:
    folder = Path(path) / "_delta_log"
    log = [
        {"commitInfo": {"operation": "WRITE", "operationMetrics": {"numFiles": "1"}}},
        {"commitInfo": {}},
        {"txn": {"appId": "stream", "version": 1}},
        {"domainMetadata": {"domain": "d", "configuration": "", "removed": False}},
    ]
    for at, action in enumerate(log, 3):
        (folder / f"{at:020}.json").write_text(json.dumps(action))
    DeltaTable(path).delete("x = 2")
    DeltaTable(path).optimize.compact()
    once = CommitProperties(app_transactions=[Transaction("t", 1)])
    none = pa.table({"x": pa.array([], pa.int64()), "run_id": pa.array([], pa.string())})
    write_deltalake(path, none, mode="append", commit_properties=once)
    table = table_at(DatasetRef("orders", path), path)
    assert table.version() > len(log) + 3
    assert sorted(table.to_pyarrow_table()["x"].to_pylist()) == [-1, 1]


def test_a_commit_is_read_once(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    require_whole_commits(path, 2)
    monkeypatch.setattr("dqx_airflow.datasets.delta_log._fault", pytest.fail)
    require_whole_commits(path, 2)


@pytest.mark.parametrize(
    ("names", "start"),
    [
        ([], 0),
        (["2.checkpoint.parquet"], 3),
        (["2.checkpoint.0000000001.0000000002.parquet"], 0),
        ([f"2.checkpoint.000000000{part}.0000000002.parquet" for part in (1, 2)], 3),
        ([f"2.checkpoint.0000000001.000000000{count}.parquet" for count in (2, 3)], 0),
        (["1.checkpoint.parquet", "2.checkpoint.empty.parquet"], 2),
        (["1.checkpoint.parquet", "2.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.json"], 3),
        (["1.checkpoint.parquet", "4.checkpoint.parquet", "_last_checkpoint", "1.crc"], 2),
    ],
)
def test_commits_are_read_from_the_newest_complete_checkpoint_on(
    tmp_path: Path, names: list[str], start: int
) -> None:
    (tmp_path / "_delta_log").mkdir()
    for name in names:
        number, dot, rest = name.partition(".")
        padded = f"{int(number):020}{dot}{rest}" if number.isdecimal() else name
        (tmp_path / "_delta_log" / padded.replace(".empty", "")).write_text(
            "" if ".empty" in name else "x"
        )
    assert log_files(str(tmp_path), 3).start == start
