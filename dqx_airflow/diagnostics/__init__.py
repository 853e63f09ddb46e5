"""Diagnostics as values: what is wrong, where, and what to type instead; and their renderers."""

from dqx_airflow.diagnostics.codes import CODES
from dqx_airflow.diagnostics.diagnostic import Diagnostic, Level, Related
from dqx_airflow.diagnostics.renderers import draw

__all__ = ["CODES", "Diagnostic", "Level", "Related", "draw"]
