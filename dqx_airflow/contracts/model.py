"""The model of a contract, shared by all dialects: frozen dataclasses, each rule with its YAML
position; and the paths of its columns in the syntax of DQL: `address.`zip code``.

A reader of a dialect creates a `Contract`; coverage, compilation, diff, lint and export depend on
nothing else. A clause of the document without a rule is a `Note`: documented, or unsupported.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import astuple, dataclass, field, replace
from datetime import date

from dqx_airflow.contracts.demand import Demand, Literal, percent_text
from dqx_airflow.contracts.document import Mapping
from dqx_airflow.datasets.settings import format_of
from dqx_airflow.values import FieldSource, Responsible, Severity, Span, WordEnum
from dqx_airflow.values.typed_values import day_in, days_before

_PART = re.compile(r"`(?P<quoted>(?:[^`]|``)*)`|(?P<plain>[^.`]+)")


def column_path(name: str) -> str:
    """A column in the syntax of DQL: in backticks unless it is a plain word."""
    if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        return name
    return "`" + name.replace("`", "``") + "`"


def dotted_path(name: str) -> str:
    """The path of a name in which each dot leads into a struct, as in Spark."""
    return ".".join(map(column_path, name.split(".")))


def parts_of(path: str) -> tuple[str, ...]:
    """The names in a path: `address`, `zip code` for ``address.`zip code` ``."""
    return tuple(
        (part["quoted"] or "").replace("``", "`") or part["plain"] or ""
        for part in _PART.finditer(path)
    )


def plain_name(path: str) -> str:
    """A column in the syntax of other tools: without the backticks of DQL."""
    return ".".join(parts_of(path))


def without_quoted(path: str) -> str:
    """A path without the names in backticks, which may contain any characters."""
    return _PART.sub(lambda part: part["plain"] or "", path)


class Dialect(WordEnum):
    """The formats of contracts."""

    DCS = "dcs"
    ODCS = "odcs"
    FABRIC = "fabric"
    PRODUCT = "product"
    DATALEX = "datalex"


class Treatment(WordEnum):
    """The treatment of a clause. `CHECKED`: an assertion enforces it. `ACCEPTED`: no assertion
    does, and the contract records who accepts the gap."""

    CHECKED = "checked"
    DOCUMENTED = "documented"
    ACCEPTED = "accepted"
    UNSUPPORTED = "unsupported"


@dataclass(frozen=True, slots=True)
class Clause:
    """A statement of a contract: a leaf of the document.

    `text` is the complete value as written, on one line.
    """

    path: str
    text: str
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Promise:
    """A check that the document states and no rule enforces: for one model, or for all of them.

    `path` is the common path of its clauses, `name` is the name that its assertion would have.
    `dimension`, `tags` and `id` are properties of the rule in the document, as in `Rule`.
    """

    path: str
    name: str
    model: str | None = None
    severity: Severity | None = None
    dimension: str | None = None
    tags: tuple[str, ...] = ()
    id: str | None = None


@dataclass(frozen=True, slots=True)
class Note:
    """A clause without a rule, and the reason.

    `code` is the code of the mistake, if the clause itself is wrong: `status: activ`. Then `reason`
    describes the mistake, and `help` the correction. `promise` is the check to which the clause
    belongs.
    """

    clause: Clause
    treatment: Treatment
    reason: str = ""
    code: str | None = None
    help: str | None = None
    promise: Promise | None = None


@dataclass(frozen=True, slots=True)
class UnknownKey:
    """A key that the dialect does not define at this position: a typo, or a key of another dialect.

    `path` is the path of the value. `meant` is the defined key of which it is probably a typo.
    `is_check`: it promises a check, which is not made.
    """

    key: str
    path: str
    span: Span
    meant: str | None
    is_check: bool = False


@dataclass(frozen=True, slots=True)
class Acceptance:
    """The acceptance that a clause is not checked, with the reason.

    `clause` is the path of the clause, or of its parent, or the name of its assertion.
    """

    clause: str
    reason: str
    owner: str
    span: Span = field(compare=False)

    def covers(self, path: str, name: str = "") -> bool:
        """True for the clause at the path, and for clauses within it."""
        is_within = path.startswith(self.clause) and path[len(self.clause) :][:1] in ("", ".", "[")
        return is_within or self.clause == name


@dataclass(frozen=True, slots=True)
class Rule:
    """A demand, with the clauses behind it; a failure points to the first of them.

    `name` is the last part of the assertion's name, `required` for `orders.order_id.required`. It
    is unique within its field or model. `severity` is None if the document states none. `share`
    below 1 applies to demands on single values (`ValueDemand`): at least this share of the values
    that are not NULL satisfies it, as in `N% of rows:`. `id` is its identifier in the document.
    """

    name: str
    demand: Demand
    clauses: tuple[Clause, ...] = field(compare=False)
    severity: Severity | None = None
    dimension: str | None = None
    description: str | None = None
    tags: tuple[str, ...] = ()
    share: float = 1.0
    id: str | None = field(default=None, compare=False)

    @property
    def text(self) -> str:
        """The demand in a few words, with the share of the values that it applies to."""
        share = "" if self.share >= 1 else f", for {percent_text(self.share)} of the values"
        return f"{self.demand.text}{share}"


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a model, or one nested in another.

    `path` is the name of the column as DQL writes it, `address.city` for a field of a struct; items
    of arrays, keys and values of maps contain `[]`, `{key}` and `{value}`. `type` is None if the
    contract states none, else a Spark type, or a word for several of them: `number`,
    `whole_number`, `text`, `any`; nested types are only `array`, `map` and `struct`, with their
    parts in `items`, `keys`, `values` and `fields`. `written_type` is as the document spells it.
    `logical_type` is the logical type of ODCS beside a physical type that it agrees with: `integer`
    for a decimal of 12 digits. `has_zone`: its database type is one of points in time (True), or of
    times on the wall (False). `text_format` is the format in which text files hold its dates or
    timestamps.

    `semantic` is the meaning of the field in words, `is_sensitive` masks its values. The
    `example_spans` are the positions of the `examples`, one for each. `id` is its identifier in the
    document.
    """

    name: str
    path: str
    type: str | None
    span: Span = field(compare=False)
    written_type: str | None = None
    rules: tuple[Rule, ...] = ()
    fields: tuple[Field, ...] = ()
    items: Field | None = None
    keys: Field | None = None
    values: Field | None = None
    semantic: str | None = None
    title: str | None = None
    unit: str | None = None
    default: Literal = None
    has_default: bool = False
    is_key: bool = False
    is_sensitive: bool = False
    classification: str | None = None
    tags: tuple[str, ...] = ()
    examples: tuple[Literal, ...] = ()
    example_spans: tuple[Span, ...] = field(default=(), compare=False)
    id: str | None = field(default=None, compare=False)
    inputs: tuple[FieldSource, ...] = ()
    logical_type: str | None = field(default=None, compare=False)
    has_zone: bool | None = field(default=None, compare=False)
    text_format: str | None = field(default=None, compare=False)

    @property
    def is_nullable(self) -> bool:
        return not any(rule.demand.is_required for rule in self.rules)

    def walk(self) -> Iterator[Field]:
        """The field and everything nested in it."""
        return (way[-1] for way in self.ways())

    def ways(self) -> Iterator[tuple[Field, ...]]:
        """The paths from the field to everything nested in it, its own first."""
        yield (self,)
        for inner in (*self.fields, self.items, self.keys, self.values):
            if inner is not None:
                yield from ((self, *way) for way in inner.ways())

    def narrowed(self, is_kept: Callable[[Demand], bool]) -> Field:
        """The field, and everything nested in it, with only the rules whose demand is kept."""
        return replace(
            self,
            rules=_kept(self.rules, is_kept),
            fields=tuple(inner.narrowed(is_kept) for inner in self.fields),
            items=self.items and self.items.narrowed(is_kept),
            keys=self.keys and self.keys.narrowed(is_kept),
            values=self.values and self.values.narrowed(is_kept),
        )


