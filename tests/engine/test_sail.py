"""Sail as the engine: all conformance cases on it, what ships about it, and what it refuses.

`DQX_REWRITE_GOLDEN=1 pytest tests/engine/test_sail.py -m nightly -k ships` writes the proof that
ships, and the counts in the docs.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any, cast

import pytest
from pyspark.errors import PySparkException
from pyspark.sql.types import LongType, StructField, StructType

import dqx_airflow
from dqx_airflow.engine.outputs import collected_files
from dqx_airflow.engine.proof import engine_key
from dqx_airflow.engine.proof.cases import ProofCase, arrow_of, frame_of, proof_cases
from dqx_airflow.engine.proof.differences import doubts_of
from dqx_airflow.engine.proof.engine_key import proof_of_sail
from dqx_airflow.engine.scan import aggregates
from dqx_airflow.engine.session import sail
from dqx_airflow.engine.session.spark_errors import explain
from dqx_airflow.engine.sources import (
    csv_for_sail,
    footers,
    json_for_sail,
    listing,
    sent_texts,
    statistics_on_sail,
)
from dqx_airflow.engine.sources.dataset import OpenDataset
from dqx_airflow.engine.sources.listing import DataFile
from dqx_airflow.engine.sources.open import _of_sail, open_dataset
from dqx_airflow.engine.sources.partition_values import NO_VALUE
from dqx_airflow.errors import DatasetError, SparkError
from dqx_airflow.metrics.metric import Aggregate
from dqx_airflow.metrics.patterns.portable import without_java
from dqx_airflow.metrics.patterns.syntax import PatternError
from dqx_airflow.plan.evaluate import evaluate
from dqx_airflow.plan.in_memory.measure import measure as measure_in_memory
from dqx_airflow.plan.schema_check import Schema
from dqx_airflow.results.quarantines import REASONS
from dqx_airflow.values import (
    Attempt,
    DatasetRef,
    EngineProof,
    GateRequest,
    Outcome,
    RunKey,
    SourceFile,
    Status,
    to_json,
)
from tests.engine import sql_beside_spark
from tests.engine.mixed_suites import plan_of_claims, random_claims, random_table
from tests.engine.sail_beside_spark import KINDS, compare, is_near
from tests.markdown_cases import REWRITE
from tests.processes import ended
from tests.sail_server import sail_session

PACKAGE = Path(dqx_airflow.__file__).parent
SHIPPED = Path(engine_key.__file__).with_name(engine_key.PROOF_OF_SAIL)
TESTED = PACKAGE / "docs" / "install.md"
_COUNTS = re.compile(r"(<!-- counts of Sail -->\n).*?(<!-- end of counts -->)", re.S)
_LONGEST = 120
"""How much of an error is kept."""


def test_what_ships_about_sail_is_about_the_cases_and_the_version_that_is_installed() -> None:
    proof = proof_of_sail()
    pins = (PACKAGE.parent / "pyproject.toml").read_text(encoding="utf-8")
    assert f'"pysail=={proof.spark_version}"' in pins
    claims = {(str(case), claim): due for case in proof_cases() for claim, due in case.lines}
    assert proof.agreeing + len(proof.differences) == len(claims)
    for one in proof.differences:
        assert claims[one.case, one.claim] == one.due != one.found
        assert len(one.found) <= _LONGEST
    assert _counts(proof) in TESTED.read_text(encoding="utf-8")


@pytest.mark.more
def test_what_sail_does_not_judge_follows_from_the_claims_that_differ() -> None:
    proof = proof_of_sail()
    found = {(one.case, one.claim): one.found for one in proof.differences}
    values = {
        case: tuple(found.get((str(case), claim), due) for claim, due in case.lines)
        for case in proof_cases()
    }
    assert proof.doubts == doubts_of(values)
    assert set(proof.doubts) == {
        "decimal beside a double",
        "parts of dates over string",
        "rounding over double",
    }


@pytest.mark.parametrize(
    ("pattern", "due"),
    [
        (r"^\d+\z", r"(?:\A(?:[\x{30}-\x{39}]){1,}\z)"),
        (r"(?i)a|b", r"(?:[\x{41}-\x{41}\x{61}-\x{61}]|[\x{42}-\x{42}\x{62}-\x{62}])"),
        (r"^\z(?!\n)", r"(?:\A\z)"),
        # One that takes no less where it may give nothing back.
        (r"(ab)++\z", r"(?:(?:(?:[\x{61}-\x{61}][\x{62}-\x{62}])){1,}\z)"),
        (r"\p{Alpha}", r"[\x{41}-\x{5a}\x{61}-\x{7a}]"),
        # Before the last line end, to Java.
        ("a$", None),
        (r"a++a", None),
        (r"(?=a)", None),
        (r"(?<!a)b", None),
        (r"(a)\1", None),
        (r"\bword", None),
        (r"\p{L}", None),
        (r"(?m)^a", None),
    ],
)
def test_a_pattern_is_written_so_that_every_engine_reads_it_alike_or_refused(
    pattern: str, due: str | None
) -> None:
    if due is None:
        with pytest.raises(PatternError):
            without_java(pattern)
    else:
        assert without_java(pattern) == due
        again = sail.in_dialect(f"x RLIKE '{due}'".replace("\\", "\\\\"))
        assert again.count("RLIKE") == 1


@pytest.mark.parametrize(
    ("sql", "due"),
    [
        (
            "try_multiply(CAST(`a, b` AS DECIMAL(38,2)), CAST(if(c, 1, 2) AS DECIMAL(10,0)))",
            "TRY_CAST(CAST(`a, b` AS DECIMAL(76,2)) * CAST(if(c, 1, 2) AS DECIMAL(76,0)) "
            "AS DECIMAL(38,2))",
        ),
        (
            "try_divide(CAST(a AS DECIMAL(10,2)), CAST(3BD AS DECIMAL(1,0))) > 1",
            "TRY_CAST(CAST(a AS DECIMAL(76,3)) / CAST(nullif(3BD, 0) AS DECIMAL(76,0)) "
            "AS DECIMAL(14,6)) > 1",
        ),
        (
            "try_add(CAST(a AS TIMESTAMP), CAST(INTERVAL '1' SECOND AS INTERVAL DAY TO SECOND))",
            "(CAST(a AS TIMESTAMP) + CAST(INTERVAL '1' SECOND AS INTERVAL DAY TO SECOND))",
        ),
        ("aggregate(split(a, '(?!$)'), 0)", "aggregate(array_remove(split(a, ''), ''), 0)"),
        (
            "(octet_length(`a`) >= 5 AND `a` RLIKE '(?-i)^M+\\\\z' OR `a` RLIKE 'x') OR b",
            r"(`a` RLIKE '[\\x{78}-\\x{78}]') OR b",
        ),
        (
            "count(CASE WHEN a > 9 THEN raise_error(concat('a', b)) END) FILTER (WHERE (c = 'x'))",
            "count(CASE WHEN (c = 'x') THEN CASE WHEN a > 9 THEN raise_error(concat('a', b)) END "
            "END)",
        ),
        (
            "first(raise_error('x')) FILTER (WHERE a), count(DISTINCT raise_error('x')) FILTER "
            "(WHERE a), sum(a) FILTER (WHERE a > raise_error('x'))",
            None,
        ),
        # Sail has these, and a string is none of them.
        ("a = 'RLIKE ' AND `it's` = 'x RLIKE ' AND b = 'y'", None),
        (
            "octet_length(a) > 9 AND length(a) > 9 OR octet_length(a) = 1 AND startswith(a, 'b')",
            None,
        ),
        ("try_add(CAST(a AS BIGINT), 1L)", None),
        ("concat('try_divide(CAST(a AS DECIMAL(1,0)), ', \"\")", None),
        ("startswith(a, '(?!$)') OR b) AND (c", None),
    ],
)
def test_what_sail_does_not_compute_is_written_with_what_it_has(sql: str, due: str | None) -> None:
    assert sail.in_dialect(sql) == (due or sql)


def test_without_its_package_sail_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pysail.spark", None)
    sail.own_server.cache_clear()
    with pytest.raises(SparkError, match="pysail is not installed") as caught:
        sail.own_server()
    assert caught.value.hint == "pip install 'dqx-airflow[sail]'"


class _Answers:
    """A session over Spark Connect whose server answers every query with one value."""

    def __init__(self, value: str) -> None:
        self.value = value

    def sql(self, query: str) -> _Answers:
        return self

    def collect(self) -> list[tuple[str]]:
        return [(self.value,)]


@pytest.mark.parametrize(
    "version",
    [
        "4.2.0 0d0bc6ffb9bb8b7f3a24a0c29e1c3b6fcb3e8a3a",
        "3.5.2 0000000000000000000000000000000000000000",  # Databricks
        "3.5.2-amzn-1",
        "4.0.0.dev3",
    ],
)
def test_a_server_whose_version_is_one_of_spark_is_a_spark(version: str) -> None:
    assert sail.sail_version(_Answers(version)) is None  # type: ignore[arg-type]


def test_what_is_not_read_by_sail_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sail, "sail_version", lambda _: "0.7.2")
    query = DatasetRef("orders", query="SELECT 1 AS id")
    assert _objection(query) == "Sail 0.7.2 may read queries differently from Spark"
    for format in ("orc", "avro", "iceberg"):
        due = f"Sail 0.7.2 reads no {format}, only Parquet, Delta, CSV and JSON"
        files = DatasetRef("orders", "lake/orders", format=format)
        assert _objection(files) == due
        assert _objection(replace(files, schema="id int")) == due  # and no other advice


def test_csv_without_declared_columns_is_refused_with_what_to_write(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sail, "sail_version", lambda _: "0.7.2")
    csv = DatasetRef("orders", "lake/orders", format="csv")
    due = "Sail 0.7.2 reads CSV with declared columns only: give the dataset a schema"
    assert _objection(csv) == due
    assert _objection(replace(csv, schema="id int")) is None


def _objection(ref: DatasetRef) -> str | None:
    return sail.objection_to_source(cast("Any", None), ref)


@pytest.mark.parametrize(
    ("ref", "due"),
    [
        (
            DatasetRef("t", "t", format="csv", schema="id int", options=(("quote", "'"),)),
            "Sail 0.7.2 was not tried with options of a dataset: leave out quote",
        ),
        (
            DatasetRef("t", "t", format="json", schema="id int", options=(("encoding", "UTF-16"),)),
            "Sail 0.7.2 was not tried with options of a dataset: leave out encoding",
        ),
        (
            DatasetRef("t", "t", format="json"),
            "Sail 0.7.2 reads JSON with declared columns only: give the dataset a schema",
        ),
        (DatasetRef("t", "t", format="csv", schema="id int", options=(("sep", "|"),)), None),
        (
            DatasetRef("t", "t", format="parquet", schema="id int"),
            "Sail 0.7.2 reads parquet with its own columns only: leave out the schema",
        ),
        (
            DatasetRef("t", "t", format="parquet", options=(("pathGlobFilter", "*.p"),)),
            "Sail 0.7.2 was not tried with options of a dataset: leave out pathGlobFilter",
        ),
        # Contracts set it.
        (DatasetRef("t", "t", format="parquet", options=(("mergeSchema", "true"),)), None),
    ],
)
def test_each_way_of_reading_that_was_not_tried_is_refused_by_its_name(
    monkeypatch: pytest.MonkeyPatch, ref: DatasetRef, due: str | None
) -> None:
    monkeypatch.setattr(sail, "sail_version", lambda _: "0.7.2")
    assert _objection(ref) == due


def test_a_plan_in_an_error_of_sail_is_in_the_log_and_the_reason_is_a_sentence(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Airflow, if a test before this one configured logging, disables loggers that it does not know.
    monkeypatch.setattr(sail._log, "disabled", False)
    quoted = 'Error during planning: Plan: ["BoundedWindowAggExec: wdw=[lag(#192)"]'
    due = "Sail cannot plan this: its plan is in the log of the job; run this gate on Spark"
    assert sail.in_words(quoted) == due
    assert quoted in caplog.messages  # PySpark may have made JSON of the text
    assert sail.in_words("no such column") == "no such column"


def test_an_operation_on_durations_that_sail_lacks_is_a_sentence(session: Any) -> None:
    duration = "TIMESTAMP'2024-01-02 00:00:00' - TIMESTAMP'2024-01-01 00:00:00'"
    for operation in ("multiply", "divide"):
        with pytest.raises(PySparkException) as error:
            session.sql(f"SELECT try_{operation}({duration}, 2)").collect()
        due = f"Sail does not {operation} a duration: compare it without that, or run this gate"
        assert explain(error.value).startswith(due)


def _strings(folder: Path, schema: dict[str, str], *texts: bytes) -> Any:
    for number, text in enumerate(texts):
        (folder / f"{number}.csv").write_bytes(text)
    files = listing.files_at(str(folder)) or ()
    ref = DatasetRef("t", str(folder))
    return csv_for_sail.read_strings(ref, str(folder), files, schema, "line")


def test_the_strings_of_csv_are_read_here_with_the_lines_that_are_too_long_or_short(
    tmp_path: Path,
) -> None:
    first = b'a,"b"\r\n1,"x,y"\r\n\r\n"",\r\n 2 ,3,4\r\n5\r\n'
    table = _strings(tmp_path, {"a": "int", "b": "string"}, first, b"b\n\xc3\xa4", b"a")
    assert table.to_pylist() == [
        {"a": "1", "b": "x,y", "line": None},
        {"a": None, "b": None, "line": None},
        {"a": " 2 ", "b": "3", "line": " 2 ,3,4"},
        {"a": "5", "b": None, "line": "5"},
        {"a": None, "b": "\u00e4", "line": None},
    ]


@pytest.mark.parametrize(
    "text",
    [
        b"a,b\nx\\,y",
        b'a,b\n"x""y",z',
        b'a,b\nx"y,z',
        b'a,b\n"x\ny",z',
        b'a\n"x\ny"',
        b'a,b\n1,"x\ny,z"\n2,ok',
        b'a,b\n"p"",q"\n1,2',
        b'a,b\n1,"C:\\"',
        b"a,b\nx\ry,z",
        b"a,b\n\x01,z",
        b"a,b\n \t\nx,y",
        b"\xef\xbb\xbfa,b\nx,y",
        b"a,b\n" + b"x,y\n" * 300_000 + b"\xff,z",
        b"a,A\n1,2",
        b"a,\n1,2",
    ],
)
def test_csv_that_not_all_readers_take_alike_is_refused(tmp_path: Path, text: bytes) -> None:
    with pytest.raises(DatasetError, match="differently from Spark") as caught:
        _strings(tmp_path, {"a": "string"}, text)
    assert caught.value.hint == f"write the data as Parquet, or {sail.INSTEAD}"


@pytest.mark.parametrize(
    ("options", "text", "due"),
    [
        ({"sep": ";"}, 'a;b\n1,5;"x;y"\n', [("1,5", "x;y", None)]),
        ({"delimiter": "\t"}, "a\tb\n1\t2\n", [("1", "2", None)]),
        ({"header": "false"}, "1,2\n3\n", [("1", "2", None), ("3", None, "3")]),
        ({"nullValue": "NA"}, "a,b\nNA,\nx,NA1\n", [(None, None, None), ("x", "NA1", None)]),
    ],
)
def test_csv_is_read_here_by_its_options(
    tmp_path: Path, options: dict[str, str], text: str, due: list[tuple[str | None, ...]]
) -> None:
    rows = _read_here(csv_for_sail, tmp_path, "csv", options, text)
    assert [(row["a"], row["b"], row["line"]) for row in rows] == due


@pytest.mark.parametrize(
    ("options", "text", "due"),
    [
        ({"sep": "#"}, "a#b\n1#2\n", "CSV with the separator '#'"),
        ({"header": "false"}, "1,2,3\n", "other columns than the declared ones"),
        ({"nullValue": "NA"}, 'a,b\n"",NA\n', "escapes, quotes"),
    ],
)
def test_options_of_csv_that_readers_take_differently_are_refused(
    tmp_path: Path, options: dict[str, str], text: str, due: str
) -> None:
    with pytest.raises(DatasetError, match=due):
        _read_here(csv_for_sail, tmp_path, "csv", options, text)


def _read_here(
    reader: Any, folder: Path, format: str, options: dict[str, str], text: str
) -> list[dict[str, Any]]:
    """The rows of a file with two declared strings, that a reader of this process sends to Sail."""
    (folder / f"a.{format}").write_text(text)
    files = listing.files_at(str(folder)) or ()
    ref = DatasetRef("t", str(folder), format=format, options=tuple(options.items()))
    table = reader.read_strings(ref, str(folder), files, {"a": "string", "b": "double"}, "line")
    return list(table.to_pylist())


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({}, '{"a": "x", "b": 1.50}\n\n {"b": true, "a": null}\n{"a": "y"\n{}\n'),
        ({"multiLine": "true"}, '[{"a": "x",\n "b": 1.50}, {"b": true}, {}]'),
    ],
)
def test_the_strings_of_json_are_read_here_with_the_lines_that_are_none(
    tmp_path: Path, options: dict[str, str], text: str
) -> None:
    rows = _read_here(json_for_sail, tmp_path, "json", options, text)
    broken = {"a": None, "b": None, "line": '{"a": "y"'}
    due = [{"a": "x", "b": "1.50", "line": None}, {"a": None, "b": "true", "line": None}]
    due += [broken] if not options else []
    assert rows == [*due, {"a": None, "b": None, "line": None}]


@pytest.mark.parametrize(
    ("text", "due"),
    [
        ('{"a": "x"} {"a": "y"}', "more than one value"),
        ("[1]", "a line that is not an object"),
        ("{'a': 1}", "a line that is not JSON"),
        ('{"b": NaN}', "NaN"),
        ('{"a": 1e3}', "the number 1e3"),
        ('{"a": -0}', "the number -0"),
        ('{"a": "x", "a": "y"}', "an object with a duplicate field"),
        ('{"A": "x"}', "the case of 'A'"),
        ('{"a": "x", "c": 1}', "column 'c', which is not declared"),
        ('{"a": {"x": 1}}', "nested values of column 'a'"),
        ('{"a": "\\ud800"}', "special characters in column 'a'"),
        ('{"b": "1\\n"}', "special characters in column 'b'"),
        ("\ufeff{}", "control characters or the encoding"),
    ],
)
def test_json_that_not_all_readers_take_alike_is_refused(
    tmp_path: Path, text: str, due: str
) -> None:
    with pytest.raises(DatasetError, match=f"Sail may read .*{due}"):
        _read_here(json_for_sail, tmp_path, "json", {}, text)


def test_sql_is_evaluated_on_sail_if_it_was_compared() -> None:
    assert {
        text: sql_beside_spark.objection_to(text) for text in sql_beside_spark.expressions()
    } == (dict.fromkeys(sql_beside_spark.expressions()))


@pytest.mark.parametrize(
    ("text", "due"),
    [
        ("sum(b)", "`SUM(b)` over bigint"),
        ("sum(i + n)", "`i + n` over integer"),
        ("sum(d) / count(*)", "`SUM(d) / COUNT(*)` over decimal and count"),
        ("avg(d)", "`AVG(d)` over decimal"),
        ("sum(w)", "`SUM(w)` over decimal"),
        ("count_if(w = 0.5)", "`w = 0.5` over decimal"),
        ("count_if(x > 0.5)", "`x > 0.5` over double and decimal"),
        ("count_if(x * y > 1)", "`x * y > 1` over computed double and integer"),
        ("count_if(s = 1)", "`s = 1` over string and integer"),
        ("count_if(dd = '2024-1-1')", "`dd = '2024-1-1'` over date and string"),
        ("count_if(CAST(s AS INT) > 1)", "over string"),
        ("count_if(date(s) > dd)", "over string"),
        ("sum(weekday(dd))", "`WEEKDAY(dd)`"),
        ("percentile(x, 0.5)", "`PERCENTILE(x, 0.5)` over double"),
        ("max(initcap(s))", "`INITCAP(s)`"),
        ("first(s)", "`FIRST(s)`"),
        ("count_if(unknown > 1)", "`unknown`"),
        ("count_if(s LIKE 'a\\\\%')", "LIKE"),
        ("count_if(left(s, -1) = 'a')", "`LEFT(s, -1)`"),
        ("max(right(s, 1000001))", "`RIGHT(s, 1000001)`"),
        ("count(*) * 1000000 * 1000000", "over bigint and integer"),
        ("count(*) * count(*)", "`COUNT(*) * COUNT(*)` over count"),
        ("max(date_add(dt, 1000000 * 1000000))", "DATE_ADD"),
        ("count_if(timestampadd(HOUR, 1000000 * 100, ts) > ts)", "1000000 * 100"),
        ("count_if(dt > to_date(ts, 'yyyy'))", "TO_DATE(ts, 'yyyy')"),
        ("count_if(i BETWEEN SYMMETRIC 10 AND 0)", "BETWEEN"),
        ("percentile_approx(i, 0.5)", "PERCENTILE"),
        ("max(concat_ws('-', s, g))", "CONCAT_WS('-', s, g)"),
        (
            "count_if(regexp_like(s, 'a$'))",
            "a regular expression that is not written as RLIKE '...'",
        ),
        ('count_if(s RLIKE "a$")', "a regular expression that is not written as RLIKE '...'"),
        ("count_if(s RLIKE r'a$')", "a regular expression that is not written as RLIKE '...'"),
        ("count_if(s = \"RLIKE 'a$'\")", "a regular expression that is not written as RLIKE '...'"),
        ("count_if(s RLIKE 'a\\nb')", "the escape sequences of RLIKE 'a\\nb'"),
        ("count_if(s RLIKE '\\u00e9')", "the escape sequences of"),
        ("SELECT count(*) FROM t TABLESAMPLE (10 PERCENT)", "TABLESAMPLE"),
        ("SELECT count(*) FROM t AS q (a)", "`t AS q(a)`"),
        ("SELECT count(*) FROM (SELECT g, s FROM t) AS q (s, g)", "AS q(s, g)"),
        ("WITH q(s, g) AS (SELECT g, s FROM t) SELECT count(*) FROM q", "q(s, g) AS"),
        ("SELECT count(*) FROM (SELECT g FROM t GROUP BY g WITH ROLLUP)", "ROLLUP"),
        ("count_if(s = 'a''b')", "the doubled quote in 'a''..."),
        ("count_if(dt > CAST('2024-02-30' AS DATE))", "'2024-02-30'"),
        ("count_if(dt > '2024-02-30')", "over date and string"),
        ("count_if(f = 16777217)", "over float and integer"),
        ("count_if(f < i)", "over float and integer"),
        ("count_if(b < 9223372036854775808)", "`9223372036854775808`"),
        ("count_if(lower(upper(s)) = 'a')", "`LOWER(UPPER(s))`"),
        ("count(*) FILTER (WHERE NULL)", "FILTER"),
        ("count_if(i > 0) FILTER (WHERE ok)", "FILTER"),
        ("count_if(rlike(s, '\\\\d') /* RLIKE 'x' */)", "a comment beside a regular expression"),
        ("count_if(s RLIKE \"\\\\d\") -- RLIKE 'x'", "a comment beside a regular expression"),
        ("count_if(b % 3 = 0)", "`b % 3` over bigint"),
        ("count_if(i % n = 0)", "`i % n`"),
        ("count_if(i % 0 = 0)", "`i % 0` over integer"),
        ("count(DISTINCT struct(i AS i, x AS x))", "STRUCT"),
        ("SELECT count_if(i > 0) FILTER (WHERE ok) / count(*) FROM t", "FILTER"),
        ("count(*, 1)", "COUNT"),
        ("SELECT count(*) FROM t WHERE g NOT IN (SELECT s FROM t) OR ok", "IN (SELECT s FROM t)"),
        (
            "SELECT count(*) FROM t WHERE NOT (g IN (SELECT s FROM t) AND ok)",
            "IN (SELECT s FROM t)",
        ),
        ("SELECT count_if(g IN (SELECT s FROM t)) FROM t", "IN (SELECT s FROM t)"),
        ("SELECT count(*) FROM t WHERE x NOT IN (SELECT y FROM t)", "over double"),
        ("SELECT count(*) FROM t a OUTER JOIN t b ON a.g = b.g", "OUTER JOIN"),
        ("SELECT (SELECT count(*) FROM t HAVING count(*) > 0) IS NULL", "HAVING"),
        ("count_if(b < 9999999999999999999.5)", "over bigint and decimal"),
        ("SELECT count(*) FROM t WHERE EXISTS (SELECT max(n) FROM t)", "EXISTS"),
        ("SELECT count(*) FROM t WHERE 0 IN (SELECT count(*) FROM t)", "0 IN"),
        ("SELECT (SELECT 1 FROM t WHERE FALSE) IS NULL", "SELECT 1"),
        ("SELECT count(*) FROM other", "`other`"),
        ("SELECT count(*) FROM t a CROSS JOIN t b", "CROSS JOIN"),
        ("SELECT count(*) OVER () FROM t", "OVER"),
        ("SELECT count(*) FROM (SELECT g FROM t UNION SELECT s FROM t)", "UNION"),
        ("SELECT count(*) FROM (SELECT g FROM t ORDER BY g LIMIT 1)", "LIMIT 1"),
    ],
)
def test_sql_that_was_not_compared_or_differs_is_refused_with_its_part(text: str, due: str) -> None:
    objection = sql_beside_spark.objection_to(text)
    assert objection is not None
    assert due in objection
    assert objection.endswith("differently from Spark: run this gate on Spark")


@pytest.mark.nightly
def test_sql_has_the_values_of_spark_on_sail() -> None:
    pytest.importorskip("pysail")
    assert sql_beside_spark.others(sql_beside_spark.expressions()) == []


@pytest.mark.nightly
def test_random_sql_has_the_values_of_spark_on_sail() -> None:
    pytest.importorskip("pysail")
    seed = Random().randrange(1_000_000)
    texts = sql_beside_spark.random_expressions(400, seed)
    assert sql_beside_spark.others(texts) == [], f"seed {seed}"


@pytest.mark.slow
def test_filters_and_queries_are_evaluated_on_sail_if_they_were_compared(
    session: Any, tmp_path: Path
) -> None:
    from dqx_airflow.engine.job import try_gates

    request = _request(tmp_path)
    orders, codes = request.datasets
    body = """
