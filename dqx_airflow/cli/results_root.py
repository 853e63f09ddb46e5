"""Where commands look for the results store, if the command line does not give it."""

from __future__ import annotations

ROOT_VARIABLES = ["DQX_RESULTS_ROOT", "AIRFLOW__DQX__RESULTS_ROOT"]
"""The environment variables with the results root, the one that counts first. The second one is
the setting of the gates in Airflow."""
