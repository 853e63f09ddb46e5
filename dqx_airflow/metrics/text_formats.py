r"""The formats of strings (`email is email`), rows of `text_formats.txt`; and expressions that Java
evaluates faster, with the same matches.

The expressions mean the same to Java, with which Spark matches, and to Python. `$(?!\n)` is the
end of the string in both: `$` alone would allow a newline after it. They follow RFC 5321 (email,
without quoted local parts), RFC 1123 (host names), RFC 9562 (UUID), RFC 3986 (URI), RFC 4291
(IPv6) and ISO 8601 (dates and times, the extended format). The codes of ISO 3166-1, ISO 4217 and
ISO 639-1 and the registries of IBANs and ISINs are in `standard_codes.json`, which
`tests/metrics/test_standards.py` writes.

Java looks up single characters of a class in a table, but tests each range of it separately, in
two calls. So `[0-9a-f]` takes more than twice as long as `[0123456789abcdef]`.

An unbounded repetition is a loop, whereas a counted one is a call for each time. So if the length
of a string determines the count, `[0123456789abcdef]+` takes half as long as
`[0123456789abcdef]{64}`. And for literals Spark need not call Java, for which it decodes every
string.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from importlib.resources import files

from dqx_airflow.metrics.sql import quote_literal
from dqx_airflow.values.files import table_rows

_rows = partial(table_rows, __package__, "text_formats.txt")
_PARTS: dict[str, str] = dict(_rows("parts"))
# Java's matcher uses a stack frame for each repetition of a group: long strings are rejected first.
SHORT = _PARTS["short"]
"""The prefix of patterns for strings with at most 254 characters."""
CODES = json.loads(files(__package__).joinpath("standard_codes.json").read_text(encoding="utf-8"))
"""The lists of codes by name, and the releases of their sources."""

_DIGIT = "(ascii(c) - 48)"
_DOUBLED = f"2 * {_DIGIT} - IF({_DIGIT} > 4, 9, 0)"
_TRIPLED = f"3 * {_DIGIT}"


@dataclass(frozen=True, slots=True)
class CheckDigits:
    """Whether the check digits of a string are right, if it matches the pattern of its format: as
    Spark SQL for the SQL of the string, and in Python."""

    sql: Callable[[str], str]
    holds: Callable[[str], bool]


def _folded(text: str, start: str, step: str) -> str:
    """Spark SQL that folds a string: `step` computes a new `r` from `r` and each character `c`."""
    return f"aggregate(split({text}, '(?!$)'), {start}, (r, c) -> {step})"


def _in_digits(text: str) -> str:
    """The string with `10` for A to `35` for Z."""
    letter = "IF(ascii(c) < 65, c, CAST(ascii(c) - 55 AS STRING))"
    return _folded(text, "''", f"concat(r, {letter})")


def _digits(text: str) -> list[int]:
    return [int(digit) for character in text for digit in str(int(character, 36))]


def _is_1_modulo_97(text: str) -> str:
    step = "r * IF(ascii(c) < 65, 10, 100) + ascii(c) - IF(ascii(c) < 65, 48, 55)"
    return f"({_folded(text, '0L', f'({step}) % 97')} = 1)"


def _is_0_modulo_10(text: str, weighted: str) -> str:
    """Spark SQL that is true if the sum of the digits, every second one from the right weighted,
    is divisible by 10.

    The thousands of `r` are the sum if the last digit so far is not weighted, the rest if it is.
    """
    step = f"(r % 1000 + {_DIGIT}) * 1000 + r div 1000 + {weighted}"
    return f"({_folded(text, '0L', step)} div 1000 % 10 = 0)"


def _weighted_sum(text: str, weigh: Callable[[int], int]) -> int:
    digits = _digits(text)[::-1]
    return sum(digits[::2]) + sum(map(weigh, digits[1::2]))


_MODULO_97 = CheckDigits(_is_1_modulo_97, lambda x: int("".join(map(str, _digits(x)))) % 97 == 1)
_IBAN = CheckDigits(
    lambda x: _is_1_modulo_97(f"concat(substr({x}, 5), substr({x}, 1, 4))"),
    lambda x: _MODULO_97.holds(x[4:] + x[:4]),
)
_LUHN = CheckDigits(
    lambda x: _is_0_modulo_10(x, _DOUBLED),
    lambda x: _weighted_sum(x, lambda digit: sum(divmod(2 * digit, 10))) % 10 == 0,
)
_ISIN = CheckDigits(lambda x: _LUHN.sql(_in_digits(x)), _LUHN.holds)
_GTIN = CheckDigits(
    lambda x: _is_0_modulo_10(x, _TRIPLED),
    lambda x: _weighted_sum(x, lambda digit: 3 * digit) % 10 == 0,
)
_CHECKS = {"iban": _IBAN, "isin": _ISIN, "modulo 97": _MODULO_97, "gtin": _GTIN, "luhn": _LUHN}


def _one_of(codes: Iterable[str]) -> str:
    """An expression that is fast for a long list: `A[DE]|B[A]` for AD, AE and BA."""
    last: dict[str, str] = {}
    for code in codes:
        last[code[:-1]] = last.get(code[:-1], "") + code[-1]
    return "|".join(f"{first}[{characters}]" for first, characters in last.items())


def _ibans() -> str:
    """The expression for IBANs, from the structure of each country's accounts: `4!n12!c`."""
    classes = {"n": "[0-9]", "a": "[A-Z]", "c": "[A-Z0-9]"}
    return "|".join(
        f"{country}<97>"
        + re.sub("([0-9]+)!([nac])", lambda part: f"{classes[part[2]]}{{{part[1]}}}", structure)
        for country, structure in CODES["iban"].items()
    )


