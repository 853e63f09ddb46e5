"""The outputs of a diff: for readers, for scripts, for pull requests, for GitHub."""

from __future__ import annotations

from collections.abc import Iterator

import typer
from rich.text import Text

from dqx_airflow.cli.reports import console_for, printable, table_of
from dqx_airflow.contracts.diff import Change, Diff
from dqx_airflow.contracts.publishing import Deletion, ReleasedContracts, StrandedPin
from dqx_airflow.contracts.versions import Bump
from dqx_airflow.diagnostics.diagnostic import Diagnostic
from dqx_airflow.diagnostics.renderers import github_annotations, json_text
from dqx_airflow.values import Span

_COLOURS = {Bump.MAJOR: "red", Bump.MINOR: "yellow", Bump.PATCH: "dim"}


def print_diff(diff: Diff, format: str) -> None:
    """Prints the diff in one of the formats `text`, `json`, `markdown` and `github`."""
    match format:
        case "text":
            _print_text(diff)
        case "json":
            typer.echo(json_text(diff.as_plain()))
        case "markdown":
            typer.echo(_markdown(diff))
        case "github":
            if annotations := github_annotations(_annotations(diff)):
                typer.echo(annotations)


def print_diffs(release: ReleasedContracts, format: str) -> None:
    """Prints the changes of several contracts, in one of the formats of `print_diff`."""
    diffs = [diff for diff in release.diffs if diff.changes or format == "json"]
    match format:
        case "text":
            for number, diff in enumerate(diffs):
                if number:
                    typer.echo("")
                _print_text(diff)
            for line in _remarks(release):
                typer.echo(printable(line))
        case "json":
            typer.echo(
                json_text([*(diff.as_plain() for diff in diffs), *_release_as_json(release)])
            )
        case "markdown":
            parts = [_markdown(diff) for diff in diffs]
            typer.echo("\n\n".join([*parts, *(f"- {_cell(line)}" for line in _remarks(release))]))
        case "github":
            diagnostics = [note for diff in diffs for note in _annotations(diff)]
            if annotations := github_annotations([*diagnostics, *_release_annotations(release)]):
                typer.echo(annotations)


def _remarks(release: ReleasedContracts) -> Iterator[str]:
    """A line for each contract without a diff, and for each pin without a version."""
    for contract in release.added:
        yield f"{contract.id} {contract.version or 'no version'}: a new contract"
    for deletion in release.deleted:
        yield _deletion(deletion)
    for pin in release.stranded:
        yield _stranded_pin(pin)
    changed = sum(bool(diff.changes) for diff in release.diffs)
    total = len(release.diffs) + len(release.added) + len(release.deleted)
    yield f"{total} contract{'' if total == 1 else 's'} compared, {changed or 'none'} changed"


def _deletion(deletion: Deletion) -> str:
    contract = deletion.contract
    title = f"{contract.id} {contract.version or 'no version'}"
    if deletion.is_due:
        return f"{title}: deleted after its sunset"
    models = ", ".join(model.name for model in contract.models)
    hint = "sunset it first, or put it back"
    return f"{title}: deleted while consumers may rely on {models or 'it'}: {hint}"


def _stranded_pin(pin: StrandedPin) -> str:
    contract = pin.contract
    return (
        f"{contract.id} {contract.version or 'no version'}: {pin.team} pins {pin.pin}, and no "
        "contract has this version any longer: keep it beside the new one, or update the pin"
    )


def _release_as_json(release: ReleasedContracts) -> Iterator[dict[str, object]]:
    for contract in release.added:
        yield {"id": contract.id, "new_version": contract.version, "status": "new"}
    for deletion in release.deleted:
        contract = deletion.contract
        yield {
            "id": contract.id,
            "old_version": contract.version,
            "status": "deleted",
            "falls_short": not deletion.is_due,
        }
    for pin in release.stranded:
        yield {
            "id": pin.contract.id,
            "new_version": pin.contract.version,
            "status": "pinned",
            "team": pin.team,
            "pin": pin.pin,
            "falls_short": True,
        }


def _release_annotations(release: ReleasedContracts) -> Iterator[Diagnostic]:
    for deletion in release.deleted:
        yield Diagnostic(
            _deletion(deletion), _in_file(deletion.contract.span), is_mild=deletion.is_due
        )
    for pin in release.stranded:
        yield Diagnostic(_stranded_pin(pin), _in_file(pin.contract.span))


def headline(diff: Diff) -> str:
    """`bronze.slots 2.3.0 → 2.4.0: 12 changes, 3 of them break; ...`."""
    versions = f"{diff.old.version or 'no version'} → {diff.new.version or 'no version'}"
    count = len(diff.changes)
    if not count:
        return f"{diff.new.id} {versions}: no changes"
    breaking = len(diff.breaking)
    breaks = f", {breaking} of them {'break' if breaking != 1 else 'breaks'}" if breaking else ""
    due = f"a {diff.due.word} bump is required"
    return f"{diff.new.id} {versions}: {_count(count)}{breaks}; {due}"


def _verdict(diff: Diff) -> str:
    return f"too low: {diff.shortfall}" if diff.shortfall else "the version is high enough"


def _print_text(diff: Diff) -> None:
    console = console_for()
    console.print(Text(printable(headline(diff)), style="bold"), soft_wrap=True)
    if not diff.changes:
        return
    table = table_of("bump", "breaks", "place", "change", "why")
    for change in diff.changes:
        table.add_row(
            Text(change.bump.word, style=_COLOURS[change.bump]),
            Text(", ".join(change.breaks) or "-"),
            *(Text(printable(cell)) for cell in (_where(change), change.message, change.reason)),
        )
    console.print()
    console.print(table)
    console.print()
    style = "bold red" if diff.falls_short else "green"
    console.print(Text(printable(_verdict(diff)), style=style), soft_wrap=True)


def _markdown(diff: Diff) -> str:
    lines = [f"**{_cell(headline(diff))}**"]
    if diff.changes:
        mark = "❌" if diff.falls_short else "✅"
        lines += ["", f"{mark} {_cell(_verdict(diff))}", ""]
        lines += ["| bump | breaks | place | change | why |", "|---|---|---|---|---|"]
        lines += [f"| {' | '.join(_cells(change))} |" for change in diff.changes]
    return "\n".join(lines)


def _cells(change: Change) -> Iterator[str]:
    yield f"**{change.bump.word}**" if change.bump is Bump.MAJOR else change.bump.word
    yield ", ".join(change.breaks) or "no one"
    yield f"`{printable(change.path).replace('|', '/').replace('`', '')}`"
    yield _cell(change.message)
    yield _cell(change.reason)


def _cell(text: str) -> str:
    """A text that stays in its table cell, and is not read as markup."""
    escaped = "".join(f"\\{letter}" if letter in "|<>*_[]" else letter for letter in text)
    return " ".join(printable(escaped).split())


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
            message = f"{change.message} ({change.bump.word}: {change.reason})"
            yield Diagnostic(message, span, is_mild=not is_short)


def _in_file(span: Span) -> Span:
    """The span in the file of the checkout, if the new version is one of a revision."""
    file = span.file.partition(":")[2] or span.file
    return Span(file, span.line, span.column, span.end_line, span.end_column)


def _where(change: Change) -> str:
    span = change.new_span or change.old_span
    return f"{change.path} ({span.file}:{span.line})" if span else change.path


def _count(number: int) -> str:
    return f"{number} change{'' if number == 1 else 's'}"
