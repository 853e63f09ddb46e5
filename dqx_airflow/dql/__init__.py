"""The language: source text to tokens, to a tree with spans, to diagnostics. Pure Python.

`Interpreter` and `Suite`, which run it, live above; they are offered here and looked up when used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dqx_airflow.api.interpreter import Interpreter
    from dqx_airflow.api.suite import Suite

__all__ = ["Interpreter", "Suite"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module("dqx_airflow.api"), name)
