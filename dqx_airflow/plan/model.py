"""The plan: assertions over metric requests, and the requests themselves."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from itertools import chain
from typing import Any, TypeAlias, TypeVar

from dqx_airflow.dql import nodes
from dqx_airflow.dql.checks.read_only_sql import datasets_of_query
from dqx_airflow.limits import DEFAULT_CLOCK_SKEW_HOURS, DEFAULT_MOST_GROUPS
from dqx_airflow.metrics.builtin import METRICS
from dqx_airflow.metrics.builtin.values import columns_of
from dqx_airflow.metrics.calls import USUAL_LIMITS, USUAL_OPERANDS
from dqx_airflow.metrics.metric import Argument, ArgumentKind, Arguments, Metric, Scan
from dqx_airflow.values import MetricValue, Origin, PartialRun, Severity, Span
from dqx_airflow.values.exact import Exact, Number


@dataclass(frozen=True, slots=True)
class RowPredicate:
    """A row predicate as an argument of a request, with literals instead of constants."""

    node: nodes.Expression


Group: TypeAlias = tuple[MetricValue, ...]
"""The values of the grouping columns. A boolean is `"true"` or `"false"`."""


@dataclass(frozen=True, slots=True)
class Grouping:
    """The columns by which the rows of a dataset are grouped.

    Rows that do not satisfy the predicate `only` belong to no group of interest. More groups than
    `most` on one date are an error.
    """

    columns: tuple[str, ...]
    only: RowPredicate | None = None
    most: int = DEFAULT_MOST_GROUPS


@dataclass(frozen=True, slots=True)
class MetricRequest:
    """A metric of a dataset on a date. Equal requests are computed once.

    `date` is None for a dataset without a date column, whose rows belong to every date, and for
    properties of the schema. With `where` it is about the rows for which that is true, with a
    `grouping` it is computed for each group of them.
    """

    dataset: str
    metric: str
    arguments: Arguments
    date: date | None
    where: RowPredicate | None = None
    grouping: Grouping | None = None

    @property
    def definition(self) -> Metric:
        return METRICS[self.metric]

    @property
    def reference(self) -> str | None:
        """The dataset that this one is compared with."""
        if self.definition.scan is not Scan.MATCH:
            return None
        wanted = ArgumentKind.DATASET
        return str(next(value for argument, value in self.given if argument.kind is wanted))

    @property
    def datasets(self) -> tuple[str, ...]:
        """The measured datasets, its own first; of a query, those that its SQL reads."""
        if self.definition.scan is Scan.QUERY:
            read = datasets_of_query(str(self.arguments[0]))
            return tuple(sorted(read, key=lambda name: name != self.dataset)) or (self.dataset,)
        reference = self.reference
        return (self.dataset,) if reference is None else (self.dataset, reference)

    @property
    def given(self) -> Iterator[tuple[Argument, Any]]:
        """The arguments of the metric, by parameter, parameters with names last."""
        metric = self.definition
        return zip((*metric.arguments, *metric.parameters), self.arguments, strict=True)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that its arguments name, as written."""
        kinds = (ArgumentKind.COLUMN, ArgumentKind.COLUMNS)
        return tuple(
            name
            for argument, value in self.given
            if value and argument.kind in kinds
            for name in columns_of(value)
        )

    @property
    def predicates(self) -> tuple[RowPredicate, ...]:
        """Its row predicates: those among its arguments, and its filter."""
        arguments = (*self.arguments, self.where)
        return tuple(argument for argument in arguments if isinstance(argument, RowPredicate))


@dataclass(frozen=True, slots=True)
class Lookup:
    """Whether the value of `column` is among the values of `reference_column` of another dataset.

    A scan joins the distinct reference values, and names the result `alias`: NULL if the value is
    missing there.
    """

    dataset: str
    column: str
    reference: str
    reference_column: str

    @property
    def alias(self) -> str:
        # Spark's column names are case-insensitive.
        text = f"{self.column} in {self.reference}.{self.reference_column}"
        return "".join(f"^{letter}" if letter.isupper() else letter for letter in text)


@dataclass(frozen=True, slots=True)
class ConstantTerm:
    value: MetricValue


@dataclass(frozen=True, slots=True)
class Now:
    """The time at which the gate runs, as an ISO string in UTC."""


@dataclass(frozen=True, slots=True)
class KnownDay:
    """The date of the data, and the labels of a dataset on the days before it, as text
    (`metrics.usual_limits.known_text`)."""

    dataset: str


@dataclass(frozen=True, slots=True)
class Measured:
    """The value of a request."""

    request: MetricRequest


