"""The arguments of gates: their attributes, how they are read, and mistakes in those that belong to
`SparkSubmitOperator`.

Airflow accepts any value there, and the task would fail when it submits its job.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dqx_airflow.operators.exceptions import as_misconfigured

if TYPE_CHECKING:
    from datetime import timedelta

    from dqx_airflow.datasets.settings import DatasetSetting
    from dqx_airflow.operators.notices import Callback
    from dqx_airflow.operators.outcome import OnViolation
    from dqx_airflow.values import Selection
    from dqx_airflow.values.request import Words


_STRINGS = (
    *("conn_id", "files", "py_files", "archives", "jars", "packages", "exclude_packages"),
    *("repositories", "driver_class_path", "java_class", "driver_memory", "executor_memory"),
    *("keytab", "principal", "proxy_user", "name", "spark_binary", "properties_file"),
    "yarn_queue",
)
_COUNTS = ("num_executors", "executor_cores", "total_executor_cores")
_DEPLOY_MODES = ("client", "cluster")
_CALLBACKS = tuple(
    f"on_{state}_callback" for state in ("execute", "failure", "success", "retry", "skipped")
)
SPARK_ARGUMENTS = (*_STRINGS, *_COUNTS, "deploy_mode", "verbose", "env_vars", *_CALLBACKS)
_ATTRIBUTES = tuple((name, f"_{name}") for name in SPARK_ARGUMENTS)


def spark_values(gate: Any) -> list[Any]:
    """The values of `SPARK_ARGUMENTS` of a gate, in their order; the provider keeps some of them as
    private attributes."""
    own = gate.__dict__
    return [own.get(name, own.get(private)) for name, private in _ATTRIBUTES]


def spark_mistakes(gate: Any) -> Iterator[str]:
    """Mistakes in the arguments of a gate for the submission of its job, and in its callbacks."""
    given = {
        name: value
        for name, value in zip(SPARK_ARGUMENTS, spark_values(gate), strict=True)
        if value is not None and not is_open(value)
    }
    for name in _STRINGS:
        value = given.get(name, "")
        if isinstance(value, list | tuple | set):
            yield f"{name}={value!r}: write one string, {','.join(map(str, value))!r}"
        elif not isinstance(value, str | os.PathLike):
            yield f"{name}={value!r}: write a string"
    for name in _COUNTS:
        value = given.get(name, 1)
        if isinstance(value, bool) or not str(value).isdecimal() or int(value) < 1:
            yield f"{name}={value!r}: write a number, 1 or more"
    if "deploy_mode" in given:
        yield from one_of("deploy_mode", given["deploy_mode"], _DEPLOY_MODES)
    if not isinstance(given.get("verbose", False), bool):
        yield f"verbose={given['verbose']!r}: write True or False"
    yield from _conf_mistakes(gate.conf)
    yield from _variable_mistakes(given.get("env_vars"))
    for name in _CALLBACKS:
        yield from callback_mistakes(name, given.get(name))


def callback_mistakes(name: str, given: Any) -> Iterator[str]:
    """Mistakes in the callbacks of an argument, one or several."""
    callbacks = [*given] if isinstance(given, list | tuple | set | frozenset) else [given]
    if given is not None and not all(map(callable, callbacks)):
        shown = as_written(callbacks) if isinstance(given, list) else given
        yield f"{name}={shown!r}: write a function or a notifier, or a list of them"


def _conf_mistakes(conf: Any) -> Iterator[str]:
    if conf is None or is_open(conf):
        return
    if not isinstance(conf, Mapping):
        yield f"conf={conf!r}: write a mapping, such as {{'spark.executor.memory': '4g'}}"
        return
    for name, value in conf.items():
        if not isinstance(name, str):
            yield f"conf has the key {name!r}: write the name of a Spark setting"
        elif not isinstance(value, str | int | float | os.PathLike) and not is_open(value):
            yield f"conf has {value!r} for {name!r}: write a string or a number"


def _variable_mistakes(given: Any) -> Iterator[str]:
    if given is None:
        return
    if not isinstance(given, Mapping):
        yield f"env_vars={given!r}: write a mapping, such as {{'TZ': 'UTC'}}"
        return
    for name, value in given.items():
        is_value = isinstance(value, (str, os.PathLike)) or is_open(value)
        if not isinstance(name, str) or not is_value:
            meant = "" if value is None else f", {str(value)!r}"
            yield f"env_vars has {value!r} for {name!r}: write a string{meant}"


def is_open(value: object) -> bool:
    """True for a value that is only known when the task runs: a template, or the output of a
    task."""
    if isinstance(value, os.PathLike):
        return False
    if isinstance(value, str):
        return "{{" in value or "{%" in value or "{#" in value
    return hasattr(value, "iter_references")


def has_open(value: object) -> bool:
    """True for a value that is only known when the task runs, or contains one."""
    if isinstance(value, Mapping):
        return any(map(has_open, (*value, *value.values())))
    if isinstance(value, list | tuple):
        return any(map(has_open, value))
    return is_open(value)


def one_of(name: str, value: object, words: Sequence[str]) -> Iterator[str]:
    """Yields a mistake if the value of an argument is not one of its words."""
    if value not in words:
        from dqx_airflow.diagnostics.diagnostic import slip_of

        listed = f"{', '.join(words[:-1])} or {words[-1]}"
        near = slip_of(value, words) if isinstance(value, str) else None
        yield f"{name}={value!r}: write {listed}{f'; did you mean {near!r}?' if near else ''}"


def as_written(given: list[Any]) -> Any:
    """A string that Airflow has turned into a list of its characters; any other list unchanged."""
    is_split = len(given) > 1 and all(isinstance(item, str) and len(item) == 1 for item in given)
    return "".join(given) if is_split else given


class GateArguments:
    """The arguments of a gate that `__init__` sets."""

    datasets: Mapping[str, DatasetSetting] | None
    date: str | None
    results_root: str | None
    results_conn_id: str | None
    gate: str | None
    fail_on: str
    on_violation: OnViolation
    allow_empty: bool
    require_history: bool
    ansi: bool
    max_clock_skew_hours: float
    recompute: bool
    trust_log: bool
    sample_rows: int
    quarantine: str | Mapping[str, str] | None
    promote_to: str | os.PathLike[str] | Mapping[str, str] | None
    promote_slice: Mapping[str, Any] | None
    only: Words
    tags: Words
    exclude_tags: Words
    severity: str | None
    dimensions: Words
    promote_partial: bool
    promote_blocked: bool | None
    promote_valid: Mapping[str, Any] | None
    accept_required: bool
    ask_timeout: timedelta | float | None
    ask_default: str
    timeout: timedelta | float | None
    on_warning: Callback | Sequence[Callback] | None

    @property
    def selection(self) -> Selection | None:
        """The selected assertions; None for all.

        :raises GateMisconfigured: an argument is invalid.
        """
        from dqx_airflow.values.request import selection_of

        given = self.only, self.tags, self.exclude_tags, self.severity, self.dimensions
        with as_misconfigured():
            return selection_of(*given)


ARGUMENTS = tuple(GateArguments.__annotations__)
"""Their names."""
TRUE_OR_FALSE = tuple(
    name for name, type_name in GateArguments.__annotations__.items() if type_name == "bool"
)
"""The names of those that are booleans."""
