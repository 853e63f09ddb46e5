"""Commands whose docstring is their help, and groups of commands, each imported when it is
called.
"""

from __future__ import annotations

import re
from collections import UserDict
from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import fields
from functools import wraps
from inspect import Parameter, Signature, cleandoc, get_annotations, getdoc, signature
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, get_args, get_origin

import typer
from typer.core import TyperGroup
from typer.main import get_group

if TYPE_CHECKING:
    pass


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

    def command(self, name: str | None = None, **settings: Any) -> Callable[..., Any]:
        return lambda function: super(Commands, self).command(name, **settings)(
            documented(function)
        )


Command: TypeAlias = "Callable[..., None] | typer.Typer"
"""The function of a command, or an application with commands of its own."""


class _LazyCommands(UserDict[str, Any]):
    """The commands of a group by name; each is imported when it is looked up."""

    def __init__(self, imports: Mapping[str, Callable[[], Command]]) -> None:
        super().__init__(imports)

    def __getitem__(self, name: str) -> Any:
        command = self.data[name]()
        alone = typer.Typer()
        if isinstance(command, typer.Typer):
            alone.add_typer(command, name=name)
        else:
            alone.command(name)(documented(command))
        return _completed(get_group(alone).commands[name])


def _completed(command: Any) -> Any:
    """The command, with help that wraps at the width of the terminal, and without empty texts for
    options and arguments."""
    if command.help:
        command.help = re.sub(r"(?<!\n)\n(?!\n)", " ", cleandoc(command.help))
    for parameter in command.params:
        _refuse_blank(parameter)
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


def _name_of(parameter: Any) -> str:
    """The name of an option or an argument in the help."""
    if parameter.param_type_name == "option":
        return str(max(parameter.opts, key=len))
    return str(parameter.human_readable_name)


def group_of(
    commands: Mapping[str, Callable[[], Command]], kind: type[TyperGroup] = TyperGroup
) -> type[TyperGroup]:
    """The class of a group of a kind whose commands are imported when they are called.

    :param commands: the import of each command, in the order of the help.
    """

    class LazyGroup(kind):  # type: ignore[valid-type,misc]
        def __init__(self, **settings: Any) -> None:
            super().__init__(**settings)
            self.commands = _LazyCommands(commands)

    return LazyGroup
