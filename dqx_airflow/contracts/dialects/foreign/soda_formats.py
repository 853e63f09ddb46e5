"""The formats of Soda that are not those of DQL, as patterns of the whole string."""

from __future__ import annotations

_NUMBER = r"(\d+([.,]\d+)?|[.,]\d+)"
_ZERO = r"(0+([.,]0+)?|[.,]0+)"
_DAY, _MONTH, _YEAR = r"(0?[1-9]|[12]\d|3[01])", r"(0?[1-9]|1[0-2])", r"([12]\d)?\d\d"
_HOUR_24, _HOUR_12 = r"([01]?\d|2[0-3])", r"(0?\d|1[0-2])"
_MINUTE, _SECOND = r"[0-5]?\d", r"[0-5]?\d([.,]\d+)?"
_ISO_DAY = r"[12]\d{3}-?((0[1-9]|1[0-2])-?(0[1-9]|[12]\d|3[01])|W[0-5]\d(-?[1-7])?|[0-3]\d\d)"
_ISO_ZONE = rf"([+-]{_HOUR_24}:?[0-5]\d|Z)"
_ISO_TIME = rf"[ T]{_HOUR_24}(:?[0-5]\d(:?[0-5]\d([.,]\d+)?)?)?{_ISO_ZONE}?"
_POSITIVE = {
    "integer": r"(\+ *)?\d+",
    "decimal": rf"(\+ *)?{_NUMBER}",
    "percentage": rf"(\+ *)?{_NUMBER} *%",
}
_NEGATIVE = {
    "integer": r"(- *\d+|0+)",
    "decimal": rf"(- *{_NUMBER}|{_ZERO})",
    "percentage": rf"(- *{_NUMBER}|{_ZERO}) *%",
}
_SPACED = {
    "integer": r"([-+] *)?\d+",
    "decimal": rf"([-+] *)?{_NUMBER}",
    **{f"positive {name}": pattern for name, pattern in _POSITIVE.items()},
    **{f"negative {name}": pattern for name, pattern in _NEGATIVE.items()},
    "percentage": rf"([-+] *)?{_NUMBER} *%",
    "money": rf"([-+] *)?{_NUMBER} *([A-Z]{{3}}|[a-z]{{3}})",
    "date us": rf"{_MONTH}[-./]{_DAY}[-./]{_YEAR}",
    "date eu": rf"{_DAY}[-./]{_MONTH}[-./]{_YEAR}",
    "date inverse": rf"{_YEAR}[-./]{_MONTH}[-./]{_DAY}",
    "date iso 8601": rf"{_ISO_DAY}({_ISO_TIME})?",
    "time 24h": rf"{_HOUR_24}:{_MINUTE}(:{_SECOND})?",
    "time 24h nosec": rf"{_HOUR_24}:{_MINUTE}",
    "time 12h": rf"{_HOUR_12}:{_MINUTE}(:{_SECOND})?",
    "time 12h nosec": rf"{_HOUR_12}:{_MINUTE}",
    "timestamp 24h": rf"{_HOUR_24}:{_MINUTE}:{_SECOND}",
    "timestamp 12h": rf"{_HOUR_12}:{_MINUTE}:{_SECOND}",
}
SODA_PATTERNS = {
    **{name: f"^ *{pattern} *$" for name, pattern in _SPACED.items()},
    "phone number": r"^((\+\d{1,2}\s)?\(?\d{3}\)?[\s.-])?\d{3}[\s.-]\d{4}$",
    "ip address": r"^\d{1,3}(\.\d{1,3}){3}$",
}
"""The patterns by the names of their formats, in lower case with spaces."""
