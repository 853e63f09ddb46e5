"""The parts of a job, one for each request: their plans, labels and decisions."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import date, datetime
from types import MappingProxyType
from typing import Any

from pyspark.sql import SparkSession

from dqx_airflow import values
from dqx_airflow.diagnostics.renderers import drawn_error
from dqx_airflow.dql.check import Checked
from dqx_airflow.dql.watches import Watched
from dqx_airflow.engine.measure import watched_columns
from dqx_airflow.engine.scan.fingerprints import fingerprint_of
from dqx_airflow.engine.sources.dataset import OpenDataset
from dqx_airflow.errors import RequestError
from dqx_airflow.metrics.drift import DRIFT_SUMMARY
from dqx_airflow.plan.dataset_needs import unchecked_promotion
from dqx_airflow.plan.evaluate import decide
from dqx_airflow.plan.model import Plan, PlannedAssertion
from dqx_airflow.plan.selection import checked_suite, plan_of, selected_clauses, shadow_plan
from dqx_airflow.plan.waivers import with_acceptance, with_waivers
from dqx_airflow.results.past_runs import counting_runs
from dqx_airflow.results.query import RunsWanted, StoredResults
from dqx_airflow.results.stored_labels import labels_of_runs, read_labels
from dqx_airflow.values import GateRequest, Outcome, Verdict
from dqx_airflow.values.report import Acceptance, Decisions


def plan_gate(request: GateRequest) -> Plan:
    """The plan of a request.

    :raises SourceError: the suite has errors, by itself or with these datasets.
    :raises RequestError: it selects nothing, or something that does not exist.
    """
    return plan_of(request, _valid_suite(request))


def _valid_suite(request: GateRequest) -> Checked:
    """The checked suite of a request.

    :raises SourceError: the suite has errors.
    """
    checked = checked_suite(request)
    if checked.errors or checked.suite is None:
        raise drawn_error(checked.errors, checked.sources)
    return checked


def _read_by(plan: Plan, request: GateRequest) -> GateRequest:
    """The request with only the datasets that its plan reads: a selection may exclude some."""
    if request.selection is None:
        return request
    return replace(
        request,
        datasets=tuple(ref for ref in request.datasets if ref.name in plan.reads),
        quarantine=tuple(pair for pair in request.quarantine if pair[0] in plan.reads),
        contract=request.contract and selected_clauses(request.contract, request.selection),
    )


_NO_DECISIONS = Decisions()
_NO_COLUMNS: Mapping[str, Iterable[Watched]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class JobPart:
    """One of the requests that are judged together.

    :param shadow: the plan of the shadow suite, or the reason why it has none; see `shadow_plan`.
    """

    request: GateRequest
    plan: Plan
    shadow: tuple[Plan | None, str | None]
    run_id: str
    decisions: Decisions = _NO_DECISIONS

    @property
    def plans(self) -> tuple[Plan, ...]:
        """The plan of the request, and the shadow plan if there is one. One scan serves both."""
        shadow = self.shadow[0]
        return (self.plan,) if shadow is None else (self.plan, shadow)

    @property
    def assertions(self) -> list[PlannedAssertion]:
        """The assertions of the plan, and of the shadow plan."""
        return [assertion for plan in self.plans for assertion in plan.assertions]

    def decide(self, verdicts: Sequence[Verdict]) -> Outcome:
        """The outcome of the gate with these verdicts."""
        requires = self.request.require_history or self.plan.require_history
        outcome = decide(verdicts, self.request.fail_on, require_history=requires)
        if outcome is not Outcome.WARNED:
            return outcome
        is_accepted = any(verdict.accepted_by is not None for verdict in verdicts)
        return Outcome.ACCEPTED if is_accepted else outcome

    def with_decisions(
        self, verdicts: Sequence[Verdict], opened: Mapping[str, OpenDataset], started: datetime
    ) -> tuple[tuple[Verdict, ...], Acceptance | None]:
        """The verdicts with the waivers and the acceptance that apply to them."""
        if self.decisions == _NO_DECISIONS:
            return tuple(verdicts), None
        return with_acceptance(
            with_waivers(verdicts, self.decisions.waivers, started),
            self.decisions,
            self.request.fail_on,
            lambda: self.fingerprints(opened, started),
            accept_required=self.request.accept_required,
        )

    def fingerprints(
        self, opened: Mapping[str, OpenDataset], started: datetime
    ) -> dict[str, str | None]:
        """Fingerprints of the judged rows by dataset; None if unknown."""
        on = self.plan.date
        return {
            ref.name: fingerprint_of(opened[ref.name], on, started) if ref.name in opened else None
            for ref in self.request.datasets
        }


def with_labels(part: JobPart, results: StoredResults) -> JobPart:
    """The part with the labels of the days from which usual limits are computed."""
    days = _earlier_days(part)
    if not days:
        return part
    labels = _labels_of(part, results, min(days), max(days))
    shadow, problem = part.shadow
    if shadow is not None:
        shadow = replace(shadow, labels=labels)
    return replace(part, plan=replace(part.plan, labels=labels), shadow=(shadow, problem))


def _earlier_days(part: JobPart) -> list[date]:
    """The days before the judged date whose metrics decide what is usual."""
    days = []
    for assertion in part.assertions:
        drifts = [one for one in assertion.requests if one.metric in DRIFT_SUMMARY.values()]
        for request in (*assertion.history, *drifts):
            if request.date is not None and request.date != part.plan.date:
                days.append(request.date)
    return days


def _labels_of(
    part: JobPart, results: StoredResults, since: date, until: date
) -> dict[str, dict[date, bool]]:
    """The labelled days of each dataset: true if any of its assertions had a real issue."""
    key = part.request.run_key
    datasets = {(one.check, one.name): one.datasets for one in part.assertions}
    labels: dict[str, dict[date, bool]] = {}
    stored = read_labels(results, gates=[key.gate], since=since, until=until)
    if not stored:
        return labels
    runs = counting_runs(results, RunsWanted([key.gate], since=since, until=until))
    # Of a day without a run, as of a pruned one, nothing else is known than its label.
    of_other_days = [label for label in stored if label.place not in runs]
    for label in (*of_other_days, *labels_of_runs(results, runs)):
        if label.map_index != key.map_index:
            continue
        for dataset in datasets.get((label.check, label.name), ()):
            of_dataset = labels.setdefault(dataset, {})
            had_issue = label.ground_truth or of_dataset.get(label.date, False)
            of_dataset[label.date] = had_issue
    return labels


def parts_of(
    requests: Sequence[GateRequest], columns: Mapping[str, Iterable[Watched]] = _NO_COLUMNS
) -> tuple[JobPart, ...]:
    """Plans each request, and returns one part for each.

    :param columns: as for `plan_of`.
    :raises SourceError: a suite has errors.
    :raises RequestError: a request selects something that does not exist, or two requests have
        different datasets with the same name.
    """
    suites: dict[tuple[Any, ...], Checked] = {}
    parts = []
    for request in requests:
        # A suite is read once for all dates.
        key = request.suite, request.imports
        if key not in suites:
            suites[key] = _valid_suite(request)
        plan = plan_of(request, suites[key], columns)
        shadow = shadow_plan(request, columns)
        parts.append(JobPart(_read_by(plan, request), plan, shadow, str(uuid.uuid4())))
    _require_same_datasets(parts)
    return tuple(parts)


def with_watched_columns(
    parts: Sequence[JobPart], requests: Sequence[GateRequest], spark: SparkSession
) -> tuple[JobPart, ...]:
    """Replans the parts with assertions about the columns of watched datasets, which are known only
    with a session."""
    watched = {name for part in parts for plan in part.plans for name in plan.watched}
    if not watched:
        return tuple(parts)
    refs = (ref for part in parts for ref in part.request.datasets if ref.name in watched)
    columns = watched_columns(spark, refs)
    return tuple(
        replace(part, request=known.request, plan=known.plan, shadow=known.shadow)
        for part, known in zip(parts, parts_of(requests, columns), strict=True)
    )


def require_assertions(parts: Sequence[JobPart]) -> None:
    """Refuses to promote a dataset that no assertion is about. What a selection leaves out may be
    promoted, as `promote_partial` says.

    :raises RequestError: there is one.
    """
    stated = [one for part in parts for one in part.plan.assertions if not one.is_implicit]
    whole = [part.request for part in parts if part.request.selection is None]
    for name, target in (pair for request in whole for pair in request.promote_to):
        if not any(name in one.datasets for one in stated):
            raise unchecked_promotion(name, target)


def _require_same_datasets(parts: Sequence[JobPart]) -> None:
    """Rejects two datasets with one name: only one of them would be read.

    :raises RequestError: there are such datasets.
    """
    by_name: dict[str, values.DatasetRef] = {}
    for ref in (ref for part in parts for ref in part.request.datasets):
        first = by_name.setdefault(ref.name, ref)
        if first != ref:
            keys = _differing_settings(first, ref)
            raise RequestError(
                f"two datasets are named '{ref.name}': one with {_shown(first, keys)}, one with "
                f"{_shown(ref, keys)}",
                "give them different names, or run the gates separately",
            )


def _differing_settings(ref: values.DatasetRef, other: values.DatasetRef) -> list[str]:
    """The settings of two datasets that differ, except for the reader options."""
    other_settings = asdict(other)
    return [
        key
        for key, value in asdict(ref).items()
        if key not in ("name", "options") and value != other_settings[key]
    ]


def _shown(ref: values.DatasetRef, keys: Iterable[str]) -> str:
    """Some settings of a dataset."""
    return ", ".join(f"{key} {getattr(ref, key)!r}" for key in keys) or "other options"
