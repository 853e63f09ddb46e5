"""`dql tune`: values of tunables, and profiles, that would have cost less on past days."""

from __future__ import annotations

import json
import re
from datetime import date
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dqx_airflow.cli.check import counted
from dqx_airflow.cli.command_group import TableFormatOption, TableOrJson
from dqx_airflow.cli.tuning import call
from dqx_airflow.diagnostics.diagnostic import listed
from dqx_airflow.diagnostics.renderers import json_text
from dqx_airflow.errors import RequestError
from dqx_airflow.values import day_of_instance

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dqx_airflow.results.past import PastDay
    from dqx_airflow.results.query import StoredResults
    from dqx_airflow.tuning.costs import WantedLabel
    from dqx_airflow.tuning.proposals import Proposal
    from dqx_airflow.tuning.suite_file import SuiteFile
    from dqx_airflow.tuning.tuner import Rules, Tuned

_MOST_NAMED = 5


class Days(str, Enum):
    EXCLUDE = "exclude"
    INCLUDE = "include"


def tune(
    suite: call.SuiteArgument,
    *,
    since: call.SinceOption = None,
    until: call.UntilOption = None,
    profile_days: Annotated[
        Days,
        typer.Option(
            "--profile-days", help="Include or exclude days on which a profile is active."
        ),
    ] = Days.EXCLUDE,
    max_move: Annotated[
        float,
        typer.Option(
            "--max-move",
            min=0.01,
            max=1,
            help="The largest change of a value, as a share of its range.",
        ),
    ] = 0.25,
    min_labels: Annotated[
        int,
        typer.Option("--min-labels", min=4, help="The minimum number of labels for a proposal."),
    ] = 4,
    holidays: Annotated[
        str | None,
        typer.Option(
            "--holidays",
            metavar="COUNTRY",
            help="Consider the public holidays of this country or region: US, DE-BY.",
        ),
    ] = None,
    propose: Annotated[
        bool,
        typer.Option(
            "--propose",
            help="Put the proposals into the review queue; values of assertions with "
            "@auto_approve are written at once.",
        ),
    ] = False,
    output_dir: Annotated[
        Path | None,
        typer.Option("--output-dir", help="Write each proposal and its charts to this folder."),
    ] = None,
    gate: call.GateOption = None,
    results: call.ResultsOption = None,
    output: TableFormatOption = TableOrJson.TABLE,
) -> None:
    """Propose thresholds that would have cost less on labelled days, with the evidence.

    By default, from the last 180 days. The suite is not changed: --propose queues the proposals
    for `dql review`, and only writes the values of assertions that are marked @auto_approve.
    """
    from dqx_airflow.tuning.tuner import ProfileDays, Rules

    first, last = call.first_and_last(since, until, default=180)
    stored, file = call.results_of(suite, results), call.suite_file(suite)
    rules = Rules(max_move, min_labels, ProfileDays(profile_days.value))
    days, tuned = _tuned(file, stored, first, last, rules, holidays, gate)
    proposals = [result.proposal for result in tuned if result.proposal is not None]
    applied = _propose(stored, file, proposals) if propose else []
    if output_dir is not None:
        _write(output_dir, proposals)
    if output is TableOrJson.JSON:
        typer.echo(json_text([_fields_of(result, applied) for result in tuned]))
        return
    _print(suite, tuned, days)
    for proposal in applied:
        typer.echo(f"applied, because of @auto_approve: {', '.join(map(str, proposal.changes))}")
    if propose:
        waiting = len(proposals) - len(applied)
        verb = "waits" if waiting == 1 else "wait"
        where = f": dql review {suite}" if waiting else ""
        typer.echo(f"{counted(waiting, 'proposal')} {verb} for review{where}")


def _tuned(
    file: SuiteFile,
    stored: StoredResults,
    first: date,
    last: date,
    rules: Rules,
    country: str | None,
    gate: str | None,
) -> tuple[Sequence[PastDay], Sequence[Tuned]]:
    """The past days of a suite, and the results of the tuner for them."""
    from dqx_airflow.results.past_days import one_gate, past_days, past_runs, runs_of_suite
    from dqx_airflow.tuning.calendars import holidays_of
    from dqx_airflow.tuning.tune import tune as tune_suite

    checked = file.read()
    name = checked.valid_suite.name.value
    days = past_days(stored, name, first, last, gate=gate)
    wanted = runs_of_suite(name, first, last, gate)
    call.require_days(days, stored, wanted)
    runs = past_runs(stored, wanted, ())
    holidays = holidays_of(country, first, last) if country else None
    tuned = tune_suite(file.text(checked), days, rules, holidays=holidays, gate=one_gate(runs))
    return days, tuned


