"""Diagnostics as values: what is wrong, where, and what to type instead; and their renderers."""

from dqx_airflow.diagnostics.diagnostic import Diagnostic, Level, Related
from dqx_airflow.diagnostics.renderers import draw

__all__ = ["Diagnostic", "Level", "Related", "draw"]
