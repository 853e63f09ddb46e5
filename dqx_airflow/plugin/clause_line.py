"""A clause of a contract in readable form: `orders.amount: minimum 0`."""

from __future__ import annotations

import re

from dqx_airflow.values import Verdict

_SCALAR = r"""("[^"]*"|'[^']*'|[^\s,#}\]][^,#}\]]*)"""


def clause_line(verdict: Verdict) -> str:
    """The clause of an assertion in readable form: `orders.amount: minimum 0`.

    Its demand is taken from its line in the contract. If it is not about a column, or is an element
    of a list such as `quality[0]`, the assertion is used instead.
    """
    path = verdict.clause or ""
    key = path.rpartition(".")[2]
    if not verdict.column or not verdict.datasets or "[" in key:
        return verdict.name
    subject = f"{verdict.datasets[0]}.{verdict.column}"
    rule = verdict.name.removeprefix(f"{subject}.")
    words = (key if rule == verdict.name else rule).replace("_", " ")
    match = re.search(rf"""\b{re.escape(key)}["']?\s*:\s*{_SCALAR}""", verdict.source_line or "")
    demanded = match[1].strip() if match else ""
    return f"{subject}: {words}{'' if demanded in ('', 'true') else f' {demanded}'}"
