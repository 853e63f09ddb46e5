"""Drafts a first contract from the current contents of a table, and writes it in a dialect.

An observation is not a promise: a draft is a proposal, and is marked as such.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from itertools import groupby
from math import floor
from typing import Any

from dqx_airflow.contracts import demands
from dqx_airflow.contracts import model as elements
from dqx_airflow.contracts.dialects.personal_data import looks_personal
from dqx_airflow.contracts.export import odcs
from dqx_airflow.contracts.export.exported import without_empty, yaml_text
from dqx_airflow.contracts.field_types import spark_type, with_type
from dqx_airflow.diagnostics.templates import filled
from dqx_airflow.dql.formatter import format_source
from dqx_airflow.dql.nodes import NOWHERE
from dqx_airflow.dql.watches import clock_among, is_named_like_a_key
from dqx_airflow.metrics.types import Family, family_of, parts_of
from dqx_airflow.values import SourceFile


@dataclass(frozen=True, slots=True)
class ObservedColumn:
    """A column: its type in Spark, and the properties of its values.

    `values` are all values, for strings with few distinct values; `pattern` matches all strings.
    Neither is recorded for personal data.

    :param distinct: the number of different values; None if they are many and repeat.
    :param read_for_pattern: the number of strings that were compared with the pattern; None if all
        were.
    """

    name: str
    type: str
    nulls: int = 0
    distinct: int | None = None
    lowest: int | float | None = None
    highest: int | float | None = None
    values: tuple[str, ...] = ()
    pattern: str | None = None
    read_for_pattern: int | None = None
    is_personal: bool = False

    @property
    def is_named_like_a_key(self) -> bool:
        return is_named_like_a_key(self.name)


@dataclass(frozen=True, slots=True)
class ObservedTable:
    """A table at a location, with the columns that identify its rows, if known.

    `format` is the format of its files, None if the location is the name of a catalog table:
    `catalog.schema.table`. `newest` is the newest date of its clock. `options` are the reader
    options that a gate needs to read the values that were observed.
    """

    name: str
    place: str
    format: str | None
    rows: int
    columns: tuple[ObservedColumn, ...]
    key: tuple[str, ...] = ()
    newest: date | None = None
    options: Mapping[str, str] = field(default_factory=dict)

    @property
    def clock(self) -> str | None:
        """The column that probably has the creation time of a row."""
        times = [column.name for column in self.columns if family_of(column.type) is Family.TIME]
        return clock_among(times)


def is_personal(name: str, texts_look_personal: bool) -> bool:
    """Whether a column contains personal data, by its name or by the format of its strings."""
    return texts_look_personal or looks_personal(name)


# The form of texts -------------------------------------------------------------------------------

_LONGEST_TEXT = 40
_MOST_RUNS = 9
_DIGITS = "[0-9]"
_CLASSES = ((_DIGITS, str.isdigit), ("[A-Z]", str.isupper), ("[a-z]", str.islower))


def common_pattern(texts: list[str]) -> str | None:
    """The pattern of strings with a common structure that contains a number; None without one.

    >>> common_pattern(["M0001", "M0317"])
    '^M[0-9]{4}$'
    """
    if not all(text.isascii() and 0 < len(text) <= _LONGEST_TEXT for text in texts):
        return None
    runs = [[(kind, "".join(signs)) for kind, signs in groupby(text, _class_of)] for text in texts]
    kinds, *others = {tuple(kind for kind, _ in parts) for parts in runs} or {()}
    if others or _DIGITS not in kinds or len(kinds) > _MOST_RUNS:
        return None
    split = ([run for _, run in parts] for parts in runs)
    return f"^{''.join(map(_pattern_of, kinds, zip(*split, strict=True)))}$"


def _class_of(sign: str) -> str:
    return next((name for name, is_one in _CLASSES if is_one(sign)), sign)


def _pattern_of(kind: str, parts: Sequence[str]) -> str:
    """The pattern of adjacent characters of one class, in all strings."""
    if len(set(parts)) == 1 and (kind != _DIGITS or len(parts) == 1):
        return re.sub(r"[.^$*+?()\[\]{}|\\/]", r"\\\g<0>", parts[0])
    least = min(map(len, parts))
    most = max(map(len, parts))
    return kind + (f"{{{least}}}" if least == most else f"{{{least},{most}}}")


FIRST_VERSION = "0.1.0"


def draft(table: ObservedTable, dialect: elements.Dialect) -> elements.Contract:
    """The contract: what is true for all current rows, without what is specific to them."""
    key = tuple(map(elements.column_path, table.key))
    return elements.Contract(
        dialect,
        None,
        id=table.name,
        version=FIRST_VERSION,
        span=NOWHERE,
        name=table.name,
        models=(
            elements.Model(
                table.name,
                NOWHERE,
                tuple(_field(column, table) for column in table.columns),
                (_rule("primary_key", demands.Unique(key)),) if key else (),
                location=table.place.rpartition(".")[2] if table.format is None else None,
            ),
        ),
        servers=(_server(table),),
        lifecycle=elements.Lifecycle(status="draft", written_status="draft"),
    )


def _server(table: ObservedTable) -> elements.Server:
    if table.format is not None:
        return elements.Server("local", "local", NOWHERE, table.place, table.format)
    # The standards use this name for any catalog that Spark reads; they have no other word for it.
    schema = table.place.rpartition(".")[0]
    return elements.Server("catalog", "databricks", NOWHERE, f"{schema}.{{model}}")


def _field(column: ObservedColumn, table: ObservedTable) -> elements.Field:
    item = elements.Field(
        column.name,
        elements.column_path(column.name),
        None,
        NOWHERE,
        rules=tuple(_rule(name, demand) for name, demand in _demands(column, table)),
        is_key=column.name in table.key,
        is_sensitive=column.is_personal,
        classification="pii" if column.is_personal else None,
    )
    return with_type(item, column.type)


def _demands(column: ObservedColumn, table: ObservedTable) -> Iterator[tuple[str, demands.Demand]]:
    yield "exists", demands.Presence()
    yield "type", demands.OfType()
    if table.rows and column.nulls == 0:
        yield "required", demands.Required()
    # The minimum of an id is meaningless.
    if column.name not in table.key and not column.is_named_like_a_key:
        if column.lowest is not None:
            yield "minimum", demands.Bound(">=", column.lowest)
        if column.highest is not None:
            yield "maximum", demands.Bound("<=", column.highest)
    if column.pattern is not None:
        yield "pattern", demands.Pattern(column.pattern)
    if column.values:
        yield "enum", demands.OneOf(column.values)
    # The share of existing values in whole percents: the exact number is meaningless.
    percent = floor(100 * (table.rows - column.nulls) / table.rows) if table.rows else 0
    if column.nulls > 0 and percent > 0:
        yield "completeness", demands.Complete(elements.column_path(column.name), percent / 100)


def _rule(name: str, demand: demands.Demand) -> elements.Rule:
    return elements.Rule(name, demand, ())


def draft_suite(table: ObservedTable) -> str:
    """The text of a suite over a dataset with the name of the table: rows, keys, columns without
    NULL, and the age of the newest row. All observed rows satisfy it, except for their age."""
    complete = [column for column in table.columns if table.rows and column.nulls == 0]
    text = filled(
        __package__, "draft.dql", table=table, complete=complete, path=elements.column_path
    )
    return format_source(SourceFile(f"{table.name}.dql", text))


_DCS_VERSION = "1.2.1"
_DCS_TYPES = {"tinyint": "int", "smallint": "int", "binary": "bytes"}


def draft_text(table: ObservedTable, dialect: elements.Dialect) -> str:
    """The document. Observations that may become promises are in its comments."""
    contract = draft(table, dialect)
    comments = "".join(f"# {line}".rstrip() + "\n" for line in _comments(table))
    return comments + _WRITERS[dialect](contract)


def _comments(table: ObservedTable) -> Iterator[str]:
    rows = f"{table.rows} rows" if table.rows != 1 else "1 row"
    yield f"A draft from {table.place} ({table.format or 'a table'}, {rows})."
    yield "It shows the current data, not a promise: decide on every line, and describe what each"
    yield "column means, who owns the table, and how fresh it is."
    if table.clock is not None:
        yield f"Freshness: {table.clock} may show when a row was created."
    if not table.key and table.rows:
        yield "Key: no column or pair of columns identifies a row."
    for column in table.columns:
        if column.is_personal:
            name = column.name
            yield f"Personal: {name} looks like data about people, so its values are omitted."
        elif table.rows and column.nulls == table.rows:
            yield f"Empty: {column.name} is always NULL."


# Fabric ------------------------------------------------------------------------------------------


def _fabric(contract: elements.Contract) -> str:
    (model,) = contract.models
    (server,) = contract.servers
    completeness = [
        {"column": item.name, "min_pct": round(demand.share * 100)}
        for item in model.fields
        for rule in item.rules
        if isinstance(demand := rule.demand, demands.Complete)
    ]
    keys = [{"keys": names} for names in _keys(model)]
    quality = {"completeness": completeness, "uniqueness": keys}
    plain = {
        "id": contract.id,
        "version": contract.version,
        "status": "draft",
        "schema": {"columns": [_column(item) for item in model.fields]},
        "quality": without_empty(quality),
        "format": without_empty(
            {"storage": server.format, "table_name": _table_name(model, server)}
        ),
        "lifecycle": {"status": "draft"},
    }
    return yaml_text({"contract": without_empty(plain)})


def _table_name(model: elements.Model, server: elements.Server) -> str | None:
    """The table of a catalog; None for files."""
    if server.location is None or model.location is None:
        return None
    return server.location.replace("{model}", model.location)


def _keys(model: elements.Model) -> list[list[str]]:
    return [
        list(map(elements.plain_name, rule.demand.columns))
        for rule in model.rules
        if isinstance(rule.demand, demands.Unique)
    ]


def _column(item: elements.Field) -> dict[str, Any]:
    plain: dict[str, Any] = {
        "name": item.name,
        "type": spark_type(item),
        "nullable": item.is_nullable,
    }
    if item.classification is not None:
        plain["pii_classification"] = item.classification
    names = {"pattern": "regex", "enum": "enum", "minimum": "min", "maximum": "max"}
    return plain | _demanded(item, names)


def _demanded(item: elements.Field, names: dict[str, str]) -> dict[str, Any]:
    """The demands on values by their keys in a dialect."""
    plain: dict[str, Any] = {}
    for rule in item.rules:
        match rule.demand:
            case demands.Bound(value=value) | demands.Pattern(expression=value):
                plain[names[rule.name]] = value
            case demands.OneOf(values=values):
                plain[names[rule.name]] = list(values)
    return plain


# The Data Contract Specification -----------------------------------------------------------------


def _dcs(contract: elements.Contract) -> str:
    (model,) = contract.models
    (server,) = contract.servers
    keys = _keys(model)
    plain = {
        "dataContractSpecification": _DCS_VERSION,
        "id": contract.id,
        "info": {"title": contract.name, "version": contract.version, "status": "draft"},
        "servers": {server.name: _dcs_server(server)},
        "models": {
            model.name: without_empty(
                {
                    "type": "table",
                    "primaryKey": keys[0] if keys and len(keys[0]) > 1 else None,
                    "fields": {item.name: _dcs_field(item, keys) for item in model.fields},
                }
            )
        },
    }
    return yaml_text(plain)


def _dcs_server(server: elements.Server) -> dict[str, Any]:
    if server.format is not None:
        return {"type": server.type, "path": server.location, "format": server.format}
    catalog, *schema, _ = (server.location or "").split(".")
    return {"type": server.type, "catalog": catalog, "schema": ".".join(schema)}


def _dcs_field(item: elements.Field, keys: list[list[str]]) -> dict[str, Any]:
    plain = _dcs_type(item)
    if any(isinstance(rule.demand, demands.Required) for rule in item.rules):
        plain["required"] = True
    if [item.name] in keys:
        plain["primaryKey"] = True
    if item.is_sensitive:
        plain |= {"pii": True, "classification": item.classification}
    names = ("pattern", "enum", "minimum", "maximum")
    plain |= _demanded(item, {name: name for name in names})
    for rule in item.rules:
        if isinstance(rule.demand, demands.Complete):
            most = 100 - round(rule.demand.share * 100)
            metric = {"type": "library", "metric": "nullValues", "unit": "percent"}
            plain["quality"] = [metric | {"mustBeLessThanOrEqualTo": most}]
    return plain


def _dcs_type(item: elements.Field) -> dict[str, Any]:
    kind = item.type or "string"
    plain: dict[str, Any] = {"type": _DCS_TYPES.get(kind, kind)}
    if kind.startswith("decimal"):
        precision, scale = parts_of(kind)
        return {"type": "decimal", "precision": int(precision), "scale": int(scale)}
    if item.fields:
        plain["fields"] = {inner.name: _dcs_type(inner) for inner in item.fields}
    for name, part in (("items", item.items), ("keys", item.keys), ("values", item.values)):
        if part is not None:
            plain[name] = _dcs_type(part)
    return plain


_WRITERS: dict[elements.Dialect, Callable[[elements.Contract], str]] = {
    elements.Dialect.ODCS: lambda contract: odcs.document(contract).text,
    elements.Dialect.FABRIC: _fabric,
    elements.Dialect.DCS: _dcs,
}

DIALECTS = tuple(_WRITERS)


__all__ = ["DIALECTS", "ObservedColumn", "ObservedTable", "draft", "draft_text"]
