"""Where the data of a contract is located, and how it is read."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from dqx_airflow.contracts.compile.rule_context import RuleContext
from dqx_airflow.contracts.demands import Presence, Unique
from dqx_airflow.contracts.enforcement.contract_datasets import dataset_settings, known_of
from dqx_airflow.contracts.field_types import spark_schema
from dqx_airflow.contracts.model import Contract, Dialect, Field, Model, Rule, Server
from dqx_airflow.contracts.read import read_contract
from dqx_airflow.errors import RequestError
from dqx_airflow.values import SourceFile, Span

AT = Span("c.yaml", 1, 1, 1, 2)


def contract(*servers: Server, models: tuple[str, ...] = ("orders",)) -> Contract:
    made = tuple(Model(name, AT) for name in models)
    return Contract(Dialect.DCS, "1.2.1", "orders", "1.0.0", AT, models=made, servers=servers)


@pytest.mark.parametrize(
    ("server", "place"),
    [
        (
            Server("s", "s3", AT, "s3://lake/{model}/*.json", "json"),
            {"path": "s3://lake/orders/*.json", "format": "json"},
        ),
        (Server("s", "local", AT, "data/orders.avro"), {"path": "data/orders.avro",
                                                        "format": "avro"}),
        (
            Server("s", "local", AT, "./{model}.csv", "csv", options=(("delimiter", ";"),)),
            {"path": "./orders.csv", "format": "csv", "options": {"delimiter": ";"}},
        ),
        (Server("s", "databricks", AT, "main.sales.{model}"), {"table": "main.sales.orders"}),
    ],
)  # fmt: skip
def test_a_server_gives_the_location_of_a_model(server: Server, place: dict[str, Any]) -> None:
    assert dataset_settings(contract(server), {}) == {"orders": place}


@pytest.mark.parametrize(
    ("location", "path"),
    [
        ("data/**/*.json", "data/{,*/,*/*/,*/*/*/}*.json"),
        ("s3://lake/{model}/**/part-*.json", "s3://lake/orders/{,*/,*/*/,*/*/*/}part-*.json"),
        ("data/*.json", "data/*.json"),
    ],
)
def test_two_stars_are_folders_below_one(location: str, path: str) -> None:
    server = Server("s", "s3", AT, location)
    place = {"path": path, "format": "json"}
    assert dataset_settings(contract(server), {}) == {"orders": place}


def test_parquet_schemas_are_merged_by_default() -> None:
    given = {"path": "data", "format": "parquet"}
    merged = {"orders": given | {"options": {"mergeSchema": "true"}}}
    assert dataset_settings(contract(), {"orders": given}) == merged
    otherwise = {"orders": given | {"options": {"mergeSchema": "false"}}}
    assert dataset_settings(contract(), otherwise) == otherwise


def test_settings_of_the_gate_win_over_the_server() -> None:
    server = Server("s", "local", AT, "data/{model}", "delta")
    found = dataset_settings(contract(server, models=("orders", "items")), {"orders": "x/y"})
    assert found == {"orders": {"path": "x/y"}, "items": {"path": "data/items", "format": "delta"}}


@pytest.mark.parametrize(
    ("location", "servers", "place"),
    [
        ("lh_bronze.orders", (), {"table": "lh_bronze.orders"}),
        ("main.sales.orders", (), {"table": "main.sales.orders"}),
        ("orders_table", (), None),
        ("data/orders.parquet", (), None),
        ("public.orders", (Server("pg", "postgres", AT),), None),
    ],
)
def test_without_servers_the_table_that_a_model_names_is_read(
    location: str, servers: tuple[Server, ...], place: dict[str, Any] | None
) -> None:
    model = replace(contract().models[0], location=location)
    named = replace(contract(*servers), models=(model,))
    if place is not None:
        assert dataset_settings(named, {}) == {"orders": place}
    else:
        with pytest.raises(RequestError, match="the location of orders is unknown"):
            dataset_settings(named, {})


def test_datasets_beside_the_models_are_kept() -> None:
    found = dataset_settings(contract(), {"orders": "x/y", "lh.dim": "lh.dim"})
    assert found == {"orders": {"path": "x/y"}, "lh.dim": "lh.dim"}


@pytest.mark.parametrize(
    ("servers", "name", "message"),
    [
        ((), None, "the contract has no server: give the dataset orders"),
        ((Server("x", "kafka", AT),), None, "does not read the server 'x' of type kafka"),
        ((Server("a", "s3", AT), Server("b", "s3", AT)), None, "choose one of the servers a, b"),
        ((Server("production", "s3", AT),), "prodution", "did you mean 'production'?"),
        (
            (Server("a", "local", AT, "x"), Server("a", "local", AT, "y")),
            "a",
            "has 2 servers with the name 'a'",
        ),
    ],
)
def test_an_unknown_location_is_reported(
    servers: tuple[Server, ...], name: str | None, message: str
) -> None:
    with pytest.raises(RequestError) as caught:
        dataset_settings(contract(*servers), {}, name)
    assert message in str(caught.value)


def test_the_contract_gives_keys_masks_and_columns_of_text_files() -> None:
    fields = (
        Field("id", "id", "bigint", AT, is_key=True),
        Field("mail", "mail", "text", AT, is_sensitive=True),
        Field("total", "total", "number", AT),
        Field(
            "address",
            "address",
            "struct",
            AT,
            fields=(Field("zip code", "address.zip code", "text", AT, is_sensitive=True),),
        ),
        Field("tags", "tags", "array", AT, items=Field("[]", "tags[]", "whole_number", AT)),
    )
    model = Model("orders", AT, fields)
    declared = (
        "id bigint, mail string, total double, address struct<`zip code`:string>, "
        "tags array<bigint>"
    )
    assert known_of(model, file_format="delta") == {"keys": ["id"], "masked": ["mail", "address"]}
    assert known_of(model, file_format="csv")["schema"] == declared
    assert spark_schema(model) == declared


def test_a_compound_key_is_the_key() -> None:
    model = Model("items", AT, rules=(Rule("primary_key", Unique(("order_id", "line")), ()),))
    assert known_of(model, file_format=None) == {"keys": ["order_id", "line"]}


@pytest.mark.parametrize(
    ("server", "place"),
    [
        (
            "{type: s3, location: 's3://lake/{model}', endpointUrl: 'http://minio:9000'}",
            {
                "path": "s3a://lake/orders",
                "options": {
                    "fs.s3a.endpoint": "http://minio:9000",
                    "fs.s3a.path.style.access": "true",
                    "fs.s3a.connection.ssl.enabled": "false",
                },
            },
        ),
        (
            "{type: azure, location: 'az://shop.blob.core.windows.net/lake/{model}/*.csv'}",
            {"path": "abfss://lake@shop.dfs.core.windows.net/orders/*.csv"},
        ),
        ("{type: gcs, location: 'gs://lake/{model}'}", {"path": "gs://lake/orders"}),
    ],
)
def test_stores_are_reached_as_hadoop_reaches_them(server: str, place: dict[str, Any]) -> None:
    text = (
        "dataContractSpecification: 1.2.1\nid: a\ninfo: {title: A, version: 1.0.0}\n"
        f"servers: {{prod: {server}}}\nmodels: {{orders: {{fields: {{id: {{type: int}}}}}}}}\n"
    )
    contract = read_contract(SourceFile("contract.yaml", text)).contract
    assert contract is not None
    found = dataset_settings(contract, {})["orders"]
    assert {key: found[key] for key in place} == place


PG = Server("pg", "postgres", AT, "public.{model}")


@pytest.mark.parametrize(
    ("written", "servers", "dataset"),
    [
        ("orders", (), "orders"),
        ("public.orders", (), "orders"),
        ("dbo.orders", (Server("s", "s3", AT, "s3://lake/{model}"),), "orders"),
        ("other.orders", (), "other.orders"),
        ("public.orders", (PG,), "orders"),
        ("shop.public.orders", (PG,), "orders"),
        ("other.orders", (PG,), "other.orders"),
        ("main.orders", (PG,), "main.orders"),
        ("x.shop.orders", (Server("t", "trino", AT, "shop.{model}"),), "x.shop.orders"),
        ("public.items", (), "public.items"),
    ],
)
def test_a_query_names_a_model_with_its_schema(
    written: str, servers: tuple[Server, ...], dataset: str
) -> None:
    of_orders = contract(*servers)
    (model,) = of_orders.models
    rule = Rule("sql", Presence(), ())
    assert RuleContext(of_orders, model, (), rule).dataset(written) == dataset


DATABASES = """dataContractSpecification: 1.1.0
id: shop
info: {title: Shop, version: 1.0.0}
servers:
  pg: {type: postgres, host: db, port: 5432, database: sales, schema: shop}
  sql: {type: sqlserver, host: db, port: 1433, database: sales, schema: shop}
  files: {type: local, path: /lake/orders, format: parquet}
models: {orders: {fields: {id: {type: bigint}}}}
"""


def shop() -> Contract:
    found = read_contract(SourceFile("contract.yaml", DATABASES)).contract
    assert found is not None
    return found


@pytest.mark.parametrize("server", ["pg", "sql"])
def test_a_database_names_the_table_and_the_dataset_the_connection(server: str) -> None:
    found = dataset_settings(shop(), {"orders": {"conn_id": "shop"}}, server)["orders"]
    assert found["conn_id"] == "shop"
    assert found["table"].endswith("shop.orders")
    with pytest.raises(RequestError, match="the location of orders is unknown") as refused:
        dataset_settings(shop(), {}, server)
    assert "over JDBC: set conn_id of the dataset orders" in refused.value.hint


def test_a_connection_alone_needs_a_database_in_the_contract() -> None:
    with pytest.raises(RequestError, match="has a conn_id but no table"):
        dataset_settings(shop(), {"orders": {"conn_id": "shop"}}, "files")
