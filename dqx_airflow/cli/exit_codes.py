"""The exit codes of commands, and the messages of exceptions that end them."""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperGroup

from dqx_airflow.cli.moved import moved_option
from dqx_airflow.cli.shell_words import names_kept_open, shell_word
from dqx_airflow.errors import DqxError, NoStoreError, RequestError, SourceError, first_line

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
    is_typed = isinstance(error, RequestError | SourceError | NoStoreError)
    return EXIT_WRONG if is_typed else EXIT_INFRASTRUCTURE


TRACEBACK = "DQX_TRACEBACK"

_OF_COMPLETION = ("--show-completion", "--install-completion")

_OF_SPARK = ("py4j", "pyspark")

_OF_A_PATH = (errno.ENAMETOOLONG, errno.ELOOP, errno.ENOTDIR, errno.EISDIR)
"""Errors about a typed path, whatever the operation."""

_FULL = (errno.ENOSPC, errno.EDQUOT)


class CommandGroup(TyperGroup):
    """Turns an exception of a command into a message and an exit code. The code is never 1: only
    a command itself ends with 1.

    A shell that completes a line gives it in variables.
    """

    def main(self, *args: Any, **extra: Any) -> Any:
        asked, _, shell = os.environ.get("_DQL_COMPLETE", "").partition("_")
        if asked == "complete":
            extra["obj"] = shell_word(os.environ, shell)
        if any(word.startswith(_OF_COMPLETION) for word in extra.get("args") or sys.argv):
            with names_kept_open():
                return super().main(*args, **extra)
        return super().main(*args, **extra)

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
        except Exception as raised:
            error = moved_option(raised) or raised
            _refuse_call(error)
            _print_error(error)
            raise typer.Exit(_exit_code(error)) from None

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parses the options before the command; a mistake there is drawn as one of a command."""
        try:
            return super().parse_args(ctx, args)
        except Exception as error:
            _refuse_call(error)
            raise


def _refuse_call(error: Exception) -> None:
    """Draws an error of the command line library as all errors are, and ends the command."""
    if not hasattr(error, "exit_code") or not hasattr(error, "format_message"):
        return
    if type(error).__name__ == "NoArgsIsHelpError":
        raise error
    problem = error.format_message().strip().rstrip(".").replace("\n", " ")
    problem = problem[:1].lower() + problem[1:]
    _print_error(RequestError(problem, _hint_of(error)))
    # Some of these exceptions end with 1, which has another meaning here.
    raise typer.Exit(EXIT_WRONG) from None


def _hint_of(error: Any) -> str:
    """What to type instead of a wrong call."""
    path = getattr(error.ctx, "command_path", "dql") if hasattr(error, "ctx") else "dql"
    option = getattr(error, "option_name", "")
    for old, new, command in _renamed():
        if option == old and command in ("*", path.split()[-1]):
            return f"it is now {new}"
    possible = [*(getattr(error, "possibilities", None) or ())]
    if possible:
        return f"did you mean {' or '.join(sorted(possible))}?"
    if "'table' is not one of" in error.format_message():
        return "the table is now the format text"
    return f"`{path} --help` shows how to call it"


def _renamed() -> list[tuple[str, str, str]]:
    """The former names of options, their names now, and the last word of their command."""
    text = Path(__file__).with_name("renamed.txt").read_text(encoding="utf-8")
    parts = (line.split() for line in text.splitlines() if not line.startswith("#"))
    return [(old, " ".join(new), command) for old, *new, command in parts]


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
        problem = f"cannot write: {error.strerror}"
        hint = "make room, or write the output elsewhere"
    else:
        problem = f"dql failed: {_first_line(error)}"
        if isinstance(error, ImportError):  # such as half of one PySpark over half of another
            hint = f"`dql doctor` finds packages that are missing or do not fit; {hint}"
    return f"error: {problem}\n  help: {hint}"


def _first_line(error: Exception) -> str:
    name = type(error).__name__
    line = first_line(error)[:300]
    return name if line == name else f"{name}: {line}"
