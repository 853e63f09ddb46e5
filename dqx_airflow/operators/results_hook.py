"""The connection to a results store, as Airflow's form of connections tests it."""

from __future__ import annotations

from typing import Any

from airflow.providers.common.compat.sdk import BaseHook

from dqx_airflow.operators.exceptions import GateMisconfigured
from dqx_airflow.operators.results_location import (
    CONNECTION_TYPE,
    ResultsLocation,
    location_of_connection,
)


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
        from dqx_airflow.errors import StoreError
        from dqx_airflow.results.store import ResultsStore

        try:
            location = self.get_conn()
            ResultsStore(location.root, location.storage_options).check_writable()
        except (GateMisconfigured, StoreError) as error:
            return False, str(error)
        return True, f"The results store {location.root} can be read and written."
