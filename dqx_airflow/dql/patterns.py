"""Regular expressions of predicates: is there a mistake in one?

Spark matches with Java's expressions, and there is no Java here: what Java has and Python has not
is replaced, then Python reads the rest. That finds nearly all mistakes.
"""

from __future__ import annotations

import re
import warnings

_JAVA_ONLY = re.compile(
    r"""
      \\Q .*? (?:\\E|$)                                     # quoted text
    | \\[pP] (?:\{[^}]*\}|[a-zA-Z]) | \\x\{[^}]*\} | \\k<\w+> | \\[hHRXzGVe]
    | (?P<kept> \\. )
    | (?P<named> \(\?< (?=[a-zA-Z]) )
    | (?P<atomic> \(\?> )
    | (?P<flags> \(\?[a-zA-Z-]+\) )
    | (?P<possessive> [*+?}] ) \+
    """,
    re.VERBOSE | re.DOTALL,
)


def check_pattern(pattern: str) -> str | None:
    """What is wrong with a regular expression; None where it is sound."""
    if "(?P" in pattern:
        return "a group is named with (?<name>...)"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            re.compile(_JAVA_ONLY.sub(_in_python, pattern))
    except re.error as error:
        return error.msg
    except (RecursionError, OverflowError):
        return "it is too large"
    return None


def _in_python(found: re.Match[str]) -> str:
    replacements = {"named": "(?P<", "atomic": "(?:", "flags": ""}
    kind = found.lastgroup
    if kind in ("kept", "possessive"):
        return found[kind]
    return replacements.get(kind or "", "a")
