"""The check of a gate when its DAG is parsed, and the notes on gates that were valid.

A DAG file is parsed repeatedly, each time in a new process. So valid gates are noted for the next
one, by their arguments and by their sources with sizes and times; it then only costs a look at the
files. Nothing depends on the notes: the task checks everything again. What a DAG itself says about
single instances of a mapped gate is checked here, too.
"""

from __future__ import annotations

import hashlib
import inspect
import marshal
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice, product
from operator import attrgetter
from pathlib import Path
from types import new_class
from typing import TYPE_CHECKING, Any

from airflow.sdk import get_parsing_context
from airflow.sdk.definitions.mappedoperator import MappedOperator, OperatorPartial

from dqx_airflow.operators.exceptions import GateMisconfiguredError
from dqx_airflow.operators.parse_notes import are_unchanged, note, noted, notes_on, statuses
from dqx_airflow.operators.spark_arguments import SPARK_ARGUMENTS, spark_values
from dqx_airflow.operators.templates import LATER, has_open

if TYPE_CHECKING:
    from dqx_airflow.operators.mistakes import Examined


_MOST_COMBINED = 100


class GatePartial(OperatorPartial):
    """The result of `partial` of a gate."""

    def expand(self, **mapped_kwargs: Any) -> MappedOperator:
        """Like `OperatorPartial.expand`; also checks each value of a list in the DAG.

        :raises GateMisconfiguredError: there is a mistake that no template can correct.
        """
        self._expand_called = True  # otherwise Airflow warns about a gate that is rejected
        require_known(self.operator_class, {"task_id": self.kwargs.get("task_id"), **mapped_kwargs})
        mapped = super().expand(**mapped_kwargs)
        require_sound_instances(
            self.operator_class,
            self.kwargs,
            dict(_instances(mapped_kwargs)),
            combined=[*islice(_combined(mapped_kwargs), _MOST_COMBINED)],
        )
        return mapped

    def expand_kwargs(self, kwargs: Any, *, strict: bool = True) -> MappedOperator:
        """Like `OperatorPartial.expand_kwargs`; also checks each mapping in the DAG.

        :raises GateMisconfiguredError: there is a mistake that no template can correct.
        """
        mapped = super().expand_kwargs(kwargs, strict=strict)
        if isinstance(kwargs, list | tuple):
            own = {
                f"[{at}]": instance if isinstance(instance, Mapping) else {}
                for at, instance in enumerate(kwargs)
            }
            require_sound_instances(self.operator_class, self.kwargs, own)
        return mapped


def checked_partial(partial: OperatorPartial) -> GatePartial:
    """Wraps a partial operator so that the arguments of `expand` are checked."""
    partial._expand_called = True  # otherwise Airflow warns that it was never expanded
    return GatePartial(
        operator_class=partial.operator_class, kwargs=partial.kwargs, params=partial.params
    )


