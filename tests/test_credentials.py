"""Credentials in locations are refused and never shown."""

from __future__ import annotations

import pytest

from dqx_airflow.datasets.settings import dataset_ref
from dqx_airflow.errors import RequestError
from dqx_airflow.values.redact import holds_credentials, is_secret_setting, redact_urls

WITH = [
    "https://u:SECRET@host/t.csv",
    "https://SECRET@host/t.csv",
    "https://account.blob.example/t.csv?sv=2024&sig=SECRET&se=1",
    "https://b.s3.amazonaws.com/t.csv?X-Amz-Credential=SECRET&X-Amz-Signature=SECRET",
    "s3://AKIA123:SECRET@bucket/t",
    "s3a://AKIA123:SEC/RET+SECRET@bucket/t",
    "wasbs://box@account.blob.core.windows.net/t?sv=1&sig=SECRET",
    "abfss://box:SECRET@account.dfs.core.windows.net/t",
    "jdbc:postgresql://host/db?user=u&password=SECRET",
    "jdbc:sqlserver://host:1433;user=u;password=SECRET",
    "delta.`s3://AKIA123:SECRET@bucket/t`",
]
WITHOUT = [
    "s3://bucket/t",
    "/data/a@b/t",
    "hdfs://nn:8020/data/a@b/t",
    "wasbs://box@account.blob.core.windows.net/t",
    "https://host:8080/t.csv?version=3",
    "catalog.schema.table",
]


@pytest.mark.parametrize("place", WITH)
def test_a_location_with_credentials_is_refused(place: str) -> None:
    key = "table" if place.startswith("delta.") else "path"
    with pytest.raises(RequestError) as refused:
        dataset_ref("t", {key: place, "format": "csv"})
    assert "SECRET" not in str(refused.value).replace("SEC/RET", "SECRET")
    assert "they belong in the configuration of Spark" in str(refused.value)
    assert "SECRET" not in redact_urls(place)


@pytest.mark.parametrize("place", WITHOUT)
def test_other_locations_are_accepted(place: str) -> None:
    assert not holds_credentials(place)
    assert redact_urls(place) == place


@pytest.mark.parametrize(
    "option",
    ["password", "fs.s3a.secret.key", "fs.azure.account.key.a.dfs.core.windows.net", "token",
     "fs.azure.sas.box.account", "fs.s3a.access.key", "AWS_SESSION_TOKEN", "sasToken"],
)  # fmt: skip
def test_a_secret_among_the_options_is_refused(option: str) -> None:
    with pytest.raises(RequestError) as refused:
        dataset_ref("t", {"path": "s3://b/t", "format": "csv", "options": {option: "SECRET"}})
    assert option in str(refused.value)
    assert "SECRET" not in str(refused.value).replace("AWS_SECRET", "")


@pytest.mark.parametrize("option", ["header", "sep", "nullValue", "fs.s3a.endpoint", "escape"])
def test_other_options_are_accepted(option: str) -> None:
    assert not is_secret_setting(option)
