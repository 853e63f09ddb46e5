"""The official linter of ODCS and Great Expectations read all that `dql contract export` writes,
each in an environment of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from dqx_airflow.contracts.export import FORMATS
from dqx_airflow.contracts.model import Contract
from tests.contracts.test_export_odcs import CONTRACTS

pytestmark = pytest.mark.nightly

_ONLY_OURS = (
    "odcs: orders_3_1.yaml",
    "odcs: odcs_parts: References by name, by id, and to other contracts",
    "odcs: odcs_parts: Parts of another type, and options of none, have no effect",
)
"""Contracts that refer to a property of another file by its name, or have options without a type:
the standard has neither, and an export keeps them."""

_LINT = """
import json, sys
from datacontract.data_contract import DataContract
texts = json.load(sys.stdin)
found = {}
for name, text in texts.items():
    run = DataContract(data_contract_str=text).lint()
    wrong = [
        check.reason
        for check in run.checks
        if check.result.value in ("failed", "error") and "valid against" in check.name
    ]
    if wrong:
        found[name] = wrong
print(json.dumps(found))
"""
_LOAD = """
import json, sys
from great_expectations import ExpectationSuite
found = {}
for name, text in json.load(sys.stdin).items():
    try:
        ExpectationSuite(**json.loads(text))
    except Exception as error:
        found[name] = str(error)[:500]
print(json.dumps(found))
"""


def _run(folder: Path, package: str, code: str, texts: dict[str, str]) -> dict[str, object]:
    """The JSON that a program prints in a fresh environment with a package; it gets the texts."""
    uv = Path(sys.executable).with_name("uv")
    subprocess.run([uv, "venv", "--quiet", folder / "env"], check=True)
    python = folder / "env" / "bin" / "python"
    subprocess.run([uv, "pip", "install", "--quiet", "-p", python, package], check=True)
    done = subprocess.run(
        [python, "-c", code], input=json.dumps(texts), capture_output=True, text=True, check=True
    )
    found: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_the_official_linter_accepts_every_export(tmp_path: Path) -> None:
    texts = {
        name: FORMATS["odcs"].write(contract).text
        for name, contract in CONTRACTS.items()
        if name not in _ONLY_OURS
    }
    assert _run(tmp_path, "datacontract-cli", _LINT, texts) == {}


def test_great_expectations_loads_every_exported_suite(tmp_path: Path) -> None:
    assert _run(tmp_path, "great_expectations", _LOAD, dict(_suites())) == {}


def _suites() -> list[tuple[str, str]]:
    return [
        (
            f"{name}, {model.name}",
            FORMATS["great-expectations"].write(_alone(contract, model.name)).text,
        )
        for name, contract in CONTRACTS.items()
        for model in contract.models
    ]


def _alone(contract: Contract, name: str) -> Contract:
    return replace(contract, models=tuple(item for item in contract.models if item.name == name))
