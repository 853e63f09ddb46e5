"""The results root and the options of its storage: from arguments, a connection, settings; and the
connection, as Airflow's form of connections tests it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any

from airflow.providers.common.compat.sdk import BaseHook
from airflow.providers.common.compat.sdk import conf as airflow_conf

from dqx_airflow.errors import RequestError, StoreError
from dqx_airflow.operators.exceptions import GateMisconfiguredError
from dqx_airflow.operators.spark_connection import require_connection
from dqx_airflow.values.json_form import (
    STORAGE_VARIABLE,
    setting_text,
    storage_options_of,
    storage_text,
)

CONNECTION_TYPE = "dqx"
"""The type of connections that lead to a results store."""

_LOGIN_OF = {
    "s3": ("aws_access_key_id", "aws_secret_access_key"),
    "az": ("azure_storage_account_name", "azure_storage_account_key"),
    "gs": ("", "google_service_account_key"),
}
"""The storage options that the login and the password of a connection set, by storage."""

_STORAGE_OF = {"s3": "s3", "s3a": "s3", "gs": "gs"}
_STORAGE_OF |= dict.fromkeys(("az", "azure", "abfs", "abfss", "adl"), "az")


@dataclass(frozen=True, slots=True)
class ResultsLocation:
    """A results root, and the options of its storage, which may hold secrets."""

    root: str
    storage_options: Mapping[str, str] | None = field(default=None, repr=False)

    def in_environment(self) -> AbstractContextManager[None]:
        """Sets the options of the storage in the environment of this process and its children.

        They are passed in no other way: others can read the arguments of a process, and `conf`.
        """
        from dqx_airflow.datasets.databases import variables_set

        options = self.storage_options
        return variables_set({STORAGE_VARIABLE: storage_text(options)} if options else {})


def results_location_of(
    root: str | None = None, conn_id: str | None = None
) -> ResultsLocation | None:
    """The location from the arguments, from the connection, or from the configuration; None without
    any.

    :raises GateMisconfiguredError: the connection has no results root, or the options in the
        environment are invalid.
    :raises GateInfrastructureError: the source of connections does not respond.
    """
    conn_id = conn_id or airflow_conf.get("dqx", "results_conn_id", fallback=None)
    if not conn_id:
        root = root or airflow_conf.get("dqx", "results_root", fallback=None)
        return ResultsLocation(str(root), _options_of_this_process()) if root else None
    advice = f"--conn-type {CONNECTION_TYPE} --conn-host s3://BUCKET/FOLDER`"
    connection = require_connection(str(conn_id), "results connection", advice)
    return location_of_connection(connection, root)


def require_results_location(root: str | None, conn_id: str | None) -> ResultsLocation:
    """As `results_location_of`, for a gate, which requires one.

    :raises GateMisconfiguredError: the location of the results is not configured.
    """
    location = results_location_of(root, conn_id)
    if location is None:
        raise GateMisconfiguredError(
            "the gate has no location for its results: give results_root, or set "
            "results_root in section [dqx] of the Airflow configuration "
            "(AIRFLOW__DQX__RESULTS_ROOT)"
        )
    return location


def location_of_connection(connection: Any, root: str | None = None) -> ResultsLocation:
    """The location in a connection; `root` takes precedence over its host.

    :raises GateMisconfiguredError: it is of another type, or has no location.
    """
    if connection.conn_type != CONNECTION_TYPE:
        raise GateMisconfiguredError(
            f"the connection '{connection.conn_id}' is of type {connection.conn_type}: results "
            f"need one of type {CONNECTION_TYPE}"
        )
    root = root or connection.host or airflow_conf.get("dqx", "results_root", fallback=None)
    if not root:
        raise GateMisconfiguredError(
            f"the connection '{connection.conn_id}' does not say where results go: write the "
            "results root, a path or a URI, into its host"
        )
    extra = connection.extra_dejson
    options = {key: setting_text(value) for key, value in extra.items() if value not in (None, "")}
    storage = _STORAGE_OF.get(str(root).partition("://")[0])
    login = zip(
        _LOGIN_OF.get(storage or "", ()), (connection.login, connection.password), strict=False
    )
    options = {**{key: value for key, value in login if key and value}, **options}
    return ResultsLocation(str(root), options or None)


def _options_of_this_process() -> dict[str, str] | None:
    """The storage options in the environment of this process; None without any."""
    try:
        return storage_options_of(os.environ)
    except RequestError as error:
        raise GateMisconfiguredError(str(error)) from None


class ResultsHook(BaseHook):
    """Leads to the results store of a connection.

    :param dqx_conn_id: the connection.
    """

    conn_name_attr = "dqx_conn_id"
    default_conn_name = "dqx_default"
    conn_type = CONNECTION_TYPE
    hook_name = "DQX results"

    def __init__(self, dqx_conn_id: str = default_conn_name, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.dqx_conn_id = dqx_conn_id

    def get_conn(self) -> ResultsLocation:
        """The location of the results store of the connection, with its credentials.

        :raises AirflowNotFoundException: the connection does not exist.
        """
        return location_of_connection(self.get_connection(self.dqx_conn_id))

    def test_connection(self) -> tuple[bool, str]:
        """Whether this process can read and write the store, and the message about it."""
        from dqx_airflow.results.store import ResultsStore

        try:
            location = self.get_conn()
            ResultsStore(location.root, location.storage_options).check_writable()
        except (GateMisconfiguredError, StoreError) as error:
            return False, str(error)
        return True, f"The results store {location.root} can be read and written."
