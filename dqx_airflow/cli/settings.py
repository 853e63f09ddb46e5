"""The settings in the `dqx.toml` of the working directory."""

from __future__ import annotations

import os
from contextvars import ContextVar
from pathlib import Path

from dqx_airflow.config.connection import Connection, connection_of
from dqx_airflow.config.settings import Settings
from dqx_airflow.config.settings_file import find_settings, read_settings
from dqx_airflow.errors import RequestError


def settings_here() -> Settings:
    """:raises RequestError: they have a mistake."""
    path = find_settings(Path())
    settings = read_settings(path) if path is not None else Settings()
    if settings.problems:
        first = settings.problems[0]
        raise RequestError(f"{path}:{first.span.line}: {first.message}")
    return settings


TYPED_VARIABLES: ContextVar[tuple[str, ...]] = ContextVar("TYPED_VARIABLES", default=())
"""Those of `dql contract --variable`."""


def variables_in(settings: Settings) -> dict[str, str]:
    """The variables that contracts may know; those on the command line win.

    :raises RequestError: one is not `NAME=VALUE` or `NAME`.
    """
    from dqx_airflow.contracts.source.variables import given_variables

    return given_variables((*settings.variables, *TYPED_VARIABLES.get()), os.environ)


def connection_in(settings: Settings, address: str | None) -> Connection:
    """The connection of `--connection`, or else that of the settings.

    :raises RequestError: the address is invalid.
    """
    if address is None:
        return settings.connection
    try:
        return connection_of(address)
    except RequestError as error:
        raise RequestError(f"--connection: {error.problem}", error.hint) from None
