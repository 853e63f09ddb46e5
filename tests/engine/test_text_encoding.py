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


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("encoding", "options"),
    [("utf-8-sig", ()), ("latin-1", (("encoding", "ISO-8859-1"),)), ("utf-16", UTF_16)],
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


@pytest.mark.parametrize("encoding", ["UTF-16", "utf_16_le", "UTF-16BE", "UTF-32"])
@pytest.mark.parametrize("schema", [None, "id int, city string"])
def test_csv_whose_characters_have_several_bytes_needs_multi_line(
    spark: Any, tmp_path: Path, encoding: str, schema: str | None
) -> None:
    """Spark splits it within characters, and every line looked malformed."""
    (tmp_path / "a.csv").write_text(TEXT, encoding=encoding)
    with pytest.raises(
        DatasetError, match=f"cannot separate lines of CSV in {encoding}"
    ) as refused:
        cities(spark, tmp_path, ("encoding", encoding), schema=schema)
    assert 'multiLine="true"' in refused.value.hint


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


BEYOND = "".join(f"{number},{'Zürich' * 150}\ufffd\n" for number in range(1200))
"""More than the first megabyte, with a character that replaced another one before."""
FAULTS = {
    "a byte": ("1,Z\xfcrich\n".encode("latin-1"), "is not valid UTF-8"),
    "a line of NUL bytes": (b"\0\0\0\n2,Basel\n", "has only NUL bytes"),
}


@pytest.mark.more
@pytest.mark.few(1)
@pytest.mark.parametrize("schema", [None, "id int, city string"])
@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz"])
def test_text_is_checked_to_its_end(
    spark: Any, tmp_path: Path, name: str, schema: str | None
) -> None:
    def put(end: bytes) -> None:
        data = ("\ufeffid,city\n" + BEYOND).encode() + end
        (tmp_path / name).write_bytes(gzip.compress(data, 1) if name.endswith("gz") else data)

    put(b"")
    assert len(cities(spark, tmp_path, schema=schema)) == 1200
    for fault, problem in FAULTS.values():
        put(fault)
        with pytest.raises(Exception, match=f"{name} cannot be read: .*{problem}"):
            cities(spark, tmp_path, schema=schema)


@pytest.mark.few(1)
@pytest.mark.since_spark("4.0", "guesses the types of JSON")
@pytest.mark.parametrize("schema", [None, "id int, city string"])
def test_json_lines_are_checked_to_their_end(
    spark: Any, tmp_path: Path, schema: str | None
) -> None:
    rows = (line.split(",") for line in BEYOND.split())
    good = "".join(f'{{"id":{number},"city":"{city}"}}\n' for number, city in rows)
    (tmp_path / "a.json").write_bytes(good.encode() + b'{"id":1,"city":"Z\xfcrich"}\n')
    ref = DatasetRef("orders", str(tmp_path), format="json", schema=schema)
    if schema is None:
        # The parser of Spark may be the first that finds it.
        with pytest.raises(Exception, match=r"is not valid UTF-8|FAILED_READ_FILE"):
            open_dataset(spark, ref).read(()).count()
    else:  # as every line that is not as declared
        opened = open_dataset(spark, ref)
        assert opened.texts is not None
        assert opened.read(()).where(opened.texts.is_broken_line).count() == 1


@pytest.mark.parametrize(
    ("encoding", "byte"), [("cp1252", b"\x81"), ("gbk", b"\xff"), ("UTF-8", b"\xc3")]
)
def test_other_encodings_and_cut_characters_are_errors_too(
    spark: Any, tmp_path: Path, encoding: str, byte: bytes
) -> None:
    filler = b"2,Basel\n" * (0 if encoding == "UTF-8" else 200_000)
    (tmp_path / "a.csv").write_bytes(b"id,city\n" + filler + b"3,Z" + byte)
    line = filler.count(b"\n") + 2
    with pytest.raises(DatasetError, match=f"byte 0x{byte.hex().upper()} in line {line}"):
        cities(spark, tmp_path, ("encoding", encoding))


ONE_BREAK = [
    ("\n", "a\r\nb", False),
    ("\n", "a\rb", False),
    ("\r\n", "a\nb", False),
    ("\n", "a\nb", True),
    ("\r\n", "a\r\nb", True),
    ("\r\n", "a\rb", True),
    ("\n", 'say ""hi""\n, a', True),
    ("\n", 'say ""hi""\r, a', False),
]


@pytest.mark.few(4)
@pytest.mark.parametrize(("between", "value", "is_read"), ONE_BREAK)
def test_rows_are_separated_by_the_line_break_between_them(
    spark: Any, tmp_path: Path, between: str, value: str, is_read: bool
) -> None:
    rows = (f'"{value}",1', "b,2", '"c",3', '"d\r\n",4')
    (tmp_path / "a.csv").write_bytes("".join(row + between for row in rows).encode())
    options = (("header", "false"), ("multiLine", "true"), ("escape", '"'))
    schema = "city string, id string"
    if not is_read:
        with pytest.raises(
            DatasetError, match="another line break than the one between"
        ) as refused:
            cities(spark, tmp_path, *options, schema=schema)
        assert "lineSep" in refused.value.hint
        options = (*options, ("lineSep", between))
    read = cities(spark, tmp_path, *options, schema=schema)
    assert [city[:1] for city in read] == [value[:1], "b", "c", "d"]
