"""`dql init` over many tables: what it writes, and in which order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta, timezone
from difflib import unified_diff
from pathlib import Path
from shlex import quote
from typing import Literal, TypeAlias

import typer

from dqx_airflow.cli import command
from dqx_airflow.cli.exit_codes import EXIT_FAILED
from dqx_airflow.cli.lake.drafts import KeptDrafts
from dqx_airflow.cli.lake.report import (
    LakeReport,
    changes_of,
    lake_report,
    print_report,
    report_page,
)
from dqx_airflow.cli.lake.sources import LakeSources, flow_of
from dqx_airflow.contracts.dialects.rule_names import unique_name
from dqx_airflow.datasets.dqx_toml import FILE_NAME, Settings, is_toml, literal, read_settings
from dqx_airflow.datasets.locations import is_inside
from dqx_airflow.datasets.name_patterns import name_patterns, unmatched
from dqx_airflow.diagnostics.diagnostic import listed
from dqx_airflow.diagnostics.templates import filled
from dqx_airflow.dql.check import check_source
from dqx_airflow.dql.nodes import Suite
from dqx_airflow.errors import DatasetError, RequestError
from dqx_airflow.tuning.lake.found_tables import FoundTable, chosen_tables, location_of, with_names
from dqx_airflow.tuning.lake.past_claims import PastClaim
from dqx_airflow.tuning.lake.references import Reference, references_between
from dqx_airflow.tuning.lake.suite_draft import drafted_suite
from dqx_airflow.tuning.lake.table_draft import TableDraft
from dqx_airflow.tuning.review import is_experimental
from dqx_airflow.values import SourceFile

ReportFormat: TypeAlias = Literal["text", "json", "html"]

DAG_ID = "lake_gates"
BLOCKING = "blocking.sh"
_SUITES = "suites"
_MOST_SHOWN = 4


@dataclass(slots=True)
class _Files:
    """The files to write, by their paths in the folder: the text of each, which is added to the
    settings if there are some."""

    folder: Path
    texts: dict[str, str] = field(default_factory=dict)

    def add_new(self, name: str, text: str) -> None:
        """Adds a file, unless it exists: then it belongs to a person."""
        if not (self.folder / name).exists():
            self.texts[name] = text

    def suite_at(self, name: str) -> Suite | None:
        """The suite in a file, new or not; None if it has errors."""
        path = self.folder / name
        try:
            text = self.texts.get(name) or path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            return None
        checked = check_source(SourceFile(str(path), text), needs_suite=True)
        return None if checked.errors else checked.suite

    def difference(self, name: str, text: str) -> str:
        """What `write` would change in a file, as a unified diff.

        :raises RequestError: the file cannot be read.
        """
        path = self.folder / name
        before = ""
        if path.exists():
            try:
                before = path.read_text(encoding="utf-8")
            except (OSError, UnicodeDecodeError) as error:
                raise RequestError(f"cannot read {path}: {error}") from error
        lines = unified_diff(
            before.splitlines(keepends=True),
            (before + text).splitlines(keepends=True),
            str(path) if before else "/dev/null",
            str(path),
        )
        return "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)

    def write(self) -> None:
        """:raises RequestError: a file cannot be written."""
        for name, text in self.texts.items():
            path = self.folder / name
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise RequestError(f"cannot create {path.parent}: {error.strerror}") from error
            if name == FILE_NAME and path.exists():
                _add_to(path, text)
            else:
                command.write_text(path, text)


def _add_to(settings: Path, text: str) -> None:
    """Adds a text to the end of a file, of which no byte changes.

    :raises RequestError: the file cannot be written.
    """
    try:
        has_crlf = b"\r\n" in settings.read_bytes()
        with settings.open("a", encoding="utf-8", newline="\r\n" if has_crlf else "\n") as file:
            file.write(text)
    except OSError as error:
        raise RequestError(f"cannot write {settings}: {error.strerror}") from error


@dataclass(frozen=True, slots=True)
class LakeOptions:
    """The options of `dql init` that count for many tables, as they are typed.

    :param locations: where the tables are, see `LakeSources`.
    :param events: files with lineage events, or the address of a Marquez.
    :param is_dry: whether to print what would be written, and to write nothing.
    """

    locations: Sequence[str] = ()
    only: Sequence[str] = ()
    exclude: Sequence[str] = ()
    events: Sequence[str] = ()
    connection: str | None = None
    days: int = 30
    calls_per_month: float | None = None
    is_dry: bool = False
    format: ReportFormat = "text"


def init_lake(folder: Path, options: LakeOptions) -> None:
    """Drafts a suite for each of many tables, their settings and one DAG; prints the report.

    :raises RequestError: a file cannot be written, or `dqx.toml` has mistakes.
    :raises DatasetError: there are no tables, or none can be read.
    """
    settings = _settings_in(folder)
    flow = flow_of(options.events)
    sources = LakeSources(options.locations, flow, settings, options.connection)
    try:
        _init(folder, options, settings, sources)
    finally:
        sources.close()


def _init(folder: Path, options: LakeOptions, settings: Settings, sources: LakeSources) -> None:
    now = datetime.now(timezone.utc)
    kept = KeptDrafts(folder, is_dry=options.is_dry)
    names = _names_of_locations(settings, kept)
    taken = {*settings.datasets, *(gate.name for gate in settings.gates)}
    there = _without_results(sources.tables(), settings)
    if not there:
        raise DatasetError(f"there is no table in {sources.title}", "give another --dataset")
    only = name_patterns("--only", options.only)
    exclude = name_patterns("--exclude", options.exclude)
    named = with_names(there, names, taken)
    _require_matches(named, only, exclude)
    found = chosen_tables(named, only, exclude)
    if not found:
        raise DatasetError(f"no table in {sources.title} matches", "change --only and --exclude")
    tables = [_as_set(table, settings) for table in found]
    drafts = kept.drafts(tables, options.days, now, sources.read)
    references = references_between(drafts, sources.read)
    files = _Files(folder)
    suites = _suites_of(drafts, settings)
    _add_files(files, sources.title, drafts, references, suites, settings, now.date())
    gone = []
    if not options.only and not options.exclude:
        drafted = {draft.name for draft in drafts}
        own = [gate.name for gate in settings.gates if gate.name in settings.refs]
        gone = [name for name in own if name not in drafted and sources.covers(settings.refs[name])]
    claims, enforced = _claims_of_suites(files, drafts, suites)
    report = lake_report(
        drafts, references, kept.known, gone, claims, enforced, options.calls_per_month
    )
    if sources.flow is not None:
        report = report.ranked(sources.flow.readers_of)
    if report.blocking:
        assert options.calls_per_month is not None
        files.add_new(BLOCKING, _blocking(report, suites, options.calls_per_month))
    if options.is_dry:
        _print_difference(files, report)
        return
    files.write()
    match options.format:
        case "json":
            typer.echo(command.json_if("json", report))
        case "html":
            typer.echo(report_page(report, sources.title, now), nl=False)
        case "text":
            print_report(report)
            if report.drafted:
                typer.echo(_next(files, report), nl=False)
    if all(draft.problem for draft in drafts):
        raise DatasetError(f"no table in {sources.title} can be read", "see the report above")


def _require_matches(
    tables: Sequence[FoundTable], only: Sequence[str], exclude: Sequence[str]
) -> None:
    """Checks that each pattern is about a table: with a misspelt one, a table would get no gate, or
    one that is not wanted.

    :raises RequestError: some are not.
    """
    names = [table.names for table in tables]
    mistakes = unmatched("no table matches --only", only, names)
    mistakes += unmatched("no table matches --exclude", exclude, names, is_for_more=True)
    if mistakes:
        raise RequestError("\n".join(mistakes))


def _print_difference(files: _Files, report: LakeReport) -> None:
    """Prints what would change in the folder, and which tables have changed.

    :raises typer.Exit: a file would change.
    """
    for name, text in files.texts.items():
        typer.echo(files.difference(name, text), nl=False)
    for line in changes_of(report):
        typer.echo(line, err=True)
    changed = f"{len(files.texts)} files would change" if files.texts else "nothing would change"
    typer.echo(changed, err=True)
    if files.texts:
        raise typer.Exit(EXIT_FAILED)


def _settings_in(folder: Path) -> Settings:
    """The settings in a folder; the default ones without a file.

    :raises RequestError: they have mistakes.
    """
    path = folder / FILE_NAME
    if not path.exists():
        return Settings()
    settings = read_settings(path)
    severe = [problem for problem in settings.problems if not problem.is_mild]
    if severe:
        raise RequestError(settings.error_message, severe[0].help or "")
    return settings


def _names_of_locations(settings: Settings, kept: KeptDrafts) -> dict[str, str]:
    """The names of known tables by their locations: of datasets that have a gate, of other
    datasets, and of earlier drafts."""
    refs = settings.refs
    of_gates = [gate.datasets[0] for gate in settings.gates if gate.datasets[0] in refs]
    names: dict[str, str] = {}
    for name in (*of_gates, *refs):
        if refs[name].query is None:
            names.setdefault(location_of(refs[name]), name)
    known = {*settings.datasets, *(gate.name for gate in settings.gates)}
    for location, name in kept.names:
        if name not in known:
            names.setdefault(location, name)
    return names


def _without_results(tables: Sequence[FoundTable], settings: Settings) -> list[FoundTable]:
    """The tables without those of the gates' own results, which may lie in the same folder."""
    root = settings.results_root
    if root is None:
        return [*tables]
    return [table for table in tables if not (table.path and is_inside(table.path, root))]


