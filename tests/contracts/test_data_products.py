"""Data products of ODPS: their ports name contracts and versions that exist."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.command_line import dql

CONTRACT = """\
dataContractSpecification: 1.2.1
id: {id}
info: {{title: Orders, version: {version}, owner: checkout}}
models:
  orders:
    description: Each order once.
    primaryKey: [number]
    fields:
      number: {{type: string, description: The number on the invoice.}}
"""
TOP = "apiVersion: v1.1.0\nkind: DataProduct\nid: sales\n"
OF_STANDARD = """\
apiVersion: v1.0.0
kind: DataProduct
id: sales
name: Sales
version: 3.0.0
status: active
domain: seller
tenant: Retail
description: {purpose: Revenue for everybody.}
tags: [sales]
inputPorts:
  - {name: orders, version: v1.0.0, contractId: orders, tags: [raw]}
  - {name: orders, version: v1.1.0, contractId: orders}
  - {name: manual}
outputPorts:
  - name: revenue
    description: Revenue of each day
    type: tables
    version: 2.0.0
    contractId: revenue
    sbom: [{type: external, url: "https://example.org/sbom"}]
    inputContracts: [{id: orders, version: "1"}]
managementPorts:
  - {name: dictionary, content: dictionary, type: topic, description: Updates}
support:
  - {channel: help, url: "mailto:data@example.org"}
