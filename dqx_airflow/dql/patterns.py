"""Regular expressions of predicates: is there a mistake in one?

Spark matches with Java's expressions, and there is no Java here: what Java has and Python has not
is replaced, then Python reads the rest. That finds nearly all mistakes.
"""

from __future__ import annotations

import re
import warnings

from dqx_airflow.dql.explosions import may_explode

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


_FOREVER_TAKEN = re.compile(r"\(\?>|[*+?}]\+")
"""Atomic groups and possessive repetitions: what they took they do not give back."""


def check_pattern(pattern: str) -> str | None:
    """What is wrong with a regular expression; None where it is sound."""
    if "(?P" in pattern:
        return "a group is named with (?<name>...)"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            translated = _JAVA_ONLY.sub(_in_python, pattern)
            re.compile(translated)
            if not _FOREVER_TAKEN.search(pattern) and may_explode(translated):
                return "on some texts it takes exponential time: a repetition within a repetition"
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
