"""`dql check` accepts the suite of every contract, whatever its rules and names are."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dqx_airflow.contracts import demands
from dqx_airflow.contracts import model as m
from dqx_airflow.contracts.compile.suite import compile_contract
from dqx_airflow.contracts.enforcement.coverage import coverage
from dqx_airflow.contracts.field_types import with_type
from dqx_airflow.contracts.model import Treatment, column_path
from dqx_airflow.diagnostics import draw
from dqx_airflow.dql.check import check_source
from dqx_airflow.dql.formatter import format_source
from dqx_airflow.dql.syntax.grammar import grammar
from dqx_airflow.values import Severity, SourceFile, Span

_KEYWORDS = [
    terminal.pattern.value for terminal in grammar().terminals if terminal.pattern.type == "str"
]
NAMES = st.one_of(
    st.sampled_from(
        ["id", "Order", "a.b", "zip code", "`", "None", 'q"', "a\nb", "\0", "${x}", "#"]
    ),
    st.sampled_from(_KEYWORDS),
    st.text(min_size=1, max_size=8),
)
PATHS = st.one_of(NAMES.map(column_path), st.sampled_from(["id", "id.x", "tags[]", "m{key}", ""]))
NUMBERS = st.one_of(st.integers(), st.floats(), st.integers(-5, 5))
LITERALS = st.one_of(st.text(max_size=12), NUMBERS, st.booleans(), st.none(), st.just("2024-01-31"))
TYPES = st.sampled_from(
    [
        *(None, "number", "whole_number", "text", "any", "string", "int", "decimal(9,2)", "date"),
        *("timestamp", "boolean", "binary", "double", "array<int>", "map<string,int>"),
        *("struct<a:int,b:array<string>>", "array<struct<a:int,`b c`:map<string,date>>>"),
    ]
)
PATTERNS = st.one_of(
    st.text(alphabet=st.sampled_from('ab0^$.*+?()[]{}|\\dwsbSB-&,:=!<>kpuAZ"`/\n'), max_size=14),
    st.text(max_size=6),
)
WORDS_OF_SQL = [
    *("SELECT", "FROM", "t", "n", ">", "0", "(", ")", "count(*)", ",", "'a'", "AND", "NOT", "IN"),
    *("{model}", '"', "`", "*", "="),
]
SQL = st.one_of(
    st.sampled_from(
        [
            "n > 0",
            "n IN (SELECT id FROM other)",
            "SELECT count(*) FROM {model} WHERE n <> 1",
            "SELECT max(`{field}`) FROM ${table}",
            "SELECT 1; DROP TABLE x",
            "count(*) > 0 AND \"x\" like '%\\_'",
            "SELECT sum(n) OVER (ORDER BY n) FROM t",
        ]
    ),
    st.text(max_size=20),
    st.lists(st.sampled_from(WORDS_OF_SQL), max_size=10).map(" ".join),
)
DIALECTS = st.sampled_from(
    [None, "postgres", "duckdb", "snowflake", "bigquery", "tsql", "nonsense"]
)
OPS = st.sampled_from(["==", "!=", ">", ">=", "<", "<=", "between", "not between"])
CONDITIONS = st.builds(demands.Condition, OPS, NUMBERS, NUMBERS)
COLUMNS = st.lists(PATHS, max_size=3).map(tuple)
METRICS = st.sampled_from(
    ["num_rows", "null_count", "duplicate_count", "invalid_count", "missing_count", "average", "x"]
)
SHARES = st.floats(0, 1)
VALUES = st.lists(LITERALS, max_size=4).map(tuple)
SECONDS = st.one_of(st.floats(), st.integers(-5, 10**9))
DEMANDS = st.one_of(
    st.sampled_from(
        [
            demands.Presence(),
            demands.OfType(),
            demands.OnlyColumns(),
            demands.Required(),
            demands.UniqueItems(),
        ]
    ),
    st.builds(demands.Unique, COLUMNS),
    st.builds(demands.Refers, COLUMNS, NAMES, COLUMNS),
    st.builds(demands.Pattern, PATTERNS),
    st.builds(demands.OfFormat, st.sampled_from(["email", "date", "x y", ""])),
    st.builds(demands.OneOf, VALUES),
    st.builds(demands.Bound, st.sampled_from([">", ">=", "<", "<="]), LITERALS),
    st.builds(demands.Length, st.sampled_from([">=", "<="]), st.integers()),
    st.builds(demands.MultipleOf, NUMBERS),
    st.builds(demands.Digits, st.integers(-2, 50), st.integers(-2, 50)),
    st.builds(
        demands.MetricRule,
        METRICS,
        COLUMNS,
        CONDITIONS,
        st.booleans(),
        VALUES,
        st.none() | PATTERNS,
    ),
    st.builds(demands.Complete, PATHS, SHARES),
    st.builds(demands.Distinct, COLUMNS, SHARES),
    st.builds(demands.RowsSatisfy, SQL, DIALECTS, SHARES),
    st.builds(demands.QueryGives, SQL, CONDITIONS, DIALECTS),
    st.builds(demands.Fresh, PATHS, SECONDS),
    st.builds(demands.Prompt, PATHS, PATHS, SECONDS, SHARES),
    st.builds(demands.Retained, PATHS, SECONDS),
    st.builds(
        demands.Volume, st.none() | NUMBERS, st.none() | NUMBERS, st.none() | NUMBERS, st.just(7)
    ),
    st.builds(demands.HourlyVolume, PATHS, st.none() | NUMBERS, st.none() | NUMBERS),
    st.builds(demands.Arrives, st.none() | PATHS, SECONDS),
)
RULES = st.builds(
    m.Rule,
    st.sampled_from(["exists", "type", "a", "b", "b c"]),
    DEMANDS,
    st.integers(1, 500).map(lambda n: (m.Clause(f"at[{n}]", "", Span("c.yaml", n, 1, n, 2)),)),
    st.sampled_from([None, *Severity]),
    st.one_of(st.none(), st.text(max_size=5)),
    st.one_of(st.none(), st.text(max_size=150)),
    st.lists(st.text(max_size=5), max_size=2).map(tuple),
    SHARES,
)
SPAN = Span("c.yaml", 1, 1, 1, 2)


@st.composite
def fields(draw: st.DrawFn) -> m.Field:
    name, written = draw(NAMES), draw(TYPES)
    item = m.Field(name, column_path(name), written, SPAN)
    if written is not None and "<" in written:
        item = with_type(item, written)
    item = replace(item, rules=tuple(draw(st.lists(RULES, max_size=3))))
    if item.items is not None:
        item = replace(
            item, items=replace(item.items, rules=tuple(draw(st.lists(RULES, max_size=2))))
        )
    return item


MODELS = st.builds(
    m.Model,
    NAMES,
    st.just(SPAN),
    st.lists(fields(), max_size=3).map(tuple),
    st.lists(RULES, max_size=3).map(tuple),
)
CONTRACTS = st.builds(
    m.Contract,
    st.sampled_from(list(m.Dialect)),
    st.just("1"),
    st.text(max_size=5),
    st.text(max_size=5),
    st.just(SPAN),
    name=st.none() | st.text(max_size=9),
    models=st.lists(MODELS, max_size=2).map(tuple),
)


@pytest.mark.more
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(CONTRACTS)
def test_the_suite_of_any_contract_is_sound(contract: m.Contract) -> None:
    compiled = compile_contract(contract)
    source = SourceFile("suite.dql", compiled.text)
    checked = check_source(source, needs_suite=True)
    assert not checked.errors, draw(checked.errors, {source.name: source.text})
    assert format_source(source) == compiled.text
    assert compile_contract(contract) == compiled


@pytest.mark.slow
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(CONTRACTS)
def test_every_rule_is_enforced_or_refused_with_a_reason(contract: m.Contract) -> None:
    compiled = compile_contract(contract)
    pairs = (*compiled.enforced, *compiled.included)
    refused = {note.clause.path for note in compiled.notes}
    kept = {clause.path for _, rule in pairs for clause in rule.clauses}
    rules = [rule for _, _, rule in contract.rules()]
    assert len(pairs) + len(compiled.notes) == len(rules)
    assert kept | refused == {clause.path for rule in rules for clause in rule.clauses}
    assert {note.treatment for note in compiled.notes} <= {Treatment.UNSUPPORTED}
    assert [note for note in compiled.notes if not note.reason] == []
    by_path = {clause.path: clause for clause in coverage(contract, compiled)}
    checked = {path for path, clause in by_path.items() if clause.treatment is Treatment.CHECKED}
    # Of rules that share a clause, all have to be enforced.
    assert checked == kept - refused
