"""The arguments that the constructors of gates declare, and how a mistake in one is described.

The signature of a constructor is the only list of its arguments.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, TypeAlias, TypeVar

from dqx_airflow.operators.templates import has_open, is_open

T = TypeVar("T")
Templated: TypeAlias = Annotated[T, "rendered by Airflow"]
"""The type of an argument that Airflow renders as a template."""
Setting: TypeAlias = Annotated[T, "rendered by Airflow if it is a template"]
"""The type of an argument that is rarely a template: a word, a number, or True or False. A template
is rendered, and its result is read as the type."""

_NEVER_OPEN = (bool, int, float, type(None))
"""The types of most settings: no template has one."""

_SETTING = re.compile(r"Setting\[(.*)\]")


@dataclass(frozen=True, slots=True)
class DeclaredArguments:
    """The arguments of the constructor of a gate.

    `types` are their types as written in the signature, by name. `templated` are the names of the
    arguments that Airflow always renders, `settings` of those that it renders if they are
    templates, `true_or_false` the names of the boolean ones.
    """

    types: Mapping[str, str]
    templated: tuple[str, ...]
    settings: tuple[str, ...]
    true_or_false: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all arguments."""
        return tuple(self.types)

    def written_in(self, gate: Any, open_settings: Iterable[str]) -> dict[str, Any]:
        """The templated arguments of a gate as they are before they are rendered, and its settings
        that are templates, by name; without those that are None.

        :param open_settings: the names of these settings.
        """
        names = (*self.templated, *open_settings)
        return {name: given for name in names if (given := getattr(gate, name)) is not None}

    def open_settings_of(self, gate: Any) -> tuple[str, ...]:
        """The names of the settings whose value in a gate is a template, or the output of a
        task."""
        return tuple(
            name
            for name in self.settings
            if type(value := getattr(gate, name)) not in _NEVER_OPEN and has_open(value)
        )

    def read_settings(self, gate: Any, names: Collection[str]) -> None:
        """Replaces the texts that templates have left in a gate by values of their types. A text
        that is not of its type stays, for the check of the argument.

        :param names: the names of the settings that were templates.
        """
        for name in self.settings:
            text = getattr(gate, name)
            if name in names and isinstance(text, str):
                setattr(gate, name, _value_of(text.strip(), self.types[name]))


def declared_arguments(
    constructor: Callable[..., None], *, inherited: Sequence[str] = ()
) -> DeclaredArguments:
    """The arguments in the signature of a constructor.

    :param inherited: the names of arguments that its parent class declares, and handles.
    """
    written = {
        name: str(type_name)
        for name, type_name in constructor.__annotations__.items()
        if name not in (*inherited, "kwargs", "return")
    }
    settings = {
        name: found[1]
        for name, type_name in written.items()
        if (found := _SETTING.fullmatch(type_name))
    }
    types = {**written, **settings}
    return DeclaredArguments(
        types,
        tuple(name for name, type_name in types.items() if type_name.startswith("Templated[")),
        tuple(settings),
        tuple(name for name, type_name in types.items() if type_name == "bool"),
    )


_TRUE_OR_FALSE = {"true": True, "false": False}


def _value_of(text: str, type_name: str) -> object:
    """The value in the text that a template has left, or the text if it is not of this type.

    :param type_name: the type as it is written in the signature of the constructor.
    """
    if "bool" in type_name:
        return _TRUE_OR_FALSE.get(text.lower(), text)
    kind = int if "int" in type_name else float if "float" in type_name else str
    try:
        return kind(text)
    except ValueError:
        return text


def one_of(name: str, value: object, words: Sequence[str]) -> Iterator[str]:
    """Yields a mistake if the value of an argument is known, and not one of its words."""
    if not is_open(value) and value not in words:
        from dqx_airflow.diagnostics.diagnostic import slip_of

        listed = f"{', '.join(words[:-1])} or {words[-1]}"
        near = slip_of(value, words) if isinstance(value, str) else None
        yield f"{name}={value!r}: write {listed}{f'; did you mean {near!r}?' if near else ''}"


def as_written(given: list[Any]) -> Any:
    """A string that Airflow has turned into a list of its characters; any other list unchanged."""
    is_split = len(given) > 1 and all(isinstance(item, str) and len(item) == 1 for item in given)
    return "".join(given) if is_split else given
