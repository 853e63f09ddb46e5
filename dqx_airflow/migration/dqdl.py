"""DQDL, the language of AWS Glue Data Quality: the rules of a file, and their composition."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from lark import Token, Tree
from lark.exceptions import UnexpectedInput

from dqx_airflow.migration.dqdl_rules import claims_of
from dqx_airflow.migration.dqdl_syntax import parser, rule_of
from dqx_airflow.migration.foreign_rule import Claims, ForeignRule, UntranslatableError
from dqx_airflow.migration.request import ImportRequest

_EMPTY_FILTER = "a rule whose filter selects no rows passes in Glue but fails here"
_RULES_SECTION = re.compile(r"^\s*Rules\s*=\s*\[", re.MULTILINE)


def recognises(text: str) -> bool:
    return _RULES_SECTION.search(text) is not None


def rules_of(text: str, request: ImportRequest) -> Iterator[ForeignRule]:
    """The rules of a file; an invalid rule does not affect the others.

    :raises UntranslatableError: it is not DQDL.
    """
    dataset = request.dataset or "data"
    filled = _with_variables(text)
    try:
        sections = [child for child in parser().parse(filled).children if isinstance(child, Tree)]
    except UnexpectedInput as error:
        entries = _entries(filled)
        if not entries:
            raise UntranslatableError(f"line {error.line}: invalid DQDL") from None
        for line, entry_text in entries:
            yield _single_rule(entry_text, dataset, f"{request.file}: line {line}")
        return
    for section in sections:
        name, *entries_ = section.children
        if name != "Rules":
            continue
        for entry in entries_:
            assert isinstance(entry, Tree)
            place = f"{request.file}: line {entry.meta.line}"
            shown = " ".join(filled[entry.meta.start_pos : entry.meta.end_pos].split())
            yield _rule(entry, dataset, place, shown)


_DICTIONARY = re.compile(r"\b(?:Metadata|DataSources)\s*=\s*\{[^{}]*\}")
_LABELS = re.compile(r"\bDefaultLabels\s*=\s*\[[^\]]*\]")
_DECLARED = re.compile(r'^[ \t]*(?P<name>\w+)\s*=\s*(?P<value>\[[^\]]*\]|"(?:\\.|[^"\\])*")', re.M)
_USED = re.compile(r"\$(\w+)")
_SECTIONS = ("Rules", "Analyzers")


def _with_variables(text: str) -> str:
    """The text with the values of its variables; sections without rules become blank lines."""
    values: dict[str, str] = {}

    def blank(match: re.Match[str]) -> str:
        return "\n" * match[0].count("\n")

    def declare(match: re.Match[str]) -> str:
        if match["name"] in _SECTIONS:
            return match[0]
        values[match["name"]] = " ".join(match["value"].split())
        return blank(match)

    head, rules, rest = text.partition("Rules")
    head = _DECLARED.sub(declare, _LABELS.sub(blank, _DICTIONARY.sub(blank, head)))
    return _USED.sub(lambda match: values.get(match[1], match[0]), head + rules + rest)


_TOKEN = re.compile(r'"(?:\\.|[^"\\])*"|#[^\n]*|.', re.DOTALL)
_START = re.compile(r"\s*(?:#[^\n]*\s*)*Rules\s*=\s*\[")


def _entries(text: str) -> list[tuple[int, str]]:
    """The entries of `Rules = [...]` with their lines; none if the brackets do not match."""
    start = _START.match(text)
    if start is None:
        return []
    entries: list[tuple[int, str]] = []
    depth, begun = 1, start.end()
    for token in _TOKEN.finditer(text, start.end()):
        depth += {"[": 1, "(": 1, "]": -1, ")": -1}.get(token[0], 0)
        if depth == 0 or (depth == 1 and token[0] == ","):
            entry = text[begun : token.start()]
            begun = token.end()
            if entry.strip():
                ahead = len(entry) - len(entry.lstrip())
                entries.append((text.count("\n", 0, token.start() - len(entry) + ahead) + 1, entry))
        if depth == 0:
            rest = text[token.end() :].lstrip()
            return entries if not rest or rest.startswith("Analyzers") else []
    return []


def _single_rule(text: str, dataset: str, place: str) -> ForeignRule:
    document = f"Rules = [\n{text}\n]"
    try:
        (section,) = parser().parse(document).children
    except UnexpectedInput:
        shown = " ".join(line for line in text.split("\n") if not line.lstrip().startswith("#"))
        return ForeignRule(dataset, place, " ".join(shown.split()), "unknown DQDL")
    assert isinstance(section, Tree)
    entry = section.children[1]
    assert isinstance(entry, Tree)
    shown = " ".join(document[entry.meta.start_pos : entry.meta.end_pos].split())
    return _rule(entry, dataset, place, shown)


def _rule(entry: Tree[Token], dataset: str, place: str, shown: str) -> ForeignRule:
    where = None
    try:
        entry = _ungrouped(entry)
        if entry.data == "rule":
            rule, where = rule_of(entry, dataset)
            meaning: Claims | str = claims_of(rule)
        else:
            meaning = _composite(entry, dataset)
    except UntranslatableError as error:
        meaning = str(error)
    difference = _EMPTY_FILTER if where else None
    return ForeignRule(dataset, place, shown, meaning, where=where, difference=difference)


def _ungrouped(entry: Tree[Token]) -> Tree[Token]:
    while entry.data == "grouped":
        (inner,) = entry.children
        assert isinstance(inner, Tree)
        entry = inner
    return entry


def _composite(entry: Tree[Token], dataset: str) -> Claims:
    """`any { ... }` or `all { ... }` of rules joined by `or` or `and`.

    :raises UntranslatableError: one of them has no counterpart, or a filter.
    """
    parts: list[str] = []
    other_datasets: list[str] = []
    for child in entry.children:
        assert isinstance(child, Tree)
        inner = _ungrouped(child)
        if inner.data == "rule":
            rule, where = rule_of(inner, dataset)
            if where is not None:
                raise UntranslatableError("a filter inside a composite has no counterpart")
            claims = claims_of(rule)
        else:
            claims = _composite(inner, dataset)
        text = claims.texts[0] if len(claims.texts) == 1 else _block("all", claims.texts)
        parts.append(text)
        other_datasets += claims.others
    word = "all" if entry.data == "both" else "any"
    return Claims(f"{word} of {len(parts)}", (_block(word, parts),), others=tuple(other_datasets))


def _block(word: str, texts: Sequence[str]) -> str:
    return f"{word} {{ {' '.join(f'assert {text}' for text in texts)} }}"
