"""Mapped gates: what the DAG itself says about single instances is checked when it is parsed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice, product
from typing import Any

from airflow.sdk.definitions.mappedoperator import MappedOperator, OperatorPartial

from dqx_airflow.operators.parse_check import LATER, require_known, require_sound_instances

_MOST_COMBINED = 100


class GatePartial(OperatorPartial):
    """The result of `partial` of a gate."""

    def expand(self, **mapped_kwargs: Any) -> MappedOperator:
        """As for every operator; each value of a list in the DAG is checked.

        :raises GateMisconfigured: there is a mistake that no template can correct.
        """
        self._expand_called = True  # otherwise Airflow warns about a gate that is rejected
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
        """As for every operator; each mapping in the DAG is checked.

        :raises GateMisconfigured: there is a mistake that no template can correct.
        """
        mapped = super().expand_kwargs(kwargs, strict=strict)
        if isinstance(kwargs, list | tuple):
            own = [instance if isinstance(instance, Mapping) else {} for instance in kwargs]
            require_sound_instances(self.operator_class, self.kwargs, own)
        return mapped


def checked_partial(partial: OperatorPartial) -> GatePartial:
    """A partial gate that checks what it is expanded over."""
    partial._expand_called = True  # otherwise Airflow warns that it was never expanded
    return GatePartial(
        operator_class=partial.operator_class, kwargs=partial.kwargs, params=partial.params
    )


def _instances(mapped: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The known instances: for several arguments each value by itself, as all are combined."""
    later = dict.fromkeys(mapped, LATER)
    for name, given in mapped.items():
        for value in _values(given):
            yield {**later, name: value}


def _combined(mapped: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The instances with all their values: every combination of the arguments' values."""
    for combination in product(*(_values(given) or [LATER] for given in mapped.values())):
        yield dict(zip(mapped, combination, strict=True))


def _values(given: Any) -> list[Any]:
    """The values in the DAG for each instance; for a mapping Airflow passes each a pair."""
    if isinstance(given, Mapping):
        return [*given.items()]
    return [*given] if isinstance(given, list | tuple) else []
