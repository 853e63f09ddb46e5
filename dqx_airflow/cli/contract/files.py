"""The contracts that are meant by the paths of a command line."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from dqx_airflow.cli.suite_files import CONTRACT_ENDINGS
from dqx_airflow.contracts.dialects import recognised
from dqx_airflow.contracts.document import Mapping, read_document
from dqx_airflow.dql.source import Unreadable, read_source


def contract_files(paths: Iterable[Path]) -> tuple[list[Path], list[Path]]:
    """Each file of the paths once, folders searched; and the paths where there is none.

    A folder may hold other YAML: of its files only those count that a dialect recognises.
    """
    files: list[Path] = []
    missing = []
    for path in paths:
        found = [path] if path.is_file() else []
        if path.is_dir():
            endings = (item for item in sorted(path.rglob("*")) if item.suffix in CONTRACT_ENDINGS)
            found = [item for item in endings if _is_contract(item)]
        files += found
        if not found:
            missing.append(path)
    return list(dict.fromkeys(files)), missing


def _is_contract(path: Path) -> bool:
    source = read_source(path, str(path))
    if isinstance(source, Unreadable):
        return False
    root = read_document(source).root
    return isinstance(root, Mapping) and bool(recognised(root))
