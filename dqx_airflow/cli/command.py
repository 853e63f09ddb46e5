"""Shared by commands: their output, the files at the paths of a call, and their environment: the
settings in `dqx.toml`, connections, the results store.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TextIO, TypeAlias

import typer

from dqx_airflow.errors import RequestError, SparkError

if TYPE_CHECKING:
    from dqx_airflow.datasets.dqx_toml import Settings
    from dqx_airflow.datasets.spark_address import Connection

TextOrJson: TypeAlias = Literal["text", "json"]
SheetFormat: TypeAlias = Literal["text", "json", "csv"]

FORMAT: Any = typer.Option("--format", "-f")
"""The option for the form of the output, whatever the forms of a command are."""
TextFormatOption: TypeAlias = Annotated[
    TextOrJson, typer.Option("--format", "-f", help="Output format: text or json.")
]
OutputOption: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="Write the output to this new file; default: to standard output, as -.",
    ),
]
ForceOption: TypeAlias = Annotated[
    bool, typer.Option("--force", help="Replace the file of --output if it exists.")
]
QuietOption: TypeAlias = Annotated[bool, typer.Option("--quiet", "-q")]
VerboseOption: TypeAlias = Annotated[bool, typer.Option("--verbose", "-v")]


def require_text(format: str, *, quiet: bool, verbose: bool) -> None:
    """:raises RequestError: more or less than the whole text is wanted of another format."""
    given = [flag for flag, is_given in (("--quiet", quiet), ("--verbose", verbose)) if is_given]
    problem = None
    if len(given) > 1:
        problem = "--quiet and --verbose contradict each other"
    elif given and format != "text":
        problem = f"{given[0]} is for the format text, and the format is {format}"
    if problem is not None:
        raise RequestError(problem, "leave one of them out")


_FORMS = frozenset(
    ("text", "table", "json", "csv", "summary", "junit", "markdown", "github", "sarif", "html")
)
"""Words that are forms of the output, and hardly ever names of files."""


def writable(output: Path | None, *, force: bool) -> Path | None:
    """The file of --output; None for standard output.

    :raises RequestError: the file exists, and may not be replaced; or there is no file.
    """
    if force and output is None:
        raise RequestError("--force without --output", "add --output FILE")
    if output is None or str(output) == "-":
        return None
    if str(output) in _FORMS:
        raise RequestError(
            f"--output {output}: this is the file for the output",
            f"write --format {output}, or --output ./{output} for a file of this name",
        )
    if output.is_file() and not force:
        raise RequestError(f"{output} already exists", "choose another file, or add --force")
    return output


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


def has_colours(stream: TextIO) -> bool:
    """Whether a stream is a terminal with colours, and they are wanted (https://no-color.org)."""
    return can_redraw(stream) and not os.environ.get("NO_COLOR")


def can_redraw(stream: TextIO) -> bool:
    """Whether a stream is a terminal that can change what it shows, such as a progress bar."""
    return stream.isatty() and os.environ.get("TERM") not in ("dumb", "unknown")


def template(name: str) -> str:
    """The text of a file in this package; some have fields for `str.format`."""
    return Path(__file__).with_name(name).read_text(encoding="utf-8")


def json_if(output: str, value: object) -> str | None:
    """A value as JSON if that is the requested format, else None."""
    from dqx_airflow.diagnostics.machine_formats import json_text
    from dqx_airflow.values.output_form import output_form

    return json_text(output_form(value)) if output == "json" else None


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


def from_here(path: Path) -> str:
    """A path relative to the working directory, if it is below."""
    here = Path.cwd()
    absolute = path.absolute()
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
    from dqx_airflow.datasets.spark_address import connection_of

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
