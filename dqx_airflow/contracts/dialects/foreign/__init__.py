"""Rules that contracts hold in other languages, as demands: ONE module a language.

Each has `translate`, which takes a rule as plain values and gives a `Translation`, or says in words
why there is no counterpart.
"""

from __future__ import annotations

from dataclasses import dataclass

from dqx_airflow.contracts.demands import Demand
from dqx_airflow.values import Severity


@dataclass(frozen=True, slots=True)
class Translation:
    """What a foreign rule demands.

    `kind` names it where it has no `name` of its own. The demands are about `column`, or about the
    whole model where that is None; `share` is that of `Rule`. `remarks` are keys of the rule that
    no data can break.
    """

    kind: str
    demands: tuple[Demand, ...]
    column: str | None = None
    name: str | None = None
    severity: Severity | None = None
    share: float = 1.0
    remarks: tuple[str, ...] = ()
