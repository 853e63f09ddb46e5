"""Which values of a column equal a literal, or each other, has one answer for all operations.

Where an operation has no meaning for a type, it is an error, and so are all others that compare.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dqx_airflow.api import Results, SparkDatabase, Suite
from dqx_airflow.values import Status, Verdict

pytestmark = pytest.mark.spark

DAY = date(2024, 1, 1)
TEXTS = ("'a'", "'A'", "'a '", "' a'", "'b'", "'ab'", "''", "'ä'", "'a\u0308'")
WORDS = ('"a"', '"A"', '"a "', '"b"', '""', '"zz"')
MOMENTS = ("'2024-01-01 00:00:00'", "'2024-01-01 12:00:00'", "'2024-01-01 00:00:00.000001'")
TIMES = (
    *('"2024-01-01"', '"2024-01-01T00:00"', '"2024-01-01T12:00:00Z"'),
    *('"2024-01-01T13:00:00+01:00"', '"2024-01-01 00:00:00.000001"'),
)
TYPES: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "char(5)": (TEXTS, (*WORDS, '"a    "')),
    "decimal(38,38)": (
        ("0.99999999999999999999999999999999999999", "0.5", "0"),
        ("1", "0.5", "0.50"),
    ),
    "double": (
        ("0.1D", "0.0D", "-0.0D", "0.1D + 0.2D", "9007199254740992", "double('Infinity')"),
        ("0.1", "0", "-0.0", "0.3", "9007199254740992", "9007199254740993"),
    ),
    "date": (("'2024-01-01'", "'2024-01-02'"), (*TIMES[:2], '"2024-01-01T12:00"')),
    "string": (TEXTS, WORDS),
    "varchar(5)": (TEXTS, WORDS),
    "string COLLATE UTF8_LCASE": (TEXTS, WORDS),
    "string COLLATE UTF8_BINARY_RTRIM": (TEXTS, WORDS),
    "tinyint": (("1", "0", "-1", "127"), ("1", "1.0", "127", "127.5", "128")),
    "bigint": (
        ("1", "9007199254740993", "9007199254740992", "9223372036854775807"),
        ("1", "9007199254740992.0", "9007199254740993", "9223372036854775808"),
    ),
    "decimal(5,2)": (("1", "1.5", "-0.00", "999.99"), ("1", "1.50", "1.5000001", "0", "1000")),
    "decimal(38,20)": (
        ("0.1", "0.10000000000000000001", "1e17"),
        ("0.1", "0.100000000000000000011", "100000000000000000"),
    ),
    "float": (
        ("0.1", "0.0", "-0.0F", "16777216"),
        ("0.1", "0.10000000149011612", "0", "16777216", "16777217"),
    ),
    "timestamp": (MOMENTS, TIMES),
    "timestamp_ntz": (MOMENTS, TIMES),
    "boolean": (("true", "false"), ("true", "false")),
    "binary": (("X'61'", "X'62'"), ('"a"',)),
}
IN_ROWS = (
    *("x == {0}", "x in [{0}]", "x in [{0}, {0}]", "x between {0} and {0}"),
    *("x <= {0} and x >= {0}", "not x != {0}", "not (x < {0} or x > {0})"),
    "coalesce(x, x) == {0}",
)
PICKED = ("mode", "minimum", "maximum")


def _asked(literals: tuple[str, ...], *, is_text: bool) -> dict[tuple[str, str], str]:
    """An assertion for each literal and operation, none of which always passes or fails."""
    asked = {}
    for literal in literals:
        predicates = [each.format(literal) for each in IN_ROWS]
        if is_text:
            pattern = literal.strip('"')
            predicates += [f"x like {literal}", f'x matches "^{pattern}$"']
            predicates += [f"x == {literal} and length(x) == {len(pattern)}"]
        for predicate in predicates:
            asked[literal, predicate] = f"sum(bit, where {predicate}) >= 0"
        same = f"where x == {literal}"
        asked[literal, "count_values"] = f"count_values(x, {literal}) <= 99"
        asked[literal, "num_rows"] = f"num_rows({same}) <= 99"
        asked[literal, "group"] = f"sum(bit) >= 0 for each x in [{literal}]"
        for metric in PICKED:
            asked[literal, metric] = f"{metric}(x, {same}) == {literal}"
        asked[literal, "first"] = f"first(x, order_by id, {same}) == {literal}"
    return asked


@contextmanager
def _tables(spark: Any, kind: str, values: list[str]) -> Iterator[None]:
    """The table `same` with the values of a type, and `other` with them as strings without padding
    if they are strings, else of the same type."""
    other = "string" if "char" in kind else kind
    try:
        for name, of_type in (("same", kind), ("other", other)):
            spark.catalog.dropTempView(name)  # of another test, it would hide the table
            spark.sql(f"CREATE TABLE {name} (id int, bit bigint, x {of_type}) USING parquet")
            cast = "{}" if "char" in kind else f"CAST({{}} AS {of_type})"
            rows = ((cast.format(value)) for value in values)
            trimmed = "rtrim({})" if kind.startswith("char") and name == "other" else "{}"
            listed = ", ".join(
                f"({id}, {2**id}, {trimmed.format(row)})" for id, row in enumerate(rows)
            )
            spark.sql(f"INSERT INTO {name} VALUES {listed}")
        yield
    finally:
        for name in ("same", "other"):
            spark.sql(f"DROP TABLE IF EXISTS {name}")


def _run(spark: Any, assertions: Mapping[str, str]) -> Results:
    named = "\n".join(f'assert {claim} name "{name}"' for name, claim in assertions.items())
    match = 'check "M" on same, other { assert rows of same match other on (id, x) name "match" }'
    suite = Suite.from_string(f'suite "S" {{ check "C" on same {{ {named} }} {match} }}')
    database = SparkDatabase(spark, {"same": {"table": "same"}, "other": {"table": "other"}})
    return suite.run(database, DAY)


def _expect_agreement(spark: Any, kind: str, values: list[str], literals: tuple[str, ...]) -> None:
    is_text = "char" in kind or kind.startswith("string")
    asked = _asked(literals, is_text=is_text)
    between = {
        "distinct": "unique_count(x) <= 99",
        "duplicates": "count(x) - duplicate_count(x, where x is not null) <= 99",
        "lookup": "each row: x in values(x, dataset other)",
    }
    claims = {str(number): claim for number, claim in enumerate(asked.values())} | between
    with _tables(spark, kind, [*values, "NULL"]):
        verdicts = {verdict.name: verdict for verdict in _run(spark, claims).report.verdicts}
    for literal in literals:
        about = {
            operation: verdicts[str(number)]
            for number, (other, operation) in enumerate(asked)
            if other == literal
        }
        errors = {name for name, verdict in about.items() if verdict.status is Status.ERROR}
        # Groups are listed by whole dates, and floats have none.
        if errors == set(about):
            continue
        assert errors <= {"group"}, (kind, literal, errors)
        in_rows = {
            name: int(verdict.value or 0)
            for name, verdict in about.items()
            if name.startswith(("x ", "not ", "coalesce"))
        }
        assert len(set(in_rows.values())) == 1, (kind, literal, values, in_rows)
        chosen = next(iter(in_rows.values()))
        count = bin(chosen).count("1")
        for name in ("count_values", "num_rows"):
            assert about[name].value == count, (kind, literal, name, about[name].value)
        for name in (*PICKED, "first"):
            is_found = about[name].status is Status.PASSED
            assert is_found is (count > 0), (kind, literal, name, about[name])
        if not errors:
            assert int(about["group"].value or 0) == chosen, (kind, literal, "group")
    assert verdicts["distinct"].value == verdicts["duplicates"].value, kind
    for name in ("lookup", "match"):
        assert verdicts[name].status is Status.PASSED, (kind, values, verdicts[name])


@pytest.mark.nightly
@pytest.mark.parametrize("kind", TYPES)
def test_all_operations_agree_which_values_equal_a_literal(spark: Any, kind: str) -> None:
    values, literals = TYPES[kind]
    _expect_agreement(spark, kind, list(values), literals)


NESTED: Mapping[str, tuple[str, str]] = {
    "array<double>": ("array(-0.0D, 1D)", "array(0.0D, 1D)"),
    "struct<c: char(4), d: array<char(3)>>": (
        "named_struct('c', 'a', 'd', array('b'))",
        "named_struct('c', 'a', 'd', array('b'))",
    ),
    "map<string, double>": ("map('a', -0.0D, 'b', 1D)", "map('b', 1D, 'a', 0.0D)"),
    "array<map<int, map<char(2), int>>>": (
        "array(map(1, map('a', 1, 'b', 2), 2, NULL))",
        "array(map(2, NULL, 1, map('b', 2, 'a', 1)))",
    ),
    "struct<m: map<date, array<variant>>>": (
        "named_struct('m', map(date'2024-01-01', NULL, date'2024-01-02', array()))",
        "named_struct('m', map(date'2024-01-02', array(), date'2024-01-01', NULL))",
    ),
    "interval day to second": ("INTERVAL '1' DAY", "INTERVAL '24' HOUR"),
    "interval year to month": ("INTERVAL '1' YEAR", "INTERVAL '12' MONTH"),
    "variant": ("parse_json('1')", "parse_json('1.0')"),
    "array<variant>": ("array(parse_json('1'))", "array(parse_json('1.0'))"),
    "array<char(4)>": ("array('a')", "array('a')"),
    "map<char(3), char(4)>": ("map('a', 'b')", "map('a', 'b')"),
    "array<decimal(5,2)>": ("array(1.5)", "array(1.50)"),
    "struct<a: double, b: timestamp>": (
        "named_struct('a', -0.0D, 'b', timestamp'2024-01-01 00:00:00Z')",
        "named_struct('a', 0.0D, 'b', timestamp'2024-01-01 01:00:00+01:00')",
    ),
    "array<struct<a: array<double>>>": (
        "array(named_struct('a', array(-0.0D)))",
        "array(named_struct('a', array(0.0D)))",
    ),
    "array<timestamp_ntz>": (
        "array(timestamp_ntz'2024-01-01 00:00:00')",
        "array(timestamp_ntz'2024-01-01')",
    ),
    "array<binary>": ("array(X'61')", "array(X'61')"),
    "array<string COLLATE UTF8_LCASE>": ("array('a')", "array('A')"),
    "struct<c: string COLLATE UTF8_LCASE>": ("named_struct('c', 'a')", "named_struct('c', 'A')"),
    "string COLLATE UNICODE_CI": ("'a'", "'A'"),
}
"""Types without literals, each with a value in two spellings."""
OF_PAIRS = {
    "each": "each row: x == y",
    "lookup": "each row: x in values(y, dataset same)",
    "lookup back": "each row: y in values(x, dataset same)",
    "in other": "each row: x in values(x, dataset other)",
    "coalesced": "each row: coalesce(x, y) == y",
    "distinct": "unique_count(x) == 1",
    "duplicates": "duplicate_count(x) == 1",
    "keys": "duplicate_count([x, y]) == 1",
    "mode": "mode(x) == mode(y)",
    "minimum": "minimum(x) == maximum(y)",
    "first": "first(x, order_by id) == first(y, order_by id)",
}
MATCHES = {
    "keys match": "rows of same match other on (id, x)",
    "values match": "rows of same match other on (id) comparing [x, y]",
}
NEVER = ("mode", "minimum", "first")
"""What takes no nested value and nothing without an order in DQL."""


@pytest.mark.more
@pytest.mark.parametrize(
    "kind",
    [
        *list(NESTED)[:2],
        *(pytest.param(kind, marks=pytest.mark.nightly) for kind in list(NESTED)[2:]),
    ],
)
def test_equal_values_of_types_without_literals_are_equal_in_all_operations(
    spark: Any, kind: str
) -> None:
    one, other = NESTED[kind]
    _expect_pairs(spark, kind, one, other, is_equal=True)


def _expect_pairs(spark: Any, kind: str, one: str, other: str, *, is_equal: bool) -> None:
    """All operations find two values equal, or not; or those that compare nested values are errors
    of the plan, as are those that take no nested values at all."""

    def row(id: int, *values: str) -> str:
        cast = "{}" if "char" in kind else f"CAST({{}} AS {kind})"
        return f"({id}, {', '.join(map(cast.format, values))})"

    plain = kind.replace("char(3)", "string").replace("char(4)", "string")
    tables = {"same": (kind, one, other), "other": (plain, other, one)}
    try:
        for name, (held, first, second) in tables.items():
            spark.sql(f"CREATE TABLE agree_{name} (id int, x {held}, y {held}) USING parquet")
            rows = (
                (row(1, first, second), row(2, second, first))
                if is_equal
                else (row(1, first, second),)
            )
            spark.sql(f"INSERT INTO agree_{name} VALUES {', '.join(rows)}")
        named = " ".join(f'assert {claim} name "{name}"' for name, claim in OF_PAIRS.items())
        matched = " ".join(f'assert {claim} name "{name}"' for name, claim in MATCHES.items())
        checks = f'check "C" on same {{ {named} }} check "M" on same, other {{ {matched} }}'
        suite = Suite.from_string(f'suite "S" {{ {checks} }}')
        database = SparkDatabase(spark, {name: {"table": f"agree_{name}"} for name in tables})
        verdicts = {verdict.name: verdict for verdict in suite.run(database, DAY).report.verdicts}
    finally:
        for name in tables:
            spark.sql(f"DROP TABLE IF EXISTS agree_{name}")
    found = {name: verdicts[name].status for name in (*OF_PAIRS, *MATCHES) if name not in NEVER}
    counted = {found.pop(name) for name in ("distinct", "duplicates", "keys")}
    wanted = Status.PASSED if is_equal else Status.FAILED
    if is_equal:  # a row alone has one value
        assert counted in ({wanted}, {Status.ERROR}), (kind, one, other, counted)
    assert {*found.values()} in ({wanted}, {Status.ERROR}), (kind, one, other, found)
    for name, verdict in verdicts.items():
        if name in NEVER:
            assert verdict.status is Status.ERROR, (kind, name)
        if verdict.status is Status.ERROR:
            assert re.search("compare|common|needs|takes", verdict.reason or ""), verdict


def _random_value(rng: random.Random, kind: str) -> tuple[str, str, str]:
    """A value of a nested type in two spellings, and one that differs from it in one place."""
    if kind.startswith("array<"):
        one, same, other = _random_value(rng, kind[6:-1])
        tail = rng.choice(["", f", {one}", ", NULL"])
        return f"array({one}{tail})", f"array({same}{tail})", f"array({other}{tail})"
    if kind.startswith("struct<a: "):
        one, same, other = _random_value(rng, kind[10:-1])
        return tuple(f"named_struct('a', {part})" for part in (one, same, other))  # type: ignore[return-value]
    day = f"2024-01-{rng.randint(1, 27):02}"
    number = rng.randint(1, 99)
    return {
        "double": rng.choice([("-0.0D", "0.0D", "1e-300D"), (f"{number}D", f"{number}.0D", "-1D")]),
        "decimal(9,3)": (f"{number}.5", f"{number}.500", f"{number}.501"),
        "char(4)": (f"'{number}'", f"'{number}'", f"' {number}'"),
        "timestamp": (
            f"timestamp'{day} 00:00:00Z'",
            f"timestamp'{day} 05:30:00+05:30'",
            f"timestamp'{day} 00:00:00.000001Z'",
        ),
        "string COLLATE UTF8_LCASE": (f"'a{number}'", f"'A{number}'", f"'b{number}'"),
        "interval day to second": (
            f"INTERVAL '{number}' HOUR",
            f"INTERVAL '{60 * number}' MINUTE",
            f"INTERVAL '{60 * number + 1}' MINUTE",
        ),
    }[kind]


LEAVES = ("double", "decimal(9,3)", "char(4)", "timestamp", "string COLLATE UTF8_LCASE")


@pytest.mark.nightly
@pytest.mark.parametrize("leaf", [*LEAVES, "interval day to second"])
def test_new_nested_values_are_equal_in_all_operations_or_in_none(spark: Any, leaf: str) -> None:
    seed = random.SystemRandom().randrange(10**9)
    rng = random.Random(seed)
    for _ in range(3):
        kind = leaf
        for _ in range(rng.randint(1, 3)):
            kind = rng.choice(["array<{}>", "struct<a: {}>"]).format(kind)
        one, same, other = _random_value(rng, kind)
        try:
            _expect_pairs(spark, kind, one, same, is_equal=True)
            _expect_pairs(spark, kind, one, other, is_equal=False)
        except AssertionError as error:
            raise AssertionError(f"seed {seed}") from error


CHAR = """
    assert each row: c in ["a", "b"] name "in"
    assert each row: c like "a" or c like "b" name "like"
    assert each row: c matches "^[ab]$" name "matches"
    assert each row: c between "a" and "b" name "between"
    assert each row: coalesce(c, "z") in ["a", "b", "z"] name "coalesce"
    assert each row: length(c) == 1 name "length"
    assert max_length(c) == 1 name "longest"
    assert each row: code is country name "format"
    assert minimum(c) == "a" name "minimum"
    assert maximum(c) == "b" name "maximum"
    assert first(c, order_by x) == "a" name "first"
    assert count_values(c, "a") == 2 name "count"
    assert num_rows(where c like "b") == 1 name "where"
    assert each row: every(l, item == "a" or item like "b") name "items"
    assert each row: every(l, item matches "^[ab]$" and length(item) == 1) name "lengths of items"
    assert each row: every(entries(m), item.key like "a" and item.value like "b") name "entries"
    assert each row: s.c like "a" and s.d == 1 name "field"
    assert sql("max(c)") == "b" name "sql"
