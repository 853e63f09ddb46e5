"""A number in a list of strings: `7` is "7", and of `007` nobody knows whether it is "007"."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.command_line import dql

DCS = """\
dataContractSpecification: 1.1.0
id: codes
info: {{title: codes, version: 1.0.0}}
models:
  t:
    type: table
    fields:
      a: {{type: string, enum: [{values}]}}
"""
ODCS = """\
apiVersion: v3.1.0
kind: DataContract
id: codes
version: 1.0.0
status: active
schema:
  - name: t
    properties:
      - name: a
        logicalType: string
        quality:
          - metric: invalidValues
            arguments: {{validValues: [{values}]}}
            mustBe: 0
"""
STRINGS = "{{type: string, enum: [{values}]}}"
ITEMS = DCS.replace(STRINGS, f"{{{{type: array, items: {STRINGS}}}}}")


def clauses(contract: str, values: str, tmp_path: Path) -> list[str]:
    """The lines about the list of values."""
    file = tmp_path / "codes.yaml"
    file.write_text(contract.format(values=values))
    done = dql("contract", "clauses", file)
    assert done.returncode == 0, done.output
    return [line for line in done.stdout.splitlines() if ".enum" in line or ".metric" in line]


@pytest.mark.parametrize("contract", [DCS, ODCS, ITEMS])
@pytest.mark.parametrize("number", ["007", "08", "1.10", "1e3", "+5", "1_000", "0x1F", ".5", "-0"])
def test_a_number_that_is_written_in_another_form_is_no_string(
    contract: str, number: str, tmp_path: Path
) -> None:
    for values in (number, f"x, {number}"):
        (line,) = clauses(contract, values, tmp_path)
        assert line.startswith("unsupported")
        assert f"write '{number}'" in line
    (line,) = clauses(contract, f"x, '{number}'", tmp_path)
    assert line.startswith("checked")


@pytest.mark.parametrize("contract", [DCS, ODCS, ITEMS])
def test_a_number_in_its_own_form_is_a_string(contract: str, tmp_path: Path) -> None:
    (line,) = clauses(contract, "7, 2.5, -3, 1.0, x", tmp_path)
    assert line.startswith("checked")


def test_a_list_of_numbers_has_them_in_any_form(tmp_path: Path) -> None:
    (line,) = clauses(DCS.replace("string", "integer"), "007, 8, 1_000", tmp_path)
    assert line.startswith("checked")
