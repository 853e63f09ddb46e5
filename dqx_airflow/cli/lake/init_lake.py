"""`dql init` over a folder of tables: what it writes, and in which order."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta, timezone
from pathlib import Path
from shlex import quote

import typer

from dqx_airflow.cli import command
from dqx_airflow.cli.lake.drafts import KeptDrafts
from dqx_airflow.cli.lake.report import LakeReport, lake_report, print_report
from dqx_airflow.datasets.dqx_toml import FILE_NAME, Settings, read_settings
from dqx_airflow.datasets.locations import is_inside
from dqx_airflow.diagnostics.diagnostic import listed
from dqx_airflow.diagnostics.templates import filled
from dqx_airflow.errors import DatasetError, RequestError
from dqx_airflow.tuning.lake.found_tables import tables_in
from dqx_airflow.tuning.lake.references import Reference, references_between
from dqx_airflow.tuning.lake.suite_draft import WHOLE, drafted_suite, referred_dataset
from dqx_airflow.tuning.lake.table_draft import TableDraft

DAG_ID = "lake_gates"
BLOCKING = "blocking.sh"
_SUITES = "suites"
_MOST_SHOWN = 4


@dataclass(slots=True)
class _Files:
    """The files to write, by their paths in the folder; the new text of each."""

    folder: Path
    texts: dict[str, str] = field(default_factory=dict)

    def add_new(self, name: str, text: str) -> None:
        """Adds a file, unless it exists: then it belongs to a person."""
        if not (self.folder / name).exists():
            self.texts[name] = text

    def write(self) -> None:
        """:raises RequestError: a file cannot be written."""
        for name, text in self.texts.items():
            path = self.folder / name
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise RequestError(f"cannot create {path.parent}: {error.strerror}") from error
            command.write_text(path, text)


def init_lake(
    folder: Path,
    lake: str,
    *,
    only: Sequence[str],
    exclude: Sequence[str],
    days: int,
    calls_per_month: float | None,
    format: command.TextOrJson,
) -> None:
    """Drafts a suite for each table of a folder, their settings and one DAG; prints the report.

    :raises RequestError: a file cannot be written, or `dqx.toml` has mistakes.
    :raises DatasetError: there are no tables, or none can be read.
    """
    now = datetime.now(timezone.utc)
    settings = _settings_in(folder)
    gates = {gate.name for gate in settings.gates}
    places = {name: ref.path for name, ref in settings.refs.items() if name in gates and ref.path}
    kept = KeptDrafts(folder)
    names = [*kept.names, *((path, name) for name, path in places.items())]
    found = tables_in(lake, only, exclude, names)
    if not found:
        raise DatasetError(f"no table in {lake} matches", "change --only and --exclude")
    drafts = kept.drafts(found, days, now)
    references = references_between(drafts)
    files = _Files(folder)
    _add_files(files, lake, drafts, references, settings, now.date())
    gone = []
    if not only and not exclude:
        there = {draft.name for draft in drafts}
        gone = [
            name for name, path in places.items() if is_inside(path, lake) and name not in there
        ]
    report = lake_report(drafts, references, kept.known, gone, calls_per_month)
    if report.blocking:
        assert calls_per_month is not None
        files.add_new(BLOCKING, _blocking(report, drafts, calls_per_month))
    files.write()
    if format == "json":
        typer.echo(command.json_if("json", report))
    else:
        print_report(report)
        typer.echo(_next(files, report), nl=False)
    if all(draft.problem for draft in drafts):
        raise DatasetError(f"no table in {lake} can be read", "see the report above")


def _settings_in(folder: Path) -> Settings:
    """The settings in a folder; the default ones without a file.

    :raises RequestError: they have mistakes.
    """
    path = folder / FILE_NAME
    if not path.exists():
        return Settings()
    settings = read_settings(path)
    for problem in settings.problems:
        if not problem.is_mild:
            raise RequestError(f"{path}:{problem.span.line}: {problem.message}", problem.help or "")
    return settings


def _add_files(
    files: _Files,
    lake: str,
    drafts: Sequence[TableDraft],
    references: Sequence[Reference],
    settings: Settings,
    today: date,
) -> None:
    """Adds the suites, the settings and the DAG that do not exist yet."""
    dated = frozenset(draft.name for draft in drafts if draft.date_column is not None)
    referred = {one.to_table for one in references}
    text = settings.text or filled(__package__, "head.toml.txt", lake=lake)
    is_changed = False
    for draft in drafts:
        if draft.problem:
            continue
        own = [one for one in references if one.table == draft.name]
        suite = _suite_of(draft)
        files.add_new(suite, drafted_suite(draft, own, dated, today))
        if draft.name not in settings.datasets:
            targets = {referred_dataset(one.to_table, dated) for one in own}
            is_referred = draft.name in dated and draft.name in referred
            text += filled(
                __package__,
                "table.toml.txt",
                name=draft.name,
                path=draft.table.path,
                settings=draft.settings,
                whole=f"{draft.name}{WHOLE}" if is_referred else None,
                suite=suite,
                datasets=[draft.name, *sorted(targets)],
                group=draft.table.group,
                may_be_empty=not settings.text or settings.defaults.allow_empty,
                json=json.dumps,
            )
            is_changed = True
    if is_changed:
        files.texts[FILE_NAME] = text
    start = today - timedelta(days=1)
    files.add_new(
        f"{DAG_ID}.py", filled(__package__, "dag.txt", lake=lake, start=start, dag_id=DAG_ID)
    )


def _suite_of(draft: TableDraft) -> str:
    """The path of the suite of a table, in the folder of the drafts."""
    return "/".join(filter(None, (_SUITES, draft.table.group, f"{draft.name}.dql")))


def _blocking(report: LakeReport, drafts: Sequence[TableDraft], calls_per_month: float) -> str:
    """The commands that let assertions block, for a person to review and to run."""
    suites = {draft.name: _suite_of(draft) for draft in drafts}
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
        dag_id=DAG_ID,
    )
