"""Exported ODCS documents match the standard and keep every promise when they are read back."""

from __future__ import annotations

import json
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft201909Validator, ValidationError

from dqx_airflow.contracts.compile.suite import compile_contract
from dqx_airflow.contracts.demands import (
    Arrives,
    Complete,
    Digits,
    Distinct,
    Fresh,
    Refers,
    Retained,
    RowsSatisfy,
    Unique,
)
from dqx_airflow.contracts.diff import diff
from dqx_airflow.contracts.document import plain_value
from dqx_airflow.contracts.export import FORMATS
from dqx_airflow.contracts.model import Consumer, Contract, Dialect, Treatment
from dqx_airflow.contracts.read import ReadContract, read_contract
from dqx_airflow.contracts.references import FolderReader
from dqx_airflow.values import SourceFile
from tests.contracts.dialect_parts import EXAMPLES, HERE, contracts_of, read_text
from tests.markdown_cases import cases

SCHEMAS = Path(__file__).parents[2] / "tools" / "schemas"

_TOLD_OTHERWISE = (
    Arrives,
    Complete,
    Digits,
    Distinct,
    Fresh,
    Refers,
    Retained,
    RowsSatisfy,
    Unique,
)
"""Demands that the standard says with another metric, as SQL, or with the column itself."""


def _sound() -> dict[str, Contract]:
    read: dict[str, ReadContract] = {}
    for dialect in ("odcs", "fabric", "product"):
        read |= {f"{dialect}: {k}": read_text(v) for k, v in contracts_of(dialect).items()}
    for folder in ("dcs", "standard"):
        for path in sorted(EXAMPLES.glob(f"{folder}/*.yaml")):
            source = SourceFile(path.name, path.read_text("utf-8"))
            read[f"{folder}: {path.name}"] = read_contract(source, FolderReader(path.parent))
    for case in cases(*sorted(HERE.glob("suites/*.md"))):
        if case.blocks[0].kind == "yaml":
            read[f"suite: {case.title}"] = read_text(case.blocks[0].text)
    return {
        name: found.contract
        for name, found in read.items()
        if found.contract is not None and not found.errors
    }


CONTRACTS = _sound()
STANDARD = [name for name, found in CONTRACTS.items() if found.dialect is Dialect.ODCS]
OTHERS = [name for name in CONTRACTS if name not in STANDARD]


def _official(version: str) -> Draft201909Validator:
    """The validator of the schema of a version, as it is published."""
    if version == "v3.1.0":
        text = (SCHEMAS / "odcs-3.1.0.schema.json").read_text("utf-8")
    else:
        text = files("open_data_contract_standard").joinpath("schema.json").read_text("utf-8")
    return Draft201909Validator(json.loads(text))


OFFICIAL = {version: _official(version) for version in ("v3.1.0", "v3.2.0")}


def _errors(document: dict[str, Any]) -> list[str]:
    errors = OFFICIAL[document["apiVersion"]].iter_errors(document)
    return [f"{error.json_path}: {error.message}" for error in errors if not _is_of_no_type(error)]


@pytest.mark.few(13)
@pytest.mark.parametrize("name", CONTRACTS)
def test_the_document_fits_the_schema_of_its_version(name: str) -> None:
    """A contract of the standard does if it did before; our reader also takes other references."""
    contract = CONTRACTS[name]
    document = yaml.safe_load(FORMATS["odcs"].write(contract).text)
    if contract.document is not None and document["apiVersion"] in OFFICIAL:
        before = plain_value(contract.document)
        if before["apiVersion"] == document["apiVersion"] and _errors(before):
            return
    assert not _errors(document)


def _is_of_no_type(error: ValidationError) -> bool:
    """The schema takes a property without a logical type for a map, which the standard does not."""
    is_required = "'map' is a required" in error.message
    return is_required and isinstance(error.instance, dict) and "logicalType" not in error.instance


def _suite(contract: Contract) -> list[str]:
    """The assertions of a contract with their names, without the positions in the document."""
    lines = compile_contract(contract).text.splitlines()
    return [line.strip() for line in lines if line.strip() and not line.strip().startswith("#")]