def _propose(
    results: StoredResults, file: SuiteFile, proposals: Sequence[Proposal]
) -> list[Proposal]:
    """Queues the proposals, except for those that are already pending.

    Returns those that did not have to wait, since all their assertions are marked `@auto_approve`.
    """
    from dqx_airflow.tuning.review import apply_unless_reviewed
    from dqx_airflow.tuning.stored_proposals import ProposalStage, decide, read_proposals
    from dqx_airflow.tuning.stored_proposals import propose as put

    name = file.read().valid_suite.name.value
    stored = read_proposals(results, name, stage=ProposalStage.PENDING)
    waiting = {_change_of(pending.proposal): pending.proposal for pending in stored}
    applied = []
    for proposal in proposals:
        if _change_of(proposal) not in waiting:
            put(results, proposal)
        queued = waiting.get(_change_of(proposal), proposal)
        try:
            is_applied = apply_unless_reviewed(file, queued)
        except RequestError as error:  # such as a folder that a worker cannot write
            typer.echo(f"not applied in spite of @auto_approve: {error.in_one_line}", err=True)
            continue
        if is_applied:
            decide(results, queued, ProposalStage.APPLIED, queued.agent, "@auto_approve")
            applied.append(queued)
    return applied


def _change_of(proposal: Proposal) -> tuple[object, ...]:
    return proposal.changes, proposal.profile, proposal.form


def _write(folder: Path, proposals: Sequence[Proposal]) -> None:
    from dqx_airflow.tuning.drawings import cost_svg

    try:
        folder.mkdir(parents=True, exist_ok=True)
        for proposal in proposals:
            name = "-".join(change.param for change in proposal.changes) or _file_name(proposal)
            text = json.dumps(json.loads(proposal.to_json()), ensure_ascii=False, indent=1) + "\n"
            (folder / f"{name}.json").write_text(text, encoding="utf-8")
            for curve in proposal.evidence.get("curves", ()):
                file = folder / f"{curve['param']}.svg"
                file.write_text(cost_svg(curve), encoding="utf-8")
    except OSError as error:
        raise RequestError(f"cannot write to {folder}: {error.strerror}") from error


def _file_name(proposal: Proposal) -> str:
    match = re.search(r'profile "([^"]*)"', proposal.profile or "")
    name = match[1] if match else "profile"
    if proposal.form is not None:
        name = f"form of {proposal.form.assertion}"
    return re.sub(r"[^\w.]+", "-", name).strip("-")


def _fields_of(tuned: Tuned, applied: Sequence[Proposal]) -> dict[str, object]:
    proposal = tuned.proposal
    return {
        "about": list(tuned.about),
        "reason": tuned.reason,
        "labels": tuned.labels,
        "lacking": tuned.lacking,
        "wanted": [
            {
                "check": label.check,
                "assertion": label.name,
                "date": label.date.isoformat(),
                "map_index": label.map_index,
                "status": label.status.value,
            }
            for label in tuned.wanted
        ],
        "proposal": json.loads(proposal.to_json()) if proposal else None,
        "applied": proposal is not None and _change_of(proposal) in map(_change_of, applied),
    }


def _print(suite: Path, tuned: Sequence[Tuned], days: Sequence[PastDay]) -> None:
    from dqx_airflow.cli.reports import printable

    labels = sum(len(day.labels) for day in days)
    dates, instances = len({day.date for day in days}), {day.map_index for day in days} - {-1}
    period = f"{days[0].date} to {days[-1].date}"
    lines = [f"{dates} days with results, {period}; labels: {labels}"]
    if instances:
        lines[0] += f"; instances of a mapped gate: {len(instances)}"
    if not tuned:
        lines.append("the suite has no tunables: write `const NAME = VALUE tunable [LOW, HIGH]`")
    for result in tuned:
        lines.append("")
        if result.proposal is None:
            lines.append(f"{', '.join(result.about)}: no proposal: {result.reason}")
            lines += _label_next(result.wanted)
            continue
        proposal = result.proposal
        lines += map(str, proposal.changes)
        lines += (proposal.profile or "").rstrip().splitlines()
        if proposal.form is not None:
            lines += [f"another form of {proposal.form.assertion}:"]
            lines += [f"  {line}" for line in proposal.form.text.splitlines()]
        lines.append(f"  {result.reason}")
        held_out = proposal.evidence["held_out"]
        lines.append(
            f"  gain per fold: {held_out['gain']:.3g}; noise of the folds: {held_out['noise']:.3g}"
        )
        lines.append(f"  changed verdicts: {_days(proposal)}")
    wanted = [label for result in tuned for label in result.wanted]
    if wanted:
        instance = " --map-index NUMBER" if any(label.map_index >= 0 for label in wanted) else ""
        lines += [
            "",
            f"to label: dql label {suite} --date DATE --assertion NAME{instance} "
            "--false-positive, or --true-positive, --missed, --true-negative",
        ]
    typer.echo(printable("\n".join(lines), keep="\n"))


def _label_next(wanted: Sequence[WantedLabel]) -> list[str]:
    """A line for each assertion, with the verdicts whose labels would help most."""
    by_name: dict[str, list[str]] = {}
    for label in wanted:
        shown = f"{day_of_instance(label.date, label.map_index)} ({label.status.value})"
        by_name.setdefault(label.name, []).append(shown)
    return [f"  label next: {name} on {', '.join(shown)}" for name, shown in by_name.items()]


def _days(proposal: Proposal) -> str:
    changes = proposal.evidence["changes"]
    words = {None: "no label", True: "real issue", False: "false alarm"}
    shown = [f"{_day(change)} ({words[change['label']]})" for change in changes]
    return listed(shown, most=_MOST_NAMED)


def _day(change: dict[str, object]) -> str:
    instance = f"[{change['map_index']}]" if "map_index" in change else ""
    return f"{change['date']}{instance}"
