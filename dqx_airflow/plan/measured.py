"""The metric values behind a verdict, as stored, so that it can be judged again.

The key of a request is valid on other days too: the dataset, the metric, its arguments, and the
number of days before the date of the data. Anything else that is measured, or measured from another
source, has another key.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date, timedelta
from fractions import Fraction
from hashlib import sha256
from typing import Any, TypeVar

from dqx_airflow.dql.printer import show
from dqx_airflow.plan.masks import reveals
from dqx_airflow.plan.model import (
    GroupValues,
    MetricRequest,
    Plan,
    PlannedAssertion,
    RowPredicate,
    Scanned,
    row_count,
)
from dqx_airflow.values import DatasetRef, MetricValue
from dqx_airflow.values.exact import exact_text, parse_exact

Old = TypeVar("Old")
New = TypeVar("New")
Result = TypeVar("Result")


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
    groups: Mapping[str, GroupValues] = field(default_factory=dict)
    hidden: frozenset[str] = frozenset()

    def __or__(self, other: Measurements) -> Measurements:
        """The union of both; for the same day they agree."""
        return Measurements(
            {**self.values, **other.values},
            {**self.failures, **other.failures},
            {**self.details, **other.details},
            self.skipped | other.skipped,
            {**self.reads, **other.reads},
            {**self.groups, **other.groups},
            self.hidden | other.hidden,
        )

    def gap(self, key: str) -> str:
        """Why there is no value of a key."""
        if key in self.hidden:
            return f"{key_text(key)} is hidden: it derives from masked columns"
        return f"no stored value of {key_text(key)}"

    def scanned(self, keys: Mapping[MetricRequest, str]) -> Scanned:
        """The stored results of some requests, in the form that a scan returns."""
        requests = [(key, request) for request, key in keys.items()]
        return Scanned(
            _renamed(self.values, requests),
            _renamed(self.failures, requests),
            details=_renamed(self.details, requests),
            groups=_renamed(self.groups, requests),
        )


def request_key(request: MetricRequest, on: date) -> str:
    """The key of a request in a plan for a date."""
    lag = None if request.date is None else (on - request.date).days
    arguments = [*map(_argument, request.arguments)]
    if request.where is not None:
        arguments.append({"where": show(request.where.node)})
    parts: list[Any] = [request.dataset, request.metric, arguments, lag]
    if request.grouping is not None:
        parts.append([*request.grouping.columns])
    return json.dumps(parts, ensure_ascii=False, separators=(",", ":"), default=str)


def key_text(key: str) -> str:
    """A key in words: `null_count(email) of 'orders', 7 days before`."""
    dataset, metric, arguments, lag, *_ = json.loads(key)
    shown = (
        argument if isinstance(argument, str) else json.dumps(argument) for argument in arguments
    )
    before = f", {lag} day{'' if lag == 1 else 's'} before" if lag else ""
    return f"{metric}({', '.join(shown)}) of '{dataset}'{before}"


def requests_behind(assertion: PlannedAssertion) -> tuple[MetricRequest, ...]:
    """The requests of an assertion, and the row counts that tell whether other dates had data."""
    counts = (
        row_count(request.dataset, request.date) for request in assertion.requests if request.date
    )
    return tuple(dict.fromkeys((*assertion.requests, *counts)))


def measurements_of(
    assertion: PlannedAssertion, plan: Plan, scanned: Scanned, skip_dates: Collection[date] = ()
) -> Measurements:
    """The results of the requests of an assertion, except for masked ones."""
    behind = {request: request_key(request, plan.date) for request in requests_behind(assertion)}
    keys = {request: key for request, key in behind.items() if not reveals(request, plan.masked)}
    dates = {request.date for request in keys}
    return Measurements(
        _renamed(scanned.values, keys.items()),
        _renamed(scanned.failures, keys.items()),
        _renamed(scanned.details, keys.items()),
        frozenset((plan.date - day).days for day in skip_dates if day in dates),
        {name: plan.reads[name] for name in assertion.datasets if name in plan.reads},
        _renamed(scanned.groups, keys.items()),
        frozenset(behind.values()) - frozenset(keys.values()),
    )


def measured_json(
    assertion: PlannedAssertion, plan: Plan, scanned: Scanned, skip_dates: Collection[date] = ()
) -> str | None:
    """The measurements of an assertion as JSON; None if there are none, as for a disabled one."""
    measured = measurements_of(assertion, plan, scanned, skip_dates)
    if not (measured.values or measured.failures or measured.groups or measured.hidden):
        return None
    fields = {
        "values": dict(measured.values),
        "failures": dict(measured.failures),
        "details": dict(measured.details),
        "skipped": sorted(measured.skipped),
        "reads": dict(measured.reads),
        "groups": {key: _groups_as_lists(groups) for key, groups in measured.groups.items()},
        "group_types": {key: groups.types for key, groups in measured.groups.items()},
        "hidden": sorted(measured.hidden),
    }
    kept = {name: part for name, part in fields.items() if part}
    separators = (",", ":")
    return json.dumps(
        kept, ensure_ascii=False, separators=separators, allow_nan=False, default=_plain
    )


def measurements_from(text: str | None) -> Measurements:
    """The measurements from their JSON; empty if it is None, or cannot be read."""
    try:
        fields = json.loads(text or "{}")
        return Measurements(
            {key: _exactly(value) for key, value in fields.get("values", {}).items()},
            fields.get("failures", {}),
            fields.get("details", {}),
            frozenset(fields.get("skipped", ())),
            fields.get("reads", {}),
            {
                key: _read_groups(rows, fields.get("group_types", {}).get(key, ()))
                for key, rows in fields.get("groups", {}).items()
            },
            frozenset(fields.get("hidden", ())),
        )
    except (ValueError, AttributeError, TypeError, KeyError):
        return Measurements()


def reading_of(ref: DatasetRef, on: date) -> str:
    """A short hash of how a dataset is read: place, filter, columns, options. A date in a path, or
    in a filter, does not matter."""
    place = (ref.path, ref.table, ref.query, ref.filter, *filter(None, (ref.conn_id,)))
    days = (ref.date_column, ref.date_format, ref.time_zone)
    parts = (*place, *days, ref.format, ref.schema, str(sorted(ref.options)))
    text = "\0".join(part or "" for part in parts)
    for day in (on, on - timedelta(days=1), on + timedelta(days=1)):
        for form in ("%Y-%m-%d", "%Y%m%d", "%Y/%m/%d"):
            text = text.replace(day.strftime(form), "{date}")
    text = re.sub(r"year=\d+/month=\d+/day=\d+", "{date}", text)
    return sha256(text.encode()).hexdigest()[:12]


def _renamed(results: Mapping[Old, Result], names: Iterable[tuple[Old, New]]) -> dict[New, Result]:
    """The results of keys that have a new name, under these names, in their order."""
    return {name: results[old] for old, name in names if old in results}


def _argument(argument: Any) -> Any:
    match argument:
        case RowPredicate(node=node):
            return {"rows": show(node)}
        case tuple():
            return [*map(_argument, argument)]
        case Fraction():
            return exact_text(argument)
        case _:
            return argument


def _groups_as_lists(groups: GroupValues) -> list[list[Any]]:
    """For each group its values, then the value of the metric, then its details if known."""
    details = groups.details
    return [
        [group, value, details[group]] if group in details else [group, value]
        for group, value in groups.values.items()
    ]


def _read_groups(rows: Iterable[Any], types: Iterable[str]) -> GroupValues:
    groups = GroupValues(types=tuple(types))
    for key, value, *detail in rows:
        group = tuple(map(_exactly, key))
        groups.values[group] = _exactly(value)
        if detail:
            groups.details[group] = str(detail[0])
    return groups


def _plain(value: Any) -> Any:
    """A value that no number of JSON says exactly, as an object.

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


def keys_of(requests: Iterable[MetricRequest], on: date) -> dict[MetricRequest, str]:
    """The requests of a plan for a date, each with its key."""
    return {request: request_key(request, on) for request in requests}
