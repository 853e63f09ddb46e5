"""Calls of before the first release whose command or option has another name now: the error for
one contains the new call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

from dqx_airflow.cli.command import template
from dqx_airflow.errors import RequestError


@cache
def moved_calls() -> Mapping[str, str]:
    """Returns the new call for each old one: a command, alone or with one of its options."""
    rows = (line.split(" | ") for line in template("moved.txt").splitlines())
    return dict(rows)


def moved_command(group: str, words: Sequence[str]) -> RequestError | None:
    """Returns the error for an old command of a group; None if the group never had it.

    :param group: the path of the group, such as `dql contract`.
    :param words: the words of the call behind the group.
    """
    command = f"{_of_dql(group)} {words[0]}"
    if command not in moved_calls():
        return None
    with_options = (f"{command} {word.partition('=')[0]}" for word in words[1:])
    new = next((moved_calls()[call] for call in with_options if call in moved_calls()), None)
    return RequestError(
        f"there is no command `{command}`", f"write `{new or moved_calls()[command]}`"
    )


def moved_option(error: Exception) -> RequestError | None:
    """Returns the error for an old option of a command; None if the error is about anything else.

    :param error: an error of the library that parses the command line.
    """
    context = getattr(error, "ctx", None)
    option = getattr(error, "option_name", None)
    if context is None or option is None:
        return None
    command = _of_dql(context.command_path)
    new = moved_calls().get(f"{command} {option}")
    if new is None:
        return None
    return RequestError(f"`{command}` has no option {option}", f"write `{new}`")


def _of_dql(path: str) -> str:
    """The path of a command below `dql`, which a test may start under another name."""
    return " ".join(("dql", *path.split()[1:]))