assert sql("count_if(code = 'a') / count(*)", dataset orders) == 1 name "share"
assert query("SELECT count(*) FROM orders o JOIN codes c ON o.code = c.code") == 2 name "joined"
"""
    suite = SourceFile("suite.dql", f'suite "S" {{ check "C" on orders, codes {{\n{body}\n}} }}')
    filtered = replace(orders, filter="amount > 1 OR mail = 'ann@example.org' AND code <> 'b'")
    gate = replace(request, suite=suite, datasets=(filtered, codes))
    report = try_gates([gate], lambda _: session)[0]
    found = {verdict.name: verdict.value for verdict in report.verdicts}
    assert (found["share"], found["joined"]) == (0.5, 2)
    with pytest.raises(DatasetError, match=r"the filter of dataset 'orders': .* `amount \+ 1`"):
        open_dataset(session, replace(orders, filter="amount + 1 > 1"))


@pytest.mark.slow
def test_json_is_read_on_sail_as_its_columns_are_declared(session: Any, tmp_path: Path) -> None:
    lines = ('{"id": 1, "day": "2024-03-01"}', '{"id": "x", "day": "2024-02-30"}', '{"id": 3')
    (tmp_path / "a.json").write_text("\n".join(lines))
    ref = DatasetRef("orders", str(tmp_path), format="json", schema="id int, day date, note string")
    opened = open_dataset(session, ref)
    assert opened.texts is not None
    assert opened.struct.names == ["id", "day"]
    rows = opened.read(()).selectExpr("id", "day", opened.texts.text("id"), opened.texts.line)
    first, second = (1, date(2024, 3, 1), "1", None), (None, None, "x", None)
    assert {tuple(row) for row in rows.collect()} == {first, second, (None, None, None, lines[2])}


def test_csv_that_is_too_large_to_be_sent_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sent_texts, "MOST_SENT_BYTES", 5)
    with pytest.raises(DatasetError, match="more than 0 MB"):
        _strings(tmp_path, {"a": "string"}, b"a\n1\n2\n")


@pytest.mark.parametrize(
    ("kind", "alike", "others"),
    [
        ("boolean", ["true", " F ", "1", "maybe", "2"], ["tru", "on", "fal", "ye"]),
        ("decimal(5,2)", ["1.50", "-.5", "x", "e"], ["1e2", "0.E1"]),
        (
            "date",
            ["2024-01-05", "2024-1-5", "x", "2024"],
            ["2024-01-05T00:00", "2024-01-05 ", "\t2024-01-05"],
        ),
        (
            "timestamp",
            ["2024-01-05 10:11:12.5", "2024-01-05T10:11Z", "2024-01-05T10:11:12+05:30", "x"],
            ["2024-01-05T10:11:12 PST", "2024-01-05T10:11+5:3", "0001-01-01T00:00+01:00"],
        ),
        ("double", ["1e400", "nan", "x"], []),
    ],
)
def test_strings_that_sail_may_cast_otherwise_are_refused(
    tmp_path: Path, kind: str, alike: list[str], others: list[str]
) -> None:
    table = _strings(tmp_path, {"a": kind}, "\n".join(["a", *alike]).encode())
    assert table["a"].to_pylist() == alike
    for other in others:
        with pytest.raises(DatasetError, match=f"the form of some {re.escape(kind)} values"):
            _strings(tmp_path, {"A": kind}, f"a\n{other}".encode())


@pytest.mark.parametrize("kind", ["char(3)", "varchar(3)"])
def test_types_of_strings_with_a_length_are_refused_as_spark_does(
    tmp_path: Path, kind: str
) -> None:
    with pytest.raises(DatasetError, match=f"column 'a' of type {re.escape(kind)}"):
        _strings(tmp_path, {"a": kind}, b"a\nabcd\n")


def test_moments_of_int96_and_types_that_spark_does_not_read_are_found_in_a_footer(
    tmp_path: Path,
) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    tables = {
        "at": pa.table({"id": [1], "at": pa.array([0], pa.timestamp("us"))}),
        "s.at": pa.table({"s": pa.array([{"at": 0}], pa.struct([("at", pa.timestamp("us"))]))}),
        "hour": pa.table({"hour": pa.array([0], pa.time64("us"))}),
        "sum": pa.table({"sum": pa.array([None], pa.decimal256(39, 2))}),
        "took": pa.table({"id": [1], "took": pa.array([0], pa.duration("us"))}),
        "list": pa.table({"list": pa.array([[0]], pa.list_(pa.duration("ms")))}),
        "none": pa.table({"none": pa.array([None], pa.null())}),
        "color": pa.table({"color": pa.array(["red"]).dictionary_encode()}),
        None: pa.table({"id": [1], "day": [date(2024, 3, 1)], "sum": pa.array([Decimal(1)])}),
    }
    for number, (column, table) in enumerate(tables.items()):
        path = tmp_path / f"{number}.parquet"
        pq.write_table(table, path, use_deprecated_int96_timestamps=True)
        file = DataFile(str(path), path.stat().st_size, 0)
        assert footers.read_unlike_spark(str(path), file) == column
    broken = tmp_path / "broken.parquet"
    broken.write_bytes(b"PAR1")
    with pytest.raises(DatasetError, match=f"{broken} cannot be read"):
        footers.read_unlike_spark(str(broken), DataFile(str(broken), 4, 0))


def test_files_that_cannot_be_listed_are_not_left_to_sail() -> None:
    struct = StructType([StructField("id", LongType())])
    ref = DatasetRef("orders", "hdfs://nowhere/orders", format="parquet")
    opened = OpenDataset(ref, struct, lambda _: None, ref.path or "", None)  # type: ignore[arg-type, return-value]
    with pytest.raises(DatasetError, match="Sail reads files that cannot be listed"):
        _of_sail(opened)


@pytest.fixture(scope="module")
def session() -> Iterator[Any]:
    yield from sail_session()


BODY = """
assert null_count(amount) == 0 name "nulls"
assert each row: customer.name is not null name "field"
assert each row: code matches "^\\\\w+$" name "pattern"
assert each row: mail is email name "mail"
assert values(code) in values(code, dataset codes) name "lookup"
assert each row: date(code) is null name "date"
assert sql("sum(amount)") > 0 name "sql"
"""


def _request(folder: Path, **changes: Any) -> GateRequest:
    import pyarrow as pa
    import pyarrow.parquet as pq
    from deltalake import write_deltalake

    rows = pa.table(
        {
            "amount": [1, 2, None],
            "code": ["a", "b", "\u00e4"],
            "mail": ["ann@example.org", "b", None],
            "customer": [{"name": "Ann"}, None, {"name": "Bob"}],
            "ds": pa.array([date(2024, 3, 1)] * 2 + [date(2024, 3, 2)]),
        }
    )
    write_deltalake(str(folder / "orders"), rows, partition_by=["ds"])
    (folder / "codes").mkdir()
    pq.write_table(pa.table({"code": ["a", "a", "c"]}), folder / "codes" / "part-0")
    text = f'suite "S" {{ check "C" on orders {{\n{BODY}\n}} }}'
    return GateRequest(
        run_key=RunKey("test.gate", date(2024, 3, 1), "manual"),
        attempt=Attempt(1, "1"),
        suite=SourceFile("suite.dql", text),
        datasets=(
            DatasetRef("orders", str(folder / "orders"), date_column="ds"),
            DatasetRef("codes", str(folder / "codes"), format="parquet"),
        ),
        results_root=str(folder / "results"),
        **changes,
    )


@pytest.mark.slow
def test_a_gate_on_sail_judges_what_it_computes_as_spark_does_and_nothing_else(
    session: Any, tmp_path: Path
) -> None:
    from dqx_airflow.engine.job import run_gates

    report = run_gates([_request(tmp_path)], lambda _: session)[0]
    found = {verdict.name: verdict for verdict in report.verdicts}
    values = {name: found[name].value for name in ("nulls", "field", "pattern", "mail", "lookup")}
    assert values == {"nulls": 0, "field": 1, "pattern": 0, "mail": 1, "lookup": 1}
    assert found["date"].status is found["sql"].status is Status.ERROR
    assert "parts of dates over string, as in `date(code)`" in (found["date"].reason or "")
    assert "Sail" in (found["sql"].reason or "")
    assert report.outcome is Outcome.BLOCKED
    assert "(Sail " in (report.spark_version or "")
    assert report.engine_proof == proof_of_sail().mark


@pytest.mark.slow
def test_a_suite_runs_on_sail_from_python_without_java(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pysail")
    from dqx_airflow import Interpreter, SparkDatabase

    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setenv("SPARK_CONNECT_MODE_ENABLED", "1")
    (_, codes) = _request(tmp_path).datasets
    database = SparkDatabase("sail", {"codes": {"path": codes.path, "format": "parquet"}})
    suite = 'suite "S" { check "C" on codes { assert null_count(code) == 0 name "nulls" } }'
    results = Interpreter(database, date(2024, 3, 1)).run_string(suite)
    assert results.outcome is Outcome.PASSED
    assert "(Sail " in (results.report.spark_version or "")


@pytest.mark.slow
def test_the_first_gate_runs_on_sail_without_java(tmp_path: Path) -> None:
    pytest.importorskip("pysail")
    (tmp_path / "bin").mkdir()
    environment = {"PATH": str(tmp_path / "bin"), "HOME": str(tmp_path)}

    def run(*words: str) -> str:
        done = ended(
            [str(Path(sys.executable).with_name(words[0])), *words[1:]],
            cwd=tmp_path,
            env=environment,
        )
        return f"{done.returncode}: {done.stdout}{done.stderr}"

    assert run("dql", "init").startswith("0: ")
    words = ("dql", "run", "orders.dql", "--date", "today", "--engine", "sail")
    passed = run(*words)
    assert passed.startswith("0: ")
    assert "0 of 8 assertions failed" in passed
    with (tmp_path / "orders.csv").open("a") as file:
        file.write(f"61,,10.00,{datetime.now(timezone.utc).date()}\n")
    blocked = run(*words)
    assert blocked.startswith("1: ")
    assert "orders.customer.complete" in blocked
    environment["DQX_CONNECTION"] = "sail"
    tested = run("pytest", "--dql", "orders.dql", "-q", "-p", "no:cacheprovider")
    assert "1 failed" in tested
    assert "orders.customer.complete" in tested


@pytest.mark.slow
def test_csv_is_read_on_sail_as_its_columns_are_declared(session: Any, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,day\n1,2024-03-01\nx,2024-02-30\n3\n")
    ref = DatasetRef("orders", str(tmp_path), format="csv", schema="id int, day date")
    opened = open_dataset(session, ref)
    assert opened.texts is not None
    rows = opened.read(()).selectExpr("id", "day", opened.texts.text("id"), opened.texts.line)
    found = [tuple(row) for row in rows.collect()]
    first, second = (1, date(2024, 3, 1), "1", None), (None, None, "x", None)
    assert found == [first, second, (3, None, "3", "3")]
    folder = tmp_path / "ds=2024-03-01"
    folder.mkdir()
    (tmp_path / "a.csv").rename(folder / "a.csv")
    with pytest.raises(DatasetError, match="the values of ds in the names of folders"):
        open_dataset(session, replace(ref, date_column="ds"))
    with pytest.raises(DatasetError, match="no csv file at"):
        open_dataset(session, replace(ref, path=str(tmp_path / "none")))


@pytest.mark.slow
def test_keys_of_many_rows_are_counted_in_one_pass_on_sail_even_if_there_are_copies(
    session: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = "(1, 'a', 1), (1, 'a', 1), (2, 'a', 1), (2, NULL, 1), (NULL, NULL, 2), (NULL, NULL, 2)"
    day = "make_date(2024, 3, day) AS `dqx: date of the row`"
    rows = session.sql(f"SELECT id, code, {day} FROM VALUES {values} AS t(id, code, day)")
    schema = Schema("orders", {"id": "int", "code": "string"})
    keys = {
        key.sql: key
        for key in (
            Aggregate("one", ("id",), is_key=True, skips_null=True),
            Aggregate("whole", ("id", "code"), is_key=True, skips_null=True),
            Aggregate("any", ("id", "code"), is_key=True),
            Aggregate("some", ("id", "code"), is_key=True, where="id = 2 OR code = 'a'"),
        )
    }
    again: list[str] = []
    monkeypatch.setattr(
        aggregates, "aggregate", lambda _, asked, dates: (again.extend(asked), ({}, {}))[1]
    )
    first, second = date(2024, 3, 1), date(2024, 3, 2)
    by_date, broken = aggregates.count_distinct(rows, [*keys.values()], schema, {first, second})
    assert by_date[first] == {"one": 2, "whole": 2, "any": 3, "some": 3}
    assert by_date[second] == {"one": 0, "whole": 0, "any": 1, "some": 0}
    assert not broken
    assert not again


_WRITES = 'assert null_count(code) == 0 name "codes"'
_BLOCKS = 'assert each row: mail is email name "mail"'


def _written(folder: Path, body: str, **changes: Any) -> GateRequest:
    request = _request(
        folder,
        promote_to=(("orders", str(folder / "silver")),),
        quarantine=(("orders", str(folder / "quarantine")),),
        **changes,
    )
    text = f'suite "S" {{ check "C" on orders {{\n{body}\n}} }}'
    return replace(request, suite=SourceFile("suite.dql", text))


@pytest.mark.slow
def test_on_sail_a_gate_promotes_with_a_receipt_and_keeps_bad_rows_in_quarantine(
    session: Any, tmp_path: Path
) -> None:
    from deltalake import DeltaTable

    from dqx_airflow.engine.job import run_gates
    from dqx_airflow.results.query import StoredResults
    from dqx_airflow.results.receipts import receipts_of
    from dqx_airflow.results.verify import verify_table

    passes = _written(tmp_path, _WRITES)
    report = run_gates([passes], lambda _: session)[0]
    assert report.outcome is Outcome.PASSED
    silver = DeltaTable(str(tmp_path / "silver"))
    judged = DeltaTable(str(tmp_path / "orders")).to_pyarrow_table().to_pylist()
    assert silver.to_pyarrow_table().to_pylist() == [
        row for row in judged if row["ds"] == date(2024, 3, 1)
    ]
    assert silver.metadata().partition_columns == ["ds"]
    results = StoredResults(passes.results_root)
    (receipt,) = receipts_of(results, str(silver.metadata().id))
    assert "(Sail " in str(receipt)
    assert verify_table(results, str(tmp_path / "silver"))
    blocks = replace(_written(tmp_path / "b", _BLOCKS), results_root=passes.results_root)
    report = run_gates([blocks], lambda _: session)[0]
    assert report.outcome is Outcome.BLOCKED
    assert not (tmp_path / "b" / "silver").exists()
    (held,) = DeltaTable(str(tmp_path / "b" / "quarantine")).to_pyarrow_table().to_pylist()
    assert (held["mail"], held[REASONS], held["customer"]) == ("b", ["mail"], None)


@pytest.fixture(scope="module")
def other_session(session: Any) -> Iterator[Any]:
    """A session on a server that was not started for this process, and collects statistics."""
    from pyspark.sql.connect.session import SparkSession

    pysail = pytest.importorskip("pysail.spark")
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv(sail.STATISTICS_SETTING, "true")
        server = pysail.SparkConnectServer("127.0.0.1", 0)
        server.start(background=True)
    host, port = server.listening_address
    spark = SparkSession.builder.remote(f"sc://{host}:{port}").create()
    yield spark
    spark.stop()
    server.stop()


_NAN = float("nan")
_CONSTANT_BUT_FOR_NAN = {"a": [_NAN, 1.5, 1.5], "b": [_NAN, 2.5, 2.5], "c.d": [1, 1, 1]}


def _with_nan(folder: Path, kind: str) -> DatasetRef:
    import pyarrow as pa
    import pyarrow.parquet as pq
    from deltalake import write_deltalake

    table = pa.table(_CONSTANT_BUT_FOR_NAN)
    if kind == "folders":
        return _in_folders(folder, ("ds=2024-03-01", table))
    if kind == "delta":
        write_deltalake(str(folder), table)
    else:
        pq.write_table(table, folder / "a.parquet", row_group_size=1)
    return DatasetRef("orders", str(folder), format=kind)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["parquet", "folders", "delta"])
def test_a_column_is_read_on_sail_and_not_taken_from_its_extremes(
    session: Any, other_session: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    ref = _with_nan(tmp_path, kind)
    with pytest.raises(DatasetError, match="one value in all rows of column 'a' of") as refused:
        open_dataset(other_session, ref).read({None})
    assert f"{sail.STATISTICS_SETTING}=false" in str(refused.value)
    for is_own in (sail.is_own_server, lambda _: False):
        monkeypatch.setattr(statistics_on_sail, "is_own_server", is_own)
        rows = open_dataset(session, ref).read({None})
        counts = rows.selectExpr("count_if(isnan(a))", "count_if(isnan(b))", "count(b)").collect()
        assert tuple(counts[0]) == (1, 1, 3)


@pytest.mark.slow
def test_rows_that_are_too_many_for_this_process_are_not_promoted_on_sail(
    session: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dqx_airflow.engine.job import run_gates

    monkeypatch.setattr(collected_files, "MOST_COLLECTED_BYTES", 50)
    report = run_gates([_written(tmp_path, _WRITES)], lambda _: session)[0]
    assert report.outcome is Outcome.BROKEN
    (refused,) = report.with_status(Status.ERROR)
    assert "which is all that is written without Spark" in (refused.reason or "")
    assert sail.INSTEAD in (refused.reason or "")


@pytest.mark.nightly
def test_what_holds_on_spark_for_promotion_and_quarantine_holds_on_sail() -> None:
    here = Path(__file__).parent
    names = ("promotion", "promoted_slices", "good_rows", "quarantine", "quarantine_reruns")
    files = [str(here / f"test_{name}.py") for name in names]
    words = [sys.executable, "-m", "pytest", "--sail", "-q", "-n", "0", "-m", "", *files]
    done = ended(words, cwd=PACKAGE.parent)
    assert done.returncode == 0, done.stdout


@pytest.mark.slow
def test_another_version_of_sail_judges_nothing(
    session: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = replace(proof_of_sail(), spark_version="0.0.1")
    monkeypatch.setattr(engine_key, "proof_of_sail", lambda: other)
    with pytest.raises(SparkError, match="was not tried"):
        engine_key.known_engine(session)
    proven = _proof_of(session, "lengths over string")
    known = engine_key.known_engine(session, [proven])
    assert known.is_proven
    assert known.mark == proven.mark
    assert {*other.doubts, "lengths over string"} == set(known.doubts)
    # One that was made by another version of ours is none.
    older = replace(proven, key="other")
    with pytest.raises(SparkError, match="was not tried"):
        engine_key.known_engine(session, [older])


def _proof_of(session: Any, *doubts: str) -> EngineProof:
    """What a user found about the engine of a session."""
    key, engine = engine_key.engine_key(session)
    form = json.dumps(engine)
    return replace(proof_of_sail(), key=key, engine=form, doubts=doubts)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "value"),
    [("spark.sql.session.timeZone", "Europe/Berlin"), ("spark.sql.ansi.enabled", "false")],
)
def test_what_ships_is_not_believed_of_a_session_with_other_settings(
    session: Any, name: str, value: str
) -> None:
    due = session.conf.get(name)
    session.conf.set(name, value)
    try:
        with pytest.raises(SparkError, match="not tried with these settings") as caught:
            engine_key.known_engine(session)
    finally:
        session.conf.set(name, due)
    assert f"set {name}={due}, or prove" in (caught.value.hint or "")
    known = engine_key.known_engine(session)
    assert (known.doubts, known.mark) == (proof_of_sail().doubts, proof_of_sail().mark)


@pytest.mark.slow
def test_a_broken_file_does_not_end_the_server_and_an_empty_folder_has_no_columns(
    session: Any, tmp_path: Path
) -> None:
    (tmp_path / "a.parquet").write_bytes(b"PAR1xxxxPAR1")
    ref = DatasetRef("orders", str(tmp_path), format="parquet")
    with pytest.raises(DatasetError, match="parquet cannot be read"):
        open_dataset(session, ref)
    (tmp_path / "a.parquet").unlink()
    with pytest.raises(DatasetError, match="has no columns"):
        open_dataset(session, ref)


@pytest.mark.slow
@pytest.mark.parametrize("extension", ["", "io.delta.sql.DeltaSparkSessionExtension"])
def test_a_delta_table_with_features_is_not_left_to_the_source_of_sail(
    session: Any, tmp_path: Path, extension: str
) -> None:
    (ref, _) = _request(tmp_path).datasets
    log = tmp_path / "orders" / "_delta_log" / f"{0:020}.json"
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    for action in actions:
        if "protocol" in action:
            features = {f"{who}Features": ["deletionVectors"] for who in ("reader", "writer")}
            action["protocol"] = {"minReaderVersion": 3, "minWriterVersion": 7, **features}
    log.write_text("\n".join(map(json.dumps, actions)))
    session.conf.set("spark.sql.extensions", extension)
    try:
        with pytest.raises(DatasetError, match="deletionVectors, which Sail may read") as caught:
            open_dataset(session, ref)
    finally:
        session.conf.unset("spark.sql.extensions")
    assert caught.value.hint == sail.INSTEAD


@pytest.mark.slow
def test_what_a_user_found_about_this_version_counts_beside_what_ships(session: Any) -> None:
    proven = _proof_of(session, "lengths over string")
    doubts = {*proof_of_sail().doubts, "lengths over string"}
    assert set(engine_key.known_engine(session, [proven]).doubts) == doubts
    # Also if it was made by another version of ours, or with another setting.
    older = replace(proven, key="other", doubts=("length over string",))
    known = engine_key.known_engine(session, [older])
    assert set(known.doubts) == doubts
    assert "prove again" in (known.mark or "")


@pytest.mark.slow
def test_a_contract_over_parquet_is_tested_on_sail_if_all_files_have_its_columns(
    session: Any, tmp_path: Path
) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    ref = DatasetRef("t", str(tmp_path), format="parquet", options=(("mergeSchema", "true"),))
    for number in (1, 2):
        pq.write_table(pa.table({"id": [number]}), tmp_path / f"{number}.parquet")
    opened = open_dataset(session, ref)
    assert sorted(row.id for row in opened.read(()).collect()) == [1, 2]
    pq.write_table(pa.table({"id": [3], "more": ["a"]}), tmp_path / "3.parquet")
    with pytest.raises(DatasetError, match=r"3\.parquet has other columns than"):
        open_dataset(session, ref)


def _in_folders(root: Path, *parts: tuple[str, Any]) -> DatasetRef:
    import pyarrow.parquet as pq

    for folder, table in parts:
        (root / folder).mkdir(parents=True, exist_ok=True)
        pq.write_table(table, root / folder / "a.parquet")
    return DatasetRef("orders", str(root), format="parquet")


@pytest.mark.slow
def test_parquet_in_folders_is_read_on_sail_by_date(session: Any, tmp_path: Path) -> None:
    import pyarrow as pa

    ref = _in_folders(
        tmp_path,
        ("ds=2024-03-01/shop=01", pa.table({"id": [1, 2], "note": ["a", None]})),
        ("ds=2024-03-02/shop=12", pa.table({"id": [3]})),
        (f"ds={NO_VALUE}/shop=12", pa.table({"id": [4]})),
    )
    opened = open_dataset(session, replace(ref, date_column="ds"))
    assert opened.struct.simpleString() == "struct<id:bigint,note:string,ds:date,shop:int>"
    first, second = date(2024, 3, 1), date(2024, 3, 2)
    rows = {tuple(row) for row in opened.read({first}).collect()}
    # A date is selected by its column, too.
    of_first = {(1, "a", first, 1), (2, None, first, 1), (4, None, None, 12)}
    assert rows == of_first
    rows = {tuple(row) for row in opened.read({None}).collect()}
    assert rows == {*of_first, (3, None, second, 12)}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("folder", "columns", "due"),
    [
        ("ds=2024-03-02", {"id": ["x"]}, "column 'id' of .* is 'id' of type int64 in"),
        ("ds=2024-03-02", {"ID": [1]}, "column 'ID' of .* is 'id' of type int64 in"),
        ("ds=20240302", {"id": [1]}, "Sail reads the values of ds in the names of folders"),
        ("ds=2024-03-02/shop=1", {"id": [1]}, "Sail reads folders that name different columns"),
        ("ds=2024-02-01", {"id": [1], "ds": ["x"]}, "Sail reads ds, which is in the files and in"),
    ],
)
def test_folders_that_spark_may_read_otherwise_are_refused(
    session: Any, tmp_path: Path, folder: str, columns: dict[str, list[Any]], due: str
) -> None:
    import pyarrow as pa

    first = ("ds=2024-03-01", pa.table({"id": [1]}))
    ref = _in_folders(tmp_path, first, (folder, pa.table(columns)))
    with pytest.raises(DatasetError, match=due):
        open_dataset(session, ref).read({None})


@pytest.mark.nightly
def test_hundreds_of_partitions_do_not_end_the_server(session: Any, tmp_path: Path) -> None:
    import pyarrow as pa
    from deltalake import write_deltalake

    days = [date(2024, 1, 1) + timedelta(number) for number in range(400)]
    table = pa.table({"id": range(400), "ds": days})
    write_deltalake(str(tmp_path / "delta"), table, partition_by=["ds"])
    in_folders = _in_folders(
        tmp_path / "files",
        *((f"ds={day}", pa.table({"id": [number]})) for number, day in enumerate(days)),
    )
    for ref in (DatasetRef("orders", str(tmp_path / "delta")), in_folders):
        rows: Any = open_dataset(session, ref).read({None})
        # Sail keeps memory for each text that it parses, until its server ends.
        assert str(rows._plan.to_proto(session.client)).count("expression_string") <= len(days)
        found = rows.selectExpr("count(*)", "sum(id)", "count(DISTINCT ds)", "max(ds)").collect()
        assert tuple(found[0]) == (400, 79_800, 400, days[-1])


@pytest.mark.slow
def test_a_query_that_sail_cannot_plan_is_an_error_with_a_sentence(
    session: Any, tmp_path: Path
) -> None:
    from dqx_airflow.engine.job import try_gates

    request = _request(tmp_path)
    line = "decrease_count(amount, order_by code, where abs(amount) < 50) == 0"
    text = f'suite "S" {{ check "C" on orders {{ assert {line} name "steps" }} }}'
    report = try_gates([replace(request, suite=SourceFile("suite.dql", text))], lambda _: session)[
        0
    ]
    (steps,) = (one for one in report.verdicts if one.name == "steps")
    assert steps.status is Status.ERROR
    assert (steps.reason or "").startswith("Sail cannot plan this")


@pytest.mark.slow
def test_a_filter_that_leaves_no_row_raises_no_error_of_a_row_on_sail(
    session: Any, tmp_path: Path
) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    from dqx_airflow.engine.job import try_gates

    request = _request(tmp_path)
    folder = tmp_path / "mails"
    folder.mkdir()
    pq.write_table(pa.table({"mail": ["a@b"], "country": ["CH"]}), folder / "a.parquet")
    # One assertion alone: what several have in common is computed before any filter.
    body = 'assert each row: mail matches "^.+@.+$" where country == "FR" name "none"'
    suite = SourceFile("suite.dql", f'suite "S" {{ check "C" on mails {{ {body} }} }}')
    datasets = (*request.datasets, DatasetRef("mails", str(folder), format="parquet"))
    report = try_gates([replace(request, suite=suite, datasets=datasets)], lambda _: session)[0]
    others = [one for one in report.verdicts if one.status is not Status.PASSED]
    assert others == []


@pytest.mark.slow
def test_sail_has_the_columns_of_the_first_file_as_spark_has(session: Any, tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    from dqx_airflow.engine.job import try_gates

    request = _request(tmp_path)
    pq.write_table(pa.table({"code": ["a"], "note": ["b"]}), tmp_path / "codes" / "part-1")
    body = """