"""
CHAR_IN_OTHER_PASSES = """
    assert mode(c) == "a" name "mode"
    assert each row: c in values(k, dataset texts) name "lookup"
    assert query("SELECT count(*) FROM padded WHERE c LIKE 'a'") == 2 name "query"
"""


@pytest.mark.more
@pytest.mark.parametrize("is_whole", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_char_columns_have_no_padding_in_any_operation(spark: Any, is_whole: bool) -> None:
    nested = "array('a', 'b', NULL), map('a', 'b'), named_struct('c', 'a', 'd', 1)"
    rows = [f"('{c}', {x}, 'CH', {nested})" for c, x in (("a", 1), ("a", 2), ("b", 3))]
    tables: dict[str, Any] = {"padded": {"table": "padded"}, "texts": {"table": "texts"}}
    checks = f'check "C" on padded {{ {CHAR} }}'
    if is_whole:
        back = 'assert each row: k in values(c, dataset padded) name "looked up"'
        checks += (
            f' check "O" on padded {{ {CHAR_IN_OTHER_PASSES} }} check "B" on texts {{ {back} }}'
        )
    try:
        spark.sql(
            "CREATE TABLE padded (c CHAR(5), x INT, code CHAR(3), l ARRAY<CHAR(4)>, "
            "m MAP<CHAR(3), CHAR(4)>, s STRUCT<c: CHAR(9), d: INT>) USING parquet"
        )
        spark.sql(f"INSERT INTO padded VALUES {', '.join(rows)}, (NULL, 4, NULL, NULL, NULL, NULL)")
        spark.sql("CREATE TABLE texts USING parquet AS SELECT rtrim(c) AS k FROM padded")
        verdicts = list(_verdicts(spark, checks, tables))
        if is_whole:
            tables["padded"]["filter"] = "c LIKE 'a' AND s.c NOT LIKE '% '"
            few = 'check "C" on padded { assert num_rows() == 2 name "filter" }'
            verdicts += _verdicts(spark, few, tables)
    finally:
        spark.sql("DROP TABLE IF EXISTS padded")
        spark.sql("DROP TABLE IF EXISTS texts")
    wrong = {
        verdict.name: (verdict.value, verdict.reason)
        for verdict in verdicts
        if verdict.status is not Status.PASSED
    }
    assert wrong == {}


def _verdicts(spark: Any, checks: str, tables: Mapping[str, Any]) -> tuple[Verdict, ...]:
    suite = Suite.from_string(f'suite "S" {{ {checks} }}')
    used = {
        name: given
        for name, given in tables.items()
        if f"on {name}" in checks or "values(" in checks
    }
    return suite.run(SparkDatabase(spark, used), DAY).report.verdicts


@pytest.mark.nightly
@pytest.mark.parametrize("kind", ["char(5)", "string", "varchar(5)", "decimal", "bigint", "double"])
def test_all_operations_agree_about_new_values(spark: Any, kind: str) -> None:
    seed = random.SystemRandom().randrange(10**9)
    rng = random.Random(seed)
    if kind == "decimal":
        precision = rng.randint(2, 38)
        scale = rng.randint(0, precision)
        kind = f"decimal({precision},{scale})"
        numbers = [Decimal(rng.randint(-10, 10)).scaleb(-rng.randint(0, scale)) for _ in range(5)]
        largest = Decimal(f"{10**precision - 1}E-{scale}")  # `scaleb` rounds to 28 digits
        values = [f"{number:f}" for number in (*numbers, largest) if abs(number) <= largest]
        literals = [*values, "1", "0.5", f"{largest:f}1" if scale else f"{largest:f}.1"]
    elif kind == "bigint":
        values = [
            str(rng.choice([2**53, 2**62, 0, -(2**60)]) + rng.randint(-2, 2)) for _ in "12345"
        ]
        literals = [*values, *(f"{float(value):.1f}" for value in values)]
    elif kind == "double":
        values = [repr(rng.choice([1e16, 0.1, 2.0**53, 1.5]) * rng.randint(-3, 3)) for _ in "12345"]
        literals = [*(f"{Decimal(value):f}" for value in values), "9007199254740993"]
        values = [f"{value}D" for value in values]
    else:
        texts = ["".join(rng.choices("aA bé", k=rng.randint(0, 4))) for _ in range(6)]
        values = [f"'{text}'" for text in texts]
        literals = [f'"{text}"' for text in (*texts, texts[0].rstrip(), texts[1] + " ")]
    try:
        _expect_agreement(spark, kind, values, tuple(dict.fromkeys(literals)))
    except AssertionError as error:
        raise AssertionError(f"seed {seed}") from error


@pytest.mark.few(1)
@pytest.mark.parametrize("policy", ["EXCEPTION", "LAST_WIN"])
def test_a_map_with_a_key_twice_is_an_error_whatever_the_session_does_with_it(
    spark: Any, tmp_path: Path, policy: str
) -> None:
    maps = pa.array([[("a", 1), ("a", 2)], [("b", 1)], None], pa.map_(pa.string(), pa.int32()))
    pq.write_table(pa.table({"id": [1, 2, 3], "m": maps}), tmp_path / "a.parquet")
    suite = Suite.from_string(
        'suite "S" { check "C" on t { assert num_rows() == 3 name "rows" '
        'assert unique_count(m) == 2 name "unique" assert each row: size(m) == 1 name "sizes" } }'
    )
    before = spark.conf.get("spark.sql.mapKeyDedupPolicy")
    spark.conf.set("spark.sql.mapKeyDedupPolicy", policy)
    try:
        database = SparkDatabase(spark, {"t": {"path": str(tmp_path), "format": "parquet"}})
        verdicts = {item.name: item for item in suite.run(database, DAY).report.verdicts}
    finally:
        spark.conf.set("spark.sql.mapKeyDedupPolicy", before)
    assert verdicts["rows"].status is Status.PASSED
    for name in ("unique", "sizes"):
        assert verdicts[name].status is Status.ERROR
        assert "holds a key twice" in (verdicts[name].reason or "")
