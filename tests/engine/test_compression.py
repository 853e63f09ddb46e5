"""Compressed text files: read if Spark can, and otherwise refused before it tries."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import tarfile
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from dqx_airflow.engine.sources.listing import files_at
from dqx_airflow.engine.sources.open import open_dataset
from dqx_airflow.engine.sources.text_encoding import require_text
from dqx_airflow.errors import DatasetError
from dqx_airflow.values import DatasetRef


def arrow(codec: str) -> Callable[[bytes], bytes]:
    def compressed(data: bytes) -> bytes:
        buffer = pa.BufferOutputStream()
        with pa.CompressedOutputStream(buffer, codec) as stream:
            stream.write(data)
        return bytes(buffer.getvalue())

    return compressed


def zipped(data: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("a.csv", data)
    return buffer.getvalue()


def tarred(data: bytes) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        entry = tarfile.TarInfo("a.csv")
        entry.size = len(data)
        archive.addfile(entry, io.BytesIO(data))
    return buffer.getvalue()


READ: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".zst": arrow("zstd"),
}


@pytest.mark.few(1)
@pytest.mark.spark
@pytest.mark.parametrize("format", ["csv", "json"])
def test_compressed_files_are_read_beside_plain_ones(
    spark: Any, tmp_path: Path, format: str
) -> None:
    for number, (suffix, compressed) in enumerate(READ.items()):
        text = f"id,city\n{number},x\n" if format == "csv" else f'{{"id": {number}}}\n'
        (tmp_path / f"{number}.{format}{suffix}").write_bytes(compressed(text.encode()))
    ref = DatasetRef("orders", str(tmp_path), format=format, schema="id int")
    rows = open_dataset(spark, ref).read(()).select("id").collect()
    assert sorted(row["id"] for row in rows) == [0, 1, 2, 3]


def refusal(home: Path, *options: tuple[str, str], format: str = "csv") -> str:
    ref = DatasetRef("orders", str(home), format=format, options=options)
    with pytest.raises(DatasetError) as refused:
        require_text(ref, str(home), files_at(str(home)) or ())
    assert "gzip (.gz)" in refused.value.hint
    return refused.value.problem


SUFFIXES = ["lz4", "snappy", "deflate", "zip", "7z", "xz", "br", "Z", "tar", "tar.gz", "TGZ", "LZ4"]


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("format", ["csv", "json"])
def test_an_unsupported_compression_suffix_is_refused(
    tmp_path: Path, suffix: str, format: str
) -> None:
    (tmp_path / f"a.{format}").write_text('{"id": 1}\n')
    (tmp_path / f"b.{format}.{suffix}").write_text('{"id": 1}\n')
    assert f"b.{format}.{suffix}: .{suffix} files are not supported" in refusal(
        tmp_path, format=format
    )


@pytest.mark.parametrize(
    ("name", "data", "kind"),
    [
        ("b.csv", gzip.compress, "gzip"),
        ("b.csv.GZ", gzip.compress, "gzip"),
        ("b.csv", bz2.compress, "bzip2"),
        ("b.csv", lzma.compress, "xz"),
        ("b.csv", arrow("zstd"), "zstd"),
        ("b.csv", arrow("lz4"), "lz4"),
        ("b.csv", zipped, "zip"),
        ("b.csv", tarred, "tar"),
        ("b.csv.gz", lambda data: gzip.compress(tarred(data)), "tar"),
        ("b.csv.gz", lambda data: gzip.compress(gzip.compress(data)), "gzip"),
    ],
)
def test_compressed_data_without_its_suffix_is_refused(
    tmp_path: Path, name: str, data: Callable[[bytes], bytes], kind: str
) -> None:
    (tmp_path / "a.csv").write_text("id\n1\n")
    (tmp_path / name).write_bytes(data(b"id\n1\n"))
    problem = refusal(tmp_path, ("encoding", "ISO-8859-1"))
    assert f"{name} contains {kind} data, but its name does not have that suffix" in problem


def test_an_unlistable_location_is_judged_by_its_name() -> None:
    ref = DatasetRef("orders", "hdfs://lake/orders.csv.lz4", format="csv")
    with pytest.raises(DatasetError, match=r"\.lz4 files are not supported"):
        require_text(ref, "hdfs://lake/orders.csv.lz4", ())


@pytest.mark.parametrize("data", [b"", b"\n\n", b"\xef\xbb\xbf"])
def test_an_empty_csv_file_has_no_header(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "a.csv").write_text("id\n1\n")
    (tmp_path / "b.csv.gz").write_bytes(gzip.compress(data))
    ref = DatasetRef("orders", str(tmp_path), format="csv")
    files = files_at(str(tmp_path)) or ()
    with pytest.raises(DatasetError, match=r"b\.csv\.gz has no header: it is empty"):
        require_text(ref, str(tmp_path), files)
    require_text(replace(ref, options=(("header", "false"),)), str(tmp_path), files)


def test_a_damaged_file_does_not_hide_another(tmp_path: Path) -> None:
    (tmp_path / "a.csv.gz").write_bytes(b"not gzip")
    (tmp_path / "b.csv").write_bytes(zipped(b"id\n1\n"))
    assert "b.csv contains zip data" in refusal(tmp_path)


@pytest.mark.more
@pytest.mark.spark
def test_files_outside_a_glob_are_not_opened(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id\n1\n")
    (tmp_path / "b.csv.zip").write_bytes(zipped(b"id\n1\n"))
    options = (("pathGlobFilter", "*.csv"),)
    ref = DatasetRef("orders", str(tmp_path), format="csv", options=options)
    assert open_dataset(spark, ref).read(()).count() == 1
