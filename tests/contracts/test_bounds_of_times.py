"""Bounds of dates, timestamps and times of day are compared as times, whatever type and format
their values have: Spark and Python's `datetime` give the same verdicts."""

from __future__ import annotations

import json
import operator
from datetime import date, datetime, time, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dqx_airflow import Contract, SparkDatabase
from dqx_airflow.contracts.export.great_expectations import suite
from dqx_airflow.contracts.read import read_contract
from dqx_airflow.contracts.time_texts import BoundError, TimeFormat, bound_moment
from dqx_airflow.values import SourceFile

DOCUMENT = """\
apiVersion: v3.1.0
kind: DataContract
id: o
version: 1.0.0
status: active
schema:
  - name: o
    properties:
      - name: a
        logicalType: %s
        physicalType: %s
        logicalTypeOptions: {%s}
"""
KEYS = {
    "minimum": operator.ge,
    "exclusiveMinimum": operator.gt,
    "maximum": operator.le,
    "exclusiveMaximum": operator.lt,
}
TIME_FORMATS = {
    None: "%H:%M:%S",
    "HH:mm:ss": "%H:%M:%S",
    "HH:mm": "%H:%M",
    "HHmmss": "%H%M%S",
    "hh:mm:ss a": "%I:%M:%S %p",
}
DATE_FORMATS = {
    None: "%Y-%m-%d",
    "yyyy-MM-dd": "%Y-%m-%d",
    "dd.MM.yyyy": "%d.%m.%Y",
    "MM/dd/yyyy": "%m/%d/%Y",
    "yyyyMMdd": "%Y%m%d",
}
TIMESTAMP_FORMATS = {
    None: "%Y-%m-%dT%H:%M:%S",
    "dd.MM.yyyy HH:mm": "%d.%m.%Y %H:%M",
    "yyyy-MM-dd'T'HH:mm:ss": "%Y-%m-%dT%H:%M:%S",
    "yyyy-MM-dd HH:mm:ssXXX": "%Y-%m-%d %H:%M:%SZ",
}
FORMATS = {"time": TIME_FORMATS, "date": DATE_FORMATS, "timestamp": TIMESTAMP_FORMATS}


def document(logical: str, physical: str, options: str) -> SourceFile:
    return SourceFile("o.yaml", DOCUMENT % (logical, physical, options))


@st.composite
def examples(draw: Any) -> tuple[str, str | None, str, datetime, list[datetime], bool]:
    logical = draw(st.sampled_from(sorted(FORMATS)))
    pattern = draw(st.sampled_from(list(FORMATS[logical])))
    moments = st.datetimes(datetime(1971, 1, 1), datetime(2090, 1, 1))
    bound, *values = draw(st.lists(moments, min_size=3, max_size=5))
    # The neighbours of the bound decide whether it is inclusive.
    step = timedelta(days=1) if logical == "date" else timedelta(minutes=1)
    values += [bound, bound - step, bound + step]
    return logical, pattern, draw(st.sampled_from(sorted(KEYS))), bound, values, draw(st.booleans())


def compared(logical: str, form: str, moment: datetime) -> datetime:
    """The moment that a string of the form means."""
    found = datetime.strptime(moment.strftime(form), form)
    return datetime.combine(datetime(1970, 1, 1), found.time()) if logical == "time" else found


def judge_on_spark(spark: Any, example: Any) -> None:
    logical, pattern, key, bound, values, is_iso = example
    form = FORMATS[logical][pattern]
    iso = {"time": "%H:%M:%S", "date": "%Y-%m-%d", "timestamp": "%Y-%m-%dT%H:%M:%S"}[logical]
    meant = compared(logical, form, bound)
    written = meant.strftime(iso if is_iso else form)
    options = f'{key}: "{written}"'
    if pattern is not None:
        options += f', format: "{pattern}"'
    source = document(logical, "string", options)
    rows = [(value.strftime(form),) for value in values]
    due = sum(not KEYS[key](compared(logical, form, value), meant) for value in values)
    name = {"exclusiveMinimum": "exclusive_minimum", "exclusiveMaximum": "exclusive_maximum"}
    frame = spark.createDataFrame([*rows, (None,)], "a string")
    frame.createOrReplaceTempView("bounds_of_times")
    database = SparkDatabase(spark, {"o": {"table": "bounds_of_times"}})
    results = Contract.from_string(source.text).run(database, date(2024, 1, 1))
    (verdict,) = (one for one in results.report.verdicts if one.name == f"o.a.{name.get(key, key)}")
    assert verdict.value == due, (source.text, rows, str(results))