assert extra_column_count([code]) == 0 name "columns"
assert each row: note == "b" name "note"
assert num_rows() == 4 name "rows"
"""
    suite = SourceFile("suite.dql", f'suite "S" {{ check "C" on codes {{\n{body}\n}} }}')
    report = try_gates([replace(request, suite=suite)], lambda _: session)[0]
    found = {verdict.name: verdict.status for verdict in report.verdicts}
    statuses = [found[name] for name in ("columns", "note", "rows")]
    assert statuses == [Status.FAILED, Status.ERROR, Status.PASSED]


@pytest.mark.parametrize("file_format", ["parquet", "delta"])
def test_arrays_that_sail_cannot_look_up_are_refused_alone(
    session: Any, tmp_path: Path, file_format: str
) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq
    from deltalake import write_deltalake

    from dqx_airflow.engine.job import try_gates

    rows = pa.table({"id": [1, 2], "kept": [["a"], ["b"]], "floats": [[1.0], [2.0]]})
    refs = []
    for name, table in (("orders", rows), ("codes", rows.slice(0, 1))):
        place = tmp_path / name
        if file_format == "delta":
            write_deltalake(place, table)
        else:
            place.mkdir()
            pq.write_table(table, place / "a.parquet")
        refs.append(DatasetRef(name, str(place), format=file_format))
    body = """
