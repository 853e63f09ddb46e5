"""Credentials in locations are refused and never shown."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dqx_airflow.datasets.settings import dataset_ref
from dqx_airflow.errors import RequestError
from dqx_airflow.values.redact import holds_credentials, may_be_secret, redact, redact_urls
from dqx_airflow.values.secret_forms import is_secret_setting

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
_PAGE = (Path(__file__).parent / "secret_forms.md").read_text(encoding="utf-8")


def _filled(line: str) -> str:
    """The line with letters and digits: a token that is written out is taken for a real one."""

    def characters(match: re.Match[str]) -> str:
        alphabet = "0123456789abcdef" if match[2] else "a1B2c3D4e5F6g7H8i9J0kLmNoPqRsTuV"
        return (alphabet * 4)[: int(match[1])]

    return re.sub(r"<(\d+)(x?)>", characters, line)


def _section(title: str) -> list[str]:
    body = _PAGE.partition(f"## {title}\n")[2].partition("\n## ")[0]
    if "ames" in title:
        return body.split()
    return [_filled(line) for line in body.splitlines() if line]


@pytest.mark.parametrize("name", _section("Names of secrets"))
def test_a_name_of_a_secret_is_known(name: str) -> None:
    assert is_secret_setting(name)


@pytest.mark.parametrize("name", _section("Ordinary names"))
def test_an_ordinary_name_is_none_of_a_secret(name: str) -> None:
    assert not is_secret_setting(name)


@pytest.mark.parametrize("value", _section("Secret values"))
def test_a_secret_is_known_by_its_form_and_hidden_in_logs(value: str) -> None:
    assert may_be_secret(value)
    assert redact(f"it read {value}, and failed") != f"it read {value}, and failed"
    with pytest.raises(RequestError, match="option comment"):
        dataset_ref("t", {"path": "s3://b/t", "format": "csv", "options": {"comment": value}})


@pytest.mark.parametrize("value", _section("Ordinary values"))
def test_an_ordinary_value_is_taken_for_no_secret(value: str) -> None:
    assert not may_be_secret(value)
    assert redact(value) == value


def test_the_tokens_of_vendors_are_hidden_in_texts_about_data_too() -> None:
    token = _filled("ghp_<36>")
    assert redact_urls(f"the value {token} of token = 3") == "the value *** of token = 3"


@pytest.mark.parametrize("place", WITH)
def test_a_location_with_credentials_is_refused(place: str) -> None:
    key = "table" if place.startswith("delta.") else "path"
    with pytest.raises(RequestError) as refused:
        dataset_ref("t", {key: place, "format": "csv"})
    assert "SECRET" not in str(refused.value).replace("SEC/RET", "SECRET")
    assert "credentials belong in the configuration of Spark" in str(refused.value)
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
