"""The suites and contracts selected by the paths of a command line."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

CONTRACT_ENDINGS = frozenset({".yaml", ".yml", ".json"})
"""The file name suffixes of contracts; every other file is a suite."""


def suite_files(paths: Iterable[Path]) -> tuple[list[Path], list[Path]]:
    """Each file of the paths once, with folders searched; and the paths without any."""
    files: list[Path] = []
    missing = []
    for path in paths:
        own = sorted(path.rglob("*.dql")) if path.is_dir() else [path] if path.exists() else []
        files += own
        if not own:
            missing.append(path)
    return list(dict.fromkeys(files)), missing
