"""`dql init` over tables of several places: catalogs, lists, lineage events; ranked, as a page, and
as a diff."""

from __future__ import annotations

import json
import shutil
from datetime import date, timedelta
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from dqx_airflow.datasets.dqx_toml import Settings, read_settings
from tests.command_line import dql
from tests.http_stub import Asked, Reply, http_stub
from tests.small_lakes import write_parquet, write_small_lake

DAYS = [date(2024, 3, 1) + timedelta(days=number) for number in range(14)]


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    write_small_lake(tmp_path / "lake")
    return tmp_path / "lake"


def settings_of(gates: Path) -> Settings:
    settings = read_settings(gates / "dqx.toml")
    assert settings.problems == ()
    return settings


def report_of(gates: Path, *arguments: str | Path) -> dict[str, dict[str, Any]]:
    """The rows of the report by place, in their order."""
    done = dql("init", gates, *arguments, "--format", "json")
    assert done.returncode == 0, done.output
    return {row["location"]: row for row in json.loads(done.stdout)["tables"]}


def an_order_table() -> pa.Table:
    on = [day for day in DAYS for _ in range(30)]
    ids = pa.array(range(len(on)), pa.int64())
    status = ["new" if number % 3 else "paid" for number in range(len(on))]
    return pa.table({"order_id": ids, "status": status, "ds": on})


# Catalogs ----------------------------------------------------------------------------------------


