"""`dql contract lint`: mistakes and omissions in contracts."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dqx_airflow.cli.check import DiagnosticFormat, counted, written
from dqx_airflow.cli.command_group import EXIT_WRONG
from dqx_airflow.errors import RequestError
from dqx_airflow.values import Span

if TYPE_CHECKING:
    from dqx_airflow.diagnostics.diagnostic import Diagnostic


def lint(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(metavar="PATH...", help="Contracts, or folders with .yaml files."),
    ] = None,
    *,
    format: Annotated[
        DiagnosticFormat,
        typer.Option("--format", help="Output format: text, json, github or sarif."),
    ] = DiagnosticFormat.TEXT,
    ignore: Annotated[
        list[str] | None, typer.Option("--ignore", help="A rule to ignore, by name or code.")
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Exit with 2 on warnings too.")] = False,
    rules: Annotated[bool, typer.Option("--rules", help="List the rules and exit.")] = False,
) -> None:
    """Check contracts as written: no data is read, and Spark is not started.

    Exit code 0 without errors, else 2. `dql explain CODE` explains a finding.
    """
    from dqx_airflow.cli.contract.files import contract_files
    from dqx_airflow.contracts.enforcement.lint import RULES, unknown_rules
    from dqx_airflow.diagnostics.diagnostic import errors_of

    if rules:
        for rule in RULES:
            typer.echo(f"{rule.name:<12} {rule.code}  {rule.doc}")
        return
    ignored = frozenset(ignore or ())
    unknown = list(unknown_rules(ignored))
    for name, hint in unknown:
        typer.echo(f"error: unknown rule '{name}': {hint}", err=True)
    if unknown:
        raise typer.Exit(EXIT_WRONG)
    if not paths:
        raise RequestError(
            "no contract given", "give contracts or folders, or . for the current folder"
        )
    from dqx_airflow.cli.project import CONTRACT_ENDINGS, what_to_give

    files, missing = contract_files(paths)
    for path in missing:
        hint = what_to_give(path, CONTRACT_ENDINGS)
        typer.echo(f"error: no contract found at {path}\n  help: {hint}", err=True)
    findings: dict[Diagnostic, None] = {}
    sources: dict[str, str] = {}
    for file in files:
        diagnostics, texts = _findings(file, ignored)
        findings |= dict.fromkeys(diagnostics)
        sources |= texts
    text = written(tuple(findings), sources, format)
    if text:
        typer.echo(text)
    errors = len(missing) + len(errors_of(findings))
    if format is DiagnosticFormat.TEXT:
        warnings = len(findings) - errors + len(missing)
        checked = f"{counted(len(files), 'contract')} checked"
        summary = f"{checked}, {counted(errors, 'error')}, {counted(warnings, 'warning')}"
        typer.echo(summary, err=not sys.stdout.isatty() and not text)
    if errors or (strict and findings):
        raise typer.Exit(EXIT_WRONG)


def _findings(file: Path, ignored: frozenset[str]) -> tuple[tuple[Diagnostic, ...], dict[str, str]]:
    from dqx_airflow.cli.contract.versions import read_place
    from dqx_airflow.contracts.enforcement.lint import lint as lint_contract
    from dqx_airflow.diagnostics.diagnostic import Diagnostic

    result = read_place(file)
    if isinstance(result, str):
        span = Span(str(file), 1, 1, 1, 2)
        return (Diagnostic(result, span, "E010"),), {}
    if result.contract is None or result.errors:
        return result.diagnostics, dict(result.sources)
    findings = lint_contract(result.contract, ignored=ignored)
    return (*result.diagnostics, *findings), dict(result.sources)
