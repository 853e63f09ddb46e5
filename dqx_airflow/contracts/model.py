"""A contract as all dialects mean it: plain frozen values, each rule with its place in the YAML.

A reader of a dialect makes a `Contract`; coverage, compilation, diff, lint and export see nothing
else. What the document says and no rule carries is a `Note`: documented, or unsupported.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum

from dqx_airflow.contracts.demands import Demand, Literal, Required
from dqx_airflow.values import FieldSource, Responsible, Severity, Span


class Dialect(str, Enum):
    """The formats in which contracts are written."""

    DCS = "dcs"
    ODCS = "odcs"
    FABRIC = "fabric"
    PRODUCT = "product"
    DATALEX = "datalex"

    __str__ = str.__str__  # prints as its value, on every Python


class Treatment(str, Enum):
    """What becomes of a clause. `CHECKED`: an assertion enforces it. `ACCEPTED`: nothing does, and
    the contract names who accepts that."""

    CHECKED = "checked"
    DOCUMENTED = "documented"
    ACCEPTED = "accepted"
    UNSUPPORTED = "unsupported"

    __str__ = str.__str__


@dataclass(frozen=True, slots=True)
class Clause:
    """One thing that a contract says: a leaf of the document.

    `text` is its value as written, all of it, on one line.
    """

    path: str
    text: str
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Promise:
    """A check that the document states and no rule carries: of a model, or of all of them.

    `path` is that of all its clauses together, `name` is what its assertion is called. The last
    three are what the document says of the rule, as of `Rule`.
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
    """A clause that no rule carries, and why.

    `code` is that of the mistake, where the clause itself is wrong: `status: activ`. The reason
    then says what is wrong, and `help` what to write instead. `promise` is the check that the
    clause is part of.
    """

    clause: Clause
    treatment: Treatment
    reason: str = ""
    code: str | None = None
    help: str | None = None
    promise: Promise | None = None


@dataclass(frozen=True, slots=True)
class UnknownKey:
    """A key that the dialect does not know at this place: a slip, or a word of another dialect.

    `path` is that of the value. `meant` is the known key that it is probably a slip of. `is_check`:
    the key promises a check elsewhere, and makes none here.
    """

    key: str
    path: str
    span: Span
    meant: str | None
    is_check: bool = False


@dataclass(frozen=True, slots=True)
class Acceptance:
    """Somebody accepts that a clause is not checked, and says why.

    `clause` is the path of the clause, or of what it is part of, or the name of its assertion.
    """

    clause: str
    reason: str
    owner: str
    span: Span = field(compare=False)

    def covers(self, path: str, name: str = "") -> bool:
        """True for the clause at the path, and for those within it."""
        is_within = path.startswith(self.clause) and path[len(self.clause) :][:1] in ("", ".", "[")
        return is_within or self.clause == name


@dataclass(frozen=True, slots=True)
class Rule:
    """A demand, with the clauses that make it; a failure points to the first of them.

    `name` is the last part of the assertion's name, `required` for `orders.order_id.required`. It
    is unique within its field or model. `severity` is None where the document names none. `share`
    below 1 belongs to demands on single values (`VALUE_DEMANDS`): so many of the values that are
    not NULL satisfy it at least, as `N% of rows:` says it. `id` is what the document calls it by.
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


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a model, or one nested in another.

    `path` is the name of the column as DQL writes it, `address.city` for a field of a struct; items
    of arrays, keys and values of maps have `[]`, `{key}` and `{value}` in it. `type` is None where
    the contract names none, else a type of Spark, or a word for several of them: `number`,
    `whole_number`, `text`, `any`; nested types are `array`, `map` and `struct` alone, with what is
    in them in `items`, `keys`, `values` and `fields`. `written_type` is as the document spells it.

    `semantic` is the meaning of the field in words, `is_sensitive` masks its values. The
    `example_spans` are the places of the `examples`, one for each.
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
    inputs: tuple[FieldSource, ...] = ()

    @property
    def is_nullable(self) -> bool:
        return not any(isinstance(rule.demand, Required) for rule in self.rules)

    def walk(self) -> Iterator[Field]:
        """The field and all that is nested in it."""
        yield self
        for inner in (*self.fields, self.items, self.keys, self.values):
            if inner is not None:
                yield from inner.walk()


@dataclass(frozen=True, slots=True)
class ExampleRows:
    """Example rows of a model, with the places of all of them and of each row.

    `is_text`: they are written as CSV, where nothing but simple values has a form.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[object, ...], ...]
    span: Span
    row_spans: tuple[Span, ...] = ()
    is_text: bool = False


