"""Settings of datasets: which combinations are valid, and the messages for others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dqx_airflow.datasets.settings import dataset_ref, settings_of
from dqx_airflow.errors import RequestError
from dqx_airflow.values import DatasetRef, from_json, to_json

SOUND: list[dict[str, Any]] = [
    {"path": "/a", "version": "7"},
    {"path": "/a", "timestamp": "2024-03-02T06:00:00Z"},
    {"table": "a.b", "timestamp": "2024-03-02"},
    {"query": "SELECT * FROM a.b", "date_column": "at", "time_zone": "Europe/Zurich"},
    {"path": "/a", "format": "csv", "schema": "id int", "options": {"sep": ";"}},
    {"path": "/a", "format": "orc", "date_column": "ds", "date_format": "yyyyMMdd"},
    {"path": "/a", "trust_log": False},
    {"path": "/a", "format": "json", "options": {"MULTIline": "true", "header": "true"}},
    {"path": "/a", "format": "csv", "options": {"fs.s3a.endpoint": "x", "mode": "permissive"}},
    {"path": "/a", "format": "csv", "options": {"unchecked.rescuedDataColumn": "_rescued"}},
    {"path": "/a", "format": "parquet", "options": {"ignoreCorruptFiles": "false"}},
    {"path": "/a", "format": "iceberg", "options": {"versionAsOf": "1"}},
    {"table": "a", "options": {"versionAsOf": "1", "something": "else"}},
]


@pytest.mark.parametrize("settings", SOUND)
def test_settings_become_a_reference_and_come_back(settings: dict[str, Any]) -> None:
    ref = dataset_ref("orders", settings)
    assert dataset_ref("orders", settings_of(ref)) == ref
    assert from_json(DatasetRef, to_json(ref)) == ref


@pytest.mark.parametrize(
    ("path", "format"),
    [
        ("/lake/orders", "delta"),
        ("/lake/orders.csv", "csv"),
        ("/lake/*.parquet", "parquet"),
        ("/lake/orders.JSON.gz", "json"),
        ("/lake/orders.jsonl", "json"),
        ("/lake.csv/orders", "delta"),
        ("/lake/orders.v2", "delta"),
    ],
)
def test_the_file_name_gives_the_format(path: str, format: str) -> None:
    assert dataset_ref("orders", {"path": path}).format == format
    assert dataset_ref("orders", Path(path)).format == format
    assert dataset_ref("orders", {"path": path, "format": "orc"}).format == "orc"


WRONG: list[tuple[dict[str, Any], str]] = [
    ({}, "give it exactly one of path, table and query"),
    ({"path": "/a", "query": "SELECT 1"}, "exactly one of path"),
    *(
        ({"path": "/a", key: empty}, f"an empty {key}: remove it, or write a value")
        for key, empty in [
            ("filter", ""),
            ("filter", "\u200b"),
            ("date_column", " "),
            ("version", ""),
            ("masked", ""),
            ("masked", "\u2060\u3164"),
        ]
    ),
    *(
        ({"path": "/a", key: columns}, f"an empty column in {key}: remove it")
        for key in ("masked", "keys")
        for columns in ("a,,b", "a, ,b", "a,", ",a", "a,\u200b", ["a", "\u200b"])
    ),
    ({"path": "/a", "date_column": ["ds"]}, r"date_column=\['ds'\]: write a string"),
    ({"path": "/a", "version": 1.5}, "version=1.5: write the number of a Delta version"),
    ({"path": "/a", "version": True}, "version=True: write the number"),
    ({"path": "/a", "version": "1_0"}, "version='1_0': write the number"),
    ({"path": "/a", "format": "xls"}, "format='xls': write one of delta, parquet"),
    ({"path": "/a", "format": "csv", "version": 1}, "only Delta tables have versions"),
    ({"query": "SELECT 1", "timestamp": "2024-03-02"}, "only Delta tables have versions"),
    ({"path": "/a", "version": 1, "timestamp": "2024-03-02"}, "either a version or a timestamp"),
    ({"path": "/a", "version": -1}, "start at 0"),
    ({"path": "/a", "trust_log": "no"}, "trust_log='no': write true or false"),
    ({"path": "/a", "timestamp": "yesterday"}, "timestamp='yesterday': write 2024-"),
    ({"path": "/a", "schema": "id int"}, "only files can have one"),
    ({"table": "a", "schema": "id int"}, "only files can have one"),
    ({"path": "/a", "date_format": "yyyyMMdd"}, "no date_column"),
    ({"path": "/a", "time_zone": "Europe/Zurich"}, "no date_column"),
    ({"path": "/a", "date_column": "d", "date_format": "yyyymmdd"}, "'mm' is not supported"),
    ({"path": "/a", "date_column": "d", "time_zone": "Zurich"}, "such as Europe/Zurich"),
    ({"path": "/a", "date_column": "d", "time_zone": "../etc"}, "such as Europe/Zurich"),
    (
        {"path": "/a", "date_column": "d", "time_zone": "Europe/Zurich", "date_format": "yyyyMMdd"},
        "date_format is for strings, time_zone for timestamps",
    ),
]


OPTIONS: list[tuple[dict[str, Any], str, str]] = [
    (
        {"path": "/a", "options": {"versionAsOf": "0"}},
        "not supported for a Delta table",
        "write version=",
    ),
    ({"path": "/a", "options": {"TimestampAsOf": "x"}}, "a Delta table", "write timestamp="),
    ({"path": "/a", "options": {"mergeSchema": "true"}}, "options are not supported", "remove it"),
    ({"path": "/a", "options": {"unchecked.x": "true"}}, "options are not supported", "remove it"),
    (
        {"query": "SELECT 1", "options": {"mode": "FAILFAST"}},
        "not supported for a query",
        "remove it",
    ),
    ({"path": "/a.csv", "options": {"haeder": "true"}}, "'haeder', which csv", "mean 'header'"),
    ({"path": "/a.json", "options": {"header": "false"}}, "'header', which json", "remove it"),
    (
        {"path": "/a.orc", "options": {"versionAsOf": "1"}},
        "which orc does not support",
        "unchecked.",
    ),
    (
        {"path": "/a.csv", "options": {"spark.sql.ansi.enabled": "false"}},
        "not support",
        "unchecked.",
    ),
    ({"path": "/a.csv", "options": {"unchecked.sep": ";"}}, "unchecked.sep", "mean 'sep'"),
    ({"path": "/a.csv", "options": {"sep": ";", "SEP": ","}}, "twice", "case-insensitive"),
    (
        {"path": "/a.csv", "options": {"delimiter": ";", "Sep": ","}},
        "'Sep' next to 'delimiter'",
        "remove one",
    ),
    (
        {"path": "/a.json", "options": {"charset": "UTF-8", "encoding": "UTF-16"}},
        "'encoding' next to 'charset'",
        "remove one",
    ),
    ({"path": "/a.csv", "options": {"header": "yes"}}, "header=yes", "true or false"),
    ({"path": "/a.csv", "options": {"Header": True, "multiline": "1"}}, "multiline=1", "true or"),
    ({"path": "/a.csv", "options": {"maxColumns": "many"}}, "maxColumns=many", "whole number"),
    ({"path": "/a.csv", "options": {"quote": "''"}}, "quote=''", "one character"),
    ({"path": "/a.csv", "options": {"sep": ""}}, "sep=", "write a value"),
    ({"path": "/a.json", "options": {"samplingRatio": "10"}}, "samplingRatio=10", "up to 1"),
    (
        {"path": "/a.parquet", "options": {"datetimeRebaseMode": "old"}},
        "datetimeRebaseMode=old",
        "EXCEPTION, CORRECTED, LEGACY",
    ),
    (
        {"path": "/a.csv", "options": {"modifiedAfter": "2024-05-17"}},
        "modifiedAfter=2024-05-17",
        "write 2024-05-17T06:00:00",
    ),
    ({"path": "/a.csv", "options": {"mode": "FAILFATS"}}, "mode=FAILFATS", "one of FAILFAST"),
    ({"path": "/a.csv", "options": {"unchecked.Mode": "x"}}, "unchecked.Mode", "mean 'Mode'"),
    (
        {"path": "/a.csv", "options": {"ignoreCorruptFiles": "true"}},
        "does not skip",
        "pathGlobFilter",
    ),
    ({"table": "a", "options": {"ignoremissingfiles": "TRUE"}}, "does not skip", "remove it"),
    ({"table": "a", "options": {"mergeShema": "true"}}, "'mergeShema'", "mean 'mergeSchema'"),
]


@pytest.mark.parametrize(("settings", "problem", "hint"), OPTIONS)
def test_an_unsupported_option_is_refused(
    settings: dict[str, Any], problem: str, hint: str
) -> None:
    with pytest.raises(RequestError, match=problem) as caught:
        dataset_ref("orders", settings)
    assert hint in caught.value.hint


@pytest.mark.parametrize(("settings", "problem"), WRONG)
def test_invalid_settings_are_refused(settings: dict[str, Any], problem: str) -> None:
    with pytest.raises(RequestError, match=problem):
        dataset_ref("orders", settings)


@pytest.mark.parametrize(
    ("path", "read"),
    [
        ("gcs://lake/orders", "gs://lake/orders"),
        ("gs://lake/orders", "gs://lake/orders"),
        ("s3n://lake/orders", "s3a://lake/orders"),
        ("s3://lake/orders", "s3://lake/orders"),
        (
            "https://shop.blob.core.windows.net/lake/orders/*.csv",
            "abfss://lake@shop.dfs.core.windows.net/orders/*.csv",
        ),
        (
            "az://lake@shop.blob.core.windows.net/orders",
            "abfss://lake@shop.dfs.core.windows.net/orders",
        ),
        ("/lake/orders", "/lake/orders"),
    ],
)
def test_a_location_is_normalised_as_in_hadoop(path: str, read: str) -> None:
    assert dataset_ref("orders", {"path": path, "format": "parquet"}).path == read


def test_an_endpoint_makes_s3a_of_s3() -> None:
    options = {"fs.s3a.endpoint": "http://minio:9000"}
    ref = dataset_ref("orders", {"path": "s3://lake/a", "format": "csv", "options": options})
    assert ref.path == "s3a://lake/a"


@pytest.mark.parametrize(
    ("path", "problem", "hint"),
    [
        (
            "az://lake/orders",
            "dataset 'orders': the location az://lake/orders names no account",
            "write abfss://lake@ACCOUNT.dfs.core.windows.net/orders",
        ),
        ("https://example.com/a.csv", "is a web address, which Spark does not read", "s3a://"),
    ],
)
def test_a_location_that_spark_cannot_read_is_refused(path: str, problem: str, hint: str) -> None:
    with pytest.raises(RequestError) as caught:
        dataset_ref("orders", {"path": path, "format": "csv"})
    assert problem in caught.value.problem
    assert hint in caught.value.hint
