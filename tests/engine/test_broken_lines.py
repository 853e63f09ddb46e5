"""Lines of CSV and JSON that cannot be read are named by file and number, and none is silently
read as something else: a value that goes on in the next line is an error, or read as it is."""

from __future__ import annotations

import csv
import gzip
import io
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dqx_airflow.engine.job import try_gates
from dqx_airflow.engine.sources.broken_lines import located
from dqx_airflow.engine.sources.csv_quotes import CsvDialect
from dqx_airflow.engine.sources.text_faults import SOME_LINE
from dqx_airflow.values import DatasetRef, GateReport, Outcome
from tests.engine.lake import TODAY, request

CELLS = st.text(st.sampled_from("ab ,;\"\\'#\u00fc"), max_size=6)


def written(rows: list[list[str]], *, escape: str) -> str:
    """Rows as Python writes them, with quotes doubled, or escaped by a backslash."""
    file = io.StringIO()
    is_doubled = escape == '"'
    writer = csv.writer(
        file,
        doublequote=is_doubled,
        escapechar=None if is_doubled else escape,
        quoting=csv.QUOTE_ALL,
        lineterminator="\n",
    )
    writer.writerows(rows)
    return file.getvalue()


@given(st.lists(CELLS, min_size=1, max_size=4), st.sampled_from('"\\'))
def test_a_valid_line_is_not_refused_and_has_its_values(row: list[str], escape: str) -> None:
    line = written([row], escape=escape).rstrip("\n")
    assert CsvDialect(escape=escape).values_in(line) == (len(row), False)


@given(st.lists(CELLS, min_size=1, max_size=4), st.integers(0, 3), st.sampled_from('"\\'))
def test_a_value_that_goes_on_in_the_next_line_is_found(
    row: list[str], at: int, escape: str
) -> None:
    at %= len(row)
    broken = [*row[:at], f"{row[at]}a\nb", *row[at + 1 :]]
    first = written([broken], escape=escape).split("\n", maxsplit=1)[0]
    assert CsvDialect(escape=escape).values_in(first) == (at + 1, True)


BROKEN = {
    "an open quote": ("a.csv", 'id,note\n1,ok\n2,"two\nlines"\n', "", "line 3 ends within"),
    "one value too many": ("a.csv", "id,note\n\n1,ok,x\n", "", "line 3 has 3 values instead of 2"),
    "a separator": ("a.csv", "id|note\n1|ok|x\n", "|", "line 2 has 3 values instead of 2"),
    "CRLF": ("a.csv", "id,note\r\n1,ok\r\n2\r\n", "", "line 3 has 1 value instead of 2"),
    "a comma": ("a.json", '{"a":1}\n{"a":2},\n', "", "line 2 is not JSON"),
    "a zero": ("a.json", '{"a":1}\n{"a":01}\n', "", "line 2 is not JSON"),
    "a comma after single quotes": ("a.json", "{'a':'it\\'s'}\n{'a':'\"'},\n", "", "line 2 is not"),
    "a repeated field": ("a.json", '{"a":1}\n{"a":1,"a":2}\n', "", "line 2 repeats a field"),
    "a document": ("a.json", '{\n"a":1,\n"b":01}\n', "", "line 3 is where the file stops"),
    "null": ("a.json", '{"a":1}\nnull\n', "", "line 2 is not a JSON object"),
}


@pytest.mark.parametrize("name", BROKEN)
@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_a_line_that_cannot_be_read_is_named_with_its_number(
    tmp_path: Path, name: str, suffix: str
) -> None:
    file, text, separator, found = BROKEN[name]
    content = text.encode()
    (tmp_path / f"{file}{suffix}").write_bytes(gzip.compress(content) if suffix else content)
    options = (("sep", separator),) if separator else ()
    ref = DatasetRef("t", str(tmp_path), format=file[2:], options=options)
    message = located(ref, SOME_LINE)
    assert f"{file}{suffix} cannot be read: {found}" in message
    assert re.search("multiLine=|schema=|write the file again", message)
    assert "PERMISSIVE" not in message


def test_a_line_is_hidden_if_columns_are_masked(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,note\n1,secret,x\n")
    shown = located(DatasetRef("t", str(tmp_path), format="csv"), SOME_LINE)
    hidden = located(DatasetRef("t", str(tmp_path), format="csv", masked=("id",)), SOME_LINE)
    assert "secret" in shown
    assert "secret" not in hidden
    assert "line 2 has 3 values" in hidden


def test_another_problem_stays_as_it_is(tmp_path: Path) -> None:
    assert located(DatasetRef("t", str(tmp_path), format="csv"), "no column") == "no column"


def judged(spark: Any, folder: Path, ref: DatasetRef) -> GateReport:
    body = 'assert num_rows() > 0 name "rows"'
    return try_gates([request(folder, body, [ref], TODAY)], lambda _: spark)[0]


@pytest.mark.spark
@pytest.mark.few(1)
@pytest.mark.parametrize("schema", [None, "note string"])
@pytest.mark.parametrize(
    ("text", "is_sound"),
    [('note\n"two\nlines"\nok\n', False), ('note\n"one"\n"a\\"b"\n"c, d"\nit is 5" long\n', True)],
)
def test_a_line_that_ends_in_quotes_is_an_error_although_its_halves_fit(
    spark: Any, tmp_path: Path, text: str, is_sound: bool, schema: str | None
) -> None:
    folder = tmp_path / "t"
    folder.mkdir()
    (folder / "a.csv").write_text(text)
    report = judged(spark, tmp_path, DatasetRef("orders", str(folder), format="csv", schema=schema))
    if is_sound:
        assert report.outcome is Outcome.PASSED, report.verdicts
    elif schema is None:
        reasons = " ".join(item.reason or "" for item in report.verdicts)
        assert "a.csv cannot be read: line 2 ends within a value in quotes" in reasons
        assert "multiLine" in reasons
    else:
        malformed = next(item for item in report.verdicts if item.name == "orders.well_formed")
        assert malformed.value == 1