assert values(floats) in values(floats, dataset codes) name "floats"
assert values(kept) in values(kept, dataset codes) name "kept"
assert num_rows() == 2 name "rows"
"""
    suite = SourceFile("suite.dql", f'suite "S" {{ check "C" on orders {{\n{body}\n}} }}')
    gate = replace(_request(tmp_path / "other"), suite=suite, datasets=tuple(refs))
    found = {one.name: one for one in try_gates([gate], lambda _: session)[0].verdicts}
    statuses = [found[name].status for name in ("floats", "kept", "rows")]
    assert statuses == [Status.ERROR, Status.FAILED, Status.PASSED]
    assert "looks up no 'floats' (array<double>)" in (found["floats"].reason or "")


@pytest.mark.nightly
def test_what_sail_finds_is_what_ships(session: Any, tmp_path: Path) -> None:
    from dqx_airflow.engine.proof.prove import prove

    proof = prove(session, tmp_path, lambda *_: None)
    found = tuple(replace(one, found=one.found[:_LONGEST]) for one in proof.differences)
    shipped = replace(
        proof,
        key="",
        engine="",
        spark_version=sail.sail_version(session) or "",
        differences=tuple(sorted(found, key=lambda one: (one.case, one.claim))),
    )
    if REWRITE:
        SHIPPED.write_text(_lines(shipped), encoding="utf-8")
        proof_of_sail.cache_clear()
        text = TESTED.read_text(encoding="utf-8")
        TESTED.write_text(
            _COUNTS.sub(lambda m: m[1] + _counts(shipped) + m[2], text), encoding="utf-8"
        )
    assert replace(shipped, at=proof_of_sail().at) == proof_of_sail()


def _lines(proof: EngineProof) -> str:
    """The proof as JSON, with a line for each difference."""
    text = to_json(proof).replace(' {"case"', '\n{"case"').replace('[{"case"', '[\n{"case"')
    return text.replace('"doubts"', '\n"doubts"') + "\n"


def _counts(proof: EngineProof) -> str:
    """The counts as a table of the docs."""
    errors = sum(one.is_error for one in proof.differences)
    others = len(proof.differences) - errors
    cells = (proof.spark_version, f"{proof.agreeing:,}", errors, others, proof.at.date())
    return (
        "| Sail | cases that agree | errors | other values, refused | on |\n"
        "|---|---|---|---|---|\n"
        f"| {' | '.join(map(str, cells))} |\n"
    )


@pytest.mark.nightly
@pytest.mark.parametrize("kind", ["view", "parquet", "folders", "delta"])
def test_no_case_has_another_value_on_sail_with_what_ships(
    kind: str, session: Any, tmp_path: Path
) -> None:
    from dqx_airflow.engine.measure import measure

    others, judged = [], 0
    for number, case in enumerate(proof_cases()):
        if kind == "delta" and any(": variant" in block.text for block in case.blocks):
            continue  # its writer for Python has none
        refs = _stored(session, case, tmp_path / str(number), kind)
        plan = case.plan(refs)
        found = case.found(plan, measure(session, refs, plan)[1])
        for (claim, due), value in zip(case.lines, found, strict=True):
            judged += value == due
            if value != due and not value.startswith("error: "):
                others.append(f"{case}: {claim} => {value}")
    assert not others
    assert judged > 1_250


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(20))
def test_no_assertion_over_several_types_has_another_value_on_sail(
    seed: int, session: Any, tmp_path: Path
) -> None:
    """Refused are those that bring together what Sail computes otherwise, and no others."""
    import pyarrow.parquet as pq

    from dqx_airflow.engine.measure import measure

    random = Random(seed)
    tables = {"t": random_table(random), "o": random_table(random)}
    claims = random_claims(random, 60)
    refs = tuple(DatasetRef(name, str(tmp_path / name), format="parquet") for name in tables)
    for name, table in tables.items():
        (tmp_path / name).mkdir()
        pq.write_table(arrow_of(table), tmp_path / name / "a.parquet")
    plan = plan_of_claims(claims, refs)
    now = datetime.combine(plan.date, time(12), timezone.utc)
    due = {one.name: one for one in evaluate(plan, measure_in_memory(plan, refs, tables), now=now)}
    judged, others = 0, []
    for found in evaluate(plan, measure(session, refs, plan)[1], now=now):
        if found.status is Status.ERROR:
            continue
        judged += 1
        expected = due[found.name]
        if found.status is not expected.status or not is_near(found.value, expected.value):
            others.append(f"{claims[int(found.name)]}: {found.value!r}, not {expected.value!r}")
    assert not others
    assert judged > 0.6 * len(claims)


@pytest.mark.nightly
def test_assertions_over_several_columns_have_the_values_of_spark_on_sail(tmp_path: Path) -> None:
    pytest.importorskip("pysail")
    comparison = compare(range(len(KINDS)), 40, tmp_path)
    assert comparison.others == []
    assert comparison.judged > 0.6 * comparison.claims


def _stored(session: Any, case: ProofCase, folder: Path, kind: str) -> tuple[DatasetRef, ...]:
    import pyarrow.parquet as pq
    from deltalake import write_deltalake

    folder.mkdir()
    tables, refs = case.tables(folder)
    stored = []
    for ref in refs:
        place = folder / ref.name
        if ref.table is None:
            stored.append(ref)
            continue
        if kind == "view":
            frame_of(session, tables[ref.name]).createOrReplaceTempView(ref.table)
            stored.append(ref)
            continue
        table = arrow_of(tables[ref.name])
        place.mkdir()
        if kind == "delta":
            write_deltalake(str(place), table)
        elif kind == "folders" and _can_be_folders(table):
            pq.write_to_dataset(table, place, partition_cols=["ds"])
        else:
            pq.write_table(table, place / "a.parquet")
        format = "delta" if kind == "delta" else "parquet"
        stored.append(replace(ref, table=None, path=str(place), format=format))
    return tuple(stored)


def _can_be_folders(table: Any) -> bool:
    """True for tables with dates in `ds`, beside other columns."""
    import pyarrow as pa

    has_dates = "ds" in table.column_names and pa.types.is_date(table.schema.field("ds").type)
    return has_dates and table["ds"].null_count < len(table) and len(table.column_names) > 1
