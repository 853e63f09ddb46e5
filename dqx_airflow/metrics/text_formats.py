r"""The formats of strings: `email is email`. One entry each.

The expressions mean the same to Java, with which Spark matches, and to Python. `$(?!\n)` is the end
of the string in both: `$` alone would allow a newline after it. They follow RFC 5321 (email,
without quoted local parts), RFC 1123 (host names), RFC 9562 (UUID), RFC 3986 (URI), RFC 4291 (IPv6)
and ISO 8601 (dates and times, the extended format). The codes of ISO 3166-1, ISO 4217 and ISO 639-1
and the registries of IBANs and ISINs are in `standard_codes.json`, which
`tests/metrics/test_standards.py` writes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib.resources import files

_THIRTY_ONE, _THIRTY = (
    "(0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])",
    "(0[469]|11)-(0[1-9]|[12][0-9]|30)",
)
_LEAP_YEAR = "(([0-9]{2}(0[48]|[2468][048]|[13579][26]))|(([02468][048]|[13579][26])00))"
_DATE = f"([0-9]{{4}}-({_THIRTY_ONE}|{_THIRTY}|02-(0[1-9]|1[0-9]|2[0-8]))|{_LEAP_YEAR}-02-29)"
_TIME = r"([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9](\.[0-9]{1,9})?)?"
_ZONE = r"(Z|[+-]([01][0-9]|2[0-3]):?[0-5][0-9])"
_BYTE = "(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
_LABEL = "[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
# Java's matcher uses a stack frame for each repetition of a group: long strings are rejected first.
_SHORT = "(?=.{1,254}$)"
_HOST = rf"{_SHORT}{_LABEL}(\.{_LABEL})*"
_ATOM = "[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]{1,64}"
_QUOTED = r'"([ !#-\[\]-~]|\\[ -~]){0,62}"'
_HEX = "[0-9a-fA-F]"
# Without a group: Java takes longer to repeat one than to match it three times.
_UUID = "-".join(f"{_HEX}{{{length}}}" for length in (8, 4, 4, 4, 12))
_IPV6 = "|".join(
    [
        f"({_HEX}{{1,4}}:){{7}}{_HEX}{{1,4}}",
        *(f"({_HEX}{{1,4}}:){{1,{left}}}(:{_HEX}{{1,4}}){{1,{7 - left}}}" for left in range(1, 7)),
        f":((:{_HEX}{{1,4}}){{1,7}}|:)",
        f"({_HEX}{{1,4}}:){{1,7}}:",
    ]
)


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
    """The result `r` of a step for each character `c`."""
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
    """The sum of the digits, of which every second one from the right is weighted.

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
# ISO 7064: what 98 minus the remainder can be.
_TWO_DIGITS = "(0[2-9]|[1-8][0-9]|9[0-8])"


def _one_of(codes: Iterable[str]) -> str:
    """An expression that is fast for a long list: `A[DE]|B[A]` for AD, AE and BA."""
    last: dict[str, str] = {}
    for code in codes:
        last[code[:-1]] = last.get(code[:-1], "") + code[-1]
    return "|".join(f"{first}[{characters}]" for first, characters in last.items())


