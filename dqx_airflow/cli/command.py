"""Shared by all commands: verbs are imported when they are called, exceptions become messages and
exit codes, text goes to the requested output. Also reads the environment of a command: the settings
in `dqx.toml`, suites and contracts selected by paths, the results store.
"""

from __future__ import annotations

import errno
import math
import os
import re
import sys
from collections import UserDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from copy import copy
from dataclasses import fields
from functools import wraps
from importlib import import_module
from inspect import Parameter, Signature, cleandoc, get_annotations, getdoc, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias, get_args, get_origin

import typer
from typer.core import TyperGroup
from typer.main import get_group

from dqx_airflow.errors import DqxError, RequestError, SourceError, SparkError, first_line

if TYPE_CHECKING:
    from dqx_airflow.datasets.connections import Connection
    from dqx_airflow.datasets.dqx_toml import Settings


TextOrJson: TypeAlias = Literal["text", "json"]
TableOrJson: TypeAlias = Literal["table", "json"]
SheetFormat: TypeAlias = Literal["table", "json", "csv"]


TextFormatOption: TypeAlias = Annotated[
    TextOrJson, typer.Option("--format", help="Output format: text or json.")
]
TableFormatOption: TypeAlias = Annotated[
    TableOrJson, typer.Option("--format", help="Output format: table or json.")
]


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


def template(name: str) -> str:
    """The text of a file in this package; some have fields for `str.format`."""
    return Path(__file__).with_name(name).read_text(encoding="utf-8")


def json_if(output: str, value: object) -> str | None:
    """A value as JSON if that is the requested format, else None."""
    from dqx_airflow.values import to_json

    return to_json(value) if output == "json" else None


def print_list(
    text: str | None, head: Sequence[str], rows: Sequence[Sequence[Any]], nothing: str
) -> None:
    """Prints a text such as JSON if that is wanted, else a table, or a sentence if that would have
    no rows."""
    from dqx_airflow.cli.reports import print_table

    if text is not None:
        typer.echo(text, nl=not text.endswith("\n"))
    elif rows:
        print_table(head, rows)
    else:
        typer.echo(nothing)


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
    (_, helps), kinds = _described(options), get_annotations(options, eval_str=True)
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
    """A command whose help wraps at the width of the terminal, not at that of its docstring, and
    which takes no empty text for an option or an argument."""
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
        problem = f"cannot write: {error.strerror}"
        hint = "make room, or write the output elsewhere"
    else:
        problem = f"dql failed: {_first_line(error)}"
        if isinstance(error, ImportError):  # such as half of one PySpark over half of another
            hint = f"`dql doctor` finds packages that are missing or do not fit; {hint}"
    return f"error: {problem}\n  help: {hint}"


def _first_line(error: Exception) -> str:
    name, line = type(error).__name__, first_line(error)[:300]
    return name if line == name else f"{name}: {line}"


def from_here(path: Path) -> str:
    """A path relative to the working directory, if it is below."""
    here, absolute = Path.cwd(), path.absolute()
    return str(absolute.relative_to(here)) if absolute.is_relative_to(here) else str(path)


def settings_here() -> Settings:
    """:raises RequestError: they have a mistake."""
    from dqx_airflow.datasets.dqx_toml import Settings, find_settings, read_settings

    path = find_settings(Path())
    settings = read_settings(path) if path is not None else Settings()
    if settings.problems:
        first = settings.problems[0]
        raise RequestError(f"{path}:{first.span.line}: {first.message}")
    return settings


def of_spark(name: str, extra: str = "spark") -> Any:
    """A module that imports pyspark, which comes with an extra of this package.

    :raises SparkError: a package that it needs is not installed.
    """
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        raise SparkError(
            f"package {error.name} is not installed", f"pip install 'dqx-airflow[{extra}]'"
        ) from error


@contextmanager
def of_extra(user: str, extra: str, *packages: str) -> Iterator[None]:
    """Imports packages that come with an extra of this package.

    :param user: the name of the feature that requires the first of them.
    :raises RequestError: one of them is not installed.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name is None or error.name.split(".")[0] not in packages:
            raise
        problem = f"{user} needs {packages[0]}, which is not installed"
        raise RequestError(problem, f"pip install 'dqx-airflow[{extra}]'") from None


def finite(value: float | None) -> float | None:
    """A number of the command line, which is also within its range: NaN would be in any."""
    if value is not None and math.isnan(value):
        raise typer.BadParameter("nan is not a number.")
    return value


TYPED_VARIABLES: ContextVar[tuple[str, ...]] = ContextVar("TYPED_VARIABLES", default=())
"""The values of `dql contract --variable`."""


def variables_in(settings: Settings) -> dict[str, str]:
    """The variables that contracts may refer to; values on the command line take precedence.

    :raises RequestError: one is not `NAME=VALUE` or `NAME`.
    """
    from dqx_airflow.contracts.variables import given_variables

    return given_variables((*settings.variables, *TYPED_VARIABLES.get()), os.environ)


def connection_in(settings: Settings, address: str | None) -> Connection:
    """The connection of `--connection`, or else the connection in the settings.

    :raises RequestError: the address is invalid.
    """
    from dqx_airflow.datasets.connections import connection_of

    if address is None:
        return settings.connection
    try:
        return connection_of(address)
    except RequestError as error:
        raise RequestError(f"--connection: {error.problem}", error.hint) from None


SUITE_ENDINGS = frozenset({".dql"})
"""The file name suffix of suites in a folder."""

CONTRACT_ENDINGS = frozenset({".yaml", ".yml", ".json"})
"""The file name suffixes of contracts; every other file is a suite."""


def suite_files(paths: Iterable[Path]) -> tuple[list[Path], list[Path]]:
    """Each file of the paths once, with folders searched; and the paths without any."""
    files: list[Path] = []
    missing = []
    for path in paths:
        if path.is_dir():
            suites = sorted(path.rglob("*.dql"))
        elif path.exists():
            suites = [path]
        else:
            suites = []
        files += suites
        if not suites:
            missing.append(path)
    return list(dict.fromkeys(files)), missing


def what_to_give(missing: Path, endings: frozenset[str] = SUITE_ENDINGS) -> str:
    """The hint for a path without files of these kinds: those beside it, the nearest name first."""
    from dqx_airflow.diagnostics.diagnostic import did_you_mean

    folder = missing if missing.is_dir() else missing.parent
    beside = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
    candidates = [name for name in beside if Path(name).suffix in endings]
    kinds = " or ".join(sorted(endings))
    return did_you_mean(missing.name, candidates) or f"give files, or folders with {kinds} files"


ROOT_VARIABLES = ["DQX_RESULTS_ROOT", "AIRFLOW__DQX__RESULTS_ROOT"]
"""The environment variables with the results root, in order of precedence. The second one is the
setting of the gates in Airflow."""


RootOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--root", envvar=ROOT_VARIABLES, help="The root of the results store: a path or URI."
    ),
]


def storage_options() -> dict[str, str] | None:
    """The options for access to the storage, from the environment."""
    from dqx_airflow.values.json_form import storage_options_of

    return storage_options_of(os.environ)
