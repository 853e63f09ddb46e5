"""Documents of contracts, alone: `dql contract lint`, `coverage` and `test` judge them; `to-
suite`, `export` and `evolve` write something from them.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from difflib import unified_diff
from pathlib import Path
from typing import Annotated, Literal, NamedTuple, TypeAlias

import typer
from rich.text import Text

from dqx_airflow.cli import command
from dqx_airflow.cli.arguments import Options, with_shared_options
from dqx_airflow.cli.contract.versions import (
    PLACE_VARIABLE,
    contract_files,
    model_of,
    product_at,
    read_place,
    read_versions,
)
from dqx_airflow.cli.json_objects import covered_contract_object
from dqx_airflow.cli.reports import console_for, printable, table_of
from dqx_airflow.cli.suites import DiagnosticFormat, Findings, count_text
from dqx_airflow.contracts.compile.suite import compile_contract
from dqx_airflow.contracts.data_product import DataProduct, unresolved
from dqx_airflow.contracts.enforcement.coverage import ClauseCoverage
from dqx_airflow.contracts.model import Contract
from dqx_airflow.diagnostics.diagnostic import Diagnostic
from dqx_airflow.diagnostics.machine_formats import json_text
from dqx_airflow.diagnostics.templates import filled
from dqx_airflow.dql.syntax.source_file import Unreadable, read_source
from dqx_airflow.errors import RequestError
from dqx_airflow.values import Span


def lint(
    paths: Annotated[list[Path] | None, typer.Argument(metavar="PATH...")] = None,
    *,
    format: DiagnosticFormat = "text",
    ignore: list[str] | None = None,
    strict: bool = False,
    rules: bool = False,
    registry: Annotated[str | None, typer.Option(metavar="LOCATION", envvar=PLACE_VARIABLE)] = None,
) -> None:
    """Check contracts as written: no data is read, and Spark is not started.

    Data products of ODPS are checked, too: the contracts and versions that their ports name have to
    be among the given contracts, or in the registry.

    Exit code 0 without errors, else 2. `dql explain CODE` explains a finding.

    :param paths: Contracts, or folders with .yaml files.
    :param format: Output format: text, json, github or sarif.
    :param ignore: A rule to ignore, by name or code.
    :param strict: Exit with 2 on warnings too.
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
        raise typer.Exit(command.EXIT_WRONG)
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
    is_text = found.print(format)
    errors = len(missing) + found.errors
    if format == "text":
        warnings = len(found.diagnostics) - found.errors
        too = f" and {count_text(len(products), 'data product')}" if products else ""
        checked = f"{count_text(len(files) - len(products), 'contract')}{too} checked"
        summary = f"{checked}, {count_text(errors, 'error')}, {count_text(warnings, 'warning')}"
        typer.echo(summary, err=not sys.stdout.isatty() and not is_text)
    if errors or (strict and found.diagnostics):
        raise typer.Exit(command.EXIT_WRONG)


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


CoverageFormat: TypeAlias = Literal["table", "json", "markdown"]


def coverage(
    files: Annotated[list[str], typer.Argument(metavar="FILE...")],
    *,
    fail_on: Literal["unsupported"] | None = None,
    format: CoverageFormat = "table",
) -> None:
    """Show for every clause whether it is checked, documented, accepted or unsupported.

    Exit code 2 if a contract has errors.

    :param files: Contracts: files, or REVISION:FILE in git.
    :param fail_on: Exit with 1 if an unsupported clause is left.
    :param format: Output format: table, json or markdown.
    """
    from dqx_airflow.contracts.enforcement.coverage import counts
    from dqx_airflow.contracts.enforcement.coverage import coverage as coverage_of

    covered = []
    for contract in read_versions(files):
        clauses = coverage_of(contract, compile_contract(contract))
        counted = {treatment.value: number for treatment, number in counts(clauses).items()}
        covered.append(Covered(contract.id, contract.span.file, clauses, counted))
    match format:
        case "json":
            typer.echo(json_text([covered_contract_object(contract) for contract in covered]))
        case "markdown":
            typer.echo("\n\n".join(map(_as_markdown, covered)))
        case "table":
            _print_tables(covered)
    is_left = any(contract.counts["unsupported"] for contract in covered)
    if fail_on == "unsupported" and is_left:
        raise typer.Exit(command.EXIT_FAILED)


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
    return filled(__package__, "coverage.md", **shown).rstrip("\n")


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
        console.print(Text("\n" * bool(number) + printable(contract.id), style="bold"))
        console.print(table_of(("treatment", "line", "place", "why"), rows))
        console.print(Text(contract.summary), soft_wrap=True)


