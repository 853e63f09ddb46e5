"""Publishing a contract: what the table and the catalogs get."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from tests.command_line import dql

CONTRACT = """\
dataContractSpecification: 1.2.1
id: orders
info:
  title: Orders
  version: 1.2.0
  owner: checkout
models:
  orders:
    description: One record per order.
    fields:
      id:
        type: bigint
        description: |
          The number of the order;
          it isn't reused.
      total:
        type: decimal
        precision: 18
        scale: 2
        description: What was paid.
        lineage:
          inputFields:
            - namespace: postgres://shop
              name: public.orders
              field: amount
      gone:
        type: text
        description: Not there yet.
  items:
    fields:
      id:
        type: bigint
"""


@pytest.fixture
def folder(here: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (here / "orders.yaml").write_text(CONTRACT)
    write_deltalake("lake/orders", pa.table({"id": [1], "total": [1.5], "note": ["x"]}))
    transport = {"type": "file", "log_file_path": str(here / "events.jsonl"), "append": True}
    monkeypatch.setenv("OPENLINEAGE__TRANSPORT", json.dumps(transport))
    return here


def publish(*arguments: str) -> tuple[int, str]:
    done = dql("contract", "annotate-table", "orders.yaml", *arguments)
    return done.returncode, done.output


def test_the_table_has_its_contract_in_its_properties(folder: Path) -> None:
    code, output = publish("--table", "lake/orders", "--model", "orders")
    assert code == 0, output
    assert "published orders 1.2.0 in version 4 of the table" in output
    assert "the table has no column gone" in output
    table = DeltaTable("lake/orders")
    assert table.metadata().configuration == {
        "dqx.contract.id": "orders",
        "dqx.contract.version": "1.2.0",
        "dqx.contract.owner": "checkout",
    }
    assert table.metadata().description == "One record per order."
    comments = {field.name: field.metadata.get("comment") for field in table.schema().fields}
    assert comments == {
        "id": "The number of the order; it isn't reused.",
        "total": "What was paid.",
        "note": None,
    }
    assert table.to_pyarrow_table().num_rows == 1


def test_publishing_again_writes_nothing(folder: Path) -> None:
    publish("--table", "lake/orders", "--model", "orders")
    version = DeltaTable("lake/orders").version()
    code, output = publish("--table", "lake/orders", "--model", "orders")
    assert (code, DeltaTable("lake/orders").version()) == (0, version)
    assert "the table is up to date: orders 1.2.0" in output


def test_a_dry_run_writes_and_emits_nothing(folder: Path) -> None:
    code, output = publish("--table", "lake/orders", "--model", "orders", "--dry-run")
    assert code == 0
    assert "would set dqx.contract.version = 1.2.0" in output
    assert DeltaTable("lake/orders").version() == 0
    assert not (folder / "events.jsonl").exists()


def test_catalogs_get_description_owner_columns_and_lineage(folder: Path) -> None:
    publish("--table", "lake/orders", "--model", "orders")
    (event,) = [json.loads(line) for line in (folder / "events.jsonl").read_text().splitlines()]
    facets = event["dataset"]["facets"]
    assert event["dataset"]["name"] == str(folder / "lake/orders")
    assert facets["documentation"]["description"] == "One record per order."
    assert [owner["name"] for owner in facets["ownership"]["owners"]] == ["checkout"]
    assert [column["name"] for column in facets["schema"]["fields"]] == ["id", "total", "gone"]
    (source,) = facets["columnLineage"]["fields"]["total"]["inputFields"]
    assert (source["namespace"], source["name"], source["field"]) == (
        "postgres://shop",
        "public.orders",
        "amount",
    )
    assert {tag["key"]: tag["value"] for tag in facets["tags"]["tags"]} == {
        "contract": "orders",
        "contract_version": "1.2.0",
    }


def test_a_table_of_a_catalog_gets_statements(folder: Path) -> None:
    code, output = publish("--sql", "main.sales.orders", "--model", "orders")
    assert code == 0
    assert output.splitlines() == [
        "ALTER TABLE main.sales.orders SET TBLPROPERTIES ('dqx.contract.id' = 'orders', "
        "'dqx.contract.version' = '1.2.0', 'dqx.contract.owner' = 'checkout');",
        "COMMENT ON TABLE main.sales.orders IS 'One record per order.';",
        "ALTER TABLE main.sales.orders ALTER COLUMN `id` COMMENT "
        "'The number of the order; it isn\\'t reused.';",
        "ALTER TABLE main.sales.orders ALTER COLUMN `total` COMMENT 'What was paid.';",
        "ALTER TABLE main.sales.orders ALTER COLUMN `gone` COMMENT 'Not there yet.';",
    ]


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--table", "lake/orders"], 2, "orders.yaml has 2 models"),
        (["--table", "lake/orders", "--model", "order"], 2, "did you mean 'orders'?"),
        (["--table", "lake/nothing", "--model", "orders"], 4, "no Delta table at lake/nothing"),
        ([], 2, "give --table PATH, or --sql NAME"),
        (["--table", "a", "--sql", "b"], 2, "give --table PATH, or --sql NAME"),
    ],
)
def test_an_invalid_call_is_reported(
    folder: Path, arguments: list[str], code: int, message: str
) -> None:
    found, text = publish(*arguments)
    assert found == code
    assert message in text


def test_a_contract_with_errors_is_not_published(folder: Path) -> None:
    (folder / "orders.yaml").write_text(CONTRACT.replace("precision: 18", "precision: many"))
    code, output = publish("--table", "lake/orders", "--model", "orders")
    assert code == 2
    assert "E405" in output
    assert DeltaTable("lake/orders").version() == 0
