"""The common arguments of all gates, as attributes: `GateOperator` documents them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dqx_airflow.operators.exceptions import GateMisconfigured

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence
    from datetime import timedelta

    from dqx_airflow.datasets.settings import DatasetSetting
    from dqx_airflow.operators.notices import Callback
    from dqx_airflow.operators.outcome import OnViolation
    from dqx_airflow.selection import Words
    from dqx_airflow.values import Selection


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
        from dqx_airflow.selection import selection_of

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
