"""Counts how many rules of other tools `dql import` translates, in the files of folders.

`python -m benchmarks.imported_rules FOLDER...` reads each file that a tool writes, and prints a row
for each tool; `--reasons 10` adds the most common reasons for rules without a counterpart.
"""

from __future__ import annotations

import argparse
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from dqx_airflow.errors import NoCounterpartError
from dqx_airflow.importing.imported_suite import ImportOutcome, suite_of
from dqx_airflow.importing.tools import TOOLS, read_rules
from dqx_airflow.values import SourceFile

ENDINGS = (".yml", ".yaml", ".json", ".py", ".scala", ".sql", ".dqdl", ".txt")


@dataclass
class Counts:
    """The files of a tool, and its rules by their outcome and by the reason against them."""

    files: int = 0
    outcomes: Counter[ImportOutcome] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)


def counted(folders: list[Path]) -> dict[str, Counts]:
    """The counts by the name of the tool; files of no tool are left out."""
    found: dict[str, Counts] = defaultdict(Counts)
    for path in _files(folders):
        source = SourceFile(str(path), path.read_text(encoding="utf-8", errors="replace"))
        try:
            tool, rules = read_rules(source, sql_dialect="spark")
        except NoCounterpartError:
            continue
        counts = found[tool]
        counts.files += 1
        for imported in suite_of("s", str(path), rules).rules:
            counts.outcomes[imported.outcome] += 1
            if imported.outcome is ImportOutcome.NOT_TRANSLATED:
                counts.reasons[_kind_of(imported.reason)] += 1
    return found


def _files(folders: list[Path]) -> Iterator[Path]:
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            if path.is_file() and path.suffix in ENDINGS:
                yield path


def _kind_of(reason: str) -> str:
    """A reason without the names in it."""
    return re.sub(r"`[^`]*`|'[^']*'|\{\{.*?\}\}|\d+", "_", reason)[:100]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--reasons", type=int, default=0, help="how many reasons of each tool")
    arguments = parser.parse_args()
    found = counted(arguments.folders)
    print("| tool | files | rules | translated | with a difference | not translated |")
    print("|---|---|---|---|---|---|")
    for name in TOOLS:
        if name not in found:
            continue
        counts = found[name]
        cells = [TOOLS[name].title, counts.files, counts.outcomes.total()]
        cells += [counts.outcomes[outcome] for outcome in ImportOutcome]
        print("|", " | ".join(map(str, cells)), "|")
    for name, counts in found.items():
        for reason, count in counts.reasons.most_common(arguments.reasons):
            print(f"{name}: {count} x {reason}")


if __name__ == "__main__":
    main()
