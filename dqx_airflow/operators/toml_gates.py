"""The gates of a `dqx.toml` as tasks of a DAG."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from airflow.providers.common.compat.sdk import Asset, TaskGroup
from airflow.providers.common.compat.sdk import conf as airflow_conf

from dqx_airflow.operators.dql_gate import DqlGateOperator
from dqx_airflow.operators.exceptions import GateMisconfiguredError

if TYPE_CHECKING:
    from dqx_airflow.datasets.dqx_toml import Settings
    from dqx_airflow.datasets.gate_settings import GateSettings
    from dqx_airflow.values import DatasetRef

Patterns: TypeAlias = "str | Sequence[str] | None"
_NOT_IN_IDS = re.compile(r"[^A-Za-z0-9_.-]+")
"""Characters that Airflow allows in no id."""

_EXAMPLE = 'write Path(__file__).with_name("dqx.toml")'


def gates_of(
    settings: str | os.PathLike[str],
    *,
    only: Patterns = None,
    exclude: Patterns = None,
    group_by: Literal["group", "owner"] | None = "group",
    **arguments: Any,
) -> dict[str, DqlGateOperator]:
    """A gate for each `[gates.NAME]` of a `dqx.toml`, in the current DAG.

        with DAG("lake_gates", schedule="@daily", start_date=datetime(2026, 1, 1)):
            gates = gates_of(Path(__file__).with_name("dqx.toml"))

    The task of a gate has its name. Datasets, `[defaults]` and `[reader]` are those of the file, so
    a gate judges what `dql run` judges. `results_root` of the file counts if Airflow has none. A
    gate with an `asset` updates it when it passes.

    :param settings: the path of the file: absolute, or relative to the working directory.
    :param only: patterns of names or groups, such as `sales*`: only gates that match one of them.
        Give one, a list, or several separated by commas.
    :param exclude: patterns of names or groups: no gates that match one of them.
    :param group_by: the task groups: by the `group` of gates, by their `owner`, or none.
    :param arguments: arguments of all gates, such as `certify_partitions=True` or `pool="spark"`.
        They take precedence over `[defaults]`, and the settings of a single gate over both.
    :return: the gates by their names.
    :raises GateMisconfiguredError: the file has a mistake, or no gate matches.
    """
    read = _read(settings)
    gates = [gate for gate in read.gates if _is_wanted(gate, _words(only), _words(exclude))]
    if not gates:
        what = "matches only and exclude" if read.gates else "in [gates]"
        raise GateMisconfiguredError(f"{read.path}: no gate {what}: add [gates.NAME], or change it")
    shared = {**_defaults(read), **arguments}
    datasets = _datasets(read, gates)
    tasks: dict[str, DqlGateOperator] = {}
    for group, members in _grouped(gates, group_by):
        with ExitStack() as opened:
            if group:
                opened.enter_context(_task_group(group))
            for gate in members:
                given = {name: _settings(datasets[name]) for name in gate.datasets}
                tasks[gate.name] = _task(gate, read.suite_of(gate), given, shared)
    return tasks


def _read(settings: str | os.PathLike[str]) -> Settings:
    """The settings of a file.

    :raises GateMisconfiguredError: they have mistakes, or cannot be read.
    """
    path = Path(settings).absolute()
    try:
        status = path.stat()
    except OSError as error:
        message = f"gates_of: cannot read {path}: {error.strerror}: {_EXAMPLE}"
        raise GateMisconfiguredError(message) from None
    read = _read_once(path, status.st_mtime_ns, status.st_size)
    severe = [problem for problem in read.problems if not problem.is_mild]
    if severe:
        texts = (f"{one.span.file}:{one.span.line}: {one.message}" for one in severe)
        raise GateMisconfiguredError("; ".join(texts))
    return read


@lru_cache(maxsize=16)
def _read_once(path: Path, _modified_ns: int, _size: int) -> Settings:
    """The settings of a file, which is read once in a process as long as it is unchanged."""
    from dqx_airflow.datasets.dqx_toml import read_settings

    return read_settings(path)


def _words(given: Patterns) -> tuple[str, ...]:
    """Patterns in an argument: one, a list, or several separated by commas."""
    if given is None:
        return ()
    parts = given.split(",") if isinstance(given, str) else given
    return tuple(part.strip() for part in parts)


def _is_wanted(gate: GateSettings, only: Sequence[str], exclude: Sequence[str]) -> bool:
    from fnmatch import fnmatchcase

    def matches(pattern: str) -> bool:
        return fnmatchcase(gate.name, pattern) or fnmatchcase(gate.group, pattern)

    return (not only or any(map(matches, only))) and not any(map(matches, exclude))


def _grouped(
    gates: Iterable[GateSettings], group_by: str | None
) -> Iterator[tuple[str, list[GateSettings]]]:
    """The gates by their group or owner, in the order of the file; empty without one."""
    if group_by not in ("group", "owner", None):
        message = f"gates_of: group_by={group_by!r}: write 'group', 'owner' or None"
        raise GateMisconfiguredError(message)
    members: dict[str, list[GateSettings]] = {}
    for gate in gates:
        group = "" if group_by is None else getattr(gate, group_by)
        members.setdefault(group, []).append(gate)
    yield from members.items()


def _task_group(name: str) -> TaskGroup:
    """A task group that is not part of the task ids: a gate that moves keeps its name, and its
    results."""
    group_id = f"group_{_NOT_IN_IDS.sub('_', name)}"
    return TaskGroup(group_id, prefix_group_id=False, group_display_name=name)


def _defaults(settings: Settings) -> dict[str, Any]:
    """The arguments of all gates that follow from the `[defaults]` of a file."""
    from dqx_airflow.values.request import SETTABLE_OPTIONS

    defaults = settings.defaults
    arguments: dict[str, Any] = {name: getattr(defaults, name) for name in SETTABLE_OPTIONS}
    arguments["fail_on"] = str(defaults.fail_on)
    arguments["trust_log"] = defaults.trust_log
    in_airflow = ("results_root", "results_conn_id")
    has_root = any(airflow_conf.get("dqx", key, fallback=None) for key in in_airflow)
    if settings.results_root is not None and not has_root:
        arguments["results_root"] = settings.results_root
    return arguments


def _task(
    gate: GateSettings, suite: str, datasets: dict[str, dict[str, Any]], shared: dict[str, Any]
) -> DqlGateOperator:
    arguments = dict(shared)
    for name in ("allow_empty", "fail_on", "on_violation"):
        if (own := getattr(gate, name)) is not None:
            arguments[name] = own
    if gate.owner:
        arguments["owner"] = gate.owner
    if gate.asset:
        arguments["outlets"] = [*arguments.get("outlets", ()), Asset(gate.asset)]
    return DqlGateOperator(task_id=gate.name, suite=suite, datasets=datasets, **arguments)


def _datasets(settings: Settings, gates: Iterable[GateSettings]) -> dict[str, DatasetRef]:
    """The datasets of gates, with the options of their formats and all masks of their files.

    :raises GateMisconfiguredError: one has no location.
    """
    refs = settings.refs
    wanted = {}
    for gate in gates:
        for name in gate.datasets:
            if name not in refs:
                message = f"{settings.path}: [datasets.{name}] has no path, table or query"
                raise GateMisconfiguredError(message)
            wanted[name] = refs[name]
    return settings.as_read(settings.with_given(wanted))


def _settings(ref: DatasetRef) -> dict[str, Any]:
    """The settings of a dataset that are not the usual ones."""
    from dqx_airflow.datasets.settings import settings_of
    from dqx_airflow.values import DatasetRef

    usual = settings_of(DatasetRef(ref.name))
    given = {key: value for key, value in settings_of(ref).items() if value != usual[key]}
    return {key: _plain(key, value) for key, value in {"format": ref.format, **given}.items()}


def _plain(key: str, value: Any) -> Any:
    """A setting as a DAG would write it: options as a mapping, columns as a list."""
    if key == "options":
        return dict(value)
    return list(value) if isinstance(value, tuple) else value