@pytest.mark.few(12, apart=True)
@pytest.mark.parametrize("name", STANDARD)
def test_a_contract_of_the_standard_comes_back_with_the_same_suite(name: str) -> None:
    contract = CONTRACTS[name]
    read = read_text(FORMATS["odcs"].write(contract).text)
    assert read.contract is not None
    assert not read.errors, read.errors[0].message
    assert _suite(read.contract) == _suite(contract)


@pytest.mark.parametrize("name", STANDARD)
def test_a_contract_of_the_standard_keeps_all_that_it_says(name: str) -> None:
    contract = CONTRACTS[name]
    exported = FORMATS["odcs"].write(contract)
    assert contract.document is not None
    before = plain_value(contract.document)
    after = yaml.safe_load(exported.text)
    unknown = {key.key for key in contract.unknown_keys}
    assert before.keys() - unknown - {key for key in before if key.startswith("x-")} <= after.keys()
    for key in ("tenant", "team", "roles", "support", "price", "description", "slaProperties"):
        if key in before:
            assert after[key] == before[key]
    # What nobody checks is listed only where it is left out.
    reasons = [loss.reason for loss in exported.losses]
    assert [reason for reason in reasons if not reason.startswith("not checked at all")] == []


@pytest.mark.parametrize("name", OTHERS)
def test_only_what_is_enforced_is_listed_as_lost(name: str) -> None:
    contract = CONTRACTS[name]
    known = {contract.assertion_name(*found) for found in contract.rules()}
    known |= {model.name for model in contract.models}  # its partitions
    known |= {
        note.clause.path for note in contract.notes if note.treatment is Treatment.UNSUPPORTED
    }
    listed = {loss.path for loss in FORMATS["odcs"].write(contract).losses}
    assert not listed - known


@pytest.mark.parametrize("name", OTHERS)
def test_an_export_is_read_back_without_unlisted_breaking_changes(name: str) -> None:
    contract = CONTRACTS[name]
    exported = FORMATS["odcs"].write(contract)
    read = read_text(exported.text)
    assert read.contract is not None
    assert not read.errors, read.errors[0].message
    lost = {loss.path for loss in exported.losses}
    for number, model in enumerate(contract.models):
        lost |= {path.replace(f"schema[{number}]", f"schema[{model.name}]") for path in lost}
    otherwise = {
        (model.name, rule.name)
        for model, _, rule in contract.rules()
        if isinstance(rule.demand, _TOLD_OTHERWISE)
    }
    for change in diff(contract, read.contract).breaking:
        is_same = (change.model, change.path.rpartition(".")[2]) in otherwise
        is_reported = change.path in lost or (is_same and change.kind.name == "rule_added")
        assert is_reported, f"{change.path}: {change.message}"


_SERVERS = """
postgres: {host: db.example.com, port: 5432, database: shop, schema: public}
duckdb: {database: shop.duckdb, schema: main}
snowflake: {account: shop, database: SHOP, schema: PUBLIC}
bigquery: {project: shop, dataset: orders}
redshift: {account: "1", host: db.example.com, database: shop, schema: public}
sqlserver: {host: db.example.com, port: 1433, database: shop, schema: dbo}
oracle: {host: db.example.com, port: 1521, serviceName: SHOP}
mysql: {host: db.example.com, port: 3306, database: shop}
trino: {host: db.example.com, port: 8080, catalog: lake, schema: shop}
databricks: {host: db.example.com, catalog: lake, schema: shop}
s3: {location: "s3://shop/orders/*.json", format: json, delimiter: array}
gcs: {location: "gs://shop/orders/*.json", format: json}
postgres without keys: {host: db.example.com}
"""


@pytest.mark.few(5)
@pytest.mark.parametrize(("kind", "keys"), yaml.safe_load(_SERVERS).items())
def test_servers_keep_their_type_and_sql_its_dialect(kind: str, keys: dict[str, Any]) -> None:
    server = {"type": kind.partition(" ")[0], "environment": "prod"} | keys
    text = yaml.safe_dump(
        {
            "dataContractSpecification": "1.2.1",
            "id": "shop",
            "info": {"title": "Shop", "version": "1.0.0", "owner": "shop"},
            "servers": {"main": server},
            "models": {"orders": {"fields": _FIELDS, "quality": _RULES}},
        },
        sort_keys=False,
    )
    contract = read_text(text).contract
    assert contract is not None
    exported = FORMATS["odcs"].write(contract)
    document = yaml.safe_load(exported.text)
    assert not _errors(document)
    (written,) = document["servers"]
    if kind not in ("gcs", "postgres without keys"):
        assert written == {"server": "main", "environment": "prod", "type": kind} | keys
    back = read_text(exported.text).contract
    assert back is not None
    assert _claims(back) == _claims(contract)
    assert not exported.losses


