"""The gates of a `dqx.toml` as tasks of a DAG."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from airflow.providers.common.compat.sdk import Asset, TaskGroup
from airflow.providers.common.compat.sdk import conf as airflow_conf

from dqx_airflow.diagnostics.diagnostic import did_you_mean
from dqx_airflow.operators.dql_gate import DqlGateOperator
from dqx_airflow.operators.exceptions import GateMisconfiguredError, as_misconfigured
from dqx_airflow.values.name_patterns import Patterns, name_patterns

if TYPE_CHECKING:
    from dqx_airflow.datasets.dqx_toml import Settings
    from dqx_airflow.datasets.gate_settings import GateSettings
    from dqx_airflow.values import DatasetRef

_NOT_IN_IDS = re.compile(r"[^A-Za-z0-9_.-]+")
"""Characters that Airflow allows in no id."""

_EXAMPLE = 'write Path(__file__).with_name("dqx.toml")'


def gates_of(
    settings: str | os.PathLike[str],
    *,
    only: Patterns = None,
    exclude: Patterns = None,
    group_by: Literal["group", "owner"] | None = "group",
    batch: bool | Mapping[str, Any] = False,
    **arguments: Any,
) -> dict[str, DqlGateOperator]:
    """Returns a gate for each `[gates.NAME]` of a `dqx.toml`, in the current DAG.

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
    :param batch: checks the gates in one Spark, before their tasks begin, by a `GateBatchOperator`
        with the task id `gate_batch`. A mapping gives it arguments, such as `{"at_once": 2,
        "driver_memory": "4g"}`; it has those of the gates for Spark.
    :param arguments: arguments of all gates, such as `certify_partitions=True` or `pool="spark"`.
        They take precedence over `[defaults]`, and the settings of a single gate over both.
    :return: the gates by their names.
    :raises GateMisconfiguredError: the file has a mistake, or a pattern of `only` matches no gate.
    """
    read = _read(settings)
    with as_misconfigured():
        wanted = name_patterns("gates_of: only", only)
        unwanted = name_patterns("gates_of: exclude", exclude)
    gates = _chosen(read, wanted, unwanted)
    shared = {**_defaults(read), **arguments}
    datasets = _datasets(read, gates)
    tasks: dict[str, DqlGateOperator] = {}
    names = {gate.name for gate in gates}
    for group, members in _grouped(gates, group_by):
        with ExitStack() as opened:
            if group:
                opened.enter_context(_task_group(group, names))
            for gate in members:
                given = {name: _settings(datasets[name]) for name in gate.datasets}
                tasks[gate.name] = _task(read, gate, given, shared)
    if batch is not False:
        _batch(tasks, batch, arguments)
    return tasks


_BATCH = "gate_batch"
_OF_EACH_GATE = ("outlets", "inlets", "execution_timeout", "owner", "doc_md", "trigger_rule")
"""Arguments of tasks that are about a gate, and not about the Spark that judges it."""


def _batch(
    gates: Mapping[str, DqlGateOperator],
    given: bool | Mapping[str, Any],
    arguments: Mapping[str, Any],
) -> None:
    """The batch before some gates, with their arguments for Spark.

    :raises GateMisconfiguredError: `batch` is neither a truth value nor a mapping.
    """
    from dqx_airflow.operators.gate_batch import GateBatchOperator

    if given is not True and not isinstance(given, Mapping):
        message = f"gates_of: batch={given!r}: write True, or a mapping of arguments"
        raise GateMisconfiguredError(message)
    own: dict[str, Any] = {"task_id": _BATCH}
    for name, value in arguments.items():
        is_of_gates = name in DqlGateOperator.checked_arguments and name not in ("submit", "conf")
        if not is_of_gates and name not in _OF_EACH_GATE and not name.startswith("on_"):
            own[name] = value
    own.pop("deferrable", None)
    own.update({} if given is True else given)
    GateBatchOperator(gates=gates.values(), **own)


def _read(settings: str | os.PathLike[str]) -> Settings:
    """The settings of a file.

    :raises GateMisconfiguredError: they have mistakes, or cannot be read.
    """
    from dqx_airflow.datasets.dqx_toml import LARGEST_FILE
    from dqx_airflow.values.files import first_bytes

    path = Path(settings).absolute()
    try:
        content = first_bytes(path, LARGEST_FILE + 1)
    except OSError as error:
        message = f"gates_of: cannot read {path}: {error.strerror or error}: {_EXAMPLE}"
        raise GateMisconfiguredError(message) from None
    read = _read_once(path, content)
    if read.error_message:
        raise GateMisconfiguredError(read.error_message)
    return read


@lru_cache(maxsize=16)
def _read_once(path: Path, _content: bytes) -> Settings:
    """The settings of a file, which is parsed once in a process as long as its bytes are the same:
    an edit may keep its size and its time."""
    from dqx_airflow.datasets.dqx_toml import read_settings

    return read_settings(path)


def _chosen(read: Settings, only: Sequence[str], exclude: Sequence[str]) -> list[GateSettings]:
    """The gates that match.

    :raises GateMisconfiguredError: there are none, or a pattern of `only` matches none: a misspelt
        name would leave a gate out.
    """
    if not read.gates:
        raise GateMisconfiguredError(f"{read.path}: no gate in [gates]: add [gates.NAME]")
    for pattern in only:
        if not any(_matches(gate, pattern) for gate in read.gates):
            message = f"{read.path}: no gate or group matches only={pattern!r}"
            hint = did_you_mean(pattern, [gate.name for gate in read.gates]) or "change it"
            raise GateMisconfiguredError(f"{message}: {hint}")
    chosen = [
        gate
        for gate in read.gates
        if (not only or any(_matches(gate, pattern) for pattern in only))
        and not any(_matches(gate, pattern) for pattern in exclude)
    ]
    if not chosen:
        message = f"{read.path}: no gate matches only and exclude: change them"
        raise GateMisconfiguredError(message)
    return chosen


def _matches(gate: GateSettings, pattern: str) -> bool:
    return fnmatchcase(gate.name, pattern) or fnmatchcase(gate.group, pattern)


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


def _task_group(name: str, gates: Collection[str]) -> TaskGroup:
    """A task group that is not part of the task ids: a gate that moves keeps its name, and its
    results. Its id is new in the DAG, also if names differ only in characters that no id has."""
    group_id = f"group_{_NOT_IN_IDS.sub('_', name)}"
    while group_id in gates:
        group_id += "_"
    return TaskGroup(
        group_id, prefix_group_id=False, group_display_name=name, add_suffix_on_collision=True
    )


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
    read: Settings, gate: GateSettings, datasets: dict[str, dict[str, Any]], shared: dict[str, Any]
) -> DqlGateOperator:
    arguments = dict(shared)
    for name in ("allow_empty", "fail_on", "on_violation"):
        if (own := getattr(gate, name)) is not None:
            arguments[name] = own
    if gate.owner:
        arguments["owner"] = gate.owner
    if gate.asset:
        arguments["outlets"] = [*(arguments.get("outlets") or ()), _asset(read, gate)]
    suite = read.suite_of(gate)
    return DqlGateOperator(task_id=gate.name, suite=suite, datasets=datasets, **arguments)


def _asset(read: Settings, gate: GateSettings) -> Asset:
    """:raises GateMisconfiguredError: Airflow refuses the URI."""
    from dqx_airflow.datasets.dqx_toml import Positions

    try:
        return Asset(gate.asset)
    except ValueError as error:
        line = Positions(str(read.path), read.text).value("gates", gate.name, "asset").line
        message = f"{read.path}:{line}: invalid value for 'asset': {error}"
        raise GateMisconfiguredError(message) from error


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
    from dqx_airflow.datasets.settings import SETTINGS

    usual = _usual()
    given: dict[str, Any] = {"format": ref.format}
    for key in SETTINGS:
        value = getattr(ref, key)
        if value != getattr(usual, key):
            given[key] = _plain(key, value)
    return given


@lru_cache(maxsize=1)
def _usual() -> DatasetRef:
    from dqx_airflow.values import DatasetRef

    return DatasetRef("")


def _plain(key: str, value: Any) -> Any:
    """A setting as a DAG would write it: options as a mapping, columns as a list."""
    if key == "options":
        return dict(value)
    return list(value) if isinstance(value, tuple) else value
