"""Blocks in an editor, checked against the nearest manifest as by `dql check`."""

from __future__ import annotations

from pathlib import Path

from dqx_airflow.editor.files import Files, OpenFiles, checked_file

MANIFEST = (
    '{"manifestSpecVersion": "1.0.0", "datalexVersion": "1.8.2",'
    ' "generatedAt": "2026-05-01T12:00:00Z", "project": {"name": "shop"},'
    ' "domains": [{"name": "shop", "entities": [{"name": "Order", "contracts": ['
    '{"id": "shop.Order.paid", "name": "paid", "version": 1}]}]}]}'
)
BLOCK = 'block "A" {\n status = "certified"\n datalex_contract = "shop.Order.payed@1"\n}\n'


def test_a_block_has_its_findings_while_it_is_written(tmp_path: Path) -> None:
    (tmp_path / "datalex-manifest.json").write_text(MANIFEST, encoding="utf-8")
    name = str(tmp_path / "blocks" / "a.dql")
    files, board = Files((tmp_path,), opened={name: BLOCK}), OpenFiles()
    board.take(name, checked_file(name, files))
    assert [(found.code, found.help) for found in board.findings(name)] == [
        ("E502", "did you mean 'shop.Order.paid'?")
    ]
    files.opened[name] = BLOCK.replace("payed", "paid")
    board.take(name, checked_file(name, files))
    assert board.findings(name) == []
