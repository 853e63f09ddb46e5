"""`dql contract registry`: the published versions of contracts."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dqx_airflow.cli.command_group import EXIT_FAILED
from dqx_airflow.cli.contract.consumers import consumers
from dqx_airflow.cli.contract.published import (
    DayOption,
    IdArgument,
    JsonOption,
    PlaceOption,
    day_of,
    registry_at,
    versions_of,
)
from dqx_airflow.cli.reports import print_table
from dqx_airflow.diagnostics.renderers import json_text
from dqx_airflow.errors import RequestError, SourceError

if TYPE_CHECKING:
    from dqx_airflow.contracts.model import Contract
    from dqx_airflow.contracts.publishing import PublishedVersion

app = typer.Typer(help="Publish versions of contracts and list them.", no_args_is_help=True)
app.command("consumers")(consumers)


@app.command("publish")
def publish(
    paths: Annotated[
        list[Path], typer.Argument(metavar="PATH...", help="Contracts, or folders with them.")
    ],
    *,
    place: PlaceOption,
    on: DayOption = None,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Show what prevents the publication, and publish nothing."),
    ] = False,
) -> None:
    """Publish versions of contracts; a published version never changes.

    A version is refused if it is lower than the newest, was published with other content, is too
    low for its changes, or breaks more often than the contract allows or without the promised
    notice. Exit code 1 if one is refused, 2 if a contract has errors, 4 if the registry cannot be
    written.
    """
    from dqx_airflow.cli.contract.files import contract_files
    from dqx_airflow.cli.project import CONTRACT_ENDINGS, what_to_give

    registry, day = registry_at(place), day_of(on)
    files, missing = contract_files(paths)
    if missing:
        hint = what_to_give(missing[0], CONTRACT_ENDINGS)
        raise RequestError(f"no contract found at {missing[0]}", hint)
    contracts = [_read(path) for path in files]
    is_refused = False
    for path, contract, texts in contracts:
        title = f"{contract.id} {contract.version or ''}".rstrip()
        outcome = registry.publish(contract, texts, day, is_dry=dry_run)
        for objection in outcome.objections:
            typer.echo(f"refused: {path}: {objection.problem}\n  help: {objection.hint}", err=True)
        is_refused |= bool(outcome.objections)
        if outcome.was_there:
            typer.echo(f"{title} is already published")
        elif not outcome.objections:
            typer.echo(f"{title} can be published" if dry_run else f"{title} published")
    if is_refused:
        raise typer.Exit(EXIT_FAILED)


@app.command("list")
def list_(*, place: PlaceOption, on: DayOption = None, as_json: JsonOption = False) -> None:
    """List the contracts, each with its newest version and state."""

    registry, day = registry_at(place), day_of(on)
    newest = [
        (max(versions, key=lambda published: published.version), len(versions))
        for versions in map(registry.versions, registry.ids())
    ]
    if as_json:
        rows = [
            {**_version_as_json(published, day), "versions": count} for published, count in newest
        ]
        typer.echo(json_text(rows))
    elif not newest:
        typer.echo("no contracts are published yet")
    else:
        print_table(
            ("contract", "version", "published", "owner", "versions", "state"),
            [
                (
                    published.contract.id,
                    *_facts(published),
                    published.contract.owner or "",
                    str(count),
                    _state(published, day),
                )
                for published, count in newest
            ],
        )


@app.command("show")
def show(
    contract_id: IdArgument,
    *,
    place: PlaceOption,
    version: Annotated[
        str | None, typer.Option(help="Print the source of this version: 2, 2.3 or 2.3.0.")
    ] = None,
    on: DayOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show the versions of a contract, or the source of one of them."""
    from dqx_airflow.contracts.enforcement.enforced_contract import objection_to_version

    registry, day = registry_at(place), day_of(on)
    versions = versions_of(registry, contract_id)
    if version is None:
        if as_json:
            rows = [_version_as_json(published, day) for published in versions]
            typer.echo(json_text(rows))
            return
        print_table(
            ("version", "published", "state"),
            [(*_facts(published), _state(published, day)) for published in versions],
        )
        return
    matching = [
        published
        for published in versions
        if objection_to_version(published.contract, version) is None
    ]
    if not matching:
        numbers = ", ".join(str(published.contract.version) for published in versions)
        raise RequestError(f"{contract_id} has no version {version}", f"there is {numbers}")
    texts = registry.texts(
        contract_id, max(matching, key=lambda published: published.version).number
    )
    typer.echo(next(iter(texts.values())), nl=False)


def _read(path: Path) -> tuple[Path, Contract, Mapping[str, str]]:
    """A contract with its files, named relative to its folder."""
    from dqx_airflow.contracts.document import FolderReader
    from dqx_airflow.contracts.read import read_contract
    from dqx_airflow.diagnostics.renderers import draw
    from dqx_airflow.dql.syntax.source_file import Unreadable, read_source

    source = read_source(path, path.name)
    if isinstance(source, Unreadable):
        raise RequestError(f"{path}: {source.reason}")
    result = read_contract(source, FolderReader(path.parent), variables=None)
    if result.contract is None or result.errors:
        drawn = draw(result.errors, result.sources)
        raise SourceError(drawn, diagnostics=result.errors)
    return path, result.contract, result.sources


def _state(published: PublishedVersion, day: date) -> str:
    from dqx_airflow.contracts.enforcement.enforced_contract import lifecycle_status

    state = lifecycle_status(published.contract, day)
    return state.message if state is not None else published.contract.lifecycle.status or "active"


def _facts(published: PublishedVersion) -> tuple[str, str]:
    return str(published.contract.version), published.on.isoformat()


def _version_as_json(published: PublishedVersion, day: date) -> dict[str, object]:
    version, on = _facts(published)
    return {
        "id": published.contract.id,
        "version": version,
        "published_on": on,
        "digest": published.digest,
        "owner": published.contract.owner,
        "state": _state(published, day),
    }
