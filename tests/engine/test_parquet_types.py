"""Of each type in Parquet files, Spark reads the values as they are, or there is an error."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import types as T

from dqx_airflow.engine.job import try_gates
from dqx_airflow.engine.session.spark_versions import has_types_since
from dqx_airflow.engine.sources.open import open_dataset
from dqx_airflow.engine.sources.parquet_types import ReadColumns
from dqx_airflow.errors import DatasetError
from dqx_airflow.values import DatasetRef, GateReport, Outcome
from tests.engine.lake import TODAY, request

MOMENT = datetime(2024, 3, 2, 10, 0, 0, 123_000)
IN_UTC = MOMENT.replace(tzinfo=timezone.utc)

STORED: dict[str, pa.Array] = {
    "boolean": pa.array([True, False]),
    "int8": pa.array([127, -128], pa.int8()),
    "int16": pa.array([2**15 - 1, -(2**15)], pa.int16()),
    "int32": pa.array([70_000, 2**31 - 1, -(2**31)], pa.int32()),
    "int64": pa.array([2**40, 2**63 - 1, -(2**63)], pa.int64()),
    "uint8": pa.array([255, 200], pa.uint8()),
    "uint16": pa.array([2**16 - 1], pa.uint16()),
    "uint32": pa.array([2**32 - 1], pa.uint32()),
    "uint64": pa.array([2**64 - 1], pa.uint64()),
    "float": pa.array([0.1, 3e38], pa.float32()),
    "double": pa.array([0.1, 1e300]),
    "float16": pa.array([1.5]).cast(pa.float16()),
    "decimal(9,2)": pa.array([Decimal("1234567.89"), Decimal("-1.50")], pa.decimal128(9, 2)),
    "decimal(18,0)": pa.array([Decimal(10**18 - 1)], pa.decimal128(18, 0)),
    "decimal(38,18)": pa.array([Decimal("1.5")], pa.decimal128(38, 18)),
    "string": pa.array(["a", "7", "ü"]),
    "binary": pa.array([b"\xff\xfe", b"a"]),
    "fixed": pa.array([b"\xff\xfe\x00a"], pa.binary(4)),
    "date": pa.array([date(2024, 3, 2), date(1969, 12, 31)]),
    "time(ms)": pa.array([time(6, 30)], pa.time32("ms")),
    "time(us)": pa.array([time(6, 30)], pa.time64("us")),
    "time(ns)": pa.array([time(6, 30)], pa.time64("ns")),
    "timestamp(ms)": pa.array([MOMENT], pa.timestamp("ms")),
    "timestamp(us)": pa.array([MOMENT], pa.timestamp("us")),
    "timestamp(ns)": pa.array([MOMENT], pa.timestamp("ns")),
    "timestamp(ms,utc)": pa.array([IN_UTC], pa.timestamp("ms", "UTC")),
    "timestamp(us,utc)": pa.array([IN_UTC], pa.timestamp("us", "UTC")),
    "timestamp(ns,utc)": pa.array([IN_UTC], pa.timestamp("ns", "UTC")),
    "int96": pa.array([MOMENT], pa.timestamp("ns")),
    "null": pa.array([None], pa.null()),
}
if hasattr(pa, "json_"):  # since pyarrow 19; pa.uuid since 18
    of_a_uuid = pa.array([bytes(range(16))], pa.binary(16))
    STORED["uuid"] = pa.ExtensionArray.from_storage(pa.uuid(), of_a_uuid)
    STORED["json"] = pa.array(['{"a": 1}'], pa.json_())
READ = (
    *("boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "string", "binary"),
    *("date", "timestamp", "timestamp_ntz", "interval day to second", "interval year to month"),
    *("decimal(3,0)", "decimal(9,1)", "decimal(10,2)", "decimal(10,0)", "decimal(12,3)"),
    *("decimal(20,0)", "decimal(22,2)", "decimal(38,0)", "decimal(38,18)"),
)
DEEP = {
    "alone": ("v {}", "v"),
    "in a struct": ("v struct<x:{}>", "v.x"),
    "in a list": ("v array<{}>", "v[0]"),
    "in a map": ("v map<string,{}>", "v['k']"),
}
"""Where a type is: the column, and how its value is selected."""


PATHS = {"in a struct": "v.x", "in a list": "v.element", "in a map": "v.value", "alone": "v"}


def placed(where: str, values: pa.Array) -> pa.Array:
    """The values in a column in which each is deep in a value."""
    each = list(range(len(values) + 1))
    match where:
        case "in a struct":
            return pa.StructArray.from_arrays([values], ["x"])
        case "in a list":
            return pa.ListArray.from_arrays(each, values)
        case "in a map":
            return pa.MapArray.from_arrays(each, pa.array(["k"] * len(values)), values)
    return values


def written(folder: Path, stored: str, where: str = "alone", *, is_coded: bool = True) -> Path:
    file = folder / "stored.parquet"
    pq.write_table(
        pa.table({"v": placed(where, STORED[stored])}),
        file,
        use_dictionary=is_coded,
        use_deprecated_int96_timestamps=stored == "int96",
        store_decimal_as_integer=not is_coded,
    )
    return file


def comparable(value: Any) -> Any:
    """A value, the same for all types that hold it."""
    match value:
        case bool() | None:
            return value
        case int() | float() | Decimal():
            return Fraction(value)
        case str():
            return value.encode()
        case datetime():
            return value.replace(tzinfo=None)
        case date():
            return datetime(value.year, value.month, value.day)
    return value if isinstance(value, timedelta) else bytes(value)


def true_values(stored: str, read: str) -> list[Any]:
    """The values of a file; those that are declared as what is stored for them are that."""
    values = STORED[stored]
    if isinstance(values, pa.ExtensionArray):
        values = values.storage
    if stored == "float16" and read == "binary":
        return [bytes(values.buffers()[1])]
    if (stored.startswith("time(") or "ns" in stored) and read in ("int", "bigint"):
        return [
            Fraction(number) for number in values.view(f"int{values.type.bit_width}").to_pylist()
        ]
    return list(map(comparable, values.to_pylist()))


def select(column: str, read: str) -> str:
    kind = {"timestamp": "timestamp_ntz", "string": "binary"}.get(read, read)
    return f"CAST({column} AS {'string' if read.startswith('interval') else kind})"


def misreads(spark: Any, file: Path, stored: str, where: str) -> Iterator[str]:
    """The types of Spark as which a file has other values, without an error that names it and its
    column."""
    column, value = DEEP[where]
    for read in READ:
        ref = DatasetRef("t", str(file), format="parquet", schema=column.format(read))
        try:
            rows = open_dataset(spark, ref).read([None]).selectExpr(select(value, read)).collect()
            found = [comparable(row[0]) for row in rows]
        except DatasetError as refused:
            # An older Arrow writes a UUID as its bytes alone.
            kinds = {stored, "binary"} if stored in ("fixed", "uuid") else {stored}
            said = [f"'{PATHS[where]}' is of type {kind} in {file}" for kind in kinds]
            if not any(words in str(refused) for words in said):
                yield f"{read}: {refused}"
        except Exception as failed:
            is_named = file.name in str(failed) and "UnsupportedOperation" not in str(failed)
            if not is_named and has_types_since(spark, "4.0"):  # before, not each error has a file
                yield f"{read}: {failed}"
        else:
            if found != true_values(stored, read):
                yield f"{read}: {found}"


@pytest.mark.spark
@pytest.mark.nightly
@pytest.mark.parametrize("where", DEEP)
@pytest.mark.parametrize("stored", STORED)
def test_every_type_is_read_as_it_is_or_an_error(
    spark: Any, tmp_path: Path, stored: str, where: str
) -> None:
    assert not [*misreads(spark, written(tmp_path, stored, where), stored, where)]


@pytest.mark.spark
@pytest.mark.nightly
@pytest.mark.parametrize("stored", STORED)
def test_every_type_is_read_as_it_is_without_a_dictionary_and_row_by_row(
    spark: Any, tmp_path: Path, stored: str
) -> None:
    file = written(tmp_path, stored, is_coded=False)
    assert not [*misreads(spark, file, stored, "alone")]
    before = spark.conf.get("spark.sql.parquet.enableVectorizedReader")
    spark.conf.set("spark.sql.parquet.enableVectorizedReader", "false")
    try:
        assert not [*misreads(spark, file, stored, "alone")]
    finally:
        spark.conf.set("spark.sql.parquet.enableVectorizedReader", before)


@pytest.mark.spark
@pytest.mark.more
@pytest.mark.parametrize("where", ["alone", "in a list"])
def test_a_half_float_is_an_error_that_names_its_column(
    spark: Any, tmp_path: Path, where: str
) -> None:
    """An older Spark fails at the footer of such a file, whatever is read from it."""
    file = written(tmp_path, "float16", where)
    report = judged(
        spark, tmp_path, DatasetRef("orders", str(file), format="parquet"), "assert num_rows() > 0"
    )
    assert report.outcome is Outcome.BROKEN
    reason = report.verdicts[0].reason or ""
    assert re.search(r"'v(\.element)?'.*(float16|halffloat)", reason), reason
    assert str(file) in reason


SMALL = T.ByteType()
FOUND = [
    (T.ShortType(), "int32", "alone", ("v",), "int"),
    (T.StructType([T.StructField("X", SMALL)]), "int32", "in a struct", ("v", "X"), "int"),
    (T.ArrayType(SMALL), "uint8", "in a list", ("v", "element"), "smallint"),
    (T.MapType(T.StringType(), SMALL), "int16", "in a map", ("v", "value"), "smallint"),
    (T.IntegerType(), "uint32", "alone", ("v",), "bigint"),
    (T.LongType(), "uint64", "alone", ("v",), "decimal(20,0)"),
    (T.DecimalType(9, 1), "decimal(9,2)", "alone", ("v",), None),
    (T.DateType(), "int32", "alone", ("v",), None),
    (T.LongType(), "timestamp(us,utc)", "alone", ("v",), None),
    (T.StringType(), "binary", "alone", ("v",), None),
]
"""A type that is read, one in a file, what is read with other values, and what to declare."""


@pytest.mark.parametrize(("read", "stored", "where", "path", "wider"), FOUND)
def test_what_is_read_with_other_values_is_found_at_any_depth(
    tmp_path: Path,
    read: T.DataType,
    stored: str,
    where: str,
    path: tuple[str, ...],
    wider: str | None,
) -> None:
    columns = ReadColumns.of(T.StructType([T.StructField("V", read), T.StructField("w", SMALL)]))
    (misread,) = columns.compared(pq.read_metadata(written(tmp_path, stored, where)).schema).misread
    assert (misread.path, misread.stored) == (("V", *path[1:]), stored)
    assert misread.wider(is_declared=False) == wider


def judged(spark: Any, tmp_path: Path, ref: DatasetRef, body: str) -> GateReport:
    return try_gates([request(tmp_path, body, [ref], TODAY)], lambda _: spark)[0]


WIDER = (pa.array([1], pa.int16()), pa.array([65_537, 70_000], pa.int32()))
SMALLER = (WIDER[1], WIDER[0])


@pytest.mark.spark
@pytest.mark.parametrize("folders", [("", ""), ("ds=2024-03-01", f"ds={TODAY}")])
def test_a_wider_type_than_in_the_first_file_is_an_error_and_a_smaller_one_is_read(
    spark: Any, tmp_path: Path, folders: tuple[str, str]
) -> None:
    for name, arrays in (("wider", WIDER), ("smaller", SMALLER)):
        for file, folder, values in zip("ab", folders, arrays, strict=True):
            (tmp_path / name / folder).mkdir(parents=True, exist_ok=True)
            pq.write_table(pa.table({"v": values}), tmp_path / name / folder / f"{file}.parquet")
    dates = "ds" if folders[1] else None
    body = 'assert maximum(v) < 100_000 name "max"\nassert column v type smallint name "type"'
    wider = DatasetRef("orders", str(tmp_path / "wider"), format="parquet", date_column=dates)
    report = judged(spark, tmp_path, wider, body)
    assert report.outcome is Outcome.BROKEN
    for verdict in report.verdicts:
        assert "column 'v' is of type int32 in" in (verdict.reason or "")
        assert "b.parquet, but would be read as smallint" in (verdict.reason or "")
    smaller = DatasetRef("orders", str(tmp_path / "smaller"), format="parquet", date_column=dates)
    counted = judged(spark, tmp_path, smaller, 'assert minimum(v) == 1 name "min"')
    assert counted.outcome is Outcome.PASSED, counted.verdicts


@pytest.mark.spark
def test_a_smaller_type_than_in_the_file_must_not_be_declared(spark: Any, tmp_path: Path) -> None:
    pq.write_table(pa.table({"v": WIDER[1]}), tmp_path / "a.parquet")
    for read, is_held in (("smallint", False), ("date", False), ("int", True), ("bigint", True)):
        ref = DatasetRef("orders", str(tmp_path), format="parquet", schema=f"v {read}")
        report = judged(spark, tmp_path, ref, 'assert num_rows() == 2 name "rows"')
        assert (report.outcome is Outcome.PASSED) is is_held, report.verdicts
        if not is_held:
            assert "declare 'v' as int in its schema" in (report.verdicts[0].reason or "")
