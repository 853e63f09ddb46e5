"""The gates of a `dqx.toml` as tasks of a DAG."""

from __future__ import annotations

import hashlib
import os
import re
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from airflow.providers.common.compat.sdk import Asset, TaskGroup
from airflow.providers.common.compat.sdk import conf as airflow_conf
from airflow.sdk import get_parsing_context

from dqx_airflow.datasets.name_patterns import Patterns, is_match, name_patterns, unmatched
from dqx_airflow.operators.dql_gate import DqlGateOperator
from dqx_airflow.operators.exceptions import GateMisconfiguredError, as_misconfigured
from dqx_airflow.operators.parse_notes import note, noted, notes_on

if TYPE_CHECKING:
    from dqx_airflow.datasets.dqx_toml import Settings
    from dqx_airflow.datasets.gate_settings import GateSettings
    from dqx_airflow.values import DatasetRef

_NOT_IN_IDS = re.compile(r"[^A-Za-z0-9_.-]+")
"""Characters that Airflow allows in no id."""

_EXAMPLE = 'write Path(__file__).with_name("dqx.toml")'

_OWN = ("allow_empty", "fail_on", "on_violation")
"""The arguments that a gate of a file may have itself."""


@dataclass(frozen=True, slots=True)
class _FileGate:
    """A gate of a file, as its task has it.

    :param suite: the path of its suite.
    :param datasets: the settings of its datasets, by their names, but for those without a location.
    :param placeless: the names of its datasets without a location.
    :param own: the arguments in which it differs from the other gates.
    """

    name: str
    suite: str
    datasets: dict[str, dict[str, Any]]
    placeless: list[str]
    group: str
    owner: str
    asset: str
    own: dict[str, Any]


