"""`slaProperties`: promises about the age, frequency and retention of the data."""

from __future__ import annotations

from collections.abc import Iterator

from dqx_airflow.contracts.demands import Arrives, Demand, Fresh, Retained
from dqx_airflow.contracts.dialects.durations import seconds_of
from dqx_airflow.contracts.dialects.odcs.context import OdcsContext
from dqx_airflow.contracts.dialects.odcs.elements import Element
from dqx_airflow.contracts.dialects.placed_rules import RuleOfModel
from dqx_airflow.contracts.model import Promise
from dqx_airflow.contracts.source.yaml_document import Mapping, show_path
from dqx_airflow.diagnostics.nearest import slip_of

_SYNONYMS = {
    "av": "availability",
    "th": "throughput",
    "er": "errorrate",
    "ga": "generalavailability",
    "es": "endofsupport",
    "el": "endoflife",
    "re": "retention",
    "fy": "frequency",
    "ly": "latency",
    "td": "timetodetect",
    "tn": "timetonotify",
    "tr": "timetorepair",
}
_OF_THE_SERVICE = (
    *("availability", "throughput", "errorrate"),
    *("timetodetect", "timetonotify", "timetorepair", "timeofavailability"),
)
_OF_THE_DATA = (
    *("accuracy", "completeness", "conformity", "consistency", "coverage", "timeliness"),
    *("uniqueness", "validity", "volume"),
)
"""What a rule of quality says; a service level of that name says it about nothing in particular."""
_DATES = {"generalavailability", "endofsupport", "endoflife"}
_TIMED = ("freshness", "latency", "retention", "frequency")
_SAYING = ("value", "valueExt", "unit", "element")
_REMARKS = ("property", "driver", "description", "scheduler", "schedule")


def read_service(context: OdcsContext) -> Iterator[RuleOfModel]:
    """The rules of the service levels."""
    reading = context.reading
    reading.documented_keys(
        reading.root, "slaDefaultElement", reason="applies to levels without an element"
    )
    for level in reading.mappings(reading.root, "slaProperties"):
        context.document_remarks(level, *_REMARKS)
        kind = kind_of(context, level)
        if kind in _OF_THE_SERVICE:
            _mark(context, level, "concerns the service: the data does not show it")
        elif kind in _DATES:
            _mark(context, level, "a lifecycle date of the contract")
        elif kind in _TIMED:
            yield from _timed(context, level, kind)
        elif meant := slip_of(kind, [*_SYNONYMS.values(), "freshness"]):
            hint = f"did you mean '{meant}'?"
            reading.not_understood(
                level.get("property"), f"unknown property '{kind}'", "E422", hint
            )
            _refuse(context, level, f"unknown property '{kind}': {hint}")
        elif kind in _OF_THE_DATA:
            _refuse(
                context,
                level,
                f"a service level '{kind}' does not name a rule: write it as `quality`",
            )
        else:
            reason = f"'{kind}' is not a property of the standard: {', '.join(_TIMED)} are checked"
            for key in ("property", *_SAYING):
                reading.not_understood(level.get(key), reason)


def kind_of(context: OdcsContext, level: Mapping) -> str:
    """The property of a service level by its long name, in lower case."""
    written = (context.reading.text(level, "property") or "").strip().lower()
    return _SYNONYMS.get(written, written)


def _mark(context: OdcsContext, level: Mapping, reason: str) -> None:
    context.reading.documented_keys(level, *_SAYING, reason=reason)


def _refuse(context: OdcsContext, level: Mapping, reason: str, code: str | None = None) -> None:
    path = show_path(level.path)
    dimension = "conformity" if kind_of(context, level) == "retention" else "timeliness"
    promise = Promise(path, path, dimension=dimension)
    for key in _SAYING:
        context.reading.unsupported(level.get(key), reason, code, promise=promise)


def _timed(context: OdcsContext, level: Mapping, kind: str) -> Iterator[RuleOfModel]:
    reading, objects = context.reading, context.elements.objects
    seconds = _seconds(context, level, kind)
    written = reading.text(level, "element") or reading.text(reading.root, "slaDefaultElement")
    if written is None and len(objects) == 1:
        written = objects[0]
    reason = None
    if seconds is None:
        reason = "not a duration: write a number and a unit, such as `value: 24`, `unit: h`"
    elif written is None:
        reason = "the property is ambiguous: add `element: object.property`"
    elif kind == "frequency" and reading.literal(level, "valueExt") not in (None, 1):
        reason = "the standard does not define its valueExt"
    if reason is not None or seconds is None or written is None:
        _refuse(context, level, str(reason))
        return
    nodes = [level.get(key) for key in _SAYING]
    names = [name.strip() for name in written.split(",")]
    elements = [name if name in objects else context.elements.named(name) for name in names]
    for wrong in (
        element for element in elements if isinstance(element, str) and element not in objects
    ):
        _refuse(context, level, wrong, "E420")
        return
    path: str | None
    for element in elements:
        if isinstance(element, Element):
            model, path = element.model, element.path
        else:
            model, path = element, None
        yield model, path, reading.rule(kind, _demand(kind, path, seconds), *nodes)


def _demand(kind: str, column: str | None, seconds: float) -> Demand:
    if kind == "retention":
        return Retained(column, seconds)
    return Arrives(column, seconds) if kind == "frequency" else Fresh(column, seconds)


def _seconds(context: OdcsContext, level: Mapping, kind: str) -> float | None:
    """The seconds of `value: 4`, `unit: d`; days without a unit. A value may also be `P1Y`.

    `m` are months for a retention, and minutes for everything else.
    """
    reading = context.reading
    number, unit = reading.number(level, "value"), reading.text(level, "unit")
    if number is None:
        return seconds_of(reading.text(level, "value") or "")
    word = (unit or "d").strip().lower()
    if word == "m":
        word = "months" if kind == "retention" else "minutes"
    return seconds_of(f"{number} {word}")