@with_shared_options
def against_data(
    paths: Annotated[list[Path], typer.Argument(metavar="FILE...")],
    *,
    data: Annotated[str | None, typer.Option(metavar="LOCATION[?KEY=VALUE&...]")] = None,
    server: str | None = None,
    expect_version: str | None = None,
    model: list[str] | None = None,
    strict: bool = False,
    shared: Options,
) -> None:
    """Test contracts against data, with one Spark session.

    Data that neither --data nor --dataset gives is looked up in the servers of the contract. Exit
    code 0 passed or warned, 1 blocked, 2 an error in a contract or on the command line, 3 broken, 4
    Spark or the results store failed; the worst one of several contracts.

    :param paths: Contracts.
    :param data: The data of a contract with one model: a path or table:NAME, as in --dataset.
    :param server: The server of the contract to read the data from.
    :param expect_version: The expected version: 2, 2.3 or 2.3.0.
    :param model: Only this model of the contract.
    :param strict: Fail on columns that are not in the contract.
    """
    from dqx_airflow.cli.run import run_call

    options = replace(
        shared,
        paths=tuple(paths),
        data=data,
        server=server,
        expect_version=expect_version,
        models=tuple(model or ()),
        is_strict=strict,
    )
    raise typer.Exit(run_call(options))


ExportFormat: TypeAlias = Literal[
    "great-expectations", "great-expectations-0", "odcs", "json-schema", "spark", "html"
]


def export(
    file: Annotated[str, typer.Argument(metavar="FILE")],
    *,
    to: ExportFormat,
    model: str | None = None,
    output: Annotated[Path | None, typer.Option("--output", "-o")] = None,
) -> None:
    """Write a contract for another tool.

    Standard error lists, clause by clause, what the format cannot express: an export checks less
    than the contract. Exit code 2 if the contract has errors.

    :param file: A contract: a file, or REVISION:FILE in git.
    :param to: The format.
    :param model: The model, if the contract has several.
    :param output: Write to a file instead of printing.
    """
    from dqx_airflow.contracts.export import FORMATS

    (contract,) = read_versions([file])
    target = FORMATS[to]
    if model is not None or target.is_of_one_model:
        contract = replace(contract, models=(model_of(contract, file, model),))
    exported = target.write(contract)
    command.print_or_write(exported.text, output)
    for loss in exported.losses:
        typer.echo(f"not exported: {printable(str(loss))}", err=True)


def evolve(
    old: Annotated[str, typer.Argument(metavar="OLD")],
    new: Annotated[str, typer.Argument(metavar="NEW")],
    *,
    table: str,
    model: str | None = None,
    versioned: bool = False,
) -> None:
    """Print the Spark SQL statements that a change requires.

    Compatible changes are made at once. Breaking changes take three releases: the successor is
    added, it is filled while the old column is deprecated, and the major version drops the old
    column.

    :param old: The old version: a file, or REV:FILE.
    :param new: The new version.
    :param table: The table in the catalog: `lakehouse.orders`.
    :param model: The model, if the contract has several.
    :param versioned: Use one table per major version, with a view onto one of them.
    """
    from dqx_airflow.contracts.diff import diff
    from dqx_airflow.contracts.evolve import evolution, versioned_evolution

    before, after = read_versions((old, new))
    chosen = model_of(after, new, model)
    if not all(part.strip() for part in table.split(".")):
        raise RequestError(f"'{table}' is not a table name", "write schema.table")
    plan = versioned_evolution if versioned else evolution
    typer.echo(plan(diff(before, after), chosen, table).as_sql(), nl=False)


def to_suite(
    file: Annotated[str, typer.Argument(metavar="FILE")],
    *,
    check: Annotated[Path | None, typer.Option(metavar="SUITE.dql")] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o")] = None,
) -> None:
    """Compile a contract to a DQL suite: the same contract always gives the same suite.

    With --check, compare with a suite that is kept beside its contract: exit code 1 and the
    difference if they have drifted apart. Exit code 2 if the contract has errors.

    :param file: A contract: a file, or REVISION:FILE in git.
    :param check: Compare with this suite instead of printing; exit 1 if they differ.
    :param output: Write the suite to a file.
    """
    (contract,) = read_versions([file])
    text = compile_contract(contract).text
    if check is not None:
        _compare(check, text)
    else:
        command.print_or_write(text, output)


def _compare(path: Path, compiled: str) -> None:
    committed = read_source(path, str(path))
    if isinstance(committed, Unreadable):
        raise RequestError(f"{path}: {committed.reason}")
    if committed.text == compiled:
        typer.echo(f"{path} matches the contract")
        return
    before, after = (text.splitlines(keepends=True) for text in (committed.text, compiled))
    difference = unified_diff(before, after, str(path), "compiled from the contract now")
    typer.echo("".join(difference), nl=False)
    raise typer.Exit(command.EXIT_FAILED)
