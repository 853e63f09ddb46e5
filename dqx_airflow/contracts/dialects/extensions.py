"""What several dialects write alike: extensions, names, sensitivity, addresses, renames.

An accepted clause, at its place, or in a list of the root whose items name a `clause`:

    quality:
      - type: custom
        engine: monte-carlo
        x-dqx-accepted: {owner: data-platform, reason: the vendor checks it}

How an incident is handled, and what was renamed:

    x-dqx-incident: {channel: "#orders", runbook: https://wiki.example.com/orders}
    x-dqx-renamed:
      - {model: purchases, from: orders}
      - {model: purchases, field: address.zip, from: address.postcode}

In ODCS, whose objects allow no additional keys, each is a custom property with this value.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from typing import TypeAlias

from dqx_airflow.contracts.column_paths import dotted_path
from dqx_airflow.contracts.dialects.clause_reader import ClauseReader
from dqx_airflow.contracts.model import Acceptance, Field, IncidentResponse, Model, Renamed, Rule
from dqx_airflow.contracts.source.yaml_document import (
    Mapping,
    Node,
    Path,
    Scalar,
    Sequence,
    leaves,
    show_path,
)
from dqx_airflow.diagnostics.diagnostic import Diagnostic, did_you_mean
from dqx_airflow.metrics.text_formats import TEXT_FORMATS


def at_the_top(reading: ClauseReader, key: str) -> Node | None:
    """The value of a key at the root or below `contract`, or of a custom property of that name."""
    if (node := reading.root.get(key)) is not None:
        return node
    for item in reading.mappings(reading.root, "customProperties"):
        if reading.text(item, "property") == key:
            return item.get("value")
    return reading.node(reading.mapping(reading.root, "contract"), key)


_LONGEST = 60


def slug(text: str) -> str:
    """A text as the name of a rule: `null_values` for `Null values!` and for `nullValues`."""
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    separated = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", plain)
    return re.sub(r"[^a-z0-9]+", "_", separated.lower())[:_LONGEST].strip("_")


def with_unique_names(rules: Iterable[Rule]) -> tuple[Rule, ...]:
    """The rules with unique names: the second `sql` becomes `sql_2`. Equal rules become one."""
    equal_rules: dict[Rule, list[Rule]] = {}
    for rule in rules:
        equal_rules.setdefault(rule, []).append(rule)
    taken: set[str] = set()
    renamed = []
    for rule, same in equal_rules.items():
        clauses = tuple(clause for duplicate in same for clause in duplicate.clauses)
        renamed.append(replace(rule, name=unique_name(rule.name, taken), clauses=clauses))
    return tuple(renamed)


def unique_name(wanted: str, taken: set[str]) -> str:
    """The name, with a number if it is taken already; it is added to those."""
    name, number = wanted, 1
    while name in taken:
        number += 1
        name = f"{wanted}_{number}"
    taken.add(name)
    return name


_HARMLESS = {"", "none", "public", "open", "unclassified", "unrestricted"}
_MARKS = {"pii", "phi", "pci", "gdpr", "sensitive", "confidential", "restricted", "secret"}
_PERSONAL = re.compile(
    r"(?i)(^|_)(e?mail(_address)?|phone(_number)?|ssn|tax_id|passport|iban|credit_card|birth_?date|"
    r"date_of_birth|first_name|last_name|full_name|surname)(_|$)"
)


def is_sensitive(classification: str | None, tags: Iterable[str] = ()) -> bool:
    """True for every classification except public, and for a tag such as `pii`."""
    classified = (classification or "").strip().lower() not in _HARMLESS
    return classified or any(tag.strip().lower() in _MARKS for tag in tags)


def looks_personal(name: str) -> bool:
    """True for names of columns with personal data: `email`, `birth_date`."""
    return _PERSONAL.search(name) is not None


PlacedRule: TypeAlias = "tuple[str | None, Rule]"
"""A rule with the path of its column; None for a rule about the model."""
RuleOfModel: TypeAlias = "tuple[str, str | None, Rule]"
"""A rule with its model and the path of its column; None for a rule about the model."""


def with_rules(fields: Iterable[Field], placed: Iterable[PlacedRule]) -> tuple[Field, ...]:
    """The fields with the rules about them."""
    rules_of: dict[str | None, list[Rule]] = {}
    for path, rule in placed:
        rules_of.setdefault(path, []).append(rule)
    return tuple(
        replace(item, rules=with_unique_names((*item.rules, *rules_of.get(item.path, ()))))
        for item in fields
    )


def rules_of_no_field(fields: Iterable[Field], placed: Iterable[PlacedRule]) -> Iterator[Rule]:
    """The rules about the model, and those for columns that it does not have."""
    paths = {item.path for item in fields}
    return (rule for path, rule in placed if path not in paths)


ACCEPTED = "x-dqx-accepted"
_CUSTOM = "customProperties"
_EXAMPLE = f"write `{ACCEPTED}: {{owner: data-platform, reason: ...}}`"


def read_acceptances(reading: ClauseReader, models: Collection[str]) -> tuple[Acceptance, ...]:
    """All acceptances of the document. One without an owner or a reason is reported and ignored.

    :param models: their names are the prefixes of the names of assertions.
    """
    acceptances = list(_within(reading, reading.root))
    known = [show_path(leaf.path) for leaf in leaves(reading.root)] if acceptances else []
    for acceptance in acceptances:
        is_name = any(acceptance.clause.startswith(f"{name}.") for name in models)
        if not is_name and not any(map(acceptance.covers, known)):
            message = f"cannot accept unknown clause '{acceptance.clause}'"
            help_line = "remove it, or use a clause path that `dql contract coverage` lists"
            reading.report(Diagnostic(message, acceptance.span, "W022", help=help_line))
    return tuple(acceptances)


def _within(reading: ClauseReader, node: Node) -> Iterator[Acceptance]:
    if isinstance(node, Sequence):
        for item in node.items:
            yield from _within(reading, item)
    if not isinstance(node, Mapping):
        return
    for key, entry in node.entries.items():
        if key == ACCEPTED:
            yield from _read(reading, entry.node, node.path)
        elif key == _CUSTOM:
            for item in reading.items(node, key):
                if isinstance(item, Mapping) and reading.text(item, "property") == ACCEPTED:
                    yield from _read(reading, item.get("value") or item, node.path)
        else:
            yield from _within(reading, entry.node)


def _read(reading: ClauseReader, node: Node, owner: Path) -> Iterator[Acceptance]:
    reading.documented(node, "records who accepts that a clause is not checked")
    for item in node.items if isinstance(node, Sequence) else (node,):
        mapping = item if isinstance(item, Mapping) else None
        clause = reading.text(mapping, "clause") or show_path(owner)
        accepted_by, reason = (_text_at(mapping, key) for key in ("owner", "reason"))
        if accepted_by and reason and clause:
            yield Acceptance(clause, reason, accepted_by, item.span)
            continue
        missing = "owner" if not accepted_by else "reason" if not reason else "clause"
        message = f"the acceptance has no {missing}"
        reading.report(Diagnostic(message, item.span, "E411", help=_EXAMPLE))


def _text_at(node: Mapping | None, key: str) -> str:
    child = node.get(key) if node is not None else None
    return " ".join(child.text.split()) if isinstance(child, Scalar) and child.value else ""


_FORMS = {
    "email": "write it as name@example.com",
    "uri": "write it with its scheme: https://example.com/page",
}
_SCHEMES = {
    "s3": ("s3", "s3a", "s3n"),
    "azure": ("abfss", "abfs", "az", "adl", "wasbs", "wasb", "https"),
    "gcs": ("gs", "gcs"),
    "local": ("file",),
}
_PLACEHOLDER = re.compile(r"\$\{|\{\{|^__\w+__$")
"""Placeholders that are replaced before the contract is used."""
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")


def check_address(reading: ClauseReader, owner: Mapping | None, key: str, kind: str) -> None:
    """Reports the value of a key, if it is not an `email` or `uri`."""
    written = reading.text(owner, key)
    if owner is None or written is None or _PLACEHOLDER.search(written):
        return
    address = written.strip().removeprefix("mailto:") if kind == "email" else written.strip()
    if re.fullmatch(TEXT_FORMATS[kind].pattern, address) is None:
        form = "e-mail address" if kind == "email" else "URL"
        reason = f"'{written}' is not a valid {form}"
        reading.mistaken(owner.get(key), "E426", reason, _FORMS[kind])


def check_location(reading: ClauseReader, server: Mapping, kind: str) -> None:
    """Reports the location of a file server that does not fit its type."""
    for key in ("location", "path"):
        written = reading.text(server, key)
        if written is None or kind not in _SCHEMES or written.lstrip().startswith(("{", "$")):
            continue
        match = _SCHEME.match(written.strip())
        scheme = match[1].lower() if match else None
        if scheme in _SCHEMES[kind] or (kind == "local" and scheme is None):
            continue
        named = f"begins with {scheme}://" if scheme else "has no scheme"
        wanted = "a path" if kind == "local" else f"{_SCHEMES[kind][0]}://..."
        reason = f"the location of a server of type {kind} {named}"
        reading.mistaken(server.get(key), "E426", reason, f"write {wanted}, or another type")


INCIDENT = "x-dqx-incident"


def with_extension(reading: ClauseReader, incident: IncidentResponse) -> IncidentResponse:
    """The information of the dialect, completed by the extension of the document."""
    node = at_the_top(reading, INCIDENT)
    extension = node if isinstance(node, Mapping) else None
    reading.documented(extension, "how incidents are handled")
    return replace(
        incident,
        channel=reading.text(extension, "channel") or incident.channel,
        runbook=reading.text(extension, "runbook") or incident.runbook,
        response=reading.text(extension, "response") or incident.response,
        business_hours=reading.text(extension, "business_hours") or incident.business_hours,
    )


RENAMED = "x-dqx-renamed"
_FORM = "write {model: orders, field: amount, from: total}"


def read_renames(reading: ClauseReader, models: Iterable[Model]) -> Iterator[Renamed]:
    """The renames of the document. Incomplete ones, and those of unknown elements, are reported and
    ignored."""
    node = at_the_top(reading, RENAMED)
    reading.documented(node, "renames since the previous version")
    known = {model.name: model for model in models}
    for item in node.items if isinstance(node, Sequence) else (node,) if node else ():
        mapping = item if isinstance(item, Mapping) else None
        model, path = reading.text(mapping, "model"), reading.text(mapping, "field")
        old = reading.text(mapping, "from")
        if model is None or old is None:
            missing = "model" if model is None else "from"
            message = f"the rename has no '{missing}'"
            reading.report(Diagnostic(message, item.span, "E405", help=_FORM))
        elif model not in known:
            message = f"unknown model '{model}'"
            hint = did_you_mean(model, known)
            reading.report(Diagnostic(message, item.span, "E420", help=hint))
        elif path is None:
            yield Renamed(model, None, old)
        else:
            column, before = dotted_path(path), dotted_path(old)
            if known[model].field_at(column) is None:
                hint = did_you_mean(path, [field.path for field in known[model].walk()])
                message = f"'{model}' has no field '{path}'"
                reading.report(Diagnostic(message, item.span, "E420", help=hint))
            else:
                yield Renamed(model, column, before)
