"""The contracts selected by the paths of a command line."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from dqx_airflow.cli.project import CONTRACT_ENDINGS
from dqx_airflow.contracts.dialects import recognised
from dqx_airflow.contracts.document import Mapping, read_document
from dqx_airflow.dql.syntax.source_file import Unreadable, read_source
from dqx_airflow.values import SourceFile


def contract_files(paths: Iterable[Path]) -> tuple[list[Path], list[Path]]:
    """Each file of the paths once, with folders searched; and the paths without a contract.

    A folder may contain other YAML: only files that a dialect recognises count.
    """
    files: list[Path] = []
    missing = []
    for path in paths:
        contracts = [path] if path.is_file() else []
        if path.is_dir():
            candidates = (
                file for file in sorted(path.rglob("*")) if file.suffix in CONTRACT_ENDINGS
            )
            contracts = [file for file in candidates if _holds_contract(file)]
        files += contracts
        if not contracts:
            missing.append(path)
    return list(dict.fromkeys(files)), missing


def _holds_contract(path: Path) -> bool:
    source = read_source(path, str(path))
    return not isinstance(source, Unreadable) and is_contract(source)


def is_contract(source: SourceFile) -> bool:
    """True for a text that a dialect recognises."""
    root = read_document(source).root
    return isinstance(root, Mapping) and bool(recognised(root))
