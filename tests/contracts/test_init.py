"""`dql contract init` drafts a contract that its table satisfies."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest
from typer.testing import CliRunner, Result

from dqx_airflow.api.contract import Contract
from dqx_airflow.api.database import SparkDatabase
from dqx_airflow.cli.main import app
from dqx_airflow.contracts.demands import OneOf
from dqx_airflow.contracts.drafting import common_pattern, draft_text
from dqx_airflow.contracts.enforcement.contract_datasets import dataset_settings
from dqx_airflow.contracts.export import odcs
from dqx_airflow.contracts.field_types import spark_type
from dqx_airflow.contracts.model import Contract as Read
from dqx_airflow.contracts.model import Dialect
from dqx_airflow.contracts.read import read_contract
from dqx_airflow.errors import DatasetError
from dqx_airflow.values import SourceFile, Status
from tests.contracts.drafted_tables import ROWS, orders, write
from tests.markdown_cases import Case, cases

FORMATS = ("delta", "parquet", "csv", "json")
DIALECTS = ("odcs", "fabric", "dcs")
DRAFTS = list(cases(Path(__file__).parent / "exports" / "drafts.md", fewest_blocks=1))


def dql(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["contract", *arguments])


def drafted(path: Path, *options: str) -> str:
    result = dql("init", "--dataset", path.name, *options)
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.mark.parametrize("case", DRAFTS, ids=str)
def test_a_draft_describes_the_data(case: Case, here: Path) -> None:
    file_format, dialect = case.title.split(" in ")
    case.expect(drafted(write(orders(), here, file_format.lower()), "--format", dialect.lower()))


READER = '[reader.csv]\nsep = ";"\nheader = false\nnullValue = "-"\n'


def test_a_draft_considers_the_reader_options_of_the_settings(here: Path) -> None:
    (here / "dqx.toml").write_text(READER)
    (here / "orders.csv").write_text("".join(f"{number};-\n" for number in range(30)))
    found = read_contract(SourceFile("drafted.yaml", drafted(Path("orders.csv")))).contract
    assert found is not None
    (model,) = found.models
    assert [item.path for item in model.fields] == ["_c0", "_c1"]
    assert [item.is_nullable for item in model.fields] == [False, True]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ('comment = "#"', "a draft ignores the option 'comment'"),
        ('sep = "||"', "a draft ignores the separator '||'"),
        ('header = "yes"', "[reader.csv] has the option header=yes"),
    ],
)
def test_an_option_that_changes_the_rows_is_an_error(
    here: Path, options: str, message: str
) -> None:
    (here / "dqx.toml").write_text(f"[reader.csv]\n{options}\n")
    (here / "orders.csv").write_text("id\n1\n")
    result = dql("init", "--dataset", "orders.csv")
    assert result.exit_code in (2, 4)
    assert message in result.stderr


@pytest.mark.few(4)
@pytest.mark.parametrize("file_format", FORMATS)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_draft_is_a_sound_contract(file_format: str, dialect: str, here: Path) -> None:
    text = drafted(write(orders(), here, file_format), "--format", dialect)
    (here / "drafted.yaml").write_text(text)
    result = dql("lint", "drafted.yaml")
    assert result.exit_code == 0, result.output
    read = read_contract(SourceFile("drafted.yaml", text))
    assert isinstance(read.contract, Read)
    assert read.contract.dialect == dialect
    assert read.contract.lifecycle.status == "draft"
    sensitive = {item.name for item in read.contract.models[0].fields if item.is_sensitive}
    assert sensitive == {"email", "contact", "surname", "birth_date"}


@pytest.mark.parametrize("file_format", FORMATS)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_no_value_of_a_person_is_written(file_format: str, dialect: str, here: Path) -> None:
    text = drafted(write(orders(), here, file_format), "--format", dialect)
    for shown in ("person", "example.com", "+49", "Lovelace", "1950"):
        assert shown not in text


@pytest.mark.more
@pytest.mark.few(1)
@pytest.mark.spark
@pytest.mark.parametrize("file_format", FORMATS)
def test_the_table_keeps_its_draft(file_format: str, here: Path, spark: Any) -> None:
    path = write(orders(), here, file_format)
    for dialect in DIALECTS:
        (here / f"{dialect}.yaml").write_text(drafted(path, "--format", dialect))
        read = read_contract(SourceFile("drafted.yaml", (here / f"{dialect}.yaml").read_text()))
        assert read.contract is not None
        place = {"path": str(path), "format": file_format}
        settings = dataset_settings(read.contract, {"orders": place})
        results = Contract.load(here / f"{dialect}.yaml").run(
            SparkDatabase(spark, settings), date(2024, 1, 2)
        )
        wrong = [
            f"{item.name}: {item.value} {item.reason}"
            for item in results.report.verdicts
            if item.status is not Status.PASSED
        ]
        assert not wrong, dialect


@pytest.mark.parametrize(
    ("texts", "pattern"),
    [
        (["M0001", "M0317"], "^M[0-9]{4}$"),
        (["AB-1", "CD-22"], "^[A-Z]{2}-[0-9]{1,2}$"),
        (["a.1", "b.2"], r"^[a-z]{1}\.[0-9]{1}$"),
        (["A", "B"], None),
        (["A1", "1A"], None),
        (["", "A1"], None),
        (["Ä1", "Ö2"], None),
        ([], None),
    ],
)
def test_strings_of_one_shape_have_a_pattern(texts: list[str], pattern: str | None) -> None:
    assert common_pattern(texts) == pattern


def test_two_columns_are_a_key_if_neither_is_one_alone(here: Path) -> None:
    pairs = [(f"S{i % 5}", i // 5) for i in range(40)]
    table = pa.table({"shop": [a for a, _ in pairs], "line_no": [b for _, b in pairs]})
    text = drafted(write(table, here, "parquet"), "--format", "fabric")
    assert "      - keys:\n          - line_no\n          - shop\n" in text


def test_few_rows_give_no_rules(here: Path) -> None:
    table = pa.table({"code": ["A1", "B2", "B2"], "state": ["x", "x", "x"]})
    text = drafted(write(table, here, "parquet"), "--format", "fabric")
    assert "regex" not in text
    assert "enum" not in text
    assert "keys" not in text


def test_numbers_with_leading_zeros_are_strings(here: Path) -> None:
    (here / "shops.csv").write_text("zip,floor\n01234,1\n99999,2\n")
    text = drafted(here / "shops.csv", "--format", "fabric")
    assert "name: zip\n        type: string" in text
    assert "name: floor\n        type: bigint" in text


GUESSED = [
    ((".5", "1.", "-2.25"), "double"),
    ((" 1", "2 ", "3"), "double"),
    (("1e3", "2.5E-7"), "double"),
    (("NaN", "1.5"), "double"),
    (("-Inf", "Infinity", "2"), "double"),
    (("-0", "12"), "bigint"),
    (("+1", "2"), "string"),
    (("1.5", "00.5"), "string"),
    ((".", "1"), "string"),
]


@pytest.mark.parametrize(("texts", "guessed"), GUESSED)
def test_numbers_in_csv_have_the_type_that_a_gate_guesses(
    texts: tuple[str, ...], guessed: str, here: Path
) -> None:
    (here / "shops.csv").write_text("size\n" + "".join(f"{text}\n" for text in texts))
    text = drafted(here / "shops.csv", "--format", "fabric")
    assert f"name: size\n        type: {guessed}" in text


@pytest.mark.parametrize("dialect", DIALECTS)
def test_codes_that_look_like_numbers_are_strings_in_a_draft(dialect: str, here: Path) -> None:
    codes = ("07", "08", "1e3")
    table = pa.table({"code": [codes[number % 3] for number in range(ROWS)]})
    text = drafted(write(table, here, "parquet"), "--format", dialect)
    contract = read_contract(SourceFile("drafted.yaml", text)).contract
    assert contract is not None
    listed = [rule.demand for _, _, rule in contract.rules() if isinstance(rule.demand, OneOf)]
    assert listed == [OneOf(codes)]
    exported = odcs.document(contract).text
    again = read_contract(SourceFile("exported.yaml", exported)).contract
    assert again is not None
    assert OneOf(codes) in [rule.demand for _, _, rule in again.rules()]


def test_folders_of_partitions_are_columns(here: Path) -> None:
    for day in ("2024-01-01", "2024-01-02"):
        (here / "orders" / f"ds={day}" / "shop=7").mkdir(parents=True)
        pyarrow.parquet.write_table(
            pa.table({"id": [day]}), here / "orders" / f"ds={day}" / "shop=7" / "part.parquet"
        )
    text = drafted(here / "orders", "--format", "fabric")
    assert "name: ds\n        type: date" in text
    assert "name: shop\n        type: int" in text


@pytest.mark.parametrize("dialect", DIALECTS)
def test_odd_names_and_types_are_written_as_the_dialect_reads_them(
    dialect: str, here: Path
) -> None:
    table = pa.table(
        {
            "a b": pa.array([1, 2], pa.uint8()),
            "word": pa.array(["x", "y"]).dictionary_encode(),
            "parts": [{"x y": 1, "lines": [{"z": 1.5}]}] * 2,
            "prices": pa.array([[("a", 1)]] * 2, pa.map_(pa.string(), pa.int32())),
        }
    )
    text = drafted(write(table, here, "parquet"), "--format", dialect)
    read = read_contract(SourceFile("drafted.yaml", text))
    assert not read.errors
    assert read.contract is not None
    types = [spark_type(item) for item in read.contract.models[0].fields]
    struct = "struct<`x y`:bigint,lines:array<struct<z:double>>>"
    # The Data Contract Specification has no small numbers.
    assert types == ["int" if dialect == "dcs" else "smallint", "string", struct, "map<string,int>"]


def test_an_empty_table_has_types_alone(here: Path) -> None:
    table = pa.table({"a": pa.array([], pa.int32()), "b": pa.array([], pa.string())})
    text = drafted(write(table, here, "parquet"), "--format", "fabric")
    assert "type: int\n        nullable: true" in text
    assert "quality" not in text


def test_nan_and_infinity_give_no_range(here: Path) -> None:
    table = pa.table({"x": [1.0, float("nan")], "y": [float("-inf"), 2.0]})
    text = drafted(write(table, here, "parquet"), "--format", "fabric")
    assert "min:" not in text
    assert "max:" not in text


@pytest.fixture
def catalog(here: Path, spark: Any) -> Iterator[str]:
    """A catalog of Spark with a table `APP.orders` of four columns and forty rows."""
    driver = "org.apache.derby.iapi.jdbc.AutoloadedDriver"
    kind = "org.apache.spark.sql.execution.datasources.v2.jdbc.JDBCTableCatalog"
    settings = {"": kind, ".url": f"jdbc:derby:{here}/lake;create=true", ".driver": driver}
    for key, value in settings.items():
        spark.conf.set(f"spark.sql.catalog.lake{key}", value)
    spark.sql(
        "CREATE TABLE lake.APP.orders (id BIGINT, state STRING, price DECIMAL(9,2), `a b` INT)"
    )
    spark.sql(
        "INSERT INTO lake.APP.orders SELECT id, concat('S', id % 3), id * 1.5, "
        "if(id < 10, NULL, 7) FROM range(40)"
    )
    yield "lake.APP.orders"
    spark.sql("DROP TABLE lake.APP.orders")


@pytest.mark.slow
@pytest.mark.spark
def test_a_table_of_a_catalog_is_drafted_as_files_are(catalog: str, spark: Any) -> None:
    from dqx_airflow.cli.spark import observe_table

    found = observe_table(spark, catalog)
    assert (found.name, found.place, found.rows, found.key) == ("orders", catalog, 40, ("id",))
    kept = [(item.name, item.type, item.nulls, item.highest) for item in found.columns]
    assert kept == [
        ("id", "bigint", 0, 39),
        ("state", "string", 0, None),
        ("price", "decimal(9,2)", 0, 58.5),
        ("a b", "int", 10, 7),
    ]
    assert found.columns[1].values == ("S0", "S1", "S2")
    for dialect in map(Dialect, DIALECTS):
        read = read_contract(SourceFile("drafted.yaml", draft_text(found, dialect)))
        assert read.contract is not None
        assert dataset_settings(read.contract, {})["orders"]["table"] == catalog


@pytest.mark.spark
def test_a_name_without_its_catalog_is_drafted_with_it(here: Path, spark: Any) -> None:
    from dqx_airflow.cli.spark import observe_table

    spark.sql(f"CREATE TABLE Shops USING parquet LOCATION '{here}/shops' AS SELECT 1 AS id")
    try:
        for name in ("Shops", "default.Shops", "spark_catalog.default.`Shops`"):
            found = observe_table(spark, name)
            assert (found.name, found.place) == ("Shops", "spark_catalog.default.Shops")
    finally:
        spark.sql("DROP TABLE Shops")
    with pytest.raises(DatasetError, match="cannot be found"):
        observe_table(spark, "default.nothing")


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("lake.sales.orders?format=csv",), 4, "lake.sales.orders cannot be read as csv"),
        (("orders.csv?date_column=ds",), 2, "date_column cannot be considered"),
        (("table:orders", "--connection", "http://x"), 2, "--connection: invalid connection"),
        (("lake.sales.parquet",), 4, "nothing found at lake.sales.parquet"),
        (("sales.orders",), 4, "or table:NAME for a table of a catalog"),
    ],
)
def test_tables_and_paths_are_distinguished(
    arguments: tuple[str, ...], code: int, message: str, here: Path
) -> None:
    result = dql("init", "--dataset", *arguments)
    assert result.exit_code == code
    assert message in result.stderr


def test_a_file_may_look_like_the_name_of_a_table(here: Path) -> None:
    pyarrow.parquet.write_table(pa.table({"id": [1]}), here / "lake.sales.orders")
    assert "name: id" in drafted(here / "lake.sales.orders?format=parquet")


def test_an_existing_file_is_not_overwritten(here: Path) -> None:
    path = write(orders(), here, "parquet")
    (here / "orders.yaml").write_text("mine")
    result = dql("init", "--dataset", path.name, "--output", "orders.yaml")
    assert result.exit_code == 2
    assert (
        result.stderr
        == "error: orders.yaml already exists\n  help: choose another file, or add --force\n"
    )
    assert (here / "orders.yaml").read_text() == "mine"


def test_an_unreadable_table_is_reported(here: Path) -> None:
    (here / "broken.parquet").write_text("no parquet")
    for place, message in (
        ("nowhere", "nothing found at nowhere"),
        ("broken.parquet", "broken.parquet cannot be read as parquet"),
    ):
        result = dql("init", "--dataset", place)
        assert result.exit_code == 4
        assert message in result.stderr
