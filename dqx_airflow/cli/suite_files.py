"""The suites and contracts that are meant by the paths of a command line."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

CONTRACT_ENDINGS = frozenset({".yaml", ".yml", ".json"})
"""How the name of a file ends that holds a contract; every other one holds a suite."""


def suite_files(paths: Iterable[Path]) -> tuple[list[Path], list[Path]]:
    """Each file of the paths once, folders searched; and the paths where there is none."""
    files: list[Path] = []
    missing = []
    for path in paths:
        own = sorted(path.rglob("*.dql")) if path.is_dir() else [path] if path.exists() else []
        files += own
        if not own:
            missing.append(path)
    return list(dict.fromkeys(files)), missing
