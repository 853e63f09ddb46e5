"""Mapped gates: what the DAG itself says of single instances is checked when it is parsed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from airflow.sdk.definitions.mappedoperator import MappedOperator, OperatorPartial

from dqx_airflow.operators.parse_check import LATER, require_sound_instances


class GatePartial(OperatorPartial):
    """What `partial` of a gate returns."""

    def expand(self, **mapped_kwargs: Any) -> MappedOperator:
        """As of every operator; each value of a list that stands in the DAG is checked.

        :raises GateMisconfigured: something is wrong that no template can set right.
        """
        mapped = super().expand(**mapped_kwargs)
        require_sound_instances(self.operator_class, self.kwargs, [*_instances(mapped_kwargs)])
        return mapped

    def expand_kwargs(self, kwargs: Any, *, strict: bool = True) -> MappedOperator:
        """As of every operator; each mapping that stands in the DAG is checked.

        :raises GateMisconfigured: something is wrong that no template can set right.
        """
        mapped = super().expand_kwargs(kwargs, strict=strict)
        if isinstance(kwargs, list | tuple):
            own = [one if isinstance(one, Mapping) else {} for one in kwargs]
            require_sound_instances(self.operator_class, self.kwargs, own)
        return mapped


def checked_partial(partial: OperatorPartial) -> GatePartial:
    """A partial gate that checks what it is expanded over."""
    partial._expand_called = True  # else it warns that nobody has expanded it
    return GatePartial(
        operator_class=partial.operator_class, kwargs=partial.kwargs, params=partial.params
    )


def _instances(mapped: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """What is known of the instances: of several arguments each value alone, as all meet all."""
    later = dict.fromkeys(mapped, LATER)
    lists = {name: given for name, given in mapped.items() if isinstance(given, list | tuple)}
    for name, given in lists.items():
        for value in given:
            yield {**later, name: value}
