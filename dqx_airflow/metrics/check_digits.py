"""Check digits of accounts, securities, cards and articles, in Spark SQL and in Python."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

_DIGIT = "(ascii(c) - 48)"
_DOUBLED = f"2 * {_DIGIT} - IF({_DIGIT} > 4, 9, 0)"
_TRIPLED = f"3 * {_DIGIT}"


@dataclass(frozen=True, slots=True)
class CheckDigits:
    """A test of the check digits of a string that matches the pattern of its format: as Spark SQL
    for the SQL of the string, and in Python."""

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
    """The digits of a string, with 1 and 0 for A to 3 and 5 for Z."""
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
    """The sum of the digits, every second one from the right weighted."""
    digits = _digits(text)[::-1]
    return sum(digits[::2]) + sum(map(weigh, digits[1::2]))


def _number_modulo_97(text: str) -> int:
    return int("".join(map(str, _digits(text)))) % 97


def _rotated(text: str) -> str:
    """The SQL of an IBAN with its country and check digits at the end."""
    return f"concat(substr({text}, 5), substr({text}, 1, 4))"


def _doubled(digit: int) -> int:
    return sum(divmod(2 * digit, 10))


def _tripled(digit: int) -> int:
    return 3 * digit


CHECK_DIGITS = {
    "modulo 97": CheckDigits(sql=_is_1_modulo_97, holds=lambda text: _number_modulo_97(text) == 1),
    "iban": CheckDigits(
        sql=lambda text: _is_1_modulo_97(_rotated(text)),
        holds=lambda text: _number_modulo_97(text[4:] + text[:4]) == 1,
    ),
    "luhn": CheckDigits(
        sql=lambda text: _is_0_modulo_10(text, _DOUBLED),
        holds=lambda text: _weighted_sum(text, _doubled) % 10 == 0,
    ),
    "isin": CheckDigits(
        sql=lambda text: _is_0_modulo_10(_in_digits(text), _DOUBLED),
        holds=lambda text: _weighted_sum(text, _doubled) % 10 == 0,
    ),
    "gtin": CheckDigits(
        sql=lambda text: _is_0_modulo_10(text, _TRIPLED),
        holds=lambda text: _weighted_sum(text, _tripled) % 10 == 0,
    ),
}
"""The kinds of check digits in `text_formats.txt`."""
