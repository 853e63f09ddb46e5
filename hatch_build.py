"""Works out the parse tables when a wheel is built or a checkout is installed."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

# Lark walks over sets whose members have hashes that differ from process to process, and the order
# of the tables with them: the names' come from a seed, those of item sets from their addresses. Two
# builds of one commit are the same archive, so both are fixed in a process of their own.
_SEAL = """
from pathlib import Path
from lark.parsers.grammar_analysis import LR0ItemSet
from dqx_airflow.dql.syntax.grammar import seal_tables
LR0ItemSet.__hash__ = lambda items: hash(items.kernel)
grammar = Path("dqx_airflow", "dql", "syntax", "grammar.lark")
grammar.with_suffix(".tables").write_bytes(seal_tables(grammar.read_text(encoding="utf-8")))
"""


class ParseTables(BuildHookInterface):  # type: ignore[type-arg]
    """Writes `grammar.tables` beside the grammar; git does not know it, the wheel takes it."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        # PYTHONPATH is kept: by it pip names what it has installed for the build.
        environment = {**os.environ, "PYTHONHASHSEED": "0"}
        subprocess.run([sys.executable, "-c", _SEAL], cwd=self.root, env=environment, check=True)  # noqa: S603
        build_data["artifacts"].append("/dqx_airflow/dql/syntax/grammar.tables")
