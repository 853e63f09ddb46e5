"""JSON lines, documents, arrays, and a folder that mixes them."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest

from dqx_airflow.engine.sources.json_text import with_json_layout
from dqx_airflow.engine.sources.listing import files_at
from dqx_airflow.engine.sources.open import open_dataset
from dqx_airflow.errors import DatasetError
from dqx_airflow.values import DatasetRef

LINES = '{"id": 1}\n{"id": 2}\n'
DOCUMENT = '{\n  "id": 1\n}\n'
ARRAY = '[\n  {"id": 1},\n  {"id": 2}\n]\n'
ONE_LINE = '[{"id": 1}, {"id": 2}]'


def layout(home: Path, **settings: Any) -> tuple[tuple[str, str], ...]:
    ref = DatasetRef("orders", path=str(home), format="json", **settings)
    return with_json_layout(ref, str(home), files_at(str(home)) or ()).options


@pytest.mark.parametrize(
    ("texts", "is_document"),
    [
        ([LINES], False),
        ([DOCUMENT], True),
        ([ARRAY], True),
        (["\ufeff" + ARRAY], True),
        (["\n\n" + DOCUMENT], True),
        ([ONE_LINE], False),
        ([ONE_LINE, LINES], False),
        ([ONE_LINE, ARRAY, ""], True),
        (["not JSON"], False),
        ([LINES.replace("\n", "\r")], False),
        (['{"id": 1}{"id": 2}\n{"id": 3}\n'], False),
        (['{"id": 1,\n{"id": 2}\n'], False),
        (['{"id": 1} x\n' + LINES], False),
        ([ARRAY.replace("\n", "\r")], True),
        (["[\n" + '{"id": 1},\n' * 200_000 + '{"id": 2}]'], True),
        ([""], False),
    ],
)
def test_documents_are_recognised(tmp_path: Path, texts: list[str], *, is_document: bool) -> None:
    for number, text in enumerate(texts):
        (tmp_path / f"{number}.json").write_text(text, encoding="utf-8")
    assert layout(tmp_path) == ((("multiLine", "true"),) if is_document else ())


def test_a_compressed_document_is_recognised(tmp_path: Path) -> None:
    (tmp_path / "a.json.gz").write_bytes(gzip.compress(ARRAY.encode()))
    assert layout(tmp_path) == (("multiLine", "true"),)


def test_a_mixture_names_one_file_of_each_layout(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(LINES)
    (tmp_path / "b.json").write_text(ARRAY)
    with pytest.raises(DatasetError, match=r"b\.json is a JSON document, \S+a\.json has one value"):
        layout(tmp_path)


def test_an_explicit_multiline_option_wins(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(ARRAY)
    assert layout(tmp_path, options=(("multiline", "false"),)) == (("multiline", "false"),)


@pytest.mark.since_spark("4.0", "guesses the types of JSON")
@pytest.mark.spark
def test_every_value_of_documents_is_read(spark: Any, tmp_path: Path) -> None:
    for number, text in enumerate((DOCUMENT, ARRAY, ONE_LINE)):
        (tmp_path / f"{number}.json").write_text(text)
    opened = open_dataset(spark, DatasetRef("orders", path=str(tmp_path), format="json"))
    assert sorted(row.id for row in opened.read(()).collect()) == [1, 1, 1, 2, 2]
