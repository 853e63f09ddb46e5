"""The plan: assertions over metric requests, and the requests themselves."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Any, TypeAlias

from dqx_airflow.dql import nodes
from dqx_airflow.exact import Exact, Number
from dqx_airflow.limits import DEFAULT_MOST_GROUPS
from dqx_airflow.metrics.builtin import METRICS
from dqx_airflow.metrics.registry import Argument, ArgumentKind, Arguments, Metric, Scan
from dqx_airflow.values import MetricValue, Origin, PartialRun, Severity, Span


@dataclass(frozen=True, slots=True)
class RowPredicate:
    """A predicate over rows as an argument of a request; literals stand for its constants."""

    node: nodes.Expression


Group: TypeAlias = tuple[MetricValue, ...]
"""The values of the columns by which rows are grouped. A boolean is `"true"` or `"false"`."""


@dataclass(frozen=True, slots=True)
class Grouping:
    """The columns by which the rows of a dataset are grouped.

    Rows that do not fit the predicate `only` belong to no group that somebody asks about. More
    groups than `most` on one date are an error.
    """

    columns: tuple[str, ...]
    only: RowPredicate | None = None
    most: int = DEFAULT_MOST_GROUPS


@dataclass(frozen=True, slots=True)
class MetricRequest:
    """A metric of a dataset on a date. Equal requests are computed once.

    `date` is None for a dataset without a date column, whose rows belong to every date, and for
    what the schema answers. With `where` it is about the rows for which that is true, with a
    `grouping` it is asked for each group of them.
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
        return str(next(given for argument, given in self.given if argument.kind is wanted))

    @property
    def datasets(self) -> tuple[str, ...]:
        """The datasets that are measured, its own first."""
        reference = self.reference
        return (self.dataset,) if reference is None else (self.dataset, reference)

    @property
    def given(self) -> Iterator[tuple[Argument, Any]]:
        """What the metric takes, parameters last, each with what it is given."""
        metric = self.definition
        return zip((*metric.arguments, *metric.parameters), self.arguments, strict=True)

    @property
    def predicates(self) -> tuple[RowPredicate, ...]:
        """What it asks of single rows: the predicates among its arguments, and its filter."""
        given = (*self.arguments, self.where)
        return tuple(item for item in given if isinstance(item, RowPredicate))


@dataclass(frozen=True, slots=True)
class Lookup:
    """Whether the value of `column` is among the values of `reference_column` of another dataset.

    A scan joins the distinct reference values and names the outcome `alias`: NULL where the
    value is missing there.
    """

    dataset: str
    column: str
    reference: str
    reference_column: str

    @property
    def alias(self) -> str:
        # Spark does not tell capitals in the names of columns from other letters.
        text = f"{self.column} in {self.reference}.{self.reference_column}"
        return "".join(f"^{letter}" if letter.isupper() else letter for letter in text)


@dataclass(frozen=True, slots=True)
class Constant:
    value: MetricValue


@dataclass(frozen=True, slots=True)
class Now:
    """The moment at which the gate runs, as ISO text in UTC."""


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
    """How many of some claims hold: `any` of them has to, or `all`, or the second `if` the first
    does."""

    junctor: nodes.Junctor
    parts: tuple[PlannedAssertion, ...]


Term: TypeAlias = Constant | Now | Measured | Applied | Claimed


@dataclass(frozen=True, slots=True)
class Condition:
    """`kind` is a comparison operator, `between`, `is None`, `is not None`, `fits` for types, or
    `hold` for claims.

    `text` is the condition as people read it; `tolerance` belongs to == and !=.
    """

    kind: str
    bounds: tuple[Term, ...]
    text: str
    tolerance: Number | None = None

    @property
    def is_about_none(self) -> bool:
        """True for `is None` and `is not None`, which a missing value answers."""
        return self.kind in ("is None", "is not None")


@dataclass(frozen=True, slots=True)
class Cost:
    """What it costs to be wrong: a failure over sound data, and a pass over bad data."""

    false_positive: float = 1.0
    false_negative: float = 10.0


DEFAULT_COST = Cost()
"""That of an assertion without `@cost`."""


@dataclass(frozen=True, slots=True)
class JudgedGroups:
    """The groups that an assertion is judged for: the `listed` ones, whether they have rows or
    not; without a list those that have rows on a date that the assertion asks for.

    `share` of them have to pass. `text` is that as people read it. `rows` count the rows of the
    groups where metrics have filters of their own, which leave no group out.
    """

    columns: tuple[str, ...]
    listed: tuple[Group, ...] | None
    share: Exact
    text: str
    rows: tuple[MetricRequest, ...] = ()


