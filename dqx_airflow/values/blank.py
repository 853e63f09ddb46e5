"""Finds options that are set to an empty string, as by a variable or a template without a value,
and mappings with a key that is not a name.

An option that protects would be off silently, so an empty string is never treated as missing.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping

from dqx_airflow.errors import RequestError

_FILLERS = "\u115f\u1160\u2800\u3164\uffa0"
"""Letters and symbols that look like white space."""


def is_blank(value: object) -> bool:
    """True for a string without a visible character: empty, white space, a zero-width space."""
    return isinstance(value, str) and all(map(_is_invisible, value))


def _is_invisible(character: str) -> bool:
    is_format = unicodedata.category(character) == "Cf"
    return is_format or character.isspace() or character in _FILLERS


def has_blank(value: object) -> bool:
    """True for an empty string, for a list or a set that contains one, and for a mapping with one
    as a value."""
    if isinstance(value, Mapping):
        return any(map(has_blank, value.values()))
    if isinstance(value, list | tuple | set | frozenset):
        return any(map(has_blank, value))
    return is_blank(value)


def blanks_in(given: Mapping[str, object]) -> Iterator[str]:
    """The names of the values that are, or contain, an empty string."""
    for name, value in given.items():
        if has_blank(value):
            yield name


def require_no_blank(given: Mapping[str, object]) -> None:
    """Raises one error for all values that are, or contain, an empty string.

    :param given: the values by the names that a message gives them.
    :raises RequestError: there is one.
    """
    names = [*blanks_in(given)]
    if not names:
        return
    verb = "is" if len(names) == 1 else "are"
    hint = f"write a value, or leave {names[0] if len(names) == 1 else 'them'} out"
    raise RequestError(f"{', '.join(names)} {verb} empty", hint)


def name_errors(given: Mapping[str, object]) -> Iterator[str]:
    """The errors in mappings with a key that is not a name: not a string, or without a visible
    character.

    :param given: values, of which those that are mappings are searched, by the names that a message
        gives them.
    """
    for argument, value in given.items():
        if not isinstance(value, Mapping):
            continue
        for key in value:
            if not isinstance(key, str) or is_blank(key):
                yield f"{argument} has {key!r} as a name: write a string with a visible character"
        yield from name_errors({f"{argument}[{key!r}]": inner for key, inner in value.items()})


def require_names(given: Mapping[str, object]) -> None:
    """Raises one error for all mappings with a key that is not a name.

    :param given: the mappings by the names that a message gives them.
    :raises RequestError: there is one.
    """
    errors = [*name_errors(given)]
    if errors:
        raise RequestError("; ".join(errors))
