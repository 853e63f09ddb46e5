"""Contracts compiled to suites: the claims of each demand, and whole suites.

In `claims` bare rules stand above what is claimed for them, `suites` have contracts above the text
of their suites.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from dqx_airflow.contracts import demands
from dqx_airflow.contracts.compile.suite import Compiled, compile_contract
from dqx_airflow.contracts.demands import Demand
from dqx_airflow.contracts.read import read_contract
from dqx_airflow.diagnostics import draw
from dqx_airflow.dql.check import check_source
from dqx_airflow.dql.formatter import format_source
from dqx_airflow.dql.printer import show_claim, show_where
from dqx_airflow.values import DatasetRef, SourceFile
from tests.contracts.written_rules import written_contract
from tests.markdown_cases import Case, cases

HERE = Path(__file__).parent
CLAIMS = list(cases(*HERE.glob("claims/*.md")))
SUITES = list(cases(*HERE.glob("suites/*.md")))


@pytest.mark.few(6, apart=True)
@pytest.mark.parametrize("case", CLAIMS, ids=str)
def test_a_rule_becomes_what_the_case_claims(case: Case) -> None:
    block = case.block("rules")
    undated = [DatasetRef(name, path="p") for name in block.option("undated").split(",") if name]
    compiled = compile_contract(written_contract(block.text), undated)
    is_sound(compiled)
    case.expect(_claims(compiled))


@pytest.mark.parametrize("case", SUITES, ids=str)
def test_a_contract_becomes_the_suite_of_the_case(case: Case) -> None:
    source = SourceFile("contract.yaml", case.block("yaml").text)
    read = read_contract(source)
    assert not read.errors, draw(read.errors, read.sources)
    assert read.contract is not None
    compiled = compile_contract(read.contract)
    is_sound(compiled)
    case.expect(compiled.text)


WITHOUT_ORDER = {
    demands.WrittenAs,
    demands.Presence,
    demands.OfType,
    demands.OfOneType,
    demands.OnlyColumns,
    demands.Required,
    demands.Refers,
    demands.Pattern,
    demands.OfFormat,
    demands.TimeText,
    demands.UniqueItems,
}
WITHOUT_EXPECTATION = {
    demands.WrittenAs,
    demands.OnlyColumns,
    demands.AllComplete,
    demands.UniqueItems,
    demands.QueryGives,
    demands.Volume,
    demands.HourlyVolume,
    demands.Arrives,
}
MORE_THAN_A_SCHEMA = {
    demands.AllComplete,
    demands.AmongRows,
    demands.Complete,
    demands.Distinct,
    demands.Fresh,
    demands.MetricRule,
    demands.Prompt,
    demands.QueryGives,
    demands.RowsSatisfy,
    demands.Volume,
}


def _kinds_below(kind: type[Demand]) -> Iterator[type[Demand]]:
    """The kinds of demands below a class: the classes that have no subclass."""
    for inner in kind.__subclasses__():
        if inner.__subclasses__():
            yield from _kinds_below(inner)
        else:
            yield inner


def test_every_kind_of_demand_answers_all_its_readers() -> None:
    """A new kind decides on each: its claim, its words, its order, its expectation, lint."""
    kinds = set(_kinds_below(Demand))
    of_values = {kind for kind in kinds if issubclass(kind, demands.ValueDemand)}
    without_claim = {kind for kind in kinds if kind.claim is Demand.claim}
    without_claim |= {
        kind
        for kind in of_values
        if kind.claim is demands.ValueDemand.claim
        and kind.predicate is demands.ValueDemand.predicate
    }
    unordered = {kind for kind in kinds if not kind.stricter and kind.order is Demand.order}
    mute = {kind for kind in kinds if kind.expectation is Demand.expectation}
    of_quality = {kind for kind in kinds if kind.is_quality}
    missing = {
        "claim, or predicate": without_claim,
        "words, or text": {kind for kind in kinds if not kind.words and "text" not in vars(kind)},
        "stricter, or order, or an entry of WITHOUT_ORDER": unordered ^ WITHOUT_ORDER,
        "expectation, or an entry of WITHOUT_EXPECTATION": mute ^ WITHOUT_EXPECTATION,
        "an entry of MORE_THAN_A_SCHEMA": of_quality ^ MORE_THAN_A_SCHEMA,
    }
    assert {what: {kind.__name__ for kind in of} for what, of in missing.items() if of} == {}


@pytest.mark.nightly
def test_ten_thousand_values_are_one_readable_assertion() -> None:
    values = tuple(f"value {number}" for number in range(10_000))
    contract = written_contract(f"model t\ncolumn id string\nid.enum = OneOf({values})")
    compiled = compile_contract(contract)
    is_sound(compiled)
    assert [name for name, _ in compiled.enforced] == ["t.id.enum"]
    assert max(map(len, compiled.text.splitlines())) <= 100


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        ("(" * 3000 + "n > 1" + ")" * 3000, "the SQL is nested too deeply"),
        (" AND ".join(["n > 1"] * 5000), "it is nested too deeply"),
    ],
)
def test_deeply_nested_sql_is_refused(sql: str, reason: str) -> None:
    compiled = compile_contract(written_contract(f"model t\n.a = RowsSatisfy({sql!r})"))
    is_sound(compiled)
    assert [note.reason for note in compiled.notes] == [reason]


def test_titles_of_cases_are_unique() -> None:
    titles = [str(case) for case in (*CLAIMS, *SUITES)]
    assert len(titles) == len(set(titles))


def is_sound(compiled: Compiled) -> None:
    """`dql check` finds no error in the suite, and `dql fmt` nothing to change."""
    source = SourceFile("suite.dql", compiled.text)
    checked = check_source(source, needs_suite=True)
    assert not checked.errors, draw(checked.errors, {source.name: source.text})
    assert format_source(source) == compiled.text
    assert checked.suite is not None
    names = [item.name.value for check in checked.suite.checks for item in check.assertions]
    assert sorted(names) == sorted(name for name, _ in compiled.enforced)


def _claims(compiled: Compiled) -> str:
    """The claims, with the datasets of their check where there are several, and what is refused."""
    suite = check_source(SourceFile("suite.dql", compiled.text)).suite
    assert suite is not None
    lines = []
    for check in suite.checks:
        names = [dataset.text for dataset in check.datasets]
        if len(names) > 1 or len(suite.checks) > 1:
            lines.append(f"on {', '.join(names)}")
        for item in check.assertions:
            assert item.name is not None
            severity = f" {item.severity.text}" if item.severity else ""
            lines.append(
                f"{item.name.value}{severity}: {show_claim(item.claim)}{show_where(item.where)}"
            )
    lines += [f"{name} also has {rule.clauses[0].path}" for name, rule in compiled.included]
    lines += [f"refused: {note.clause.path}\n    {note.reason}" for note in compiled.notes]
    return "\n".join(lines)