_FIELDS = {
    "id": {"type": "long", "required": True},
    "tier": {"type": "string"},
    "paid": {"type": "double"},
    "at": {"type": "timestamp"},
}
_RULES = [
    {
        "type": "sql",
        "query": "SELECT COUNT(*) FROM orders WHERE tier NOT IN ('free', 'paid')",
        "mustBe": 0,
    }
]


def _claims(contract: Contract) -> list[str]:
    return [line.replace("[dcs]", "[odcs]") for line in _suite(contract)]


_SERVICE = """
dataContractSpecification: 1.2.1
id: shop
info: {title: Shop, version: 1.0.0, owner: shop}
models: {orders: {fields: {id: {type: long}, at: {type: timestamp}}}}
servicelevels:
  freshness: {threshold: 24h}
  retention: {period: P5Y}
  frequency: {cron: "0 6 * * 1-5"}
"""


def test_service_levels_of_an_object_name_the_object() -> None:
    contract = read_text(_SERVICE).contract
    assert contract is not None
    exported = FORMATS["odcs"].write(contract)
    assert yaml.safe_load(exported.text)["slaProperties"] == [
        {"property": "freshness", "value": 1, "unit": "d", "element": "orders"},
        {"property": "retention", "value": 5, "unit": "y", "element": "orders"},
        {"property": "frequency", "value": "0 6 * * 1-5", "element": "orders"},
    ]
    assert not exported.losses
    back = read_text(exported.text).contract
    assert back is not None
    assert _claims(back) == _claims(contract)


def test_a_contract_without_a_status_is_in_force() -> None:
    contract = read_text(_SERVICE).contract
    assert contract is not None
    assert yaml.safe_load(FORMATS["odcs"].write(contract).text)["status"] == "active"


def test_one_model_of_a_contract_has_its_own_service_levels() -> None:
    contract = CONTRACTS["odcs: orders_3_1.yaml"]
    (orders, _) = contract.models
    document = yaml.safe_load(FORMATS["odcs"].write(replace(contract, models=(orders,))).text)
    assert [item["name"] for item in document["schema"]] == [orders.name]
    names = {str(level.get("element", "")).partition(".")[0] for level in document["slaProperties"]}
    assert "line_items" not in names


@pytest.mark.few(13)
@pytest.mark.parametrize("name", OTHERS)
def test_consumers_and_the_change_policy_are_read_back(name: str) -> None:
    contract = CONTRACTS[name]
    contract = replace(
        contract,
        consumers=(*contract.consumers, Consumer("bi", "Reports", "2"), Consumer("risk")),
        lifecycle=replace(
            contract.lifecycle,
            deprecation_date="2026-01-01",
            successor="orders_v3",
            notice_days=30,
            breaking_notice_days=90,
            dual_write_days=14,
            cadence="quarterly_max",
        ),
    )
    read = read_text(FORMATS["odcs"].write(contract).text).contract
    assert read is not None
    assert read.consumers == contract.consumers
    written = contract.lifecycle.written_status
    status = contract.lifecycle.status or "active"
    expected = replace(contract.lifecycle, status=status)
    assert replace(read.lifecycle, written_status=written) == expected


@pytest.mark.few(13)
@pytest.mark.parametrize("name", OTHERS)
def test_every_rule_is_read_back_or_listed_as_lost(name: str) -> None:
    contract = CONTRACTS[name]
    exported = FORMATS["odcs"].write(contract)
    read = read_text(exported.text).contract
    assert read is not None
    lost = {loss.path for loss in exported.losses}
    back = [(model.name, rule.demand, rule.name) for model, _, rule in read.rules()]
    for model, item, rule in contract.rules():
        found = any(
            name == model.name and (demand == rule.demand or title == rule.name)
            for name, demand, title in back
        )
        path = contract.assertion_name(model, item, rule)
        # The parts of a nested type that says no more are written as one type.
        is_part = item is not None and item not in model.fields
        assert found or path in lost or is_part, path


