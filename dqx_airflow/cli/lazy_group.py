"""Verbs that are imported when they are called: a group of commands only knows their locations."""

from __future__ import annotations

from collections import UserDict
from collections.abc import Mapping
from importlib import import_module
from inspect import cleandoc
from typing import Any

import typer
from typer.core import TyperGroup
from typer.main import get_group


class _Verbs(UserDict[str, Any]):
    """The commands by name; each is imported when it is looked up."""

    def __getitem__(self, name: str) -> Any:
        module, attribute = self.data[name].split(":")
        verb = getattr(import_module(module), attribute)
        alone = typer.Typer()
        if isinstance(verb, typer.Typer):
            alone.add_typer(verb, name=name)
        else:
            alone.command(name)(verb)
        return _with_paragraphs(get_group(alone).commands[name])


def _with_paragraphs(command: Any) -> Any:
    """A command whose help wraps at the width of the terminal, not at that of its docstring."""
    if command.help:
        paragraphs = cleandoc(command.help).split("\n\n")
        command.help = "\n\n".join(" ".join(paragraph.split("\n")) for paragraph in paragraphs)
    if isinstance(command, TyperGroup) and isinstance(command.commands, dict):
        for subcommand in command.commands.values():
            _with_paragraphs(subcommand)
    return command


def group_of(verbs: Mapping[str, str], kind: type[TyperGroup] = TyperGroup) -> type[TyperGroup]:
    """The class of a group of a kind with these verbs: `module:attribute` by name.

    Each is a function, or a `typer.Typer` with verbs of its own.
    """

    class LazyGroup(kind):  # type: ignore[valid-type,misc]
        def __init__(self, **settings: Any) -> None:
            super().__init__(**settings)
            self.commands = _Verbs(verbs)

    return LazyGroup
