"""Test cases as Markdown sections: a title, an input block, and a block with the expected result.

    ## An unknown metric names the nearest one

    ```dql
    assert avg(price) > 0
    ```

    ```text
    error[E001]: ...
    ```

Words behind `dql` are options of the case. With DQX_REWRITE_GOLDEN=1 the last block of every case
is rewritten with what came out; the diff is the review.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

REWRITE = os.environ.get("DQX_REWRITE_GOLDEN") == "1"

_FENCE = re.compile(r"^```(?P<kind>\w+)(?P<options>[^\n]*)\n(?P<text>.*?)^```$", re.M | re.S)


@dataclass(frozen=True)
class Block:
    kind: str
    options: tuple[str, ...]
    text: str

    def has(self, option: str) -> bool:
        return option in self.options

    def option(self, name: str, otherwise: str = "") -> str:
        """`2024-11-29` for the option `date=2024-11-29`."""
        found = (item.split("=", 1)[1] for item in self.options if item.startswith(f"{name}="))
        return next(found, otherwise)


@dataclass(frozen=True)
class Case:
    path: Path
    title: str
    blocks: tuple[Block, ...]

    def __str__(self) -> str:
        return f"{self.path.stem}: {self.title}"

    def block(self, kind: str) -> Block:
        found = next((block for block in self.blocks if block.kind == kind), None)
        return found or Block(kind, (), "")

    def expect(self, actual: str) -> None:
        """Compares with the last block of the case, or rewrites it."""
        actual = actual.rstrip("\n") + "\n"
        if REWRITE:
            _rewrite(self, actual)
        else:
            assert actual == self.blocks[-1].text


def cases(*paths: Path, fewest_blocks: int = 2) -> Iterator[Case]:
    """The cases of Markdown files, in order."""
    for path in sorted(paths):
        for title, body in _sections(path.read_text(encoding="utf-8")):
            found = _FENCE.finditer(body)
            blocks = [Block(m["kind"], tuple(m["options"].split()), m["text"]) for m in found]
            message = f"{path.name}: {title}: a case needs {fewest_blocks} blocks"
            assert len(blocks) >= fewest_blocks, message
            yield Case(path, title, tuple(blocks))


def _sections(text: str) -> Iterator[tuple[str, str]]:
    parts = re.split(r"^## (.+)$", text, flags=re.M)
    return zip(parts[1::2], parts[2::2], strict=True)


def _rewrite(case: Case, actual: str) -> None:
    text = case.path.read_text(encoding="utf-8")
    start = text.index(f"## {case.title}\n")
    following = text.find("\n## ", start + 1)
    end = len(text) if following < 0 else following
    last = list(_FENCE.finditer(text, start, end))[-1]
    case.path.write_text(text[: last.start("text")] + actual + text[last.end("text") :], "utf-8")
