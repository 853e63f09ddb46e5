"""Works out the parse tables when a wheel is built or a checkout is installed."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class ParseTables(BuildHookInterface):  # type: ignore[type-arg]
    """Writes `grammar.tables` beside the grammar; git does not know it, the wheel takes it."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        sys.path.insert(0, self.root)
        from dqx_airflow.dql.syntax.grammar import seal_tables

        grammar = Path(self.root, "dqx_airflow", "dql", "syntax", "grammar.lark")
        tables = grammar.with_suffix(".tables")
        tables.write_bytes(seal_tables(grammar.read_text(encoding="utf-8")))
        build_data["artifacts"].append(f"/{tables.relative_to(self.root).as_posix()}")