@dataclass(frozen=True, slots=True)
class Model:
    """A table of the contract. `name` is the name of the dataset in the suite.

    `location` is the table or file that the document names for it. `version` is its own, where each
    model of the dialect has one.
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

    def walk(self) -> Iterator[Field]:
        """All fields, those included that are nested in others."""
        for item in self.fields:
            yield from item.walk()

    def field_at(self, path: str) -> Field | None:
        return next((item for item in self.walk() if item.path == path), None)


@dataclass(frozen=True, slots=True)
class Server:
    """Where the data of the contract is found. `location` may hold `{model}`.

    `sql_dialect` is the name that sqlglot has for the SQL of the server, None for Spark's own.
    """

    name: str
    type: str
    span: Span = field(compare=False)
    location: str | None = None
    format: str | None = None
    environment: str | None = None
    options: tuple[tuple[str, str], ...] = ()
    sql_dialect: str | None = None


@dataclass(frozen=True, slots=True)
class Consumer:
    """A team that uses the data, with what for; `pin` is the version that it relies on."""

    team: str
    use_case: str | None = None
    pin: str | None = None


@dataclass(frozen=True, slots=True)
class Lifecycle:
    """The state of a contract, and its dates as ISO texts. Periods are days.

    `status` is one of draft, active, deprecated, sunset; `written_status` as the document has it.
    `cadence` is how often it may break at most: `quarterly_max`.
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


@dataclass(frozen=True, slots=True)
class IncidentResponse:
    """What those do who are called when the contract is broken, as the document has it."""

    channel: str | None = None
    runbook: str | None = None
    response: str | None = None
    business_hours: str | None = None


@dataclass(frozen=True, slots=True)
class Renamed:
    """A model, or one of its fields by its path, that was called `old` in the version before."""

    model: str
    field: str | None
    old: str


@dataclass(frozen=True, slots=True)
class Contract:
    """A contract of any dialect. `parts` are its elements, by their keys, where the dialect says
    which it has to have.
    """

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

    def model(self, name: str) -> Model | None:
        return next((model for model in self.models if model.name == name), None)

    @property
    def responsible(self) -> Responsible | None:
        """Who answers for the contract; None where it says nothing of it."""
        incident = self.incident
        responsible = Responsible(
            self.owner,
            self.contacts,
            incident.channel,
            incident.runbook,
            incident.response,
            incident.business_hours,
        )
        return responsible if responsible.facts else None

    def acceptance_of(self, name: str, *paths: str) -> Acceptance | None:
        """Who accepts that the clauses at the paths, of the assertion of that name, are not
        checked; None where nobody does."""
        covering = (
            item for item in self.acceptances if any(item.covers(path, name) for path in paths)
        )
        return next(covering, None)

    def rules(self) -> Iterator[tuple[Model, Field | None, Rule]]:
        """All rules in the order of the document, with where they belong."""
        for model in self.models:
            for item in model.walk():
                for rule in item.rules:
                    yield model, item, rule
            for rule in model.rules:
                yield model, None, rule

    def assertion_name(self, model: Model, item: Field | None, rule: Rule) -> str:
        """`model.field.clause`: stable under edits elsewhere in the document."""
        return ".".join(filter(None, (model.name, item.path if item else None, rule.name)))
