"""Arguments that Airflow renders as templates: the template fields of an operator, values that are
only known when its task runs, and mistakes in templates."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any, cast

from airflow.sdk.definitions.context import Context

from dqx_airflow.operators.airflow_versions import IS_CONSTRUCTED, template_macros

TEMPLATE_FIELDS = "template_fields"
FOUND_FIELDS = "_found_template_fields"
"""The attribute with the template fields of an operator as they were found, until it changes."""
"""The attribute in which Airflow looks for the names of template fields."""


class _Later:
    """A placeholder for an argument that not all instances of a mapped gate share."""

    def iter_references(self) -> Iterable[Any]:
        """Like the output of a task: it is known when the task runs."""
        return ()

    def __repr__(self) -> str:
        return "later"


LATER = _Later()


def is_open(value: object) -> bool:
    """True for a value that is only known when the task runs: a template, or the output of a
    task."""
    if isinstance(value, str):
        return "{{" in value or "{%" in value or "{#" in value
    if isinstance(value, os.PathLike):
        return False
    return hasattr(value, "iter_references")


def has_open(value: object) -> bool:
    """True for a value that is only known when the task runs, or contains one."""
    if isinstance(value, str):
        return is_open(value)
    if isinstance(value, Mapping):
        return any(map(has_open, (*value, *value.values())))
    if isinstance(value, list | tuple):
        return any(map(has_open, value))
    return is_open(value)


_SEGMENT = re.compile("[/=.]")
"""What separates the parts of paths, of folders of partitions, and of names of tables."""


def lost_values(place: str, written: object, rendered: object) -> Iterator[str]:
    """A mistake for each value that a template, or the output of a task, has turned into None, or
    into the text `None`: without it other rows would be selected, or written elsewhere.

    :param place: where the value is, such as `datasets['orders']['filter']`.
    :param written: the value in the DAG.
    :param rendered: the value when the task runs.
    """
    if is_open(written):
        if rendered is None or _has_lost_part(written, rendered):
            yield f"{place} was given, and is {rendered} now: return a value, or leave it out"
    elif isinstance(written, Mapping) and isinstance(rendered, Mapping):
        for key, value in written.items():
            yield from lost_values(f"{place}[{key!r}]", value, rendered.get(key))
    elif isinstance(written, list | tuple) and isinstance(rendered, list | tuple):
        for at, (value, result) in enumerate(zip(written, rendered, strict=False)):
            yield from lost_values(f"{place}[{at}]", value, result)


def _has_lost_part(written: object, rendered: object) -> bool:
    """True if a part of a text has become `None`: the whole of it, or a segment of a location."""
    if not isinstance(rendered, str):
        return False
    in_template = _SEGMENT.split(written) if isinstance(written, str) else []
    return "None" in (part.strip() for part in _SEGMENT.split(rendered)) and (
        "None" not in in_template
    )


def given_fields(*names: str, settings: Sequence[str] = ()) -> Sequence[str]:
    """`template_fields` for a class of operators: for an operator, those fields that are not None,
    and the settings that are templates, which its attribute `open_settings` names.

    Airflow inspects each template field of each operator several times when it parses a DAG file,
    stores the names of all of them, and displays each in the UI.
    """
    return cast("Sequence[str]", _GivenFields(names, settings))


class _GivenFields:
    def __init__(self, names: tuple[str, ...], settings: Sequence[str]) -> None:
        self.names = tuple(name for name in names if name not in settings)
        self.settings = tuple(settings)
        self._values = itemgetter(*self.names)

    def __get__(self, operator: Any, kind: type[Any] | None = None) -> tuple[str, ...]:
        if operator is None:
            return self.names + self.settings
        attributes = vars(operator)
        try:
            values = self._values(attributes)
        except KeyError:  # before the constructor has ended
            values = tuple(getattr(operator, name, None) for name in self.names)
        given = [name for name, value in zip(self.names, values, strict=True) if value is not None]
        fields = (*given, *getattr(operator, "open_settings", ()))
        if IS_CONSTRUCTED in attributes:
            # Python finds the attribute first the next time. A change of the operator removes it,
            # unless a subclass has set it.
            attributes[TEMPLATE_FIELDS] = attributes[FOUND_FIELDS] = fields
        return fields


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
    from jinja2 import nodes

    from dqx_airflow.diagnostics.diagnostic import slip_of

    macros = template_macros()
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
