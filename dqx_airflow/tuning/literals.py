"""Values of tunables as users write them: `3%`, `1_200`, `2 hours`."""

from __future__ import annotations

from collections.abc import Iterable

from dqx_airflow.dql import nodes
from dqx_airflow.dql.constants import fold
from dqx_airflow.dql.printer import show_number
from dqx_airflow.dql.syntax.parser import parse
from dqx_airflow.errors import RequestError
from dqx_airflow.exact import NUMBERS, nearest_float
from dqx_airflow.tuning.tunables import written_number
from dqx_airflow.values import SourceFile, Span


def typed_values(arguments: Iterable[str]) -> dict[str, float]:
    """The values of arguments such as `MAX_NULLS=3%`.

    :raises RequestError: one is not such an argument.
    """
    values = {}
    for text in arguments:
        name, equals, literal = text.partition("=")
        if not equals:
            raise RequestError(f"--set {text}: missing =", "write --set MAX_NULLS=3%")
        values[name.strip()] = _number(text, literal.strip())
    return values


def number_text(value: float, unit: nodes.Unit) -> str:
    """A value in a notation: 0.05 as `5%`, 7200 as `2 hours`."""
    return show_number(nodes.Number(written_number(value), unit, Span("", 1, 1, 1, 1)))


def _number(text: str, literal: str) -> float:
    parsed = parse(SourceFile("--set", f"export const X = {literal}\n"))
    constants = parsed.file.constants if parsed.file and not parsed.diagnostics else ()
    value = fold(constants[0].value, {}) if len(constants) == 1 else None
    if not isinstance(value, NUMBERS):
        raise RequestError(f"--set {text}: not a number", "write 0.03, 3%, 1200 or 2 hours")
    return value if isinstance(value, int) else nearest_float(value)
