"""`dql contract lint`: what is wrong with contracts, and what they lack."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dqx_airflow.cli.check import EXIT_ERRORS, Format, written

if TYPE_CHECKING:
    from dqx_airflow.diagnostics.diagnostic import Diagnostic


def lint(
    paths: Annotated[list[Path], typer.Argument(help="Contracts, or folders with .yaml files.")],
    *,
    format: Annotated[
        Format,
        typer.Option("--format", help="For people, for scripts, for GitHub, for code hosts."),
    ] = Format.TEXT,
    ignore: Annotated[
        list[str] | None,
        typer.Option("--ignore", help="A rule that does not count: its name or its code."),
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Exit with 2 on a warning too.")] = False,
    rules: Annotated[bool, typer.Option("--rules", help="List the rules, and do nothing.")] = False,
) -> None:
    """Check contracts as they are written: no data is read, and no Spark is started.

    Exit code 0 without errors, else 2. `dql explain CODE` says more about a finding.
    """
    from dqx_airflow.cli.contract.files import contract_files
    from dqx_airflow.contracts.lint import RULES, unknown_rules
    from dqx_airflow.diagnostics.diagnostic import Level

    if rules:
        for rule in RULES:
            typer.echo(f"{rule.name:<12} {rule.code}  {rule.doc}")
        return
    ignored = frozenset(ignore or ())
    for name, hint in unknown_rules(ignored):
        typer.echo(f"error: there is no rule '{name}': {hint}", err=True)
    if any(True for _ in unknown_rules(ignored)):
        raise typer.Exit(EXIT_ERRORS)
    files, missing = contract_files(paths)
    for path in missing:
        typer.echo(f"error: there is no contract at {path}", err=True)
    found: dict[Diagnostic, None] = {}
    sources: dict[str, str] = {}
    for file in files:
        diagnostics, texts = _findings(file, ignored)
        found |= dict.fromkeys(diagnostics)
        sources |= texts
    text = written(tuple(found), sources, format)
    if text:
        typer.echo(text)
    errors = len(missing) + sum(item.level is Level.ERROR for item in found)
    if format is Format.TEXT:
        warnings = len(found) - errors + len(missing)
        counted = f"{len(files)} checked, {errors or 'no'} errors, {warnings or 'no'} warnings"
        typer.echo(counted, err=not sys.stdout.isatty() and not text)
    if errors or (strict and found):
        raise typer.Exit(EXIT_ERRORS)


def _findings(file: Path, ignored: frozenset[str]) -> tuple[tuple[Diagnostic, ...], dict[str, str]]:
    from dqx_airflow.cli.contract.versions import read_place
    from dqx_airflow.contracts.lint import lint as lint_contract
    from dqx_airflow.diagnostics.diagnostic import Diagnostic
    from dqx_airflow.values import Span

    found = read_place(file)
    if isinstance(found, str):
        place = Span(str(file), 1, 1, 1, 2)
        return (Diagnostic(found, place, "E010"),), {}
    if found.contract is None or found.errors:
        return found.diagnostics, dict(found.sources)
    more = lint_contract(found.contract, ignored=ignored)
    return (*found.diagnostics, *more), dict(found.sources)
