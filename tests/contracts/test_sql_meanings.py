"""SQL of databases has the same value on Spark, or is refused.

`sql/documented.md` has values from the pages of databases, `sql/refused.md` what is refused. Random
rules run on Spark and on the databases themselves: a few here, 5,000 in the nightly lane.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from datetime import date
from decimal import Decimal
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from dqx_airflow.api.database import SparkDatabase
from dqx_airflow.api.run import run
from dqx_airflow.contracts.compile import sql_exact
from dqx_airflow.contracts.compile.spark_predicates import spark_text
from dqx_airflow.contracts.compile.sql_forms import Query, SqlScope, TableSql
from dqx_airflow.contracts.compile.sql_rules import query_rule
from dqx_airflow.contracts.compile.sql_table import DIALECTS, Row, table
from dqx_airflow.contracts.compile.suite import compile_contract
from dqx_airflow.contracts.enforcement.coverage import coverage
from dqx_airflow.contracts.model import Field, Treatment
from dqx_airflow.contracts.read import read_contract
from dqx_airflow.dql import nodes
from dqx_airflow.dql.check import check_source
from dqx_airflow.errors import NoCounterpartError
from dqx_airflow.values import SourceFile
from tests.contracts.random_sql import COLUMNS, fields, first_rows, rows, rules
from tests.contracts.sql_servers import Answer, number, server
from tests.contracts.written_rules import written_contract

ASKED = ("duckdb", "postgres", "mysql", "sqlite")
FOLDER = Path(__file__).parent / "sql"
TABLE = "random_rules"
_ROW = re.compile(r"\| (?P<dialect>\w+) \| `(?P<sql>.+?)` \|(?: (?P<value>\S+) \|)?.*")


def _rows_of(name: str) -> Iterator[tuple[str, str, str]]:
    for line in (FOLDER / name).read_text(encoding="utf-8").splitlines():
        if (found := _ROW.fullmatch(line)) is not None:
            yield found["dialect"], found["sql"], found["value"] or ""


def _fields() -> tuple[Field, ...]:
    columns = {
        **{"n": "int", "big": "bigint", "amount": "decimal(10,2)", "ratio": "double"},
        **{"s": "string", "c": "string", "day": "date", "ts": "timestamp", "t2": "timestamp"},
        "ok": "boolean",
    }
    text = "\n".join(["model t", *(f"column {name} {type_}" for name, type_ in columns.items())])
    model = written_contract(text).models[0]
    padded = {"c": "CHAR(5)"}
    return tuple(
        Field(item.name, item.path, item.type, item.span, padded.get(item.name))
        for item in model.fields
    )


FIELDS = _fields()


@pytest.mark.parametrize(("dialect", "sql", "_value"), list(_rows_of("refused.md")))
def test_what_may_differ_is_refused(dialect: str, sql: str, _value: str) -> None:
    with pytest.raises(NoCounterpartError) as refused:
        query_rule(sql, dialect, SqlScope("t", fields_of=lambda _name: FIELDS))
    assert "dialect: spark" in str(refused.value) or "write EXTRACT(EPOCH" in str(refused.value)


@pytest.mark.few(6)
@pytest.mark.parametrize(
    ("types", "sql", "is_read"),
    [
        ("pg postgresql PostgreSQL postgres", "SUM(n / 2)", True),  # 7 / 2 is 3
        ("sqlserver mssql SQL-Server synapse", "SUM(n / 2)", True),
        ("local s3 azure sftp", "MAX(DATE_DIFF('day', ts, t2))", True),
        ("mysql mariadb", "SUM(n / 2)", False),
        ("postgers saphana custom kinesis db2", "SUM(n / 2)", False),
        ("postgers saphana custom kinesis db2 mysql", "SUM(n)", True),
        ("postgers saphana custom kinesis db2", "MAX(DATEDIFF(day, ts, t2))", False),
        ("databricks kafka iceberg", "MAX(DATEDIFF(day, ts, t2))", True),
    ],
)
@pytest.mark.parametrize("standard", ["dcs", "odcs"])
def test_the_sql_of_a_server_is_never_taken_for_that_of_spark(
    standard: str, types: str, sql: str, is_read: bool
) -> None:
    for of_server in types.split():
        rule = {"type": "sql", "query": f"SELECT {sql} FROM {{model}}", "mustBe": 1}
        typed = {"n": "integer", "ts": "timestamp", "t2": "timestamp"}
        document: dict[str, Any] = {"id": "c"}
        if standard == "dcs":
            document |= {
                "dataContractSpecification": "1.1.0",
                "info": {"title": "C", "version": "1"},
            }
            document["servers"] = {"s": {"type": of_server}}
            columns = {name: {"type": type_} for name, type_ in typed.items()}
            document["models"] = {"t": {"fields": columns, "quality": [rule]}}
        else:
            document |= {"apiVersion": "v3.1.0", "kind": "DataContract", "version": "1"}
            document |= {"status": "active", "servers": [{"server": "s", "type": of_server}]}
            properties = [{"name": name, "logicalType": type_} for name, type_ in typed.items()]
            document["schema"] = [{"name": "t", "properties": properties, "quality": [rule]}]
        contract = read_contract(SourceFile("c.yaml", json.dumps(document))).contract
        assert contract is not None, of_server
        refused = any(
            clause.treatment is Treatment.UNSUPPORTED and "quality" in str(clause.path)
            for clause in coverage(contract, compile_contract(contract))
        )
        assert refused is not is_read, (of_server, sql)


def test_every_row_of_the_table_can_be_read() -> None:
    """A template uses what its expression has, and its kind exists."""
    for dialect in DIALECTS:
        found = [row for of_class in table(dialect).values() for row in of_class]
        assert len(found) > 60
        for row in found:
            holes = [
                set(re.findall(r"\b_[a-z]\w*", tree.sql())) for tree in (row.template, row.pattern)
            ]
            assert holes[0] <= holes[1], row.pattern.sql()


def _spark_sql(found: Query | TableSql | nodes.Expression) -> tuple[str, str]:
    """The value of a rule in Spark, and what it is read from: nothing, for a query."""
    match found:
        case Query(sql=text):
            return f"({text})", ""
        case TableSql(sql=text):
            return text, f" FROM {TABLE}"
    return f"count_if({spark_text(found)})", f" FROM {TABLE}"


def _on_spark(spark: Any, values: Sequence[tuple[str, str]]) -> list[Answer]:
    """The values of rules. Many share a job, and those with an error are found by halves."""
    answers: dict[tuple[str, str], Answer] = {}
    for source in dict.fromkeys(source for _, source in values):
        texts = list(dict.fromkeys(text for text, of in values if of == source))
        for start in range(0, len(texts), 60):
            some = texts[start : start + 60]
            found = _asked(spark, some, source)
            answers |= {(text, source): one for text, one in zip(some, found, strict=True)}
    return [answers[value] for value in values]


def _asked(spark: Any, texts: Sequence[str], source: str) -> list[Answer]:
    try:
        (row,) = spark.sql(f"SELECT {', '.join(texts)}{source}").collect()
    except (PySparkException, Py4JJavaError) as error:  # a subquery raises Py4JJavaError
        if len(texts) == 1:
            return [f"error: {str(error).splitlines()[0]}"]
        half = len(texts) // 2
        return [*_asked(spark, texts[:half], source), *_asked(spark, texts[half:], source)]
    return [number(value) for value in row]


def _is_same(one: Answer, other: Answer) -> bool:
    if isinstance(one, Decimal) and isinstance(other, Decimal):
        # What the table says about quotients.
        least = Decimal("1e-17")
        return abs(one - other) <= max(max(abs(one), abs(other)) * Decimal("1e-9"), least)
    return one == other


@pytest.mark.slow
@pytest.mark.spark
def test_values_are_those_that_the_pages_of_databases_give(spark: Any) -> None:
    spark.sql("SELECT 1 AS one").createOrReplaceTempView(TABLE)
    cases = list(_rows_of("documented.md"))
    texts = []
    for dialect, sql, _ in cases:
        query = sql if sql.startswith("SELECT") else f"SELECT MAX({sql}) FROM t"
        try:
            found = query_rule(
                query, dialect, SqlScope("t", lambda _name: TABLE, lambda _name: FIELDS)
            )
        except NoCounterpartError as error:
            pytest.fail(f"{dialect}: {sql}: {error}")
        texts.append(_spark_sql(found))
    found_values = _on_spark(spark, texts)
    wrong = [
        (*case, found)
        for case, found in zip(cases, found_values, strict=True)
        if found != number(case[2])
    ]
    assert not wrong


@pytest.fixture(scope="module")
def random_table(spark: Any) -> None:
    text = [
        tuple(one if one is None or isinstance(one, tuple) else str(one) for one in row)
        for row in rows()
    ]
    written = {name: type_ if "<" in type_ else "string" for name, type_ in COLUMNS.items()}
    frame = spark.createDataFrame(text, ", ".join(map(" ".join, written.items())))
    casts = [f"CAST({name} AS {type_}) AS {name}" for name, type_ in COLUMNS.items()]
    frame.selectExpr(*casts).coalesce(1).createOrReplaceTempView(TABLE)


class Accepted(NamedTuple):
    """A random rule that is not refused, its value in Spark, and the rows of the table in it."""

    query: str
    value: tuple[str, str]
    used: frozenset[str]


def _accepted(dialect: str, seed: str) -> Iterator[Accepted]:
    used: set[str] = set()
    plain = sql_exact._Translation._result

    def result(self: Any, row: Row, typed: Any) -> Any:
        found = plain(self, row, typed)
        used.update([row.written] if found is not None else [])
        return found

    for query in rules(dialect, seed):
        used.clear()
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(sql_exact._Translation, "_result", result)
            try:
                rule = query_rule(
                    query, dialect, SqlScope(TABLE, lambda _name: TABLE, lambda _name: fields())
                )
            except NoCounterpartError:
                continue
        yield Accepted(query, _spark_sql(rule), frozenset(used))


def _differing(
    spark: Any, dialect: str, seed: str, count: int
) -> tuple[list[tuple[Accepted, Answer, Answer]], set[str]]:
    """The rules that Spark answers differently than the database, and the rows of the table in
    any of them. A rule that the database cannot answer may have any answer, and an error of Spark
    breaks the gate."""
    accepted = list(islice(_accepted(dialect, seed), count))
    with server(dialect) as ask:
        due = ask([rule.query for rule in accepted])
    assert sum(not isinstance(value, str) for value in due) > len(due) * 0.7, due
    answered = [
        (rule, value)
        for rule, value in zip(accepted, due, strict=True)
        if not isinstance(value, str)
    ]
    found = _on_spark(spark, [rule.value for rule, _ in answered])
    failed = sum(isinstance(value, str) for value in found)
    assert failed <= len(found) * 0.15, [value for value in found if isinstance(value, str)]
    same = [
        (rule, value, got)
        for (rule, value), got in zip(answered, found, strict=True)
        if not isinstance(got, str)
    ]
    drawn = {row for rule in accepted for row in rule.used}
    return [(rule, one, other) for rule, one, other in same if not _is_same(one, other)], drawn


CANCELLED = "(SELECT 0.1 AS x UNION ALL SELECT 0.2 UNION ALL SELECT -0.3) AS v"
DECIMALS = ("DECIMAL(10, 2)", "DECIMAL(38, 2)")
BLANKS = (" a ", "\u00a0a\u3000", "\u2003a\u202f", "\ta\n", "\u200ba", "")


@pytest.mark.few(1)
@pytest.mark.spark
@pytest.mark.usefixtures("random_table")
@pytest.mark.parametrize("dialect", ["duckdb", "sqlite", "postgres"])
def test_odd_blanks_letters_and_numbers_have_the_same_values(spark: Any, dialect: str) -> None:
    endless = "MAX(f * 1e308)"
    values = [
        f"MAX(LENGTH({trim}('{text}')))" for trim in ("TRIM", "LTRIM", "RTRIM") for text in BLANKS
    ]
    if dialect == "postgres":
        same = [f'{case}(s COLLATE "C") = s' for case in ("UPPER", "LOWER")]
        values += [f"COUNT(CASE WHEN {test} THEN 1 END)" for test in same]
    else:
        values += [f"{endless} - {endless}", f"{endless} * 0.0"]
    if dialect == "duckdb":
        values += [f"SIGN({endless} - {endless})"]
    queries = [f"SELECT {value} FROM t" for value in values]
    if dialect != "sqlite":
        queries += ["SELECT COUNT(DISTINCT CEIL(b)) + COUNT(DISTINCT FLOOR(b)) FROM t"]
        queries += [f"SELECT AVG(CAST(x AS {number})) FROM {CANCELLED}" for number in DECIMALS]
    scope = SqlScope(TABLE, lambda _name: TABLE, lambda _name: fields())
    found = [_spark_sql(query_rule(query, dialect, scope)) for query in queries]
    with server(dialect) as ask:
        due = ask(queries)
    answers = zip(queries, due, _on_spark(spark, found), strict=True)
    differing = [answer for answer in answers if answer[1] != answer[2]]
    assert [answer for answer in differing if "NaN" not in str(answer[1])] == []


@pytest.mark.more
@pytest.mark.few(1)
@pytest.mark.spark
@pytest.mark.usefixtures("random_table")
@pytest.mark.parametrize("dialect", ["duckdb", "sqlite"])
def test_random_rules_have_the_same_values(spark: Any, dialect: str) -> None:
    assert not _differing(spark, dialect, "every run", 100)[0]


@pytest.mark.nightly
@pytest.mark.spark
@pytest.mark.usefixtures("random_table")
@pytest.mark.parametrize("dialect", ASKED)
def test_5000_random_rules_have_the_same_values(spark: Any, dialect: str) -> None:
    """Each row of the table is in one of them. A row that chance left out is drawn from others."""
    missing = {row.written for row in first_rows(dialect)}
    for seed in (uuid4().hex for _ in range(3)):
        differing, drawn = _differing(spark, dialect, seed, 1_250)
        assert not differing, seed
        missing -= drawn
        if not missing:
            break
    assert not missing


@pytest.mark.spark
def test_an_interval_is_no_number(spark: Any) -> None:
    spark.sql(
        "SELECT TIMESTAMP '2025-01-01 23:00:00' AS a, TIMESTAMP '2025-01-02 01:00:00' AS b"
    ).createOrReplaceTempView("moments")
    suite = """suite "s" { check "c" on m {
        assert sql("max(b - a)") > 0 name "of sql"
        assert query("SELECT max(b - a) FROM m") > 0 name "of query"
        assert query("SELECT collect_list(a) FROM m") > 0 name "of a list"
        assert num_rows() == 1 name "rows"
    } }"""
    database = SparkDatabase(spark, {"m": {"table": "moments"}})
    report = run(check_source(SourceFile("s.dql", suite)), database, date(2025, 1, 2)).report
    reasons = {verdict.name.rpartition("c.")[2]: verdict.reason for verdict in report.verdicts}
    assert "it returns an interval" in str(reasons["of sql"])
    assert "it returns an interval" in str(reasons["of query"])
    assert "returned a nested or binary value" in str(reasons["of a list"])
    assert not reasons["rows"]
