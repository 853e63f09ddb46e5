"""Exported ODCS documents match the standard and keep every promise when they are read back."""

from __future__ import annotations

import json
from dataclasses import replace
from importlib.resources import files

import pytest
import yaml
from jsonschema import Draft201909Validator, ValidationError

from dqx_airflow.contracts.demands import (
    Arrives,
    Complete,
    Digits,
    Distinct,
    Fresh,
    Refers,
    Retained,
    RowsSatisfy,
)
from dqx_airflow.contracts.diff import diff
from dqx_airflow.contracts.export import FORMATS
from dqx_airflow.contracts.model import Consumer, Contract
from dqx_airflow.contracts.read import ReadContract, read_contract
from dqx_airflow.contracts.references import FolderReader
from dqx_airflow.values import SourceFile
from tests.contracts.dialect_parts import EXAMPLES, contracts_of, read_text

_TOLD_OTHERWISE = (Arrives, Complete, Digits, Distinct, Fresh, Refers, Retained, RowsSatisfy)
"""Demands that the standard says with another metric, as SQL, or with the column itself."""


def _sound() -> dict[str, Contract]:
    read: dict[str, ReadContract] = {}
    for dialect in ("odcs", "fabric", "product"):
        read |= {f"{dialect}: {k}": read_text(v) for k, v in contracts_of(dialect).items()}
    for path in sorted(EXAMPLES.glob("dcs/*.yaml")):
        source = SourceFile(path.name, path.read_text("utf-8"))
        read[f"dcs: {path.name}"] = read_contract(source, FolderReader(path.parent))
    return {
        name: found.contract
        for name, found in read.items()
        if found.contract is not None and not found.errors
    }


CONTRACTS = _sound()


@pytest.mark.few(13)
@pytest.mark.parametrize("name", CONTRACTS)
def test_the_document_fits_the_schema_of_the_standard(name: str) -> None:
    text = files("open_data_contract_standard").joinpath("schema.json").read_text("utf-8")
    validator = Draft201909Validator(json.loads(text))
    document = yaml.safe_load(FORMATS["odcs"].write(CONTRACTS[name]).text)
    errors = [error for error in validator.iter_errors(document) if not _is_of_no_type(error)]
    assert not [f"{error.json_path}: {error.message}" for error in errors]


def _is_of_no_type(error: ValidationError) -> bool:
    """The schema takes a property without a logical type for a map, which the standard does not."""
    return "'map' is a required" in error.message and "logicalType" not in error.instance


@pytest.mark.parametrize("name", CONTRACTS)
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


@pytest.mark.few(13)
@pytest.mark.parametrize("name", CONTRACTS)
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
    assert replace(read.lifecycle, written_status=written) == contract.lifecycle


@pytest.mark.few(13)
@pytest.mark.parametrize("name", CONTRACTS)
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


@pytest.mark.parametrize(
    ("logical", "physical", "written"),
    [
        ("integer", "NUMBER(12)", ("integer", "decimal(12,0)")),
        ("integer", "decimal(38,0)", ("integer", "decimal(38,0)")),
        ("integer", "NUMERIC(5)", ("integer", "decimal(5,0)")),
        ("integer", "bigint", ("integer", "bigint")),
        ("number", "NUMBER(12)", ("number", "decimal(12,0)")),
        ("number", "NUMBER(12,2)", ("number", "decimal(12,2)")),
        ("number", "double", ("number", "double")),
        ("timestamp", "timestamp_ntz", ("timestamp", "timestamp_ntz")),
        ("date", "DATE", ("date", "date")),
        ("string", "varchar(5)", ("string", "string")),
    ],
)
def test_the_logical_type_comes_back_as_it_was_written(
    logical: str, physical: str, written: tuple[str, str]
) -> None:
    text = f"""
apiVersion: v3.1.0
kind: DataContract
id: k
version: 1.0.0
status: active
schema:
  - {{name: t, properties: [{{name: a, logicalType: {logical}, physicalType: "{physical}"}}]}}
"""
    for _ in range(2):
        contract = read_contract(SourceFile("k.yaml", text)).contract
        assert contract is not None
        text = FORMATS["odcs"].write(contract).text
        (found,) = yaml.safe_load(text)["schema"][0]["properties"]
        assert (found["logicalType"], found.get("physicalType", "string")) == written