team: {name: Sales, members: [{username: ada}]}
productCreatedTs: "2023-01-15T10:30:00Z"
"""


@pytest.fixture(autouse=True)
def folder(here: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("DQX_CONTRACT_REGISTRY", raising=False)
    Path("contracts").mkdir()
    for id, version in (("orders", "1.0.0"), ("orders", "1.1.0"), ("revenue", "2.0.0")):
        path = Path("contracts", f"{id}-{version}.yaml")
        path.write_text(CONTRACT.format(id=id, version=version))
    return here


def run(*arguments: str, verb: str = "lint") -> tuple[int, str]:
    done = dql("contract", verb, *arguments)
    return done.returncode, done.output


def errors(*arguments: str) -> list[str]:
    """The errors of lint with their places."""
    code, output = run(*arguments, "--format", "github")
    found = [line for line in output.splitlines() if line.startswith("::error")]
    assert code == (2 if found else 0), output
    return [
        f"{line.partition('line=')[2].partition(',')[0]}: {line.rpartition('::')[2]}"
        for line in found
    ]


def product(text: str) -> Path:
    path = Path("sales.odps.yaml")
    path.write_text(text)
    return path


def test_a_product_with_every_key_of_the_standard_has_no_errors() -> None:
    product(OF_STANDARD)
    code, output = run(".", "--ignore", "quality")
    assert code == 0, output
    assert "3 contracts and 1 data product checked, no errors, no warnings" in output


def test_products_in_a_folder_are_found() -> None:
    product(OF_STANDARD)
    assert "1 data product checked" in run(".")[1]


WRONG = {
    "no such contract": (
        "outputPorts:\n  - name: a\n    contractId: order\n",
        ["6: outputPorts[0].contractId: no contract has the id 'order'"],
    ),
    "no such version": (
        "inputPorts:\n  - {name: a, contractId: orders, version: 1.2.0}\n",
        ["5: inputPorts[0].version: orders has no version 1.2.0"],
    ),
    "no such version of a needed contract": (
        "outputPorts:\n  - name: a\n    inputContracts:\n      - {id: orders, version: v3}\n",
        ["7: outputPorts[0].inputContracts[0].version: orders has no version v3"],
    ),
    "no such needed contract": (
        "outputPorts:\n  - name: a\n    inputContracts:\n      - {id: items, version: '1'}\n",
        ["7: outputPorts[0].inputContracts[0].id: no contract has the id 'items'"],
    ),
    "a version that is none": (
        "inputPorts:\n  - {name: a, contractId: orders, version: latest}\n",
        ["5: inputPorts[0].version: orders has no version latest"],
    ),
    "a misspelled key": (
        "inputPorts:\n  - {name: a, contractID: orders}\n",
        ["5: inputPorts[0] has unknown keys: 'contractID'"],
    ),
    "a port without a name": (
        "inputPorts:\n  - {contractId: orders}\n",
        ["5: inputPorts[0] has no 'name'"],
    ),
    "ports are no list": ("inputPorts: orders\n", ["4: inputPorts is 'orders', not a list"]),
    "a port is no mapping": ("inputPorts: [a]\n", ["4: inputPorts[0] is 'a', not a mapping"]),
    "an id that is a list": (
        "inputPorts:\n  - {name: a, contractId: [orders]}\n",
        ["5: inputPorts[0].contractId is a list, not a text"],
    ),
    "a number as a version": (
        "outputPorts:\n  - {name: a, version: 1.0}\n",
        ["5: outputPorts[0].version is 1.0, not a text"],
    ),
    "an unknown variable": (
        "outputPorts:\n  - {name: a, contractId: '${NAME}'}\n",
        ["5: outputPorts[0].contractId has the unknown variable 'NAME'"],
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_reported_at_its_line(name: str) -> None:
    text, expected = WRONG[name]
    product(TOP + text)
    found = [line.partition("%0A")[0] for line in errors(".")]
    assert found == expected


RIGHT = {
    "all versions with the same number": "{name: a, contractId: orders, version: '1'}",
    "with a letter": "{name: a, contractId: orders, version: v1.1.0}",
    "any version": "{name: a, contractId: orders}",
    "no contract": "{name: a, version: 7.0.0}",
    "a variable with a default": "{name: a, contractId: '${NAME:-orders}'}",
    "our own key": "{name: a, x-note: something}",
}


@pytest.mark.parametrize("name", RIGHT)
def test_what_exists_is_found(name: str) -> None:
    product(f"{TOP}inputPorts:\n  - {RIGHT[name]}\n")
    assert errors(".") == []


def test_a_variable_of_the_settings_names_a_contract() -> None:
    product(f"{TOP}inputPorts:\n  - {{name: a, contractId: '${{NAME}}'}}\n")
    Path("dqx.toml").write_text('[contracts.variables]\nNAME = "orders"\n')
    assert errors(".") == []


@pytest.mark.parametrize("version", ["v2.0.0", "1.1.0"])
def test_other_versions_of_the_standard_are_errors(version: str) -> None:
    product(TOP.replace("v1.1.0", version))
    (found,) = errors(".")
    assert f"apiVersion: '{version}' is not an allowed value" in found


def test_a_contract_may_be_in_the_registry() -> None:
    text = OF_STANDARD.replace("contractId: revenue", "contractId: revenue\n    x-a: b")
    product(text)
    for path in sorted(Path("contracts").iterdir()):
        assert run("publish", str(path), "--registry", "reg", verb="registry")[0] == 0
    assert errors("sales.odps.yaml", "--registry", "reg") == []
    product(text.replace("version: 2.0.0", "version: 2.1.0"))
    (found,) = errors("sales.odps.yaml", "--registry", "reg")
    assert "revenue has no version 2.1.0" in found
    assert len(errors("sales.odps.yaml", "--registry", "empty")) == 4


def test_without_any_contract_the_ports_are_not_looked_up() -> None:
    product(OF_STANDARD)
    code, output = run("sales.odps.yaml")
    assert code == 0
    assert "were not looked up: give the folder of the contracts, too, or --registry" in output
    assert "no contracts and 1 data product checked, no errors" in output


def test_other_commands_say_that_it_is_no_contract() -> None:
    product(OF_STANDARD)
    code, output = run("sales.odps.yaml", verb="clauses")
    assert code == 2
    assert "error[E403]: this is a data product, not a contract" in output
    assert "Traceback" not in output
