"""The rows at fault for failed assertions, as Spark SQL over a row and in words.

For a value that is too large, these are the rows that raise it; for one that is too small, the rows
that lower it, according to the entry of the metric. If no row is at fault (an average, a missing
date), there are none.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from fractions import Fraction
from functools import partial

from dqx_airflow.diagnostics.verdicts import format_value
from dqx_airflow.dql import nodes
from dqx_airflow.dql.printer import show
from dqx_airflow.metrics.builtin import METRICS
from dqx_airflow.metrics.builtin.counts import infinite_values
from dqx_airflow.metrics.metric import MetricUnit, Scan
from dqx_airflow.metrics.spark_values import metric_value, spark_number, timestamp_in
from dqx_airflow.metrics.sql import quote_literal
from dqx_airflow.metrics.types import Family, family_of
from dqx_airflow.plan import model
from dqx_airflow.plan.evaluate import Judge
from dqx_airflow.plan.masks import reveals_any
from dqx_airflow.plan.predicates import arguments_of, causes_of, lookups_of, predicate_sql, voids_of
from dqx_airflow.plan.row_types import RowTypes
from dqx_airflow.plan.row_values import Cause
from dqx_airflow.plan.schema_check import INFINITE, Schema, columns_of, is_about_rows
from dqx_airflow.plan.term_values import KnownValues
from dqx_airflow.values import MASK, MetricValue, Status, Verdict
from dqx_airflow.values.exact import Exact, exact_text


@dataclass(frozen=True, slots=True)
class FailingRows:
    """The rows of a dataset on the target date that violate an assertion, and why.

    `condition` is Spark SQL that is true for them. Rows that repeat each other share their values
    of the columns `repeated`, and may have a condition in addition. `columns` are those at fault,
    `causes` other possible reasons for the condition to be true.
    """

    request: model.MetricRequest
    reason: str
    columns: tuple[str, ...]
    condition: str | None = None
    repeated: tuple[str, ...] = ()
    causes: tuple[Cause, ...] = ()

    @property
    def is_of_two_datasets(self) -> bool:
        """True if the rows are those that differ between two datasets, which no condition over one
        row selects."""
        return self.request.definition.scan is Scan.MATCH


def faults_of(
    plan: model.Plan,
    verdicts: Sequence[Verdict],
    scanned: model.Scanned,
    schemas: Mapping[str, Schema],
    *,
    skip_dates: Collection[date] = (),
    now: datetime | None = None,
) -> tuple[tuple[FailingRows, ...], ...]:
    """The faults behind each verdict of a plan; none if it did not fail, or failed in groups.

    :param schemas: the schemas of the datasets that could be read.
    :param skip_dates: dates that count as missing, as in `evaluate`.
    :param now: when the gate runs, as in `evaluate`.
    """
    measured = KnownValues(scanned.values, now, plan, frozenset(skip_dates))
    finder = _FaultFinder(Judge(measured, scanned), schemas)
    return tuple(
        tuple(fault for part in finder.failing_parts(assertion) for fault in finder.faults(part))
        if verdict.status is Status.FAILED and assertion.groups is None
        else ()
        for assertion, verdict in zip(plan.assertions, verdicts, strict=True)
    )


@dataclass(frozen=True, slots=True)
class _Excess:
    """A violation of a condition: the value is beyond the `limit` of the comparison `op`."""

    is_above: bool
    op: str
    limit: MetricValue


@dataclass(frozen=True, slots=True)
class _FaultFinder:
    """Finds the rows at fault by the judge of a plan; `schemas` are the schemas of its datasets."""

    judge: Judge
    schemas: Mapping[str, Schema]

    def failing_parts(self, assertion: model.PlannedAssertion) -> Iterator[model.PlannedAssertion]:
        """The claims of a failed assertion that do not hold; for `if`, the one after `then`."""
        if not isinstance(assertion.term, model.Claimed):
            yield assertion
            return
        parts = assertion.term.parts
        for part in parts[1:] if assertion.term.junctor is nodes.Junctor.IF else parts:
            if self.judge.verdict(part).status is Status.FAILED:
                yield from self.failing_parts(part)

    def faults(self, assertion: model.PlannedAssertion) -> Iterator[FailingRows]:
        measured = self.judge.measured
        plan = self.judge.measured.plan
        scaled, bounds = measured.sides_of(assertion)
        voids = tuple(self.judge.void_requests(assertion.requests))
        yield from self._void_faults(voids)
        if voids or scaled is None or not bounds or None in bounds:
            return
        excess = _excess(assertion.condition, scaled, bounds)
        if excess is None:
            return
        is_limit_masked = any(
            reveals_any(bound, plan.masked) for bound in assertion.condition.bounds
        )
        limit = MASK if is_limit_masked else format_value(excess.limit)
        times = "" if assertion.multiplier == 1 else f" * {exact_text(assertion.multiplier)}"
        beyond = f"{times} {excess.op} {limit}"
        for part in _blamed(assertion.term, excess.is_above, is_whole=True):
            if is_about_rows(part.request) and part.is_above:
                yield FailingRows(part.request, "the rows differ", ())
                continue
            schema = self.schemas.get(part.request.dataset)
            if schema is not None and part.request.date in (None, plan.date):
                yield from _rows_behind(part, schema, excess, assertion.multiplier, beyond)

    def _void_faults(self, voids: Iterable[model.MetricRequest]) -> Iterator[FailingRows]:
        """The rows because of which metrics have no value."""
        with_nan = METRICS["nan_count"].raised_by
        assert with_nan is not None
        for request in voids:
            schema = self.schemas.get(request.dataset)
            if schema is None:
                continue
            types = RowTypes(schema.type_of)
            is_infinite = self.judge.scanned.details[request] == INFINITE
            behind = infinite_values if is_infinite else with_nan
            for column in voids_of(request, types):
                rows = behind((column,))
                condition = _chosen(request, rows.condition, types)
                yield FailingRows(request, rows.words, (column,), condition)


def _chosen(request: model.MetricRequest, condition: str | None, types: RowTypes) -> str | None:
    """The condition for the rows of a request."""
    if request.where is None:
        return condition
    where = predicate_sql(request.where.node, types)
    return where if condition is None else f"({condition}) AND {where}"


_BEYOND = {"<": ">=", "<=": ">", ">": "<=", ">=": "<"}


def _excess(
    condition: model.PlannedCondition, value: MetricValue, bounds: Sequence[MetricValue]
) -> _Excess | None:
    """The violated limit of a condition; None if a value is neither too large nor too small, for
    example with `!=`."""
    limit = bounds[0]
    match condition.kind:
        case "<" | "<=" | ">" | ">=" as op:
            return _Excess(op[0] == "<", _BEYOND[op], limit)
        case "==":
            is_above = _is_above(value, limit)
            tolerance = condition.tolerance or 0
            if limit is not None and not isinstance(limit, str):
                limit = metric_value(limit + tolerance if is_above else limit - tolerance)
            return _Excess(is_above, ">" if is_above else "<", limit)
        case "between" if _is_above(value, bounds[1]):
            return _Excess(True, ">", bounds[1])
        case "between":
            return _Excess(False, "<", limit)
    return None


def _is_above(value: MetricValue, limit: MetricValue) -> bool:
    return bool(value > limit)  # type: ignore[operator]  # they were compared already


@dataclass(frozen=True, slots=True)
class _RequestPart:
    """A request in a term. `is_whole`: its value may be the value of the term."""

    request: model.MetricRequest
    is_above: bool
    is_whole: bool


def _blamed(term: model.Term, is_above: bool, *, is_whole: bool) -> Iterator[_RequestPart]:
    """The requests whose values are at fault if the value of a term is too large (or too small)."""
    match term:
        case model.Measured(request=request):
            yield _RequestPart(request, is_above, is_whole)
        case model.Applied(function="min" | "max" | "coalesce", terms=terms):
            for inner in terms:
                yield from _blamed(inner, is_above, is_whole=is_whole)
        case model.Applied(function="+", terms=terms):
            for inner in terms:
                yield from _blamed(inner, is_above, is_whole=False)
        case model.Applied(function="-", terms=(first, second)):
            yield from _blamed(first, is_above, is_whole=False)
            yield from _blamed(second, not is_above, is_whole=False)
        case model.Applied(function="*" | "/", terms=(first, second)) if _is_positive(second):
            yield from _blamed(first, is_above, is_whole=False)
        case model.Applied(function="*", terms=(first, second)) if _is_positive(first):
            yield from _blamed(second, is_above, is_whole=False)


def _rows_behind(
    part: _RequestPart, schema: Schema, excess: _Excess, multiplier: Exact, beyond: str
) -> Iterator[FailingRows]:
    """The rows behind the value of a request; none if no single rows are.

    :param beyond: the factor and the limit in words, for rows that are compared with it.
    """
    request = part.request
    definition = request.definition
    behind = definition.raised_by if part.is_above else definition.lowered_by
    if behind is None:
        return
    types = RowTypes(schema.type_of)
    rows = behind(arguments_of(request, partial(predicate_sql, types=types), types))
    reason = behind(arguments_of(request, show)).words
    condition = rows.condition
    if rows.compared is not None:
        if not part.is_whole:
            return  # the share of this metric in the limit is unknown
        condition = _beyond(rows.compared, request, schema, excess, multiplier)
        reason = f"{reason}{beyond}"
    columns = dict.fromkeys(columns_of(request, schema))
    columns.update(dict.fromkeys(lookup.column for lookup in lookups_of(request)))
    causes = tuple(
        cause
        for argument in request.arguments
        if isinstance(argument, model.RowPredicate)
        for cause in causes_of(argument.node, types)
    )
    yield FailingRows(
        request, reason, tuple(columns), _chosen(request, condition, types), rows.repeated, causes
    )


def _is_positive(term: model.Term) -> bool:
    match term:
        case model.ConstantTerm(value=int() | float() | Fraction() as value):
            return value > 0
        case model.Measured(request=request):
            return request.definition.unit is MetricUnit.ROWS
        case _:
            return False


def _beyond(
    compared: str, request: model.MetricRequest, schema: Schema, excess: _Excess, multiplier: Exact
) -> str:
    """The rows in which `compared` is beyond the limit."""
    spark_type = schema.type_of(request.arguments[0])
    limit = excess.limit
    assert limit is not None
    if isinstance(limit, str):
        literal = quote_literal(limit)
        if family_of(spark_type) is Family.TIME:
            literal = f"try_cast({quote_literal(_timestamp(limit, spark_type))} AS {spark_type})"
        return f"{compared} {excess.op} {literal}"
    if family_of(spark_type) is Family.BOOLEAN:
        compared = f"CAST({compared} AS INT)"
    if multiplier != 1:
        compared = f"try_multiply(CAST({compared} AS DOUBLE), {float(multiplier)!r}D)"
    return f"{compared} {excess.op} {quote_literal(spark_number(limit))}"


def _timestamp(text: str, spark_type: str) -> str:
    """A limit as Spark reads it: a timestamp without a time zone is in UTC in any session."""
    timestamp = timestamp_in(text)
    if timestamp is None or spark_type == "date":
        return text
    return timestamp.isoformat(sep=" ") + ("+00:00" if spark_type == "timestamp" else "")
