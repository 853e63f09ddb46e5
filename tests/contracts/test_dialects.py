"""The readers of the dialects on whole contracts and parts."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from standard_schemas import SCHEMAS, schema_text, stored_at

from dqx_airflow.contracts.dialects import clause_reader
from dqx_airflow.contracts.document import Mapping
from dqx_airflow.contracts.model import Dialect
from dqx_airflow.diagnostics import draw
from tests.contracts import contract_parts, dialect_parts
from tests.contracts.contract_text import misaccounted, show_contract
from tests.contracts.dialect_parts import EXAMPLES, HERE, contracts_of, read_text
from tests.markdown_cases import Case, cases
from tests.processes import output_of

CASES = HERE / "cases"
PARTS = {"dcs": contract_parts, **dict.fromkeys(("fabric", "odcs", "product"), dialect_parts)}
DIALECTS = tuple(PARTS)
WHOLE = {name: list(cases(CASES / f"{name}_examples.md", fewest_blocks=1)) for name in DIALECTS}
CONTRACTS = {name: PARTS[name].contracts_of(name) for name in DIALECTS}


@pytest.mark.more
def test_every_heading_of_the_table_of_remarks_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    used = set()
    remarks = clause_reader.ClauseReader.remarks

    def noted(reading: clause_reader.ClauseReader, node: Mapping, place: str) -> None:
        used.add(place)
        remarks(reading, node, place)

    monkeypatch.setattr(clause_reader.ClauseReader, "remarks", noted)
    manifest = json.loads((EXAMPLES / "datalex" / "minimal.json").read_text("utf-8"))
    ends = {side: {"entity": "Customer"} for side in ("from", "to")}
    for text in (
        json.dumps({**manifest, "relationships": [{"name": "itself", **ends}]}),
        *(text for of_dialect in CONTRACTS.values() for text in of_dialect.values()),
    ):
        read_text(text)
    table = Path(clause_reader.__file__).with_name("remarks.txt").read_text("utf-8")
    headings = {line for line in table.splitlines() if line[:1] not in ("", "#", " ")}
    assert used == headings


@pytest.mark.parametrize(
    ("dialect", "case"),
    [(name, case) for name in DIALECTS for case in PARTS[name].part_cases(name)],
    ids=str,
)
def test_a_part_makes_these_rules_and_leaves_this_unsupported(dialect: str, case: Case) -> None:
    case.expect(PARTS[dialect].show_part(case.block("yaml")))


@pytest.mark.parametrize(
    ("dialect", "case"),
    [(name, case) for name in DIALECTS for case in cases(CASES / f"{name}_malformed.md")],
    ids=str,
)
def test_errors_of_a_contract_are_drawn_at_their_location(dialect: str, case: Case) -> None:
    found = PARTS[dialect].read_text(case.block("yaml").text)
    case.expect(draw(found.diagnostics, found.sources))


@pytest.mark.parametrize(
    ("dialect", "case"), [(name, case) for name in DIALECTS for case in WHOLE[name]], ids=str
)
def test_a_whole_contract_is_read_as_shown(dialect: str, case: Case) -> None:
    text = (EXAMPLES / dialect / case.title).read_text("utf-8")
    case.expect(show_contract(PARTS[dialect].read_text(text)))


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_example_is_shown_and_sound(dialect: str) -> None:
    examples = sorted(path.name for path in EXAMPLES.glob(f"{dialect}/*.yaml"))
    assert sorted(case.title for case in WHOLE[dialect]) == examples
    for name in examples:
        found = PARTS[dialect].read_text(CONTRACTS[dialect][name])
        assert found.contract is not None
        assert found.contract.dialect is Dialect(dialect)
        assert not found.errors


@pytest.mark.parametrize(
    ("dialect", "name"), [(name, title) for name in DIALECTS for title in CONTRACTS[name]]
)
def test_every_leaf_has_either_a_rule_or_a_note(dialect: str, name: str) -> None:
    assert misaccounted(PARTS[dialect].read_text(CONTRACTS[dialect][name])) == []


def test_a_dialect_is_imported_for_its_documents_alone() -> None:
    code = (
        "import sys; from dqx_airflow.contracts.read import read_contract\n"
        "from dqx_airflow.values import SourceFile\n"
        "assert read_contract(SourceFile('a.yaml', sys.stdin.read())).contract is not None\n"
        "print(*[name for name in ('fabric', 'product', 'datalex')"
        " if f'dqx_airflow.contracts.dialects.{name}' in sys.modules])"
    )
    (name, *_) = sorted(contracts_of("fabric"))
    text = contracts_of("fabric")[name]
    printed = output_of([sys.executable, "-c", code], input=text)
    assert printed.split() == ["fabric"]


@pytest.mark.parametrize("standard", SCHEMAS)
def test_the_schema_of_a_standard_is_that_of_its_package(standard: str) -> None:
    """After an update of the package: `python tools/schemas/standard_schemas.py`."""
    assert stored_at(standard).read_text(encoding="utf-8") == schema_text(standard)


_CALL = """\
apiVersion: v3.1.0
kind: DataContract
id: orders
version: 1.0.0
status: active
schema: [{name: orders, properties: [{name: id, logicalType: integer}]}]
"""


@pytest.mark.parametrize(
    ("written", "facts"),
    [
        (
            'support: [{channel: "#shop", url: "https://chat.example.com/shop"}]',
            [("channel", "#shop, https://chat.example.com/shop")],
        ),
        (
            "support: [{channel: news, scope: announcements}, {channel: talk, scope: interactive},"
            " {channel: tickets, scope: issues}]",
            [("channel", "tickets")],
        ),
        (
            "support: [{channel: news, scope: announcements}, {channel: talk, scope: interactive}]",
            [("channel", "talk")],
        ),
        (
            "team: {name: Shop data, members: [{username: ada}]}\n"
            "slaProperties: [{property: timeToNotify, value: 30, unit: m},"
            " {property: tr, value: 4, unit: h}]",
            [
                ("owner", "Shop data"),
                ("contacts", "ada"),
                ("incident response", "notify within 30 m, repair within 4 h"),
            ],
        ),
        (
            "support: [{channel: talk}]\ncustomProperties:\n"
            "  - {property: x-dqx-incident, value: {channel: pager}}",
            [("channel", "pager")],
        ),
        ("support: []", None),
    ],
)
def test_standard_keys_of_odcs_say_whom_to_call(
    written: str, facts: list[tuple[str, str]] | None
) -> None:
    read = read_text(f"{_CALL}{written}\n")
    assert read.contract is not None
    responsible = read.contract.responsible
    assert (responsible and [*responsible.facts]) == facts


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
    contract = read_text(text).contract
    assert contract is not None
    assert contract.servers[0].options == options