@dataclass(frozen=True, slots=True)
class PlannedAssertion:
    """An assertion ready to be evaluated, with what the active profiles made of it.

    `disabled_by` names the profile that disabled it. `is_implicit` marks the assertions that
    every dataset of a gate has, `is_experimental` those that never block. `requests` are those of
    both sides of its condition, and those by which its groups are known.
    """

    name: str
    check: str
    datasets: tuple[str, ...]
    expression: str
    term: Term
    condition: Condition
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
    groups: JudgedGroups | None = None
    requests: tuple[MetricRequest, ...] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        found = dict.fromkeys(requests_of(self.term))
        for bound in self.condition.bounds:
            found.update(dict.fromkeys(requests_of(bound)))
        if self.groups is not None:
            found.update(dict.fromkeys(self.groups.rows))
        object.__setattr__(self, "requests", tuple(found))


@dataclass(frozen=True, slots=True)
class Chosen:
    """What a selection leaves of a suite: its checks, those `kept` of all assertions that it
    `stated`, and the datasets that they read. `partial` tells what was left out; None where nothing
    was."""

    suite: nodes.Suite
    stated: tuple[PlannedAssertion, ...]
    kept: tuple[PlannedAssertion, ...]
    datasets: frozenset[str]
    partial: PartialRun | None


@dataclass(frozen=True, slots=True)
class Plan:
    """What a gate computes and decides for one date.

    `requests` are distinct, in a stable order; `lookups` are those that their predicates use.
    `masked` are the columns of each dataset whose values must not be seen. With `require_history`
    the suite asks that a gate is broken where an assertion lacks data of other dates. `reads` tell
    how each dataset is read, see `plan.measured`. `partial` tells what was selected where
    assertions were left out.
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


def joined(plans: Sequence[Plan]) -> Plan:
    """The last plan with the requests and lookups of all of them, to be measured together."""
    return replace(
        plans[-1],
        requests=tuple(dict.fromkeys(one for plan in plans for one in plan.requests)),
        lookups=tuple(dict.fromkeys(one for plan in plans for one in plan.lookups)),
    )


@dataclass(slots=True)
class GroupValues:
    """The value of a request in each group that has rows; `details` are what is behind some.

    `types` are those of the columns that make the groups, where they are known.
    """

    values: dict[Group, MetricValue] = field(default_factory=dict)
    details: dict[Group, str] = field(default_factory=dict)
    types: tuple[str, ...] = ()


@dataclass(slots=True)
class Scanned:
    """What was found out about requests: the value of each, or why it has none.

    `details` say in words what is behind a value, where a number alone says little. `groups` are
    the values of the requests that have a grouping.
    """

    values: dict[MetricRequest, MetricValue] = field(default_factory=dict)
    failures: dict[MetricRequest, str] = field(default_factory=dict)
    origins: dict[MetricRequest, Origin] = field(default_factory=dict)
    details: dict[MetricRequest, str] = field(default_factory=dict)
    groups: dict[MetricRequest, GroupValues] = field(default_factory=dict)

    def __contains__(self, request: MetricRequest) -> bool:
        return request in self.values or request in self.groups or request in self.failures

    def of(self, requests: Iterable[MetricRequest]) -> Scanned:
        """What was found out about some requests, in their order."""
        asked = tuple(requests)
        return Scanned(
            {one: self.values[one] for one in asked if one in self.values},
            {one: self.failures[one] for one in asked if one in self.failures},
            {one: self.origins[one] for one in asked if one in self.origins},
            {one: self.details[one] for one in asked if one in self.details},
            {one: self.groups[one] for one in asked if one in self.groups},
        )

    def add(self, other: Scanned) -> None:
        self.values.update(other.values)
        self.failures.update(other.failures)
        self.origins.update(other.origins)
        self.details.update(other.details)
        self.groups.update(other.groups)


def requests_of(term: Term) -> Iterator[MetricRequest]:
    match term:
        case Measured(request=request):
            yield request
        case Applied(terms=terms):
            for inner in terms:
                yield from requests_of(inner)
        case Claimed(parts=parts):
            for part in parts:
                yield from part.requests


def row_count(dataset: str, on: date | None, where: RowPredicate | None = None) -> MetricRequest:
    """The request for the number of rows, by which a scan knows whether there is data."""
    return MetricRequest(dataset, "num_rows", (), on, where)
