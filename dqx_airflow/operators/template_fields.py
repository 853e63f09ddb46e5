"""The fields of a gate that Airflow renders."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast


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
