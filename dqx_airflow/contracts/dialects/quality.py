"""The rules of `quality` in the two standards, DCS and ODCS."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

from dqx_airflow.contracts import demands as kinds
from dqx_airflow.contracts import document
from dqx_airflow.contracts.dialects import foreign
from dqx_airflow.contracts.dialects.clause_reader import ClauseReader
from dqx_airflow.contracts.dialects.foreign import great_expectations, soda
from dqx_airflow.contracts.dialects.library_metrics import NO_THRESHOLD, translate_metric
from dqx_airflow.contracts.dialects.rule_names import PlacedRule, RuleOfModel, slug
from dqx_airflow.contracts.dialects.servers import SQL_DIALECTS, sql_dialect_of
from dqx_airflow.contracts.model import Model, Promise
from dqx_airflow.contracts.yaml_reader import read_document
from dqx_airflow.diagnostics.diagnostic import did_you_mean, slip_of
from dqx_airflow.errors import NoCounterpartError
from dqx_airflow.values import SourceFile

_ABOUT = "checks for "
_IN_A_FILE = "checks in another file are not read: move them here"


def read_older_quality(reading: ClauseReader, models: tuple[Model, ...]) -> Iterator[RuleOfModel]:
    """The rules of the checks; the rest is unsupported."""
    quality = reading.root.get("quality")
    if not isinstance(quality, document.Mapping):
        reason = "not a valid quality section: move it to models.<model>.quality, as a list"
        reading.unsupported(quality, reason)
        return
    written = quality.text("type") or ""
    kind = slug(written)
    if kind not in _TRANSLATORS:
        reading.unsupported(quality, f"DQL has no counterpart for quality of type '{written}'")
        return
    reading.documented_keys(quality, "type", "description", reason="the format of the checks")
    specification = quality.get("specification")
    top = _parsed(specification)
    if specification is None or not isinstance(top, document.Mapping) or "$ref" in top.entries:
        reading.unsupported(specification, _IN_A_FILE)
        return
    translations = list(_translations(kind, specification, top, models))
    # A text with several checks is a single clause: it is checked if all of them are.
    refused = {
        id(node): read
        for _, node, read in translations
        if not isinstance(read, foreign.Translation)
    }
    for model, node, translation in translations:
        if id(node) in refused or not isinstance(translation, foreign.Translation):
            with reading.of_model(model):
                reading.unsupported(node, str(refused[id(node)]))
            continue
        name = slug(translation.name or "") or translation.kind
        for demand in translation.demands:
            yield model, translation.column, reading.rule(name, demand, *document.leaves(node))


def _translations(
    kind: str, specification: document.Node, top: document.Mapping, models: tuple[Model, ...]
) -> Iterator[tuple[str, document.Node, foreign.Translation | NoCounterpartError]]:
    """The demands of each check on a model, or the reason why there are none, with its node."""
    by_name = {model.name: model for model in models}
    for key, entry in top.entries.items():
        name = key.removeprefix(_ABOUT)
        model = by_name.get(name)
        carrier = None  # the text that contains all checks, if they are written as a text
        if isinstance(specification, document.Scalar):
            carrier = specification
        elif isinstance(entry.node, document.Scalar):
            carrier = entry.node
        checks = _parsed(entry.node)
        if model is None:
            reason = NoCounterpartError(f"the contract has no model {name}")
            yield name, carrier or entry.node, reason
        elif not isinstance(checks, document.Sequence):
            yield name, carrier or entry.node, NoCounterpartError(_IN_A_FILE)
        else:
            for check in checks.items:
                try:
                    yield name, carrier or check, _translated(kind, check, model)
                except NoCounterpartError as error:
                    yield name, carrier or check, error


def _parsed(node: document.Node | None) -> document.Node | None:
    """A node, or the contents of a YAML or JSON string."""
    if isinstance(node, document.Scalar):
        return read_document(SourceFile("", node.text)).root
    return node


def _translated(kind: str, check: document.Node, model: Model) -> foreign.Translation:
    """The demands of a check on a model.

    :raises NoCounterpartError: there are none, or the model has no column for them.
    """
    translation = _TRANSLATORS[kind](document.plain_value(check))
    paths = tuple(item.path for item in model.fields)
    if not has_place(translation, paths):
        raise NoCounterpartError(f"the model {model.name} has no field {translation.column}")
    return translation


def _expectation(check: object) -> foreign.Translation:
    if not isinstance(check, dict):
        raise NoCounterpartError("not an expectation: write a mapping")
    return great_expectations.translate(check, None)


_TRANSLATORS: dict[str, Callable[[object], foreign.Translation]] = {
    "soda_cl": soda.translate_sodacl,
    "sodacl": soda.translate_sodacl,
    "great_expectations": _expectation,
}
_REMARKS = ("type", "engine", "name", "id", "description", "dimension", "severity", "tags")
_ENGINES = {
    "soda": soda.translate,
    "great_expectations": great_expectations.translate,
    "greatexpectations": great_expectations.translate,
    "gx": great_expectations.translate,
}
_OF_A_FIELD = (kinds.Presence, kinds.Required, kinds.ValueDemand)
"""Demands that do not name their column."""
_IN_ARRAY = re.compile(r"\[\]|\{key\}|\{value\}")
_NoRules: TypeAlias = tuple[PlacedRule, ...]


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
        if (written := self.text("type")) is not None:
            return written
        signs = {"metric": "library", "query": "sql", "engine": "custom", "description": "text"}
        return next((kind for key, kind in signs.items() if key in self.node.entries), "")

    def refused(self, reason: str, code: str | None = None, help: str | None = None) -> _NoRules:
        """No rule: every leaf is unsupported, except for the name of the rule."""
        called = slug(self.text("name") or self.text("id") or "") or self.kind or "quality"
        promise = Promise(
            document.show_path(self.node.path),
            ".".join(filter(None, (self.reading.model, self.column, called))),
            self.reading.model,
            foreign.severity_of(self.text("severity")),
            self.text("dimension"),
            self.node.texts("tags"),
            self.text("id"),
        )
        for key, entry in self.node.entries.items():
            if key not in _REMARKS or key in ("type", "engine"):
                self.reading.unsupported(entry.node, reason, code, help, promise=promise)
        return ()


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
        readers = {"text": _text, "sql": _sql, "library": _library, "custom": _custom}
        if rule.kind not in readers:
            rule.refused(f"unknown type '{rule.kind}' of quality")
            continue
        try:
            yield from readers[rule.kind](rule)
        except NoCounterpartError as error:
            rule.refused(str(error))


def _text(rule: _Rule) -> Iterable[PlacedRule]:
    reason = "a description in words: no rule can be derived"
    rule.reading.documented(rule.node.get("description"), reason)
    return ()


def _sql(rule: _Rule) -> Iterable[PlacedRule]:
    query = rule.text("query")
    written = rule.text("dialect")
    if query is None:
        return rule.refused("it has no query: write `query: SELECT ...`", "E425")
    try:
        dialect = sql_dialect_of(written) if written is not None else rule.reading.sql_dialect
    except KeyError:
        hint = did_you_mean(str(written), SQL_DIALECTS)
        return rule.refused(f"unknown SQL dialect '{written}'", "E422", hint)
    compared = foreign.conditions(document.plain_value(rule.node))
    if not compared:
        return rule.refused(NO_THRESHOLD, "E425")
    demands = tuple(kinds.QueryGives(query.strip(), condition, dialect) for condition in compared)
    return _rules(rule, foreign.Translation("sql", demands, rule.column), "query", "dialect")


def _library(rule: _Rule) -> Iterable[PlacedRule]:
    translation = translate_metric(document.plain_value(rule.node), rule.column)
    return _rules(rule, translation, "metric", "rule", "arguments", "unit")


def _custom(rule: _Rule) -> Iterable[PlacedRule]:
    engine = rule.text("engine") or ""
    key = "specification" if "specification" in rule.node.entries else "implementation"
    translate = _ENGINES.get(slug(engine))
    if translate is None:
        reason = f"DQL has no counterpart for rules of the engine '{engine}'"
        meant = slip_of(engine, ["soda", "great-expectations"])
        code, hint = ("E422", f"did you mean '{meant}'?") if meant else (None, None)
        return rule.refused(reason, code, hint)
    check = _parsed(rule.node.get(key))
    if not isinstance(check, document.Mapping):
        return rule.refused(f"its {key} is not a mapping of {engine}")
    translation = translate(document.plain_value(check), rule.column, rule.reading.sql_dialect)
    return _rules(rule, translation, key)


def _rules(rule: _Rule, translation: foreign.Translation, *keys: str) -> Iterable[PlacedRule]:
    """The rules for the demands, with the values of the keys and the thresholds as their
    clauses.

    :raises NoCounterpartError: their column is not in the model.
    """
    if not has_place(translation, (*rule.fields, rule.column)):
        raise NoCounterpartError(f"the model has no top-level field {translation.column}")
    of_a_field = [isinstance(demand, _OF_A_FIELD) for demand in translation.demands]
    if _IN_ARRAY.search(translation.column or "") and not all(of_a_field):
        raise NoCounterpartError("the items of an array or a map are not counted over all rows")
    carrying: list[document.Node] = []
    for key, entry in rule.node.entries.items():
        is_threshold = foreign.is_threshold(key) and "engine" not in rule.node.entries
        if key in keys or is_threshold:
            carrying += _leaves_of(rule.reading, entry.node, translation.remarks)
    name = slug(rule.text("name") or rule.text("id") or translation.name or "") or translation.kind
    severity = foreign.severity_of(rule.text("severity")) or translation.severity
    placed = []
    for demand in translation.demands:
        made = replace(
            rule.reading.rule(name, demand, *carrying),
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


def has_place(translation: foreign.Translation, columns: Collection[str | None]) -> bool:
    """False if demands do not name their column, and there is none to move them to."""
    of_a_field = any(isinstance(demand, _OF_A_FIELD) for demand in translation.demands)
    return translation.column is None or translation.column in columns or not of_a_field
