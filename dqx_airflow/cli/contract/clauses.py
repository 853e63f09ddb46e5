"""`dql contract clauses`: how each clause of contracts is treated."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal, NamedTuple, TypeAlias

import typer
from rich.text import Text

from dqx_airflow.cli import exit_codes
from dqx_airflow.cli.command import FORMAT
from dqx_airflow.cli.contract.versions import read_versions
from dqx_airflow.cli.json_objects import covered_contract_object
from dqx_airflow.cli.reports import console_for, printable, table_of
from dqx_airflow.contracts.compile.suite import compile_contract
from dqx_airflow.contracts.enforcement.coverage import ClauseCoverage
from dqx_airflow.diagnostics.machine_formats import json_text
from dqx_airflow.diagnostics.templates import filled

ClausesFormat: TypeAlias = Literal["text", "json", "markdown"]


def clauses(
    files: Annotated[list[str], typer.Argument(metavar="FILE...")],
    *,
    fail_on: Literal["unsupported"] | None = None,
    format: Annotated[ClausesFormat, FORMAT] = "text",
) -> None:
    """List the clauses of contracts, and which of them are checked.

    A clause is checked, documented, accepted or unsupported. Exit code 2 if a contract has errors.

    :param files: Contracts: files, or REVISION:FILE in git.
    :param fail_on: Exit with 1 if an unsupported clause is left.
    :param format: Output format: text, json or markdown.
    """
    from dqx_airflow.contracts.enforcement.coverage import counts, coverage

    covered = []
    for contract in read_versions(files):
        found = coverage(contract, compile_contract(contract))
        counted = {treatment.value: number for treatment, number in counts(found).items()}
        covered.append(Covered(contract.id, contract.span.file, found, counted))
    match format:
        case "json":
            typer.echo(json_text([covered_contract_object(contract) for contract in covered]))
        case "markdown":
            typer.echo("\n\n".join(map(_as_markdown, covered)))
        case "text":
            _print_tables(covered)
    is_left = any(contract.counts["unsupported"] for contract in covered)
    if fail_on == "unsupported" and is_left:
        raise typer.Exit(exit_codes.EXIT_FAILED)


class Covered(NamedTuple):
    """A contract, its file, and the treatment of its clauses, with their numbers."""

    id: str
    file: str
    clauses: tuple[ClauseCoverage, ...]
    counts: dict[str, int]

    @property
    def summary(self) -> str:
        shown = (
            f"{number} {treatment}"
            for treatment, number in self.counts.items()
            if number or treatment != "accepted"
        )
        return f"{len(self.clauses)} clauses: {', '.join(shown)}"

    def line_of(self, clause: ClauseCoverage) -> str:
        """The line of a clause, with its file if that is not the contract's."""
        line = str(clause.span.line)
        return line if clause.span.file == self.file else f"{clause.span.file}:{line}"


def _because(clause: ClauseCoverage) -> str:
    return clause.reason or ", ".join(clause.assertions)


def _as_markdown(contract: Covered) -> str:
    shown = {"contract": contract, "because": _because, "cell": _cell}
    return filled(__package__, "clauses.md", **shown).rstrip("\n")


def _cell(text: str) -> str:
    return printable(text).replace("|", "\\|")


def _print_tables(covered: Sequence[Covered]) -> None:
    colours = {"checked": "green", "documented": "dim", "accepted": "dim", "unsupported": "yellow"}
    console = console_for()
    for number, contract in enumerate(covered):
        rows = []
        for clause in contract.clauses:
            treatment = Text(clause.treatment.value, style=colours[clause.treatment.value])
            rows.append((treatment, contract.line_of(clause), clause.path, _because(clause)))
        if number:
            console.print()
        console.print(Text(printable(contract.id), style="bold"))
        console.print(table_of(("treatment", "line", "place", "why"), rows))
        console.print(Text(contract.summary), soft_wrap=True)
