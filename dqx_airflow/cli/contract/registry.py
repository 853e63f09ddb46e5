"""`dql contract registry`: the published versions of contracts, and who relies on them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime, timedelta, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

if TYPE_CHECKING:
    from dqx_airflow.contracts.model import Consumer, Contract
    from dqx_airflow.contracts.publishing import PublishedVersion, Reliance
    from dqx_airflow.contracts.registry import Registry
    from dqx_airflow.errors import DqxError

app = typer.Typer(help="Publish versions of contracts, and look at them.", no_args_is_help=True)

EXIT_REFUSED, EXIT_WRONG, EXIT_INFRASTRUCTURE = 1, 2, 4

_Root = Annotated[
    Path,
    typer.Option("--registry", envvar="DQX_CONTRACT_REGISTRY", help="The folder of the registry."),
]
_On = Annotated[
    datetime | None,
    typer.Option("--on", formats=["%Y-%m-%d"], help="The day that counts; today by default."),
]
_Json = Annotated[bool, typer.Option("--json", help="For machines.")]
_Id = Annotated[str, typer.Argument(metavar="ID", help="The id of a contract.")]


@app.command("publish")
def publish(
    files: Annotated[list[Path], typer.Argument(help="Contracts.")],
    *,
    root: _Root,
    on: _On = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Tell what speaks against it; publish nothing.")
    ] = False,
) -> None:
    """Publish versions of contracts; what is published never changes.

    Refused: a version that is lower, or was published with another content; one that falls short of
    its changes; one that breaks more often than the contract allows, or without the notice that it
    promises. Exit 1 where one is refused, 2 where a contract has errors.
    """
    from dqx_airflow.contracts.publishing import objections
    from dqx_airflow.contracts.registry import Registry, digest_of
    from dqx_airflow.errors import DqxError

    registry, day = Registry(root), _day(on)
    read = [_read(path) for path in files]
    is_refused = False
    for path, contract, texts in read:
        shown = f"{contract.id} {contract.version or ''}".rstrip()
        try:
            if dry_run:
                known = registry.versions(contract.id)
                found = objections(contract, digest_of(texts), known, day)
                said = f"{shown} may be published"
            else:
                outcome = registry.publish(contract, texts, day)
                found = outcome.objections
                said = (
                    f"{shown} was published before" if outcome.was_there else f"{shown} published"
                )
        except DqxError as error:
            _fail(error)
        for objection in found:
            typer.echo(f"refused: {path}: {objection.problem}\n  help: {objection.hint}", err=True)
        is_refused |= bool(found)
        if not found:
            typer.echo(said)
    if is_refused:
        raise typer.Exit(EXIT_REFUSED)


@app.command("list")
def list_(*, root: _Root, on: _On = None, as_json: _Json = False) -> None:
    """List the contracts: the newest version of each, and its state."""
    from dqx_airflow.contracts.registry import Registry
    from dqx_airflow.errors import DqxError

    registry, day = Registry(root), _day(on)
    try:
        newest = [
            (max(versions, key=lambda item: item.version), len(versions))
            for versions in map(registry.versions, registry.ids())
        ]
    except DqxError as error:
        _fail(error)
    if as_json:
        rows = [{**_plain(item, day), "versions": count} for item, count in newest]
        typer.echo(json.dumps(rows, indent=2, ensure_ascii=False))
        return
    _print_table(
        ("contract", "version", "published", "owner", "versions", "state"),
        [
            (
                item.contract.id,
                *_facts(item),
                item.contract.owner or "",
                str(count),
                _state(item, day),
            )
            for item, count in newest
        ],
    )


@app.command("show")
def show(
    contract_id: _Id,
    *,
    root: _Root,
    version: Annotated[
        str | None, typer.Option(help="Print the text of this version: 2, 2.3 or 2.3.0.")
    ] = None,
    on: _On = None,
    as_json: _Json = False,
) -> None:
    """Show the versions of a contract, or the text of one of them."""
    from dqx_airflow.contracts.pins import objection_to_version

    registry, day = _registry(root), _day(on)
    versions = _versions(registry, contract_id)
    if version is None:
        if as_json:
            rows = [_plain(item, day) for item in versions]
            typer.echo(json.dumps(rows, indent=2, ensure_ascii=False))
            return
        _print_table(
            ("version", "published", "state"),
            [(*_facts(item), _state(item, day)) for item in versions],
        )
        return
    meant = [item for item in versions if objection_to_version(item.contract, version) is None]
    if not meant:
        known = ", ".join(str(item.contract.version) for item in versions)
        _wrong(f"{contract_id} has no version {version}", f"there is {known}")
    texts = registry.texts(contract_id, max(meant, key=lambda item: item.version).number)
    typer.echo(next(iter(texts.values())), nl=False)


@app.command("consumers")
def consumers(
    contract_id: _Id,
    *,
    root: _Root,
    outdated: Annotated[
        bool, typer.Option("--outdated", help="Only who relies on a version that ends, or is old.")
    ] = False,
    results: Annotated[
        str | None,
        typer.Option(
            envvar="DQX_RESULTS_ROOT",
            help="The results of gates: those that enforce it are listed.",
        ),
    ] = None,
    days: Annotated[
        int, typer.Option(min=1, max=3650, help="Only gates that ran in so many days before.")
    ] = 7,
    on: _On = None,
    as_json: _Json = False,
) -> None:
    """List who relies on a contract, and on which version: the one that is pinned, else the newest.

    Exit 1 with --outdated where there is somebody: a version that is still used is not dropped.
    """
    from dqx_airflow.contracts.publishing import reliances

    day = _day(on)
    versions = _versions(_registry(root), contract_id)
    gates = _gates(results, contract_id, day - timedelta(days=days)) if results else ()
    found = reliances(versions, day, gates)
    shown = [item for item in found if item.concern or not outdated]
    if as_json:
        typer.echo(json.dumps(list(map(_plain_reliance, shown)), indent=2, ensure_ascii=False))
    elif shown:
        _print_table(
            ("consumer", "pin", "version", "use", "state"),
            [
                (
                    item.consumer.team,
                    item.consumer.pin or "",
                    item.version or "",
                    item.consumer.use_case or "",
                    item.concern or "up to date",
                )
                for item in shown
            ],
        )
    else:
        typer.echo("nobody" if outdated else f"{contract_id} lists no consumers")
    if outdated and shown:
        raise typer.Exit(EXIT_REFUSED)


def _read(path: Path) -> tuple[Path, Contract, Mapping[str, str]]:
    """A contract with its files, which are named as they are in its folder."""
    from dqx_airflow.contracts.read import read_contract
    from dqx_airflow.contracts.references import FolderReader
    from dqx_airflow.diagnostics.text import draw
    from dqx_airflow.dql.source import Unreadable, read_source

    source = read_source(path, path.name)
    if isinstance(source, Unreadable):
        _wrong(f"{path}: {source.reason}")
    found = read_contract(source, FolderReader(path.parent))
    if found.contract is None or found.errors:
        typer.echo(draw(found.errors, found.sources), err=True)
        raise typer.Exit(EXIT_WRONG)
    return path, found.contract, found.sources


def _gates(results: str, contract_id: str, since: date) -> Sequence[Consumer]:
    """The gates that have enforced a contract, as consumers of the version that they enforced."""
    from dqx_airflow.contracts.model import Consumer
    from dqx_airflow.errors import DqxError
    from dqx_airflow.results.contract_uses import contract_uses

    try:
        uses = contract_uses(results, contract_id, since)
    except DqxError as error:
        _fail(error)
    return [
        Consumer(use.gate, f"gate: {use.runs} runs, the last on {use.last}", use.version)
        for use in uses
    ]


def _registry(root: Path) -> Registry:
    from dqx_airflow.contracts.registry import Registry

    return Registry(root)


def _versions(registry: Registry, contract_id: str) -> tuple[PublishedVersion, ...]:
    """The versions of a contract; ends the command where there are none."""
    from dqx_airflow.diagnostics.nearest import did_you_mean
    from dqx_airflow.errors import DqxError

    try:
        found = registry.versions(contract_id)
        known = () if found else registry.ids()
    except DqxError as error:
        _fail(error)
    if not found:
        _wrong(f"nothing is published as {contract_id}", did_you_mean(contract_id, known))
    return found


def _day(on: datetime | None) -> date:
    return (on or datetime.now(timezone.utc)).date()


def _state(item: PublishedVersion, day: date) -> str:
    from dqx_airflow.contracts.pins import standing

    state = standing(item.contract, day)
    return state.message if state is not None else item.contract.lifecycle.status or "active"


def _facts(item: PublishedVersion) -> tuple[str, str]:
    return str(item.contract.version), item.on.isoformat()


def _plain(item: PublishedVersion, day: date) -> dict[str, object]:
    version, on = _facts(item)
    return {
        "id": item.contract.id,
        "version": version,
        "published_on": on,
        "digest": item.digest,
        "owner": item.contract.owner,
        "state": _state(item, day),
    }


def _plain_reliance(item: Reliance) -> dict[str, object]:
    return {
        "consumer": item.consumer.team,
        "use_case": item.consumer.use_case,
        "pin": item.consumer.pin,
        "version": item.version,
        "concern": item.concern,
    }


def _print_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    from rich.text import Text

    from dqx_airflow.cli.reports import console_for, printable, table_of

    table = table_of(*columns)
    for row in rows:
        table.add_row(*(Text(printable(cell)) for cell in row))
    console_for().print(table)


def _wrong(problem: str, hint: str | None = None) -> NoReturn:
    typer.echo(f"error: {problem}" + (f"\n  help: {hint}" if hint else ""), err=True)
    raise typer.Exit(EXIT_WRONG)


def _fail(error: DqxError) -> NoReturn:
    from dqx_airflow.cli.reports import printable

    typer.echo(f"error: {printable(str(error), keep=chr(10))}", err=True)
    raise typer.Exit(EXIT_INFRASTRUCTURE) from error