def _instances(mapped: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The instances known from the DAG, each with its index, in which a mistake is named; with
    several arguments, one for each value of each, with the place of the value, which several
    instances share."""
    later = dict.fromkeys(mapped, LATER)
    for name, given in mapped.items():
        for at, value in enumerate(_values(given)):
            index = f"[{at}]" if len(mapped) == 1 else f" with {name}[{at}]"
            yield index, {**later, name: value}


def _combined(mapped: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The instances for every combination of the arguments' values."""
    for combination in product(*(_values(given) or [LATER] for given in mapped.values())):
        yield dict(zip(mapped, combination, strict=True))


def _values(given: Any) -> list[Any]:
    """The values in the DAG for each instance; for a mapping Airflow passes each a pair."""
    if isinstance(given, Mapping):
        return [*given.items()]
    return [*given] if isinstance(given, list | tuple) else []


_MOST_INSTANCES = 100
_REFUSED = "application_args"
_WHERE_MAPPED = "give it in partial, or to each instance"

_ADDRESS = " at 0x"
_OF_THIS_PROCESS = re.compile(f"{_ADDRESS}[0-9a-f]+")
"""The address in Python's representation of callbacks and other objects."""


def require_sound(gate: Any) -> None:
    """Checks a gate of a DAG file that was parsed to find its DAGs.

    :raises GateMisconfiguredError: there are mistakes; the message lists them for all gates of the
        DAG.
    """
    # A task checks itself when it runs, and its process need not check other tasks.
    if get_parsing_context().task_id is not None:
        return
    dag = gate.dag if gate.has_dag() else None
    examined = _examined(gate, dag)
    if examined is None or not examined.mistakes:
        return
    mistakes: dict[str, Sequence[str]] = {gate.task_id: examined.mistakes}
    for task in getattr(dag, "tasks", ()):
        if task is not gate and hasattr(task, "checked_arguments"):
            examined = _examined(task, dag)
            mistakes[task.task_id] = examined.mistakes if examined is not None else ()
    _require_none(mistakes)


def require_sound_partial(kind: type[Any], given: Mapping[str, Any]) -> None:
    """Checks the common arguments of all instances of a mapped gate.

    :raises GateMisconfiguredError: there are mistakes.
    """
    task = str(given.get("task_id"))
    _require_none({task: _unknown_names(kind, given)})
    _require_sound_given(kind, {task: given})


def require_sound_instances(
    kind: type[Any],
    given: Mapping[str, Any],
    instances: Mapping[str, Mapping[str, Any]],
    *,
    combined: Sequence[Mapping[str, Any]] | None = None,
) -> None:
    """Checks the arguments of single instances of a mapped gate that are in the DAG, for the first
    of them.

    :param given: the common arguments of all instances.
    :param instances: the additional arguments of each of them, by their index, such as `[0]`.
    :param combined: the same, if `instances` has each value but not all combinations.
    :raises GateMisconfiguredError: there are mistakes.
    """
    if get_parsing_context().task_id is not None:
        return
    task = str(given.get("task_id"))
    first = dict(islice(instances.items(), _MOST_INSTANCES))
    _require_none({f"{task}{at}": _unnamed(kind, given, own) for at, own in first.items()})
    together = [*instances.values()] if combined is None else combined
    targets = target_mistakes([{**given, **own} for own in together[:_MOST_INSTANCES]])
    _require_none({task: [*targets]})
    _require_sound_given(kind, {f"{task}{at}": {**given, **own} for at, own in first.items()})


_DIFFERS = re.compile(r"\b(ti|task_instance|map_index|task|expanded_ti_count|macros)\b")
"""Names in a template that may render differently for each mapped instance."""


def target_mistakes(instances: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """A mistake for the first two instances that promote to the same target for the same date: the
    second of them would be refused when it runs.

    :param instances: the arguments of each instance.
    """
    promoted_by: dict[tuple[str, str, str], int] = {}
    for number, arguments in enumerate(instances):
        part = _fixed(arguments.get("promote_slice"))
        date = _fixed(arguments.get("date"))
        if part is None or date is None:
            continue
        for target in _targets(arguments.get("promote_to")):
            first = promoted_by.setdefault((target, part, date), number)
            if first != number:
                yield (
                    f"the instances {first} and {number} would both be promoted to {target} for "
                    "the same date, and the second is refused: give each its own promote_to, or "
                    'its own promote_slice, such as {"store": "zurich"}'
                )
                return


def _targets(value: Any) -> list[str]:
    """The promotion targets in a value that are the same text in each instance."""
    places = value.values() if isinstance(value, Mapping) else [value]
    paths = [os.fspath(place) for place in places if isinstance(place, str | os.PathLike)]
    return [place for place in paths if place and not _DIFFERS.search(place)]


def _fixed(value: Any) -> str | None:
    """A value as a string; None if it is only known when the instance runs."""
    text = repr(value)
    if isinstance(value, str) and "{{" in value:
        return None if _DIFFERS.search(value) else text
    return None if has_open(value) else text


def _unnamed(kind: type[Any], given: Mapping[str, Any], own: Mapping[str, Any]) -> list[str]:
    """The unknown arguments of an instance, and the required ones that are missing."""
    named = {*given, *own, *_default_args(given)}
    parameters = _parameters(kind.__mro__)
    missing = [
        f"missing argument {name}: {_WHERE_MAPPED}"
        for name in kind.checked_arguments
        if name not in named
        and name in parameters
        and parameters[name].default is inspect.Parameter.empty
    ]
    return [*_unknown_names(kind, own), *missing]


def _default_args(given: Mapping[str, Any]) -> dict[str, Any]:
    """The defaults of the DAG, the task group and the task itself for omitted arguments."""
    from airflow.sdk.definitions._internal.contextmanager import DagContext, TaskGroupContext

    dag = given.get("dag") or DagContext.get_current()
    group = given.get("task_group") or (TaskGroupContext.get_current(dag) if dag else None)
    defaults: dict[str, Any] = {}
    for scope_defaults in (
        getattr(dag, "default_args", None),
        getattr(group, "default_args", None),
    ):
        defaults |= scope_defaults or {}
    return defaults | (given.get("default_args") or {})


def _require_sound_given(kind: type[Any], arguments: Mapping[str, Mapping[str, Any]]) -> None:
    """Checks gates that do not exist yet, by their future arguments."""
    if get_parsing_context().task_id is not None:
        return
    from airflow.sdk.definitions._internal.contextmanager import DagContext

    properties = _properties(kind)
    without = _without(kind, properties)
    mistakes = {}
    for task, given in arguments.items():
        complete = {**_default_args(given), **given}
        known = {name: complete.get(name, _default(kind, name)) for name in kind.checked_arguments}
        known |= {name: complete[name] for name in (*SPARK_ARGUMENTS, _REFUSED) if name in complete}
        gate = object.__new__(without)
        gate.__dict__.update(known | dict.fromkeys(properties & known.keys(), LATER))
        examined = _examined(gate, given.get("dag") or DagContext.get_current())
        mistakes[task] = examined.mistakes if examined is not None else ()
    _require_none(mistakes)


def _properties(kind: type[Any]) -> frozenset[str]:
    """The arguments that a class of gates keeps as properties: their values are known once the
    constructor has run."""
    names = (*kind.checked_arguments, *SPARK_ARGUMENTS, _REFUSED)
    return frozenset(
        name for name in names if inspect.isdatadescriptor(inspect.getattr_static(kind, name, None))
    )


def _without(kind: type[Any], properties: frozenset[str]) -> type[Any]:
    """A class of gates whose instances have attributes in the place of these properties."""
    if not properties:
        return kind
    same = {"__module__": kind.__module__, "__qualname__": kind.__qualname__}
    return new_class(
        kind.__name__,
        (kind,),
        exec_body=lambda body: body.update({**dict.fromkeys(properties), **same}),
    )


def require_known(kind: type[Any], given: Mapping[str, Any]) -> None:
    """Checks the names of arguments that an operator rejected.

    :raises GateMisconfiguredError: some are unknown.
    """
    _require_none({str(given.get("task_id")): _unknown_names(kind, given)})


_FORMER = {
    "on_warning": "on_warning_callback",
    "timeout": "validation_timeout",
    "severity": "min_severity",
}
"""The arguments that had another name, which Airflow or another operator has for something else."""
_SOURCES = ("suite", "contract")
"""No slips, but arguments of the other gate."""


def _unknown_names(kind: type[Any], given: Iterable[str]) -> list[str]:
    known = _parameters(kind.__mro__)
    unknown = [name for name in given if name not in known]
    if not unknown:
        return []
    from dqx_airflow.diagnostics.diagnostic import nearest, slip_of

    own = _parameters(kind.__mro__[:3])
    mistakes = []
    for name in unknown:
        near = _FORMER.get(name)
        if near is None and name not in _SOURCES:
            near = nearest(name, own) or slip_of(name, sorted(known))
        meant = f"did you mean '{near}'?" if near else "remove it"
        mistakes.append(f"unknown argument {name}: {meant}")
    return mistakes


@lru_cache
def _parameters(kinds: tuple[type[Any], ...]) -> dict[str, inspect.Parameter]:
    """The parameters of the constructors of classes, by name: of the first class that has it."""
    found: dict[str, inspect.Parameter] = {}
    for kind in kinds:
        # Each class of operators has a wrapped constructor, its own or its parent's.
        if (made := vars(kind).get("__init__")) is not None:
            found |= {**inspect.signature(made).parameters, **found}
    return found


def _default(kind: type[Any], name: str) -> Any:
    """The default of an argument, except for templates and required ones, which each instance
    gets."""
    parameter = _parameters(kind.__mro__).get(name)
    if parameter is None or parameter.default is inspect.Parameter.empty:
        return LATER
    is_rendered = name in kind.template_fields and name not in kind.settings
    return LATER if is_rendered else parameter.default


def _require_none(mistakes: Mapping[str, Sequence[str]]) -> None:
    """Checks that no gate has mistakes.

    :param mistakes: the mistakes by task.
    :raises GateMisconfiguredError: there are mistakes: one in a single line, several in a line each
        after a first one.
    """
    lines = [f"gate {task}: {mistake}" for task, own in mistakes.items() for mistake in own]
    if lines:
        before = [f"{len(lines)} errors"] if len(lines) > 1 else []
        raise GateMisconfiguredError("\n".join([*before, *lines]))


def _examined(gate: Any, dag: Any) -> Examined | None:
    """The mistakes in a gate; None if it was valid before, and nothing has changed since."""
    dag_file = getattr(dag, "fileloc", None)
    key = _key_of(gate, dag)
    notes = notes_on(dag_file) if dag_file else None
    if notes is not None:
        files = noted(notes, key)
        if files is not None and are_unchanged(files):
            return None
    from dqx_airflow.operators.mistakes import examine

    examined = examine(gate, Path(dag_file).parent if dag_file else None, dag)
    if notes is not None and not examined.mistakes:
        note(notes, key, statuses(examined.files))
    return examined


def _key_of(gate: Any, dag: Any) -> str:
    given = [type(gate).__qualname__, os.environ.get("DQL_PATH", "")]
    # The names that templates may use.
    given += [*(getattr(dag, "user_defined_macros", None) or ()), ""]
    given += [*(getattr(dag, "user_defined_filters", None) or ()), ""]
    digest = hashlib.sha1("\0".join(given).encode(), usedforsecurity=False)
    digest.update(_form_of((_values_of(gate.checked_arguments)(gate), *spark_values(gate))))
    return digest.hexdigest()


_values_of = lru_cache(lambda names: attrgetter(*names))
"""Reads the attributes with some names."""


def _form_of(arguments: tuple[Any, ...]) -> bytes:
    """The bytes that identify arguments in each process."""
    try:
        # A quarter of the time of `repr`, and exact for the types that most arguments have.
        return marshal.dumps(arguments, _WITHOUT_REFERENCES)
    except ValueError:
        text = repr(arguments)
        return (_OF_THIS_PROCESS.sub("", text) if _ADDRESS in text else text).encode()


_WITHOUT_REFERENCES = 2
"""The version of the format that does not depend on which objects are one."""
