"""A valid CSV file is read by Spark exactly as Python's csv module reads it, or refused with the
line and the option to set."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest

from dqx_airflow.engine.job import try_gates
from dqx_airflow.engine.sources.csv_quotes import CsvDialect, misread_lines
from dqx_airflow.engine.sources.open import open_dataset
from dqx_airflow.metrics.sql import quote_literal
from dqx_airflow.values import DatasetRef, GateReport, Outcome
from tests.engine.lake import TODAY, request, verdict

pytestmark = pytest.mark.spark

PIECES = (
    "a",
    "b",
    " ",
    '"',
    '"',
    "\\",
    "\\",
    ",",
    ";",
    "'",
    "|",
    "#",
    "\t",
    "\u00fc",
    "\u2028",
    "^",
)
COLUMNS = 3
DOUBLED = {
    "as Spark does without options": {},
    "the quote escapes": {"escape": '"'},
    "nothing escapes": {"escape": ""},
    "another quote": {"quote": "'"},
    "another quote that escapes": {"quote": "'", "escape": "'"},
    "a semicolon": {"sep": ";", "escape": '"'},
    "a tab": {"sep": "\\t"},
    "a comment": {"comment": "#"},
    "an escape of the escape": {"charToEscapeQuoteEscaping": "^"},
    "an escape of the quote": {"escape": '"', "charToEscapeQuoteEscaping": "\\"},
    "a handling": {"unescapedQuoteHandling": "STOP_AT_CLOSING_QUOTE"},
    "another handling": {"unescapedQuoteHandling": "STOP_AT_DELIMITER"},
    "a third handling": {"unescapedQuoteHandling": "BACK_TO_DELIMITER"},
}
"""Options beside which quotes are doubled in the files."""


def a_cell(rng: Random, pieces: Sequence[str] = PIECES) -> str:
    return "".join(rng.choices(pieces, k=rng.randint(0, 5)))


def rows(rng: Random, number: int, pieces: Sequence[str] = PIECES) -> list[list[str]]:
    return [[a_cell(rng, pieces) for _ in range(COLUMNS)] for _ in range(number)]


def written(
    row: list[str], options: Mapping[str, str], *, is_doubled: bool, quotes_all: bool = False
) -> str:
    """A row as Python writes it, without its line break."""
    file = io.StringIO()
    csv.writer(
        file,
        delimiter=options.get("sep", ",").replace("\\t", "\t"),
        quotechar=options.get("quote", '"'),
        doublequote=is_doubled,
        escapechar=None if is_doubled else options.get("escape", "\\"),
        quoting=csv.QUOTE_ALL if quotes_all or not is_doubled else csv.QUOTE_MINIMAL,
        lineterminator="\n",
    ).writerow(row)
    return file.getvalue().removesuffix("\n")


def read_by_spark(
    spark: Any, lines: Sequence[str], options: Mapping[str, str]
) -> list[tuple[list[str], bool, bool]]:
    """The values of lines, whether Spark finds them malformed, and whether we find that it misreads
    them although it does not."""
    names = [f"c{number}" for number in range(COLUMNS)]
    fields = ", ".join(f"{name} STRING" for name in (*names, "bad"))
    given = {**options, "mode": "PERMISSIVE", "columnNameOfCorruptRecord": "bad"}
    pairs = ", ".join(quote_literal(word) for pair in given.items() for word in pair)
    faults = misread_lines(options, COLUMNS)
    parsed = f"from_csv(value, {quote_literal(fields)}, map({pairs}))"
    frame = spark.createDataFrame([*enumerate(lines)], "at INT, value STRING")
    found = frame.selectExpr(
        "at", f"{parsed} AS r", f"coalesce({' OR '.join(faults.values())}, false) AS misread"
    )
    return [
        ([row["r"][name] or "" for name in names], row["r"]["bad"] is not None, row["misread"])
        for row in found.orderBy("at").collect()
    ]


def seeds(number: int) -> list[Any]:
    """The first in the default lane, and others with it in the nightly one."""
    return [0, *(pytest.param(seed, marks=pytest.mark.nightly) for seed in range(1, number))]


@pytest.mark.few(2)
@pytest.mark.parametrize("seed", seeds(3))
@pytest.mark.parametrize("name", DOUBLED)
def test_a_valid_line_is_read_as_python_reads_it_or_refused(
    spark: Any, name: str, seed: int
) -> None:
    options = DOUBLED[name]
    rng = Random(f"{name} {seed}")
    due = rows(rng, 300)
    lines = [written(row, options, is_doubled=True, quotes_all=rng.random() < 0.5) for row in due]
    kept = [(row, line) for row, line in zip(due, lines, strict=True) if is_a_row(line, options)]
    found = read_by_spark(spark, [line for _, line in kept], options)
    refused = 0
    for (row, line), (values, is_malformed, is_misread) in zip(kept, found, strict=True):
        assert is_misread or is_malformed or values == row, line
        refused += is_misread or is_malformed
    dialect = CsvDialect.of(options)
    if dialect.escape == dialect.quote and not dialect.escapes_escape:
        assert refused == 0
    else:
        assert 0 < refused < len(kept)


def is_a_row(line: str, options: Mapping[str, str]) -> bool:
    """False for a line that Spark skips, which is tested elsewhere."""
    return bool(line.strip()) and not line.startswith(options.get("comment", "\n"))


@pytest.mark.few(1)
@pytest.mark.parametrize("escape", ["\\", "^", None])
def test_a_line_with_an_escape_is_read_if_the_option_names_it(
    spark: Any, escape: str | None
) -> None:
    options = {} if escape is None else {"escape": escape}
    due = rows(Random("escaped"), 300)
    lines = [written(row, options, is_doubled=False) for row in due]
    found = read_by_spark(spark, lines, options)
    for row, line, (values, is_malformed, is_misread) in zip(due, lines, found, strict=True):
        assert is_misread or is_malformed or values == row, line
        assert not (options and (is_misread or is_malformed)), line


@pytest.mark.more
def test_java_and_python_find_the_same_lines(spark: Any) -> None:
    rng = Random("both")
    for options in DOUBLED.values():
        dialect = CsvDialect.of(options)
        lines = [f'"{a_cell(rng)},{a_cell(rng)}"' for _ in range(100)]
        condition = dialect.is_sound("value", is_file=False)
        frame = spark.createDataFrame([*enumerate(lines)], "at INT, value STRING")
        found = frame.selectExpr("at", f"{condition} AS is_sound").orderBy("at").collect()
        for line, row in zip(lines, found, strict=True):
            assert dialect.fit_of(line).is_sound == row["is_sound"], line


def put(folder: Path, *texts: str) -> Path:
    folder.mkdir()
    for number, text in enumerate(texts):
        (folder / f"{number}.csv").write_bytes(text.encode())
    return folder


def read(spark: Any, ref: DatasetRef) -> list[list[str]] | str:
    """The values of a dataset, or why it cannot be read."""
    report = judged(spark, ref)
    reasons = [item.reason for item in report.verdicts if item.status.value == "error"]
    if reasons:
        return str(reasons[0])
    opened = open_dataset(spark, ref)
    found = opened.read(()).select(*opened.struct.names).collect()
    return sorted([str(value or "") for value in row] for row in found)


def judged(spark: Any, ref: DatasetRef) -> GateReport:
    folder = Path(ref.path or "").parent
    body = 'assert num_rows() >= 0 name "rows"'
    return try_gates([request(folder, body, [ref], TODAY)], lambda _: spark)[0]


BY_QUOTE = 'set escape="\\""'
IN_FILES = {
    "doubled quotes": ('a,b\n"p"",q"\n1,2\n', {}, "line 2 has", BY_QUOTE),
    "a backslash at the end": ('a,b\nx,"C:\\"\n', {}, "line 2 has", BY_QUOTE),
    "several lines": (
        'a,b\n1,"x\ny"\n\n"p"",\nq"\n1,2\n',
        {"multiLine": "true"},
        "line 5 has",
        BY_QUOTE,
    ),
    "a row of spaces": ("a\nx\n \n", {}, "line 3 has nothing but spaces", "remove"),
    "a doubled quote in the middle": ('a,b\n1,2\n"p""q",2\n', {}, "line 3 has", BY_QUOTE),
    "two backslashes": ('a,b\n1,"C:\\\\d"\n', {}, "line 2 has", 'or escape="\\\\" if it is'),
    "another quote": ("a,b\n'p'',q'\n1,2\n", {"quote": "'"}, "line 2 has", 'set escape="\'"'),
    "a header": ('a,"b"",c"\n1,2\n', {}, "line 1 has", BY_QUOTE),
    "text behind a quote": ('a,b\n"p"q,1\n', {}, "line 2 has text behind", 'quote=""'),
    "a row of tabs": ("a\tb\nx\ty\n\t\n", {"sep": "\\t"}, "line 3 has nothing but", "remove"),
    "several lines without an end": (
        'a,b\n1,"x\ny"\n2,"z\n3,4\n',
        {"multiLine": "true"},
        "line 4 has quotes that are not closed",
        BY_QUOTE,
    ),
    "several lines that are too long": (
        'a,b\n1,"x\ny"\n2,3,4\n',
        {"multiLine": "true"},
        "line 4 has 3 values instead of 2",
        "schema=",
    ),
    "an end of lines": ('a,b;1,2;"p"",q";', {"lineSep": ";"}, "line 3 has", BY_QUOTE),
}


@pytest.mark.few(4)
@pytest.mark.parametrize("name", IN_FILES)
def test_a_file_that_spark_would_misread_is_refused_with_the_line_and_the_option(
    spark: Any, tmp_path: Path, name: str
) -> None:
    text, options, line, advice = IN_FILES[name]
    folder = put(tmp_path / "t", text)
    ref = DatasetRef("orders", str(folder), format="csv", options=tuple(options.items()))
    message = str(read(spark, ref))
    assert line in message
    assert advice in message


ADVISED = {
    "doubled quotes": ('a,b\n"p"",q",2\n', {"escape": '"'}, [['p",q', "2"]]),
    "a backslash": ('a,b\n"p\\",q",2\n', {"escape": "\\"}, [['p",q', "2"]]),
    "text behind a quote": (
        'a,b\n"p"q,2\n',
        {"unescapedQuoteHandling": "STOP_AT_DELIMITER"},
        [['"p"q', "2"]],
    ),
    "no quotes": ('a,b\n"p"q,2\n', {"quote": ""}, [['"p"q', "2"]]),
}


@pytest.mark.few(1)
@pytest.mark.parametrize("name", ADVISED)
def test_the_advised_option_reads_the_file(spark: Any, tmp_path: Path, name: str) -> None:
    text, options, due = ADVISED[name]
    folder = put(tmp_path / "t", text)
    ref = DatasetRef("orders", str(folder), format="csv", options=tuple(options.items()))
    assert read(spark, ref) == due


@pytest.mark.more
def test_with_a_schema_a_misread_line_is_one_malformed_row_of_files_of_any_width(
    spark: Any, tmp_path: Path
) -> None:
    folder = put(tmp_path / "t", 'a,b\n"p"",q"\nx,y\n', 'a,b,c\n1,2,"p""q"\n1,"2\n', 'a\n"b\n')
    schema = "a string, b string, c string"
    report = judged(spark, DatasetRef("orders", str(folder), format="csv", schema=schema))
    assert report.outcome is Outcome.BLOCKED
    assert verdict(report, "orders.well_formed").value == 4


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("quote_escapes", [True, False])
def test_a_valid_file_of_several_lines_is_read_as_python_reads_it_or_refused(
    spark: Any, tmp_path: Path, seed: int, quote_escapes: bool
) -> None:
    rng = Random(seed)
    due = rows(rng, 4, (*PIECES[:8], "\n"))
    options = {"multiLine": "true", **({"escape": '"'} if quote_escapes else {})}
    text = "\n".join(
        ["x,y,z", *(written(row, {}, is_doubled=True, quotes_all=True) for row in due)]
    )
    folder = put(tmp_path / "t", text + "\n")
    schema = "x string, y string, z string"
    ref = DatasetRef(
        "orders", str(folder), format="csv", options=tuple(options.items()), schema=schema
    )
    found = read(spark, ref)
    if isinstance(found, str):
        assert not quote_escapes
        assert re.search(r"line \d+ .* escape=", found)
    else:
        assert found == sorted(due)
