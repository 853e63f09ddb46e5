"""`dql contract coverage`: the treatment of every clause of a contract."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from dqx_airflow.cli.command_group import EXIT_FAILED
from dqx_airflow.diagnostics.renderers import json_text

if TYPE_CHECKING:
    from dqx_airflow.contracts.enforcement.enforced_contract import ClauseCoverage


class CoverageFormat(str, Enum):
    """The output format of clauses."""

    TABLE = "table"
    JSON = "json"
    MARKDOWN = "markdown"


class FailOnUnsupported(str, Enum):
    """The clauses for which the command ends with exit code 1."""

    UNSUPPORTED = "unsupported"


def coverage(
    files: Annotated[
        list[str],
        typer.Argument(metavar="FILE...", help="Contracts: files, or REVISION:FILE in git."),
    ],
    *,
    fail_on: Annotated[
        FailOnUnsupported | None, typer.Option(help="Exit with 1 if an unsupported clause is left.")
    ] = None,
    format: Annotated[
        CoverageFormat, typer.Option(help="Output format: table, json or markdown.")
    ] = CoverageFormat.TABLE,
) -> None:
    """Show for every clause whether it is checked, documented, accepted or unsupported.

    Exit code 2 if a contract has errors.
    """
    from dqx_airflow.cli.contract.versions import read_versions
    from dqx_airflow.contracts.compile import compile_contract
    from dqx_airflow.contracts.enforcement.enforced_contract import counts
    from dqx_airflow.contracts.enforcement.enforced_contract import coverage as coverage_of
    from dqx_airflow.contracts.model import Treatment

    covered = [
        Covered(contract.id, contract.span.file, coverage_of(contract, compile_contract(contract)))
        for contract in read_versions(files)
    ]
    match format:
        case CoverageFormat.JSON:
            typer.echo(_as_json(covered))
        case CoverageFormat.MARKDOWN:
            typer.echo("\n\n".join(map(_as_markdown, covered)))
        case CoverageFormat.TABLE:
            _print_tables(covered)
    unsupported = sum(counts(clauses)[Treatment.UNSUPPORTED] for _, _, clauses in covered)
    if fail_on is FailOnUnsupported.UNSUPPORTED and unsupported:
        raise typer.Exit(EXIT_FAILED)


class Covered(NamedTuple):
    """A contract, its file, and the treatment of its clauses."""

    id: str
    file: str
    clauses: tuple[ClauseCoverage, ...]

    def line_of(self, clause: ClauseCoverage) -> str:
        """The line of a clause, with its file if that is not the contract's."""
        line = str(clause.span.line)
        return line if clause.span.file == self.file else f"{clause.span.file}:{line}"


def _summary(clauses: Sequence[ClauseCoverage]) -> str:
    from dqx_airflow.contracts.enforcement.enforced_contract import counts
    from dqx_airflow.contracts.model import Treatment

    counted = counts(clauses).items()
    summary = ", ".join(
        f"{number} {treatment}"
        for treatment, number in counted
        if number or treatment is not Treatment.ACCEPTED
    )
    return f"{len(clauses)} clauses: {summary}"


def _because(clause: ClauseCoverage) -> str:
    return clause.reason or ", ".join(clause.assertions)


def _as_json(covered: Sequence[Covered]) -> str:
    from dqx_airflow.contracts.enforcement.enforced_contract import counts

    contracts = [
        {
            "contract": name,
            "counts": {treatment.value: count for treatment, count in counts(clauses).items()},
            "clauses": [
                {
                    "path": clause.path,
                    "file": clause.span.file,
                    "line": clause.span.line,
                    "treatment": clause.treatment.value,
                    "reason": clause.reason,
                    "assertions": list(clause.assertions),
                }
                for clause in clauses
            ],
        }
        for name, _, clauses in covered
    ]
    return json_text(contracts)


def _as_markdown(contract: Covered) -> str:
    rows = [
        f"| {clause.treatment} | {_cell(contract.line_of(clause))} | `{_cell(clause.path)}` "
        f"| {_cell(_because(clause))} |"
        for clause in contract.clauses
    ]
    head = ["| treatment | line | clause | assertion or reason |", "| --- | --- | --- | --- |"]
    return "\n".join([f"## {_cell(contract.id)}", "", _summary(contract.clauses), "", *head, *rows])


def _cell(text: str) -> str:
    from dqx_airflow.cli.reports import printable

    return printable(text).replace("|", "\\|")


def _print_tables(covered: Sequence[Covered]) -> None:
    from rich.text import Text

    from dqx_airflow.cli.reports import console_for, printable, table_of

    colours = {"checked": "green", "documented": "dim", "accepted": "dim", "unsupported": "yellow"}
    console = console_for()
    for number, contract in enumerate(covered):
        table = table_of("treatment", "line", "place", "why")
        for clause in contract.clauses:
            treatment = clause.treatment.value
            table.add_row(
                Text(treatment, style=colours[treatment]),
                Text(printable(contract.line_of(clause))),
                Text(printable(clause.path)),
                Text(printable(_because(clause))),
            )
        console.print(Text("\n" * bool(number) + printable(contract.id), style="bold"))
        console.print(table)
        console.print(Text(_summary(contract.clauses)), soft_wrap=True)
