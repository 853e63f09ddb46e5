"""The arguments that the constructors of gates declare, and how a mistake in one is described.

The signature of a constructor is the only list of its arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, TypeAlias, TypeVar

T = TypeVar("T")
Templated: TypeAlias = Annotated[T, "rendered by Airflow"]
"""The type of an argument that Airflow renders as a template."""


@dataclass(frozen=True, slots=True)
class DeclaredArguments:
    """The arguments of the constructor of a gate.

    `types` are their types as written in the signature, by name. `templated` are the names of the
    arguments that Airflow renders, `true_or_false` the names of the boolean ones.
    """

    types: Mapping[str, str]
    templated: tuple[str, ...]
    true_or_false: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all arguments."""
        return tuple(self.types)

    def templates_of(self, gate: Any) -> tuple[str, ...]:
        """The names of the templated arguments whose value in a gate is not None."""
        return tuple(name for name in self.templated if getattr(gate, name) is not None)


def declared_arguments(
    constructor: Callable[..., None], *, inherited: Sequence[str] = ()
) -> DeclaredArguments:
    """The arguments in the signature of a constructor.

    :param inherited: the names of arguments that its parent class declares, and handles.
    """
    types = {
        name: str(type_name)
        for name, type_name in constructor.__annotations__.items()
        if name not in (*inherited, "kwargs", "return")
    }
    return DeclaredArguments(
        types,
        tuple(name for name, type_name in types.items() if type_name.startswith("Templated[")),
        tuple(name for name, type_name in types.items() if type_name == "bool"),
    )


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
