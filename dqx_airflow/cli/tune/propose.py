"""`dql tune propose`: proposes values and profiles that would have cost less on past days."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from dqx_airflow.cli import arguments, command
from dqx_airflow.cli.days import DaysOption, FromOption, ToOption, first_and_last, share
from dqx_airflow.cli.json_objects import tuned_object
from dqx_airflow.cli.stores import ResultsRootOption, results_of
from dqx_airflow.cli.suites import count_text
from dqx_airflow.diagnostics.diagnostic import listed
from dqx_airflow.diagnostics.machine_formats import json_text
from dqx_airflow.diagnostics.templates import filled
from dqx_airflow.errors import RequestError
from dqx_airflow.limits import MOST_LISTED

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dqx_airflow.dql.check import Checked
    from dqx_airflow.results.past_days import PastDay
    from dqx_airflow.results.query import StoredResults
    from dqx_airflow.tuning.proposals import Proposal
    from dqx_airflow.tuning.suite_file import SuiteFile
    from dqx_airflow.tuning.tuner import Rules, Tuned

_MOST_NAMED = 5


def propose(
    suite: arguments.SuiteArgument,
    *,
    since: FromOption = None,
    until: ToOption = None,
    last_days: DaysOption = None,
    profile_days: Literal["exclude", "include"] = "exclude",
    max_move: Annotated[
        float, typer.Option(parser=share, metavar="SHARE", show_default="25%")
    ] = 0.25,
    min_labels: Annotated[int, typer.Option(min=4, max=MOST_LISTED)] = 4,
    holidays: Annotated[str | None, typer.Option(metavar="COUNTRY")] = None,
    queue: bool = False,
    output_dir: Path | None = None,
    gate: arguments.GateOption = None,
    results_root: ResultsRootOption = None,
    format: command.TextFormatOption = "text",
) -> None:
    """Propose limits that would have raised fewer false alarms.

    The evidence is past days with labels, by default of the last 180 days. The suite is not
    changed: --queue queues the proposals for `dql tune review`, and only writes the values of
    assertions that are marked @auto_approve.

    :param profile_days: Include or exclude days on which a profile is active.
    :param max_move: The largest change of a value, as a share of its range.
    :param min_labels: The minimum number of labels for a proposal.
    :param holidays: Consider the public holidays of this country or region: US, DE-BY. Without
        it, the country on whose holidays alarms fall is tried.
    :param queue: Put the proposals into the review queue; values of assertions with @auto_approve
        are written at once.
    :param output_dir: Write each proposal and its charts to this folder.
    """
    from dqx_airflow.tuning.tuner import ProfileDays, Rules

    first, last = first_and_last(since, until, last_days, default=180)
    stored = results_of(results_root, suite.parent)
    file = arguments.suite_file(suite)
    rules = Rules(max_move, min_labels, ProfileDays(profile_days))
    days, tuned, contradicted = _tuned(file, stored, first, last, rules, holidays, gate)
    proposals = [result.proposal for result in tuned if result.proposal is not None]
    applied = _queue(stored, file, proposals) if queue else []
    if output_dir is not None:
        _write(output_dir, proposals)
    if format == "json":
        typer.echo(json_text([_fields_of(result, applied) for result in tuned]))
        return
    _print(suite, tuned, days)
    if contradicted:
        typer.echo(contradicted)
    for proposal in applied:
        typer.echo(f"applied, because of @auto_approve: {', '.join(map(str, proposal.changes))}")
    if queue:
        waiting = len(proposals) - len(applied)
        verb = "waits" if waiting == 1 else "wait"
        where = f": dql tune review {suite}" if waiting else ""
        typer.echo(f"{count_text(waiting, 'proposal')} {verb} for review{where}")


def _tuned(
    file: SuiteFile,
    stored: StoredResults,
    first: date,
    last: date,
    rules: Rules,
    country: str | None,
    gate: str | None,
) -> tuple[Sequence[PastDay], Sequence[Tuned], str]:
    """The past days of a suite, the results of the tuner for them, and whose labels contradict."""
    from dqx_airflow.cli.tune.labels import contradictions_text
    from dqx_airflow.results.past_days import issues_before, past_days
    from dqx_airflow.results.past_runs import one_gate, past_runs, runs_of_suite
    from dqx_airflow.results.stored_labels import contradictions
    from dqx_airflow.tuning.forms import tune

    checked = file.read()
    name = checked.valid_suite.name.value
    days = past_days(stored, name, first, last, gate=gate, as_labelled=True)
    wanted = runs_of_suite(name, first, last, gate)
    arguments.require_days(days, stored, wanted)
    runs = past_runs(stored, wanted, ())
    its_gate = one_gate(runs)
    tuned = tune(file.text(checked), days, rules, holidays=country, gate=its_gate)
    known = [*issues_before(stored, name, first, its_gate or ""), *days]
    if any(True in day.labels.values() for day in known):
        tuned = tuple(_with_lost_issues(one, file, checked, known, first) for one in tuned)
    opposite = contradictions(stored, [its_gate or ""], since=first, until=last)
    return days, tuned, contradictions_text(opposite)


def _with_lost_issues(
    result: Tuned, file: SuiteFile, checked: Checked, days: Sequence[PastDay], first: date
) -> Tuned:
    """The result of the tuner, whose proposal names the known issues that it would not find any
    more: of days before the period, of days outside its evidence, and those that it gives up.

    :param days: the days of the period, and those before it with known issues.
    """
    from dqx_airflow.tuning.backtest import Backtest
    from dqx_airflow.tuning.comparison import compare_judged
    from dqx_airflow.tuning.proposals import LOST_ISSUES

    proposal = result.proposal
    if proposal is None:
        return result
    today = Backtest(checked.valid_suite, days)
    proposed = today
    if proposal.profile is not None or proposal.form is not None:
        changed = file.changed(checked, proposal.profile, proposal.form)
        proposed = Backtest(changed.valid_suite, days)
    would_be = proposed.judge(proposal.values)
    lost = compare_judged(today, today.judge(), proposed, would_be).lost_issues(first)
    if not lost:
        return result
    named = listed([f"{name} on {on}" for name, on in lost], most=_MOST_NAMED)
    reason = f"{result.reason}; it would not find known issues any more: {named}"
    issues = [{"assertion": name, "date": on.isoformat()} for name, on in lost]
    proposal = replace(proposal, reason=reason, evidence={**proposal.evidence, LOST_ISSUES: issues})
    return replace(result, reason=reason, proposal=proposal)


def _queue(
    results: StoredResults, file: SuiteFile, proposals: Sequence[Proposal]
) -> list[Proposal]:
    """Queues the proposals, except for those that are already pending.

    Returns those that did not have to wait, since all their assertions are marked `@auto_approve`.
    """
    from dqx_airflow.tuning.proposals import ProposalStage, decide, read_proposals
    from dqx_airflow.tuning.proposals import propose as put
    from dqx_airflow.tuning.review import apply_unless_reviewed

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
            decide(results, [queued], ProposalStage.APPLIED, queued.agent, "@auto_approve")
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
                file = folder / f"{curve['tunable']}.svg"
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
        **tuned_object(tuned),
        "proposal": json.loads(proposal.to_json()) if proposal else None,
        "applied": proposal is not None and _change_of(proposal) in map(_change_of, applied),
    }


def _print(suite: Path, tuned: Sequence[Tuned], days: Sequence[PastDay]) -> None:
    from dqx_airflow.cli.reports import printable

    waiting = [result for result in tuned if result.proposal is None]
    reported = [result for result in waiting if result.alarms or not result.lacking]
    text = filled(
        __package__,
        "tuned.txt",
        suite=suite,
        tuned=tuned,
        days=days,
        dates=len({day.date for day in days}),
        labels=sum(len(day.labels) for day in days),
        instances=len({day.map_index for day in days} - {-1}),
        waiting=waiting,
        reported=reported,
        named=reported[:_MOST_NAMED] or waiting[:1],
        shown=changed_days,
    )
    typer.echo(printable(text, keep="\n"), nl=False)


def changed_days(changes: Sequence[Mapping[str, Any]]) -> str:
    """The days whose verdict changes, with their labels."""
    words = {None: "no label", True: "real issue", False: "false alarm"}
    shown = [f"{_day(change)} ({words[change['label']]})" for change in changes]
    return listed(shown, most=_MOST_NAMED)


def _day(change: Mapping[str, Any]) -> str:
    instance = f"[{change['map_index']}]" if "map_index" in change else ""
    return f"{change['date']}{instance}"
