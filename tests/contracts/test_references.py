"""`$ref` within a contract and to neighbouring files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from contract_parts import CASES
from markdown_cases import Case, cases

from dqx_airflow.contracts.document import (
    FolderReader,
    Mapping,
    References,
    no_files,
    plain_value,
    read_document,
)
from dqx_airflow.diagnostics import draw
from dqx_airflow.diagnostics.diagnostic import Diagnostic
from dqx_airflow.values import SourceFile


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


def test_a_contract_without_a_file_cannot_refer_to_files() -> None:
    document = read_document(SourceFile("contract", 'a: {$ref: "shared.yaml#/b"}'))
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
