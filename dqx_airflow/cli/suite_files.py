"""The suites and contracts selected by the paths of a command line."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from dqx_airflow.diagnostics.nearest import did_you_mean

SUITE_ENDINGS = frozenset({".dql"})
"""The file name suffix of suites in a folder."""

CONTRACT_ENDINGS = frozenset({".yaml", ".yml", ".json"})
"""The file name suffixes of contracts; every other file is a suite."""


def suite_files(paths: Iterable[Path]) -> tuple[list[Path], list[Path]]:
    """Each file of the paths once, with folders searched; and the paths without any."""
    files: list[Path] = []
    missing = []
    for path in paths:
        suites = sorted(path.rglob("*.dql")) if path.is_dir() else [path] if path.exists() else []
        files += suites
        if not suites:
            missing.append(path)
    return list(dict.fromkeys(files)), missing


def what_to_give(missing: Path, endings: frozenset[str] = SUITE_ENDINGS) -> str:
    """The hint for a path without files of these kinds: those beside it, the nearest name first."""
    folder = missing if missing.is_dir() else missing.parent
    beside = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
    candidates = [name for name in beside if Path(name).suffix in endings]
    kinds = " or ".join(sorted(endings))
    return did_you_mean(missing.name, candidates) or f"give files, or folders with {kinds} files"
