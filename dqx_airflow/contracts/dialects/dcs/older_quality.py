"""The top-level `quality` of contracts of 0.9: SodaCL or Great Expectations for all models."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from dqx_airflow.contracts.dialects.clause_reader import ClauseReader
from dqx_airflow.contracts.dialects.dcs.quality import has_place
from dqx_airflow.contracts.dialects.foreign import Translation, great_expectations, sodacl
from dqx_airflow.contracts.dialects.naming import slug
from dqx_airflow.contracts.dialects.placed_rules import RuleOfModel
from dqx_airflow.contracts.model import Model
from dqx_airflow.contracts.source import yaml_document
from dqx_airflow.contracts.source.yaml_document import Mapping, Node, Scalar, Sequence, leaves
from dqx_airflow.values import SourceFile

_ABOUT = "checks for "
_IN_A_FILE = "checks in another file are not read: move them here"


def read_older_quality(reading: ClauseReader, models: tuple[Model, ...]) -> Iterator[RuleOfModel]:
    """The rules of the checks; the rest is unsupported."""
    quality = reading.root.get("quality")
    if not isinstance(quality, Mapping):
        reading.unsupported(
            quality, "not a valid quality section: move it to models.<model>.quality, as a list"
        )
        return
    written = reading.text(quality, "type") or ""
    kind = slug(written)
    if kind not in _TRANSLATORS:
        reading.unsupported(quality, f"DQL has no counterpart for quality of type '{written}'")
        return
    reading.documented_keys(quality, "type", "description", reason="the format of the checks")
    specification = quality.get("specification")
    top = _parsed(specification)
    if specification is None or not isinstance(top, Mapping) or "$ref" in top.entries:
        reading.unsupported(specification, _IN_A_FILE)
        return
    translations = list(_translations(kind, specification, top, models))
    # A text with several checks is a single clause: it is checked if all of them are.
    refused = {id(node): reason for _, node, reason in translations if isinstance(reason, str)}
    for model, node, translation in translations:
        if id(node) in refused or isinstance(translation, str):
            with reading.of_model(model):
                reading.unsupported(node, refused[id(node)])
            continue
        name = slug(translation.name or "") or translation.kind
        for demand in translation.demands:
            yield model, translation.column, reading.rule(name, demand, *leaves(node))


def _translations(
    kind: str, specification: Node, top: Mapping, models: tuple[Model, ...]
) -> Iterator[tuple[str, Node, Translation | str]]:
    """The demands of each check on a model, with its node."""
    for key, entry in top.entries.items():
        name = key.removeprefix(_ABOUT)
        model = next((model for model in models if model.name == name), None)
        carrier = next(
            (node for node in (specification, entry.node) if isinstance(node, Scalar)), None
        )
        checks = _parsed(entry.node)
        if model is None:
            yield name, carrier or entry.node, f"the contract has no model {name}"
        elif not isinstance(checks, Sequence):
            yield name, carrier or entry.node, _IN_A_FILE
        else:
            for check in checks.items:
                yield name, carrier or check, _translated(kind, check, model)


def _parsed(node: Node | None) -> Node | None:
    """A node, or the contents of a YAML or JSON string."""
    if isinstance(node, Scalar):
        return yaml_document.read_document(SourceFile("", node.text)).root
    return node


def _translated(kind: str, check: Node, model: Model) -> Translation | str:
    translation = _TRANSLATORS[kind](yaml_document.plain(check))
    paths = tuple(item.path for item in model.fields)
    if isinstance(translation, Translation) and not has_place(translation, paths):
        return f"the model {model.name} has no field {translation.column}"
    return translation


def _expectation(check: object) -> Translation | str:
    if not isinstance(check, dict):
        return "not an expectation: write a mapping"
    return great_expectations.translate(check, None)


_TRANSLATORS: dict[str, Callable[[object], Translation | str]] = {
    "soda_cl": sodacl.translate,
    "sodacl": sodacl.translate,
    "great_expectations": _expectation,
}