@pytest.mark.more
@pytest.mark.spark
@settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck))
@given(example=examples())
def test_text_is_compared_as_python_compares_times(spark: Any, example: Any) -> None:
    judge_on_spark(spark, example)


@pytest.mark.spark
@pytest.mark.nightly
@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(example=examples())
def test_more_text_is_compared_as_python_compares_times(spark: Any, example: Any) -> None:
    judge_on_spark(spark, example)


NESTED = """\
apiVersion: v3.1.0
kind: DataContract
id: o
version: 1.0.0
status: active
schema:
  - name: o
    properties:
      - name: shop
        logicalType: object
        properties:
          - name: opens
            logicalType: time
            physicalType: string
            logicalTypeOptions: {format: "HH:mm", maximum: "18:00"}
      - name: days
        logicalType: array
        items:
          logicalType: date
          physicalType: string
          logicalTypeOptions: {format: dd.MM.yyyy, minimum: "01.02.2024"}
"""


@pytest.mark.spark
def test_nested_fields_and_items_are_compared_as_times(spark: Any) -> None:
    rows = [
        (("09:00",), ["01.02.2024", "15.01.2025"]),
        (("18:01",), ["31.01.2024"]),
        (("9 am",), ["2024-03-01", None]),
        (None, None),
    ]
    frame = spark.createDataFrame(rows, "shop struct<opens: string>, days array<string>")
    frame.createOrReplaceTempView("nested_times")
    database = SparkDatabase(spark, {"o": {"table": "nested_times"}})
    results = Contract.from_string(NESTED).run(database, date(2024, 1, 1))
    found = {one.name: one.value for one in results.report.verdicts}
    names = ("o.shop.opens", "o.days[]")
    assert [found[f"{name}.date_format"] for name in names] == [1, 1]
    assert found["o.shop.opens.maximum"] == 1
    assert found["o.days[].minimum"] == 1


@pytest.mark.parametrize(
    ("logical", "physical", "options", "message"),
    [
        ("time", "string", 'maximum: "25:00"', "is not a time"),
        ("time", "string", 'maximum: "6 pm", format: "HH:mm"', "is not a time, and not of"),
        ("time", "TIME", 'maximum: "24:00:00"', "is not a time"),
        ("date", "string", 'minimum: "2024-02-30"', "is not a date"),
        ("date", "string", 'minimum: "31.02.2024", format: "dd.MM.yyyy"', "is not a date"),
        ("date", "date", 'minimum: "2024-02-30"', "is not a date"),
        ("timestamp", "timestamp", 'minimum: "2024-01-31T25:00:00"', "is not a date"),
        ("timestamp", "string", 'exclusiveMaximum: "tomorrow"', "is not a date"),
        ("date", "string", 'minimum: "2020-01-02", format: "yyyy-dd-MM"', "2020-02-01T00:00:00 by"),
        ("date", "date", 'minimum: "2020-01-02", format: "yyyy-dd-MM"', "2020-02-01T00:00:00 by"),
    ],
)
def test_a_bound_that_is_no_time_or_one_of_two_is_an_error_at_its_line(
    logical: str, physical: str, options: str, message: str
) -> None:
    found = read_contract(document(logical, physical, options)).diagnostics
    (error,) = (one for one in found if one.code == "E405")
    assert message in error.message
    assert error.span.line == 12