@pytest.fixture
def iceberg(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A catalog `lake` in SQLite, with two tables in `sales` and one in `web`."""
    catalogs = pytest.importorskip("pyiceberg.catalog")
    for name, value in {
        "TYPE": "sql",
        "URI": f"sqlite:///{tmp_path}/catalog.db",
        "WAREHOUSE": f"file://{tmp_path}/warehouse",
    }.items():
        monkeypatch.setenv(f"PYICEBERG_CATALOG__LAKE__{name}", value)
    monkeypatch.setattr(catalogs, "_ENV_CONFIG", catalogs.Config())  # which is read on import
    catalog = catalogs.load_catalog("lake")
    catalog.create_namespace("sales")
    catalog.create_namespace("web")
    orders = an_order_table()
    customers = pa.table({"id": pa.array(range(50), pa.int64()), "name": ["x"] * 50})
    for name, rows in {
        "sales.orders": orders,
        "sales.customers": customers,
        "web.visits": orders,
    }.items():
        catalog.create_table(name, rows.schema).append(rows)


@pytest.mark.usefixtures("iceberg")
def test_tables_of_an_iceberg_catalog_are_drafted_without_spark(tmp_path: Path) -> None:
    gates = tmp_path / "gates"
    rows = report_of(gates, "--dataset", "iceberg:lake.sales.*")
    assert [*rows] == ["lake.sales.customers", "lake.sales.orders"]
    found = rows["lake.sales.orders"]
    assert not found.get("problem"), found
    assert (found["row_count"], found["days"], found["key"]) == (420, 14, ["order_id"])
    settings = settings_of(gates)
    assert settings.refs["orders"].table == "lake.sales.orders"
    assert settings.refs["orders"].date_column == "ds"
    (gate,) = [gate for gate in settings.gates if gate.name == "orders"]
    assert (gate.suite, gate.group) == ("suites/sales/orders.dql", "sales")
    only = ("--only", "*visits")
    assert [*report_of(gates, "--dataset", "iceberg:lake.*.*", *only)] == ["lake.web.visits"]


@pytest.mark.usefixtures("iceberg")
def test_a_catalog_that_cannot_be_read_is_an_error_that_names_it(tmp_path: Path) -> None:
    done = dql("init", tmp_path / "gates", "--dataset", "iceberg:nowhere.sales.*")
    assert done.returncode == 4
    assert "the Iceberg catalog nowhere cannot be read" in done.output
    done = dql("init", tmp_path / "gates", "--dataset", "iceberg:lake")
    assert done.returncode == 2
    assert "write iceberg:CATALOG.NAMESPACE.*" in done.output


@pytest.mark.spark
def test_tables_of_a_spark_catalog_are_drafted(spark: Any, tmp_path: Path) -> None:
    spark.sql("CREATE DATABASE shop")
    try:
        orders = tmp_path / "orders.parquet"
        write_parquet(
            orders, dict(zip(an_order_table().column_names, an_order_table(), strict=True))
        )
        spark.sql(f"CREATE TABLE shop.orders USING parquet LOCATION '{orders}'")
        spark.sql("CREATE TABLE shop.`1st` USING parquet AS SELECT 1 AS id")
        spark.read.parquet(str(orders)).createOrReplaceTempView("passing")
        where = ("--dataset", "table:spark_catalog.sh*.*", "--connection", "local[1]")
        gates = tmp_path / "gates"
        rows = report_of(gates, *where)
        assert [*rows] == ["spark_catalog.shop.1st", "spark_catalog.shop.orders"]
        found = rows["spark_catalog.shop.orders"]
        assert (found["row_count"], found["days"], found["key"]) == (420, 14, ["order_id"])
        assert settings_of(gates).refs["orders"].table == "spark_catalog.shop.orders"
        assert settings_of(gates).refs["t_1st"].table == "spark_catalog.shop.`1st`"
        assert "would change" in dql("init", gates, *where, "--diff").output
    finally:
        spark.sql("DROP DATABASE shop CASCADE")


@pytest.mark.parametrize("where", ["nowhere.shop.*", "spark_catalog.nowhere.*", "nowhere.*.*"])
def test_a_spark_catalog_or_schema_that_does_not_exist_is_an_error_that_names_it(
    spark: Any, where: str, tmp_path: Path
) -> None:
    gates = tmp_path / "gates"
    done = dql("init", gates, "--dataset", f"table:{where}", "--connection", "local[1]")
    assert done.returncode == 4, done.output
    assert f"the tables of {where} cannot be listed" in done.output
    assert "was lost" not in done.output
    assert not gates.exists()


# Lists and events --------------------------------------------------------------------------------


def test_locations_are_a_list_on_the_command_line_or_in_a_file(lake: Path, tmp_path: Path) -> None:
    several = ("--dataset", lake / "sales" / "orders", "--dataset", lake / "ref")
    rows = report_of(tmp_path / "gates", *several)
    assert {row["dataset"] for row in rows.values()} == {"broken", "countries", "orders"}
    file = tmp_path / "tables.txt"
    shutil.copytree(lake / "ref", tmp_path / "ref#2")
    file.write_text(f"# ours\n{lake / 'sales' / 'orders'}\n\n{tmp_path / 'ref#2'}  # small\n")
    again = report_of(tmp_path / "other", "--dataset", f"@{file}")
    assert {row["dataset"] for row in again.values()} == {"broken", "countries", "orders"}
    assert "orders" in settings_of(tmp_path / "other").refs
    done = dql("init", tmp_path / "other", "--dataset", "@nowhere.txt")
    assert done.returncode == 2
    assert "@FILE, with a location in each line" in done.output


@pytest.mark.parametrize("location", ["table:", "table: ", "table:."])
def test_a_location_that_names_no_table_of_a_catalog_is_an_error(
    location: str, lake: Path, tmp_path: Path
) -> None:
    done = dql("init", tmp_path / "gates", "--dataset", lake, "--dataset", location)
    assert done.returncode == 2, done.output
    assert "names no table" in done.output


def test_a_location_as_of_a_single_table_is_a_row_that_says_what_to_write(
    lake: Path, tmp_path: Path
) -> None:
    table = f"{lake}/ref/countries.csv"
    many = ["--dataset", lake, "--dataset", f"c={table}", "--dataset", f"{table}?format=csv"]
    rows = report_of(tmp_path / "gates", *many)
    for location in (f"c={table}", f"{table}?format=csv"):
        assert rows[location]["problem"].endswith(f"no name and no settings: write {table}")


def test_where_no_table_can_be_drafted_nothing_is_written(tmp_path: Path) -> None:
    gates = tmp_path / "gates"
    done = dql("init", gates, "--dataset", tmp_path / "one", "--dataset", tmp_path / "two")
    assert done.returncode == 4, done.output
    assert "dql run" not in done.output
    assert not gates.exists()


def test_a_list_without_a_location_has_no_table(tmp_path: Path) -> None:
    listed = tmp_path / "tables.txt"
    listed.write_text("# none yet\n")
    done = dql("init", tmp_path / "gates", "--dataset", f"@{listed}")
    assert done.returncode == 4, done.output
    assert "there is no table in" in done.output
    assert "--only" not in done.output


def test_the_results_of_the_gates_are_no_tables_of_a_lake(lake: Path) -> None:
    report_of(lake, "--dataset", lake)
    write_parquet(lake / "dqx_results" / "runs" / "part-0.parquet", {"id": [1, 2, 3]})
    rows = report_of(lake, "--dataset", lake)
    assert "sales/orders" in rows
    assert not [place for place in rows if place.startswith("dqx_results")]


def event(inputs: list[Path], outputs: list[Path], job: str) -> str:
    def named(paths: list[Path]) -> list[dict[str, str]]:
        return [{"namespace": "file", "name": str(path)} for path in paths]

    return json.dumps(
        {
            "eventTime": "2026-11-20T03:00:00Z",
            "job": {"namespace": "etl", "name": job},
            "inputs": named(inputs),
            "outputs": named(outputs),
        }
    )


@pytest.fixture
def events(lake: Path, tmp_path: Path) -> Path:
    """Two jobs read the customers, one the orders, none the visits."""
    customers, orders = lake / "sales" / "customers", lake / "sales" / "orders"
    file = tmp_path / "events.jsonl"
    lines = [
        event([customers, orders], [tmp_path / "mart"], "mart"),
        event([customers], [lake / "gone"], "mails"),
        event([], [lake / "web" / "visits"], "load"),
    ]
    file.write_text("\n".join(lines))
    return file


def test_the_report_begins_with_the_tables_that_most_jobs_read(
    lake: Path, events: Path, tmp_path: Path
) -> None:
    rows = report_of(tmp_path / "gates", "--dataset", lake, "--events", events)
    assert [(place, row["readers"]) for place, row in rows.items()][:3] == [
        ("sales/customers", 2),
        ("sales/orders", 1),
        ("web/visits", 0),  # something is wrong in it today
    ]
    done = dql("init", tmp_path / "gates", "--dataset", lake, "--events", events)
    assert "read by" in done.output


def test_tables_of_lineage_events_are_drafted_or_rows_with_the_reason(
    events: Path, tmp_path: Path
) -> None:
    rows = report_of(tmp_path / "gates", "--events", events)
    problems = {row["dataset"]: row["problem"] for row in rows.values()}
    assert [name for name, problem in problems.items() if not problem] == [
        *("customers", "orders", "visits")
    ]
    assert problems["gone"] == "events name it, and nothing is there on this machine"
    assert {*settings_of(tmp_path / "gates").refs} >= {"customers", "orders", "visits"}


def test_events_may_be_those_of_a_marquez(lake: Path, events: Path, tmp_path: Path) -> None:
    stored = [json.loads(line) for line in events.read_text().splitlines()]
    asked = []

    def answer(request: Asked) -> Reply:
        asked.append(request.path)
        return Reply(body={"events": stored, "totalCount": len(stored)})

    with http_stub(answer) as address:
        rows = report_of(tmp_path / "gates", "--dataset", lake, "--events", address)
        done = dql("lineage", "coverage", "--events", f"{address}/", "--format", "json")
    assert {path.partition("?")[0] for path in asked} == {"/api/v1/events/lineage"}
    assert [*rows][:2] == ["sales/customers", "sales/orders"]
    assert json.loads(done.stdout)["totals"]["tables"] == 5
    done = dql("init", tmp_path / "gates", "--dataset", lake, "--events", address)
    assert done.returncode == 2
    assert f"no events at {address}" in done.output


# The page and the diff ---------------------------------------------------------------------------


class Texts(HTMLParser):
    """The cells of a page, by the kind of their element."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.texts: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def test_the_page_has_all_tables_in_one_file_without_scripts(
    lake: Path, events: Path, tmp_path: Path
) -> None:
    odd = lake / "<b>odd" / "x.csv"
    odd.parent.mkdir()
    odd.write_text("id\n1\n")
    arguments = ("--dataset", lake, "--events", events, "--calls-per-month", "3")
    done = dql("init", tmp_path / "gates", *arguments, "--format", "html")
    assert done.returncode == 0, done.output
    page = Texts(done.stdout)
    assert {"script", "img", "link", "b"}.isdisjoint(page.tags)
    assert {name for name, _ in page.attributes}.isdisjoint({"href", "src", "style", "onclick"})
    assert {"sales/orders", "<b>odd/x.csv", "orders.key"} <= {*page.texts}
    text = "\n".join(page.texts)
    assert "2 rows have order_id values that are not in orders" in text
    assert "minutes a night" in text


