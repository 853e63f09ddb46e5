"""The settings of a `dqx.toml` that differ from an earlier version and decide what a gate lets
pass."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace

from dqx_airflow.datasets.dqx_toml import Positions, Settings
from dqx_airflow.dql import nodes
from dqx_airflow.results.past_days import PastDay
from dqx_airflow.tuning.suite_diff import ChangedSetting, turned_by_setting
from dqx_airflow.values import Severity
from dqx_airflow.values.redact import redact, secrets_of

FAIL_ON, ON_VIOLATION = "fail_on", "on_violation"
_DEFAULTS = (
    *(FAIL_ON, "allow_empty", "require_history", "trust_log", "ansi", "unsupported"),
    "max_clock_skew_hours",
)
_GATES = ("suite", "datasets", "allow_empty", FAIL_ON, ON_VIOLATION)
_OF_ALL = ("defaults", "reader", "contracts", "connection")
_SQL_CONF = "spark.sql."
"""The prefix of the settings of Spark that may change values, such as files that are ignored."""
_JUDGED = (FAIL_ON, ON_VIOLATION)
_BUILT_IN = {ON_VIOLATION: "fail"}
_SHOW_ONLY = frozenset({"columns", "masked", "lineage_name"})
"""The settings of a dataset that decide no verdict."""


@dataclass(frozen=True, slots=True)
class JudgedSuite:
    """A suite that a `dqx.toml` applies to, by its path without links, with its past days."""

    path: str
    suite: nodes.Suite
    days: tuple[PastDay, ...]


def changed_settings(old: Settings, new: Settings, file: str) -> tuple[ChangedSetting, ...]:
    """The settings that differ and may change verdicts, in the order of their names. A new gate
    or dataset changes nothing that was there.

    :param file: the path of the new version, in messages.
    """
    before = _deciding(old)
    after = _deciding(new)
    known = {key[:2] for key in before}
    positions = Positions(file, new.text)
    return tuple(
        ChangedSetting("", ".".join(key), before.get(key), after.get(key), positions.key(*key))
        for key in sorted({*before, *after})
        if before.get(key) != after.get(key) and (key[0] in _OF_ALL or key[:2] in known)
    )


def _deciding(settings: Settings) -> dict[tuple[str, ...], str]:
    """The settings that may change verdicts, as JSON, by their keys; without secrets."""
    found: dict[tuple[str, ...], object] = {}
    for name in _DEFAULTS:
        found["defaults", name] = getattr(settings.defaults, name)
    for gate in settings.gates:
        for name in _GATES:
            value = getattr(gate, name)
            if value is not None:
                found["gates", gate.name, name] = value
    for dataset, table in settings.datasets.items():
        for name, value in table.items():
            if name not in _SHOW_ONLY:
                found["datasets", dataset, name] = value
    for format, options in settings.reader.items():
        for name, option in options.items():
            found["reader", format, name] = option
    for variable in settings.variables:
        name, _, value = variable.partition("=")
        found["contracts", "variables", name] = value
    for name, value in settings.conf.items():
        if name.startswith(_SQL_CONF):
            found["connection", "conf", name] = value
    secrets = secrets_of({".".join(key): value for key, value in found.items()})
    return {
        key: redact(json.dumps(_plain(value), ensure_ascii=False, default=str), secrets)
        for key, value in found.items()
    }


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return {str(name): _plain(one) for name, one in sorted(value.items())}
    return str(value.value) if isinstance(value, Severity) else getattr(value, "value", value)


def judged_setting(
    change: ChangedSetting, old: Settings, new: Settings, suites: Collection[JudgedSuite]
) -> ChangedSetting:
    """The change, with the past days on which gates would have ended in another way."""
    turned: dict[str, set[str]] = {}
    known = 0
    if change.last not in _JUDGED or not change.name.startswith(("defaults.", "gates.")):
        reason = "stored values do not contain what the setting changes"
        days = len({day.date for one in suites for day in one.days})
        return replace(change, unknown={reason: max(1, days)})
    was = _value(change, old)
    becomes = _value(change, new)
    for judged in _concerned(change, new, suites):
        found = turned_by_setting(judged.suite, judged.days, change.last, was, becomes)
        known += len(judged.days)
        for turn, dates in found.items():
            turned.setdefault(turn, set()).update(dates)
    if not known:
        return replace(change, unknown={"no suite that it applies to has stored values": 1})
    return replace(
        change,
        turned={turn: tuple(sorted(dates)) for turn, dates in sorted(turned.items())},
        known=known,
    )


def _value(change: ChangedSetting, settings: Settings) -> str:
    """The value of a setting of a gate, or of all; of a gate without its own the default."""
    for gate in settings.gates:
        if gate.name == _gate_of(change):
            value = getattr(gate, change.last)
            if value is not None:
                return str(value)
    default = getattr(settings.defaults, change.last, None)
    return _BUILT_IN[change.last] if default is None else str(getattr(default, "value", default))


def _gate_of(change: ChangedSetting) -> str | None:
    """The name of the gate with a setting; None for a default."""
    kind, _, rest = change.name.partition(".")
    return rest.rpartition(".")[0] if kind == "gates" else None


def _concerned(
    change: ChangedSetting, settings: Settings, suites: Collection[JudgedSuite]
) -> Iterator[JudgedSuite]:
    """The suite of the gate with the setting; for a default, each suite but those whose gates all
    have a value of their own."""
    name = _gate_of(change)
    files = [(gate, os.path.realpath(settings.suite_of(gate))) for gate in settings.gates]
    for judged in suites:
        gates = [gate for gate, file in files if file == judged.path]
        if name is not None:
            is_concerned = name in {gate.name for gate in gates}
        else:
            own_values = [getattr(gate, change.last) for gate in gates]
            is_concerned = not gates or None in own_values
        if is_concerned:
            yield judged
