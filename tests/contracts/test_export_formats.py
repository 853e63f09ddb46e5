"""`dql contract export`: cases of each format in `exports`, and the exit codes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, get_args

import pytest
from jsonschema import Draft202012Validator
from typer.testing import CliRunner, Result

from dqx_airflow.cli.contract.documents import ExportFormat
from dqx_airflow.cli.main import app
from dqx_airflow.contracts.export import FORMATS
from tests.markdown_cases import Case, cases

HERE = Path(__file__).parent
ALL = list(cases(*(HERE / "exports").glob("to_*.md")))
SLOTS = str(HERE / "examples" / "fabric" / "slot_telemetry.yaml")
ORDERS = str(HERE / "examples" / "odcs" / "orders_3_1.yaml")


def dql(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["contract", *arguments])


@pytest.mark.parametrize("case", ALL, ids=str)
def test_a_contract_in_the_format(case: Case, tmp_path: Path) -> None:
    path = tmp_path / "contract.yaml"
    path.write_text(case.blocks[0].text)
    name = case.path.stem.removeprefix("to_").replace("_", "-")
    result = dql("export", str(path), "--format", name)
    assert result.exit_code == 0, result.output
    case.expect(result.stdout + result.stderr)


def test_every_format_can_be_selected() -> None:
    assert get_args(ExportFormat) == tuple(FORMATS)


def test_a_file_is_written(tmp_path: Path) -> None:
    output = tmp_path / "slots.html"
    result = dql("export", SLOTS, "--format", "html", "--output", str(output))
    assert (result.exit_code, result.stdout) == (0, "")
    assert output.read_text("utf-8").startswith("<!DOCTYPE html>")


def test_several_models_need_a_model_name() -> None:
    result = dql("export", ORDERS, "--format", "spark")
    assert result.exit_code == 2
    assert "has 2 models" in result.stderr
    assert "available: orders, line_items" in result.stderr
    assert dql("export", ORDERS, "--format", "spark", "--model", "orders").exit_code == 0
    result = dql("export", ORDERS, "--format", "odcs", "--model", "order")
    assert "has no model 'order'" in result.stderr
    assert "did you mean 'orders'?" in result.stderr


def test_a_missing_folder_is_reported() -> None:
    result = dql("export", SLOTS, "--format", "html", "--output", "no/such/page.html")
    assert result.exit_code == 2
    assert result.stderr == "error: cannot write no/such/page.html: No such file or directory\n"


ROW = {
    "machine_id": "M0001",
    "casino_id": "C1",
    "event_ts": "2024-11-29T12:00:00Z",
    "amount_wagered": 5.0,
    "amount_won": 0,
    "game_type": "SLOT",
    "player_id": None,
}


@pytest.mark.parametrize(
    ("change", "is_valid"),
    [
        ({}, True),
        ({"tax_id_hashed": None, "something_else": 1}, True),
        ({"machine_id": None}, False),
        ({"machine_id": "m1"}, False),
        ({"amount_wagered": 0}, False),
        ({"amount_wagered": "5"}, False),
        ({"game_type": "BINGO"}, False),
    ],
)
def test_a_json_schema_admits_the_rows_that_the_contract_does(
    change: dict[str, Any], is_valid: bool
) -> None:
    schema = json.loads(dql("export", SLOTS, "--format", "json-schema").stdout)
    Draft202012Validator.check_schema(schema)
    assert Draft202012Validator(schema).is_valid(ROW | change) is is_valid


@pytest.mark.spark
def test_spark_reads_the_columns(spark: Any) -> None:
    from pyspark.sql.types import StructType

    for arguments in ((SLOTS,), (ORDERS, "--model", "orders")):
        text = dql("export", *arguments, "--format", "spark").stdout
        struct = StructType.fromDDL(text)
        assert len(struct.fields) == len(text.splitlines())
    first = StructType.fromDDL(dql("export", SLOTS, "--format", "spark").stdout).fields[0]
    assert (first.name, first.nullable) == ("machine_id", False)
    assert first.metadata["comment"].startswith("Unique slot machine identifier")
