"""Random DQL files derived from the grammar, so that a new rule is covered at once.

A new terminal needs spellings here. Nearly all files are free of syntax errors; none makes sense.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from random import Random

from hypothesis import strategies as st
from lark.grammar import NonTerminal, Rule, Symbol

from dqx_airflow.dql.syntax.grammar import LINE_KEYWORDS, grammar

_SPELLINGS = {
    "COMPARATOR": ("<", "<=", "==", "!="),
    "DATE": ("2024-11-29", "2024-02-29"),
    "DRIFT": ("drift",),
    "FACTOR": ("2.0x", "3x", "1_0.50x"),
    "PERCENT": ("5%", "0.10%", "1_000%", "1e1%"),
    "NUMBER": ("0", "5", "1_000", "1e3", "0.50", "2.5E-3", "123456789012345678901234567890"),
    "TIME": ("06:00", "6:00", "23:59:59"),
    "UNIT": ("second", "hours", "day", "weeks"),
    "IDENT": (
        *("a", "price", "col_2", "null_count", "P0", "lag", "name", "type", "each", "check"),
        *("every", "some", "item"),
        *("a_column_with_a_rather_long_name", "another_column_whose_name_is_not_short"),
    ),
    "FOR_EACH": ("for each", "for  each", "for\neach"),
    "FOR_SHARE": ("for",),
    "TAG": ("a-b", "long-2-tag"),
    "BACKTICKED": ("`from`", "`a b`", "`# {`"),
    "STRING": ('""', '"a text"', r'"\" \\ \q # { é"', '"{a} is long: it fills half of a line"'),
}
_SELDOM = frozenset({"arithmetic", "negative", "negation"})
_OFTEN = frozenset({"suite", "check", "assertion", "measure", "condition"})
_BLANKS = (" ", " ", " ", "  ", "\t", "\n", "\n", "\n\n", "\n \n\n", "\r\n", "\f\n")
_COMMENTS = ("#", "# why", "#close", "# ends with blanks  ", '# "text" { [ ( ` #', "# ü \u2028 é")
_SIGNS = frozenset("()[]{},")
_SMALLEST, _LARGEST = 8, 250


@st.composite
def programs(draw: st.DrawFn) -> str:
    """Files of very different size, with blanks and comments wherever they may stand."""
    size = draw(st.integers(_SMALLEST, _LARGEST))
    return program(draw(st.randoms(use_true_random=False)), size)


def program(random: Random, size: int) -> str:
    """A file of at most `size` tokens, if that is enough for what was begun."""
    chance = random.choice((0.0, 0.05, 0.3))
    text = before = ""
    for terminal in _derive(random, size):
        word = _spelling(random, terminal)
        # At the beginning of a line it would be a keyword.
        is_bound = terminal == "IDENT" and word in LINE_KEYWORDS
        text += (" " if is_bound else _between(random, before, word, chance)) + word
        before = word
    return text + _between(random, before, "", chance)


@dataclass
class _Derived:
    """A symbol of the grammar, and what it was derived to."""

    symbol: Symbol
    parts: list[_Derived] = field(default_factory=list)


def _derive(random: Random, size: int) -> list[str]:
    """The names of terminals in an order that the grammar allows.

    What is still open is derived in random order, so that all statements get their share of `size`.
    """
    rules = _rules()
    root = _Derived(NonTerminal("start"))
    unfinished = [root]
    length = 0
    while unfinished:
        place = random.randrange(len(unfinished))
        unfinished[place], unfinished[-1] = unfinished[-1], unfinished[place]
        derived = unfinished.pop()
        shortest = _lengths()[derived.symbol.name]
        fitting = [
            rule
            for rule in rules[derived.symbol.name]
            if rule.expansion and length + _length(rule) - shortest <= size
        ]
        fitting = fitting or [min(rules[derived.symbol.name], key=_length)]
        (rule,) = random.choices(fitting, list(map(_weight, fitting)))
        length += _length(rule) - shortest
        derived.parts = [_Derived(symbol) for symbol in rule.expansion]
        unfinished += (part for part in derived.parts if not part.symbol.is_term)
    return list(_terminals(root))


def _terminals(derived: _Derived) -> Iterator[str]:
    waiting = [derived]
    while waiting:
        derived = waiting.pop()
        if derived.symbol.is_term:
            yield derived.symbol.name
        waiting += reversed(derived.parts)


@cache
def _rules() -> dict[str, list[Rule]]:
    rules: dict[str, list[Rule]] = {}
    for rule in grammar().rules:
        rules.setdefault(rule.origin.name, []).append(rule)
    return rules


def _weight(rule: Rule) -> float:
    if rule.alias in _SELDOM:
        return 0.1
    is_repetition = rule.origin.name.startswith("__") and len(rule.expansion) > 1
    return 3 if is_repetition or any(part.name in _OFTEN for part in rule.expansion) else 1


def _length(rule: Rule) -> float:
    return sum(_lengths()[symbol.name] for symbol in rule.expansion)


@cache
def _lengths() -> dict[str, float]:
    """The fewest tokens that a symbol can be."""
    lengths = dict.fromkeys(_rules(), math.inf)
    lengths |= dict.fromkeys((terminal.name for terminal in grammar().terminals), 1)
    for _ in lengths:
        for name, rules in _rules().items():
            shortest = (sum(lengths[part.name] for part in rule.expansion) for rule in rules)
            lengths[name] = min(shortest)
    return lengths


def _spelling(random: Random, terminal: str) -> str:
    pattern = next(item.pattern for item in grammar().terminals if item.name == terminal)
    return pattern.value if pattern.type == "str" else random.choice(_SPELLINGS[terminal])


def _between(random: Random, before: str, after: str, chance: float) -> str:
    """Blanks and comments, the latter with a `chance`; seldom nothing, where nothing is needed."""
    text = random.choice(_BLANKS)
    if random.random() < chance:
        comments = [random.choice(_COMMENTS) for _ in range(random.choice((1, 1, 2)))]
        text += "\n".join(comments) + random.choice(("\n", "\n", "\r\n", "\n\n"))
    elif random.random() < 0.5 and (before[-1:] in _SIGNS or after[:1] in _SIGNS):
        text = ""
    return text
