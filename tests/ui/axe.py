"""The axe-core rules for accessible pages, fetched once with npm and kept for later runs."""

from __future__ import annotations

import os
import shutil
import tarfile
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.processes import ended

_VERSION = "4.14.1"
_FOLDER = Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")).expanduser() / "dqx-airflow" / "axe"
_LEVELS = ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa")
RUN = (
    f"axe.run(document, {{runOnly: {[*_LEVELS]}, resultTypes: ['violations', 'incomplete']}})"
    ".then(({violations, incomplete, passes}) => ({rules: passes.length, found: violations.flatMap("
    "one => one.nodes.map(node => `${one.id}: ${node.html.slice(0, 120)}: "
    "${node.any.concat(node.all).map(check => check.message).join('; ')}`))}))"
)
"""Gives how many rules held, and what the page breaks of WCAG 2.2, level AA."""


def axe_script() -> str:
    """The library; skips the test if it cannot be had."""
    file = _FOLDER / f"axe-{_VERSION}.min.js"
    if not file.exists():
        npm = shutil.which("npm")
        if npm is None:
            pytest.skip("needs npm, which fetches axe-core")
        _FOLDER.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory() as folder:
            done = ended(
                [npm, "pack", f"axe-core@{_VERSION}", "--pack-destination", folder], timeout=120
            )
            archives = list(Path(folder).glob("*.tgz"))
            if done.returncode or not archives:
                pytest.skip(f"axe-core {_VERSION} cannot be had: {done.stderr[-200:]}")
            with tarfile.open(archives[0]) as archive:
                member = archive.extractfile("package/axe.min.js")
                assert member is not None
                file.write_bytes(member.read())
    return file.read_text(encoding="utf-8")
