"""Rules of contracts in other languages, as demands: ONE module for each language.

Each has `translate`, which takes a rule as plain values and returns a `Translation`, or says in
words why there is no counterpart.
"""

from __future__ import annotations

from dataclasses import dataclass

from dqx_airflow.contracts.demands import Demand
from dqx_airflow.values import Severity


@dataclass(frozen=True, slots=True)
class Translation:
    """The demands of a foreign rule.

    `kind` is its name if it has no `name` of its own. The demands are about `column`, or about the
    whole model if that is None; `share` is that of `Rule`. `remarks` are keys of the rule that data
    cannot violate.
    """

    kind: str
    demands: tuple[Demand, ...]
    column: str | None = None
    name: str | None = None
    severity: Severity | None = None
    share: float = 1.0
    remarks: tuple[str, ...] = ()
