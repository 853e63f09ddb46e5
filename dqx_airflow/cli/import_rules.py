"""`dql import`: the rules of other tools as a suite."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

import typer

from dqx_airflow.cli import command, exit_codes
from dqx_airflow.cli.json_objects import imported_rule_object
from dqx_airflow.diagnostics.machine_formats import json_text
from dqx_airflow.diagnostics.templates import filled
from dqx_airflow.errors import NoCounterpartError, RequestError

if TYPE_CHECKING:
    from dqx_airflow.importing.foreign_rule import ForeignRule

FailOnUntranslated: TypeAlias = Literal["not-translated", "different", "never"]


def import_rules(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...")],
    *,
    tool: Annotated[str | None, typer.Option(metavar="TOOL")] = None,
    dataset: str | None = None,
    sql_dialect: str | None = None,
    name: str | None = None,
    output: command.OutputOption = None,
    force: command.ForceOption = False,
    fail_on: FailOnUntranslated = "not-translated",
    format: Annotated[command.TextOrJson, command.FORMAT] = "text",
) -> None:
    """Translate rule files of other tools to a suite, and list every rule.

    Each rule is translated, translated with a difference that the suite states in a comment, or
    not translated, with the reason. The exit code is 1 if a rule is not translated, 2 if a file
    cannot be read.

    :param files: Rule files, of one tool or several.
    :param tool: great-expectations, soda, dbt, databricks-dqx, spark-expectations, dqdl, cuallee,
        deequ, pandera or airflow; default: detected from the content.
    :param dataset: The dataset of all rules; default: the dataset named in the file.
    :param sql_dialect: The database of the SQL of Great Expectations, Soda, dbt and Airflow, or
        spark; default: SQL is translated if it means the same in all databases.
    :param name: The name of the suite; default: the name of the first file.
    :param fail_on: Exit with 1 if a rule is not translated; with different, even if one is
        translated with a difference; with never, do not.
    :param format: Format of the report: text on standard error; json, which is then the only
        output, needs --output for the suite.
    """
    from dqx_airflow.contracts.dialects.servers import SQL_DIALECTS
    from dqx_airflow.importing.imported_suite import ImportOutcome, outcome_counts, suite_of
    from dqx_airflow.importing.tools import TOOLS

    if tool is not None and tool not in TOOLS:
        message = f"unknown tool '{tool}'; available: {', '.join(TOOLS)}"
        raise typer.BadParameter(message, param_hint="--tool")
    if sql_dialect and sql_dialect.strip().lower() not in SQL_DIALECTS:
        message = f"unknown SQL dialect '{sql_dialect}'; available: {', '.join(SQL_DIALECTS)}"
        raise typer.BadParameter(message, param_hint="--sql-dialect")
    file = command.writable(output, force=force)
    if format == "json" and file is None:
        raise RequestError(
            "--format json prints the report, and the suite needs a file", "add --output FILE"
        )
    rules: list[ForeignRule] = []
    origins: list[str] = []
    for path, tool_name, of_file in _read_files(files, tool, dataset, sql_dialect):
        rules += of_file
        origins.append(f"{path.name} ({TOOLS[tool_name].title})")
    suite = suite_of(name or files[0].stem, f"Imported from {', '.join(origins)}", rules)
    command.print_or_write(suite.text, file)
    if format == "json":
        objects = [imported_rule_object(rule) for rule in suite.rules]
        typer.echo(json_text(objects))
    else:
        counts = [*outcome_counts(suite.rules)]
        text = filled(__package__, "imported.txt", rules=suite.rules, counts=counts)
        typer.echo(text, err=True, nl=False)
    failing = {
        "never": (),
        "not-translated": (ImportOutcome.NOT_TRANSLATED,),
        "different": (ImportOutcome.NOT_TRANSLATED, ImportOutcome.DIFFERENT),
    }[fail_on]
    if any(imported.outcome in failing for imported in suite.rules):
        raise typer.Exit(exit_codes.EXIT_FAILED)


def _read_files(
    files: Sequence[Path], tool: str | None, dataset: str | None, sql_dialect: str | None
) -> Iterator[tuple[Path, str, Sequence[ForeignRule]]]:
    """Each file with the name of its tool, and its rules. Files that cannot be read end the
    command, after all of them are reported."""
    from dqx_airflow.dql.syntax.source_file import Unreadable, read_source
    from dqx_airflow.importing.tools import read_rules

    wrong = False
    for path in files:
        source = read_source(path, str(path))
        try:
            if isinstance(source, Unreadable):
                raise NoCounterpartError(source.reason)
            yield (path, *read_rules(source, tool=tool, dataset=dataset, sql_dialect=sql_dialect))
        except NoCounterpartError as error:
            typer.echo(f"error: {path}: {error}", err=True)
            wrong = True
    if wrong:
        raise typer.Exit(exit_codes.EXIT_WRONG)
