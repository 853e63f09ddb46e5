"""`dql check`, `fmt` and `lsp`: what is done with suites and blocks without running them."""

from __future__ import annotations

import logging
import os
import re
import shutil
import sys
import uuid
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from difflib import unified_diff
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

import typer

from dqx_airflow.cli import command
from dqx_airflow.cli.command import from_here, suite_files, what_to_give
from dqx_airflow.cli.exit_codes import EXIT_FAILED, EXIT_WRONG
from dqx_airflow.diagnostics import machine_formats, renderers
from dqx_airflow.diagnostics.diagnostic import Diagnostic, errors_of
from dqx_airflow.dql.syntax.source_file import LARGEST_FILE, Unreadable, read_source, source_of
from dqx_airflow.errors import SourceError
from dqx_airflow.values import SourceFile
from dqx_airflow.values.files import first_bytes

if TYPE_CHECKING:
    from dqx_airflow.contracts.datalex_binding import Binding, CheckedBlocks
    from dqx_airflow.contracts.dialects.datalex import Manifest


DiagnosticFormat: TypeAlias = Literal["text", "json", "junit", "github", "sarif"]


def check(
    paths: Annotated[list[Path], typer.Argument(metavar="PATH...")],
    format: Annotated[DiagnosticFormat, command.FORMAT] = "text",
    datalex: Path | None = None,
    emit: bool = False,
) -> None:
    """Check suites and blocks: find all errors in all files at once.

    Exit code 0 without errors, else 2. Text output shows the first 100 findings, errors before
    warnings, and counts the others. The machine formats contain all of them.

    :param paths: Suite files, or folders with .dql files.
    :param format: Output format: text, json, junit, github or sarif.
    :param datalex: The DataLex manifest to check blocks against; default: the nearest
        datalex-manifest.json, in a parent folder or its target folder.
    :param emit: Send OpenLineage events for each certified block and its contract: COMPLETE if the
        block keeps it, else FAIL.
    """
    from dqx_airflow.dql.check import check_source
    from dqx_airflow.dql.import_readers import FileReader, search_path
    from dqx_airflow.dql.syntax.source_file import is_block_file

    files, missing = files_at(paths)
    found = Findings()  # a library imported by two suites is checked twice, and reported once
    block_files: list[tuple[Path, SourceFile]] = []
    for file in files:
        source = read_source(file, str(file))
        if isinstance(source, Unreadable):
            found.add([source.diagnostic], {str(file): source.text})
        elif is_block_file(source.text):
            block_files.append((file, source))
        else:
            # A path in this file is also tried relative to the working directory, and to DQL_PATH.
            reader = FileReader(source.name, file, Path.cwd(), search_path(os.environ))
            checked = check_source(source, reader)
            found.add(checked.diagnostics, checked.sources)
    bindings = _check_blocks(block_files, datalex, found) if block_files else ()
    found.print(format, "dql check", files)
    if emit:
        emit_block_events(
            (binding.block, binding.contract, binding.problem) for binding in bindings
        )
    errors = missing + found.errors
    if format == "text":
        # Errors sort before warnings.
        codes = (diagnostic.code for diagnostic in found.diagnostics if diagnostic.code)
        code = min(codes, default=None)
        more = f"; see `dql explain {code}`" if code else ""
        typer.echo(f"{count_text(len(files), 'file')} checked, {count_text(errors, 'error')}{more}")
    if errors:
        raise typer.Exit(EXIT_WRONG)


def files_at(paths: Iterable[Path]) -> tuple[list[Path], int]:
    """The suites at paths, and the number of paths without one, which are reported."""
    files, missing = suite_files(paths)
    for path in missing:
        typer.echo(f"error: no .dql file found at {path}\n  help: {what_to_give(path)}", err=True)
    return files, len(missing)


