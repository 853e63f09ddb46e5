"""The options of judging that every kind of run has."""

from __future__ import annotations

from dataclasses import dataclass, fields
from datetime import date
from typing import Any

from dqx_airflow.values.outcomes import Severity

DEFAULT_CLOCK_SKEW_HOURS = 24.0
ANSI = "spark.sql.ansi.enabled"
"""The name of the setting of Spark for ANSI mode."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """How a run judges, whether it was started by a gate, the command line or Python.

    A failure of `fail_on` or worse blocks. `allow_empty` drops the implicit assertions that the
    datasets have rows. With `require_history` a run is broken if an assertion of `fail_on` or worse
    lacks data of other dates. `skip_dates` are dates without data, for lagged metrics. `ansi` is
    the mode of Spark in which SQL of the suite, the contract and the datasets is evaluated: in a
    session with the other one, it is an error. A timestamp that is more than
    `max_clock_skew_hours` in the future makes nothing fresh.
    """

    fail_on: Severity = Severity.P1
    allow_empty: bool = False
    require_history: bool = False
    skip_dates: tuple[date, ...] = ()
    ansi: bool = True
    max_clock_skew_hours: float = DEFAULT_CLOCK_SKEW_HOURS

    @property
    def session_settings(self) -> dict[str, str]:
        """The settings of a Spark session that is opened for the run; those of the user win."""
        return {} if self.ansi else {ANSI: "false"}

    @property
    def keywords(self) -> dict[str, Any]:
        """The options by name."""
        return {field.name: getattr(self, field.name) for field in fields(RunOptions)}
