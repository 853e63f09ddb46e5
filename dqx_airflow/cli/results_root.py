"""The default location of the results store for commands, and the access to it."""

from __future__ import annotations

import os

ROOT_VARIABLES = ["DQX_RESULTS_ROOT", "AIRFLOW__DQX__RESULTS_ROOT"]
"""The environment variables with the results root, in order of precedence. The second one is the
setting of the gates in Airflow."""


def storage_options() -> dict[str, str] | None:
    """The options for access to the storage, from the environment."""
    from dqx_airflow.request_arguments import storage_options_of

    return storage_options_of(os.environ)
