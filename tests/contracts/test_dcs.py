"""The reader of the Data Contract Specification, on whole contracts and parts."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from contract_parts import CASES, EXAMPLES, read_text, show_part, whole
from contract_text import misaccounted, show_contract
from markdown_cases import Case, cases

from dqx_airflow.contracts.read import read_contract
from dqx_airflow.diagnostics import draw
from dqx_airflow.values import SourceFile

OWN_PARTS = ("dcs_fields", "dcs_quality", "dcs_older_quality", "dcs_service_levels")
PARTS = (*OWN_PARTS, "soda", "great_expectations")
OWN = list(cases(*(CASES / f"{name}.md" for name in OWN_PARTS)))


@pytest.mark.parametrize("case", OWN, ids=str)
def test_a_part_makes_these_rules_and_leaves_this_unsupported(case: Case) -> None:
    case.expect(show_part(case.block("yaml")))


@pytest.mark.parametrize("case", list(cases(CASES / "dcs_malformed.md")), ids=str)
def test_errors_of_a_contract_are_drawn_at_their_location(case: Case) -> None:
    found = read_text(case.block("yaml").text)
    case.expect(draw(found.diagnostics, found.sources))


@pytest.mark.parametrize("case", list(cases(CASES / "dcs_examples.md", fewest_blocks=1)), ids=str)
def test_a_whole_contract_is_read_as_shown(case: Case) -> None:
    case.expect(show_contract(read_text((EXAMPLES / case.title).read_text("utf-8"))))


def all_contracts() -> Iterator[tuple[str, str]]:
    for path in sorted(EXAMPLES.glob("*.yaml")):
        yield path.name, path.read_text("utf-8")
    for case in cases(*(CASES / f"{name}.md" for name in PARTS)):
        yield str(case), whole(case.block("yaml"))


CONTRACTS = dict(all_contracts())


@pytest.mark.few(49)
@pytest.mark.parametrize("name", CONTRACTS)
def test_every_leaf_has_either_a_rule_or_a_note(name: str) -> None:
    assert misaccounted(read_text(CONTRACTS[name])) == []


@pytest.mark.parametrize(
    ("server", "options"),
    [
        ("format: csv, delimiter: ';'", (("sep", ";"),)),
        ("format: csv", ()),
        ("format: json, delimiter: array", (("multiLine", "true"),)),
        ("format: json, delimiter: new_line", ()),
    ],
)
def test_a_server_sets_the_reader_options(
    server: str, options: tuple[tuple[str, str], ...]
) -> None:
    text = (
        "dataContractSpecification: 1.1.0\nid: a\ninfo: {title: A, version: 1.0.0}\n"
        f"servers: {{s: {{type: local, path: ./a, {server}}}}}\n"
    )
    contract = read_contract(SourceFile("a.yaml", text)).contract
    assert contract is not None
    assert contract.servers[0].options == options
