"""`dql contract to-suite` and `dql contract clauses`: their output and exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from dqx_airflow.cli.main import app

CONTRACT = """\
contract: {name: Customers, version: "1.0.0"}
schema:
  fields:
    - {name: id, type: string, nullable: false}
"""
SUITE = """\
# Compiled from the contract Customers 1.0.0 (product): change that, not this file.
suite "Customers" {
    check "Customers" on Customers {
        assert column id exists
            name "Customers.id.exists"
            tags [product]

        assert column id fits string
            name "Customers.id.type"
            tags [product]

        assert null_count(id) == 0
            name "Customers.id.required"
            tags [product]

        assert extra_column_count([id]) == 0
            name "Customers.only_columns"
            tags [product]
    }
}
"""
UNSUPPORTED = CONTRACT.replace("nullable: false", 'pattern: "a|\\\\Z"')


@pytest.fixture
def contract(here: Path) -> Path:
    path = Path("customers.yaml")
    path.write_text(CONTRACT)
    return path


def dql(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["contract", *arguments])


def test_to_suite_prints_the_suite(contract: Path) -> None:
    result = dql("to-suite", "customers.yaml")
    assert (result.exit_code, result.stdout) == (0, SUITE)


def test_to_suite_writes_a_file(contract: Path) -> None:
    assert dql("to-suite", "customers.yaml", "--output", "customers.dql").stdout == ""
    assert Path("customers.dql").read_text() == SUITE


def test_an_unwritable_file_is_reported(contract: Path) -> None:
    result = dql("to-suite", "customers.yaml", "--output", "no/such/folder.dql")
    assert result.exit_code == 2
    assert result.stderr == "error: cannot write no/such/folder.dql: No such file or directory\n"


def test_check_compares_a_suite_with_its_contract(contract: Path) -> None:
    Path("customers.dql").write_text(SUITE)
    result = dql("to-suite", "customers.yaml", "--compare", "customers.dql")
    assert result.exit_code == 0
    assert result.stdout == "customers.dql matches the contract\n"


def test_check_shows_how_suite_and_contract_differ(contract: Path) -> None:
    Path("customers.dql").write_text(
        SUITE.replace("== 0\n            name", "<= 5\n            name", 1)
    )
    result = dql("to-suite", "customers.yaml", "--compare", "customers.dql")
    assert result.exit_code == 1
    assert result.stdout.splitlines()[:2] == [
        "--- customers.dql",
        "+++ compiled from the contract now",
    ]
    assert (
        "-        assert null_count(id) <= 5\n+        assert null_count(id) == 0\n"
        in result.stdout
    )


def test_a_missing_suite_is_reported(contract: Path) -> None:
    result = dql("to-suite", "customers.yaml", "--compare", "none.dql")
    assert result.exit_code == 2
    assert result.stderr.startswith("error: none.dql: ")


def test_a_contract_with_errors_ends_the_command(contract: Path) -> None:
    contract.write_text(CONTRACT.replace("string", "strin"))
    for verb in ("to-suite", "clauses"):
        result = dql(verb, "customers.yaml")
        assert result.exit_code == 2
        assert "error[E405]" in result.stderr


def test_coverage_prints_a_table_and_the_counts(contract: Path) -> None:
    result = dql("clauses", "customers.yaml")
    assert result.exit_code == 0
    lines = [line.split() for line in result.stdout.splitlines()]
    assert lines[:3] == [
        ["Customers"],
        ["treatment", "line", "place", "why"],
        ["documented", "1", "contract.name"],
    ]
    assert ["checked", "4", "schema.fields[0].type", "Customers.id.type"] in lines
    assert result.stdout.endswith("5 clauses: 3 checked, 2 documented, 0 unsupported\n")


def test_coverage_fails_on_unsupported_clauses_on_request(contract: Path) -> None:
    assert dql("clauses", "customers.yaml", "--fail-on", "unsupported").exit_code == 0
    contract.write_text(UNSUPPORTED)
    assert dql("clauses", "customers.yaml").exit_code == 0
    result = dql("clauses", "customers.yaml", "--fail-on", "unsupported")
    assert result.exit_code == 1
    assert "write $" in result.stdout


def test_coverage_names_the_referenced_file_of_a_clause(tmp_path: Path) -> None:
    (tmp_path / "parts.yaml").write_text("d: {type: string, required: true}\n")
    path = tmp_path / "orders.yaml"
    path.write_text(
        "dataContractSpecification: 1.2.1\nid: r\ninfo: {title: R, version: 1.0.0}\n"
        "models: {m: {fields: {a: {$ref: 'parts.yaml#/d'}}}}\n"
    )
    for form in ("text", "markdown"):
        lines = dql("clauses", str(path), "--format", form).stdout.splitlines()
        (row,) = (line for line in lines if "d.required" in line)
        assert "parts.yaml:1" in row
        assert [line for line in lines if "orders.yaml:" in line] == []


def test_coverage_prints_json(contract: Path) -> None:
    contract.write_text(UNSUPPORTED)
    (found,) = json.loads(dql("clauses", "customers.yaml", "--format", "json").stdout)
    assert found["contract"] == "Customers"
    assert found["counts"] == {"checked": 2, "documented": 2, "accepted": 0, "unsupported": 1}
    assert found["clauses"][-1] == {
        "path": "schema.fields[0].pattern",
        "file": "customers.yaml",
        "line": 4,
        "treatment": "unsupported",
        "reason": (
            "the pattern cannot be translated to Java: \\Z means the letter Z in ECMA-262: write $"
        ),
        "assertions": [],
    }


def test_coverage_prints_markdown_for_several_contracts(contract: Path) -> None:
    Path("other.yaml").write_text(UNSUPPORTED.replace("Customers", "Other|s"))
    result = dql("clauses", "customers.yaml", "other.yaml", "--format", "markdown")
    assert result.exit_code == 0
    assert "## Customers\n\n5 clauses: 3 checked, 2 documented, 0 unsupported\n" in result.stdout
    assert "| checked | 4 | `schema.fields[0].type` | Customers.id.type |\n" in result.stdout
    assert "## Other\\|s\n" in result.stdout