@dataclass(frozen=True, slots=True)
class Findings:
    """The diagnostics of files in order, each once, and the texts of the files."""

    diagnostics: dict[Diagnostic, None] = field(default_factory=dict)
    sources: dict[str, str] = field(default_factory=dict)

    def add(self, diagnostics: Iterable[Diagnostic], sources: Mapping[str, str]) -> None:
        self.diagnostics.update(dict.fromkeys(diagnostics))
        self.sources.update(sources)

    @property
    def errors(self) -> int:
        return len(errors_of(self.diagnostics))

    def print(self, format: DiagnosticFormat, command_name: str, files: Iterable[Path]) -> bool:
        """Prints the findings in a format; False if there is nothing to display.

        :param files: all files that were checked.
        """
        found = tuple(self.diagnostics)
        if format == "text":
            drawn = renderers.draw(found, self.sources, colour=command.has_colours(sys.stdout))
            text = drawn + "\n" if drawn else ""
        elif format == "junit":
            text = machine_formats.junit_of_files(command_name, found, map(str, files)).rstrip()
        else:
            text = machine_formats.FOR_MACHINES[format](found)
        if text:
            typer.echo(text)
        return bool(text)


def count_text(number: int, noun: str) -> str:
    """A number with its noun: `no errors`, `1 error`, `1,500 errors`."""
    return f"{f'{number:,}' if number else 'no'} {noun}{'' if number == 1 else 's'}"


_STDIN = Path("-")


def fmt(
    paths: Annotated[list[Path], typer.Argument(metavar="PATH...")],
    check: bool = False,
    diff: bool = False,
) -> None:
    """Format suites and libraries in place.

    Comments and the order of statements are kept. A file with syntax errors is left unchanged, and
    the others are formatted: exit code 2.

    :param paths: Suite files, or folders with .dql files; - for standard input.
    :param check: Write nothing; exit 1 if a file would change.
    :param diff: Print the changes and write nothing; exit 1 if a file would change.
    """
    files, missing = files_at(path for path in paths if path != _STDIN)
    if _STDIN in paths:
        files.append(_STDIN)
    counts = Counter[str]()
    is_dry = check or diff
    done = "would be reformatted" if is_dry else "reformatted"
    # A diff, or formatted standard input, has standard output to itself.
    aside = diff or _STDIN in paths
    for path in files:
        outcome = "not formatted"
        try:
            outcome = done if _format(path, is_dry=is_dry, shows_diff=diff) else "left unchanged"
        except SourceError as error:
            typer.echo(f"{error}\n", err=True)
        except OSError as error:
            typer.echo(f"error: {_name(path)} cannot be formatted: {error}\n", err=True)
        counts[outcome] += 1
        if outcome == done:
            typer.echo(f"{outcome}: {_name(path)}", err=aside)
    if counts:
        typer.echo(_summary(counts, (done, "left unchanged", "not formatted")), err=aside)
    if missing or counts["not formatted"]:
        raise typer.Exit(EXIT_WRONG)
    if is_dry and counts[done]:
        raise typer.Exit(EXIT_FAILED)


def _format(path: Path, *, is_dry: bool, shows_diff: bool) -> bool:
    """Formats one file; True if that changes it."""
    from dqx_airflow.dql.formatter import format_source

    if path == _STDIN:
        before = sys.stdin.buffer.read(LARGEST_FILE + 1)
    else:
        before = first_bytes(path, LARGEST_FILE + 1)
    source = source_of(before, _name(path))
    if isinstance(source, Unreadable):
        raise source.error
    after = format_source(source).encode()
    if shows_diff:
        typer.echo(_difference(_name(path), before.decode(), after.decode()).encode(), nl=False)
    elif path == _STDIN and not is_dry:
        typer.echo(after, nl=False)
    elif after != before and not is_dry:
        _replace(path.resolve(), after)
    return after != before


def _replace(path: Path, content: bytes) -> None:
    """Replaces a file atomically, keeping its mode."""
    from dqx_airflow.values.files import replacing

    if not os.access(path, os.W_OK):
        raise PermissionError("it is write-protected")
    with replacing(path) as part:
        part.write_bytes(content)
        shutil.copymode(path, part)


