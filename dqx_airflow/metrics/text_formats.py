r"""The formats of strings: `email is email`. One entry each.

The expressions mean the same to Java, with which Spark matches, and to Python. `$(?!\n)` is the end
of the string in both: `$` alone would allow a newline after it. They follow RFC 5321 (email,
without quoted local parts), RFC 1123 (host names), RFC 9562 (UUID), RFC 3986 (URI), RFC 4291 (IPv6)
and ISO 8601 (dates and times, the extended format).
"""

from __future__ import annotations

from dataclasses import dataclass

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


@dataclass(frozen=True, slots=True)
class TextFormat:
    """A format: its description, and the regular expression for whole strings of the format."""

    name: str
    doc: str
    pattern: str


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
    TextFormat("iban", "An IBAN by its format, without spaces.", "[A-Z]{2}[0-9]{2}[A-Z0-9]{11,30}"),
    TextFormat(
        "country", "A country code of two letters (ISO 3166 alpha-2 by its format).", "[A-Z]{2}"
    ),
    TextFormat(
        "currency", "A currency code of three letters (ISO 4217 by its format).", "[A-Z]{3}"
    ),
)

TEXT_FORMATS: dict[str, TextFormat] = {entry.name: entry for entry in _ENTRIES}


def whole(pattern: str) -> str:
    """The expression for a string that matches from its first to its last character."""
    return rf"^({pattern})$(?!\n)"
