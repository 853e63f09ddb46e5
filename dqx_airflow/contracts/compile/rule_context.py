"""A rule in its context: its contract, its model, and the path of its field."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from itertools import pairwise

from dqx_airflow.contracts.model import Contract, Field, Model, Rule
from dqx_airflow.values import DatasetRef

_OF_ONE_DATABASE = ("postgres", "postgresql")
"""The types of servers whose queries read the tables of one database only."""
_FIRST_SCHEMAS = ("public", "dbo", "main")
"""The default schemas of databases."""


@dataclass(frozen=True, slots=True)
class RuleContext:
    """A rule in its context.

    `way` is the path of fields from the column to the field of the rule; empty for a rule on the
    model. `ref` is the dataset of the model, and `on` the date of its data, if known. If
    `is_filtered`, the rule applies to some of the rows only, which SQL with a query of its own
    cannot express.
    """

    contract: Contract
    model: Model
    way: tuple[Field, ...]
    rule: Rule
    ref: DatasetRef | None = None
    on: date | None = None
    is_filtered: bool = False

    @property
    def item(self) -> Field | None:
        """The field of the rule; None for a rule on the model."""
        return self.way[-1] if self.way else None

    @property
    def reachable(self) -> tuple[Field, ...]:
        """The part of the path that DQL can express: up to the first array or map, inclusive."""
        for number, (outer, inner) in enumerate(pairwise(self.way)):
            if all(inner is not part for part in outer.fields):
                return self.way[: number + 1]
        return self.way

    @property
    def is_reachable(self) -> bool:
        """True if DQL can express all of the path: no array or map has further fields in it."""
        return len(self.reachable) == len(self.way)

    def dataset(self, written: str) -> str:
        """The name of the dataset for a table in SQL: the model with this name, this location, or
        this name on a server (`public.orders`), or else the name as written, without backticks.

        If no server has a schema, the default schemas of databases are assumed.
        """
        bare = written.replace("`", "")
        for model in self.contract.models:
            if model.name == written:
                return model.name
        for model in self.contract.models:
            if self._is_named(model, bare.lower()):
                return model.name
        return bare

    def _is_named(self, model: Model, wanted: str) -> bool:
        """Whether a name in lower case means the table of a model."""
        table = (model.location or model.name).lower()
        if wanted in (model.name.lower(), table):
            return True
        for server in self.contract.servers:
            located = (server.location or "").lower().replace("{model}", table)
            if f".{located}".endswith(f".{wanted}"):
                return True
            # A Postgres query cannot name another database than its own.
            is_of_one = located and server.type in _OF_ONE_DATABASE
            if is_of_one and f".{wanted}".endswith(f".{located}"):
                return True
        schema, _, name = wanted.rpartition(".")
        return name == table and schema in _FIRST_SCHEMAS and not self._has_schemas

    def fields_of(self, dataset: str) -> tuple[Field, ...]:
        """The fields of a dataset; none if no model describes it."""
        model = self.contract.model(dataset)
        return model.fields if model is not None else ()

    @property
    def _has_schemas(self) -> bool:
        """True if a server has a schema for its tables."""
        places = (server.location or "" for server in self.contract.servers)
        return any(place.endswith(".{model}") and "/" not in place for place in places)