@dataclass(frozen=True, slots=True)
class TextFormat:
    """A format: its description, the regular expression for whole strings of the format, and its
    check digits, if any."""

    name: str
    doc: str
    pattern: str
    check_digits: CheckDigits | None = None

    def sql(self, text: str, matching: str) -> str:
        """Spark SQL that is true if a string has the format, from SQL that is true if it matches
        the pattern."""
        digits = self.check_digits
        return matching if digits is None else f"({matching} AND {digits.sql(text)})"


def _expression(written: str) -> str:
    """An expression of the table with its parts."""

    def part(match: re.Match[str]) -> str:
        name = match[1]
        if name in _PARTS:
            return _expression(_PARTS[name])
        return _expression(_ibans()) if name == "iban" else _one_of(CODES[name])

    return re.sub(r"<([\w ]+)>", part, written)


TEXT_FORMATS: dict[str, TextFormat] = {
    name: TextFormat(name, doc, _expression(pattern), *map(_CHECKS.__getitem__, checks))
    for name, doc, pattern, *checks in _rows("formats")
}


def whole(pattern: str) -> str:
    """The expression for a string that matches from its first to its last character."""
    return rf"^({pattern})$(?!\n)"


_PART = re.compile(
    r"(?P<plain>(?:\\.|[^\\\[])+)|(?P<brackets>\[\^?(?:\\.|[^\\\[\]])+\])", re.DOTALL
)
_RANGE = r"[0-9]-[0-9]|[A-Z]-[A-Z]|[a-z]-[a-z]"
_PUNCTUATION = r"\\[^0-9A-Za-z]"
_ITEM = re.compile(rf"(?P<first>\w)-(?P<last>\w)|{_PUNCTUATION}|.", re.DOTALL)
_BRACKETS = re.compile(rf"\[\^?-?(?:{_RANGE}|{_PUNCTUATION}|[^\\&-])*-?\]", re.DOTALL)
_UNSURE = re.compile(r"\\Q|\\c|\(\?(?![ims]*(?:-[ims]+)?[:)])[a-zA-Z-]")
r"""Quoted text and the flags for comments and Unicode change what brackets mean; `\c` takes any
following character."""

_WHOLE = re.compile(
    r"\^(?P<group>\()?(?P<pieces>.*)(?(group)\))(?:\$|\\z)(?:\(\?!\\n\))?", re.DOTALL
)
_LETTER = r"[0-9A-Za-z _:;,/@%&=<>!\"'~`#-]|\\[!-/:-@\[-`{-~]"
_LITERAL = re.compile(
    rf"(?P<start>\^)?(?P<group>\((?:\?:)?)?(?P<texts>(?:{_LETTER})+(?:\|(?:{_LETTER})+)*)"
    r"(?(group)\))(?P<end>(?:\$|\\z)(?:\(\?!\\n\))?)?"
)
_PIECE = re.compile(
    rf"(?P<atom>{_LETTER}|\\[dw]"
    r"|\[-?[0-9A-Za-z _:;,/@%=<>!\"'~`#.+*?(){}|$]*-?\])"
    r"(?:\{(?P<least>[0-9]{1,6})(?P<open>,(?P<most>[0-9]{1,6})?)?\})?"
)
"""A piece that matches one byte per repetition, and the number of repetitions."""
_WORTH = 4
_MOST = 10
"""The minimum number of repetitions, and the maximum number of literals."""


