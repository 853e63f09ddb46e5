"""The section `quality` of DCS: checks in the language of another tool, for all models.

Later versions have rules in the `quality` of each model and field instead.
"""

from __future__ import annotations

from collections.abc import Iterator

from dqx_airflow.contracts import document
from dqx_airflow.contracts.dialects import foreign
from dqx_airflow.contracts.dialects.clause_reader import ClauseReader
from dqx_airflow.contracts.dialects.foreign import great_expectations, sodacl
from dqx_airflow.contracts.dialects.quality import parsed
from dqx_airflow.contracts.dialects.rule_names import RuleOfModel, slug
from dqx_airflow.contracts.model import Model
from dqx_airflow.errors import NoCounterpartError

_ABOUT = "checks for "
_IN_A_FILE = "checks in another file are not read: move them here"


def read_quality_section(reading: ClauseReader, models: tuple[Model, ...]) -> Iterator[RuleOfModel]:
    """The rules of the checks; the rest is unsupported."""
    quality = reading.root.get("quality")
    if not isinstance(quality, document.Mapping):
        reason = "not a valid quality section: move it to models.<model>.quality, as a list"
        reading.unsupported(quality, reason)
        return
    written = quality.text("type") or ""
    kind = slug(written)
    if kind not in _KINDS:
        reading.unsupported(quality, f"DQL has no counterpart for quality of type '{written}'")
        return
    reading.documented_keys(quality, "type", "description", reason="the format of the checks")
    specification = quality.get("specification")
    top = parsed(specification)
    if specification is None or not isinstance(top, document.Mapping) or "$ref" in top.entries:
        reading.unsupported(specification, _IN_A_FILE)
        return
    dialect = reading.sql_dialect
    translations = list(_translations(kind, specification, top, models, dialect))
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
    kind: str,
    specification: document.Node,
    top: document.Mapping,
    models: tuple[Model, ...],
    dialect: str | None,
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
        checks = parsed(entry.node)
        if model is None:
            reason = NoCounterpartError(f"the contract has no model {name}")
            yield name, carrier or entry.node, reason
        elif not isinstance(checks, document.Sequence):
            yield name, carrier or entry.node, NoCounterpartError(_IN_A_FILE)
        else:
            for check in checks.items:
                try:
                    for translation in _translated(kind, check, model, dialect):
                        yield name, carrier or check, translation
                except NoCounterpartError as error:
                    yield name, carrier or check, error


def _translated(
    kind: str, check: document.Node, model: Model, sql_dialect: str | None
) -> tuple[foreign.Translation, ...]:
    """The demands of a check on a model.

    :raises NoCounterpartError: there are none, or the model has no column for them.
    """
    written = document.plain_value(check)
    if kind in _SODA:
        translations = sodacl.translations_of(written, None, (model.name,), sql_dialect)
    elif isinstance(written, dict):
        translations = (great_expectations.translate(written, None, sql_dialect),)
    else:
        raise NoCounterpartError("not an expectation: write a mapping")
    for translation in translations:
        if not translation.has_place([item.path for item in model.fields]):
            raise NoCounterpartError(f"the model {model.name} has no field {translation.column}")
    return translations


_SODA = ("soda_cl", "sodacl")
_KINDS = (*_SODA, "great_expectations")