def _as_set(table: FoundTable, settings: Settings) -> FoundTable:
    """The table with what the settings say about its columns and its reader."""
    ref = settings.refs.get(table.name) or table.ref
    ref = settings.as_read({table.name: settings.with_masks(ref)})[table.name]
    return replace(table, masked=ref.masked, options=ref.options)


def _add_files(
    files: _Files,
    lake: str,
    drafts: Sequence[TableDraft],
    references: Sequence[Reference],
    suites: Mapping[str, str],
    settings: Settings,
    today: date,
) -> None:
    """Adds the suites, the settings and the DAG that do not exist yet."""
    wholes = _datasets_of_all_days(drafts, settings)
    referred = {one.to_table for one in references}
    judged = {name for gate in settings.gates for name in gate.datasets}
    added = ""
    for draft in drafts:
        if draft.problem:
            continue
        own = [one for one in references if one.table == draft.name]
        suite = suites[draft.name]
        files.add_new(suite, drafted_suite(draft, own, wholes, today))
        has_dataset = draft.name in settings.datasets
        # A dataset with a suite and without a gate had one, which someone removed.
        has_gate = has_dataset and (draft.name in judged or suite not in files.texts)
        whole = wholes.get(draft.name) if draft.name in referred else None
        targets = {wholes.get(one.to_table, one.to_table) for one in own}
        added += filled(
            __package__,
            "table.toml.txt",
            name=draft.name,
            where="table" if draft.table.table else "path",
            location=draft.table.table or draft.table.path,
            settings=draft.settings,
            has_dataset=not has_dataset,
            whole=None if whole in settings.datasets else whole,
            has_gate=not has_gate,
            suite=suite,
            datasets=[draft.name, *sorted(targets)],
            group=draft.table.group,
            may_be_empty=not settings.text or settings.defaults.allow_empty,
            literal=literal,
        )
    if not added and not settings.gates:
        return
    _add_settings(files, added, settings, lake)
    start = today - timedelta(days=1)
    files.add_new(f"{DAG_ID}.py", filled(__package__, "dag.txt", start=start, dag_id=DAG_ID))


