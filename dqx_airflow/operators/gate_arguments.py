"""The arguments of gates: their attributes, and how they are read."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dqx_airflow.operators.exceptions import GateMisconfigured

if TYPE_CHECKING:
    from datetime import timedelta

    from dqx_airflow.datasets.settings import DatasetSetting
    from dqx_airflow.operators.notices import Callback
    from dqx_airflow.operators.outcome import OnViolation
    from dqx_airflow.values import Selection
    from dqx_airflow.values.selection import Words


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
        from dqx_airflow.diagnostics.nearest import slip_of

        listed = f"{', '.join(words[:-1])} or {words[-1]}"
        near = slip_of(value, words) if isinstance(value, str) else None
        yield f"{name}={value!r}: write {listed}{f'; did you mean {near!r}?' if near else ''}"


def as_written(given: list[Any]) -> Any:
    """A string that Airflow has turned into a list of its characters; any other list unchanged."""
    is_split = len(given) > 1 and all(isinstance(item, str) and len(item) == 1 for item in given)
    return "".join(given) if is_split else given


class GateArguments:
    """The arguments of a gate that `__init__` sets."""

    datasets: Mapping[str, DatasetSetting] | None
    date: str | None
    results_root: str | None
    results_conn_id: str | None
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
    quarantine: str | Mapping[str, str] | None
    promote_to: str | os.PathLike[str] | Mapping[str, str] | None
    promote_slice: Mapping[str, Any] | None
    only: Words
    tags: Words
    exclude_tags: Words
    severity: str | None
    dimensions: Words
    promote_partial: bool
    promote_blocked: bool | None
    timeout: timedelta | float | None
    on_warning: Callback | Sequence[Callback] | None

    @property
    def selection(self) -> Selection | None:
        """The selected assertions; None for all.

        :raises GateMisconfigured: an argument is invalid.
        """
        from dqx_airflow.errors import RequestError
        from dqx_airflow.values.selection import selection_of

        given = self.only, self.tags, self.exclude_tags, self.severity, self.dimensions
        try:
            return selection_of(*given)
        except RequestError as error:
            raise GateMisconfigured(error.in_one_line) from None


ARGUMENTS = tuple(GateArguments.__annotations__)
"""Their names."""
TRUE_OR_FALSE = tuple(
    name for name, type_name in GateArguments.__annotations__.items() if type_name == "bool"
)
"""The names of those that are booleans."""