def test_a_diff_shows_what_would_be_written_and_writes_nothing(lake: Path, tmp_path: Path) -> None:
    gates = tmp_path / "gates"
    done = dql("init", gates, "--dataset", lake, "--diff")
    assert done.returncode == 1
    assert not gates.exists()
    assert f"+++ {gates}/suites/sales/orders.dql" in done.stdout
    assert dql("init", gates, "--dataset", lake).returncode == 0
    done = dql("init", gates, "--dataset", lake, "--diff")
    assert (done.returncode, done.stdout) == (0, "")
    # A person changes the settings; then a table comes, one goes, and one gets a column.
    toml = gates / "dqx.toml"
    toml.write_text(f"# ours\n{toml.read_text()}".replace("allow_empty = true", "allow_empty=true"))
    before = {path: path.read_bytes() for path in gates.rglob("*") if path.is_file()}
    write_parquet(lake / "web" / "clicks" / "part-0.parquet", {"click_id": [1, 2]})
    shutil.rmtree(lake / "sales" / "customers")
    (lake / "ref" / "countries.csv").write_text("code,title,area\nCH,Switzerland,3\nDE,Germany,4\n")
    done = dql("init", gates, "--dataset", lake, "--diff")
    assert done.returncode == 1
    assert {path: path.read_bytes() for path in gates.rglob("*") if path.is_file()} == before
    removed = [line for line in done.stdout.splitlines() if line.startswith("-")]
    assert removed == ["--- /dev/null", f"--- {toml}"]
    assert "+[gates.clicks]" in done.stdout
    assert "customers is gone: remove [gates.customers]" in done.stderr
    assert "ref/countries.csv has new columns, which are watched: area" in done.stderr
    assert "2 files would change" in done.stderr