def _datasets_of_all_days(drafts: Sequence[TableDraft], settings: Settings) -> dict[str, str]:
    """The datasets of all days of the tables that have days, by the names of the tables: a row may
    refer to a row of an earlier day."""
    refs = settings.refs
    taken = {*settings.datasets, *(draft.name for draft in drafts)}
    datasets = {}
    for draft in drafts:
        if draft.date_column is None:
            continue
        location = draft.table.location
        known = [
            name
            for name, ref in refs.items()
            if ref.query is None and location_of(ref) == location and ref.date_column is None
        ]
        if known:
            datasets[draft.name] = known[0]
        else:
            datasets[draft.name] = unique_name(f"{draft.name}_all", taken)
    return datasets


def _add_settings(files: _Files, added: str, settings: Settings, lake: str) -> None:
    """Adds the settings of new tables, if there are some.

    :raises RequestError: the settings are written such that no table can be added.
    """
    if not added:
        return
    if not settings.text:
        added = filled(__package__, "head.toml.txt", lake=" ".join(lake.splitlines())) + added
    elif not settings.text.endswith("\n"):
        added = f"\n{added}"
    if not is_toml(settings.text + added):
        message = f"no table can be added to the end of {settings.path}"
        raise RequestError(message, "write [datasets.NAME] and [gates.NAME], each as a table")
    files.texts[FILE_NAME] = added


def _suites_of(drafts: Sequence[TableDraft], settings: Settings) -> dict[str, str]:
    """The paths of the suites of tables, in the folder of the drafts: of their gates, if there are
    some."""
    of_gates = {gate.datasets[0]: gate.suite for gate in reversed(settings.gates)}
    suites = {}
    for draft in drafts:
        parts = filter(None, (_SUITES, draft.table.group, f"{draft.name}.dql"))
        suites[draft.name] = of_gates.get(draft.name, "/".join(parts))
    return suites


def _claims_of_suites(
    files: _Files, drafts: Sequence[TableDraft], suites: Mapping[str, str]
) -> tuple[dict[str, list[PastClaim]], set[str]]:
    """The past claims that the suites still have, by table; and the names of those that block
    already."""
    claims: dict[str, list[PastClaim]] = {}
    enforced = set()
    for draft in drafts:
        suite = files.suite_at(suites[draft.name]) if draft.claims else None
        if suite is None:
            continue
        states = {claim.name: is_experimental(suite, claim.name) for claim in draft.claims}
        claims[draft.name] = [claim for claim in draft.claims if states[claim.name] is not None]
        enforced |= {name for name, state in states.items() if state is False}
    return claims, enforced


def _blocking(report: LakeReport, suites: Mapping[str, str], calls_per_month: float) -> str:
    """The commands that let assertions block, for a person to review and to run."""
    claims = sorted(report.blocking, key=lambda one: (suites[one.table], one.assertion))
    return filled(
        __package__,
        "blocking.sh.txt",
        claims=claims,
        suites=suites,
        calls=sum(claim.calls_per_month for claim in claims),
        wanted=calls_per_month,
        quote=quote,
    )


def _next(files: _Files, report: LakeReport) -> str:
    """What was written, and what to type next."""
    return filled(
        __package__,
        "next.txt",
        wrote=files.texts,
        shown=listed(list(files.texts), most=_MOST_SHOWN),
        folder=files.folder.resolve(),
        day=report.usual_day or date.today(),
        blocking=BLOCKING if report.blocking else None,
        is_earlier=BLOCKING not in files.texts,
        dag_id=DAG_ID,
    )