def _ibans() -> str:
    """The account numbers of each country have a structure such as `4!n12!c`."""
    classes = {"n": "[0-9]", "a": "[A-Z]", "c": "[A-Z0-9]"}
    return "|".join(
        country
        + _TWO_DIGITS
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
        """Whether a string has the format, as Spark SQL for whether it matches the pattern."""
        digits = self.check_digits
        return matching if digits is None else f"({matching} AND {digits.sql(text)})"


_ENTRIES = (
    # RFC 5321, section 4.1.2: Mailbox.
    TextFormat(
        "email",
        "An email address of RFC 5321: ann@example.org, ann@localhost, ann@[192.0.2.1].",
        rf"{_SHORT}({_ATOM}(\.{_ATOM})*|{_QUOTED})"
        rf"@({_LABEL}(\.{_LABEL})*|\[({_BYTE}\.){{3}}{_BYTE}\]|\[IPv6:({_IPV6})\])",
    ),
    TextFormat("uuid", "A UUID with hyphens.", _UUID),
    TextFormat("uri", "A URI with a scheme.", r"[A-Za-z][A-Za-z0-9+.-]*:[^\s<>\"{}|\\^`]+"),
    TextFormat("url", "A web address.", r"[Hh][Tt][Tt][Pp][Ss]?://[^\s/?#<>\"][^\s<>\"]*"),
    TextFormat("hostname", "A host name.", _HOST),
    TextFormat("ipv4", "An IPv4 address.", rf"({_BYTE}\.){{3}}{_BYTE}"),
    TextFormat("ipv6", "An IPv6 address.", _IPV6),
    TextFormat("date", "A valid date: 2024-02-29.", _DATE),
    TextFormat("time", "A time of day: 06:00 or 06:00:59.5.", _TIME),
    TextFormat(
        "timestamp", "A date and a time, with or without a zone.", f"{_DATE}[T ]{_TIME}{_ZONE}?"
    ),
    TextFormat("integer", "A whole number.", "[+-]?[0-9]+"),
    TextFormat(
        "number", "A decimal number.", r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?"
    ),
    TextFormat("phone", "A phone number in E.164 format: +4930123456.", r"\+[1-9][0-9]{6,14}"),
    TextFormat("country", "A country code of ISO 3166-1 alpha-2: CH.", _one_of(CODES["country"])),
    TextFormat(
        *("country_alpha3", "A country code of ISO 3166-1 alpha-3: CHE."),
        _one_of(CODES["country_alpha3"]),
    ),
    TextFormat(
        *("country_numeric", "A country code of ISO 3166-1 numeric: 756."),
        _one_of(CODES["country_numeric"]),
    ),
    TextFormat(
        *("currency", "A currency code of ISO 4217, also of a fund or a metal: CHF, XAU."),
        _one_of(CODES["currency"]),
    ),
    TextFormat("language", "A language code of ISO 639-1: de.", _one_of(CODES["language"])),
    TextFormat(
        *("iban", "An IBAN of a registered country with its check digits, without spaces."),
        *(_ibans(), _IBAN),
    ),
    TextFormat(
        *("isin", "An ISIN of a country or an agency with its check digit: US0378331005."),
        *(f"({_one_of(CODES['isin'])})[A-Z0-9]{{9}}[0-9]", _ISIN),
    ),
    TextFormat(
        *("lei", "An LEI with its check digits: 529900T8BM49AURSDO55."),
        *(f"[A-Z0-9]{{18}}{_TWO_DIGITS}", _MODULO_97),
    ),
    TextFormat(
        *("gtin", "A GTIN of 8, 12, 13 or 14 digits with its check digit, also called EAN or UPC."),
        *("[0-9]{8}|[0-9]{12,14}", _GTIN),
    ),
    TextFormat(
        *("credit_card", "A card number of 12 to 19 digits with its check digit, without spaces."),
        *("[1-9][0-9]{11,18}", _LUHN),
    ),
    TextFormat("country_format", "Two letters like a country code: XX.", "[A-Z]{2}"),
    TextFormat("currency_format", "Three letters like a currency code: XYZ.", "[A-Z]{3}"),
    TextFormat("language_format", "Two letters like a language code: xx.", "[a-z]{2}"),
    TextFormat("iban_format", "Like an IBAN, with any digits.", "[A-Z]{2}[0-9]{2}[A-Z0-9]{11,30}"),
    TextFormat("isin_format", "Like an ISIN, with any digit.", "[A-Z]{2}[A-Z0-9]{9}[0-9]"),
    TextFormat("lei_format", "Like an LEI, with any digits.", "[A-Z0-9]{18}[0-9]{2}"),
    TextFormat("gtin_format", "Like a GTIN, with any digits.", "[0-9]{8}|[0-9]{12,14}"),
    TextFormat("credit_card_format", "Like a card number, with any digits.", "[0-9]{12,19}"),
)

TEXT_FORMATS: dict[str, TextFormat] = {entry.name: entry for entry in _ENTRIES}


def whole(pattern: str) -> str:
    """The expression for a string that matches from its first to its last character."""
    return rf"^({pattern})$(?!\n)"