def _difference(name: str, before: str, after: str) -> str:
    """A unified diff in the format of `patch`."""
    lines = unified_diff(_lines(before), _lines(after), name, f"{name} (formatted)")
    without_end = "\n\\ No newline at end of file\n"
    return "".join(line if line.endswith("\n") else line + without_end for line in lines)


def _lines(text: str) -> list[str]:
    return re.findall(r"[^\n]*\n|[^\n]+", text)


def _name(path: Path) -> str:
    return "<stdin>" if path == _STDIN else str(path)


def _summary(counts: Counter[str], outcomes: tuple[str, ...]) -> str:
    """`2 files reformatted, 3 left unchanged`: only the first names what is counted."""
    (first, *others) = [outcome for outcome in outcomes if counts[outcome]]
    files = "file" if counts[first] == 1 else "files"
    more = "".join(f", {counts[outcome]} {outcome}" for outcome in others)
    return f"{counts[first]} {files} {first}{more}"


def _check_blocks(
    files: Iterable[tuple[Path, SourceFile]], given: Path | None, found: Findings
) -> tuple[Binding, ...]:
    """Checks block files; returns the certified blocks with their contracts.

    :param given: the manifest for all of them; by default the nearest to each file.
    """
    from dqx_airflow.contracts.datalex_binding import check_blocks, find_manifest, manifest_findings
    from dqx_airflow.contracts.dialects.datalex import read_manifest

    manifests: dict[Path | None, Manifest | None] = {None: None}
    checked: dict[Path | None, list[CheckedBlocks]] = {}
    for file, source in files:
        path = given or find_manifest(file.absolute().parent)
        if path not in manifests and path is not None:
            text = read_source(path, from_here(path))
            manifests[path] = None if isinstance(text, Unreadable) else read_manifest(text)
            if isinstance(text, Unreadable):
                found.add([text.diagnostic], {})
            else:
                found.add((), {text.name: text.text})
        blocks = check_blocks(source, manifests[path])
        checked.setdefault(path, []).append(blocks)
        found.add(blocks.diagnostics, {source.name: source.text})
    for path, blocks_of in checked.items():
        manifest = manifests[path]
        if manifest is not None:
            found.add(manifest_findings(manifest, blocks_of), {})
    all_blocks = chain.from_iterable(checked.values())
    return tuple(chain.from_iterable(blocks.bindings for blocks in all_blocks))


def emit_block_events(bindings: Iterable[tuple[str, str, str | None]]) -> None:
    """Sends the events of blocks: for each a START event, and the final one.

    :param bindings: each block with its contract, and its problem if it has one.
    """
    from dqx_airflow.lineage.emitter import LineageEmitter
    from dqx_airflow.lineage.events import block_events

    with LineageEmitter() as lineage:
        if not lineage.sends:
            hint = "set OPENLINEAGE__TRANSPORT or OPENLINEAGE_URL, or write an openlineage.yml"
            typer.echo(f"warning: no lineage events are sent: {lineage.why_not}", err=True)
            typer.echo(f"  help: {hint}", err=True)
            return
        sent = [
            lineage.emit(event)
            for binding in bindings
            for event in block_events(
                *binding, str(uuid.uuid4()), datetime.now(timezone.utc), lineage.namespace
            )
        ]
    if not all(sent):
        typer.echo("warning: not every event was sent, see the log above", err=True)


def lsp(stdio: bool = False) -> None:
    """Run the language server for an editor, on standard input and output.

    :param stdio: Use stdio (the default and only transport).
    """
    from dqx_airflow.dql.import_readers import search_path

    with command.of_extra("the language server", "lsp", "pygls", "lsprotocol"):
        from dqx_airflow.editor.server import create_server
    # A rejected request, such as renaming a column, is a response and not an error.
    logging.getLogger("pygls.protocol").setLevel(logging.CRITICAL)
    if sys.stdin.isatty():
        typer.echo("dql lsp is waiting for an editor on stdin; press Ctrl+C to stop", err=True)
    create_server(search_path(os.environ)).start_io()
