"""Texts that are given and empty: a variable that is not set, or a template without a result.

An option that protects would be off without a word, so an empty text is never taken for none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from dqx_airflow.errors import RequestError


def is_blank(value: object) -> bool:
    """Whether a value is a text of nothing but white space."""
    return isinstance(value, str) and not value.strip()


def has_blank(value: object) -> bool:
    """Whether a value is an empty text, or a list, a set or a mapping that holds one."""
    if isinstance(value, Mapping):
        return any(map(has_blank, (*value, *value.values())))
    if isinstance(value, list | tuple | set | frozenset):
        return any(map(has_blank, value))
    return is_blank(value)


def blanks_in(given: Mapping[str, object]) -> Iterator[str]:
    """The names of the values that are, or hold, an empty text."""
    for name, value in given.items():
        if has_blank(value):
            yield name


def require_no_blank(given: Mapping[str, object]) -> None:
    """Rejects texts that are empty, all at once.

    :param given: the values by the names that a message gives them.
    :raises RequestError: there is one.
    """
    names = [*blanks_in(given)]
    if not names:
        return
    verb = "is" if len(names) == 1 else "are"
    hint = f"write a value, or leave {names[0] if len(names) == 1 else 'them'} out"
    raise RequestError(f"{', '.join(names)} {verb} empty", hint)
