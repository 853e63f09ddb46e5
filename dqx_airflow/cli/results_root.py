"""The default location of the results store for commands."""

from __future__ import annotations

ROOT_VARIABLES = ["DQX_RESULTS_ROOT", "AIRFLOW__DQX__RESULTS_ROOT"]
"""The environment variables with the results root, in order of precedence. The second one is the
setting of the gates in Airflow."""
