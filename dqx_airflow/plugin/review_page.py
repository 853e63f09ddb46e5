"""Proposed changes of suites for review: what changes, and on what evidence.

Evidence is whatever an agent put into the store: what is not in the tuner's format is left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from dqx_airflow.plugin.render import plain
from dqx_airflow.results.proposals import ProposalStage, StoredProposal
from dqx_airflow.tuning.cost_chart import cost_svg

_MOST_DAYS, _MOST_CHARTS, _MOST_POINTS = 60, 6, 500
_MOST_DECIDED = 20
_LABELS = {True: "real issue", False: "false alarm"}


@dataclass(frozen=True, slots=True)
class SideChange:
    """A day on which an assertion would change sides."""

    date: str
    assertion: str
    before: str
    after: str
    label: str


@dataclass(frozen=True, slots=True)
class ProposalView:
    """A proposal. `facts` are named numbers before and after, on held-out days; `charts` drawings
    of cost against threshold. `more_days` is the number of days that change sides and are not
    displayed."""

    stored: StoredProposal
    can_decide: bool
    facts: tuple[tuple[str, str, str], ...] = ()
    held_out: str = ""
    days: tuple[SideChange, ...] = ()
    more_days: int = 0
    charts: tuple[Markup, ...] = ()


@dataclass(frozen=True, slots=True)
class ReviewPage:
    """The pending proposals, those that are approved and not applied yet, and the last finished
    ones, newest first."""

    pending: tuple[ProposalView, ...]
    approved: tuple[ProposalView, ...]
    done: tuple[ProposalView, ...]


def review_page(stored: Sequence[StoredProposal], editable: frozenset[str]) -> ReviewPage:
    """The page of these proposals, oldest first.

    :param editable: the ids of those that the user may decide.
    """
    views = [
        _view(stored_proposal, stored_proposal.proposal.id in editable)
        for stored_proposal in stored
    ]
    by_stage: dict[ProposalStage, list[ProposalView]] = {stage: [] for stage in ProposalStage}
    for view in views:
        by_stage[view.stored.stage].append(view)
    done = [*by_stage[ProposalStage.APPLIED], *by_stage[ProposalStage.REJECTED]]
    done.sort(key=lambda view: view.stored.at, reverse=True)
    return ReviewPage(
        tuple(by_stage[ProposalStage.PENDING]),
        tuple(by_stage[ProposalStage.APPROVED]),
        tuple(done[:_MOST_DECIDED]),
    )


def _view(stored: StoredProposal, can_decide: bool) -> ProposalView:
    evidence = _mapping(stored.proposal.evidence)
    held_out = _mapping(evidence.get("held_out"))
    before, after = _mapping(held_out.get("before")), _mapping(held_out.get("after"))
    named = (("false_alarms", "false alarms"), ("missed", "missed issues"), ("cost", "cost"))
    changes = [change for change in map(_change, _list(evidence.get("changes"))) if change]
    charts = [_chart(curve) for curve in _list(evidence.get("curves"))[:_MOST_CHARTS]]
    return ProposalView(
        stored,
        can_decide,
        facts=tuple(
            (title, str(before[name]), str(after[name]))
            for name, title in named
            if name in before and name in after
        ),
        held_out=_span(evidence, held_out),
        days=tuple(changes[:_MOST_DAYS]),
        more_days=max(len(changes) - _MOST_DAYS, 0),
        charts=tuple(chart for chart in charts if chart),
    )


def _span(evidence: Mapping[str, Any], held_out: Mapping[str, Any]) -> str:
    parts = []
    if "days" in held_out:
        instances = f" of {evidence['instances']} instances" if "instances" in evidence else ""
        parts.append(f"{held_out['days']} held-out days{instances}")
    if "labels" in evidence:
        parts.append(f"{evidence['labels']} labels")
    if "from" in evidence and "to" in evidence:
        parts.append(f"data from {evidence['from']} to {evidence['to']}")
    return ", ".join(parts)


def _change(value: object) -> SideChange | None:
    fields = _mapping(value)
    label = fields.get("label")
    try:
        date, assertion, before, after = (
            str(fields[name]) for name in ("date", "assertion", "before", "after")
        )
    except KeyError:
        return None
    if isinstance(index := fields.get("map_index"), int):
        date += f"[{index}]"
    label_text = _LABELS[label] if isinstance(label, bool) else ""
    return SideChange(date, assertion, before, after, label_text)


def _chart(curve: object) -> Markup | None:
    """The drawing of a curve, which escapes its input; None for invalid input."""
    fields = _mapping(curve)
    points = _list(fields.get("points"))
    if not 1 < len(points) <= _MOST_POINTS:
        return None
    try:
        numbers = [[float(value), float(cost)] for value, cost in points]
        drawn = {
            "param": plain(str(fields["param"])),
            "type": fields.get("type"),
            "points": numbers,
            "today": float(fields["today"]),
            "proposed": float(fields["proposed"]),
        }
        return Markup(cost_svg(drawn))  # noqa: S704 (numbers, and an escaped name)
    except (KeyError, TypeError, ValueError, OverflowError):
        return None


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _list(value: object) -> Sequence[Any]:
    return value if isinstance(value, list | tuple) else ()