def _kept(rules: Iterable[Rule], is_kept: Callable[[Demand], bool]) -> tuple[Rule, ...]:
    return tuple(rule for rule in rules if is_kept(rule.demand))


@dataclass(frozen=True, slots=True)
class ExampleRows:
    """Example rows of a model, with the positions of all of them and of each row.

    `is_text`: they are written as CSV, which only represents simple values.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[object, ...], ...]
    span: Span
    row_spans: tuple[Span, ...] = ()
    is_text: bool = False


@dataclass(frozen=True, slots=True)
class Model:
    """A table of the contract. `name` is the name of the dataset in the suite.

    `location` is the table or file that the document names for it. `version` is its own, if the
    models of the dialect have versions. `id` is its identifier in the document.
    """

    name: str
    span: Span = field(compare=False)
    fields: tuple[Field, ...] = ()
    rules: tuple[Rule, ...] = ()
    description: str | None = None
    title: str | None = None
    version: str | None = None
    location: str | None = None
    partition_by: tuple[str, ...] = ()
    is_closed: bool = False
    tags: tuple[str, ...] = ()
    examples: tuple[ExampleRows, ...] = field(default=(), compare=False)
    id: str | None = field(default=None, compare=False)

    def walk(self) -> Iterator[Field]:
        """All fields, including nested ones."""
        for item in self.fields:
            yield from item.walk()

    @property
    def key(self) -> tuple[str, ...]:
        """The paths of the columns that identify a row: of the primary key, or of key fields."""
        for rule in self.rules:
            if rule.name == "primary_key" and rule.demand.key:
                return rule.demand.key
        return tuple(item.path for item in self.fields if item.is_key)

    def narrowed(self, is_kept: Callable[[Demand], bool]) -> Model:
        """The model with only the rules whose demand is kept, including the rules of its fields."""
        fields = tuple(item.narrowed(is_kept) for item in self.fields)
        return replace(self, fields=fields, rules=_kept(self.rules, is_kept))

    def field_at(self, path: str) -> Field | None:
        return next((item for item in self.walk() if item.path == path), None)


@dataclass(frozen=True, slots=True)
class Server:
    """The location of the data of the contract. `location` may contain `{model}`.

    `sql_dialect` is the name of the server's SQL dialect in sqlglot, None for Spark's own. `keys`
    are the scalars of the server as the document has them, by their keys.
    """

    name: str
    type: str
    span: Span = field(compare=False)
    location: str | None = None
    format: str | None = None
    environment: str | None = None
    options: tuple[tuple[str, str], ...] = ()
    sql_dialect: str | None = None
    keys: tuple[tuple[str, Literal], ...] = field(default=(), compare=False)

    @property
    def file_format(self) -> str | None:
        """The format of its files, which the name of a file implies, too; None if it is unknown."""
        return self.format or format_of(self.location or "")


@dataclass(frozen=True, slots=True)
class Consumer:
    """A team that uses the data, with its use case; `pin` is the version that it relies on."""

    team: str
    use_case: str | None = None
    pin: str | None = None


def day_of(text: str | None) -> date | None:
    """The date in an ISO string; None without a string, and for an invalid string."""
    return day_in(text[:10]) if text else None


@dataclass(frozen=True, slots=True)
class Lifecycle:
    """The status of a contract, and its dates as ISO strings. Periods are in days.

    `status` is one of draft, active, deprecated, sunset; `written_status` is as in the document.
    `cadence` limits how often it may break: `quarterly_max`.
    """

    status: str | None = None
    written_status: str | None = None
    effective_date: str | None = None
    deprecation_date: str | None = None
    sunset_date: str | None = None
    successor: str | None = None
    notice_days: int | None = None
    breaking_notice_days: int | None = None
    dual_write_days: int | None = None
    cadence: str | None = None


CADENCES = {"week": 7, "month": 1, "quarter": 3, "half": 6, "semi": 6, "year": 12, "annual": 12}
"""Prefixes of the cadences of breaking changes, with the months of each; for a week, its days."""


@dataclass(frozen=True, slots=True)
class IncidentResponse:
    """The incident response for a violated contract, as in the document."""

    channel: str | None = None
    runbook: str | None = None
    response: str | None = None
    business_hours: str | None = None


@dataclass(frozen=True, slots=True)
class Renamed:
    """A model, or one of its fields by its path, with its name `old` in the previous version."""

    model: str
    field: str | None
    old: str


@dataclass(frozen=True, slots=True)
class Contract:
    """A contract of any dialect. `parts` are its elements by their keys, if the dialect requires
    some. `document` is the document of an ODCS contract, which is exported as it is written."""

    dialect: Dialect
    dialect_version: str | None
    id: str
    version: str | None
    span: Span = field(compare=False)
    name: str | None = None
    description: str | None = None
    owner: str | None = None
    contacts: tuple[str, ...] = ()
    domain: str | None = None
    models: tuple[Model, ...] = ()
    servers: tuple[Server, ...] = ()
    consumers: tuple[Consumer, ...] = ()
    lifecycle: Lifecycle = Lifecycle()
    tags: tuple[str, ...] = ()
    parts: tuple[str, ...] = field(default=(), compare=False)
    notes: tuple[Note, ...] = field(default=(), compare=False)
    unknown_keys: tuple[UnknownKey, ...] = field(default=(), compare=False)
    acceptances: tuple[Acceptance, ...] = field(default=(), compare=False)
    incident: IncidentResponse = field(default_factory=IncidentResponse)
    renames: tuple[Renamed, ...] = field(default=(), compare=False)
    document: Mapping | None = field(default=None, compare=False, repr=False)

    def model(self, name: str) -> Model | None:
        return next((model for model in self.models if model.name == name), None)

    @property
    def responsible(self) -> Responsible | None:
        """The person or team responsible for the contract; None if it states none."""
        responsible = Responsible(self.owner, self.contacts, *astuple(self.incident))
        return responsible if responsible.facts else None

    def acceptance_of(self, name: str, *paths: str) -> Acceptance | None:
        """The acceptance that the clauses at the paths, of the assertion with the name, are not
        checked; None without one."""
        covering = (
            acceptance
            for acceptance in self.acceptances
            if any(acceptance.covers(path, name) for path in paths)
        )
        return next(covering, None)

    def rules(self) -> Iterator[tuple[Model, Field | None, Rule]]:
        """All rules in the order of the document, with their context."""
        for model in self.models:
            for item in model.walk():
                for rule in item.rules:
                    yield model, item, rule
            for rule in model.rules:
                yield model, None, rule

    def assertion_name(self, model: Model, item: Field | None, rule: Rule) -> str:
        """`model.field.clause`: stable under edits elsewhere in the document."""
        return ".".join(filter(None, (model.name, item.path if item else None, rule.name)))


def end_of_period(begin: date, days: int) -> date:
    """The date `days` later; the first or last date there is, if the calendar ends before.

    >>> end_of_period(date(2026, 1, 1), 90).isoformat()
    '2026-04-01'
    """
    return days_before(begin, -days)
