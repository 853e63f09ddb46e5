"""The reader of the Open Data Contract Standard, on whole contracts and parts."""

from __future__ import annotations

import pytest
from contract_text import misaccounted, show_contract
from dialect_parts import EXAMPLES, HERE, contracts_of, part_cases, read_text, show_part
from markdown_cases import Case, cases

from dqx_airflow.contracts.model import Dialect
from dqx_airflow.diagnostics import draw

CASES = HERE / "cases"
EXAMPLE_CASES = list(cases(CASES / "odcs_examples.md", fewest_blocks=1))
CONTRACTS = contracts_of("odcs")


@pytest.mark.parametrize("case", part_cases("odcs"), ids=str)
def test_a_part_makes_these_rules_and_leaves_this_unsupported(case: Case) -> None:
    case.expect(show_part(case.block("yaml")))


@pytest.mark.parametrize("case", list(cases(CASES / "odcs_malformed.md")), ids=str)
def test_errors_of_a_contract_are_drawn_at_their_location(case: Case) -> None:
    found = read_text(case.block("yaml").text)
    case.expect(draw(found.diagnostics, found.sources))


@pytest.mark.parametrize("case", EXAMPLE_CASES, ids=str)
def test_a_whole_contract_is_read_as_shown(case: Case) -> None:
    case.expect(show_contract(read_text((EXAMPLES / "odcs" / case.title).read_text("utf-8"))))


def test_every_example_is_shown_and_sound() -> None:
    examples = sorted(path.name for path in EXAMPLES.glob("odcs/*.yaml"))
    assert [case.title for case in EXAMPLE_CASES] == examples
    for name in examples:
        found = read_text(CONTRACTS[name])
        assert found.contract is not None
        assert found.contract.dialect is Dialect.ODCS
        assert not found.errors


@pytest.mark.parametrize("name", CONTRACTS)
def test_every_leaf_has_either_a_rule_or_a_note(name: str) -> None:
    assert misaccounted(read_text(CONTRACTS[name])) == []
