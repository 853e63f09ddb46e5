"""`dql contract diff`: the changes between two versions of a contract, with the required bump."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import date, datetime, timezone
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

import typer
from rich.text import Text

from dqx_airflow.cli.arguments import GateOption
from dqx_airflow.cli.command import FORMAT
from dqx_airflow.cli.contract.versions import ContractPair, contract_pairs, read_versions
from dqx_airflow.cli.days import DaysOption, FromOption, ToOption
from dqx_airflow.cli.diff import DiffFormat, PastWanted, suite_diff, written
from dqx_airflow.cli.exit_codes import EXIT_FAILED
from dqx_airflow.cli.json_objects import contract_diff_object, release_remark_object
from dqx_airflow.cli.reports import console_for, markdown_cell, printable, table_of
from dqx_airflow.cli.stores import ResultsRootOption
from dqx_airflow.cli.suites import count_text
from dqx_airflow.contracts.compile.suite import Compiled, compile_contract
from dqx_airflow.contracts.diff import Change, Diff
from dqx_airflow.contracts.model import Contract
from dqx_airflow.contracts.publishing import PublishedVersion
from dqx_airflow.contracts.releases import ReleasedContracts, RemarkKind, release_of
from dqx_airflow.contracts.versions import Bump, version_of
from dqx_airflow.diagnostics.diagnostic import Diagnostic
from dqx_airflow.diagnostics.machine_formats import FOR_MACHINES, json_text
from dqx_airflow.diagnostics.templates import filled
from dqx_airflow.errors import RequestError
from dqx_airflow.values import Span

Weight: TypeAlias = Literal["major", "minor", "patch"]


def diff(
    places: Annotated[list[str], typer.Argument(metavar="OLD NEW")],
    *,
    git: Annotated[str | None, typer.Option(metavar="REV")] = None,
    format: Annotated[DiffFormat, FORMAT] = "text",
    semantic: Weight = "major",
    backtest: bool = False,
    since: FromOption = None,
    until: ToOption = None,
    last_days: DaysOption = None,
    gate: GateOption = None,
    results_root: ResultsRootOption = None,
    registry: Annotated[str | None, typer.Option(metavar="LOCATION")] = None,
) -> None:
    """Compare two versions of a contract, and require the right bump.

    Lists every change, who is affected, and the version that it requires.

    With --git, folders are searched, and new, deleted and moved contracts are found.

    Exit code 0 if the declared version is high enough; 1 if it is too low, if a contract in force
    is deleted, or if a consumer pins a version that no longer exists; 2 if a contract has errors.

    :param places: Two files, or files at git revisions: REV:FILE. With --git: PATH...
    :param git: Compare files and folders with their content at this revision.
    :param format: Output format: text, json, markdown, github or sarif.
    :param semantic: The version bump for a change of meaning in descriptions.
    :param backtest: Also evaluate past days with both versions, from the results store: by default
        the last 90. With --format json or sarif, only these are printed.
    :param registry: The published versions, for the versions that consumers pin.
    """
    from dqx_airflow.contracts.diff import diff as compare

    weight = Bump[semantic.upper()]
    if git:
        pairs = contract_pairs(git, places)
        release = release_of(pairs, datetime.now(timezone.utc).date(), semantic=weight)
    elif len(places) == 2:
        old, new = read_versions(places)
        pairs = ((old, new),)
        release = ReleasedContracts((compare(old, new, semantic=weight),), ())
    else:
        raise RequestError(
            f"expected 2 files, got {len(places)}", "write OLD NEW, or --git REV PATH..."
        )
    if not backtest or format not in ("json", "sarif"):
        _print_release(release, format, is_alone=not git)
    if backtest:
        _print_past(
            pairs, PastWanted(results_root, since, until, gate, last_days), registry, format
        )
    if release.falls_short:
        raise typer.Exit(EXIT_FAILED)


def _print_past(
    pairs: Iterable[ContractPair], wanted: PastWanted, registry: str | None, format: DiffFormat
) -> None:
    """Prints on which past days gates would end in another way with the new versions, and which
    consumers these reach. Of a new or deleted contract, all assertions are new or removed."""
    diffs = []
    for old, new in pairs:
        some = new or old
        assert some is not None
        before, after = (
            None if contract is None else compile_contract(contract) for contract in (old, new)
        )
        found = suite_diff(
            Path(_in_file(some.span).file),
            before.checked.suite if before else None,
            after.checked.suite if after else None,
            wanted,
        )
        if found.changes:
            # The compiled suite is in no file: a change is where the contract states its rule.
            places = _places_of_rules(after) if after else {}
            changes = tuple(
                replace(change, span=places.get(change.name) if change.after else None)
                for change in found.changes
            )
            reached = _reached(old, new, registry) if old and new else ()
            diffs.append(replace(found, changes=changes, notes=(*found.notes, *reached)))
    typer.echo(f"\n{written(diffs, format, 'the old version')}", nl=False)


def _places_of_rules(compiled: Compiled) -> dict[str, Span]:
    """The place of the first clause behind each assertion, by its name."""
    return {
        name: _in_file(rule.clauses[0].span) for name, rule in compiled.enforced if rule.clauses
    }


def _reached(old: Contract, new: Contract, registry: str | None) -> Iterator[str]:
    """A sentence for each listed consumer: whether the new version reaches it, by its pin."""
    from dqx_airflow.cli.contract.registry import registry_at
    from dqx_airflow.contracts.uses import reliances

    if version_of(old.version) is None or version_of(new.version) is None:
        return
    published = registry_at(registry).versions(new.id) if registry else ()
    versions = [*published, *(PublishedVersion(one, 0, date.today(), "") for one in (old, new))]
    for reliance in reliances(versions, date.today()):
        pin = f"pins {reliance.use.pin}" if reliance.use.pin else "pins no version"
        reach = f"reads {reliance.version}" if reliance.version else (reliance.concern or "")
        if reliance.version == new.version:
            reach = f"is reached by {new.version}"
        yield f"consumer {reliance.use.name} {pin}: {reach}"


_COLOURS = {Bump.MAJOR: "red", Bump.MINOR: "yellow", Bump.PATCH: "dim"}


def _print_release(release: ReleasedContracts, format: DiffFormat, *, is_alone: bool) -> None:
    """Prints the changes of contracts, and remarks about others.

    :param is_alone: there is one diff, which is displayed even without changes.
    """
    diffs = [diff for diff in release.diffs if diff.changes or is_alone]
    match format:
        case "text":
            for number, diff in enumerate(diffs):
                if number:
                    typer.echo("")
                _print_text(diff)
            for line in _release_lines(release, len(diffs), is_alone=is_alone):
                typer.echo(printable(line))
        case "json":
            objects = [contract_diff_object(diff) for diff in release.diffs]
            objects += [release_remark_object(remark) for remark in release.remarks]
            typer.echo(json_text(objects[0] if is_alone else objects))
        case "markdown":
            lines = _release_lines(release, len(diffs), is_alone=is_alone)
            items = (f"- {markdown_cell(line)}" for line in lines)
            typer.echo("\n\n".join([*map(_markdown, diffs), *items]))
        case "github" | "sarif":
            notes = [note for diff in diffs for note in _annotations(diff)]
            notes += _notes_on_remarks(release)
            if text := FOR_MACHINES[format](notes):
                typer.echo(text)


def _release_lines(release: ReleasedContracts, changed: int, *, is_alone: bool) -> list[str]:
    """The remarks about contracts, and the number of compared and changed ones."""
    lines = [remark.message for remark in release.remarks]
    if not is_alone:
        others = [remark for remark in release.remarks if remark.kind is not RemarkKind.PINNED]
        total = len(release.diffs) + len(others)
        lines.append(f"{count_text(total, 'contract')} compared, {changed or 'none'} changed")
    return lines


def _notes_on_remarks(release: ReleasedContracts) -> Iterator[Diagnostic]:
    for remark in release.remarks:
        if remark.kind is not RemarkKind.NEW:
            span = _in_file(remark.contract.span)
            yield Diagnostic(remark.message, span, is_mild=not remark.falls_short)


def headline(diff: Diff) -> str:
    """`bronze.slots 2.3.0 → 2.4.0: 12 changes, 3 of them break; ...`."""
    versions = f"{diff.old.version or 'no version'} → {diff.new.version or 'no version'}"
    count = len(diff.changes)
    if not count:
        return f"{diff.new.id} {versions}: no changes"
    breaking = len(diff.breaking)
    breaks = f", {breaking} of them {'break' if breaking != 1 else 'breaks'}" if breaking else ""
    due = f"a {diff.due.word} bump is required"
    return f"{diff.new.id} {versions}: {count_text(count, 'change')}{breaks}; {due}"


def _verdict(diff: Diff) -> str:
    return f"too low: {diff.shortfall}" if diff.shortfall else "the version is high enough"


def _print_text(diff: Diff) -> None:
    console = console_for()
    console.print(Text(printable(headline(diff)), style="bold"), soft_wrap=True)
    if not diff.changes:
        return
    rows = []
    for change in diff.changes:
        bump = Text(change.bump.word, style=_COLOURS[change.bump])
        breaks = ", ".join(change.breaks) or "-"
        rows.append((bump, breaks, _where(change), change.message, change.kind.reason))
    console.print()
    console.print(table_of(("bump", "breaks", "place", "change", "why"), rows))
    console.print()
    style = "bold red" if diff.falls_short else "green"
    console.print(Text(printable(_verdict(diff)), style=style), soft_wrap=True)


def _markdown(diff: Diff) -> str:
    fields = {"diff": diff, "headline": headline(diff), "verdict": _verdict(diff)}
    return filled(__package__, "diff.md", **fields, cell=markdown_cell, printable=printable).rstrip(
        "\n"
    )


def _annotations(diff: Diff) -> Iterator[Diagnostic]:
    """Annotations of a pull request: errors for insufficient bumps, warnings for other breaking
    changes."""
    top = _in_file(diff.new.span)
    if diff.shortfall:
        yield Diagnostic(f"{diff.new.id}: {diff.shortfall}", top)
    for change in diff.changes:
        is_short = diff.falls_short and change.bump is diff.due
        if is_short or change.bump is Bump.MAJOR:
            span = _in_file(change.new_span) if change.new_span else top
            message = f"{change.message} ({change.bump.word}: {change.kind.reason})"
            yield Diagnostic(message, span, is_mild=not is_short)


def _in_file(span: Span) -> Span:
    """The span in the file of the checkout, if the new version is one of a revision."""
    return replace(span, file=span.file.partition(":")[2] or span.file)


def _where(change: Change) -> str:
    span = change.new_span or change.old_span
    return f"{change.path} ({span.file}:{span.line})" if span else change.path
