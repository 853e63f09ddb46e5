"""The gates of a `dqx.toml`, of which a DAG makes tasks with `gates_of`.

[gates.orders]
suite = "suites/sales/orders.dql"       # beside this file
datasets = ["orders", "customers_all"]  # names below [datasets]; by default that of the gate
group = "sales"                         # its task group in Airflow
owner = "team-sales"
asset = "s3://lake/sales/orders"        # which a pass updates
allow_empty = true                      # also fail_on and on_violation, as for a gate
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from dqx_airflow.datasets.settings import Mistake
from dqx_airflow.diagnostics.diagnostic import did_you_mean
from dqx_airflow.values import Severity
from dqx_airflow.values.blank import is_blank

_TEXTS = ("suite", "group", "owner", "asset")
_ON_VIOLATION = ("fail", "skip", "warn", "ask")
_NAME = re.compile(r"[\w.-]{1,249}")
"""The names of gates: the ids of tasks that Airflow allows."""

KEYS = (*_TEXTS, "datasets", "allow_empty", "fail_on", "on_violation")


@dataclass(frozen=True, slots=True)
class GateSettings:
    """A gate of a `dqx.toml`: what it judges, and where it belongs.

    :param suite: the path of its suite, relative to the file.
    :param datasets: the names of its datasets.
    :param allow_empty: None for the default of the file, like `fail_on` and `on_violation`.
    """

    name: str
    suite: str
    datasets: tuple[str, ...]
    group: str = ""
    owner: str = ""
    asset: str = ""
    allow_empty: bool | None = None
    fail_on: str | None = None
    on_violation: str | None = None


def gate_settings(
    name: str, table: Mapping[str, Any], datasets: Collection[str]
) -> tuple[GateSettings | None, list[Mistake]]:
    """A gate, None if it has mistakes, and everything that is wrong with it.

    :param table: the settings as written, whose keys are all in `KEYS`.
    :param datasets: the names of the datasets of the file.
    """
    mistakes = [*_mistakes(name, table, datasets)]
    if mistakes:
        return None, mistakes
    settings = {**table, "datasets": tuple(table.get("datasets", (name,)))}
    return GateSettings(name, **settings), []


def _mistakes(name: str, table: Mapping[str, Any], datasets: Collection[str]) -> Iterator[Mistake]:
    if _NAME.fullmatch(name) is None:
        hint = "write at most 249 letters, digits, '_', '-' and '.'"
        yield Mistake("", f"'{name}' cannot be the name of a gate", hint)
    if "suite" not in table:
        yield Mistake("", f"gate '{name}' has no suite", f'add suite = "{name}.dql"')
    for key in _TEXTS:
        if key in table and (not isinstance(table[key], str) or is_blank(table[key])):
            yield Mistake(key, f"'{key}' must be a string", f'write {key} = "..."')
    yield from _wrong_datasets(name, table.get("datasets", [name]), datasets)
    if not isinstance(table.get("allow_empty", False), bool):
        yield Mistake("allow_empty", "invalid value for 'allow_empty'", "write true or false")
    for key, words in (("fail_on", [*map(str, Severity)]), ("on_violation", _ON_VIOLATION)):
        if key in table and table[key] not in words:
            yield Mistake(key, f"invalid value for '{key}'", f"write one of {', '.join(words)}")


def _wrong_datasets(name: str, given: Any, datasets: Collection[str]) -> Iterator[Mistake]:
    if not isinstance(given, list) or not given or not all(isinstance(one, str) for one in given):
        yield Mistake("datasets", "'datasets' must be a list of names", f'write ["{name}"]')
        return
    for one in given:
        if one not in datasets:
            hint = did_you_mean(one, datasets) or f"add [datasets.{one}]"
            yield Mistake("datasets", f"no dataset '{one}'", hint)
