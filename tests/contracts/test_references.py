"""`$ref` within a contract and to neighbouring files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dqx_airflow.contracts.document import Mapping, plain_value
from dqx_airflow.contracts.read import read_contract
from dqx_airflow.contracts.references import FolderReader, References, no_files
from dqx_airflow.contracts.yaml_reader import read_document
from dqx_airflow.diagnostics import draw
from dqx_airflow.diagnostics.diagnostic import Diagnostic
from dqx_airflow.values import SourceFile
from tests.contracts.contract_parts import CASES
from tests.markdown_cases import Case, cases


def resolved(text: str, folder: Path) -> str:
    """The mapping `a` with what it takes over, or what is wrong with its reference."""
    (folder / "contract.yaml").write_text(text, encoding="utf-8")
    document = read_document(SourceFile("contract.yaml", text))
    found: list[Diagnostic] = []
    references = References(document, FolderReader(folder), found.append)
    assert isinstance(document.root, Mapping)
    node = document.root.get("a")
    assert isinstance(node, Mapping)
    taken = plain_value(references.resolve(node))
    taken.pop("$ref")
    return draw(found, references.sources) or json.dumps(taken)


@pytest.mark.parametrize("case", list(cases(CASES / "references.md")), ids=str)
def test_a_reference_is_resolved_or_refused(case: Case, tmp_path: Path) -> None:
    folder = tmp_path / "contracts"
    for block in case.blocks:
        if name := block.option("file"):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(block.text, encoding="utf-8")
    folder.mkdir(exist_ok=True)
    (tmp_path / "b.yaml").write_text("c: {secret: 1}", encoding="utf-8")
    case.expect(resolved(case.block("yaml").text, folder))


def test_a_link_out_of_the_folder_is_not_followed(tmp_path: Path) -> None:
    folder = tmp_path / "contracts"
    folder.mkdir()
    (tmp_path / "secret.yaml").write_text("b: {x: 1}", encoding="utf-8")
    (folder / "shared.yaml").symlink_to(tmp_path / "secret.yaml")
    assert "E408" in resolved('a: {$ref: "shared.yaml#/b"}', folder)


@pytest.mark.parametrize("name", ["shared.yaml", "outside.yaml"])
def test_a_contract_without_a_file_cannot_refer_to_files(name: str) -> None:
    """The code names the mistake, whatever the file is called."""
    document = read_document(SourceFile("contract", f'a: {{$ref: "{name}#/b"}}'))
    found: list[Diagnostic] = []
    assert isinstance(document.root, Mapping)
    node = document.root.get("a")
    assert isinstance(node, Mapping)
    References(document, no_files, found.append).resolve(node)
    assert [error.code for error in found] == ["E406"]


@pytest.mark.nightly
def test_an_endless_chain_of_references_ends(tmp_path: Path) -> None:
    for number in range(200):
        text = f'b: {{$ref: "{number + 1}.yaml#/b"}}'
        (tmp_path / f"{number}.yaml").write_text(text, encoding="utf-8")
    assert "error[E40" in resolved('a: {$ref: "0.yaml#/b"}', tmp_path)


_DCS = "dataContractSpecification: 1.2.1\nid: a\ninfo: {title: A, version: 1.0.0}\n"
_ODCS = "apiVersion: v3.0.2\nkind: DataContract\nid: a\nversion: 1.0.0\nstatus: active\n"
_FIELDS = "fields of dcs"
_TWICE = {
    _FIELDS: (
        f"{_DCS}models: {{m: {{fields: {{f: {{$ref: '#/definitions/a0'}}}}}}}}\ndefinitions:\n",
        "  {at}: {{type: object, fields: {{l: {{$ref: {to}}}, r: {{$ref: {to}}}}}}}\n",
        "  {at}: {{type: string}}\n",
        "#/definitions/",
    ),
    "items of dcs": (
        f"{_DCS}models: {{m: {{fields: {{f: {{$ref: '#/definitions/a0'}}}}}}}}\ndefinitions:\n",
        "  {at}: {{type: map, keys: {{$ref: {to}}},"
        " values: {{type: array, items: {{$ref: {to}}}}}}}\n",
        "  {at}: {{type: string}}\n",
        "#/definitions/",
    ),
    "properties of odcs": (
        f"{_ODCS}schema: [{{name: o, properties: [{{$ref: '#/parts/a0'}}]}}]\nparts:\n",
        "  {at}: {{name: {at}, logicalType: object,"
        " properties: [{{$ref: {to}}}, {{$ref: {to}}}]}}\n",
        "  {at}: {{name: n, logicalType: string}}\n",
        "#/parts/",
    ),
    "items of odcs": (
        f"{_ODCS}schema: [{{name: o, properties: [{{$ref: '#/parts/a0'}}]}}]\nparts:\n",
        "  {at}: {{name: {at}, logicalType: object, properties:"
        " [{{name: l, logicalType: array, items: {{$ref: {to}}}}}, {{$ref: {to}}}]}}\n",
        "  {at}: {{name: n, logicalType: string}}\n",
        "#/parts/",
    ),
    "columns of fabric": (
        "contract: {id: a.m, version: 1.0.0, schema: {$ref: '#/x-parts/a0'}}\nx-parts:\n",
        "  {at}: {{columns: [{{$ref: {to}}}, {{$ref: {to}}}]}}\n",
        "  {at}: {{name: n, type: int}}\n",
        "#/x-parts/",
    ),
    "fields of product": (
        "contract: {name: m, version: 1.0.0}\nschema: {$ref: '#/x-parts/a0'}\nx-parts:\n",
        "  {at}: {{fields: [{{$ref: {to}}}, {{$ref: {to}}}]}}\n",
        "  {at}: {{name: n, type: integer}}\n",
        "#/x-parts/",
    ),
    "entities of datalex": (
        "manifestSpecVersion: 1.0.0\ndatalexVersion: 2.0.0\ngeneratedAt: '2026-01-01T00:00:00Z'\n"
        "project: {name: p}\ndomains: [{$ref: '#/x-parts/a0'}]\nx-parts:\n",
        "  {at}: {{name: {at}, entities: [{{$ref: {to}}}, {{$ref: {to}}}]}}\n",
        "  {at}: {{name: E, fields: [{{name: n, type: integer}}]}}\n",
        "#/x-parts/",
    ),
}
"""The head of a contract, a part that refers to the next one twice, the last part, and where they
are."""


@pytest.mark.few(3)
@pytest.mark.parametrize(("kind", "levels"), [*((kind, 30) for kind in _TWICE), (_FIELDS, 2000)])
def test_references_that_multiply_are_refused_at_their_line(kind: str, levels: int) -> None:
    head, part, last, place = _TWICE[kind]
    inner = [part.format(at=f"a{n}", to=f"'{place}a{n + 1}'") for n in range(levels)]
    text = head + "".join(inner) + last.format(at=f"a{levels}")
    found = read_contract(SourceFile("contract.yaml", text))
    assert found.contract is None
    refused = [error for error in found.errors if error.code == "E409"]
    assert [error.message for error in refused] == [
        "the $refs of the contract include more than 50,000 nodes"
    ]
    assert "$ref" in text.split("\n")[refused[0].span.line - 1]


def test_references_that_multiply_across_files_are_refused(tmp_path: Path) -> None:
    for number in range(25):
        target = f"{{$ref: 'a{number + 1}.yaml#/a'}}"
        text = f"a: {{type: object, fields: {{l: {target}, r: {target}}}}}"
        (tmp_path / f"a{number}.yaml").write_text(text, encoding="utf-8")
    (tmp_path / "a25.yaml").write_text("a: {type: string}", encoding="utf-8")
    text = f"{_DCS}models: {{m: {{fields: {{f: {{$ref: 'a0.yaml#/a'}}}}}}}}"
    found = read_contract(SourceFile("contract.yaml", text), FolderReader(tmp_path))
    refused = [error for error in found.errors if error.code == "E409"]
    assert [error.span.file for error in refused] == ["a12.yaml"]
    assert found.sources["a12.yaml"]


@pytest.mark.more
def test_references_that_nest_too_deeply_are_refused() -> None:
    """Each definition is flat, and holds the next one."""
    parts = [
        f"  a{n}: {{type: object, fields: {{n: {{$ref: '#/definitions/a{n + 1}'}}}}}}\n"
        for n in range(5000)
    ]
    text = (
        f"{_DCS}models: {{m: {{fields: {{f: {{$ref: '#/definitions/a0'}}}}}}}}\ndefinitions:\n"
        f"{''.join(parts)}  a5000: {{type: string}}\n"
    )
    found = read_contract(SourceFile("contract.yaml", text))
    assert [(error.code, error.help) for error in found.errors] == [
        ("E409", "use at most 60 levels")
    ]


def test_aliases_that_nest_too_deeply_are_refused() -> None:
    rows = [f"a{n}: &a{n} {'[' * 40}*a{n - 1}{']' * 40}\n" for n in range(1, 100)]
    found = read_document(SourceFile("contract.yaml", "a0: &a0 [1]\n" + "".join(rows)))
    assert [error.message for error in found.diagnostics] == ["the document is nested too deeply"]


@pytest.mark.more
def test_a_definition_may_be_used_by_many_fields() -> None:
    fields = "".join(f"      f{n}: {{$ref: '#/definitions/money'}}\n" for n in range(1000))
    text = (
        f"{_DCS}models:\n  m:\n    fields:\n{fields}"
        "definitions: {money: {type: struct,"
        " fields: {amount: {type: decimal}, unit: {type: string}}}}"
    )
    found = read_contract(SourceFile("contract.yaml", text))
    assert not found.errors
    assert found.contract is not None
    assert len(found.contract.models[0].fields) == 1000
