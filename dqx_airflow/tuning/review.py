"""The proposals that wait for a decision, and what a decision does; approved changes are written
into the file of the suite: proposals, and promotions."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from typing import Any, TypeVar

from dqx_airflow.contracts.demand import one_line
from dqx_airflow.diagnostics.diagnostic import did_you_mean
from dqx_airflow.dql import nodes
from dqx_airflow.dql.check import Checked
from dqx_airflow.dql.printer import show_assertion, show_watch
from dqx_airflow.dql.watches import watch_behind
from dqx_airflow.errors import RequestError
from dqx_airflow.results.query import StoredResults
from dqx_airflow.tuning import proposals as proposed
from dqx_airflow.tuning import suite_file, suite_history
from dqx_airflow.tuning.backtest import Backtest
from dqx_airflow.tuning.proposals import (
    LOST_ISSUES,
    Proposal,
    ProposalStage,
    ProposedForm,
    ProposedValue,
)
from dqx_airflow.tuning.protection import HUMAN, changed_since, judge_change, judge_values
from dqx_airflow.tuning.suite_file import ParamChange, SuiteFile, refuse, replacing
from dqx_airflow.tuning.suite_history import Cut, Entry, History, is_kept, new_id, timestamp_of
from dqx_airflow.tuning.tunables import tunables_of, units_of, with_values
from dqx_airflow.values import Span

T = TypeVar("T")

_LINE_END = re.compile(r"\r\n|\r|\n")


def require_allowed(file: SuiteFile, proposal: Proposal) -> None:
    """Returns if a proposal can be made, or applied, to the current file.

    :raises ChangeRefusedError: its values are outdated, or the agent must not make it.
    :raises SourceError: the file, or the file with the proposal, has errors.
    """
    checked = file.read()
    suite = checked.valid_suite
    _require_current(checked, proposal)
    profile, form = _missing(checked, proposal)
    after = suite
    if profile is not None or form is not None:
        after = file.changed(checked, profile, form).valid_suite
    after = with_values(after, proposal.values)
    refuse(judge_change(suite, after, proposal.agent, form=form).refusals, checked.sources)


def _require_current(checked: Checked, proposal: Proposal) -> None:
    """:raises ChangeRefusedError: the values of a proposal are outdated, or not allowed."""
    suite = checked.valid_suite
    current_values = {tunable.name: tunable.value for tunable in tunables_of(suite)}
    expected = {
        change.param: change.old
        for change in proposal.changes
        if current_values.get(change.param) != change.new
    }
    refuse(changed_since(suite, expected), checked.sources)
    refuse(judge_values(suite, proposal.values, proposal.agent).refusals, checked.sources)


@dataclass(frozen=True, slots=True)
class Approval:
    """A proposal that a person approved."""

    proposal: Proposal
    author: str
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class _Written:
    """A suite with approved proposals: its text, and the entries of its history."""

    text: str
    checked: Checked
    entries: tuple[Entry, ...] = ()


def apply_proposals(
    file: SuiteFile, approvals: Sequence[Approval], *, decided: Callable[[], None] | None = None
) -> None:
    """Writes approved proposals into the file, all or none, and the approvals and changes into its
    history.

    It may be repeated if it is unknown whether it was finished.

    :param decided: called once no one else can write; what it raises leaves the file as it is.
    :raises ChangeRefusedError: the values of a proposal are outdated, or its agent must not make
        it.
    :raises SourceError: the file, or the file with a proposal, has errors.
    :raises RequestError: the file or its history cannot be written.
    """
    planned = _with_approvals(file, file.read(), approvals)  # before a history is made
    with file.changing() as (checked, append):
        if checked.sources != planned[0].checked.sources:
            planned = _with_approvals(file, checked, approvals)
        if decided is not None:
            decided()
        logged = {
            entry.get("id") for entry in file.history.entries if entry.get("action") == "approve"
        }
        entries: list[Entry] = []
        for approval, written in zip(approvals, planned[1:], strict=True):
            if approval.proposal.id not in logged:
                entries += written.entries
        with replacing(file.path, planned[-1].text.encode("utf-8")):
            append(entries)


def _with_approvals(
    file: SuiteFile, checked: Checked, approvals: Sequence[Approval]
) -> list[_Written]:
    """The suite as it is, and then with each of the approved proposals and those before it."""
    planned = [_Written(file.content(checked), checked)]
    for approval in approvals:
        planned.append(_with_approval(file, planned[-1], approval))
    return planned


def _with_approval(file: SuiteFile, before: _Written, approval: Approval) -> _Written:
    """The suite with one more approved proposal."""
    proposal, suite = approval.proposal, before.checked.valid_suite
    _require_current(before.checked, proposal)
    profile, form = _missing(before.checked, proposal)
    text, after = file.edited(before.text, suite, proposal.values, profile, form)
    changes = judge_change(suite, after.valid_suite, proposal.agent, form=form)
    refuse(changes.refusals, before.checked.sources)
    unchanged = suite_file.with_edits(before.text, suite, proposal.values)
    patch = suite_file.patch_between(unchanged, text) if profile or form else ()
    facts = {"agent": proposal.agent, "id": proposal.id, "approved_by": approval.author}
    why = _given(reason=proposal.reason)
    by = {"agent": HUMAN, "author": approval.author, **_given(reason=approval.reason)}
    entries = [_entry("approve", id=proposal.id, **by)]
    tunables = tunables_of(suite)
    entries += [
        _entry("set_param", param=change.param, old=change.old, new=change.new, **facts) | why
        for change in proposal.changes
        if tunables[change.param].value != change.new  # a user may have written it before
    ]
    if proposal.profile is not None:
        entries.append(_entry("add_profile", profile=proposal.profile, **facts))
    if proposal.form is not None:
        entries.append(_entry("set_form", **asdict(proposal.form), **facts, **why))
    entries[-1] |= {"patch": patch} if patch else {}
    return _Written(text, after, tuple(entries))


def apply_unless_reviewed(file: SuiteFile, proposal: Proposal) -> bool:
    """Writes a proposal of values into the file if every assertion that it affects is marked
    `@auto_approve`, and it loses no known issue; returns whether it was written.

    :raises ChangeRefusedError: its values are outdated, or the agent must not make it.
    :raises SourceError: the file has errors.
    :raises RequestError: the file or its history cannot be written.
    """
    if proposal.profile is not None or proposal.form is not None:
        return False
    if proposal.evidence.get(LOST_ISSUES):
        return False
    suite = file.read().valid_suite
    if not judge_values(suite, proposal.values, proposal.agent).is_auto_approved:
        return False
    require_allowed(file, proposal)
    by, facts = proposal.agent, (("id", proposal.id), ("approved_by", "@auto_approve"))
    file.save(
        ParamChange(change.param, change.new, by, proposal.reason, facts=facts)
        for change in proposal.changes
    )
    return True


def enforce(
    file: SuiteFile,
    assertion: str,
    author: str,
    *,
    check: str | None = None,
    reason: str | None = None,
) -> tuple[str, str]:
    """Drops `@experimental` from an assertion: from now on it can block. Returns its check and
    name.

    :raises RequestError: the assertion does not exist, is not experimental, or is in another file
        or a macro.
    :raises ChangeRefusedError: the suite would have errors.
    """
    with file.changing() as (checked, append):
        watched = watch_behind(checked.valid_suite.checks, assertion)
        if watched is None:
            owner, node = _experimental(checked, assertion, check)
            edits = [
                (annotation.span, "")
                for annotation in node.annotations
                if annotation.name.text == "experimental"
            ]
        else:
            owner, edits = watched[0].name.value, [_stated(*watched[1:])]
        text = _without_empty_lines(file.path.read_bytes().decode("utf-8"), edits)
        file.accepted(text)
        by = {"agent": HUMAN, "author": author, **_given(reason=reason), "id": new_id()}
        entry = _entry("enforce", assertion=assertion, check=owner, **by)
        with replacing(file.path, text.encode("utf-8")):
            append([entry])
    return owner, assertion


def is_experimental(suite: nodes.Suite, assertion: str) -> bool | None:
    """Whether `enforce` can let an assertion block; False if it can block already, None if the
    suite does not have it."""
    named = [
        node
        for check in suite.checks
        for node in check.assertions
        if node.name is not None and node.name.value == assertion
    ]
    if named:
        return all(node.is_annotated("experimental") for node in named)
    return None if watch_behind(suite.checks, assertion) is None else True


@dataclass(frozen=True, slots=True)
class TakenOver:
    """The values taken over from a shadow, and the names of other assertions that they change."""

    values: tuple[ProposedValue, ...]
    also: tuple[str, ...]


def enforce_values(
    file: SuiteFile,
    shadow: SuiteFile,
    assertion: str,
    author: str,
    *,
    check: str | None = None,
    reason: str | None = None,
) -> TakenOver:
    """Sets the tunables of an assertion to their values in a shadow.

    :raises RequestError: the assertion does not exist or has no tunables, or the shadow has the
        same values.
    :raises ChangeRefusedError: a value is not allowed.
    :raises SourceError: one of the suites has errors.
    """
    suite, shadow_suite = file.read().valid_suite, shadow.read().valid_suite
    all_assertions = Backtest(suite, ()).assertions
    hint = did_you_mean(assertion, [candidate.name for candidate in all_assertions]) or ""
    named = [(one.check, one) for one in all_assertions if one.name == assertion]
    _, chosen = _only(named, assertion, check, hint)
    names = sorted(chosen.tunables)
    own_tunables, shadow_tunables = tunables_of(suite), tunables_of(shadow_suite)
    units = units_of(suite)
    taken = tuple(
        ProposedValue(name, own_tunables[name].value, shadow_tunables[name].value, units[name])
        for name in names
        if name in shadow_tunables and own_tunables[name].value != shadow_tunables[name].value
    )
    if not taken:
        listed = ", ".join(names) or "none"
        raise RequestError(
            f"{shadow.name} has no different values for '{assertion}'",
            f"tunables of the assertion are: {listed}; change anything else by hand",
        )
    facts = (("assertion", assertion), ("author", author), ("shadow", shadow.name))
    file.save(
        ParamChange(
            value.param,
            value.new,
            reason=reason,
            action="enforce",
            facts=(*facts, ("id", new_id())),
        )
        for value in taken
    )
    changed = {value.param for value in taken}
    also = (
        candidate.name
        for candidate in all_assertions
        if candidate is not chosen and candidate.tunables & changed
    )
    return TakenOver(taken, tuple(also))


def _missing(checked: Checked, proposal: Proposal) -> tuple[str | None, ProposedForm | None]:
    """The proposed profile and form; None for each that the suite already contains."""
    suite, profile, form = checked.valid_suite, proposal.profile, proposal.form
    text = checked.sources[suite.span.file]
    profile_text = one_line(profile or "")
    if profile_text and profile_text in one_line(text):
        profile = None
    node = suite_file.assertion_of(suite, form.check, form.assertion) if form else None
    if form and node and suite_file.claim_text(text, node) == one_line(form.claim):
        form = None
    return profile, form


_ADDED = {"add_profile": "profile", "set_form": "claim", "undo": "name"}
"""The actions that change more than values, with the key of the addition in their entries."""


@dataclass(frozen=True, slots=True)
class Undone:
    """A suite without the edits after an entry of its history.

    `steps` are the undone edits by the number of their entry, each with its description.
    """

    text: str
    suite: nodes.Suite
    steps: Mapping[int, tuple[str, suite_file.Patch]]
    problems: tuple[str, ...]


def undone(file: SuiteFile, cut: Cut) -> Undone:
    """The suite before the later forms and profiles, with its current values: the latest are taken
    away first, each from the text with the values that it had then.

    :raises SourceError: the file has errors.
    """
    source, text = file.text(file.read()), file.path.read_bytes().decode("utf-8")
    suite, steps, problems = source.suite, dict[int, tuple[str, suite_file.Patch]](), list[str]()
    for number, entry in _added_since(file.history, cut):
        then = _with_values(text, suite, suite_history.values_at(file.history.changes(), number))
        earlier = suite_file.without_patch(then, entry.get("patch") or ())
        name = _name_of(entry)
        if earlier is not None:
            current = {tunable.name: tunable.value for tunable in tunables_of(suite)}
            earlier = _with_values(earlier, source.read(earlier), current)
            steps[number] = name, suite_file.patch_between(text, earlier)
            text, suite = earlier, source.read(earlier)
        elif one_line(str(entry.get(_ADDED[entry["action"]]))) in one_line(text):
            by_hand = "delete it from the suite"
            if entry["action"] == "set_form":
                by_hand = f"write `{entry.get('before')}` for `{entry.get('claim')}` again"
            problems.append(f"{name} (entry {number}) is not undone, the suite differs: {by_hand}")
    return Undone(text, suite, steps, tuple(problems))


def undo(file: SuiteFile, cut: Cut, **facts: Any) -> None:
    """Writes the suite without the forms and profiles that were added after a cut, and `facts`
    into its history.

    :raises SourceError: the file has errors.
    :raises RequestError: the file or its history cannot be written.
    """
    with file.history.locked() as append:
        after = undone(file, cut)
        entries = [
            _entry("undo", undone=number, name=name, agent=HUMAN, **facts, patch=patch)
            for number, (name, patch) in after.steps.items()
        ]
        with replacing(file.path, after.text.encode("utf-8")):
            append(entries)
    file.history.flush()


def _added_since(history: History, cut: Cut) -> list[tuple[int, Entry]]:
    """The entries after a cut that change more than values, the latest first, without pairs of an
    entry and its undoing."""
    later = {
        number: entry
        for number, entry in history.read()[0]
        if entry.get("action") in _ADDED and not is_kept(number, timestamp_of(entry.get("ts")), cut)
    }
    for number in sorted(later, reverse=True):
        undone_entry = later.get(number, {}).get("undone")
        if undone_entry in later:
            del later[undone_entry], later[number]
    return sorted(later.items(), reverse=True)


def _with_values(text: str, suite: nodes.Suite, values: Mapping[str, float]) -> str:
    own = {tunable.name for tunable in tunables_of(suite)}
    return suite_file.with_edits(text, suite, {name: values[name] for name in own & values.keys()})


def _name_of(entry: Entry) -> str:
    match entry["action"]:
        case "set_form":
            return f"the form of {entry.get('assertion')}"
        case "undo":
            return f"the rollback of {entry.get('name')}"
    return str(entry.get("profile")).partition("{")[0].strip()


def _experimental(
    checked: Checked, assertion: str, check: str | None
) -> tuple[str, nodes.Assertion]:
    """The check and the node of an experimental assertion in the suite's own text.

    :raises RequestError: there is none with that name.
    """
    suite = checked.valid_suite
    nodes_by_name = [
        (node.name.value, owner.name.value, node)
        for owner in suite.checks
        for node in owner.assertions
        if node.name is not None
    ]
    marked = [name for name, _, node in nodes_by_name if node.is_annotated("experimental")]
    hint = did_you_mean(assertion, marked) or f"experimental are: {', '.join(marked) or 'none'}"
    named = [(owner, node) for name, owner, node in nodes_by_name if name == assertion]
    owner, node = _only(named, assertion, check, hint)
    if not node.is_annotated("experimental"):
        raise RequestError(f"'{assertion}' is not @experimental: it can already block")
    if node.uses or node.span.file != suite.span.file:
        where = f"{node.span.file}:{node.span.line}"
        raise RequestError(
            f"'{assertion}' is generated by a macro, which may generate others too: {where}",
            "edit it there",
        )
    return owner, node


def _only(
    named: Sequence[tuple[str, T]], assertion: str, check: str | None, hint: str
) -> tuple[str, T]:
    """The assertion with a name, by its check.

    :raises RequestError: there is none, or several checks have one.
    """
    matching = [pair for pair in named if check in (None, pair[0])]
    if not matching:
        raise RequestError(f"the suite has no assertion named '{assertion}'", hint)
    if len(matching) > 1:
        checks = ", ".join(owner for owner, _ in matching)
        raise RequestError(f"several checks have '{assertion}': {checks}", "add --in-check NAME")
    return matching[0]


def _stated(watch: nodes.Watch, claim: nodes.Assertion) -> tuple[Span, str]:
    """The edit that writes a claim of a watch above the watch."""
    indent = " " * (watch.span.column - 1)
    lines = [*show_assertion(replace(claim, annotations=())), "", show_watch(watch)]
    return watch.span, "\n".join(lines).replace("\n", f"\n{indent}").replace(f"{indent}\n", "\n")


def _without_empty_lines(text: str, edits: list[tuple[Span, str]]) -> str:
    """The text without some ranges, and without the lines that become empty."""
    touched = {span.line for span, _ in edits}
    changed = suite_file.replaced(text, edits)
    starts = [0, *(match.end() for match in _LINE_END.finditer(changed)), len(changed)]
    lines = [changed[start:end] for start, end in pairwise(starts)]
    return "".join(
        line for number, line in enumerate(lines, 1) if number not in touched or line.strip()
    )


def _entry(action: str, **facts: Any) -> Entry:
    return {"action": action, **facts}


def _given(**facts: Any) -> Entry:
    return {name: value for name, value in facts.items() if value is not None}


class ReviewQueue:
    """The proposals for a suite, of the results store and of the history."""

    def __init__(self, file: SuiteFile, name: str, results: StoredResults | None) -> None:
        self.file, self.name, self.results = file, name, results

    def all_pending(self) -> list[Proposal]:
        stored = [pending.proposal for pending in self._stored(ProposalStage.PENDING)]
        entries = (
            proposed.proposal_of_entry(self.name, entry)
            for entry in suite_file.pending_in(self.file.history)
        )
        known = {proposal.id for proposal in stored}
        return [
            *stored,
            *(proposal for proposal in entries if proposal and proposal.id not in known),
        ]

    def chosen(self, proposal_ids: Sequence[str]) -> list[Proposal]:
        """The pending proposals with these ids, each once.

        :raises RequestError: one of them is not pending.
        """
        waiting = self.all_pending()
        chosen = (self._pending(proposal_id, waiting) for proposal_id in proposal_ids)
        return [*{proposal.id: proposal for proposal in chosen}.values()]

    def _pending(self, proposal_id: str, waiting: Sequence[Proposal]) -> Proposal:
        """:raises RequestError: no proposal with that id is pending."""
        proposals = [proposal for proposal in waiting if proposal.id.startswith(proposal_id)]
        if len(proposals) == 1:
            return proposals[0]
        if self.results is not None and not proposals:
            for stored in proposed.read_proposals(self.results, self.name):
                if stored.proposal.id.startswith(proposal_id):
                    by = f"the proposal {stored.proposal.id} is {stored.stage.value}"
                    raise RequestError(
                        f"{by} already, by {stored.agent}",
                        "`dql tune review` lists those that are pending",
                    )
        problem = "several pending proposals have" if proposals else "no pending proposal has"
        listed = ", ".join(proposal.id for proposal in waiting) or "none"
        raise RequestError(f"{problem} the id {proposal_id}", f"pending: {listed}")

    def approve(self, proposals: Sequence[Proposal], author: str, reason: str | None) -> None:
        """Approves proposals and writes them, all or none.

        :raises ChangeRefusedError: the values of one are outdated, or its agent must not make it.
        :raises RequestError: another person decided meanwhile. The first one counts.
        """

        def decided() -> None:
            self.chosen([proposal.id for proposal in proposals])
            self._decide(proposals, ProposalStage.APPROVED, author, reason)

        approvals = [Approval(proposal, author, reason) for proposal in proposals]
        apply_proposals(self.file, approvals, decided=decided)
        self._decide(proposals, ProposalStage.APPLIED, author, None)

    def reject(self, proposal: Proposal, author: str, reason: str) -> None:
        """:raises RequestError: another person decided meanwhile. The first one counts."""
        by = {"agent": HUMAN, "author": author, "reason": reason}
        with self.file.history.locked() as append:
            self.chosen([proposal.id])
            self._decide([proposal], ProposalStage.REJECTED, author, reason)
            append([_entry("reject", id=proposal.id, **by)])
        self.file.history.flush()

    def apply_approved(self) -> list[Proposal]:
        """Applies the approved proposals, one after the other; returns them.

        :raises RequestError: no results are named.
        """
        if self.results is None:
            raise RequestError(
                "which results?",
                "add --results-root ROOT, or set the variable DQX_RESULTS_ROOT: it contains the "
                "proposals that were approved elsewhere",
            )
        applied = []
        for stored in self._stored(ProposalStage.APPROVED):
            apply_proposals(self.file, [Approval(stored.proposal, stored.agent, stored.reason)])
            self._decide([stored.proposal], ProposalStage.APPLIED, stored.agent, None)
            applied.append(stored.proposal)
        return applied

    def _stored(self, stage: ProposalStage) -> list[proposed.StoredProposal]:
        if self.results is None:
            return []
        return [*proposed.read_proposals(self.results, self.name, stage=stage)]

    def _decide(
        self, decided: Sequence[Proposal], stage: ProposalStage, author: str, reason: str | None
    ) -> None:
        """Records a decision on proposals in the store; the history records its own."""
        if self.results is None:
            return
        known = {stored.proposal.id for stored in proposed.read_proposals(self.results)}
        stored = [proposal for proposal in decided if proposal.id in known]
        proposed.decide(self.results, stored, stage, author, reason)
