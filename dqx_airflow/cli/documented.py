"""Commands whose docstring is their help, and groups of commands: in panels, each imported when it
is called, one of them perhaps without its name.
"""

from __future__ import annotations

import re
from collections import UserDict
from collections.abc import Callable, Collection, Mapping
from copy import copy
from dataclasses import fields
from functools import wraps
from inspect import Parameter, Signature, cleandoc, get_annotations, getdoc, signature
from pathlib import Path
from typing import Annotated, Any, TypeAlias, get_args, get_origin

import typer
from typer.core import TyperGroup
from typer.main import get_group

from dqx_airflow.cli.completion import Completion, complete_values
from dqx_airflow.cli.moved import moved_command
from dqx_airflow.cli.option_panels import panelled


def documented(command: Callable[..., Any]) -> Callable[..., Any]:
    """The command with the help of its options and arguments from its docstring: `:param gate:`.

    A parameter is an option if it has a default or is a keyword, and a boolean one is a flag
    without a negative form, unless its annotation says otherwise.
    """
    text, helps = _described(command)
    own = signature(command, eval_str=True)
    parameters = [_documented(each, helps.get(each.name)) for each in own.parameters.values()]

    @wraps(command)
    def called(*args: Any, **given: Any) -> Any:
        return command(*args, **given)

    return with_parameters(called, own.replace(parameters=parameters), text.strip())


def parameters_of(options: type) -> list[Parameter]:
    """The parameters of a command for the fields of a `documented` dataclass."""
    _, helps = _described(options)
    kinds = get_annotations(options, eval_str=True)
    keyword = Parameter.KEYWORD_ONLY
    parameters = (
        Parameter(each.name, keyword, default=each.default, annotation=kinds[each.name])
        for each in fields(options)
    )
    return [_documented(each, helps.get(each.name)) for each in parameters]


def _described(documented: Any) -> tuple[str, dict[str, str]]:
    """A docstring, and its sentence about each parameter."""
    text, *parts = re.split(r"\n\s*:param (\w+): ", getdoc(documented) or "")
    pairs = zip(parts[::2], parts[1::2], strict=True)
    return text, {name: " ".join(help.split()) for name, help in pairs}


def _documented(parameter: Parameter, help: str | None) -> Parameter:
    if help is None or parameter.kind is Parameter.VAR_KEYWORD:
        return parameter
    kind, *about = get_args(parameter.annotation) or (parameter.annotation,)
    if get_origin(parameter.annotation) is Annotated:
        typed = copy(about[0])
        typed.help = help
    else:
        kind = parameter.annotation
        flags = (f"--{parameter.name.replace('_', '-')}",) if kind is bool else ()
        is_option = (
            parameter.kind is Parameter.KEYWORD_ONLY or parameter.default is not Parameter.empty
        )
        typed = typer.Option(*flags, help=help) if is_option else typer.Argument(help=help)
    return parameter.replace(annotation=Annotated[kind, typed])


def with_parameters(
    called: Callable[..., Any], own: Signature, text: str | None = None
) -> Callable[..., Any]:
    """A wrapped command whose parameters, and documentation if given, are these."""
    called.__signature__ = own  # type: ignore[attr-defined]
    called.__annotations__ = {name: each.annotation for name, each in own.parameters.items()}
    called.__doc__ = called.__doc__ if text is None else text
    return called


class Commands(typer.Typer):
    """A group of commands that are `documented`."""

    def __init__(self, *, default: str | None = None, **settings: Any) -> None:
        """:param default: the command that is called if none is named."""
        kind = TyperGroup if default is None else with_default(TyperGroup, default)
        super().__init__(cls=kind, **settings)

    def command(self, name: str | None = None, **settings: Any) -> Callable[..., Any]:
        return lambda function: super(Commands, self).command(name, **settings)(
            documented(function)
        )


Command: TypeAlias = "Callable[..., None] | typer.Typer"
"""The function of a command, or an application with commands of its own."""


class _LazyCommands(UserDict[str, Any]):
    """The commands of a group by name; each is imported when it is looked up."""

    def __init__(self, panels: Panels, hidden: Collection[str]) -> None:
        imports = {name: found for panel in panels.values() for name, found in panel.items()}
        super().__init__(imports)
        self._panel_of = {name: panel for panel, names in panels.items() for name in names}
        self._hidden = hidden
        self._made: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._made:
            self._made[name] = self._imported(name)
        return self._made[name]

    def _imported(self, name: str) -> Any:
        command = self.data[name]()
        alone = typer.Typer()
        if isinstance(command, typer.Typer):
            alone.add_typer(command, name=name)
        else:
            alone.command(name)(documented(command))
        made = _completed(get_group(alone).commands[name])
        made.rich_help_panel = self._panel_of[name]
        made.hidden = name in self._hidden
        return made


