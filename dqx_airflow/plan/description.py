"""A plan in readable form: the passes over each dataset with their reasons, what they read, and the
assertions with their conditions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from types import MappingProxyType

from dqx_airflow.diagnostics.diagnostic import listed
from dqx_airflow.dql.printer import show
from dqx_airflow.plan import model
from dqx_airflow.plan.columns_read import columns_of, spark_sql_of
from dqx_airflow.plan.groupings import show_columns
from dqx_airflow.plan.passes import (
    MOST_ROWS_FUSED,
    DatasetReads,
    KnownDataset,
    Pass,
    PassKind,
    UnknownDataset,
    reads_of,
    shared_requests,
)
from dqx_airflow.plan.predicates import aggregates_of, lookups_of
from dqx_airflow.values import DatasetRef
from dqx_airflow.values.exact import exact_text

_INFIX = ("+", "-", "*", "/")


def title_of(scan_pass: Pass) -> str:
    """A pass in one line: `one pass over orders: 2024-11-28 to 2024-11-29 (2 days)`. `explain` and
    the log of a run show the same one."""
    if scan_pass.kind is PassKind.QUERY:
        return f"one query: {scan_pass.texts[0]}"
    begin = "if needed, one pass" if scan_pass.is_late else "one pass"
    grouping = scan_pass.grouping
    groups = "" if grouping is None else f" for each {show_columns(grouping.columns)}"
    days = _stretches(scan_pass.dates) or "all rows"
    return f"{begin} over {scan_pass.dataset}{groups}: {days}"


def columns_read(scan_pass: Pass) -> tuple[str, ...]:
    """The names of the columns that a pass reads, `all` for a comparison without a list of columns.

    Spark SQL of the suite may read others: see `has_sql`.
    """
    names: set[str] = set()
    for request in scan_pass.reading:
        names.update(columns_of(request))
    if scan_pass.grouping is not None:
        names.update(scan_pass.grouping.columns)
    return tuple(sorted(names))


def has_sql(scan_pass: Pass) -> bool:
    """True if Spark SQL that a user wrote decides which columns a pass reads."""
    return any(True for request in scan_pass.reading for _ in spark_sql_of(request))


@dataclass(frozen=True, slots=True)
class DescribedPass:
    """A pass as `dql explain` shows it, in text and as JSON.

    `computes` has the SQL of the aggregates, or the query. After files were appended, all files are
    read again for `unmerged` of these. `needed_before` names the assertions that need days before
    the date of the plan. With `has_sql`, Spark SQL of the suite may read other columns.
    """

    title: str
    kind: str
    reason: str
    is_late: bool
    dates: tuple[date, ...]
    groups: tuple[str, ...]
    needed_before: tuple[str, ...]
    unmerged: int
    columns: tuple[str, ...]
    has_sql: bool
    computes: tuple[str, ...]
    lookups: tuple[model.Lookup, ...]


@dataclass(frozen=True, slots=True)
class DescribedDataset:
    """The passes over a dataset as `dql explain` shows them; `answered_by_log` is the SQL of the
    aggregates that its transaction log has."""

    name: str
    is_size_known: bool
    answered_by_log: tuple[str, ...]
    passes: tuple[DescribedPass, ...]


def describe_datasets(
    plans: Sequence[model.Plan], datasets: Mapping[str, KnownDataset] = MappingProxyType({})
) -> tuple[DescribedDataset, ...]:
    """The passes over each dataset for the plans of some dates.

    :param datasets: the datasets with known facts, such as their size.
    """
    described = []
    for name in dict.fromkeys(request.dataset for plan in plans for request in plan.requests):
        known = datasets.get(name, UnknownDataset(DatasetRef(name)))
        answered: list[str] = []
        passes: list[DescribedPass] = []
        for reads in planned_reads(known, plans, datasets):
            answered += reads.answered
            passes += [_described(scan_pass, plans[0]) for scan_pass in reads.passes]
        is_size_known = not isinstance(known, UnknownDataset)
        described.append(DescribedDataset(name, is_size_known, tuple(answered), tuple(passes)))
    return tuple(described)


def planned_reads(
    dataset: KnownDataset,
    plans: Sequence[model.Plan],
    datasets: Mapping[str, KnownDataset] = MappingProxyType({}),
) -> Iterator[DatasetReads]:
    """The reads of a dataset: first for all dates together, then for each date alone."""
    date_columns = {name: known.ref.date_column for name, known in datasets.items()}
    shared = shared_requests(plans, date_columns)
    if shared:
        yield reads_of(shared, dataset, plans[0].date, datasets)
    for plan in plans:
        alone = [request for request in plan.requests if request not in set(shared)]
        yield reads_of(alone, dataset, plan.date, datasets)


LATE = "only if the minimum or maximum is outside a range: counts the rows that violate it"
"""The reason for a late pass."""


def _described(scan_pass: Pass, plan: model.Plan) -> DescribedPass:
    grouping = scan_pass.grouping
    return DescribedPass(
        title=title_of(scan_pass),
        kind=scan_pass.kind.name.lower(),
        reason=LATE if scan_pass.is_late else scan_pass.kind.value,
        is_late=scan_pass.is_late,
        dates=scan_pass.dates,
        groups=() if grouping is None else grouping.columns,
        needed_before=tuple(_needing_earlier_days(plan, scan_pass)),
        unmerged=scan_pass.unmerged,
        columns=columns_read(scan_pass),
        has_sql=has_sql(scan_pass),
        computes=scan_pass.texts,
        lookups=lookups_of(*scan_pass.reading),
    )


def _needing_earlier_days(plan: model.Plan, scan_pass: Pass) -> Iterator[str]:
    """The assertions that need values of days before the date of the plan from a pass."""
    earlier = {one.aggregate.sql for one in scan_pass.aggregates if _is_before(one.date, plan)}
    for assertion in plan.assertions:
        for request in (*assertion.requests, *assertion.history):
            if request.dataset != scan_pass.dataset or not _is_before(request.date, plan):
                continue
            if any(part.sql in earlier for part in aggregates_of(request)):
                yield assertion.name
                break


def _is_before(on: date | None, plan: model.Plan) -> bool:
    return on is not None and on < plan.date


def describe_plans(
    plans: Sequence[model.Plan], datasets: Mapping[str, KnownDataset] = MappingProxyType({})
) -> str:
    """The passes over the datasets for the plans of some dates, then the assertions in order.

    :param datasets: the datasets with known facts, such as their size.
    """
    together = model.joined(plans)
    dates = [plan.date for plan in plans]
    lines = [f"suite {together.suite}", f"date  {_stretches(dates)}", ""]
    for dataset in describe_datasets(plans, datasets):
        lines += _dataset_lines(dataset, plans[0].date)
    if together.watched:
        names = ", ".join(together.watched)
        lines.append(
            f"watched: {names}; which columns, and within which limits, follows from the data\n"
        )
    for plan in plans:
        lines.append("assertions" + (f" of {plan.date.isoformat()}" if len(plans) > 1 else ""))
        for assertion in plan.assertions:
            lines += _assertion(assertion)
    return "\n".join(lines)


def _dataset_lines(dataset: DescribedDataset, on: date) -> Iterator[str]:
    name = dataset.name
    if not dataset.is_size_known:
        yield f"{name}: its size is not known, a large dataset is assumed; {_FEW}"
    for sql in dataset.answered_by_log:
        yield f"no pass over {name}: its log has {sql}"
    for described in dataset.passes:
        yield described.title
        if described.kind != PassKind.QUERY.name.lower():
            yield from _pass_lines(described, on)
    yield ""


_FEW = f"with up to {MOST_ROWS_FUSED:,} rows, metrics share a pass"


def _pass_lines(described: DescribedPass, on: date) -> Iterator[str]:
    yield f"    why: {described.reason}"
    if described.needed_before:
        yield f"    days before {on.isoformat()}: for {listed(described.needed_before)}"
    yield f"    after an append: {_read_after_an_append(described)}"
    names = [*described.columns]
    if described.has_sql:
        names.append("those in the Spark SQL")
    yield f"    columns: {', '.join(names) or 'none'}"
    for text in described.computes:
        yield f"        {text}"
    for lookup in described.lookups:
        source = f"{lookup.reference}.{lookup.reference_column}"
        yield f"    with {lookup.column} looked up in {source}"


def _read_after_an_append(described: DescribedPass) -> str:
    """The reads after files were added to files that an earlier run has measured."""
    if described.unmerged == len(described.computes):
        return "all files"
    if described.unmerged:
        return f"only the new files, but all files for {described.unmerged} of these"
    return "only the new files"


def describe_request(request: model.MetricRequest) -> str:
    """`null_count(email) of orders on 2024-11-29`"""
    parts = [_argument(argument) for argument in request.arguments if argument is not None]
    if request.where is not None:
        parts.append(f"where {_argument(request.where)}")
    text = f"{request.metric}({', '.join(parts)}) of {request.dataset}"
    return text + (f" on {request.date.isoformat()}" if request.date else "")


def _argument(item: object) -> str:
    match item:
        case tuple():
            return f"[{', '.join(map(_argument, item))}]"
        case model.RowPredicate(node=node):
            return show(node)
        case _:
            return str(item)


def describe_term(term: model.Term) -> str:
    """The term with its requests written out."""
    match term:
        case model.ConstantTerm(value=value):
            return repr(value)
        case model.Now():
            return "now"
        case model.KnownDay(dataset=dataset):
            return f"the labels of {dataset}"
        case model.Measured(request=request):
            return describe_request(request)
        case model.Claimed(junctor=junctor, parts=parts):
            claims = (f"{describe_term(claim.term)} {claim.condition.text}" for claim in parts)
            return f"{junctor.value}({'; '.join(claims)})"
        case model.Applied(function=function, terms=(left, right)) if function in _INFIX:
            return f"({describe_term(left)} {function} {describe_term(right)})"
        case model.Applied(function=function, terms=terms):
            return f"{function}({', '.join(map(describe_term, terms))})"


def _stretches(days: Iterable[date]) -> str:
    """The days, with consecutive ones as `2024-11-01 to 2024-11-29 (29 days)`."""
    runs: list[list[date]] = []
    for day in days:
        if runs and runs[-1][-1] + timedelta(days=1) == day:
            runs[-1].append(day)
        else:
            runs.append([day])
    return ", ".join(
        f"{run[0]} to {run[-1]} ({len(run)} days)" if len(run) > 1 else str(run[0]) for run in runs
    )


def _assertion(assertion: model.PlannedAssertion) -> Iterator[str]:
    yield f"    {assertion.severity.value} {assertion.name}"
    yield f"       {describe_term(assertion.term)} {assertion.condition.text}"
    if assertion.disabled_by:
        yield f"       disabled by profile '{assertion.disabled_by}'"
    elif assertion.multiplier != 1.0:
        times = exact_text(assertion.multiplier)
        yield f"       times {times}: profiles {', '.join(assertion.profiles)}"
