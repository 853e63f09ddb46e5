"""`dql contract consumers`: lists who relies on which version of a contract."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dqx_airflow.cli.command_group import EXIT_FAILED
from dqx_airflow.cli.contract.published import (
    PLACE_HELP,
    PLACE_VARIABLE,
    DayOption,
    IdArgument,
    JsonOption,
    day_of,
    registry_at,
    versions_of,
)
from dqx_airflow.cli.project import ROOT_VARIABLES, storage_options
from dqx_airflow.cli.reports import print_table
from dqx_airflow.contracts.versions import end_of_period
from dqx_airflow.diagnostics.renderers import json_text
from dqx_airflow.errors import RequestError, SourceError

if TYPE_CHECKING:
    from dqx_airflow.contracts.uses import ConsumerUse, Reliance

_PASSED_BY = frozenset({"__pycache__", "node_modules", "site-packages"})


def consumers(
    contract_id: IdArgument,
    *,
    place: Annotated[
        str | None,
        typer.Option("--registry", metavar="LOCATION", envvar=PLACE_VARIABLE, help=PLACE_HELP),
    ] = None,
    outdated: Annotated[
        bool,
        typer.Option(
            "--outdated", help="Only consumers of a version that is outdated or about to end."
        ),
    ] = False,
    code: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="PATH",
            help="DAGs, jobs and DataLex blocks: files, or folders with them. Pins are read "
            "from the source; nothing is imported.",
        ),
    ] = None,
    results: Annotated[
        str | None,
        typer.Option(
            envvar=ROOT_VARIABLES,
            help="The results root: lists the gates that enforce the contract.",
        ),
    ] = None,
    days: Annotated[
        int, typer.Option(min=1, max=3650, help="Only gates that ran in the last N days.")
    ] = 7,
    datalex: Annotated[
        Path | None,
        typer.Option(
            metavar="MANIFEST",
            help="The DataLex manifest that lists the versions; default: the nearest one.",
        ),
    ] = None,
    on: DayOption = None,
    as_json: JsonOption = False,
) -> None:
    """List who relies on a contract, and on which version: pinned, else read, else the newest.

    Lists the consumers in the contract; with --code the gates, `assert_contract` calls and blocks
    that name it; with --results the gates that have enforced it. The versions are those of the
    registry, or of a DataLex manifest for an id such as commerce.Customer.active. With --outdated,
    exit code 1 if there are any: do not drop a version that is still used.
    """
    day = day_of(on)
    uses = [
        *_in_code(code or (), contract_id),
        *(_gates(results, contract_id, end_of_period(day, -days)) if results else ()),
    ]
    if _is_of_datalex(contract_id) and (datalex is not None or place is None):
        relying = _by_manifest(datalex, code or (), contract_id, uses)
    elif place is None:
        raise RequestError(
            "the location of published contracts is unknown", f"give --registry: {PLACE_HELP}"
        )
    else:
        from dqx_airflow.contracts.uses import reliances

        relying = reliances(versions_of(registry_at(place), contract_id), day, uses)
    shown = [reliance for reliance in relying if reliance.concern or not outdated]
    if as_json:
        typer.echo(json_text(list(map(_reliance_as_json, shown))))
    elif shown:
        print_table(("consumer", "pin", "version", "use", "state"), list(map(_row, shown)))
    else:
        typer.echo(
            "no outdated consumers" if outdated else f"no consumers of {contract_id} are known"
        )
    if outdated and shown:
        raise typer.Exit(EXIT_FAILED)


def _in_code(paths: Sequence[Path], contract_id: str) -> tuple[ConsumerUse, ...]:
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


def _gates(results: str, contract_id: str, since: date) -> Iterator[ConsumerUse]:
    """The gates that have enforced a contract, with its version."""
    from dqx_airflow.contracts.uses import ConsumerUse
    from dqx_airflow.results.query import StoredResults
    from dqx_airflow.results.reader import contract_uses

    stored = StoredResults(results, storage_options())
    for use in contract_uses(stored, contract_id, since):
        runs = f"{use.runs} run{'' if use.runs == 1 else 's'}"
        yield ConsumerUse(
            use.gate, f"gate: {runs}, most recently on {use.last}", use.pin, use.version
        )


def _is_of_datalex(contract_id: str) -> bool:
    from dqx_airflow.contracts.datalex.binding import parsed_reference

    return parsed_reference(contract_id) is not None


def _by_manifest(
    given: Path | None, code: Sequence[Path], contract_id: str, uses: Sequence[ConsumerUse]
) -> tuple[Reliance, ...]:
    """The versions of a DataLex contract that are relied on.

    :raises RequestError: there is no manifest with the contract.
    """
    from dqx_airflow.contracts.datalex.binding import find_manifest
    from dqx_airflow.contracts.dialects.datalex import read_manifest
    from dqx_airflow.contracts.uses import promise_reliances
    from dqx_airflow.diagnostics.diagnostic import did_you_mean
    from dqx_airflow.diagnostics.renderers import draw
    from dqx_airflow.dql.syntax.source_file import Unreadable, read_source

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
        drawn = draw(manifest.errors, {source.name: source.text})
        raise SourceError(drawn, diagnostics=manifest.errors)
    if not manifest.versions_of(contract_id):
        known = sorted({promise.id for promise in manifest.promises})
        raise RequestError(
            f"{path} has no contract {contract_id}", did_you_mean(contract_id, known) or ""
        )
    return promise_reliances(manifest, contract_id, uses)


def _row(reliance: Reliance) -> tuple[str, ...]:
    use = reliance.use
    name = f"{use.name} ({use.span.file}:{use.span.line})" if use.span else use.name
    return (
        name,
        use.pin or "",
        reliance.version or "",
        use.how or "",
        reliance.concern or "up to date",
    )


def _reliance_as_json(reliance: Reliance) -> dict[str, object]:
    use = reliance.use
    return {
        "consumer": use.name,
        "use_case": use.how,
        "pin": use.pin,
        "version": reliance.version,
        "concern": reliance.concern,
        "file": use.span.file if use.span else None,
        "line": use.span.line if use.span else None,
    }
