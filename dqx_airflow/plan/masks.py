"""Hides the values of masked columns in results, and describes the datasets of a run.

Whether a request reveals values is decided in `reveals` alone, for verdicts, for their stored
measurements, for stored states and for lineage.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import TypeAlias
from urllib.parse import unquote

from dqx_airflow import values
from dqx_airflow.dql.checks.read_only_sql import may_read
from dqx_airflow.metrics.drift import DRIFT
from dqx_airflow.metrics.metric import ArgumentKind, MetricUnit, Scan
from dqx_airflow.plan import model


def snapshot_of(
    ref: values.DatasetRef, plan: model.Plan, scanned: model.Scanned
) -> values.DatasetSnapshot:
    """The snapshot of a dataset on the date of the plan, without its version and fields, which only
    the engine that read it can add."""
    on = plan.date if ref.date_column else None
    rows = scanned.values.get(model.row_count(ref.name, on))
    return values.DatasetSnapshot(
        name=ref.name,
        location=ref.location,
        format=_format_of(ref),
        rows=rows if isinstance(rows, int) else None,
        metrics=tuple(
            values.MetricResult(request.metric, next(map(str, request.arguments), None), value)
            for request, value in scanned.values.items()
            if request.dataset == ref.name
            and request.date == on
            and request.where is None
            and _is_of_one_column(request)
            and not reveals(request, plan.masked)
        ),
        lineage_name=ref.lineage_name,
    )


def _format_of(ref: values.DatasetRef) -> str:
    if ref.table is not None and ref.conn_id is None:
        return "table"
    return "query" if ref.query else ref.format


def _is_of_one_column(request: model.MetricRequest) -> bool:
    metric = request.definition
    kinds = [argument.kind for argument in metric.arguments]
    return not metric.is_internal and kinds in ([], [ArgumentKind.COLUMN]) and not metric.parameters


Masked: TypeAlias = Mapping[str, tuple[str, ...]]

_CONDITION = re.compile(r"(.*?\[[A-Z][A-Z0-9_.]*\])")


def is_masked(column: str, masked: Iterable[str]) -> bool:
    """True for a masked column, a field of one, and a column with a masked field."""
    name = column.lower()
    return any(
        name == hidden or name.startswith(f"{hidden}.") or hidden.startswith(f"{name}.")
        for hidden in map(str.lower, masked)
    )


def reveals(request: model.MetricRequest, masked: Masked) -> bool:
    """True if the value of a request derives from values of a masked column.

    Counts, lengths and shares reveal nothing. Spark SQL of the user does unless it certainly
    reads no masked column, and so do groups by one.

    :param masked: the masked columns of each dataset.
    """
    if not masked:
        return False
    metric = request.definition
    masked_columns = masked.get(request.dataset, ())
    if request.grouping and any(
        is_masked(column, masked_columns) for column in request.grouping.columns
    ):
        return True
    for argument, given in zip(metric.arguments, request.arguments, strict=False):
        if argument.kind is ArgumentKind.SQL:
            # A query sees all datasets.
            seen = masked.values() if metric.scan is Scan.QUERY else (masked_columns,)
            columns = frozenset(column for of_dataset in seen for column in of_dataset)
            select = given if metric.scan is Scan.QUERY else f"SELECT {given}"
            return bool(columns) and may_read(select, columns)
    if not metric.unit.is_of_column:
        return False
    return is_masked(request.arguments[0], masked_columns)


def reveals_parts(request: model.MetricRequest, masked: Masked) -> bool:
    """True if the aggregates behind a value reveal values of a masked column: a number of gaps
    reveals none, the extremes between which they are counted do."""
    unit = request.definition.unit
    hidden = masked.get(request.dataset, ())
    is_of_counts = unit.is_part_of_rows or unit is MetricUnit.CHARACTERS
    names = () if is_of_counts else (one for one in request.arguments if isinstance(one, str))
    return reveals(request, masked) or any(is_masked(name, hidden) for name in names)


def reveals_any(term: model.Term, masked: Masked) -> bool:
    """True if a request of a term reveals values of a masked column: what drift is computed of
    contains values, its own value reveals none."""
    if isinstance(term, model.Applied):
        return term.function not in DRIFT and any(reveals_any(part, masked) for part in term.terms)
    return any(reveals(request, masked) for request in model.requests_of(term))


def reveals_comparison(assertion: model.PlannedAssertion, masked: Masked) -> bool:
    """True if a side of an assertion may reveal values of a masked column."""
    if not masked:
        return False
    sides = (assertion.term, *assertion.condition.bounds)
    return any(reveals_any(side, masked) for side in sides)


def without_quotes(scanned: model.Scanned, plan: model.Plan) -> model.Scanned:
    """The results of a scan, with reasons and details that quote no masked values."""
    masked = tuple(column for columns in plan.masked.values() for column in columns)
    if not masked:
        return scanned
    return replace(
        scanned,
        failures={key: without_values(text, masked) for key, text in scanned.failures.items()},
        details={key: without_folders(text, masked) for key, text in scanned.details.items()},
    )


def masked_verdict(
    verdict: values.Verdict, assertion: model.PlannedAssertion, plan: model.Plan
) -> values.Verdict:
    """The verdict without masked values. It was reached with the real values."""
    if not plan.masked:
        return verdict
    if reveals_any(assertion.term, plan.masked):
        value = _masked(verdict.value)
        scaled = _masked(verdict.scaled_value)
        # If there is a value, the reason repeats it.
        reason = None if verdict.status is values.Status.FAILED and value else verdict.reason
        verdict = replace(
            verdict, value=value, scaled_value=scaled, reason=reason, failed_values=()
        )
    if any(reveals_any(bound, plan.masked) for bound in assertion.condition.bounds):
        expected = f"{assertion.condition.text} ({values.MASK})"
        reason = (
            None if verdict.status is values.Status.FAILED and verdict.threshold else verdict.reason
        )
        masked = _masked(verdict.threshold)
        verdict = replace(verdict, threshold=masked, expected=expected, reason=reason)
    return verdict


def without_values(reason: str, masked: Collection[str]) -> str:
    """The reason of a failure. If columns are masked, only the error condition of Spark remains,
    without its quotes of the data."""
    if not masked:
        return reason
    reason = without_folders(reason, masked)
    condition = _CONDITION.match(reason)
    return f"{condition[1]} (the rest may quote masked columns)" if condition else reason


def without_folders(text: str, masked: Collection[str]) -> str:
    """A text without the values of masked columns in the names of folders. Such a value may contain
    everything but a slash, so that what follows it, up to the next slash, is hidden too."""
    if not masked:
        return text
    folder = re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, masked))})=", re.IGNORECASE)

    def shown(part: str) -> str:
        named = folder.search(unquote(part))
        return part if named is None else f"{named.string[: named.end()]}{values.MASK}"

    return "/".join(map(shown, text.split("/")))


def _masked(value: values.MetricValue) -> values.MetricValue:
    return None if value is None else values.MASK
