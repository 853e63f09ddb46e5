"""The words in use: all names that a user types, each with the types of its values.

A name here is what a command, an option, a key or a variable is called now. `used` collects them
from the program itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

import dqx_airflow
from dqx_airflow.cli.main import app
from dqx_airflow.datasets import dqx_toml, gate_settings
from dqx_airflow.datasets.settings import SETTINGS

_PACKAGE = Path(dqx_airflow.__file__).parent
_VARIABLE = re.compile(r"\"((?:DQX|DQL)_[A-Z_]+[A-Z]|AIRFLOW__DQX__[A-Z_]+)\"")


def used() -> dict[str, dict[str, str]]:
    """The names in use by kind, each with the types of its values.

    To add a kind, such as the arguments of operators or the keys of JSON, add it here, with a
    function that yields its names and types, and a table in command_line.md.
    """
    return {
        "Commands": {name: "" for name, _ in _commands()},
        "Options": _merged(_options()),
        "Keys of dqx.toml": dict.fromkeys(_keys(), ""),
        "Environment variables": dict.fromkeys(_variables(), ""),
    }


def _merged(pairs: Iterator[tuple[str, str]]) -> dict[str, str]:
    """The types of each name, where one name has several."""
    types: dict[str, set[str]] = {}
    for name, kind in pairs:
        types.setdefault(name, set()).add(kind)
    return {name: ", ".join(sorted(kinds)) for name, kinds in types.items()}


def _commands() -> Iterator[tuple[str, Any]]:
    yield from _below(typer.main.get_command(app), ())


def _below(command: Any, words: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
    if words:
        yield " ".join(words), command
    if hasattr(command, "list_commands"):
        context = command.context_class(command)
        for name in command.list_commands(context):
            yield from _below(command.get_command(context, name), (*words, name))


def _options() -> Iterator[tuple[str, str]]:
    commands = [typer.main.get_command(app), *(command for _, command in _commands())]
    for command in commands:
        for parameter in command.params:
            if parameter.param_type_name == "option":
                for flag in (*parameter.opts, *parameter.secondary_opts):
                    yield flag, _type_of(parameter)


def _type_of(option: Any) -> str:
    """The type of the values of an option, as command_line.md names it."""
    if option.is_flag:
        return "switch"
    parser = getattr(option.type, "func", None)
    if parser is not None:
        return str(parser.__name__).removesuffix("_in_utc")
    if getattr(option.type, "choices", None):
        return "word"
    names = {"str": "text", "integer range": "number", "int range": "number"}
    names |= {"float range": "number", "file": "path", "directory": "path", "datetime": "day"}
    return names.get(option.type.name, option.type.name)


def _keys() -> Iterator[str]:
    yield from (f"[{table}]" for table in dqx_toml._TABLES)
    yield from (f"connection.{key}" for key in dqx_toml._CONNECTION)
    yield from (f"defaults.{key}" for key in dqx_toml._DEFAULTS)
    yield from (f"datasets.NAME.{key}" for key in SETTINGS)
    yield from (f"gates.NAME.{key}" for key in gate_settings.KEYS)


def _variables() -> Iterator[str]:
    for path in sorted(_PACKAGE.rglob("*.py")):
        yield from _VARIABLE.findall(path.read_text(encoding="utf-8"))
