"""The arguments of a gate that belong to `SparkSubmitOperator`, and mistakes in them.

Airflow accepts any value there, and the task would fail when it submits its job."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any

from dqx_airflow.operators.gate_arguments import as_written, one_of
from dqx_airflow.operators.templates import LATER, is_open
from dqx_airflow.values.blank import is_blank

_STRINGS = (
    "conn_id",
    "files",
    "py_files",
    "archives",
    "jars",
    "packages",
    "exclude_packages",
    "repositories",
    "driver_class_path",
    "java_class",
    "driver_memory",
    "executor_memory",
    "keytab",
    "principal",
    "proxy_user",
    "name",
    "spark_binary",
    "properties_file",
    "yarn_queue",
)
_COUNTS = ("num_executors", "executor_cores", "total_executor_cores")
_DEPLOY_MODES = ("client", "cluster")
_CALLBACKS = tuple(
    f"on_{state}_callback" for state in ("execute", "failure", "success", "retry", "skipped")
)
_SWITCHES = ("verbose", "do_xcom_push")
_OTHERS = (
    "status_poll_interval",
    "use_krb5ccache",
    "track_driver_via_k8s_api",
    "yarn_track_via_rm_api",
    "yarn_rm_auth",
    "openlineage_inject_parent_job_info",
    "openlineage_inject_transport_info",
    "reconnect_on_retry",
)
_PASSED_ON = (*_STRINGS, *_COUNTS, *_SWITCHES, *_OTHERS, "deploy_mode", "env_vars")
SPARK_ARGUMENTS = (*_PASSED_ON, *_CALLBACKS)
_ATTRIBUTES = tuple((name, f"_{name}") for name in SPARK_ARGUMENTS)


def spark_values(gate: Any) -> list[Any]:
    """The values of `SPARK_ARGUMENTS` of a gate, in their order; the provider keeps some of them as
    private attributes."""
    own = vars(gate)
    return [own[name] if name in own else own.get(private) for name, private in _ATTRIBUTES]


def spark_mistakes(gate: Any) -> Iterator[str]:
    """Mistakes in the arguments of a gate for the submission of its job, and in its callbacks."""
    values = {
        name: value
        for name, value in zip(SPARK_ARGUMENTS, spark_values(gate), strict=True)
        if value is not None
    }
    given = {name: value for name, value in values.items() if not is_open(value)}
    for name in sorted(values.keys() - given.keys() - {*type(gate).template_fields}):
        yield from no_template(name, values[name])
    for name in _STRINGS:
        value = given.get(name, "")
        if isinstance(value, list | tuple | set):
            yield f"{name}={value!r}: write one string, {','.join(map(str, value))!r}"
        elif not isinstance(value, str | os.PathLike):
            yield f"{name}={value!r}: write a string"
    if is_blank(given.get("conn_id", "default")):
        yield f"conn_id={given['conn_id']!r}: it is empty; write a value, or leave conn_id out"
    for name in _COUNTS:
        value = given.get(name, 1)
        if isinstance(value, bool) or not str(value).isdecimal() or int(value) < 1:
            yield f"{name}={value!r}: write a number, 1 or more"
    if "deploy_mode" in given:
        yield from one_of("deploy_mode", given["deploy_mode"], _DEPLOY_MODES)
    for name in _SWITCHES:
        if not isinstance(given.get(name, True), bool):
            yield f"{name}={given[name]!r}: write True or False"
    if given.get("do_xcom_push") is False:
        yield (
            "do_xcom_push=False: notifications, pages and read_validated find the run of a gate by "
            "the summary in XCom, a few kB: write do_xcom_push=True"
        )
    yield from _conf_mistakes(gate.conf)
    yield from _variable_mistakes(given.get("env_vars"))
    for name in _CALLBACKS:
        yield from callback_mistakes(name, given.get(name))


def no_template(name: str, value: Any) -> Iterator[str]:
    """Yields a mistake for a template, or the output of a task, in an argument that Airflow does
    not render: it would be taken literally."""
    if value is not LATER and is_open(value):
        yield f"{name}={value!r}: it is not rendered as a template: write the value itself"


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
        if not isinstance(value, str | int | float | os.PathLike) and not is_open(value):
            yield f"conf has {value!r} for {name!r}: write a string or a number"


def _variable_mistakes(given: Any) -> Iterator[str]:
    if given is None:
        return
    if not isinstance(given, Mapping):
        yield f"env_vars={given!r}: write a mapping, such as {{'TZ': 'UTC'}}"
        return
    for name, value in given.items():
        if not isinstance(value, (str, os.PathLike)) and not is_open(value):
            meant = "" if value is None else f", {str(value)!r}"
            yield f"env_vars has {value!r} for {name!r}: write a string{meant}"
