"""Values that any gate stored about a dataset, also in the stores of earlier versions."""

from __future__ import annotations

import shutil
from datetime import date
from pathlib import Path

import pytest

from dqx_airflow.results.past_days import past_days
from dqx_airflow.results.query import opened
from dqx_airflow.results.values_of_gates import with_values_of_gates
from tests.tuning.stored_days import FIRST, day, orders, store_days

COUNTS = {number: (10 + number, number) for number in range(4)}


@pytest.mark.parametrize("version", ["0.1.0", "0.2.0"])
def test_a_store_of_an_earlier_version_adds_nothing_without_readings(
    tmp_path: Path, version: str
) -> None:
    shutil.unpack_archive(Path(__file__).parent / "stores" / f"{version}.zip", tmp_path)
    found = with_values_of_gates(
        opened(str(tmp_path)), (), ["orders"], date(2024, 1, 1), date(2024, 12, 31)
    )
    assert (found.days, found.gates, found.doubts) == ((), (), ())


def test_a_day_has_the_values_of_its_own_suite_first(tmp_path: Path) -> None:
    root = str(tmp_path)
    sums = 'suite "Nulls" { check "C" on orders { assert null_count(email) >= 0 name "n" } }'
    store_days(root, orders(COUNTS), range(3), gate="a")
    store_days(root, orders({0: (99, 9), 3: (13, 3)}), range(0, 4, 3), gate="b", suite=sums)
    own = past_days(root, "Orders", FIRST, day(3))
    found = with_values_of_gates(opened(root), own, ["orders"], FIRST, day(3))
    assert [one.date for one in found.days] == [day(number) for number in range(4)]
    assert found.gates == ("b",)
    (nulls,) = {key for key in found.days[0].measured.values if "null_count" in key}
    assert [one.measured.values[nulls] for one in found.days] == [0, 1, 2, 3]


def test_another_dataset_adds_nothing(tmp_path: Path) -> None:
    store_days(str(tmp_path), orders(COUNTS), range(3))
    found = with_values_of_gates(opened(str(tmp_path)), (), ["customers"], FIRST, day(3))
    assert found.days == ()
