"""`dql contract lint`: checks contracts and data products as written."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from dqx_airflow.cli import command, exit_codes
from dqx_airflow.cli.contract.versions import PLACE_VARIABLE, contract_files, product_at, read_place
from dqx_airflow.cli.suites import DiagnosticFormat, Findings, count_text
from dqx_airflow.contracts.data_product import DataProduct, unresolved
from dqx_airflow.contracts.model import Contract
from dqx_airflow.diagnostics.diagnostic import Diagnostic
from dqx_airflow.errors import RequestError
from dqx_airflow.values import Span


def lint(
    paths: Annotated[list[Path] | None, typer.Argument(metavar="PATH...")] = None,
    *,
    format: Annotated[DiagnosticFormat, command.FORMAT] = "text",
    ignore: list[str] | None = None,
    warnings_as_errors: bool = False,
    rules: bool = False,
    registry: Annotated[str | None, typer.Option(metavar="LOCATION", envvar=PLACE_VARIABLE)] = None,
) -> None:
    """Check contracts as written: no data is read, and Spark is not started.

    Data products of ODPS are checked, too: the contracts and versions that their ports name have to
    be among the given contracts, or in the registry.

    Exit code 0 without errors, else 2. `dql explain CODE` explains a finding.

    :param paths: Contracts, or folders with .yaml files.
    :param format: Output format: text, json, junit, github or sarif.
    :param ignore: A rule to ignore, by name or code.
    :param warnings_as_errors: Exit with 2 on warnings too.
    :param rules: List the rules and exit.
    :param registry: The published contracts, for the ports of data products.
    """
    from dqx_airflow.contracts.enforcement.lint import RULES, unknown_rules

    if rules:
        for rule in RULES:
            typer.echo(f"{rule.name:<12} {rule.code}  {rule.doc}")
        return
    ignored = frozenset(ignore or ())
    unknown = list(unknown_rules(ignored))
    for name, hint in unknown:
        typer.echo(f"error: unknown rule '{name}': {hint}", err=True)
    if unknown:
        raise typer.Exit(exit_codes.EXIT_WRONG)
    if not paths:
        raise RequestError(
            "no contract given", "give contracts or folders, or . for the current folder"
        )

    files, missing = contract_files(paths, with_products=True)
    for path in missing:
        hint = command.what_to_give(path, command.CONTRACT_ENDINGS)
        typer.echo(f"error: no contract found at {path}\n  help: {hint}", err=True)
    found = Findings()
    products: list[DataProduct] = []
    contracts: list[Contract] = []
    for file in files:
        if product := product_at(file):
            products.append(product)
        elif contract := _linted(file, ignored, found):
            contracts.append(contract)
    if products:
        _add_products(found, products, contracts, registry)
    is_text = found.print(format, "dql contract lint", files)
    errors = len(missing) + found.errors
    if format == "text":
        warnings = len(found.diagnostics) - found.errors
        too = f" and {count_text(len(products), 'data product')}" if products else ""
        checked = f"{count_text(len(files) - len(products), 'contract')}{too} checked"
        summary = f"{checked}, {count_text(errors, 'error')}, {count_text(warnings, 'warning')}"
        typer.echo(summary, err=not sys.stdout.isatty() and not is_text)
    if errors or (warnings_as_errors and found.diagnostics):
        raise typer.Exit(exit_codes.EXIT_WRONG)


def _linted(file: Path, ignored: frozenset[str], found: Findings) -> Contract | None:
    """The contract in a file, as far as it can be read.

    :param found: collects its errors, and what rules find if it has none.
    """
    from dqx_airflow.contracts.enforcement.lint import lint as lint_contract

    result = read_place(file)
    if isinstance(result, str):
        found.add([Diagnostic(result, Span(str(file), 1, 1, 1, 2), "E010")], {})
        return None
    found.add(result.diagnostics, result.sources)
    if result.contract is not None and not result.errors:
        found.add(lint_contract(result.contract, ignored=ignored), {})
    return result.contract


def _add_products(
    found: Findings,
    products: Sequence[DataProduct],
    contracts: Sequence[Contract],
    registry: str | None,
) -> None:
    """Adds the mistakes in data products, given these contracts and a registry's."""
    from dqx_airflow.cli.contract.registry import registry_at

    if registry:
        published = registry_at(registry)
        for contract_id in published.ids():
            versions = published.versions(contract_id)
            contracts = [*contracts, *(version.contract for version in versions)]
    is_known = bool(contracts or registry)
    if not is_known:
        hint = "give the folder of the contracts, too, or --registry"
        typer.echo(f"note: the contracts that ports name were not looked up: {hint}", err=True)
    for product in products:
        source = product.document.source
        named = unresolved(product, contracts) if is_known else ()
        found.add([*product.diagnostics, *named], {source.name: source.text})
