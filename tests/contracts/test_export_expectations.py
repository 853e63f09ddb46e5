"""Exported Great Expectations suites, in both formats, and that they load."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from dqx_airflow.contracts.export import FORMATS
from dqx_airflow.contracts.export.exported import Exported
from tests.contracts.dialect_parts import EXAMPLES, contracts_of, read_text
from tests.contracts.seed_generator import generate_ge_suite

FABRIC = sorted(EXAMPLES.glob("fabric/*.yaml"))


def exported(text: str, name: str) -> Exported:
    contract = read_text(text).contract
    assert contract is not None
    return FORMATS[name].write(contract)


def generated(path: Path) -> dict[str, Any]:
    return generate_ge_suite(yaml.safe_load(path.read_text("utf-8")))


@pytest.mark.parametrize("path", FABRIC, ids=lambda path: path.stem)
def test_the_older_form_is_what_the_generator_makes(path: Path) -> None:
    due = json.dumps(generated(path), indent=2) + "\n"
    assert exported(path.read_text("utf-8"), "great-expectations-0").text == due


@pytest.mark.parametrize("path", FABRIC, ids=lambda path: path.stem)
def test_the_current_form_begins_with_what_the_generator_makes(path: Path) -> None:
    due = generated(path)
    suite = json.loads(exported(path.read_text("utf-8"), "great-expectations").text)
    assert (suite["name"], suite["meta"]) == (due["expectation_suite_name"], due["meta"])
    expectations = [
        {"type": item["expectation_type"], "kwargs": item["kwargs"]} for item in due["expectations"]
    ]
    types = "expect_column_values_to_be_of_type"
    # Besides, the current form knows all types: `date` is none of those that the generator knows.
    found = [
        item for item in suite["expectations"] if item in expectations or item["type"] != types
    ]
    assert found[: len(expectations)] == expectations


def all_suites() -> dict[str, str]:
    texts = {
        f"{dialect}: {name}": text
        for dialect in ("fabric", "odcs", "product")
        for name, text in contracts_of(dialect).items()
    }
    found = {}
    for name, text in texts.items():
        read = read_text(text)
        if read.contract is not None and not read.errors and len(read.contract.models) == 1:
            found[name] = FORMATS["great-expectations"].write(read.contract).text
    return found


def test_great_expectations_loads_every_suite() -> None:
    gx = pytest.importorskip("great_expectations")
    suites = all_suites()
    assert len(suites) > 30
    for text in suites.values():
        plain = json.loads(text)
        loaded = gx.ExpectationSuite(**plain)
        assert len(loaded.expectations) == len(plain["expectations"])


def test_every_rule_is_an_expectation_or_is_listed_as_lost() -> None:
    contract = read_text((EXAMPLES / "fabric" / "slot_telemetry.yaml").read_text("utf-8")).contract
    assert contract is not None
    for name in ("great-expectations", "great-expectations-0"):
        text, lost = (found := FORMATS[name].write(contract)).text, found.losses
        expectations = len(json.loads(text)["expectations"])
        stricter = [item for item in lost if "stricter" in item.reason]
        rules = list(contract.rules())
        unread = [item for item in lost if "not checked at all" in item.reason]
        # Both ends of a range are one expectation, and the columns as a set are of no rule.
        ranges = 1
        assert expectations - 1 + ranges + len(lost) - len(stricter) - len(unread) == len(rules)
