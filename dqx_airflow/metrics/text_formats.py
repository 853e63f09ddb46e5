r"""The formats of strings (`email is email`), rows of `text_formats.txt`.

The expressions mean the same to Java, with which Spark matches, and to Python. `$(?!\n)` is the
end of the string in both: `$` alone would allow a newline after it. They follow RFC 5321 (email,
without quoted local parts), RFC 1123 (host names), RFC 9562 (UUID), RFC 3986 (URI), RFC 4291
(IPv6) and ISO 8601 (dates and times, the extended format). The codes of ISO 3166-1, ISO 4217 and
ISO 639-1 and the registries of IBANs and ISINs are in `standard_codes.json`, which
`tests/metrics/test_standards.py` writes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from importlib.resources import files

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