_OF_TYPES = """
apiVersion: v3.0.2
kind: DataContract
id: k
version: 1.0.0
status: active
schema:
  - name: t
    properties:
      - {name: a, logicalType: date, logicalTypeOptions: {format: "yyyy-MM-dd HH:mm:ss"}}
      - {name: b, logicalType: integer, logicalTypeOptions: {minimum: 1, exclusiveMinimum: true}}
      - {name: c, logicalType: string, x-dqx-accepted: {owner: me, reason: known}, colour: red}
    quality:
      - {rule: rowCount, mustBeGreaterThan: 1, mustBeLessThan: 9, id: rows}
      - {type: library, rule: freshness, mustBe: 5}
"""


def test_a_document_of_an_older_version_becomes_one_of_a_newer() -> None:
    contract = read_text(_OF_TYPES).contract
    assert contract is not None
    exported = FORMATS["odcs"].write(contract)
    document = yaml.safe_load(exported.text)
    assert document["apiVersion"] == "v3.1.0"
    assert not _errors(document)
    (table,) = document["schema"]
    assert table["quality"] == [
        {"metric": "rowCount", "mustBeGreaterThan": 1, "id": "rows"},
        {"metric": "rowCount", "mustBeLessThan": 9, "name": "rows"},
    ]
    back = read_text(exported.text).contract
    assert back is not None
    assert _suite(back) == [line for line in _suite(contract) if "freshness" not in line]
    assert {loss.path for loss in exported.losses} == {
        f"schema[0].quality[1].{key}" for key in ("type", "rule", "mustBe")
    }


_REFERENCES = """
dataContractSpecification: 1.2.1
id: shop
info: {{title: Shop, version: 1.0.0, owner: shop, status: active}}
models:
  orders:
    fields:
      id: {{type: long}}
      address: {{type: struct, fields: {{id: {{type: long}}, "zip code": {{type: long}}}}}}
  lines: {{fields: {{order: {{type: long, references: "{to}"}}}}}}
"""


@pytest.mark.parametrize(
    ("to", "version"),
    [
        ("orders.id", "v3.1.0"),
        ("orders.address.id", "v3.2.0"),
        ("orders.address.`zip code`", "v3.1.0"),
    ],
)
def test_a_reference_is_written_in_a_version_that_has_it(to: str, version: str) -> None:
    contract = read_text(_REFERENCES.format(to=to)).contract
    assert contract is not None
    exported = FORMATS["odcs"].write(contract)
    document = yaml.safe_load(exported.text)
    assert document["apiVersion"] == version
    assert not _errors(document)
    back = read_text(exported.text)
    assert back.contract is not None
    assert not back.errors
    if "zip" not in to:
        assert _claims(back.contract) == _claims(contract)


def test_variables_are_written_as_variables() -> None:
    text = """
apiVersion: v3.2.0
kind: DataContract
id: shop
version: 1.0.0
servers: [{server: main, type: postgres, host: "${HOST}", port: 5432, database: d, schema: s}]
schema: [{name: t, properties: [{name: a, logicalType: string, x-note: "${HOST}"}]}]
"""
    read = read_contract(SourceFile("c.yaml", text), variables={"HOST": "db.example.com"})
    assert read.contract is not None
    exported = FORMATS["odcs"].write(read.contract).text
    assert exported.count("${HOST}") == 2
    assert "db.example.com" not in exported


def test_a_type_that_the_standard_does_not_have_is_lost() -> None:
    text = yaml.safe_dump(
        {
            "dataContractSpecification": "1.2.1",
            "id": "c",
            "info": {"title": "Maps", "version": "1.0.0"},
            "models": {"orders": {"fields": {"open": {"type": "map"}, "id": {"type": "int"}}}},
        }
    )
    contract = read_text(text).contract
    assert contract is not None
    losses = [str(loss) for loss in FORMATS["odcs"].write(contract).losses]
    assert losses == ["orders.open.type: the standard has no type for map"]
