"""The metric values behind a verdict, as stored, so that it can be judged again.

The key of a request is valid on other days too: the dataset, the metric, its arguments, and the
number of days before the date of the data.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date, timedelta
from fractions import Fraction
from hashlib import sha256
from typing import Any

from dqx_airflow.dql.printer import show
from dqx_airflow.metrics.drift import DRIFT_SUMMARY, LONGEST_REPEATED
from dqx_airflow.plan import model
from dqx_airflow.plan.masks import reveals
from dqx_airflow.values import DatasetRef, MetricValue
from dqx_airflow.values.exact import exact_text, parse_exact


@dataclass(frozen=True, slots=True)
class Measurements:
    """The results of requests on one day, by their keys.

    `failures` are the reasons for missing values, `details` explain values. `skipped` are the days
    before the date whose data was known to be missing. `reads` identify by dataset how it was read.
    `groups` are the values of grouped requests, `hidden` the keys of values that are not stored
    because they reveal masked columns.
    """

    values: Mapping[str, MetricValue] = field(default_factory=dict)
    failures: Mapping[str, str] = field(default_factory=dict)
    details: Mapping[str, str] = field(default_factory=dict)
    skipped: frozenset[int] = frozenset()
    reads: Mapping[str, str] = field(default_factory=dict)
    groups: Mapping[str, model.GroupValues] = field(default_factory=dict)
    hidden: frozenset[str] = frozenset()

    def __or__(self, other: Measurements) -> Measurements:
        """The union of both; for the same day they agree."""
        return Measurements(
            values={**self.values, **other.values},
            failures={**self.failures, **other.failures},
            details={**self.details, **other.details},
            skipped=self.skipped | other.skipped,
            reads={**self.reads, **other.reads},
            groups={**self.groups, **other.groups},
            hidden=self.hidden | other.hidden,
        )

    def gap(self, key: str) -> str:
        """The reason why a key, `null_count(email) of 'orders', 7 days before`, has no value."""
        dataset, metric, arguments, lag, *_ = json.loads(key)
        shown = ", ".join(one if isinstance(one, str) else json.dumps(one) for one in arguments)
        before = f", {lag} day{'' if lag == 1 else 's'} before" if lag else ""
        text = f"{metric}({shown}) of '{dataset}'{before}"
        if key in self.hidden:
            return f"{text} is hidden: it derives from masked columns"
        return f"no stored value of {text}"

    def scanned(self, keys: Mapping[model.MetricRequest, str]) -> model.Scanned:
        """The stored results of some requests, in the form that a scan returns."""
        requests = [(key, request) for request, key in keys.items()]
        return model.Scanned(
            model.renamed(self.values, requests),
            model.renamed(self.failures, requests),
            details=model.renamed(self.details, requests),
            groups=model.renamed(self.groups, requests),
        )


def request_key(request: model.MetricRequest, on: date) -> str:
    """The key of a request in a plan for a date."""
    lag = None if request.date is None else (on - request.date).days
    arguments = [*map(_argument, request.arguments)]
    if request.where is not None:
        arguments.append({"where": show(request.where.node)})
    parts: list[Any] = [request.dataset, request.metric, arguments, lag]
    if request.grouping is not None:
        parts.append([*request.grouping.columns])
    return json.dumps(parts, ensure_ascii=False, separators=(",", ":"), default=str)


def requests_behind(
    assertion: model.PlannedAssertion, *, with_history: bool = False
) -> tuple[model.MetricRequest, ...]:
    """The requests of an assertion, and the row counts that show whether other dates had data.

    :param with_history: also the requests for usual values, which are stored with their own days.
    """
    requests = (*assertion.requests, *(assertion.history if with_history else ()))
    counts = (
        model.row_count(request.dataset, request.date) for request in requests if request.date
    )
    return tuple(dict.fromkeys((*requests, *counts)))


def measurements_of(
    assertion: model.PlannedAssertion,
    plan: model.Plan,
    scanned: model.Scanned,
    skip_dates: Collection[date] = (),
) -> Measurements:
    """The results of the requests of an assertion, except for masked ones."""
    behind = {
        request: request_key(request, plan.date)
        for request in requests_behind(assertion)
        # Summaries of groups, and long ones of many days, would be larger than all other results.
        if request.metric not in DRIFT_SUMMARY.values()
        or (
            request.grouping is None
            and (
                request.date == plan.date
                or len(str(scanned.values.get(request))) <= LONGEST_REPEATED
            )
        )
    }
    keys = {request: key for request, key in behind.items() if not reveals(request, plan.masked)}
    dates = {request.date for request in keys}
    return Measurements(
        model.renamed(scanned.values, keys.items()),
        model.renamed(scanned.failures, keys.items()),
        model.renamed(scanned.details, keys.items()),
        frozenset((plan.date - day).days for day in skip_dates if day in dates),
        {name: plan.reads[name] for name in assertion.datasets if name in plan.reads},
        model.renamed(scanned.groups, keys.items()),
        frozenset(behind.values()) - frozenset(keys.values()),
    )


def measured_json(
    assertion: model.PlannedAssertion,
    plan: model.Plan,
    scanned: model.Scanned,
    skip_dates: Collection[date] = (),
) -> str | None:
    """The measurements of an assertion as JSON; None if there are none, as for a disabled one."""
    measured = measurements_of(assertion, plan, scanned, skip_dates)
    if not (measured.values or measured.failures or measured.groups or measured.hidden):
        return None
    parts = {
        "values": dict(measured.values),
        "failures": dict(measured.failures),
        "details": dict(measured.details),
        "skipped": sorted(measured.skipped),
        "reads": dict(measured.reads),
        "groups": {key: _groups_as_lists(groups) for key, groups in measured.groups.items()},
        "group_types": {key: groups.types for key, groups in measured.groups.items()},
        "hidden": sorted(measured.hidden),
    }
    kept = {name: part for name, part in parts.items() if part}
    separators = (",", ":")
    return json.dumps(
        kept, ensure_ascii=False, separators=separators, allow_nan=False, default=_plain
    )


def measurements_from(text: str | None) -> Measurements:
    """The measurements from their JSON; empty if it is None, or cannot be read."""
    try:
        parts = json.loads(text or "{}")
        return Measurements(
            {key: _exactly(value) for key, value in parts.get("values", {}).items()},
            parts.get("failures", {}),
            parts.get("details", {}),
            frozenset(parts.get("skipped", ())),
            parts.get("reads", {}),
            {
                key: _read_groups(rows, parts.get("group_types", {}).get(key, ()))
                for key, rows in parts.get("groups", {}).items()
            },
            frozenset(parts.get("hidden", ())),
        )
    except (ValueError, AttributeError, TypeError, KeyError):
        return Measurements()


def reading_of(ref: DatasetRef, on: date) -> str:
    """A short hash of how a dataset is read: location, filter, columns, options. A date in a path,
    or in a filter, does not matter."""
    place = (ref.path, ref.table, ref.query, ref.filter, *filter(None, (ref.conn_id,)))
    days = (ref.date_column, ref.date_format, ref.time_zone)
    parts = (*place, *days, ref.format, ref.schema, str(sorted(ref.options)))
    text = "\0".join(part or "" for part in parts)
    for day in (on, on - timedelta(days=1), on + timedelta(days=1)):
        for form in ("%Y-%m-%d", "%Y%m%d", "%Y/%m/%d"):
            text = text.replace(day.strftime(form), "{date}")
    text = re.sub(r"year=\d+/month=\d+/day=\d+", "{date}", text)
    return sha256(text.encode()).hexdigest()[:12]


def _argument(argument: Any) -> Any:
    match argument:
        case model.RowPredicate(node=node):
            return {"rows": show(node)}
        case tuple():
            return [*map(_argument, argument)]
        case Fraction():
            return exact_text(argument)
        case _:
            return argument


def _groups_as_lists(groups: model.GroupValues) -> list[list[Any]]:
    """For each group its values, then the value of the metric, then its details if known."""
    details = groups.details
    return [
        [group, value, details[group]] if group in details else [group, value]
        for group, value in groups.values.items()
    ]


def _read_groups(rows: Iterable[Any], types: Iterable[str]) -> model.GroupValues:
    groups = model.GroupValues(types=tuple(types))
    for key, value, *detail in rows:
        group = tuple(map(_exactly, key))
        groups.values[group] = _exactly(value)
        if detail:
            groups.details[group] = str(detail[0])
    return groups


def _plain(value: Any) -> Any:
    """A value that a JSON number cannot hold exactly, as an object.

    :raises TypeError: it is another one.
    """
    if not isinstance(value, Fraction):
        raise TypeError(f"no value of a metric: {value!r}")
    return {"=": exact_text(value)}


def _exactly(value: Any) -> MetricValue:
    if isinstance(value, dict):
        return parse_exact(value["="])
    if value is None or isinstance(value, int | float | str):
        return value
    raise TypeError(f"no value of a metric: {value!r}")


def keys_of(requests: Iterable[model.MetricRequest], on: date) -> dict[model.MetricRequest, str]:
    """The requests of a plan for a date, each with its key."""
    return {request: request_key(request, on) for request in requests}
