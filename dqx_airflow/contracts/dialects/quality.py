"""The rules in the `quality` of a model or a field, in the two standards, DCS and ODCS.

`read_quality` finds the reader for the type of a rule: text, sql, library or custom. A reader
returns the rules of its demands, or raises an error, and then all clauses of the rule are
unsupported.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from dqx_airflow.contracts import demands as kinds
from dqx_airflow.contracts import document
from dqx_airflow.contracts.dialects import foreign
from dqx_airflow.contracts.dialects.clause_reader import ClauseReader
from dqx_airflow.contracts.dialects.foreign import great_expectations, sodacl
from dqx_airflow.contracts.dialects.library_metrics import NO_THRESHOLD, translate_metric
from dqx_airflow.contracts.dialects.rule_names import PlacedRule, slug
from dqx_airflow.contracts.dialects.servers import SQL_DIALECTS, sql_dialect_of
from dqx_airflow.contracts.model import Promise
from dqx_airflow.contracts.yaml_reader import read_document
from dqx_airflow.diagnostics.diagnostic import did_you_mean, slip_of
from dqx_airflow.errors import NoCounterpartError
from dqx_airflow.values import SourceFile

_REMARKS = ("type", "engine", "name", "id", "description", "dimension", "severity", "tags")
_IMPLIED_TYPES = {"metric": "library", "query": "sql", "engine": "custom", "description": "text"}
"""The type of a rule that has none, by the first of these keys that it has."""
_SODA = ("soda", "soda_cl", "sodacl")
_GREAT_EXPECTATIONS = ("great_expectations", "greatexpectations", "gx")
_IN_ARRAY = re.compile(r"\[\]|\{key\}|\{value\}")


class _InvalidRuleError(NoCounterpartError):
    """A rule is wrong in any tool. `code` is the code of the mistake, `help` its correction."""

    def __init__(self, problem: str, code: str | None, help: str | None = None) -> None:
        super().__init__(problem)
        self.code = code
        self.help = help


@dataclass(frozen=True, slots=True)
class _Rule:
    """A rule of `quality` that is being read.

    `column` is the column of its field, `fields` are the fields that the rule may be moved to.
    """

    reading: ClauseReader
    node: document.Mapping
    column: str | None
    fields: tuple[str, ...]

    def text(self, key: str) -> str | None:
        return self.node.text(key)

    @property
    def kind(self) -> str:
        """The type of the rule; if it is left out, the type implied by the other keys."""
        written = self.text("type")
        if written is not None:
            return written
        for key, kind in _IMPLIED_TYPES.items():
            if key in self.node.entries:
                return kind
        return ""

    @property
    def name(self) -> str:
        """The name, or else the identifier, in the form of a name in DQL; empty without both."""
        return slug(self.text("name") or self.text("id") or "")

    def refuse(self, reason: str, code: str | None = None, help: str | None = None) -> None:
        """Marks every clause as unsupported, except for the remarks on the rule."""
        parts = (self.reading.model, self.column, self.name or self.kind or "quality")
        promise = Promise(
            document.show_path(self.node.path),
            name=".".join(part for part in parts if part),
            model=self.reading.model,
            severity=foreign.severity_of(self.text("severity")),
            dimension=self.text("dimension"),
            tags=self.node.texts("tags"),
            id=self.text("id"),
        )
        for key, entry in self.node.entries.items():
            if key not in _REMARKS or key in ("type", "engine"):
                self.reading.unsupported(entry.node, reason, code, help, promise=promise)


def read_quality(
    reading: ClauseReader, owner: document.Mapping, column: str | None, fields: tuple[str, ...] = ()
) -> Iterator[PlacedRule]:
    """The rules in the `quality` of a model with these fields, or of the field with this column."""
    quality = owner.get("quality")
    if isinstance(quality, document.Mapping):
        reading.unsupported(quality, "quality is a list: put a dash before each rule")
    for node in reading.mappings(owner, "quality"):
        rule = _Rule(reading, node, column, fields)
        reading.documented_keys(node, *_REMARKS, reason="the name and description of a rule")
        if foreign.severity_of(rule.text("severity")) is None:
            hint = "unknown severity: write critical, error, warning or info"
            reading.not_understood(node.get("severity"), hint, "E422")
        reader = _READERS.get(rule.kind)
        if reader is None:
            rule.refuse(f"unknown type '{rule.kind}' of quality")
            continue
        try:
            yield from reader(rule)
        except _InvalidRuleError as error:
            rule.refuse(str(error), error.code, error.help)
        except NoCounterpartError as error:
            rule.refuse(str(error))


def parsed(node: document.Node | None) -> document.Node | None:
    """A node, or the contents of a YAML or JSON string."""
    if isinstance(node, document.Scalar):
        return read_document(SourceFile("", node.text)).root
    return node


def _text(rule: _Rule) -> list[PlacedRule]:
    reason = "a description in words: no rule can be derived"
    rule.reading.documented_keys(rule.node, "description", "unit", reason=reason)
    return []


def _sql(rule: _Rule) -> list[PlacedRule]:
    query = rule.text("query")
    if query is None:
        raise _InvalidRuleError("it has no query: write `query: SELECT ...`", "E425")
    dialect = rule.reading.sql_dialect
    written = rule.text("dialect")
    if written is not None:
        try:
            dialect = sql_dialect_of(written)
        except KeyError:
            hint = did_you_mean(written, SQL_DIALECTS)
            raise _InvalidRuleError(f"unknown SQL dialect '{written}'", "E422", hint) from None
    conditions = foreign.conditions(document.plain_value(rule.node))
    if not conditions:
        raise _InvalidRuleError(NO_THRESHOLD, "E425")
    rule.reading.documented(rule.node.get("unit"), "what the query counts")
    demands = tuple(kinds.QueryGives(query.strip(), condition, dialect) for condition in conditions)
    return _rules(rule, foreign.Translation("sql", demands, rule.column), "query", "dialect")


def _library(rule: _Rule) -> list[PlacedRule]:
    translation = translate_metric(document.plain_value(rule.node), rule.column)
    return _rules(rule, translation, "metric", "rule", "arguments", "unit")


def _custom(rule: _Rule) -> list[PlacedRule]:
    engine = rule.text("engine") or ""
    if slug(engine) not in (*_SODA, *_GREAT_EXPECTATIONS):
        reason = f"DQL has no counterpart for rules of the engine '{engine}'"
        meant = slip_of(engine, ["soda", "great-expectations"])
        if meant is None:
            raise NoCounterpartError(reason)
        raise _InvalidRuleError(reason, "E422", f"did you mean '{meant}'?")
    key = "specification" if "specification" in rule.node.entries else "implementation"
    check = parsed(rule.node.get(key))
    if check is not None and slug(engine) in _SODA:
        return _soda(rule, check, key)
    if not isinstance(check, document.Mapping):
        raise NoCounterpartError(f"its {key} is not a mapping of {engine}")
    dialect = rule.reading.sql_dialect
    translation = great_expectations.translate(document.plain_value(check), rule.column, dialect)
    return _rules(rule, translation, key)


def _soda(rule: _Rule, checks: document.Node, key: str) -> list[PlacedRule]:
    """The rules of checks of Soda in any form: all of them, or none if one has no counterpart."""
    written, dialect = document.plain_value(checks), rule.reading.sql_dialect
    translations = sodacl.translations_of(written, rule.column, _names(rule.reading), dialect)
    if not translations:
        raise NoCounterpartError(f"its {key} has no checks")
    return [placed for one in translations for placed in _rules(rule, one, key)]


def _names(reading: ClauseReader) -> tuple[str, ...]:
    """The name of the model, and in ODCS the name of its table."""
    objects = reading.root.get("schema")
    listed = objects.items if isinstance(objects, document.Sequence) else ()
    names = [reading.model or ""]
    for item in listed:
        if isinstance(item, document.Mapping) and item.text("name") == reading.model:
            names.append(item.text("physicalName") or "")
    return tuple(name for name in names if name)


_READERS = {"text": _text, "sql": _sql, "library": _library, "custom": _custom}


def _rules(rule: _Rule, translation: foreign.Translation, *keys: str) -> list[PlacedRule]:
    """The rules for the demands, with the values of the keys and the thresholds as their
    clauses.

    :raises NoCounterpartError: their column is not in the model.
    """
    if not translation.has_place((*rule.fields, rule.column)):
        raise NoCounterpartError(f"the model has no top-level field {translation.column}")
    is_in_array = _IN_ARRAY.search(translation.column or "") is not None
    if is_in_array and not translation.is_about_each_value:
        raise NoCounterpartError("the items of an array or a map are not counted over all rows")
    clauses: list[document.Node] = []
    for key, entry in rule.node.entries.items():
        is_threshold = foreign.is_threshold(key) and rule.kind != "custom"
        if key in keys or is_threshold:
            clauses += _leaves_of(rule.reading, entry.node, translation.remarks)
    name = rule.name or slug(translation.name or "") or translation.kind
    severity = foreign.severity_of(rule.text("severity")) or translation.severity
    placed = []
    for demand in translation.demands:
        made = replace(
            rule.reading.rule(name, demand, *clauses),
            severity=severity,
            dimension=rule.text("dimension"),
            description=rule.text("description"),
            tags=rule.node.texts("tags"),
            share=translation.share,
            id=rule.text("id"),
        )
        placed.append((translation.column, made))
    return placed


def _leaves_of(
    reading: ClauseReader, node: document.Node, remarks: tuple[str, ...]
) -> Iterator[document.Node]:
    """The leaves of a value of a rule; the values of the remarks in it are documented instead."""
    if not isinstance(node, document.Mapping):
        yield from document.leaves(node)
        return
    reading.documented_keys(node, *remarks, reason="a remark")
    for key, entry in node.entries.items():
        if key not in remarks:
            yield from document.leaves(entry.node)
