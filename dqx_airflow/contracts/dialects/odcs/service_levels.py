"""Service levels of an ODCS document: the age, the frequency and the retention of its data."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial

from dqx_airflow.contracts.demands import Arrives, Demand, Fresh, Retained
from dqx_airflow.contracts.dialects.durations import seconds_of
from dqx_airflow.contracts.dialects.frequencies import Frequency, frequency_of
from dqx_airflow.contracts.dialects.odcs.elements import OdcsReading
from dqx_airflow.contracts.dialects.rule_names import RuleOfModel
from dqx_airflow.contracts.document import Mapping, show_path
from dqx_airflow.contracts.model import Promise
from dqx_airflow.diagnostics.diagnostic import slip_of
from dqx_airflow.errors import NoCounterpartError

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
"""The short names of the properties of service levels."""
_CHECKED = ("freshness", "latency", "retention", "frequency")
_OF_THE_SERVICE = (
    "availability",
    "throughput",
    "errorrate",
    "timetodetect",
    "timetonotify",
    "timetorepair",
    "timeofavailability",
)
_LIFECYCLE_DATES = ("generalavailability", "endofsupport", "endoflife")
DIMENSIONS = (
    "accuracy",
    "completeness",
    "conformity",
    "consistency",
    "coverage",
    "timeliness",
    "uniqueness",
)
"""The dimensions of the quality of data in the standard."""
_STATED_BY_RULES = (*DIMENSIONS, "validity", "volume")
"""Properties that a rule of `quality` can state; a service level does not name a rule."""
_VALUE_KEYS = ("value", "valueExt", "unit", "element")
_STANDARD_NAMES = {
    "endOfLife": ("endoflife", "eol", "sunset", "retirement", "decommission"),
    "retention": ("retention", "retain", "timetolive"),
    "frequency": ("frequency", "refreshinterval", "updateinterval", "loadinterval"),
    "latency": ("latency", "delay", "lag"),
    "freshness": ("fresh", "stale", "recen", "uptodate", "age"),
}
"""The properties that decide something, with what other names for them contain, without
separators."""
_WHOLE_WORDS = ("age", "lag", "eol")
"""Parts of names that count as whole words only: `coverage` is no age."""
_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_JOINED = re.compile(r"^(max|min|data|row|record|load)+(age|lag)$")
_NO_PERIOD = "not a duration: write a number and a unit, such as `value: 24`, `unit: h`"
_TWO_UNITS = (
    "its value and its unit differ: write a number as the value, such as `value: 24`, `unit: h`"
)
_LEADING = re.compile(r"\d+([.,]\d+)?")
_NO_INTERVAL = (
    "not an interval: write daily, hourly, a cron expression, or a number and a unit, such as "
    "`value: 24`, `unit: h`"
)


_NOT_IN_DATA = "concerns the service: the data does not show it"
_YEAR = re.compile(r"\d{4}")


def _is_text(level: Mapping) -> bool:
    """True for a text without a year, such as `Available 24/7`: converters write the availability
    of other formats as a date of the standard."""
    written = level.text("value")
    return written is not None and _YEAR.search(written) is None


def stated_date(reading: OdcsReading, level: Mapping, name: str) -> str | None:
    """The date of a level by which no contract ends; None for a text about the service. Another
    value that is not a date is reported."""
    return None if _is_text(level) else reading.lifecycle_date(level, "value", name, ends=False)


def read_service(reading: OdcsReading) -> Iterator[RuleOfModel]:
    """The rules of the service levels."""
    for level in reading.mappings(reading.root, "slaProperties"):
        reading.remarks(level, "ODCS: service level")
        kind = kind_of(level)
        if kind in _CHECKED:
            yield from _timed(reading, level, kind)
        elif kind in _OF_THE_SERVICE:
            reading.documented_keys(level, *_VALUE_KEYS, reason=_NOT_IN_DATA)
        elif kind in _LIFECYCLE_DATES:
            is_text = kind != "endoflife" and _is_text(level)
            reason = _NOT_IN_DATA if is_text else "a lifecycle date of the contract"
            reading.documented_keys(level, *_VALUE_KEYS, reason=reason)
            if kind == "endofsupport":
                stated_date(reading, level, "end of support")
        elif meant := slip_of(kind, [*_SYNONYMS.values(), "freshness"]):
            reason = f"unknown property '{kind}'"
            hint = f"did you mean '{meant}'?"
            reading.not_understood(level.get("property"), reason, "E422", hint)
            _refuse(reading, level, f"{reason}: {hint}")
        elif kind in _STATED_BY_RULES:
            reason = f"a service level '{kind}' does not name a rule: write it as `quality`"
            _refuse(reading, level, reason)
        elif meant := _standard_name(reading, level):
            reason = f"'{level.text('property')}' is not a property of the standard"
            hint = f"write `property: {meant}`"
            reading.not_understood(level.get("property"), reason, "E422", hint)
            _refuse(reading, level, f"{reason}: {hint}")
        else:
            reason = (
                f"'{kind}' is not a property of the standard: {', '.join(_CHECKED)} are checked"
            )
            for key in ("property", *_VALUE_KEYS):
                reading.not_understood(level.get(key), reason)


def kind_of(level: Mapping) -> str:
    """The property of a service level by its long name, in lower case."""
    written = (level.text("property") or "").strip().lower()
    return _SYNONYMS.get(written, written)


def _standard_name(reading: OdcsReading, level: Mapping) -> str | None:
    """The property of the standard that another name probably means: by its words, or by a time as
    the value about an element that holds times. None for other properties."""
    written = level.text("property") or ""
    words = {word.lower() for word in _WORDS.findall(written)}
    folded = re.sub(r"[^a-z]", "", written.lower())
    joined = _JOINED.match(folded)
    if joined is not None:
        words.add(joined[2])
    for name, parts in _STANDARD_NAMES.items():
        for part in parts:
            if part in words or (part in folded and part not in _WHOLE_WORDS):
                return name
    return "freshness" if _is_time_of_times(reading, level) else None


def _is_time_of_times(reading: OdcsReading, level: Mapping) -> bool:
    """True for a duration, or an interval, about an element that holds dates or timestamps."""
    value = level.text("value") or ""
    if level.number("value") is not None:
        is_time = level.text("unit") is not None and _seconds(level, "freshness") is not None
    else:
        is_time = frequency_of(value) is not None
    written = level.text("element") or reading.root.text("slaDefaultElement") or ""
    for name in written.split(","):
        try:
            element = reading.elements.named(name.strip())
        except NoCounterpartError:
            continue
        if is_time and element.is_time:
            return True
    return False


def _refuse(reading: OdcsReading, level: Mapping, reason: str, code: str | None = None) -> None:
    path = show_path(level.path)
    dimension = "conformity" if kind_of(level) == "retention" else "timeliness"
    promise = Promise(path, path, dimension=dimension)
    for key in _VALUE_KEYS:
        reading.unsupported(level.get(key), reason, code, promise=promise)


def _timed(reading: OdcsReading, level: Mapping, kind: str) -> Iterator[RuleOfModel]:
    demand_of = _demand_of(level, kind)
    if demand_of is None:
        _refuse(reading, level, _NO_INTERVAL if kind == "frequency" else _NO_PERIOD)
        return
    elements = level.text("element") or reading.root.text("slaDefaultElement")
    if elements is None and len(reading.elements.objects) == 1:
        elements = reading.elements.objects[0]
    if elements is None:
        _refuse(reading, level, "the property is ambiguous: add `element: object.property`")
        return
    if level.literal("valueExt") not in ((None, 1) if kind == "frequency" else (None,)):
        _refuse(reading, level, "the standard does not define its valueExt")
        return
    if not _agrees_with_unit(level, kind):
        _refuse(reading, level, _TWO_UNITS, "E422")
        return
    try:
        places = [_place_of(reading, name.strip()) for name in elements.split(",")]
    except NoCounterpartError as error:
        _refuse(reading, level, str(error), "E420")
        return
    nodes = [level.get(key) for key in _VALUE_KEYS]
    for model, path in places:
        yield model, path, reading.rule(kind, demand_of(path), *nodes)


def _agrees_with_unit(level: Mapping, kind: str) -> bool:
    """False for a value that has a unit of its own, as in `40d`, or an interval in words, next to
    another unit."""
    unit = level.text("unit")
    if unit is None or level.number("value") is not None:
        return True
    value = level.text("value") or ""
    number = _LEADING.match(value.strip())
    in_unit = _in_unit(number[0] if number is not None else "1", unit, kind)
    if kind == "frequency" and seconds_of(value) is None:
        stated = frequency_of(value)
        return in_unit is None or (stated is not None and stated.interval_s == in_unit)
    return in_unit == seconds_of(value)


def _place_of(reading: OdcsReading, name: str) -> tuple[str, str | None]:
    """The model and the column of an element; None for the column of an object.

    :raises NoCounterpartError: the element does not exist.
    """
    if name in reading.elements.objects:
        return name, None
    element = reading.elements.named(name)
    return element.model, element.path


def _demand_of(level: Mapping, kind: str) -> Callable[[str | None], Demand] | None:
    """The demand of a service level on a column; None if its value is not a time."""
    seconds = _seconds(level, kind)
    if kind == "frequency":
        stated = Frequency(seconds) if seconds is not None else None
        if stated is None and level.number("value") is None:
            stated = frequency_of(level.text("value") or "")
        if stated is None:
            return None
        return partial(Arrives, interval_s=stated.interval_s, schedule=stated.schedule)
    if seconds is None:
        return None
    if kind == "retention":
        return partial(Retained, period_s=seconds)
    return partial(Fresh, age_s=seconds)


def _seconds(level: Mapping, kind: str) -> float | None:
    """The seconds of `value: 4`, `unit: d`; days without a unit. A value may also be `P1Y`.

    `m` are months for a retention, and minutes for everything else.
    """
    number = level.number("value")
    if number is None:
        return seconds_of(level.text("value") or "")
    return _in_unit(str(number), level.text("unit") or "d", kind)


def _in_unit(number: str, unit: str, kind: str) -> float | None:
    """The seconds of a number of units; None if these are no units of time."""
    word = unit.strip().lower()
    if word == "m":
        word = "months" if kind == "retention" else "minutes"
    return seconds_of(f"{number} {word}")
