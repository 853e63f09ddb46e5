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
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from importlib.resources import files

from dqx_airflow.metrics.check_digits import CHECK_DIGITS, CheckDigits
from dqx_airflow.values.files import table_rows

_rows = partial(table_rows, __package__, "text_formats.txt")
_PARTS: dict[str, str] = dict(_rows("parts"))
# Java's matcher uses a stack frame for each repetition of a group: long strings are rejected first.
SHORT = _PARTS["short"]
"""The prefix of patterns for strings with at most 254 characters."""
CODES = json.loads(files(__package__).joinpath("standard_codes.json").read_text(encoding="utf-8"))
"""The lists of codes by name, and the releases of their sources."""


def _one_of(codes: Iterable[str]) -> str:
    """An expression that is fast for a long list: `A[DE]|B[A]` for AD, AE and BA."""
    last: dict[str, str] = {}
    for code in codes:
        last[code[:-1]] = last.get(code[:-1], "") + code[-1]
    return "|".join(f"{first}[{characters}]" for first, characters in last.items())


def _ibans() -> str:
    """The expression for IBANs, from the structure of each country's accounts: `4!n12!c`."""
    accounts = []
    for country, structure in CODES["iban"].items():
        account = re.sub("([0-9]+)!([nac])", _characters, structure)
        accounts.append(f"{country}<97>{account}")
    return "|".join(accounts)


def _characters(part: re.Match[str]) -> str:
    """The expression for a part of an account: `[A-Z]{4}` for `4!a`."""
    classes = {"n": "[0-9]", "a": "[A-Z]", "c": "[A-Z0-9]"}
    return f"{classes[part[2]]}{{{part[1]}}}"


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
        if name == "iban":
            return _expression(_ibans())
        return _one_of(CODES[name])

    return re.sub(r"<([\w ]+)>", part, written)


def _format(name: str, doc: str, pattern: str, check_digits: str | None = None) -> TextFormat:
    """The format of a row of the table."""
    digits = CHECK_DIGITS[check_digits] if check_digits is not None else None
    return TextFormat(name, doc, _expression(pattern), digits)


TEXT_FORMATS: dict[str, TextFormat] = {row[0]: _format(*row) for row in _rows("formats")}


def whole(pattern: str) -> str:
    """The expression for a string that matches from its first to its last character."""
    return rf"^({pattern})$(?!\n)"
