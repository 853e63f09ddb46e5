"""`slaProperties`: what is promised of how old, how frequent and how lasting the data is."""

from __future__ import annotations

from collections.abc import Iterator

from dqx_airflow.contracts.dialects.odcs.context import Context
from dqx_airflow.contracts.dialects.odcs.elements import Element
from dqx_airflow.contracts.document import Mapping
from dqx_airflow.contracts.durations import seconds_of
from dqx_airflow.contracts.model import Arrives, Demand, Fresh, Retained, Rule

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
    *("timetodetect", "timetonotify", "timetorepair"),
)
_DATES = {"generalavailability", "endofsupport", "endoflife"}
_SAYING = ("value", "valueExt", "unit", "element")
_REMARKS = ("property", "driver", "description", "scheduler", "schedule")


def read_service(context: Context) -> Iterator[tuple[Element, Rule]]:
    """The rules that the service levels make, each with the property that it is about."""
    reading = context.reading
    reading.documented_keys(
        reading.root, "slaDefaultElement", reason="holds where a level names no element"
    )
    for level in reading.mappings(reading.root, "slaProperties"):
        context.document_remarks(level, *_REMARKS)
        kind = kind_of(context, level)
        if kind in _OF_THE_SERVICE:
            _mark(context, level, "of the service: no value of the data shows it")
        elif kind in _DATES:
            _mark(context, level, "a date in the life of the contract")
        elif kind in ("freshness", "latency", "retention", "frequency"):
            yield from _timed(context, level, kind)
        else:
            for key in ("property", *_SAYING):
                reading.unsupported(level.get(key), f"no rule is made of '{kind}'")


def kind_of(context: Context, level: Mapping) -> str:
    """The property of a service level by its long name, in lower case."""
    written = (context.reading.text(level, "property") or "").strip().lower()
    return _SYNONYMS.get(written, written)


def _mark(context: Context, level: Mapping, reason: str) -> None:
    context.reading.documented_keys(level, *_SAYING, reason=reason)


def _timed(context: Context, level: Mapping, kind: str) -> Iterator[tuple[Element, Rule]]:
    reading = context.reading
    seconds = _seconds(context, level, kind)
    written = reading.text(level, "element") or reading.text(reading.root, "slaDefaultElement")
    reason = None
    if seconds is None:
        reason = "this is no duration: write a number and a unit, such as `value: 24`, `unit: h`"
    elif written is None:
        reason = "of which property? add `element: object.property`"
    elif kind == "frequency" and reading.literal(level, "valueExt") not in (None, 1):
        reason = "the standard does not say what its valueExt means"
    if reason is not None or seconds is None or written is None:
        for key in _SAYING:
            reading.unsupported(level.get(key), str(reason))
        return
    nodes = [level.get(key) for key in _SAYING]
    elements = [context.elements.named(name.strip()) for name in written.split(",")]
    for wrong in (found for found in elements if isinstance(found, str)):
        for node in nodes:
            reading.unsupported(node, wrong)
        return
    for element in elements:
        if isinstance(element, Element):
            demand = _demand(kind, element.path, seconds)
            yield element, reading.rule(kind, demand, *nodes)


def _demand(kind: str, column: str, seconds: float) -> Demand:
    if kind == "retention":
        return Retained(column, seconds)
    return Arrives(column, seconds) if kind == "frequency" else Fresh(column, seconds)


def _seconds(context: Context, level: Mapping, kind: str) -> float | None:
    """The seconds of `value: 4`, `unit: d`; days without a unit. A value may be `P1Y` as well.

    `m` are months of a retention, and minutes of everything else.
    """
    reading = context.reading
    number, unit = reading.number(level, "value"), reading.text(level, "unit")
    if number is None:
        return seconds_of(reading.text(level, "value") or "")
    word = (unit or "d").strip().lower()
    if word == "m":
        word = "months" if kind == "retention" else "minutes"
    return seconds_of(f"{number} {word}")
