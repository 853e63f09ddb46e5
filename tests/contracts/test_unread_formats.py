"""Formats that are not read are named, and no other file is taken for them."""

from __future__ import annotations

from pathlib import Path

import pytest

from dqx_airflow.contracts.read import read_contract
from dqx_airflow.values import SourceFile

ROWS = [
    [cell.strip() for cell in line.split(" | ")]
    for line in Path(__file__).with_name("unread_formats.txt").read_text("utf-8").splitlines()
    if line and not line.startswith("#")
]


@pytest.mark.parametrize(("message", "document"), ROWS, ids=[row[1] for row in ROWS])
def test_a_format_that_is_not_read_is_named(message: str, document: str) -> None:
    found = read_contract(SourceFile("contract.yaml", document.replace("; ", "\n")))
    assert any(message in f"{error.message}," for error in found.errors), found.errors
    assert found.errors[0].help
