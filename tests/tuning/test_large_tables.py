"""Drafts of tables with more rows than are read for the forms of strings."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from dqx_airflow.metrics.types import spark_type_of_arrow
from dqx_airflow.tuning.column_tables import ColumnTable
from dqx_airflow.tuning.observed_days import profile_of_last_days
from dqx_airflow.tuning.suggested import Seen, suggested_suite
from dqx_airflow.tuning.table_profile import profile_of_columns
from dqx_airflow.values import DatasetRef
from tests.small_lakes import TODAY

ROWS = 120_000
NOW = datetime(2024, 3, 1, tzinfo=timezone.utc)


def columns_of(**columns: Any) -> ColumnTable:
    table = pa.table(columns)
    types = {field.name: spark_type_of_arrow(field.type) for field in table.schema}
    return ColumnTable(tuple(types), types, table.num_rows, table.column)


def texts(before: str, numbers: Any) -> Any:
    return pc.binary_join_element_wise(before, pc.cast(pa.array(numbers), pa.string()), "")


@pytest.fixture(scope="module")
def numbers() -> Any:
    return np.arange(ROWS)


def test_a_form_is_of_some_values_and_says_so_and_a_set_is_of_all(numbers: Any) -> None:
    states = np.where(numbers % 2 == 0, "new", "paid")
    states[77_777] = "void"  # once, wherever the values that are read are
    odd = pc.if_else(pa.array(numbers == 5), "?", texts("A", numbers))
    table = columns_of(order=texts("T-", numbers), state=pa.array(states), odd=odd)
    profile = profile_of_columns(table, "t", "t")
    form, state, _ = profile.columns
    assert state.values == ("new", "paid", "void")
    assert (form.pattern, form.read_for_pattern) == (r"^T-[0-9]+$", 100_000)
    text = suggested_suite("t", [Seen("t", profile)], NOW)
    assert "# 100000 of 120000 values were read, and have this form" in text
    assert "# 3 different values in 120000 rows" in text


def test_a_key_is_of_all_rows(numbers: Any) -> None:
    table = columns_of(number_of_it=pa.array(numbers))
    assert profile_of_columns(table, "t", "t").key == ("number_of_it",)
    repeated = numbers.copy()
    repeated[ROWS - 2] = repeated[1]
    table = columns_of(order_id=pa.array(repeated), other=pa.array(repeated))
    profile = profile_of_columns(table, "t", "t")
    assert profile.key == ()
    assert [column.distinct for column in profile.columns] == [ROWS - 1, None]
    first, second = pa.array(numbers // 2), pa.array(numbers % 2)
    table = columns_of(left_id=first, right_id=second, note=texts("n", numbers // 3))
    assert profile_of_columns(table, "t", "t").key == ("left_id", "right_id")


def test_personal_values_are_recognized_however_many_there_are(numbers: Any) -> None:
    mails = pc.binary_join_element_wise(texts("p", numbers), "example.org", "@")
    (column,) = profile_of_columns(columns_of(contact=mails), "t", "t").columns
    assert column.is_personal


def test_the_order_of_rows_does_not_matter(numbers: Any) -> None:
    days = [TODAY - timedelta(days=back) for back in range(1, 21)]
    on = np.array(days)[numbers % 20]
    values = np.where(numbers % 50 == 0, None, numbers / 7)
    unsorted = {
        "ds": pa.array(on),
        "x": pa.array(values, pa.float64()),
        "s": texts("v", numbers % 3),
    }
    order = pc.sort_indices(pa.table({"ds": unsorted["ds"]}), [("ds", "ascending")])
    ordered = {name: column.take(order) for name, column in unsorted.items()}
    ref = DatasetRef("t", path="t", date_column="ds")
    one, other = (
        profile_of_last_days(columns_of(**columns), ref, "t", 10) for columns in (unsorted, ordered)
    )
    assert one == other
    assert one.days is not None
    assert len(one.days.rows) == 10
    assert sum(one.days.rows.values()) == one.table.rows == ROWS // 2
    nulls = one.days.nulls["x"]
    assert sum(nulls.values()) == one.table.columns[1].nulls > 0
