"""Published versions of a contract: who consents to them, who relies on them, and the registry."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dqx_airflow.cli import command, documented, exit_codes
from dqx_airflow.cli.contract.versions import PLACE_VARIABLE, contract_files, read_versions
from dqx_airflow.cli.days import TodayOption
from dqx_airflow.cli.json_objects import consumer_object, published_version_object
from dqx_airflow.cli.stores import ResultsRootOption, optional_results
from dqx_airflow.contracts.model import Contract, end_of_period
from dqx_airflow.contracts.owners import codeowners_line, rfc_draft
from dqx_airflow.contracts.publishing import PublishedVersion, newest_of
from dqx_airflow.contracts.read import read_contract
from dqx_airflow.contracts.references import FolderReader
from dqx_airflow.diagnostics.diagnostic import did_you_mean
from dqx_airflow.diagnostics.machine_formats import json_text
from dqx_airflow.diagnostics.renderers import drawn_error
from dqx_airflow.dql.syntax.source_file import Unreadable, read_source
from dqx_airflow.errors import RegistryError, RequestError

if TYPE_CHECKING:
    from dqx_airflow.contracts.registry import Registry
    from dqx_airflow.contracts.uses import ConsumerUse, Reliance
    from dqx_airflow.results.query import StoredResults


def codeowners(
    files: Annotated[list[str], typer.Argument(metavar="FILE...")], *, org: str | None = None
) -> None:
    """Print the CODEOWNERS lines for owners and consumers of contracts.

    With them, a change needs a review by the owner and every consumer of the contract.

    :param files: Contracts, with paths relative to the repository.
    :param org: The organization of the teams: @ORG/team.
    """
    for path, contract in zip(files, read_versions(files), strict=True):
        typer.echo(codeowners_line(path, contract, org))


def rfc(file: Annotated[str, typer.Argument(metavar="FILE")]) -> None:
    """Print the draft of an RFC about a contract, for its consumers.

    :param file: A contract.
    """
    (contract,) = read_versions((file,))
    typer.echo(rfc_draft(contract), nl=False)


PLACE_HELP = "A folder, or a Delta table: its path, a URL, or delta:PATH for a new one."

_PLACE = typer.Option("--registry", metavar="LOCATION", envvar=PLACE_VARIABLE, help=PLACE_HELP)
PlaceOption = Annotated[str, _PLACE]
IdArgument = Annotated[str, typer.Argument(metavar="ID", help="The id of a contract.")]


def registry_at(place: str) -> Registry:
    """The registry at a location.

    :raises RequestError: the location is invalid.
    """
    from dqx_airflow.contracts.registry import registry_at as found_at

    try:
        return found_at(place)
    except RegistryError as error:
        raise RequestError(error.problem, error.hint) from error


def versions_of(registry: Registry, contract_id: str) -> tuple[PublishedVersion, ...]:
    """The versions of a contract.

    :raises RequestError: there are none.
    """
    versions = registry.versions(contract_id)
    if not versions:
        hint = did_you_mean(contract_id, registry.ids())
        raise RequestError(f"no published version of {contract_id}", hint or "")
    return versions


def day_of(today: date | None) -> date:
    return today or datetime.now(timezone.utc).date()


_PASSED_BY = frozenset({"__pycache__", "node_modules", "site-packages"})


def consumers(
    contract_id: IdArgument,
    *,
    place: Annotated[str | None, _PLACE] = None,
    outdated: bool = False,
    code: Annotated[list[Path] | None, typer.Option(metavar="PATH")] = None,
    results_root: ResultsRootOption = None,
    days: Annotated[int, typer.Option(min=1, max=3650)] = 7,
    datalex: Annotated[Path | None, typer.Option(metavar="MANIFEST")] = None,
    today: TodayOption = None,
    format: command.TextFormatOption = "text",
) -> None:
    """List who relies on a contract, and on which version.

    The version is the pinned one, else the one that was read, else the newest. Lists the consumers
    in the contract; with --code the gates, `assert_contract` calls and blocks that name it; with a
    results store the gates that have enforced it. The versions come from the registry, or of a
    DataLex manifest for an id such as commerce.Customer.active. With --outdated, exit code 1 if
    there are any: do not drop a version that is still used.

    :param outdated: Only consumers of a version that is outdated or about to end.
    :param code: DAGs, jobs and DataLex blocks: files, or folders with them. Pins are read from the
        source; nothing is imported.
    :param results_root: The root of the results store, whose gates that enforce the contract are
        listed; default: results_root in dqx.toml, then Airflow's setting.
    :param days: Only gates that ran in the last N days.
    :param datalex: The DataLex manifest that lists the versions; default: the nearest one.
    """
    from dqx_airflow.contracts.datalex_binding import parsed_reference

    day = day_of(today)
    uses = [*_in_code(code or (), contract_id)]
    stored = optional_results(results_root)
    if stored is not None:
        uses += _gates(stored, contract_id, end_of_period(day, -days))
    is_of_datalex = parsed_reference(contract_id) is not None
    if is_of_datalex and (datalex is not None or place is None):
        relying = _by_manifest(datalex, code or (), contract_id, uses)
    elif place is None:
        raise RequestError(
            "the location of published contracts is unknown", f"give --registry: {PLACE_HELP}"
        )
    else:
        from dqx_airflow.contracts.uses import reliances

        relying = reliances(versions_of(registry_at(place), contract_id), day, uses)
    shown = [reliance for reliance in relying if reliance.concern or not outdated]
    text = json_text([consumer_object(one) for one in shown]) if format == "json" else None
    head = ("consumer", "pin", "version", "use", "state")
    unknown = f"no consumers of {contract_id} are known"
    nothing = "no outdated consumers" if outdated else unknown
    command.print_list(text, head, list(map(_row, shown)), nothing)
    if outdated and shown:
        raise typer.Exit(exit_codes.EXIT_FAILED)


def _in_code(paths: Sequence[Path], contract_id: str) -> list[ConsumerUse]:
    """The uses in files; a warning is printed for what could not be analysed."""
    from dqx_airflow.contracts.uses import uses_in

    uses = uses_in(dict.fromkeys(file for path in paths for file in _files(path)), contract_id)
    for unknown in uses.unknown:
        typer.echo(f"warning: {unknown}", err=True)
    return uses.uses


def _files(path: Path) -> Iterator[Path]:
    """The code files at a path, without hidden and installed ones."""
    from dqx_airflow.contracts.uses import CODE_ENDINGS

    if path.is_file():
        yield path
    elif not path.is_dir():
        raise RequestError(f"nothing found at {path}", "give --code the path of a file or a folder")
    for file in sorted(path.rglob("*")):
        folders = file.relative_to(path).parts[:-1]
        is_passed_by = any(name.startswith(".") or name in _PASSED_BY for name in folders)
        if file.suffix in CODE_ENDINGS and not is_passed_by and file.is_file():
            yield file


def _gates(stored: StoredResults, contract_id: str, since: date) -> Iterator[ConsumerUse]:
    """The gates that have enforced a contract, with its version."""
    from dqx_airflow.contracts.uses import ConsumerUse
    from dqx_airflow.results.contract_uses import contract_uses

    for use in contract_uses(stored, contract_id, since):
        runs = f"{use.runs} run{'' if use.runs == 1 else 's'}"
        how = f"gate: {runs}, most recently on {use.last}"
        yield ConsumerUse(use.gate, how, use.pin, use.version)


def _by_manifest(
    given: Path | None, code: Sequence[Path], contract_id: str, uses: Sequence[ConsumerUse]
) -> tuple[Reliance, ...]:
    """The versions of a DataLex contract that are relied on.

    :raises RequestError: there is no manifest with the contract.
    """
    from dqx_airflow.contracts.datalex_binding import find_manifest
    from dqx_airflow.contracts.dialects.datalex import read_manifest
    from dqx_airflow.contracts.uses import promise_reliances

    folders = [path if path.is_dir() else path.parent for path in (*code, Path())]
    nearest = (nearby for folder in folders if (nearby := find_manifest(folder.absolute())))
    path = given or next(nearest, None)
    if path is None:
        raise RequestError(f"no manifest contains {contract_id}", "add --datalex PATH")
    source = read_source(path, str(path))
    if isinstance(source, Unreadable):
        raise RequestError(f"{path}: {source.reason}")
    manifest = read_manifest(source)
    if manifest.errors:
        raise drawn_error(manifest.errors, {source.name: source.text})
    if not manifest.versions_of(contract_id):
        known = sorted({promise.id for promise in manifest.promises})
        raise RequestError(
            f"{path} has no contract {contract_id}", did_you_mean(contract_id, known) or ""
        )
    return promise_reliances(manifest, contract_id, uses)


def _row(reliance: Reliance) -> tuple[str, ...]:
    use = reliance.use
    name = f"{use.name} ({use.span.file}:{use.span.line})" if use.span else use.name
    texts = (name, use.pin, reliance.version, use.how, reliance.concern or "up to date")
    return tuple(text or "" for text in texts)


app = documented.Commands(help="Publish versions of contracts and list them.", no_args_is_help=True)
app.command("consumers")(consumers)


@app.command("publish")
def publish(
    paths: Annotated[list[Path], typer.Argument(metavar="PATH...")],
    *,
    place: PlaceOption,
    today: TodayOption = None,
    dry_run: bool = False,
) -> None:
    """Publish versions of contracts; a published version never changes.

    A version is refused if it is lower than the newest, was published with other content, is too
    low for its changes, or breaks more often than the contract allows or without the promised
    notice. Exit code 1 if one is refused, 2 if a contract has errors, 4 if the registry cannot be
    written.

    :param paths: Contracts, or folders with them.
    :param dry_run: Show what prevents the publication, and publish nothing.
    """
    registry = registry_at(place)
    day = day_of(today)
    files, missing = contract_files(paths)
    if missing:
        hint = command.what_to_give(missing[0], command.CONTRACT_ENDINGS)
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
        raise typer.Exit(exit_codes.EXIT_FAILED)


@app.command("list")
def list_(
    *, place: PlaceOption, today: TodayOption = None, format: command.TextFormatOption = "text"
) -> None:
    """List the contracts, each with its newest version and state."""
    registry = registry_at(place)
    day = day_of(today)
    facts = [
        _facts(max(versions, key=lambda published: published.version), day)
        | {"versions": len(versions)}
        for versions in map(registry.versions, registry.ids())
    ]
    names = ("contract", "version", "published", "owner", "versions", "state")
    _print_facts(facts, names, format)


@app.command("show")
def show(
    contract_id: IdArgument,
    *,
    place: PlaceOption,
    version: str | None = None,
    today: TodayOption = None,
    format: command.TextFormatOption = "text",
) -> None:
    """Show the versions of a contract, or the source of one of them.

    :param version: Print the source of this version: 2, 2.3 or 2.3.0.
    """
    registry = registry_at(place)
    day = day_of(today)
    versions = versions_of(registry, contract_id)
    if version is None:
        facts = [_facts(published, day) for published in versions]
        _print_facts(facts, ("version", "published", "state"), format)
        return
    newest = newest_of(versions, version)
    if newest is None:
        numbers = ", ".join(str(published.contract.version) for published in versions)
        raise RequestError(f"{contract_id} has no version {version}", f"there is {numbers}")
    typer.echo(next(iter(registry.texts(contract_id, newest.number).values())), nl=False)


def _read(path: Path) -> tuple[Path, Contract, Mapping[str, str]]:
    """A contract with its files, named relative to its folder."""
    source = read_source(path, path.name)
    if isinstance(source, Unreadable):
        raise RequestError(f"{path}: {source.reason}")
    result = read_contract(source, FolderReader(path.parent), variables=None)
    if result.contract is None or result.errors:
        raise drawn_error(result.errors, result.sources)
    return path, result.contract, result.sources


def _state(published: PublishedVersion, day: date) -> str:
    from dqx_airflow.contracts.enforcement.lifecycle import lifecycle_status

    state = lifecycle_status(published.contract, day)
    return state.message if state is not None else published.contract.lifecycle.status or "active"


def _facts(published: PublishedVersion, day: date) -> dict[str, object]:
    return {**published_version_object(published), "state": _state(published, day)}


_FACTS_OF_COLUMNS = {"contract": "id", "published": "published_on"}


def _print_facts(
    facts: Sequence[Mapping[str, object]], columns: Sequence[str], format: command.TextOrJson
) -> None:
    """Prints facts as JSON, or some of them as the columns of a table."""
    names = [_FACTS_OF_COLUMNS.get(column, column) for column in columns]
    rows = [[str(row[name] or "") for name in names] for row in facts]
    text = json_text(facts) if format == "json" else None
    command.print_list(text, columns, rows, "no contracts are published yet")