@dataclass(frozen=True, slots=True)
class _FileGates:
    """The gates of a file, with the arguments that its `[defaults]` give to all of them."""

    path: Path
    defaults: dict[str, Any]
    results_root: str | None
    gates: tuple[_FileGate, ...]


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
    :raises GateMisconfiguredError: the file has a mistake, or a pattern of `only`, or a name in
        `exclude`, matches no gate.
    """
    read = _read(settings)
    with as_misconfigured():
        wanted = name_patterns("gates_of: only", only)
        unwanted = name_patterns("gates_of: exclude", exclude)
    gates = _chosen(read, wanted, unwanted)
    shared = {**_arguments(read), **arguments}
    tasks: dict[str, DqlGateOperator] = {}
    names = {gate.name for gate in gates}
    for group, members in _grouped(gates, group_by):
        with ExitStack() as opened:
            if group:
                opened.enter_context(_task_group(group, names))
            for gate in members:
                tasks[gate.name] = _task(read.path, gate, shared)
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


def _read(settings: str | os.PathLike[str]) -> _FileGates:
    """The gates of a file.

    :raises GateMisconfiguredError: the file has mistakes, or cannot be read.
    """
    from dqx_airflow.datasets.dqx_toml import LARGEST_FILE
    from dqx_airflow.values.files import first_bytes

    path = Path(settings).absolute()
    try:
        content = first_bytes(path, LARGEST_FILE + 1)
    except OSError as error:
        message = f"gates_of: cannot read {path}: {error.strerror or error}: {_EXAMPLE}"
        raise GateMisconfiguredError(message) from None
    return _read_once(path, content)


@lru_cache(maxsize=16)
def _read_once(path: Path, content: bytes) -> _FileGates:
    """The gates of a file, which is parsed once in a process as long as its bytes are the same: an
    edit may keep its size and its time.

    The DAG processor has a new process for each parse, so there they are noted for the next one. A
    task reads the file itself.
    """
    is_repeated = "dag-processor" in sys.argv and get_parsing_context().task_id is None
    notes = notes_on(str(path)) if is_repeated else None
    if notes is None:
        return _parsed(path, content)
    key = hashlib.sha256(content).hexdigest()
    if (known := _from_note(path, noted(notes, key))) is not None:
        return known
    read = _parsed(path, content)
    note(notes, key, _to_note(read), alone=True)
    return read


def _parsed(path: Path, content: bytes) -> _FileGates:
    """The gates in the content of a file.

    :raises GateMisconfiguredError: it has mistakes.
    """
    from dqx_airflow.datasets.dqx_toml import settings_in

    read = settings_in(content, path)
    if read.error_message:
        raise GateMisconfiguredError(read.error_message)
    used = {name for gate in read.gates for name in gate.datasets}
    refs = read.with_given({name: ref for name, ref in read.refs.items() if name in used})
    datasets = {name: _settings(ref) for name, ref in read.as_read(refs).items() if name in used}
    gates = tuple(_gate(read, gate, datasets) for gate in read.gates)
    return _FileGates(path, _defaults(read), read.results_root, gates)


def _gate(read: Settings, gate: GateSettings, datasets: Mapping[str, dict[str, Any]]) -> _FileGate:
    own = {name: getattr(gate, name) for name in _OWN if getattr(gate, name) is not None}
    return _FileGate(
        gate.name,
        read.suite_of(gate),
        {name: datasets[name] for name in gate.datasets if name in datasets},
        [name for name in gate.datasets if name not in datasets],
        gate.group,
        gate.owner,
        gate.asset,
        own,
    )


def _to_note(read: _FileGates) -> dict[str, Any]:
    gates = [[getattr(gate, name) for name in _FileGate.__slots__] for gate in read.gates]
    return {"defaults": read.defaults, "results_root": read.results_root, "gates": gates}


def _from_note(path: Path, value: Any) -> _FileGates | None:
    """The gates that were noted; None if they were not, or by another program."""
    try:
        gates = tuple(_FileGate(*gate) for gate in value["gates"])
        return _FileGates(path, value["defaults"], value["results_root"], gates)
    except (TypeError, LookupError):
        return None


def _chosen(read: _FileGates, only: Sequence[str], exclude: Sequence[str]) -> list[_FileGate]:
    """The gates that match.

    :raises GateMisconfiguredError: there are none; or a pattern of `only`, or a name in `exclude`,
        matches none: a misspelt name would leave a gate out, or in. Or one has no data.
    """
    if not read.gates:
        raise GateMisconfiguredError(f"{read.path}: no gate in [gates]: add [gates.NAME]")
    names = [(gate.name, gate.group) for gate in read.gates]
    mistakes = unmatched("no gate or group matches only", only, names)
    mistakes += unmatched("no gate or group matches exclude", exclude, names, is_for_more=True)
    if mistakes:
        raise GateMisconfiguredError("\n".join(f"{read.path}: {one}" for one in mistakes))
    chosen = [
        gate
        for gate in read.gates
        if (not only or is_match((gate.name, gate.group), only))
        and not is_match((gate.name, gate.group), exclude)
    ]
    if not chosen:
        message = f"{read.path}: no gate matches only and exclude: change them"
        raise GateMisconfiguredError(message)
    placeless = dict.fromkeys(name for gate in chosen for name in gate.placeless)
    if placeless:
        lines = [
            f"{read.path}: [datasets.{name}] has no path, table or query" for name in placeless
        ]
        raise GateMisconfiguredError("\n".join(lines))
    return chosen


def _grouped(
    gates: Iterable[_FileGate], group_by: str | None
) -> Iterator[tuple[str, list[_FileGate]]]:
    """The gates by their group or owner, in the order of the file; empty without one."""
    if group_by not in ("group", "owner", None):
        message = f"gates_of: group_by={group_by!r}: write 'group', 'owner' or None"
        raise GateMisconfiguredError(message)
    members: dict[str, list[_FileGate]] = {}
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
    return arguments


def _arguments(read: _FileGates) -> dict[str, Any]:
    """The arguments of all gates; the location of results only if Airflow has none."""
    in_airflow = ("results_root", "results_conn_id")
    has_root = any(airflow_conf.get("dqx", key, fallback=None) for key in in_airflow)
    if read.results_root is None or has_root:
        return read.defaults
    return {**read.defaults, "results_root": read.results_root}


def _task(path: Path, gate: _FileGate, shared: Mapping[str, Any]) -> DqlGateOperator:
    arguments = {**shared, **gate.own}
    if gate.owner:
        arguments["owner"] = gate.owner
    if gate.asset:
        arguments["outlets"] = [*(arguments.get("outlets") or ()), _asset(path, gate)]
    datasets = {name: {**settings} for name, settings in gate.datasets.items()}
    return DqlGateOperator(task_id=gate.name, suite=gate.suite, datasets=datasets, **arguments)


def _asset(path: Path, gate: _FileGate) -> Asset:
    """:raises GateMisconfiguredError: Airflow refuses the URI."""
    try:
        return Asset(gate.asset)
    except ValueError as error:
        from dqx_airflow.datasets.dqx_toml import Positions, read_settings

        positions = Positions(str(path), read_settings(path).text)
        line = positions.value("gates", gate.name, "asset").line
        message = f"{path}:{line}: invalid value for 'asset': {error}"
        raise GateMisconfiguredError(message) from error


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
