"""`dql diff`: the assertions that changed since a git revision, and the past days on which a gate
would have ended in another way; for contracts as `dql contract diff --backtest`."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

import typer
from rich.filesize import decimal

from dqx_airflow.cli import arguments
from dqx_airflow.cli.calls import read_call
from dqx_airflow.cli.command import (
    FORMAT,
    ForceOption,
    OutputOption,
    from_here,
    print_or_write,
    suite_files,
    what_to_give,
    writable,
)
from dqx_airflow.cli.contract.versions import git
from dqx_airflow.cli.days import DaysOption, FromOption, ToOption, first_and_last
from dqx_airflow.cli.reports import markdown_cell, printable
from dqx_airflow.cli.settings_diff import JudgedSuite, changed_settings, judged_setting
from dqx_airflow.cli.stores import ResultsRootOption, existing_results
from dqx_airflow.cli.suites import Findings, count_text
from dqx_airflow.datasets.dqx_toml import FILE_NAME, Settings, find_settings, read_settings
from dqx_airflow.diagnostics import machine_formats, renderers
from dqx_airflow.diagnostics.diagnostic import Diagnostic, errors_of, listed
from dqx_airflow.diagnostics.templates import filled
from dqx_airflow.dql import nodes
from dqx_airflow.dql.check import check_source
from dqx_airflow.dql.checks.assertions import datasets_of
from dqx_airflow.dql.import_readers import FileReader, search_path
from dqx_airflow.dql.syntax.source_file import Unreadable, read_source
from dqx_airflow.errors import RequestError
from dqx_airflow.plan.resolve import QUIET, resolve
from dqx_airflow.plan.selection import assumed
from dqx_airflow.results.past_days import PastDay, past_days
from dqx_airflow.results.past_runs import runs_of_suite
from dqx_airflow.results.values_of_gates import with_values_of_gates
from dqx_airflow.tuning.suite_diff import ChangedAssertion, changed_assertions
from dqx_airflow.values import SourceFile, Span
from dqx_airflow.values.output_form import output_form

if TYPE_CHECKING:
    Pair: TypeAlias = tuple[Path, nodes.Suite | None, nodes.Suite | None]


DiffFormat: TypeAlias = Literal["text", "json", "markdown", "github", "sarif"]
_KEPT, _LINK = re.compile(r"\.dql$|(^|/)dqx\.toml$"), "120000"
_MOST_REASONS = 3
"""The most reasons why days are not known that a change shows: a window has one for each lag."""


@dataclass(frozen=True, slots=True)
class SuiteDiff:
    """The changed assertions of a suite in a file, or the changed settings in one.

    `notes` say what was judged and what was not. `not_judged` is the reason why no past day was
    judged, if that was asked for."""

    suite: str
    file: str
    changes: tuple[ChangedAssertion, ...]
    notes: tuple[str, ...] = ()
    not_judged: str | None = None

    @property
    def number(self) -> str:
        """The number of changes, in words."""
        return count_text(len(self.changes), self.changes[0].noun)


@dataclass(frozen=True, slots=True)
class _FoundDays:
    """The past days to judge; `not_judged` is the reason why there are none."""

    days: tuple[PastDay, ...]
    notes: tuple[str, ...]
    not_judged: str | None = None


@dataclass(frozen=True, slots=True)
class PastWanted:
    """The past days to judge: those in a store, of a period and a gate, as they were typed; by
    default the last 90."""

    results_root: str | None
    since: date | None
    until: date | None
    gate: str | None = None
    days: int | None = None

    def days_of(self, suite: str, path: Path, datasets: Collection[str]) -> _FoundDays:
        """The days of a suite, with what other gates stored about its datasets.

        :raises RequestError: no store is configured.
        :raises NoStoreError: there is none at its root.
        :raises StoreError: it cannot be read.
        """
        stored = existing_results(self.results_root, path.parent)
        first, last = first_and_last(self.since, self.until, self.days, default=90)
        try:
            own = past_days(stored, suite, first, last, gate=self.gate)
            found = with_values_of_gates(stored, own, datasets, first, last, gate=self.gate)
            if not found.doubts:
                arguments.require_days(
                    found.days, stored, runs_of_suite(suite, first, last, self.gate)
                )
        except RequestError as error:
            return _not_judged(f"{error.problem}; {error.hint}")
        if not found.days:
            return _not_judged("; ".join(found.doubts))
        known = len({day.date for day in found.days})
        notes = [f"{known} of {(last - first).days + 1} days until {last} have stored values"]
        if found.gates:
            notes.append(f"with values that other suites measured: {', '.join(found.gates)}")
        return _FoundDays(found.days, (*notes, *found.doubts))


def _not_judged(why: str) -> _FoundDays:
    reason = f"no past day was evaluated: {why}"
    return _FoundDays((), (reason,), reason)


def diff(
    paths: Annotated[list[Path] | None, typer.Argument(metavar="[PATH...]")] = None,
    *,
    revision: Annotated[str, typer.Option("--git", metavar="REV")] = "HEAD",
    backtest: bool = False,
    since: FromOption = None,
    until: ToOption = None,
    last_days: DaysOption = None,
    gate: arguments.GateOption = None,
    results_root: ResultsRootOption = None,
    cost: bool = False,
    dataset: arguments.DatasetOption = None,
    config: arguments.ConfigOption = None,
    format: Annotated[DiffFormat, FORMAT] = "text",
    output: OutputOption = None,
    force: ForceOption = False,
) -> None:
    """List the assertions that differ from a git revision.

    With --backtest, list the past days on which a gate would have ended in another way, too.

    Days are evaluated from the values in the results store, without Spark: by default of the
    last 90. Values of any gate that reads the same dataset in the same way count, so that suites
    may be renamed and split. Settings of `dqx.toml` that decide what passes, such as fail_on, are
    compared, too. For contracts there is `dql contract diff`. Exit code 2 if a suite has
    errors, or if a path has no .dql file now and had none at the revision; else 0.

    :param paths: Suite files, or folders with .dql files; default: the working directory.
    :param revision: The revision to compare with, such as origin/main.
    :param backtest: Evaluate past days with both versions.
    :param cost: Estimate how much more a gate reads: for the day of --to, by default yesterday.
    :param format: Output format: text, json, markdown, github or sarif.
    """
    file = writable(output, force=force)
    files, missing = suite_files(paths or [Path()])
    wanted = PastWanted(results_root, since, until, gate, last_days) if backtest else None
    with TemporaryDirectory() as folder:
        earlier = _earlier(revision, Path(folder))
    if paths:
        unknown = [path for path in missing if not _some_below(path, earlier.names)]
        _require_known(unknown, revision)
    pairs = list(_pairs(files, paths or [Path()], earlier.suites))
    diffs = [suite_diff(*pair, wanted) for pair in pairs]
    if cost:
        on = until or date.today() - timedelta(days=1)
        options = arguments.Options((), datasets=dataset, config=config)
        diffs = [_with_cost(*of_suite, options, on) for of_suite in zip(diffs, pairs, strict=True)]
    diffs += [*_settings_diffs(earlier.settings, paths or [Path()], pairs, wanted)]
    print_or_write(written([one for one in diffs if one.changes], format, revision), file)


def _settings_diffs(
    before: Mapping[Path, Settings],
    paths: Sequence[Path],
    pairs: Sequence[Pair],
    wanted: PastWanted | None,
) -> Iterator[SuiteDiff]:
    """The changes of each `dqx.toml` below the paths, or nearest to them or to a suite, now or
    before.

    :raises SourceError: one has mistakes.
    """
    of_suites: dict[Path, list[Pair]] = {}
    for path in paths:
        of_suites.update({place: [] for place in _settings_at(path, before)})
    for pair in pairs:
        for place in _settings_above(pair[0], before):
            of_suites.setdefault(place, []).append(pair)
    for place, nearest in sorted(of_suites.items()):
        new = read_settings(place, from_here(place)) if place.is_file() else Settings()
        if new.problems:
            raise renderers.drawn_error(new.problems, {from_here(place): new.text})
        old = before.get(place, Settings())
        changes = changed_settings(old, new, from_here(place))
        if changes and wanted is not None:
            suites_of_gates = {os.path.realpath(new.suite_of(gate)) for gate in new.gates}
            judged = []
            for pair in pairs:
                path, was, suite = pair
                some = suite or was
                file = os.path.realpath(path)
                is_concerned = pair in nearest or file in suites_of_gates
                if some is None or not is_concerned:
                    continue
                datasets = datasets_of(some.checks)
                past = wanted.days_of(some.name.value, path, datasets)
                judged.append(JudgedSuite(file, some, past.days))
            changes = tuple(judged_setting(change, old, new, judged) for change in changes)
        yield SuiteDiff(FILE_NAME, from_here(place), changes)


def _settings_at(path: Path, before: Collection[Path]) -> set[Path]:
    """The `dqx.toml` files below a path, and the nearest ones above it, now and before."""
    if not path.is_dir():
        return _settings_above(path, before)
    now = {file.resolve() for file in path.rglob(FILE_NAME) if file.is_file()}
    folder = Path(os.path.realpath(path))
    earlier = {file for file in before if file.is_relative_to(folder)}
    return now | earlier | _settings_above(path / FILE_NAME, before)


def _settings_above(file: Path, before: Collection[Path]) -> set[Path]:
    """The `dqx.toml` files that are nearest to a file, now and before."""
    now = find_settings(file.parent)
    earlier = _nearest(Path(os.path.realpath(file)).parent, before)
    places = set() if now is None else {now.resolve()}
    return places if earlier is None else {*places, earlier}


def _nearest(home: Path, files: Collection[Path]) -> Path | None:
    """The `dqx.toml` of some files that is nearest to a folder, in it or above it."""
    for folder in (home, *home.parents):
        if folder / FILE_NAME in files:
            return folder / FILE_NAME
    return None


def _some_below(path: Path, names: Iterable[Path]) -> bool:
    """Whether a path was one of these files, or has one of them below."""
    place = os.path.realpath(path)
    return any(name.is_relative_to(place) for name in names)


def _require_known(unknown: Sequence[Path], revision: str) -> None:
    """:raises RequestError: there are paths without a suite, now and at the revision."""
    if unknown:
        shown = ", ".join(map(str, unknown))
        raise RequestError(
            f"no .dql file found at {shown}, neither now nor at {revision}",
            what_to_give(unknown[0]),
        )


def suite_diff(
    path: Path, old: nodes.Suite | None, new: nodes.Suite | None, wanted: PastWanted | None
) -> SuiteDiff:
    """The changes of a suite, and the verdicts of past days with both versions.

    :param old: without errors, its macros expanded, as is `new`; one of them may be missing.
    """
    some = old or new
    assert some is not None
    around = (wanted and wanted.until) or date.today()
    found = SuiteDiff(some.name.value, from_here(path), changed_assertions(old, new, around))
    if not found.changes or wanted is None:
        return found
    datasets = datasets_of([check for suite in (old, new) if suite for check in suite.checks])
    past = wanted.days_of(found.suite, path, datasets)
    changes = changed_assertions(old, new, around, past.days) if past.days else found.changes
    return replace(found, changes=changes, notes=past.notes, not_judged=past.not_judged)


def _with_cost(diff: SuiteDiff, pair: Pair, options: arguments.Options, on: date) -> SuiteDiff:
    """Adds notes about how much more or less the gate reads for a day, and for which assertions."""
    from dqx_airflow.engine.cost import HOW, costs_of

    path, old, new = pair
    if not diff.changes or new is None:
        return diff
    call = read_call(replace(options, paths=(path,)), on)
    if errors := [error for error in errors_of(call.diagnostics) if error.code != "E009"]:
        raise renderers.drawn_error(errors, call.sources)
    refs = [ref for request in call.requests for ref in request.datasets]
    known = ", ".join(ref.name for ref in refs if ref.path)
    if not known:
        note = "what the gate reads is not known: add --dataset NAME=PATH with a known size"
        return replace(diff, notes=(*diff.notes, note))
    (before, costs_before), (after, costs_now) = (
        costs_of(resolve(suite, SourceFile("", ""), assumed(suite, refs), on, QUIET), refs)
        for suite in (old or replace(new, checks=()), new)
    )
    alone = {(cost.check, cost.name): cost.bytes_more for cost in costs_before}
    changed = {(change.check, change.name) for change in diff.changes}
    lines = [
        f"{cost.name} alone makes it read {decimal(size)} more"
        for cost in costs_now
        if (key := (cost.check, cost.name)) in changed
        and (size := cost.bytes_more - alone.get(key, 0)) > 0
    ]
    more = f"{decimal(abs(after - before))} {'less' if after < before else 'more'}"
    note = f"the gate reads {more} of {known} for {on}: {decimal(after)}, {HOW}"
    return replace(diff, notes=(*diff.notes, note, *lines))


@dataclass(frozen=True, slots=True)
class _Earlier:
    """The names of the .dql files of a revision, its suites, and its `dqx.toml` files, by their
    present paths."""

    names: tuple[Path, ...]
    suites: Mapping[Path, nodes.Suite]
    settings: Mapping[Path, Settings]


def _earlier(revision: str, folder: Path) -> _Earlier:
    """What a revision had, read from a copy of its files in a folder; without suites and settings
    that have errors, for which a warning is printed.

    :raises RequestError: git cannot read it.
    """
    top = git("rev-parse", "--show-toplevel").decode().strip()
    listing = git("-C", top, "ls-tree", "-r", "-z", "--end-of-options", revision)
    entries = [entry.partition("\t") for entry in os.fsdecode(listing).split("\0")]
    # A `dqx.toml` marks the root of a project, where imports are searched.
    kept = {name: about for about, _, name in entries if _KEPT.search(name)}
    for name, about in kept.items():
        mode, _, blob = about.split()
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        content = git("cat-file", "blob", blob)
        if mode != _LINK:
            path.write_bytes(content)
        elif Path(os.path.normpath(path.parent / os.fsdecode(content))).is_relative_to(folder):
            path.symlink_to(os.fsdecode(content))
    suites = {}
    settings = {}
    for name in filter(lambda name: (folder / name).is_file(), kept):
        found = Findings()
        if not name.endswith(".dql"):
            known = read_settings(folder / name)
            if known.problems:
                typer.echo(f"warning: {name} has errors at {revision}: it counts as new", err=True)
            else:
                settings[Path(top, name)] = known
            continue
        suite = _suite_in(folder / name, folder, found)
        if found.errors:
            typer.echo(f"warning: {name} has errors at {revision}: it counts as new", err=True)
        elif suite is not None:
            suites[Path(top, name)] = suite
    names = tuple(Path(top, name) for name in kept if name.endswith(".dql"))
    return _Earlier(names, suites, settings)


def _suite_in(path: Path, root: Path, found: Findings) -> nodes.Suite | None:
    """The suite in a file, whose errors are added to the findings; None for a library or blocks."""
    source = read_source(path, from_here(path))
    if isinstance(source, Unreadable):
        found.add([source.diagnostic], {})
        return None
    checked = check_source(source, FileReader(source.name, path, root, search_path(os.environ)))
    found.add(checked.errors, checked.sources)
    return checked.suite


def _pairs(
    files: Sequence[Path], paths: Sequence[Path], before: Mapping[Path, nodes.Suite]
) -> Iterator[Pair]:
    """Each suite with its earlier version: the suite at the same path, or else one with the same
    name whose file is gone, or has no suite any more.

    :raises SourceError: a suite has errors.
    """
    found = Findings()
    suites = {file: suite for file in files if (suite := _suite_in(file, Path.cwd(), found))}
    if found.errors:
        raise renderers.drawn_error(found.diagnostics, found.sources)
    kept = {Path(os.path.realpath(file)) for file in suites}
    without = {Path(os.path.realpath(file)) for file in files} - kept  # now libraries, or blocks
    gone = {path: suite for path, suite in before.items() if path in without or not path.is_file()}
    for file, suite in suites.items():
        old = before.get(Path(os.path.realpath(file)))
        moved = [path for path, other in gone.items() if other.name.value == suite.name.value]
        yield file, gone.pop(moved[0]) if moved and old is None else old, suite
    for place, old in gone.items():
        if any(place.is_relative_to(os.path.realpath(path)) for path in paths):
            yield place, old, None


def written(diffs: Sequence[SuiteDiff], format: DiffFormat, revision: str) -> str:
    """The changes in a format, with a line end; empty if there is nothing to display."""
    notes = [note for one in diffs for note in _annotations(one)]
    match format:
        case "json":
            plain = {"revision": revision, "suites": output_form(diffs)}
            text = machine_formats.json_text(plain)
        case "markdown":
            text = (
                "\n\n".join(map(partial(_shown, "md"), diffs))
                or f"No assertion and no setting differs from `{revision}`."
            )
        case "text":
            text = (
                printable("\n\n".join(map(partial(_shown, "txt"), diffs)), keep="\n")
                or f"no assertion and no setting differs from {revision}"
            )
        case "github" | "sarif":
            text = machine_formats.FOR_MACHINES[format](notes)
    return f"{text}\n" if text else ""


def _facts(change: ChangedAssertion) -> list[str]:
    """Sentences about the verdicts of past days under a change; empty if none was judged."""
    facts = [
        f"{turn} on {count_text(len(days), 'day')}: {listed(days)}"
        for turn, days in change.turned.items()
    ]
    if change.known and not facts:
        facts.append(f"no outcome changes on {count_text(change.known, 'day')}")
    reasons = list(change.unknown.items())
    for reason, days in reasons[:_MOST_REASONS]:
        facts.append(f"not known on {count_text(days, 'day')}: {reason}")
    if others := sum(days for _, days in reasons[_MOST_REASONS:]):
        facts.append(f"not known on {count_text(others, 'day')} for other reasons")
    return facts


def _shown(form: str, diff: SuiteDiff) -> str:
    shown = {"diff": diff, "number": diff.number, "facts": _facts, "cell": markdown_cell}
    return filled(__package__, f"diff.{form}", **shown).rstrip()


def _annotations(diff: SuiteDiff) -> Iterator[Diagnostic]:
    """A warning for each assertion with which past days end in another way, or are not known."""
    for change in diff.changes:
        facts = [diff.not_judged] if diff.not_judged else _facts(change)
        if change.turned or change.unknown or diff.not_judged:
            span = change.span or Span(diff.file, 1, 1, 1, 2)
            message = f"{change.kind} {change.noun} '{change.name}': {'; '.join(facts)}"
            yield Diagnostic(message, span, code="W051")
