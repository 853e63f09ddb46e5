"""The findings of lint: a contract, and its diagnostics."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dqx_airflow.contracts.enforcement.lint import RULES, lint
from dqx_airflow.contracts.read import read_contract
from dqx_airflow.diagnostics import draw
from dqx_airflow.diagnostics.diagnostic import codes
from dqx_airflow.values import SourceFile
from dqx_airflow.values.files import shipped
from tests.command_line import dql
from tests.markdown_cases import Case, cases

HERE = Path(__file__).parent
CASES = [*cases(*(HERE / "lint").glob("*.md"))]
LACKING = """\
dataContractSpecification: 1.2.1
id: orders
info: {title: Orders, version: 1.0.0}
models:
  orders:
    fields:
      email: {type: string, description: Where it went., pii: true}
"""


@pytest.mark.parametrize("case", CASES, ids=str)
def test_lint_reports_the_findings_of_the_case(case: Case) -> None:
    block = case.block("yaml")
    found = read_contract(SourceFile("contract.yaml", block.text))
    assert found.contract is not None
    assert not found.errors, draw(found.errors, found.sources)
    only = block.option("only")
    others = [rule.name for rule in RULES if only and rule.name != only]
    case.expect(draw(lint(found.contract, ignored=others), found.sources) or "nothing")


def test_every_rule_has_a_code_of_the_table_and_a_name_of_its_own() -> None:
    assert {rule.code for rule in RULES} - set(codes()) == set()
    assert len({rule.name for rule in RULES}) == len({rule.code for rule in RULES}) == len(RULES)


def test_the_example_contract_has_no_findings() -> None:
    done = dql("contract", "lint", str(shipped("dags_examples/contracts")))
    assert done.returncode == 0, done.output
    assert "1 contract checked, no errors, no warnings" in done.output


@pytest.fixture
def folder(here: Path) -> Path:
    (here / "orders.yaml").write_text(LACKING)
    (here / "compose.yaml").write_text("services: {}\n")
    return here


def run(*arguments: str) -> tuple[int, str]:
    done = dql("contract", "lint", *arguments)
    return done.returncode, done.output


def test_warnings_fail_with_strict_only(folder: Path) -> None:
    code, output = run(".")
    assert code == 0
    assert "warning[W031]" in output
    assert "1 contract checked, no errors, 3 warnings" in output
    code, output = run(".", "--warnings-as-errors")
    assert code == 2
    assert "warning[W031]" in output


def test_a_rule_can_be_left_out_by_its_name_or_code(folder: Path) -> None:
    _, output = run(".", "--ignore", "owner", "--ignore", "W033", "--ignore", "quality")
    assert "1 contract checked, no errors, no warnings" in output
    code, output = run(".", "--ignore", "ownr")
    assert code == 2
    assert "unknown rule 'ownr': did you mean 'owner'?" in output


def test_findings_have_json_and_github_formats(folder: Path) -> None:
    _, output = run("orders.yaml", "--format", "json")
    assert [item["code"] for item in json.loads(output)] == ["W034", "W031", "W033"] or output
    _, output = run("orders.yaml", "--format", "github")
    assert "::warning file=orders.yaml" in output


def test_an_invalid_contract_is_reported(folder: Path) -> None:
    assert run("nowhere.yaml")[0] == 2
    code, output = run("compose.yaml")
    assert code == 2
    assert "E403" in output
    (folder / "orders.yaml").write_text(LACKING.replace("string", "strng"))
    code, output = run(".")
    assert code == 2
    assert "did you mean 'string'?" in output


def test_the_rules_are_listed() -> None:
    code, output = run(".", "--rules")
    assert code == 0
    assert [line.split()[0] for line in output.splitlines()] == [rule.name for rule in RULES]


@pytest.mark.few(6, apart=True)
@pytest.mark.parametrize("at", [*range(48, 53), 76, 119, 120])
@pytest.mark.parametrize(
    ("rule", "bad"), [("minimum: 0", -1), ("enum: [1, 2]", 3), ("required: true", "null")]
)
def test_an_example_is_checked_however_many_there_are_before_it(
    rule: str, bad: object, at: int
) -> None:
    rows = (f"{{id: {row}, n: {bad if row == at else 1}}}" for row in range(1, 121))
    fields = f"id: {{type: integer}}, n: {{type: integer, {rule}}}"
    text = LACKING[: LACKING.index("models")] + (
        f"models: {{orders: {{fields: {{{fields}}}}}}}\n"
        f"examples: [{{type: custom, model: orders, data: [{', '.join(rows)}]}}]\n"
    )
    contract = read_contract(SourceFile("contract.yaml", text)).contract
    assert contract is not None
    (found,) = (one for one in lint(contract) if one.code == "E421")
    assert f"row {at} of the examples of orders: " in found.message
