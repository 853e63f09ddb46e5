"""A small reader of TextMate grammars: the part of the format that the DQL grammar uses.

It colours a text line by line, as editors do: the first pattern that matches furthest to the left
wins, and the end of the innermost region comes before the patterns in it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.ASCII)


@dataclass
class Grammar:
    """A grammar, read from its JSON file."""

    path: Path
    rules: dict[str, Any] = field(init=False)

    def __post_init__(self) -> None:
        self.rules = json.loads(self.path.read_text(encoding="utf-8"))

    def patterns(self) -> Iterator[str]:
        """All regular expressions of the grammar."""

        def of(rule: Any) -> Iterator[str]:
            if isinstance(rule, dict):
                yield from (rule[key] for key in ("match", "begin", "end") if key in rule)
                rule = list(rule.values())
            if isinstance(rule, list):
                for part in rule:
                    yield from of(part)

        return of(self.rules)

    def colours(self, text: str) -> list[str]:
        """The scope of every character: the innermost one, empty where there is none."""
        scopes: list[str] = []
        regions: list[dict[str, Any]] = [{"patterns": self.rules["patterns"]}]
        for line in text.splitlines(keepends=True):
            painted = [""] * len(line)
            self._line(line.rstrip("\n"), painted, regions)
            scopes += painted
        return scopes

    def _line(self, line: str, painted: list[str], regions: list[dict[str, Any]]) -> None:
        position = 0
        while True:
            region = regions[-1]
            rule, found = self._next(region, line, position)
            end = len(line) if found is None else found.start()
            painted[position:end] = [region.get("name", "")] * (end - position)
            if found is None:
                return
            _paint(painted, found.span(), (rule or region).get("name", ""))
            if rule is None:
                regions.pop()
            else:
                captures = rule.get("captures") or rule.get("beginCaptures") or {}
                for number, capture in captures.items():
                    _paint(painted, found.span(int(number)), capture["name"])
                if "begin" in rule:
                    regions.append(rule)
            position = found.end()

    def _next(
        self, region: dict[str, Any], line: str, position: int
    ) -> tuple[dict[str, Any] | None, re.Match[str] | None]:
        """The rule that matches next, None where the region ends; and its match."""
        best = None
        if "end" in region:
            best = _compiled(region["end"]).search(line, position)
        winner = None
        for rule in self._flat(region):
            found = _compiled(rule.get("match") or rule["begin"]).search(line, position)
            if found and (best is None or found.start() < best.start()):
                winner, best = rule, found
        return winner, best

    def _flat(self, rule: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """The patterns of a rule, with those that are included in their place."""
        for pattern in rule.get("patterns", ()):
            included = pattern.get("include")
            inner = self.rules["repository"][included[1:]] if included else pattern
            if "match" in inner or "begin" in inner:
                yield inner
            else:
                yield from self._flat(inner)


def _paint(painted: list[str], stretch: tuple[int, int], scope: str) -> None:
    """Gives characters a scope; a group that did not take part has a negative stretch."""
    start, end = stretch
    if start >= 0:
        painted[start:end] = [scope] * (end - start)
