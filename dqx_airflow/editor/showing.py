"""Definitions as an editor displays them next to a name."""

from __future__ import annotations

from dqx_airflow.dql import nodes
from dqx_airflow.dql.printer import show


def show_constant(constant: nodes.Constant) -> str:
    """The value of a constant, with its bounds: `5% tunable [0%, 20%]`."""
    value = show(constant.value)
    if constant.bounds is None:
        return value
    low, high = constant.bounds
    return f"{value} tunable [{show(low)}, {show(high)}]"


def show_macro_head(macro: nodes.Macro, name: str | None = None) -> str:
    """A macro without its body: `rates(columns...)`."""
    parameters = ", ".join(parameter.text for parameter in macro.parameters)
    dots = "..." if macro.is_variadic else ""
    return f"{name or macro.name.text}({parameters}{dots})"
