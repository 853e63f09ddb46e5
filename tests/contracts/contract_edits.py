"""Contracts that test cases derive from others by edits written as a diff."""

from __future__ import annotations

import re
from pathlib import Path

from dqx_airflow.contracts.model import Contract
from dqx_airflow.contracts.read import read_contract
from dqx_airflow.values import SourceFile


def base_of(path: Path) -> str:
    """The contract at the top of a file of cases."""
    found = re.search(r"^```yaml\n(.*?)^```$", path.read_text(encoding="utf-8"), re.M | re.S)
    assert found is not None, f"{path.name} has no contract at its top"
    return found[1]


def edited(text: str, diff: str) -> str:
    """The text after the edits of a diff, whose parts are separated by lines with `@@`."""
    for part in re.split(r"^@@\n", diff, flags=re.M):
        lines = part.splitlines()
        before = "".join(f"{line[1:]}\n" for line in lines if line[:1] in (" ", "-"))
        after = "".join(f"{line[1:]}\n" for line in lines if line[:1] in (" ", "+"))
        assert f"\n{text}".count(f"\n{before}") == 1, f"not once in the contract:\n{before}"
        text = f"\n{text}".replace(f"\n{before}", f"\n{after}", 1)[1:]
    return text


def contract_of(text: str, name: str = "contract.yaml") -> Contract:
    """The contract that a text holds, which has no errors."""
    found = read_contract(SourceFile(name, text))
    assert not found.errors, found.errors
    assert found.contract is not None
    return found.contract
