"""Database connections from the environment and from Airflow, without showing secrets."""

from __future__ import annotations

import json
import os
import sys

import pytest

from dqx_airflow.datasets import databases
from dqx_airflow.datasets.settings import dataset_ref
from dqx_airflow.errors import RequestError
from dqx_airflow.lineage.names import name_of_data
from tests.processes import output_of

PASSWORD = "s3cr3t/P4ss:@!"
QUOTED = "s3cr3t%2FP4ss%3A%40%21"


def shop(text: str) -> databases.DatabaseConnection:
    return databases.connection_in({"DQX_CONN_SHOP": text}, "shop")


@pytest.mark.parametrize(
    "text",
    [
        f"postgres://reader:{QUOTED}@db:5433/sales?sslmode=require",
        f"postgresql://reader:{QUOTED}@db:5433/sales?sslmode=require",
        json.dumps(
            {
                "conn_type": "postgres",
                "host": "db",
                "port": 5433,
                "schema": "sales",
                "login": "reader",
                "password": PASSWORD,
                "extra": {"sslmode": "require"},
            }
        ),
        f"jdbc://reader:{QUOTED}@jdbc%3Apostgresql%3A%2F%2Fdb%3A5433%2Fsales%3Fsslmode%3Drequire",
    ],
    ids=["URI", "its other name", "JSON", "JDBC URL"],
)
def test_a_connection_is_read_as_airflow_writes_it(text: str) -> None:
    found = shop(text)
    assert found.url == "jdbc:postgresql://db:5433/sales"
    assert (found.user, found.password) == ("reader", PASSWORD)
    assert dict(found.properties)["sslmode"] == "require"
    assert "s3cr3t" not in f"{found} {found!r} {found.url}"
    assert shop(found.text) == found


def test_the_variable_of_airflow_is_the_fallback() -> None:
    environment = {"AIRFLOW_CONN_SHOP": "mysql://reader@db/sales"}
    assert databases.connection_in(environment, "shop").url == "jdbc:mysql://db:3306/sales"


def test_a_sql_server_names_its_database_in_its_own_way() -> None:
    assert shop("mssql://db/sales").url == "jdbc:sqlserver://db:1433;databaseName={sales}"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("oracle://reader:s3cr3t@db/sales", "of type oracle: no database of this type"),
        ("postgres://reader:s3cr3t@/sales", "no valid host"),
        ("postgres://reader:s3cr3t@db:port/sales", "no valid host"),
        ("{s3cr3t", "cannot be read"),
        ('{"conn_type": "postgres", "host": "db", "extra": "s3cr3t"}', "extra that is not JSON"),
        (
            "jdbc://jdbc%3Apostgresql%3A%2F%2Fdb%2Fsales%3Fpassword%3Ds3cr3t",
            "has password in its JDBC URL",
        ),
        ("jdbc://jdbc%3Ah2%3Amem%3As3cr3t", "no JDBC URL"),
        ("mysql://reader:s3cr3t@db/sales?ssl_mode=REQUIRED", "has ssl_mode in its extra"),
        ("postgres://db/a%3Bb", "no valid database"),
    ],
)
def test_an_unusable_connection_is_refused(text: str, problem: str) -> None:
    with pytest.raises(RequestError, match=problem) as refused:
        shop(text)
    assert "s3cr3t" not in str(refused.value)


def test_a_missing_connection_names_its_variables() -> None:
    with pytest.raises(RequestError, match="neither DQX_CONN_SHOP nor AIRFLOW_CONN_SHOP"):
        databases.connection_in({}, "shop")


@pytest.mark.parametrize(
    ("address", "table", "name"),
    [
        ("postgres://db/sales", "shop.orders", "postgres://db:5432 sales.shop.orders"),
        ("postgres://db/sales", "orders", "postgres://db:5432 sales.public.orders"),
        ("postgres://db/sales", "`my.shop`.orders", "postgres://db:5432 sales.my.shop.orders"),
        (
            '{"conn_type": "postgres", "host": "db", "schema": "sales",'
            ' "extra": {"jdbc": {"currentSchema": "shop, public"}}}',
            "orders",
            "postgres://db:5432 sales.shop.orders",
        ),
        (
            "postgres://db/sales?options=-c+role%3Da+-csearch_path%3Dshop%2Cpublic",
            "orders",
            "postgres://db:5432 sales.shop.orders",
        ),
        (
            "postgres://db/sales?options=-c+statement_timeout%3D5",
            "orders",
            "postgres://db:5432 sales.public.orders",
        ),
        ("mysql://db/sales", "orders", "mysql://db:3306 sales.orders"),
        ("mysql://db/sales", "shop.orders", "mysql://db:3306 shop.orders"),
        ("mssql://db/sales", "orders", "mssql://db:1433 sales.dbo.orders"),
    ],
)
def test_lineage_names_a_table_as_openlineage_does(address: str, table: str, name: str) -> None:
    ref = dataset_ref("orders", {"table": table, "conn_id": "shop"})
    (named,) = databases.with_lineage_names((ref,), {"shop": shop(address)})
    found = name_of_data(named.lineage_name or "")
    assert f"{found.namespace} {found.name}" == name


def test_only_child_processes_get_a_connection() -> None:
    show = [sys.executable, "-c", "import os; print(os.environ.get('DQX_CONN_SHOP'))"]
    connection = databases.database_connection(
        "shop", {"conn_type": "postgres", "host": "db", "password": "p"}
    )
    with databases.in_environment({"shop": connection}):
        variable = output_of(show)
    assert shop(variable) == connection
    assert "DQX_CONN_SHOP" not in os.environ


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"format": "jdbc", "table": "shop.orders"}, "no conn_id"),
        ({"conn_id": "shop"}, "exactly one of path, table and query"),
        ({"conn_id": "shop", "path": "/lake/orders"}, "no table"),
        ({"conn_id": "shop", "query": "SELECT 1"}, "no table"),
        ({"conn_id": "shop", "table": "t", "format": "csv"}, "and format='csv'"),
        ({"conn_id": "postgres://u:p@h/d", "table": "t"}, "not the id of a connection"),
        ({"conn_id": "shop", "table": "t", "version": 3}, "only Delta tables have versions"),
        (
            {"conn_id": "shop", "table": "t", "options": {"password": "x"}},
            "secret in its option password",
        ),
        (
            {"conn_id": "shop", "table": "t", "options": {"unchecked.sessionInitStatement": "x"}},
            "which a gate sets itself",
        ),
        ({"conn_id": "shop", "table": "t", "options": {"fetchSise": "1"}}, "jdbc does not support"),
    ],
)
def test_invalid_settings_for_a_database_are_refused(
    settings: dict[str, object], problem: str
) -> None:
    with pytest.raises(RequestError, match=problem):
        dataset_ref("orders", settings)