@dataclass(frozen=True, slots=True)
class Applied:
    """A function of `metrics.derived.FUNCTIONS` applied to terms."""

    function: str
    terms: tuple[Term, ...]


@dataclass(frozen=True, slots=True)
class Claimed:
    """A combination of claims: `any` must hold, or `all`, or the second `if` the first one does."""

    junctor: nodes.Junctor
    parts: tuple[PlannedAssertion, ...]


Term: TypeAlias = ConstantTerm | Now | KnownDay | Measured | Applied | Claimed


@dataclass(frozen=True, slots=True)
class PlannedCondition:
    """`kind` is a comparison operator, `between`, `not between`, `is None`, `is not None`, `fits`
    for types, or `hold` for claims.

    `text` is the condition in readable form; `tolerance` applies to == and !=.
    """

    kind: str
    bounds: tuple[Term, ...]
    text: str
    tolerance: Number | None = None

    @property
    def comparators(self) -> tuple[str, ...]:
        """The comparison operator for each bound."""
        match self.kind:
            case "between":
                return (">=", "<=")
            case "not between":
                return ("<", ">")
            case _:
                return (self.kind,)

    def holds(self, comparisons: Iterable[bool]) -> bool:
        """Whether the condition holds, given the results of its comparisons."""
        return any(comparisons) if self.kind == "not between" else all(comparisons)

    @property
    def is_about_none(self) -> bool:
        """True for `is None` and `is not None`, which a missing value answers."""
        return self.kind in ("is None", "is not None")


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of errors: of a failure over correct data, and of a pass over bad data."""

    false_positive: float = 1.0
    false_negative: float = 10.0


DEFAULT_COST = Cost()
"""The cost of an assertion without `@cost`."""


@dataclass(frozen=True, slots=True)
class JudgedGroups:
    """The groups that an assertion is judged for: the `listed` ones, with or without rows; without
    a list, those that have rows on a date of the assertion.

    `share` of them must pass. `text` is that in readable form. `rows` count the rows of the groups
    if metrics have filters of their own, which exclude no group.
    """

    columns: tuple[str, ...]
    listed: tuple[Group, ...] | None
    share: Exact
    text: str
    rows: tuple[MetricRequest, ...] = ()


@dataclass(frozen=True, slots=True)
class PlannedAssertion:
    """An assertion ready to be evaluated, after the active profiles were applied.

    `disabled_by` names the profile that disabled it. `is_implicit` marks the assertions that every
    dataset of a gate has, `is_experimental` those that never block, `is_protected` those that are
    P0 or `@required`. `requests` are needed for both sides of its condition, and to find its
    groups; `history` are the requests for earlier days from which the usual value is computed.
    """

    name: str
    check: str
    datasets: tuple[str, ...]
    expression: str
    term: Term
    condition: PlannedCondition
    severity: Severity
    tags: tuple[str, ...] = ()
    multiplier: Exact = 1
    profiles: tuple[str, ...] = ()
    disabled_by: str | None = None
    is_implicit: bool = False
    span: Span | None = None
    source_line: str | None = None
    cost: Cost = DEFAULT_COST
    is_experimental: bool = False
    is_protected: bool = False
    groups: JudgedGroups | None = None
    requests: tuple[MetricRequest, ...] = field(init=False, compare=False, repr=False)
    history: tuple[MetricRequest, ...] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        sides = (self.term, *self.condition.bounds)
        rows = () if self.groups is None else self.groups.rows
        requests = dict.fromkeys(chain(*map(requests_of, sides), rows))
        before = dict.fromkeys(chain(*map(history_of, sides)))
        for request in requests:
            before.pop(request, None)
        object.__setattr__(self, "requests", tuple(requests))
        object.__setattr__(self, "history", tuple(before))


DaysLabelled: TypeAlias = Mapping[date, bool]
"""Whether there was an issue on a labelled day."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """The selected part of a suite: its checks, the assertions `kept` of all that it `stated`, and
    the datasets that they read. `partial` describes what was left out, or is None."""

    suite: nodes.Suite
    stated: tuple[PlannedAssertion, ...]
    kept: tuple[PlannedAssertion, ...]
    datasets: frozenset[str]
    partial: PartialRun | None


@dataclass(frozen=True, slots=True)
class Plan:
    """The metrics and assertions that a gate computes and decides for one date.

    `requests` are distinct, in a stable order; `lookups` are used by their predicates.
    `masked` are the columns of each dataset whose values must be hidden. `require_history` is set
    if the suite requires that a gate is broken when an assertion lacks data of other dates. `reads`
    identify how each dataset is read, see `plan.measurements`. `partial` describes the selection if
    assertions were left out. `labels` mark, by dataset, the earlier days with and without an issue.
    `watched` are the datasets whose columns were unknown, so that nothing is claimed of them.
    `ansi` and `max_clock_skew_hours` are copied from the `RunOptions`.
    """

    suite: str
    date: date
    availability_threshold: float
    assertions: tuple[PlannedAssertion, ...]
    requests: tuple[MetricRequest, ...]
    lookups: tuple[Lookup, ...]
    masked: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    require_history: bool = False
    reads: Mapping[str, str] = field(default_factory=dict)
    partial: PartialRun | None = None
    ansi: bool = True
    max_clock_skew_hours: float = DEFAULT_CLOCK_SKEW_HOURS
    labels: Mapping[str, DaysLabelled] = field(default_factory=dict)
    watched: tuple[str, ...] = ()


def joined(plans: Sequence[Plan]) -> Plan:
    """The first plan with the requests and lookups of all plans, to be measured together."""
    if len(plans) == 1:
        return plans[0]
    return replace(
        plans[0],
        requests=tuple(dict.fromkeys(request for plan in plans for request in plan.requests)),
        lookups=tuple(dict.fromkeys(lookup for plan in plans for lookup in plan.lookups)),
    )


@dataclass(slots=True)
class GroupValues:
    """The value of a request in each group that has rows; `details` explain some of them.

    `types` are the types of the grouping columns, if known.
    """

    values: dict[Group, MetricValue] = field(default_factory=dict)
    details: dict[Group, str] = field(default_factory=dict)
    types: tuple[str, ...] = ()


Old = TypeVar("Old")
New = TypeVar("New")
Result = TypeVar("Result")


def renamed(results: Mapping[Old, Result], names: Iterable[tuple[Old, New]]) -> dict[New, Result]:
    """The results of keys that have a new name, under these names, in their order."""
    return {name: results[old] for old, name in names if old in results}


@dataclass(slots=True)
class Scanned:
    """The results of requests: the value of each, or the reason why it has none.

    `details` explain a value in words if a number alone explains little. `groups` are the values of
    grouped requests.
    """

    values: dict[MetricRequest, MetricValue] = field(default_factory=dict)
    failures: dict[MetricRequest, str] = field(default_factory=dict)
    origins: dict[MetricRequest, Origin] = field(default_factory=dict)
    details: dict[MetricRequest, str] = field(default_factory=dict)
    groups: dict[MetricRequest, GroupValues] = field(default_factory=dict)

    def __contains__(self, request: MetricRequest) -> bool:
        return request in self.values or request in self.groups or request in self.failures

    def of(self, requests: Iterable[MetricRequest]) -> Scanned:
        """The results of some requests, in their order."""
        return self.moved([(request, request) for request in requests])

    def moved(self, pairs: Collection[tuple[MetricRequest, MetricRequest]]) -> Scanned:
        """The results under other requests: in each pair, the first is renamed to the second."""
        return Scanned(*(renamed(part, pairs) for part in self._parts))

    def add(self, other: Scanned) -> None:
        for results, added in zip(self._parts, other._parts, strict=True):
            results.update(added)

    @property
    def _parts(self) -> tuple[dict[MetricRequest, Any], ...]:
        return self.values, self.failures, self.origins, self.details, self.groups


def usual_limits_in(term: Term) -> Iterator[Applied]:
    """The limits of what is usual in a term."""
    match term:
        case Applied(function=function) if function in USUAL_LIMITS:
            yield term
        case Applied(terms=terms):
            for inner in terms:
                yield from usual_limits_in(inner)


def history_of(term: Term) -> Iterator[MetricRequest]:
    """The requests for earlier days from which the usual value is computed: a verdict is possible
    without some of them."""
    if isinstance(term, Claimed):
        for part in term.parts:
            yield from part.history
    for limit in usual_limits_in(term):
        for before in limit.terms[len(USUAL_OPERANDS) :]:
            yield from requests_of(before)


def requests_of(term: Term) -> Iterator[MetricRequest]:
    """The requests that a term needs, without `history_of`."""
    match term:
        case Measured(request=request):
            yield request
        case Applied(function=function, terms=terms) if function in USUAL_LIMITS:
            yield from requests_of(terms[len(USUAL_OPERANDS) - 1])
        case Applied(terms=terms):
            for inner in terms:
                yield from requests_of(inner)
        case Claimed(parts=parts):
            for part in parts:
                yield from part.requests


def row_count(dataset: str, on: date | None, where: RowPredicate | None = None) -> MetricRequest:
    """The request for the number of rows, which shows whether there is data."""
    return MetricRequest(dataset, "num_rows", (), on, where)