@dataclass(frozen=True, slots=True)
class Sized:
    """A pattern for strings with a number of bytes in a range: in these it matches whenever the
    other pattern does."""

    pattern: str
    least: int
    most: int | None


def quick_pattern(pattern: str) -> str:
    """The same expression with its ranges of ASCII letters and digits written out.

    >>> quick_pattern("^M[0-9]{4}$")
    '^M[0123456789]{4}$'

    Brackets with anything else stay as they are, and so does an expression in which it is not clear
    where brackets begin and end.
    """
    parts = list(_PART.finditer(pattern))
    if _UNSURE.search(pattern) or "".join(part[0] for part in parts) != pattern:
        return pattern
    return "".join(
        part[0] if part["brackets"] is None else _listed(part["brackets"]) for part in parts
    )


def _listed(brackets: str) -> str:
    if not _BRACKETS.fullmatch(brackets):
        return brackets
    return _ITEM.sub(lambda item: _characters(item["first"], item["last"]) or item[0], brackets)


def _characters(first: str | None, last: str | None) -> str:
    """All characters of a range; empty if it is not one."""
    if first is None or last is None:
        return ""
    return "".join(map(chr, range(ord(first), ord(last) + 1)))


def quicker(column: str, pattern: str) -> str | None:
    """Spark SQL that is true only for strings in which `pattern` matches.

    It is true for most of these, and faster. None if the pattern has no such condition.
    """
    literal = _LITERAL.fullmatch(pattern)
    if literal is not None:
        return _literally(column, literal)
    sized = sized_pattern(pattern)
    if sized is None:
        return None
    size = f"octet_length({column})"
    if sized.least == sized.most:
        is_fit = f"{size} = {sized.least}"
    elif sized.most is None:
        is_fit = f"{size} >= {sized.least}"
    else:
        is_fit = f"{size} BETWEEN {sized.least} AND {sized.most}"
    return f"{is_fit} AND {column} RLIKE {quote_literal(sized.pattern)}"


def _literally(column: str, literal: re.Match[str]) -> str | None:
    written = re.findall(rf"(?:{_LETTER})+", literal["texts"])
    texts = [re.sub(r"\\(.)", r"\1", text) for text in written]
    if len(texts) > _MOST:
        return None
    if literal["start"] and literal["end"] and (literal["group"] or len(texts) == 1):
        # Not by `=`: there Spark pads the literal to the length of a `char` column.
        return " OR ".join(
            f"octet_length({column}) = {len(text)} AND startswith({column}, {quote_literal(text)})"
            for text in texts
        )
    if len(texts) > 1:
        return None
    function = "startswith" if literal["start"] else "endswith" if literal["end"] else "contains"
    return f"{function}({column}, {quote_literal(texts[0])})"


def sized_pattern(pattern: str) -> Sized | None:
    r"""A faster first test for an expression that matches whole strings.

    >>> sized_pattern("^M[0123456789]{4}$")
    Sized(pattern='(?-i)^M[0123456789]+\\z', least=5, most=5)

    The longest of its repetitions becomes unbounded; the others must have a fixed length. None if
    they have not, or if it does not pay.
    """
    whole = _WHOLE.fullmatch(pattern)
    if whole is None:
        return None
    pieces = list(_PIECE.finditer(whole["pieces"]))
    if not pieces or "".join(piece[0] for piece in pieces) != whole["pieces"]:
        return None
    least = [int(piece["least"] or 1) for piece in pieces]
    most = [_most(piece) for piece in pieces]
    loose = max(range(len(pieces)), key=lambda at: (least[at] != most[at], least[at]))
    is_one_length = all(
        a == b for at, (a, b) in enumerate(zip(least, most, strict=True)) if at != loose
    )
    if not is_one_length or least[loose] < 1 or (most[loose] or _WORTH) < _WORTH:
        return None
    fixed = sum(least) - least[loose]
    written = "".join(
        f"{piece['atom']}+" if at == loose else piece[0] for at, piece in enumerate(pieces)
    )
    ends = most[loose]
    # If a collation ignores case, `[k]` also matches the Kelvin sign, which has three bytes.
    return Sized(
        rf"(?-i)^{written}\z", fixed + least[loose], None if ends is None else fixed + ends
    )


def _most(piece: re.Match[str]) -> int | None:
    """The maximum number of repetitions; None if unbounded."""
    if piece["open"] is None:
        return int(piece["least"] or 1)
    return int(piece["most"]) if piece["most"] else None
