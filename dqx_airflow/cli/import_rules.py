"""`dql import`: rule files of other tools as a DQL suite."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dqx_airflow.cli.command_group import EXIT_FAILED, EXIT_WRONG, TableOrJson, print_or_write
from dqx_airflow.diagnostics.renderers import json_text

if TYPE_CHECKING:
    from dqx_airflow.importing.foreign_rule import ForeignRule
    from dqx_airflow.importing.suite import ImportedRule


class FailOnUntranslated(str, Enum):
    """The rules for which the command ends with exit code 1."""

    NOT_TRANSLATED = "not-translated"
    DIFFERENT = "different"
    NEVER = "never"


def import_rules(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE...", help="Rule files, of one tool or several.")
    ],
    *,
    tool: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="TOOL",
            help="great-expectations, soda, dbt, databricks-dqx, dqdl, deequ or pandera; default: "
            "recognised by the content.",
        ),
    ] = None,
    dataset: Annotated[
        str | None,
        typer.Option(help="The dataset of all rules; default: the dataset named in the file."),
    ] = None,
    sql_dialect: Annotated[
        str | None,
        typer.Option(
            help="The database of the SQL of Great Expectations, Soda and dbt, or spark; default: "
            "SQL is translated if it means the same in all databases."
        ),
    ] = None,
    name: Annotated[
        str | None, typer.Option(help="The name of the suite; default: that of the first file.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Write the suite to a file; default: print it."),
    ] = None,
    fail_on: Annotated[
        FailOnUntranslated,
        typer.Option(
            help="Exit with 1 if a rule is not translated; with different, also if one is "
            "translated with a difference; with never, do not."
        ),
    ] = FailOnUntranslated.NOT_TRANSLATED,
    format: Annotated[
        TableOrJson, typer.Option(help="Format of the report on standard error: table or json.")
    ] = TableOrJson.TABLE,
) -> None:
    """Translate rule files of other tools to a DQL suite, and report on every rule.

    Each rule is translated, translated with a difference that the suite states in a comment, or
    not translated, with the reason. The exit code is 1 if a rule is not translated, 2 if a file
    cannot be read.
    """
    from dqx_airflow.contracts.dialects.standards import SQL_DIALECTS
    from dqx_airflow.importing.suite import ImportOutcome, suite_of
    from dqx_airflow.importing.tools import TOOLS

    if tool is not None and tool not in TOOLS:
        message = f"unknown tool '{tool}'; available: {', '.join(TOOLS)}"
        raise typer.BadParameter(message, param_hint="--from")
    if sql_dialect and sql_dialect.strip().lower() not in SQL_DIALECTS:
        message = f"unknown SQL dialect '{sql_dialect}'; available: {', '.join(SQL_DIALECTS)}"
        raise typer.BadParameter(message, param_hint="--sql-dialect")
    rules: list[ForeignRule] = []
    origins: list[str] = []
    for path, tool_name, of_file in _read_files(files, tool, dataset, sql_dialect):
        rules += of_file
        origins.append(f"{path.name} ({TOOLS[tool_name].title})")
    suite = suite_of(name or files[0].stem, f"Imported from {', '.join(origins)}", rules)
    print_or_write(suite.text, output)
    if format is TableOrJson.JSON:
        typer.echo(_as_json(suite.rules), err=True)
    else:
        _print_table(suite.rules)
    failing = {
        FailOnUntranslated.NEVER: (),
        FailOnUntranslated.NOT_TRANSLATED: (ImportOutcome.NOT_TRANSLATED,),
        FailOnUntranslated.DIFFERENT: (ImportOutcome.NOT_TRANSLATED, ImportOutcome.DIFFERENT),
    }[fail_on]
    if any(imported.outcome in failing for imported in suite.rules):
        raise typer.Exit(EXIT_FAILED)


def _read_files(
    files: Sequence[Path], tool: str | None, dataset: str | None, sql_dialect: str | None
) -> Iterator[tuple[Path, str, Sequence[ForeignRule]]]:
    """Each file with the name of its tool, and its rules. Files that cannot be read end the
    command, after all of them are reported."""
    from dqx_airflow.dql.syntax.source_file import Unreadable, read_source
    from dqx_airflow.errors import NoCounterpartError
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
        raise typer.Exit(EXIT_WRONG)


def _print_table(rules: Sequence[ImportedRule]) -> None:
    """The rules that are not translated exactly, and the number of rules with each outcome."""
    from dqx_airflow.importing.suite import ImportOutcome, counted

    for imported in rules:
        if imported.outcome is not ImportOutcome.TRANSLATED:
            typer.echo(
                f"{imported.outcome.value}: {imported.rule.place}: {imported.rule.shown}", err=True
            )
            typer.echo(f"    {imported.reason}", err=True)
    summary = ", ".join(f"{count} {outcome.value}" for outcome, count in counted(rules))
    plural = "rule" if len(rules) == 1 else "rules"
    typer.echo(f"{len(rules)} {plural}: {summary or 'nothing to translate'}", err=True)


def _as_json(rules: Sequence[ImportedRule]) -> str:
    return json_text(
        [
            {
                "dataset": imported.rule.dataset,
                "place": imported.rule.place,
                "rule": imported.rule.shown,
                "outcome": imported.outcome.value,
                "assertions": [name for name, _ in imported.assertions],
                "reason": imported.reason or None,
            }
            for imported in rules
        ]
    )
