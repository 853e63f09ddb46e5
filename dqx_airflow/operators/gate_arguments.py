"""The arguments of gates: their attributes, how they are read, those that are templates, and
mistakes in those that belong to `SparkSubmitOperator`.

Airflow accepts any value there, and the task would fail when it submits its job."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, TypeVar, cast

from airflow.sdk.definitions.context import Context

from dqx_airflow.operators.exceptions import as_misconfigured

if TYPE_CHECKING:
    from datetime import timedelta

    from dqx_airflow.datasets.settings import DatasetSetting
    from dqx_airflow.operators.notices import Callback
    from dqx_airflow.operators.outcome import OnViolation
    from dqx_airflow.operators.submitters import Submitter
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


T = TypeVar("T")
Templated: TypeAlias = Annotated[T, "rendered by Airflow"]


class GateArguments:
    """The arguments of a gate that `__init__` sets."""

    datasets: Templated[Mapping[str, DatasetSetting] | None]
    date: Templated[str | None]
    results_root: Templated[str | None]
    results_conn_id: Templated[str | None]
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
    quarantine: Templated[str | Mapping[str, str] | None]
    promote_to: Templated[str | os.PathLike[str] | Mapping[str, str] | None]
    promote_slice: Templated[Mapping[str, Any] | None]
    only: Templated[Words]
    tags: Templated[Words]
    exclude_tags: Templated[Words]
    severity: Templated[str | None]
    dimensions: Templated[Words]
    promote_partial: bool
    promote_blocked: bool | None
    promote_valid: Mapping[str, Any] | None
    certify_partitions: bool
    accept_required: bool
    ask_timeout: timedelta | float | None
    ask_default: str
    timeout: timedelta | float | None
    submit: Submitter | None
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


_TYPES: Mapping[str, str] = GateArguments.__annotations__
ARGUMENTS = tuple(_TYPES)
"""The names of all arguments of `GateArguments`."""
TRUE_OR_FALSE = tuple(name for name, type_name in _TYPES.items() if type_name == "bool")
"""The names of the boolean arguments."""
SELECTING = ("only", "tags", "exclude_tags", "severity", "dimensions")
"""The names of the arguments that select assertions; empty ones select all of them."""
TEMPLATED = tuple(name for name, type_name in _TYPES.items() if type_name.startswith("Templated["))
"""The names of the arguments that Airflow renders as templates."""


def given_fields(*names: str) -> Sequence[str]:
    """`template_fields` for a class of operators: for an operator, those fields that are not None.

    Airflow inspects each template field of each operator several times when it parses a DAG file,
    stores the names of all of them, and displays each in the UI.
    """
    return cast("Sequence[str]", _GivenFields(names))


class _GivenFields:
    def __init__(self, names: tuple[str, ...]) -> None:
        self.names = names

    def __get__(self, operator: Any, kind: type[Any] | None = None) -> tuple[str, ...]:
        if operator is None:
            return self.names
        return tuple(name for name in self.names if getattr(operator, name, None) is not None)


_IN_SINGLE_BRACES = re.compile(r"(?<!\{)\{\s*(\w+)\s*\}(?!\})")
_LEFT_TO_THE_RUN = re.compile(r"\b(default|defined|undefined|set|for|macro|import|include)\b")
"""Words of a template that may define a name, or allow for an undefined one."""


def template_mistakes(gate: Any, dag: Any) -> Iterator[str]:
    """Mistakes in the templates among the checked arguments of a gate.

    :param dag: its DAG, which may define filters and names; None if it is unknown.
    """
    environment = None
    # A user's operator may render with more names than Airflow's.
    is_own = type(gate).__module__.startswith("dqx_airflow.")
    for name in gate.template_fields:
        if name not in gate.checked_arguments:
            continue
        for text in _strings(getattr(gate, name)):
            if "{{" not in text and "{%" not in text:
                yield from _single_braces(name, text)
                continue
            if dag is None:
                continue
            environment = environment or dag.get_template_env(force_sandboxed=True)
            yield from _mistakes_in(name, text, environment, is_own=is_own)


def _strings(given: Any) -> Iterator[str]:
    """The strings in a value, except the source of a suite that is written in the DAG."""
    if isinstance(given, str):
        if "\n" not in given and not given.lstrip().startswith("suite "):
            yield given
    elif isinstance(given, Mapping):
        for value in given.values():
            yield from _strings(value)
    elif isinstance(given, list | tuple):
        for value in given:
            yield from _strings(value)


def _single_braces(argument: str, text: str) -> Iterator[str]:
    for match in _IN_SINGLE_BRACES.finditer(text):
        if match[1] in Context.__annotations__:
            meant = f"{{{{ {match[1]} }}}}"
            yield f"{argument}: {text!r} has {match[0]} in single braces: write {meant}"


def _mistakes_in(argument: str, text: str, environment: Any, *, is_own: bool) -> Iterator[str]:
    from jinja2 import StrictUndefined, TemplateSyntaxError, meta

    from dqx_airflow.diagnostics.diagnostic import slip_of

    try:
        environment.compile(text, raw=True)
        tree = environment.parse(text)
    except TemplateSyntaxError as error:
        reason = str(error.message).rstrip(".")
        yield f"{argument}: the template {text!r} has an error: {reason}"
        return
    if not issubclass(environment.undefined, StrictUndefined) or _LEFT_TO_THE_RUN.search(text):
        return
    known = {*Context.__annotations__, *environment.globals}
    for name in sorted(meta.find_undeclared_variables(tree) - known):
        near = slip_of(name, sorted(known))
        if near is None and not is_own:
            continue
        meant = f"; did you mean '{near}'?" if near else ""
        yield f"{argument}: the template {text!r} has the unknown name '{name}'{meant}"
    yield from _unknown_macros(argument, text, tree)


def _unknown_macros(argument: str, text: str, tree: Any) -> Iterator[str]:
    from airflow.sdk.execution_time import macros
    from jinja2 import nodes

    from dqx_airflow.diagnostics.diagnostic import slip_of

    for attribute in tree.find_all(nodes.Getattr):
        is_macro = isinstance(attribute.node, nodes.Name) and attribute.node.name == "macros"
        if is_macro and not hasattr(macros, attribute.attr):
            # Plugins may add others before a task runs.
            near = slip_of(
                attribute.attr, [name for name in vars(macros) if not name.startswith("_")]
            )
            if near is not None:
                unknown = f"'macros.{attribute.attr}'; did you mean 'macros.{near}'?"
                yield f"{argument}: the template {text!r} has the unknown name {unknown}"
