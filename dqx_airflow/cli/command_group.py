"""The group of all commands: verbs are imported when they are called, exceptions become messages
and exit codes, and the text of a command goes where, and in the format, that it is asked for.
"""

from __future__ import annotations

import errno
import os
import sys
from collections import UserDict
from collections.abc import Mapping
from enum import Enum
from importlib import import_module
from inspect import cleandoc
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer
from typer.core import TyperGroup
from typer.main import get_group

from dqx_airflow.errors import DqxError, RequestError, SourceError, first_line


class TextOrJson(str, Enum):
    """For people, or as JSON."""

    TEXT = "text"
    JSON = "json"


class TableOrJson(str, Enum):
    """A table for people, or JSON."""

    TABLE = "table"
    JSON = "json"


TextFormatOption: TypeAlias = Annotated[
    TextOrJson, typer.Option("--format", help="Output format: text or json.")
]
TableFormatOption: TypeAlias = Annotated[
    TableOrJson, typer.Option("--format", help="Output format: table or json.")
]


class SheetFormat(str, Enum):
    """A table for people, JSON, or CSV for spreadsheets."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"


def print_or_write(text: str, output: Path | None) -> None:
    """:raises RequestError: the file cannot be written."""
    if output is None:
        typer.echo(text, nl=False)
    else:
        write_text(output, text)


def write_text(path: Path, text: str) -> None:
    """:raises RequestError: the file cannot be written."""

    try:
        path.write_text(text, encoding="utf-8", newline="\n")
    except OSError as error:
        raise RequestError(f"cannot write {path}: {error.strerror}") from error


def require_new(path: Path) -> None:
    """:raises RequestError: it exists."""

    if path.exists():
        raise RequestError(f"{path} already exists", "choose another file")


EXIT_FAILED = 1
"""The data is blocked, or a check of the command failed. Nothing else ends with it."""
EXIT_WRONG = 2
"""A source has errors, or the command line is wrong."""
EXIT_BROKEN = 3
"""Assertions could not be evaluated."""
EXIT_INFRASTRUCTURE = 4
"""Spark, a service or a store failed."""
EXIT_INTERRUPTED = 130
EXIT_NO_READER = 141


def exit_code_of(error: DqxError) -> int:
    return EXIT_WRONG if isinstance(error, RequestError | SourceError) else EXIT_INFRASTRUCTURE


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


TRACEBACK = "DQX_TRACEBACK"
_OF_SPARK = ("py4j", "pyspark")
_OF_A_PATH = (errno.ENAMETOOLONG, errno.ELOOP, errno.ENOTDIR, errno.EISDIR)
"""Errors about a typed path, whatever the operation."""
_FULL = (errno.ENOSPC, errno.EDQUOT)


class CommandGroup(TyperGroup):
    """Turns an exception of a command into a message and an exit code. The code is never 1: only
    a command itself ends with 1."""

    def invoke(self, ctx: Any) -> Any:
        try:
            result = super().invoke(ctx)
            if sys.stdout is not None and not sys.stdout.closed:  # a language server closes it
                sys.stdout.flush()
            return result
        except typer.Exit:
            raise
        except (KeyboardInterrupt, typer.Abort, EOFError):
            raise typer.Exit(EXIT_INTERRUPTED) from None
        except BrokenPipeError:
            # Pending output has no reader either.
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            raise typer.Exit(EXIT_NO_READER) from None
        except Exception as error:
            # Some exceptions of the command line library end with 1, which has another meaning
            # here.
            if hasattr(error, "exit_code") and hasattr(error, "show"):
                if error.exit_code != 1:
                    raise
                error.show()
                raise typer.Exit(EXIT_WRONG) from None
            _print_error(error)
            raise typer.Exit(_exit_code(error)) from None


def _exit_code(error: Exception) -> int:
    if isinstance(error, DqxError):
        return exit_code_of(error)
    is_typed = isinstance(error, OSError) and error.errno in _OF_A_PATH
    return EXIT_WRONG if is_typed else EXIT_INFRASTRUCTURE


def _print_error(error: Exception) -> None:
    """Draws the error, without secrets: an exception may quote its input."""
    from dqx_airflow.cli.reports import printable
    from dqx_airflow.values.redact import redact

    typer.echo(printable(redact(_message(error)), keep="\n"), err=True)
    if os.environ.get(TRACEBACK):
        import traceback

        lines = "".join(traceback.format_exception(error))
        typer.echo(printable(redact(lines), keep="\n"), err=True)


def _message(error: Exception) -> str:
    if isinstance(error, DqxError):
        is_drawn = bool(getattr(error, "diagnostics", ()))
        return str(error) if is_drawn else f"error: {error}"
    hint = f"set {TRACEBACK}=1 to see where it happened, and report it with the command"
    if type(error).__module__.startswith(_OF_SPARK) or isinstance(error, ConnectionError):
        problem = f"Spark was lost: {_first_line(error)}"
        hint = f"check the output of its JVM; {hint}"
    elif isinstance(error, OSError) and isinstance(error.filename, (str, os.PathLike)):
        problem = f"{os.fspath(error.filename)}: {error.strerror}"
        hint = f"check the path; {hint}"
    elif isinstance(error, OSError) and error.errno in _FULL:
        problem, hint = (
            f"cannot write: {error.strerror}",
            "make room, or write the output elsewhere",
        )
    else:
        problem = f"dql failed: {_first_line(error)}"
    return f"error: {problem}\n  help: {hint}"


def _first_line(error: Exception) -> str:
    name, line = type(error).__name__, first_line(error)[:300]
    return name if line == name else f"{name}: {line}"
