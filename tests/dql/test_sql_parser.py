"""SQL of users is parsed, or refused with a reason, whatever it is."""

from __future__ import annotations

import random

import pytest

from dqx_airflow.contracts.enforcement.lint import lint
from dqx_airflow.contracts.read import read_contract
from dqx_airflow.dql.check import check_source
from dqx_airflow.dql.sql_parser import (
    MOST_NESTED_TYPES,
    InvalidSqlError,
    TooDeepSqlError,
    parse_sql,
    parse_type,
    transpiled,
)
from dqx_airflow.values import SourceFile

DIALECTS = ["spark", "oracle", "snowflake", "postgres", "bigquery", "tsql", "duckdb", "mysql"]
CALLS = ["date(", "timestamp (", "decimal(", "array[", "struct(", "double\nprecision("]


@pytest.mark.few(10, apart=True)
@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("call", CALLS)
def test_names_of_types_enclose_each_other_a_few_times(call: str, dialect: str) -> None:
    if call.endswith("[") and dialect == "tsql":
        pytest.skip("brackets quote a name there")
    end = "]" if call.endswith("[") else ")"
    for depth in (MOST_NESTED_TYPES + 1, 16, 25, 60, 400):
        nested = call * depth + "1" + end * depth
        for text in (f"SELECT {nested}", f"SELECT f({nested})", f"SELECT 1 WHERE a = {nested}"):
            with pytest.raises(TooDeepSqlError):
                parse_sql(text, dialect)
        with pytest.raises(InvalidSqlError):
            parse_type(nested, dialect)
        with pytest.raises(InvalidSqlError):
            transpiled(f"SELECT {nested}", dialect, to="spark")


@pytest.mark.parametrize("start", [r"'\' || ", "')' || ", '"a)" || ', "/* ') */ "])
def test_quotes_and_comments_hide_no_calls(start: str) -> None:
    nested = f"date({start}" * 16 + "'x'" + ")" * 16
    with pytest.raises(TooDeepSqlError):
        parse_sql(f"SELECT {start} {nested}", "postgres")


@pytest.mark.parametrize(
    "text",
    [
        f"SELECT {'date(' * MOST_NESTED_TYPES}x{')' * MOST_NESTED_TYPES}",
        f"SELECT {' + '.join(['date(x)'] * 30)}",
        f"SELECT {'coalesce(' * 30}x{', 1)' * 30}",
        f"SELECT {'cast(' * 30}x{' AS date)' * 30}",
        f"SELECT CAST(x AS {'array<' * 30}int{'>' * 30})",
        f"SELECT {'date < ' * 30}x",
        f"SELECT '{'date(' * 30}', `{'date(' * 30}` -- {'date(' * 30}\n/* {'date(' * 30} */",
    ],
)
def test_everything_else_may_be_nested(text: str) -> None:
    assert len(parse_sql(text, "spark")) == 1


def test_a_dialect_that_does_not_exist_is_named() -> None:
    with pytest.raises(InvalidSqlError, match="Unknown dialect 'nonsense'"):
        parse_sql("SELECT 1", "nonsense")


ODD = [
    "cast(a as number(*,2)) > 0",
    "cast(a as number(*)) > 0",
    "cast(a as decimal(1.5)) > 0",
    "a::numeric(x) > 0",
    "cast(avg(a) as decimal(*)) > 0",
    ".5.5 < a",
    "1e < a",
    "a > 1.e",
    "a > 1e5.5",
    "map(1) is null",
    "(select) > 1",
    "a > date(" + "date(" * 15 + "1" + ")" * 16,
]
CONTRACT = """\
dataContractSpecification: 1.2.1
id: k
info: {{title: K, version: 1.0.0, owner: o}}
servers: {{s: {{type: {type}, host: h, port: 1, account: a, database: d, schema: s}}}}
models:
  t:
    fields: {{a: {{type: int}}}}
    quality: [{{type: sql, query: {query!r}, mustBe: 0}}]
"""
SERVERS = ["databricks", "oracle", "snowflake", "postgres", "bigquery", "sqlserver", "trino"]


def codes_of(condition: str, server: str) -> set[str | None]:
    """The codes of lint for a contract with a rule in SQL."""
    query = f"select count(*) from t where {condition}".replace("'", "")
    text = CONTRACT.format(type=server, query=query)
    found = read_contract(SourceFile("k.yaml", text))
    assert found.contract is not None, found.errors
    return {item.code for item in lint(found.contract)}


@pytest.mark.parametrize("condition", ODD)
@pytest.mark.parametrize("server", SERVERS[1:])
def test_odd_sql_of_a_contract_is_a_clause_that_is_not_checked(server: str, condition: str) -> None:
    assert "W020" in codes_of(condition, server)


WORDS = """\
a b t 1 1.5 .5 1e 1e5 1.e "a" 'x' ( ) ( ) [ ] , , . * + - / = < > <> :: => -> || ; @ $1
? and or not in
between is null like case when then else end cast as try_cast extract from date timestamp decimal
numeric number array map struct interval day select distinct where group by with over partition
count sum avg date_trunc coalesce nullif exists any all collate at time zone {model} {field}
"""


def some_sql(draw: random.Random) -> str:
    words = WORDS.split()
    return " ".join(draw.choice(words) for _ in range(draw.randrange(1, 12)))


def _is_always_answered(seed: object, number: int) -> None:
    draw = random.Random(seed)
    for _ in range(number):
        text = some_sql(draw)
        codes_of(text, draw.choice(SERVERS))
        quoted = text.replace('"', "")
        check_source(
            SourceFile("s.dql", f'suite "S" {{ check "C" on t {{ assert sql("{quoted}") > 1 }} }}')
        )


def test_random_sql_is_always_answered() -> None:
    _is_always_answered(1, 60)


@pytest.mark.nightly
def test_new_random_sql_is_always_answered() -> None:
    # Not a parameter: the workers of a lane must collect the same tests.
    seed = random.SystemRandom().randrange(2**32)
    print(f"seed {seed}")
    _is_always_answered(seed, 3_000)
