"""Partition columns hold their values: what is read is what the log has, in UTC, in every session;
what is written is what was judged; and what a partition cannot hold is refused."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from datetime import date, datetime, timezone
from decimal import Decimal
from itertools import count, product
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, QueryBuilder, write_deltalake
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyarrow import orc

from dqx_airflow.engine.job import run_gates
from dqx_airflow.engine.outputs import collected_files, data_files
from dqx_airflow.engine.outputs.data_files import write_files
from dqx_airflow.engine.sources.folder_columns import FolderColumn
from dqx_airflow.engine.sources.open import open_dataset
from dqx_airflow.engine.sources.partition_values import NO_VALUE
from dqx_airflow.values import Attempt, DatasetRef, GateReport, Outcome
from tests.engine.lake import Run, request

pytestmark = pytest.mark.spark

ZONES = ("America/New_York", "UTC", "Europe/Zurich", "Asia/Kolkata")
UTC = timezone.utc
DAY = date(2024, 3, 2)


@contextmanager
def setting(spark: Any, name: str, value: str) -> Iterator[None]:
    before = spark.conf.get(name)
    spark.conf.set(name, value)
    try:
        yield
    finally:
        spark.conf.set(name, before)


def zone(spark: Any, name: str) -> AbstractContextManager[None]:
    return setting(spark, "spark.sql.session.timeZone", name)


def rewrite_log(path: Path, change: Any) -> None:
    """Changes the actions of the first commit of a table."""
    log = path / "_delta_log" / f"{0:020}.json"
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    for action in actions:
        change(action)
    log.write_text("".join(json.dumps(action) + "\n" for action in actions))


def reasons(report: GateReport) -> str:
    return " ".join(str(verdict.reason) for verdict in report.verdicts)


def notes(report: GateReport) -> str:
    return " ".join(verdict.note for verdict in report.verdicts if verdict.note)


TWO_MOMENTS = pa.table(
    {
        "id": pa.array([1, 2], pa.int64()),
        "at": pa.array(
            [datetime(2024, 3, 1, 23, 30, tzinfo=UTC), datetime(2024, 3, 2, 12, tzinfo=UTC)],
            pa.timestamp("us", "UTC"),
        ),
    }
)
BODY = (
    'assert num_rows() == 1 name "one"\nassert maximum(at) == "2024-03-02T12:00:00Z" name "max"\n'
    'assert each row: at >= "2024-03-02T12:00:00Z" name "row"'
)


@pytest.mark.few(2)
@pytest.mark.parametrize("session", ZONES)
def test_a_moment_in_a_partition_is_the_same_in_every_session(
    spark: Any, run: Run, tmp_path: Path, session: str
) -> None:
    path = tmp_path / "orders"
    write_deltalake(str(path), TWO_MOMENTS, partition_by=["at"])
    orders = DatasetRef("orders", str(path), date_column="at", time_zone="UTC")
    with zone(spark, session):
        report = run(request(tmp_path, BODY, [orders], on=DAY))
    assert report.outcome is Outcome.PASSED, reasons(report)


DAYS = pa.table({"ds": pa.array([DAY, DAY], pa.date32())})


@pytest.mark.parametrize("columns", [["ds"], ["ds", "shop"]])
def test_a_target_of_nothing_but_partitions_breaks_the_gate_and_says_why(
    run: Run, tmp_path: Path, columns: list[str]
) -> None:
    target = tmp_path / "target"
    data = DAYS.append_column("shop", pa.array([1, 2])).select(columns)
    DeltaTable.create(str(target), schema=data.schema, partition_by=columns)
    write_deltalake(str(tmp_path / "orders"), data)
    orders = DatasetRef("orders", str(tmp_path / "orders"))
    to = (("orders", str(target)),)
    report = run(request(tmp_path, "assert num_rows() == 2", [orders], promote_to=to))
    assert report.outcome is Outcome.BROKEN
    assert "all of its columns are partition columns" in reasons(report)
    assert DeltaTable(str(target)).version() == 0


@pytest.mark.more
def test_a_new_target_of_one_column_has_no_partitions(run: Run, tmp_path: Path) -> None:
    (tmp_path / "orders").mkdir()
    pq.write_table(DAYS, tmp_path / "orders" / "part.parquet")
    orders = DatasetRef("orders", str(tmp_path / "orders"), format="parquet", date_column="ds")
    target = tmp_path / "target"
    to = (("orders", str(target)),)
    report = run(request(tmp_path, "assert num_rows() == 2", [orders], promote_to=to, on=DAY))
    assert report.outcome is Outcome.PASSED, reasons(report)
    assert DeltaTable(str(target)).metadata().partition_columns == []


@pytest.mark.few(1)
@pytest.mark.parametrize("session", ZONES)
def test_a_promotion_moves_no_moment_and_every_reader_finds_it(
    spark: Any, run: Run, tmp_path: Path, session: str
) -> None:
    source, target = tmp_path / "orders", tmp_path / "target"
    write_deltalake(str(source), TWO_MOMENTS)
    write_deltalake(str(target), TWO_MOMENTS.slice(0, 0), partition_by=["at"])
    gate = request(
        tmp_path,
        "assert num_rows() == 2",
        [DatasetRef("orders", str(source))],
        promote_to=(("orders", str(target)),),
    )
    with zone(spark, session):
        report = run(gate)
    assert report.outcome is Outcome.PASSED, reasons(report)
    actions = pa.table(DeltaTable(str(target)).get_add_actions(flatten=True))
    assert sorted(actions["partition.at"].to_pylist()) == TWO_MOMENTS["at"].to_pylist()
    (log,) = (target / "_delta_log").glob("*1.json")
    assert '{"at":"2024-03-01T23:30:00.000000Z"}' in log.read_text()
    again = request(
        tmp_path / "again",
        BODY,
        [DatasetRef("orders", str(target), date_column="at", time_zone="UTC")],
        on=DAY,
    )
    with zone(spark, "Asia/Kolkata"):
        assert run(again).outcome is Outcome.PASSED


SPELLINGS = (
    "2024-03-01 23:30:00",
    "2024-03-01 23:30:00.000000",
    "2024-03-01T23:30:00.000000Z",
    "2024-03-01 23:30:00Z",
    "2024-03-02T00:30:00+01:00",
    "2024-03-01T18:30:00.000-0500",
)


@pytest.mark.few(3)
@pytest.mark.parametrize("spelling", SPELLINGS)
def test_all_spellings_of_a_moment_in_a_log_are_read(
    spark: Any, run: Run, tmp_path: Path, spelling: str
) -> None:
    path = tmp_path / "orders"
    write_deltalake(str(path), TWO_MOMENTS, partition_by=["at"])

    def respell(action: dict[str, Any]) -> None:
        values = action.get("add", {}).get("partitionValues", {})
        if values.get("at", "").startswith("2024-03-01 23:30"):
            values["at"] = spelling

    rewrite_log(path, respell)
    orders = DatasetRef("orders", str(path))
    body = 'assert minimum(at) == "2024-03-01T23:30:00Z"'
    with zone(spark, "America/New_York"):
        assert run(request(tmp_path, body, [orders])).outcome is Outcome.PASSED


@pytest.mark.parametrize(
    ("engine", "spelling", "is_read"),
    [
        ("Apache-Spark/3.5.0 Delta-Lake/3.1.0", "2024-03-01 23:30:00", False),
        ("Databricks-Runtime/13.3", "2024-03-01 23:30:00", False),
        (None, "2024-03-01 23:30:00", False),
        ("Apache-Spark/4.0.0 Delta-Lake/4.1.0", "2024-03-01T23:30:00.000000Z", True),
        ("Apache-Spark/3.5.0 Delta-Lake/3.1.0", "2024-03-01 23:30:00.000000", True),  # a RESTORE
        (None, "2024-03-01 23:30:00.000000", True),
    ],
)
@pytest.mark.parametrize("has_commit", [True, False])
@pytest.mark.few(2)
def test_a_time_in_the_zone_of_an_unknown_session_is_an_error(
    spark: Any,
    run: Run,
    tmp_path: Path,
    engine: str | None,
    spelling: str,
    is_read: bool,
    has_commit: bool,
) -> None:
    path = tmp_path / "orders"
    write_deltalake(str(path), TWO_MOMENTS.slice(0, 1), partition_by=["at"])

    def by_spark(action: dict[str, Any]) -> None:
        if "commitInfo" in action:
            del action["commitInfo"]["engineInfo"], action["commitInfo"]["clientVersion"]
            action["commitInfo"] |= {} if engine is None else {"engineInfo": engine}
        if "add" in action:
            action["add"]["partitionValues"]["at"] = spelling

    rewrite_log(path, by_spark)
    if not has_commit:
        DeltaTable(str(path)).create_checkpoint()
        (path / "_delta_log" / f"{0:020}.json").unlink()
    report = run(request(tmp_path, "assert num_rows() == 1", [DatasetRef("orders", str(path))]))
    assert report.outcome is (Outcome.PASSED if is_read else Outcome.BROKEN)
    if not is_read:
        assert f"at={spelling} of {path} has no time zone" in reasons(report)
        assert "UPDATE delta." in reasons(report)


# Names of folders


def in_folders(path: Path, format: str, *folders: str) -> DatasetRef:
    for number, folder in enumerate(folders):
        (path / folder).mkdir(parents=True)
        table, file = pa.table({"id": [number]}), str(path / folder / f"a.{format}")
        match format:
            case "parquet":
                pq.write_table(table, file)
            case "orc":
                orc.write_table(table, file)
            case "csv":
                Path(file).write_text(f"id\n{number}\n")
            case "json":
                Path(file).write_text(f'{{"id": {number}}}\n')
    return DatasetRef("orders", str(path), format=format)


HOURS = ("at=2024-03-01 23%3A30%3A00", "at=2024-03-02 12%3A00%3A00")


@pytest.mark.parametrize("schema", [None, "id bigint, at timestamp"])
@pytest.mark.parametrize("format", ["parquet", "csv", "orc", "json"])
@pytest.mark.few(1)
def test_a_time_in_the_name_of_a_folder_is_in_utc_in_every_session(
    spark: Any, run: Run, tmp_path: Path, format: str, schema: str | None
) -> None:
    orders = in_folders(tmp_path / "orders", format, *HOURS)
    orders = replace(orders, schema=schema, date_column="at", time_zone="UTC")
    with zone(spark, "America/New_York"):
        report = run(request(tmp_path, BODY, [orders], on=DAY))
        assert report.outcome is Outcome.PASSED, reasons(report)
        assert "at is read in UTC, unless the option timeZone says otherwise" in notes(report)
    swiss = replace(orders, options=(("timeZone", "Europe/Zurich"),))
    body = 'assert maximum(at) == "2024-03-02T11:00:00Z" name "max"'
    report = run(request(tmp_path / "swiss", body, [swiss], on=DAY))
    assert report.outcome is Outcome.PASSED, reasons(report)
    assert not notes(report)


@pytest.mark.few(1)
@pytest.mark.parametrize("by", ["table", "query"])
def test_a_table_of_the_catalog_with_times_in_its_partitions_needs_a_session_in_utc(
    spark: Any, run: Run, tmp_path: Path, by: str
) -> None:
    name = f"hours_by_{by}"
    spark.sql(f"CREATE TABLE {name} (id INT, at TIMESTAMP) USING parquet PARTITIONED BY (at)")
    spark.sql(f"INSERT INTO {name} VALUES (1, TIMESTAMP'2024-03-02 12:00:00Z')")
    source = {"table": name} if by == "table" else {"query": f"SELECT * FROM {name}"}
    gate = request(
        tmp_path, 'assert maximum(at) == "2024-03-02T12:00:00Z"', [DatasetRef("orders", **source)]
    )
    try:
        assert run(gate).outcome is Outcome.PASSED
        with zone(spark, "Europe/Zurich"):
            report = run(replace(gate, attempt=Attempt(2, "2")))
    finally:
        spark.sql(f"DROP TABLE {name}")
    assert report.outcome is Outcome.BROKEN
    assert f"{name} is partitioned by 'at', whose timestamps have no time zone" in reasons(report)


def test_values_of_text_files_keep_their_zone_beside_folders(
    spark: Any, run: Run, tmp_path: Path
) -> None:
    (tmp_path / "orders" / HOURS[0]).mkdir(parents=True)
    (tmp_path / "orders" / HOURS[0] / "a.csv").write_text("then\n2024-03-01 23:30:00\n")
    orders = DatasetRef("orders", str(tmp_path / "orders"), format="csv")
    body = (
        'assert maximum(at) == "2024-03-01T23:30:00Z" name "folder"\n'
        'assert maximum(then) == "2024-03-02T04:30:00Z" name "value"'
    )
    with zone(spark, "America/New_York"):
        report = run(request(tmp_path, body, [orders]))
    assert report.outcome is Outcome.PASSED, [(one.value, one.reason) for one in report.verdicts]


@pytest.mark.more
def test_what_a_folder_is_named_by_and_is_not_read_as_is_said(run: Run, tmp_path: Path) -> None:
    orders = in_folders(tmp_path / "orders", "parquet", "code=007", "code=12")
    report = run(request(tmp_path, 'assert each row: code in ["007", "12"]', [orders]))
    assert report.outcome is Outcome.BROKEN
    assert "'code' is of type int" in reasons(report)
    assert notes(report) == (
        "the folder code=007 is read as int: to read what is written, declare schema='..., code "
        "string'"
    )
    declared = replace(orders, schema="id bigint, code string")
    again = run(request(tmp_path / "again", 'assert each row: code in ["007", "12"]', [declared]))
    assert again.outcome is Outcome.PASSED
    assert not notes(again)


@pytest.mark.parametrize(
    ("texts", "kind"),
    [
        (("1.10", "1.1"), "double"),
        (("0.12345678901234567", "0.5"), "double"),
        (("00012345678901234567890", "1"), "decimal"),
        (("1e5", "7"), "decimal"),
        (("1\N{ARABIC-INDIC DIGIT THREE}", "7"), "int"),
    ],
)
@pytest.mark.few(1)
def test_a_number_that_has_other_digits_than_its_folder_is_said(
    run: Run, tmp_path: Path, texts: tuple[str, str], kind: str
) -> None:
    orders = in_folders(tmp_path / "orders", "parquet", *(f"v={text}" for text in texts))
    report = run(request(tmp_path, "assert unique_count(v) <= 2", [orders]))
    assert f"the folder v={texts[0]} is read as {kind}" in notes(report)


def test_a_time_without_its_day_in_the_name_of_a_folder_is_an_error(
    run: Run, tmp_path: Path
) -> None:
    orders = in_folders(tmp_path / "orders", "parquet", "at=23%3A30")
    orders = replace(orders, schema="id bigint, at timestamp")
    report = run(request(tmp_path, "assert num_rows() == 1", [orders]))
    assert "the folder at=23:30 has a time without its day" in reasons(report)


OTHER_FORMS = ["2024-3-2", "2024-03-2", "20240302", "2024/3/2", "Mar 2 2024", "1709337600"]


@pytest.mark.parametrize(
    ("format", "other"),
    [
        *product(["parquet", "csv", "delta"], OTHER_FORMS),
        ("delta", "2024-03-02 00:00:00"),  # of a folder it would be a timestamp on the date
    ],
)
@pytest.mark.few(1)
def test_two_spellings_of_a_date_in_partitions_are_an_error(
    run: Run, tmp_path: Path, format: str, other: str
) -> None:
    path = tmp_path / "orders"
    if format == "delta":
        table = pa.table({"id": [1, 2, 3], "ds": ["2024-03-02", other, "2024-03-01"]})
        write_deltalake(str(path), table, partition_by=["ds"])
        orders = DatasetRef("orders", str(path))
    else:
        folders = (f"ds={quote(text, safe='')}" for text in ("2024-03-02", other, "2024-03-01"))
        orders = in_folders(path, format, *folders)
    orders = replace(orders, date_column="ds")
    report = run(request(tmp_path, "assert num_rows() == 1", [orders], on=DAY))
    assert report.outcome is Outcome.BROKEN
    assert f"the partition ds={other} is 2024-03-02 in another form" in reasons(report)
    before = request(tmp_path / "before", "assert num_rows() == 1", [orders], on=date(2024, 3, 1))
    assert run(before).outcome is Outcome.PASSED


# Random rows: what stands in a target is what was judged

_MICROS = 1_000_000
_FIRST = datetime(1, 1, 1, tzinfo=UTC)
_LAST = datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)
_LONG = "x" * 82
MOMENTS = [
    datetime(2024, 11, 3, 5, 30, tzinfo=UTC),  # 01:30 in New York, twice
    datetime(2024, 11, 3, 6, 30, tzinfo=UTC),
    datetime(2024, 3, 31, 1, 30, tzinfo=UTC),  # 02:30 in Zurich does not exist
    datetime(1500, 1, 1, 23, 59, 59, 1, tzinfo=UTC),
    datetime(1582, 10, 10, 0, 0, 0, 120_000, tzinfo=UTC),
    datetime(1883, 11, 18, 16, 58, tzinfo=UTC),
    _FIRST,
    _LAST,
    None,
]
TYPES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "string": (
        pa.string(),
        [
            *("x", "a b", " a ", ".", "..", "a/b", "a%2Fb", "k=v", "@x", "@!empty", "007"),
            *(
                "ü",
                "e\u0301",
                "\U0001f600",
                "\u2028",
                "a\nb",
                "\n",
                "\x00",
                "\x7f",
                "'\"\\",
                "[x]*{",
            ),
            *(_LONG, _LONG * 2, "ü" * 60, "__HIVE_DEFAULT_PARTITION__ ", "${x}", "a:b#c?d", None),
        ],
    ),
    "boolean": (pa.bool_(), [True, False, None]),
    "tinyint": (pa.int8(), [0, -128, 127, None]),
    "bigint": (pa.int64(), [0, -(2**63), 2**63 - 1, None]),
    "float": (pa.float32(), [0.1, 3.4028234663852886e38, float("nan"), None]),
    "double": (
        pa.float64(),
        [0.0, -0.0, 0.1, 1 / 3, 1e300, 5e-324, float("nan"), float("inf"), -float("inf"), None],
    ),
    "decimal": (pa.decimal128(38, 18), [Decimal("0"), Decimal("1E-18"), Decimal(-(10**19)), None]),
    "date": (pa.date32(), [date(1, 1, 1), date(1582, 10, 10), DAY, date(9999, 12, 31), None]),
    "timestamp": (pa.timestamp("us", "UTC"), MOMENTS),
    "timestamp_ntz": (
        pa.timestamp("us"),
        [*(moment and moment.replace(tzinfo=None) for moment in MOMENTS), None],
    ),
}
UNHELD: dict[str, tuple[pa.DataType, list[Any], str]] = {
    "empty": (pa.string(), [""], "an empty string"),
    "null": (
        pa.string(),
        ["__HIVE_DEFAULT_PARTITION__"],
        "the string '__HIVE_DEFAULT_PARTITION__'",
    ),
    "long": (pa.string(), ["x" * 300], "a string that is too long"),
    "long in bytes": (pa.string(), ["ü" * 100], "a string that is too long"),
    "binary": (pa.binary(), [b"a"], "binary"),
    "date": (pa.date32(), [2_932_897], "a year before 1 or after 9999"),
    "timestamp": (pa.timestamp("us", "UTC"), [253_402_300_800 * _MICROS], "a year before 1"),
    "timestamp_ntz": (pa.timestamp("us"), [-62_135_596_800 * _MICROS - 1], "a year before 1"),
}


def exact(value: Any) -> Any:
    """A value that is equal to another one only if both are the same, bit by bit."""
    if isinstance(value, float):
        return struct.pack(">d", value) if value == value else "NaN"
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone(UTC)
    return value


def exact_rows(table: pa.Table) -> list[dict[str, Any]]:
    rows = [{name: exact(value) for name, value in row.items()} for row in table.to_pylist()]
    return sorted(rows, key=lambda row: int(row["id"]))


def by_deltalake(path: Path) -> list[dict[str, Any]]:
    query = QueryBuilder().register("t", DeltaTable(str(path)))
    return exact_rows(pa.table(query.execute("SELECT * FROM t").read_all()))


def by_spark(spark: Any, path: Path) -> list[dict[str, Any]]:
    opened = open_dataset(spark, DatasetRef("orders", str(path)))
    return exact_rows(opened.read([None]).toArrow())


@st.composite
def promotions(draw: Callable[..., Any]) -> tuple[pa.Table, list[str], list[str], str, str, str]:
    """Rows, the columns by which their target and their source are partitioned, the zones of the
    sessions that write and read, and whether ANSI mode is on."""
    size = draw(st.integers(1, 5))
    columns: dict[str, Any] = {"id": pa.array(range(size), pa.int64())}
    for name, (kind, values) in TYPES.items():
        drawn = st.lists(st.sampled_from(values), min_size=size, max_size=size)
        columns[name] = pa.array(draw(drawn), kind)
    some = st.lists(st.sampled_from([*TYPES]), min_size=1, max_size=2, unique=True)
    zones = st.sampled_from(ZONES)
    ansi = draw(st.sampled_from(["true", "false"]))
    return pa.table(columns), draw(some), draw(some), draw(zones), draw(zones), ansi


NUMBERS = count()


def check_promotion(spark: Any, folder: Path, case: Any) -> None:
    table, of_target, of_source, written_in, read_in, ansi = case
    source, target = folder / "source", folder / "target"
    # deltalake has no folders for long strings, nor for very large numbers.
    of_source = [name for name in of_source if name not in ("string", "float", "double")]
    write_deltalake(str(source), table, partition_by=of_source or None)
    write_deltalake(str(target), table.slice(0, 0), partition_by=of_target)
    gate = request(
        folder,
        "assert num_rows() > 0",
        [DatasetRef("orders", str(source))],
        promote_to=(("orders", str(target)),),
    )
    with zone(spark, written_in), setting(spark, "spark.sql.ansi.enabled", ansi):
        report = run_gates([gate], lambda _: spark)[0]
    assert report.outcome is Outcome.PASSED, reasons(report)
    assert by_deltalake(target) == exact_rows(table)
    with zone(spark, read_in), setting(spark, "spark.sql.ansi.enabled", ansi):
        assert by_spark(spark, target) == exact_rows(table)
        assert by_spark(spark, source) == exact_rows(table)


@pytest.mark.more
@settings(
    max_examples=2, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(case=promotions())
@pytest.mark.since_spark("4.0", "collects Arrow tables")
def test_what_stands_in_a_target_is_what_was_judged(spark: Any, tmp_path: Path, case: Any) -> None:
    check_promotion(spark, tmp_path / str(next(NUMBERS)), case)


@pytest.mark.nightly
@settings(
    max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(case=promotions())
@pytest.mark.since_spark("4.0", "collects Arrow tables")
def test_what_stands_in_a_target_is_what_was_judged_for_many_rows(
    spark: Any, tmp_path: Path, case: Any
) -> None:
    check_promotion(spark, tmp_path / str(next(NUMBERS)), case)


@pytest.mark.parametrize("kind", ["timestamp", *sorted(TYPES.keys() - {"string", "timestamp"})])
@pytest.mark.few(1)
@pytest.mark.since_spark("4.0", "collects Arrow tables")
def test_folders_of_declared_types_have_the_same_values_in_every_session(
    spark: Any, tmp_path: Path, kind: str
) -> None:
    held, values = TYPES[kind]
    table = pa.table({"id": pa.array(range(len(values)), pa.int64()), "p": pa.array(values, held)})
    orders = str(tmp_path / "orders")
    write_deltalake(str(tmp_path / "unpartitioned"), table)
    rows = open_dataset(spark, DatasetRef("orders", str(tmp_path / "unpartitioned"))).read([None])
    rows.write.partitionBy("p").parquet(orders)
    struct = ", ".join(f"{name} {type_}" for name, type_ in rows.dtypes)
    with zone(spark, "America/New_York"):
        opened = open_dataset(spark, DatasetRef("orders", orders, format="parquet", schema=struct))
        assert exact_rows(opened.read([None]).toArrow()) == exact_rows(table)


@pytest.mark.parametrize("kind", UNHELD)
@pytest.mark.few(1)
def test_what_a_partition_cannot_hold_is_refused_before_the_commit_with_its_row(
    run: Run, tmp_path: Path, kind: str
) -> None:
    held, values, reason = UNHELD[kind]
    source, target = tmp_path / "source", tmp_path / "target"
    stored = {
        pa.date32(): pa.int32(),
        **dict.fromkeys((TYPES["timestamp"][0], TYPES["timestamp_ntz"][0]), pa.int64()),
    }
    column = pa.array([None, *values], stored.get(held, held)).cast(held)
    table = pa.table({"id": [7, 8], "p": column})
    write_deltalake(str(source), table)
    write_deltalake(str(target), table.slice(0, 1), partition_by=["p"])
    orders = DatasetRef("orders", str(source), keys=("id",))
    body = "assert num_rows() == 2 severity P0"
    report = run(request(tmp_path, body, [orders], promote_to=(("orders", str(target)),)))
    assert report.outcome is Outcome.BROKEN
    assert f"it is partitioned by 'p', and rows have {reason}" in reasons(report)
    assert '{"id":8}' in reasons(report)
    assert DeltaTable(str(target)).version() == 0


FOLDERS = (
    ("2024-03-01", "2024-03-02", NO_VALUE),
    ("01", "12", "-3"),
    ("zurich", "a b", "Nancy"),
    # What Spark infers from these is left to it.
    ("2024-02-30",),
    ("2024-03-01", "x"),
    ("12345678901",),
    ("1.5",),
    ("NaN",),
    ("T12:30",),
    ("1d",),
    ("2024-03-01 12:30:00",),
    (NO_VALUE,),
)
READ_ON_SAIL = 3


def test_the_values_of_folders_have_the_types_that_spark_infers(spark: Any, tmp_path: Path) -> None:
    for number, texts in enumerate(FOLDERS):
        column = FolderColumn.of("key", texts)
        assert (column is not None) == (number < READ_ON_SAIL)
        if column is None:
            continue
        for text in texts:
            folder = tmp_path / str(number) / f"key={text}"
            folder.mkdir(parents=True)
            pq.write_table(pa.table({"text": [text]}), folder / "a.parquet")
        read = spark.read.parquet(str(tmp_path / str(number)))
        assert read.schema["key"].dataType == column.type
        assert {row.text: row.key for row in read.collect()} == {
            text: column.values[text] for text in texts
        }


_BY_BOTH = pa.table(
    {
        "id": pa.array(range(6), pa.int64()),
        "text": pa.array(["A B", "a/b:c", "50%25", None, "\u00dcn\u00ef@", "@x"]),
        "day": pa.array([DAY, DAY, DAY, None, date(1, 1, 1), date(9999, 12, 31)]),
        "whole": pa.array([0, -3, 7, None, 1, 2], pa.int32()),
        "is_ok": pa.array([True, False, None, True, True, True]),
        "sum": pa.array([Decimal(n) for n in ("1.50", "0.00", "-2.25")] + [None] * 3),
        "at": pa.array(
            [
                datetime(2024, 3, 2, 12, 30, 5, 120, UTC),
                None,
                *[datetime(1969, 1, 1, tzinfo=UTC)] * 4,
            ],
            pa.timestamp("us", "UTC"),
        ),
        "local": pa.array([datetime(2024, 3, 2, 12), *[None] * 5], pa.timestamp("us")),
    }
)


def test_files_that_are_written_without_spark_are_named_and_logged_as_those_of_spark(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pq.write_table(_BY_BOTH, tmp_path / "a.parquet")
    frame = spark.read.parquet(str(tmp_path / "a.parquet"))
    names = [name for name in _BY_BOTH.column_names if name != "id"]
    by_spark = write_files(
        spark, frame, str(tmp_path), "x", partition_by=names, extremes_of=["id"], count_if="id > 3"
    )
    monkeypatch.setattr(collected_files, "arrow_parts", lambda rows: [rows.toArrow()])
    monkeypatch.setattr(data_files, "sail_version", lambda _: "0.7.2")
    here = write_files(
        spark, frame, str(tmp_path), "y", partition_by=names, extremes_of=["id"], count_if="id > 3"
    )
    assert (here.rows, here.counted) == (by_spark.rows, by_spark.counted) == (6, 2)
    logged, due = (
        sorted((str(one.partition_values), one.stats) for one in written.adds)
        for written in (here, by_spark)
    )
    assert logged == due
    for add in here.adds:
        assert pq.read_table(tmp_path / add.path, partitioning=None).column_names == ["id"]
        assert (tmp_path / add.path).stat().st_size == add.size
