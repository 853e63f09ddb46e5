"""Mapped gates: what the DAG itself says of single instances is checked when it is parsed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice, product
from typing import Any

from airflow.sdk.definitions.mappedoperator import MappedOperator, OperatorPartial

from dqx_airflow.operators.parse_check import (
    LATER,
    require_known,
    require_sound_instances,
)

_MOST_COMBINED = 100


class GatePartial(OperatorPartial):
    """What `partial` of a gate returns."""

    def expand(self, **mapped_kwargs: Any) -> MappedOperator:
        """As of every operator; each value of a list that stands in the DAG is checked.

        :raises GateMisconfigured: something is wrong that no template can set right.
        """
        self._expand_called = True  # else it warns of a gate that is refused
        require_known(self.operator_class, {"task_id": self.kwargs.get("task_id"), **mapped_kwargs})
        mapped = super().expand(**mapped_kwargs)
        require_sound_instances(
            self.operator_class,
            self.kwargs,
            [*_instances(mapped_kwargs)],
            combined=[*islice(_combined(mapped_kwargs), _MOST_COMBINED)],
        )
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
    for name, given in mapped.items():
        for value in _values(given):
            yield {**later, name: value}


def _combined(mapped: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The instances, each with all its values: all values of an argument meet all others."""
    for each in product(*(_values(given) or [LATER] for given in mapped.values())):
        yield dict(zip(mapped, each, strict=True))


def _values(given: Any) -> list[Any]:
    """What stands in the DAG for each instance; of a mapping Airflow gives each a pair."""
    if isinstance(given, Mapping):
        return [*given.items()]
    return [*given] if isinstance(given, list | tuple) else []
