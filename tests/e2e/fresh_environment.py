"""Runs programs that see neither this checkout nor its environment."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from tests.processes import output_of


def run(command: Sequence[str | Path], folder: Path, **variables: str) -> str:
    """What a program prints that sees nothing of this checkout and of its environment.

    `variables` are added to what it sees.
    """
    hidden = ("PYTHON", "PYSPARK", "VIRTUAL_ENV", "SPARK")
    seen = {name: text for name, text in os.environ.items() if not name.startswith(hidden)}
    return output_of([*map(str, command)], cwd=folder, env={**seen, **variables}, timeout=900)