def _completed(command: Any) -> Any:
    """The command, with help that wraps at the width of the terminal, and without empty texts for
    options and arguments."""
    if command.help:
        command.help = re.sub(r"(?<!\n)\n(?!\n)", " ", cleandoc(command.help))
    command.params = panelled(command.params)
    for parameter in command.params:
        _refuse_blank(parameter)
        complete_values(parameter)
        if parameter.param_type_name == "argument":
            _show_plainly(parameter)
    if isinstance(command, TyperGroup) and isinstance(command.commands, dict):
        for subcommand in command.commands.values():
            _completed(subcommand)
    return command


def _refuse_blank(parameter: Any) -> None:
    """Makes an empty text for a parameter an error, before it is converted: for a path, it would be
    the working directory.

    An empty variable of the environment is one that is not set, here as in other programs.
    """
    consume = parameter.consume_value

    def consume_given(ctx: Any, opts: Any) -> Any:
        from dqx_airflow.values.blank import require_no_blank

        value, source = consume(ctx, opts)
        if source.name == "COMMANDLINE":
            require_no_blank({_name_of(parameter): value})
        elif source.name == "ENVIRONMENT":
            names = parameter.envvar
            listed = [names] if isinstance(names, str) else names
            require_no_blank({" or ".join(listed): value})
        return value, source

    parameter.consume_value = consume_given


def _show_plainly(argument: Any) -> None:
    """Makes the usage of a command show an argument as `PATH...`, or `[PATH...]` if it may be left
    out, without the braces of the library."""
    name = argument.metavar or argument.name.upper()
    shown = name if argument.required or name.startswith("[") else f"[{name}]"
    argument.get_usage_pieces = lambda ctx: [shown]


def _name_of(parameter: Any) -> str:
    """The name of an option or an argument in the help."""
    if parameter.param_type_name == "option":
        return str(max(parameter.opts, key=len))
    return str(parameter.human_readable_name)


Panels: TypeAlias = "Mapping[str, Mapping[str, Callable[[], Command]]]"
"""The import of each command of a group by name, below the title of its panel in the help: both in
the order of the help."""


def group_of(
    panels: Panels, kind: type[TyperGroup] = TyperGroup, hidden: Collection[str] = ()
) -> type[TyperGroup]:
    """Returns the class of a group of a kind whose commands are imported when they are called.

    :param hidden: the commands that the help does not list.
    """

    class LazyGroup(kind):  # type: ignore[valid-type,misc]
        def __init__(self, **settings: Any) -> None:
            super().__init__(**settings)
            self.commands = _LazyCommands(panels, hidden)

        def list_commands(self, ctx: Any) -> list[str]:
            return list(self.commands)

        def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
            if incomplete.startswith("-"):
                options: list[Any] = super().shell_complete(ctx, incomplete)
                return options
            shown = [name for name in self.commands if name not in hidden]
            return [Completion(name) for name in shown if name.startswith(incomplete)]

        def resolve_command(self, ctx: Any, args: list[str]) -> Any:
            if args[0] not in self.commands:
                moved = moved_command(ctx.command_path, args)
                if moved is not None:
                    raise moved
            return super().resolve_command(ctx, args)

    return LazyGroup


def with_default(kind: type[TyperGroup], default: str, *suffixes: str) -> type[TyperGroup]:
    """Returns the class of a group of a kind that calls one of its commands if none is named.

    :param suffixes: the suffixes of the files that the command takes as its first argument. A
        group without a default for them calls it only for options, and for nothing at all.
    """

    class DefaultGroup(kind):  # type: ignore[valid-type,misc]
        def __init__(self, **settings: Any) -> None:
            super().__init__(**settings)
            self.default = default

        def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
            if self._is_for_default(args) and not ctx.resilient_parsing:
                args = [self.default, *args]
            rest: list[str] = super().parse_args(ctx, args)
            return rest

        def _is_for_default(self, args: list[str]) -> bool:
            if not args:
                return not self.no_args_is_help
            first = args[0]
            if first in self.commands or first in HELP_OPTIONS:
                return False
            if first.startswith("-"):
                return True
            is_file = Path(first).suffix in suffixes or Path(first).is_file()
            return bool(suffixes) and is_file

    return DefaultGroup


HELP_OPTIONS = ("--help", "-h")