@pytest.mark.parametrize(
    ("physical", "bound"),
    [
        ("date", "2020-02-01"),
        ("timestamp", '"2020-02-01T00:00:00Z"'),
        ("timestamp_ntz", '"2020-02-01T00:00:00Z"'),
    ],
)
def test_a_bound_of_a_typed_column_may_be_in_its_format(physical: str, bound: str) -> None:
    source = document("date", physical, 'minimum: "01.02.2020", format: "dd.MM.yyyy"')
    contract = Contract.from_string(source.text)
    assert f"each row: a >= {bound}" in contract.suite


@pytest.mark.parametrize("pattern", ["DD.MM.YYYY", "yyyy-MM-dd'T'HH:mm:ss.nnn", "---"])
def test_a_format_that_spark_cannot_read_is_found_before_it_runs(pattern: str) -> None:
    assert TimeFormat(pattern).problem is not None
    with pytest.raises(BoundError):
        bound_moment("no time", pattern, is_time=False)


@pytest.mark.parametrize("physical", ["string", "TIME"])
def test_the_bounds_of_times_are_rows_of_sql_for_great_expectations(physical: str) -> None:
    source = document("time", physical, 'minimum: "00:00:00", maximum: "18:00:00"')
    contract = read_contract(source).contract
    assert contract is not None
    kinds = [one["type"] for one in json.loads(suite(contract).text)["expectations"]]
    assert kinds.count("unexpected_rows_expectation") == 2
    assert "expect_column_values_to_be_between" not in kinds


def test_a_time_of_day_is_no_day() -> None:
    assert bound_moment("18:00", None, is_time=True).time() == time(18)


CONFUSED_FORMATS = """\
dd.mm.yyyy | MM
yyyymmdd | MM
dd/mm/yyyy | MM
yyyy-mm-dd | MM
yyyy-mm-dd HH:mm:ss | MM
yyyy-MM-dd HH:MM:ss | mm
dd.MM.yyyy HH:MM | mm
HH:MM | mm
HH:MM:ss | mm
yyyy-mm-dd'T'ss | MM
mm/yyyy | MM
yyyy.dd | MM
dd yyyy | MM
DD.MM.yyyy | dd
yyyy-MM-DD | dd
YYYY-MM-dd | yyyy
dd.MM.yyyy hh:mm | HH
hh:mm:ss | HH
KK:mm | HH
HH:mm a | hh
HH:mm:SS | ss
yyyy-MM-dd HH:mm:SSS | ss
HH.ss | mm
"""
"""Formats that Spark reads otherwise than meant, or not at all, and what to write."""
RIGHT_FORMATS = """\
dd.MM.yyyy | yyyyMMdd | dd/MM/yyyy HH:mm | yyyy-MM-dd'T'HH:mm:ss.SSSXXX | d/M/yy | MM/yyyy | yyyy
yyyy-DDD | dd LLL yyyy | MMM d, yyyy | hh:mm:ss a | KK:mm a | kk:mm | HHmmss | HH:mm | HH | yyyy-MM
yyyy-MM-dd HH | [yyyy-MM-dd][dd.MM.yyyy] | yyyy-MM-dd[ HH:mm[:ss]] | h a | dd.MM. | yyyy-MM-ddTHH:mm
"""


@pytest.mark.parametrize("row", CONFUSED_FORMATS.splitlines())
def test_a_format_with_the_wrong_letter_is_an_error_that_names_the_right_one(row: str) -> None:
    pattern, wanted = row.split(" | ")
    problem = TimeFormat(pattern).problem
    assert problem is not None
    assert wanted in problem.partition(": ")[2]
    logical = "time" if "y" not in pattern.lower() else "timestamp"
    text = "01.02.2024"
    for physical in ("string", logical):
        options = f'format: "{pattern}", minimum: "{text}"'
        read = read_contract(document(logical, physical, options))
        broken = [note for note in read.contract.notes if note.promise] if read.contract else []
        assert read.errors or broken, physical


@pytest.mark.parametrize(
    "pattern", [one.strip() for row in RIGHT_FORMATS.splitlines() for one in row.split(" | ")]
)
def test_other_formats_are_no_errors(pattern: str) -> None:
    assert TimeFormat(pattern).problem is None
