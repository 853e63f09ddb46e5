"""Promotions into one table that name the same rows in different ways: whatever is promoted, no row
disappears that its own gate did not replace.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from itertools import count
from pathlib import Path
from random import Random
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dqx_airflow.engine.job import run_gates
from dqx_airflow.values import Attempt, DatasetRef, Outcome, RunKey, Status
from tests.attacks.attack_gates import gate_request

pytestmark = pytest.mark.spark

SUITE = 'suite "S" { check "C" on t { assert num_rows() < 100 } }'
FIRST, SECOND, MIXED_UP = date(2024, 3, 1), date(2024, 3, 2), date(2024, 2, 3)
DAYS = (FIRST, SECOND, MIXED_UP)


def _at(hour: int) -> datetime:
    return datetime.combine(SECOND, time(hour), timezone.utc)


SPELLINGS: dict[str, tuple[pa.DataType, dict[str, Any]]] = {
    "bigint": (pa.int64(), {"1": 1, "01": 1, " 1": 1, "+1": 1, "2": 2}),
    "decimal": (pa.decimal128(10, 2), {"1.0": Decimal(1), "1.00": Decimal(1), "2": Decimal(2)}),
    "boolean": (pa.bool_(), {"true": True, "TRUE": True, "t": True, "false": False}),
    "date": (pa.date32(), {"2024-03-02": SECOND, "2024-3-2": SECOND, "2024-03-01": FIRST}),
    "double": (pa.float64(), {"0.0": 0.0, "-0.0": -0.0, "0": 0.0, "1e0": 1.0}),
    "string": (pa.string(), {"1": "1", "01": "01", "1 ": "1 "}),
    "timestamp": (
        pa.timestamp("us", "UTC"),
        {
            "2024-03-02T12:00:00Z": _at(12),
            "2024-03-02 13:00:00+01:00": _at(12),
            "2024-03-02 12:00": _at(12),
            "2024-03-02 12:00:00 Europe/Zurich": _at(11),
        },
    ),
    "timestamp_ntz": (
        pa.timestamp("us"),
        {
            "2024-03-02T12:00:00": _at(12).replace(tzinfo=None),
            "2024-03-02 12:00": _at(12).replace(tzinfo=None),
            "2024-03-02": _at(0).replace(tzinfo=None),
        },
    ),
}
FORMATS = {"dd.MM.yyyy": "%d.%m.%Y", "MM.dd.yyyy": "%m.%d.%Y", "yyyyMMdd": "%Y%m%d"}
ZONES = ("UTC", "Europe/Zurich", "Europe/Berlin", "America/New_York", "Pacific/Kiritimati")
"""At the second of March no clock of these is changed: for that see the days of `CLOCK_CHANGES`."""
CLOCK_CHANGES = (
    ("Europe/Zurich", date(2024, 3, 31)),
    ("Africa/Cairo", date(2024, 4, 26)),  # no midnight
    ("America/Havana", date(2024, 11, 3)),  # two of them
    ("Pacific/Apia", date(2011, 12, 30)),  # no such day
)


@dataclass(frozen=True, slots=True)
class Step:
    """One promotion. `column` is the date column, `how` its time zone or its format."""

    gate: str = "a"
    on: date = SECOND
    column: str | None = None
    how: str | None = None
    slice: str | None = None

    @property
    def settings(self) -> dict[str, str]:
        key = "date_format" if self.column == "text" else "time_zone"
        how = {key: self.how} if self.how else {}
        return {"date_column": self.column, **how} if self.column else {}

    def holds(self, row: dict[str, Any]) -> bool:
        """Whether a row is of the date, as Python reads it."""
        match self.column:
            case "ds":
                return bool(row["ds"] == self.on)
            case "text":
                return bool(row["text"] == self.on.strftime(FORMATS[self.how or ""]))
            case "at":
                first, end = self.moments
                return bool(first <= row["at"] < end)
        return True

    @property
    def moments(self) -> tuple[datetime, datetime]:
        zone = ZoneInfo(self.how or "UTC")
        begin = (datetime.combine(day, time(), zone) for day in (self.on, self.on + timedelta(1)))
        first, end = (moment.astimezone(timezone.utc) for moment in begin)
        return first, end

    def meaning(self, values: dict[str, Any]) -> tuple[Any, ...]:
        """Equal for two promotions that replace the same rows for the same date."""
        how: Any = self.moments if self.column == "at" else self.how
        day = (self.column, how, self.on) if self.column else ()
        return (self.gate, day, None if self.slice is None else (values[self.slice],))


IN_ZURICH = Step(column="at", how="Europe/Zurich")
REFUSED: list[tuple[str, Step, Step]] = [
    ("bigint", Step(column="ds", slice="1"), Step("b", column="ds", slice="01")),
    ("bigint", IN_ZURICH, Step("b", on=FIRST, column="at")),
    ("bigint", IN_ZURICH, Step(on=FIRST, column="at")),
    ("bigint", Step(on=FIRST, column="ds"), Step("b", column="at")),
    ("bigint", Step(on=FIRST, column="ds"), Step(column="at")),
    *(
        ("bigint", Step(column="text", how="dd.MM.yyyy"), second)
        for second in (
            Step("b", on=MIXED_UP, column="text", how="MM.dd.yyyy"),
            Step(on=MIXED_UP, column="text", how="MM.dd.yyyy"),
        )
    ),
    ("bigint", Step(slice="1"), Step("b", column="ds")),
    ("bigint", Step(slice="1"), Step("b", column="ds", slice="1")),
    ("bigint", Step(slice="1"), Step(column="ds", slice=" 1")),
    ("decimal", Step(slice="1.0"), Step("b", slice="1.00")),
    ("boolean", Step(slice="true"), Step("b", slice="TRUE")),
    ("date", Step(slice="2024-03-02"), Step("b", slice="2024-3-2")),
    ("double", Step(slice="0.0"), Step("b", slice="-0.0")),
    ("timestamp", Step(slice="2024-03-02T12:00:00Z"), Step("b", slice="2024-03-02 13:00:00+01:00")),
    ("timestamp_ntz", Step(slice="2024-03-02T12:00:00"), Step("b", slice="2024-03-02 12:00")),
]
TAKEN: list[tuple[str, Step, Step]] = [
    ("string", Step(slice="1"), Step("b", slice="01")),
    ("bigint", Step(column="ds", slice="1"), Step("b", column="ds", slice="2")),
    ("bigint", Step(column="ds", slice="1"), Step(column="ds", slice="01")),
    ("bigint", IN_ZURICH, Step(column="at", how="Europe/Berlin")),
    ("bigint", IN_ZURICH, Step("b", on=FIRST, column="at", how="Europe/Zurich")),
    ("bigint", Step(column="ds"), Step("b", on=FIRST, column="ds")),
    ("bigint", Step(column="text", how="dd.MM.yyyy"), Step("b", column="text", how="yyyyMMdd")),
]


@pytest.mark.few(1)
@pytest.mark.parametrize(("kind", "first", "second"), REFUSED)
def test_other_spellings_of_the_same_rows_are_refused(
    spark: Any, tmp_path: Path, kind: str, first: Step, second: Step
) -> None:
    assert promoted(spark, tmp_path, kind, [first, second], Random(0)) == [True, False]


@pytest.mark.nightly
def test_a_date_that_its_gate_has_cut_up_is_not_replaced_as_a_whole(
    spark: Any, tmp_path: Path
) -> None:
    steps = [Step(), Step(slice=" 1"), Step()]
    assert promoted(spark, tmp_path, "bigint", steps, Random(0)) == [True, True, False]


@pytest.mark.few(1)
@pytest.mark.parametrize(("kind", "first", "second"), TAKEN)
def test_other_rows_and_the_own_rows_are_promoted(
    spark: Any, tmp_path: Path, kind: str, first: Step, second: Step
) -> None:
    assert promoted(spark, tmp_path, kind, [first, second], Random(0)) == [True, True]


@pytest.mark.nightly
@pytest.mark.parametrize(("zone", "day"), CLOCK_CHANGES)
def test_days_around_a_change_of_clocks_share_no_row(
    spark: Any, tmp_path: Path, zone: str, day: date
) -> None:
    """The rows of each hour, promoted by three days, and by another gate with days of UTC."""
    start = datetime.combine(day, time(), timezone.utc) - timedelta(hours=40)
    hours = [start + timedelta(hours=hour) for hour in range(110)]
    table = pa.table({"id": range(110), "at": pa.array(hours, pa.timestamp("us", "UTC"))})
    days = [day + timedelta(number) for number in (0, 1, -1)]
    for number, on in enumerate(days):
        write_deltalake(str(tmp_path / f"source{number}"), table)
        step = Step(on=on, column="at", how=zone)
        assert promote(spark, tmp_path, tmp_path / "target", step, number) is None
    of_zone = ZoneInfo(zone)
    wanted = [n for n, hour in enumerate(hours) if hour.astimezone(of_zone).date() in days]
    assert sorted(rows_of(tmp_path / "target")) == wanted
    write_deltalake(str(tmp_path / "source9"), table)
    other = Step("b", on=day, column="at")
    assert promote(spark, tmp_path, tmp_path / "target", other, 9) is not None
    assert sorted(rows_of(tmp_path / "target")) == wanted


@st.composite
def cases(draw: Callable[..., Any]) -> tuple[str, list[Step], int]:
    kind = draw(st.sampled_from(sorted(SPELLINGS)))
    column = st.sampled_from([None, "ds", "text", "at", "at"])
    steps = []
    for _ in range(draw(st.integers(2, 3))):
        name = draw(column)
        how = {"text": st.sampled_from(sorted(FORMATS)), "at": st.sampled_from([None, *ZONES])}
        cut = st.none() | st.sampled_from(sorted(SPELLINGS[kind][1]))
        steps.append(
            Step(
                draw(st.sampled_from("ab")),
                draw(st.sampled_from(DAYS)),
                name,
                draw(how[name]) if name in how else None,
                draw(cut),
            )
        )
    return kind, steps, draw(st.integers(0, 2**30))


NUMBERS = count()


@pytest.mark.nightly
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(case=cases())
def test_no_row_disappears_that_its_own_gate_did_not_replace(
    spark: Any, tmp_path: Path, case: tuple[str, list[Step], int]
) -> None:
    kind, steps, seed = case
    promoted(spark, tmp_path / str(next(NUMBERS)), kind, steps, Random(seed))


def promoted(spark: Any, folder: Path, kind: str, steps: list[Step], random: Random) -> list[bool]:
    """Which of several promotions into one table were done, after a look at all rows."""
    values, target = SPELLINGS[kind][1], folder / "target"
    owners: dict[int, tuple[Any, ...]] = {}
    done: list[bool] = []
    before: dict[int, dict[str, Any]] = {}
    for number, step in enumerate(steps):
        table = source(kind, step, number, random)
        write_deltalake(str(folder / f"source{number}"), table)
        reason = promote(spark, folder, target, step, number)
        after = rows_of(target)
        meaning = step.meaning(values)
        if reason is not None:
            assert re.search("promoted .*there.*; this gate, [ab]:", reason), reason
            # What was promoted before is only refused after its gate has cut up the date.
            there = set(owners.values())
            is_cut_up = any(one != meaning and one[:2] == meaning[:2] for one in there)
            assert meaning not in there or is_cut_up
            assert after == before
        else:
            gone = before.keys() - after.keys()
            new = {row["id"] for row in table.to_pylist() if step.holds(row)}
            assert after.keys() == (before.keys() - gone) | new
            # A gate may also cut up its date.
            assert {owners[row][:2] for row in gone} <= {meaning[:2]}, (step, before, gone)
            assert {row for row, owner in owners.items() if owner == meaning} - new <= gone
            owners = {row: owner for row, owner in owners.items() if row in after}
            owners |= dict.fromkeys(new, meaning)
        done.append(reason is None)
        before = after
    return done


def source(kind: str, step: Step, number: int, random: Random) -> pa.Table:
    """Rows around the dates; all of them have the value of the slice, if there is one."""
    type_, values = SPELLINGS[kind]
    wanted = [values[step.slice]] if step.slice is not None else list(values.values())
    days = [random.choice([*DAYS, step.on]) for _ in range(6)]
    hours = [random.choice([0, 3, 10, 14, 23]) for _ in range(6)]
    texts = [random.choice([*FORMATS.values()]) for _ in range(6)]
    return pa.table(
        {
            "id": pa.array(range(number * 10, number * 10 + 6), pa.int64()),
            "n": pa.array([random.choice(wanted) for _ in range(6)], type_),
            "ds": pa.array([random.choice(DAYS) for _ in range(6)], pa.date32()),
            "text": [day.strftime(text) for day, text in zip(days, texts, strict=True)],
            "at": pa.array(
                [
                    datetime.combine(day, time(hour, 30), timezone.utc)
                    for day, hour in zip(days, hours, strict=True)
                ],
                pa.timestamp("us", "UTC"),
            ),
        }
    )


def promote(spark: Any, folder: Path, target: Path, step: Step, number: int) -> str | None:
    """Why a promotion is refused; None if it is done."""
    dataset = DatasetRef("t", str(folder / f"source{number}"), **step.settings)
    gate = replace(
        gate_request(folder, SUITE, [dataset]),
        run_key=RunKey(step.gate, step.on, f"run {number}"),
        attempt=Attempt(1, f"attempt {number}"),
        allow_empty=True,
        promote_to=(("t", str(target)),),
        promote_slice=(("n", step.slice),) if step.slice is not None else (),
    )
    report = run_gates([gate], lambda _: spark)[0]
    if report.outcome is Outcome.PASSED:
        return None
    (verdict,) = report.with_status(Status.ERROR)
    return verdict.reason


def rows_of(target: Path) -> dict[int, dict[str, Any]]:
    rows = DeltaTable(str(target)).to_pyarrow_table().to_pylist()
    found = {row["id"]: row for row in rows}
    assert len(found) == len(rows)
    return found
