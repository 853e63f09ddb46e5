"""Service levels of the Data Contract Specification: freshness, retention, latency, frequency."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from dqx_airflow.contracts.demands import Arrives, Fresh, Prompt, Retained
from dqx_airflow.contracts.dialects.clause_reader import ClauseReader
from dqx_airflow.contracts.dialects.durations import duration_s
from dqx_airflow.contracts.dialects.frequencies import Frequency, frequency_of
from dqx_airflow.contracts.dialects.rule_names import RuleOfModel
from dqx_airflow.contracts.document import NOTHING, Mapping, Node, Scalar, show_path
from dqx_airflow.contracts.model import Model, Promise
from dqx_airflow.errors import NoCounterpartError

_LEEWAY = 0.1
"""The allowed difference, as a share, between an interval in words and the interval of a cron
expression: months vary."""
_OF_OPERATIONS = {
    "availability": "concerns the system, not the data",
    "support": "concerns people, not the data",
    "backup": "concerns copies of the data",
}
"""Service levels that data cannot violate, and why."""
_NO_FIELD = "field not found"
_NO_INTERVAL = "not an interval"
_CONTRADICTION = "unlimited contradicts the period"
_NEEDED = {
    "freshness": {"threshold"},
    "latency": {"threshold"},
    "retention": {"period"},
    "frequency": {"interval", "cron"},
}
"""The keys of the time of a service level: it needs one of them."""
_QUIET = ("description", "unlimited", "type", "timestampField")
"""Keys of service levels that state no time."""
Place: TypeAlias = "tuple[Model, str]"
"""A column of a model."""
Keys: TypeAlias = "tuple[str, ...]"
PlacedColumn: TypeAlias = "tuple[Model, str | None]"
"""A column of a model; None if the model has to determine it."""


@dataclass(frozen=True, slots=True)
class ServiceLevels:
    """The models that the service levels of a document refer to."""

    reading: ClauseReader
    models: tuple[Model, ...]

    def place(self, level: Mapping, key: str) -> Place:
        """The column of `model.field`.

        :raises NoCounterpartError: there is none.
        """
        written = level.text(key)
        if written is None:
            raise NoCounterpartError(f"needs a {key} to be checked")
        name, _, path = written.partition(".")
        for model in self.models:
            if model.name == name and model.field_at(path) is not None:
                return model, path
        # The name of a model may be left out if only one has such a field.
        having = [model for model in self.models if model.field_at(written) is not None]
        if len(having) != 1:
            raise NoCounterpartError(f"{_NO_FIELD} {written}")
        return having[0], written

    def timed(self, level: Mapping) -> PlacedColumn:
        """The column of the timestampField. Without one, the column of the only model (None: the
        model determines it), or the only timestamp of all models.

        :raises NoCounterpartError: the column does not exist.
        """
        if level.text("timestampField") is not None:
            return self.place(level, "timestampField")
        if len(self.models) == 1:
            return self.models[0], None
        columns = [
            (model, item.path)
            for model in self.models
            for item in model.fields
            if (item.type or "").startswith("timestamp")
        ]
        if len(columns) != 1:
            raise NoCounterpartError("the model is ambiguous: add a timestampField")
        return columns[0]

    def refuse(self, level: Mapping, keys: Iterable[str], reason: str) -> None:
        codes = {_NO_FIELD: "E420", _NO_INTERVAL: "E422", _CONTRADICTION: "E422"}
        code = next((codes[start] for start in codes if reason.startswith(start)), None)
        path = show_path(level.path)
        dimension = "conformity" if path.endswith("retention") else "timeliness"
        promise = Promise(path, path, dimension=dimension)
        for key in keys:
            self.reading.unsupported(level.get(key), reason, code, promise=promise)


def text_duration_s(reading: ClauseReader, node: Node | None) -> float | None:
    """The seconds of a duration. The schema reports a value that is not a string."""
    is_text = isinstance(node, Scalar) and isinstance(node.value, str)
    return duration_s(node, reading.report) if node is not None and is_text else None


def read_service_levels(levels: ServiceLevels, node: Mapping) -> Iterator[RuleOfModel]:
    """The rules of the service levels."""
    reading = levels.reading
    for name, entry in node.entries.items():
        level = reading.mapping(node, name)
        if level is NOTHING:
            reading.documented(entry.node, "in words alone")
            continue
        if name in _OF_OPERATIONS:
            reading.documented(level, _OF_OPERATIONS[name])
        reading.documented_keys(level, "description", reason="in words alone")
        if name in _NEEDED and _NEEDED[name].isdisjoint(level.entries):
            _refuse_without(levels, level, name)
        if name == "frequency":
            yield from _frequency(levels, level)
        elif name in _READERS:
            keys, read = _READERS[name]
            try:
                yield from read(levels, level, keys)
            except NoCounterpartError as error:
                levels.refuse(level, keys, str(error))


def _refuse_without(levels: ServiceLevels, level: Mapping, name: str) -> None:
    """Refuses a level without its time, whose other keys may state it. One in words alone, or
    without keys, promises nothing."""
    wanted = f"needs a {' or '.join(sorted(_NEEDED[name]))} to be checked"
    stating = [
        key for key in level.entries if key not in _QUIET and not key.lower().startswith("x-")
    ]
    if stating:
        levels.refuse(level, stating, wanted)
    elif "unlimited" not in level.entries:
        levels.reading.not_understood(level, wanted)


def _retention(levels: ServiceLevels, level: Mapping, keys: Keys) -> Iterator[RuleOfModel]:
    if level.truth("unlimited") and level.get("period") is not None:
        levels.refuse(level, ["unlimited", *keys], f"{_CONTRADICTION}: remove one of the two")
        return
    if level.truth("unlimited"):
        levels.reading.documented_keys(
            level, "unlimited", *keys, reason="unlimited: the data is never deleted"
        )
        return
    levels.reading.documented_keys(level, "unlimited", reason="demands nothing")
    yield from _age(levels, level, keys, "retention", Retained)


def _age(
    levels: ServiceLevels,
    level: Mapping,
    keys: Keys,
    name: str = "freshness",
    demand_of: Callable[[str | None, float], Fresh | Retained] = Fresh,
) -> Iterator[RuleOfModel]:
    """The rule for the age of a column.

    :param keys: the key of the duration, and the key of the column.
    """
    seconds = text_duration_s(levels.reading, level.get(keys[0]))
    model, column = levels.timed(level)
    demand = demand_of(column, _stated(seconds, level, keys[0]))
    yield model.name, None, levels.reading.rule(name, demand, *map(level.get, keys))


def _latency(levels: ServiceLevels, level: Mapping, keys: Keys) -> Iterator[RuleOfModel]:
    seconds = text_duration_s(levels.reading, level.get(keys[0]))
    (model, source), (other, processed) = (levels.place(level, key) for key in keys[1:])
    demand = Prompt(source, processed, _stated(seconds, level, keys[0]))
    if model is not other:
        raise NoCounterpartError("the two fields belong to different models")
    yield model.name, None, levels.reading.rule("latency", demand, *map(level.get, keys))


def _stated(seconds: float | None, level: Mapping, key: str) -> float:
    """The duration at a key.

    :raises NoCounterpartError: there is none.
    """
    if seconds is None:
        is_missing = level.get(key) is None
        wrong = f"needs a {key} to be checked" if is_missing else f"the {key} is not a duration"
        raise NoCounterpartError(wrong)
    return seconds


def _frequency(levels: ServiceLevels, level: Mapping) -> Iterator[RuleOfModel]:
    """The rules for new rows in every model, at the interval of `interval` and `cron`, which must
    agree."""
    reading = levels.reading
    reading.documented_keys(level, "type", reason="how the data is processed")
    stated = {key: _frequency_at(level, key) for key in ("interval", "cron")}
    if stated["interval"] is None:
        wanted = "write daily, hourly, `15 minutes` or a cron expression"
        levels.refuse(level, ["interval"], f"{_NO_INTERVAL}: {wanted}")
    if stated["cron"] is None:
        wanted = "a cron expression with five fields that sets an interval"
        levels.refuse(level, ["cron"], f"not {wanted}")
    understood = {key: found for key, found in stated.items() if found is not None}
    intervals = [found.interval_s for found in understood.values()]
    if intervals and max(intervals) - min(intervals) > _LEEWAY * intervals[0]:
        reason = "the interval and the cron expression contradict each other"
        levels.refuse(level, ["interval", "cron"], reason)
        return
    for found in list(understood.values())[-1:]:  # the cron expression is more precise
        for model in levels.models:
            demand = Arrives(None, found.interval_s, found.schedule)
            nodes = (level.get(key) for key in understood)
            yield model.name, None, reading.rule("frequency", demand, *nodes)


def _frequency_at(level: Mapping, key: str) -> Frequency | None:
    return frequency_of(level.text(key) or "")


_READERS: dict[
    str, tuple[Keys, Callable[[ServiceLevels, Mapping, Keys], Iterator[RuleOfModel]]]
] = {
    "freshness": (("threshold", "timestampField"), _age),
    "retention": (("period", "timestampField"), _retention),
    "latency": (("threshold", "sourceTimestampField", "processedTimestampField"), _latency),
}
