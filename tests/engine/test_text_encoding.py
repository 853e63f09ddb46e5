"""Text files in other encodings are read in the declared one or are errors."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest

from dqx_airflow.engine.sources.open import open_dataset
from dqx_airflow.errors import DatasetError
from dqx_airflow.values import DatasetRef

pytestmark = pytest.mark.spark

TEXT = "id,city\n1,Zürich\n2,Genève\n"
UTF_16 = (("encoding", "UTF-16"), ("multiLine", "true"))


def cities(spark: Any, path: Path, *options: tuple[str, str], **settings: Any) -> list[str]:
    ref = DatasetRef("orders", str(path), format="csv", options=options, **settings)
    opened = open_dataset(spark, ref)
    return [row["city"] for row in opened.read(()).orderBy("id").collect()]


@pytest.mark.parametrize(
    ("encoding", "options"),
    [
        ("utf-8-sig", ()),
        ("latin-1", (("encoding", "ISO-8859-1"),)),
        ("utf-16", UTF_16),
    ],
)
def test_a_file_is_read_in_its_encoding(
    spark: Any, tmp_path: Path, encoding: str, options: tuple[tuple[str, str], ...]
) -> None:
    (tmp_path / "a.csv").write_text(TEXT, encoding=encoding)
    assert cities(spark, tmp_path, *options) == ["Zürich", "Genève"]
    declared = cities(spark, tmp_path, *options, schema="id int, city string")
    assert declared == ["Zürich", "Genève"]


@pytest.mark.parametrize("name", ["b.csv", "b.csv.gz"])
def test_a_file_in_another_encoding_is_an_error(spark: Any, tmp_path: Path, name: str) -> None:
    (tmp_path / "a.csv").write_text(TEXT)
    data = TEXT.encode("latin-1")
    (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith("gz") else data)
    with pytest.raises(DatasetError, match=f"{name} is not valid UTF-8: byte 0xFC in line 2"):
        cities(spark, tmp_path)


def test_utf_16_is_recognised_by_its_byte_order_mark(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(TEXT, encoding="utf-16")
    with pytest.raises(DatasetError, match="starts with a UTF-16 byte order mark") as refused:
        cities(spark, tmp_path)
    assert 'encoding="UTF-16" and multiLine="true"' in refused.value.hint


@pytest.mark.parametrize(
    ("end", "problem"),
    [
        ("3,Basel\0\0", "ends with NUL bytes"),
        ("\0" * 9, "ends with NUL bytes"),
        ("\0\0\n3,Basel\n", "has only NUL bytes in line 4"),
    ],
)
@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz"])
def test_a_file_padded_with_nul_bytes_is_an_error(
    spark: Any, tmp_path: Path, name: str, end: str, problem: str
) -> None:
    data = (TEXT + end).encode()
    (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith("gz") else data)
    with pytest.raises(DatasetError, match=f"{problem}, so it may be incomplete"):
        cities(spark, tmp_path)
