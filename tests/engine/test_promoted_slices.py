"""No gate or map index replaces what another one promoted: nothing is lost."""

from __future__ import annotations

import re
import threading
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

from dqx_airflow.datasets.delta_log import transactions
from dqx_airflow.engine.job import run_gates
from dqx_airflow.engine.outputs.promoted_slices import (
    Bounds,
    Objection,
    Promoter,
    Record,
    Region,
    Slice,
    adopted_by,
    claim,
    gate_of,
    recorded,
    spelled,
    with_claims,
)
from dqx_airflow.errors import PromotionError, RequestError
from dqx_airflow.values import Attempt, DatasetRef, GateReport, GateRequest, Outcome, RunKey, Status
from tests.command_line import dql
from tests.engine.lake import TODAY, YESTERDAY, Run, delta, request

DAY, WHOLE = Slice(TODAY), Slice(None)
ZURICH, BASEL = (Slice(TODAY, (("store", name),)) for name in ("zurich", "basel"))
SWISS = Slice(TODAY, (("country", "CH"),))
OF_ALL = Slice(None, (("store", "zurich"),))


def by(
    gate: str = "shop.gate", run: str = "manual", path: str = "/landing", **more: Any
) -> Promoter:
    return Promoter.of(RunKey(gate, TODAY, run), DatasetRef("orders", path=path, **more))


def mapped(index: int, run: str = "manual", path: str | None = None, gate: str = "g") -> Promoter:
    return by(gate, f"{run}[{index}]", path or f"/landing/{index}")


Step = tuple[Promoter, Slice]


@pytest.mark.parametrize(
    "steps",
    [
        [(by(), DAY), (by(), DAY)],  # a retry, or a clear
        [(by(), DAY), (by(run="backfill"), DAY)],
        [(by(), DAY), (by(run="backfill", path="/landing/2"), DAY)],
        [(by(), DAY), (by("other.gate"), Slice(YESTERDAY))],
        [(mapped(0), DAY), (mapped(1), Slice(YESTERDAY)), (mapped(0), DAY)],
        # Mapped over dates, which have moved on by the next run.
        [(mapped(1, path="/lake"), DAY), (mapped(0, "next", "/lake"), DAY)],
        [(mapped(0), ZURICH), (mapped(1), BASEL), (mapped(0), ZURICH), (mapped(1), BASEL)],
        [(mapped(0), ZURICH), (mapped(1, "next"), ZURICH)],  # the list of stores was sorted anew
        [(mapped(0, gate="a"), ZURICH), (mapped(1, gate="b"), BASEL)],
        [(by(), DAY), (by(), ZURICH), (by(), BASEL), (by(), ZURICH)],  # its own, cut up
        [(by(), ZURICH), (by(), Slice(YESTERDAY))],
        [(by(), WHOLE), (by(run="next"), WHOLE)],
        [(by(), OF_ALL), (by("b"), Slice(None, (("store", "basel"),)))],
    ],
)
def test_a_gate_replaces_its_own(steps: list[Step]) -> None:
    assert refusals(steps) == [""] * len(steps)


@pytest.mark.parametrize(
    ("steps", "problem"),
    [
        ([(by("a"), DAY), (by("b"), DAY)], "another gate promoted the date 2024-03-02 there"),
        ([(by("a"), DAY), (by("b", run="next"), DAY)], "another gate promoted"),
        ([(mapped(0, gate="a"), DAY), (mapped(1, gate="b"), DAY)], "another gate promoted"),
        ([(mapped(0), DAY), (mapped(1), DAY)], "another map index of this run promoted"),
        ([(mapped(0), DAY), (mapped(10), DAY)], "another map index of this run promoted"),
        ([(mapped(0, path="/a"), DAY), (mapped(1, path="/a"), DAY)], "another map index"),
        ([(mapped(0), DAY), (by("g"), DAY)], "another map index"),
        ([(by("g"), DAY), (mapped(0), DAY)], "another map index"),
        # The list that it is mapped over has another order, at the next try or in the next run.
        ([(mapped(0, path="/a"), DAY), (mapped(0, path="/b"), DAY)], "has promoted other data"),
        ([(mapped(0, path="/a"), DAY), (mapped(0, "n", "/b"), DAY)], "read other data"),
        ([(mapped(1), DAY), (mapped(0, "next"), DAY)], "read other data"),
        ([(by(filter="a"), DAY), (by(filter="b"), DAY)], "has promoted other data"),
        ([(by("a"), ZURICH), (by("b"), ZURICH)], "another gate promoted the date .* 'zurich'"),
        ([(mapped(0), ZURICH), (mapped(1), ZURICH)], "another map index"),
        ([(mapped(0), ZURICH), (mapped(0), BASEL), (by("g"), DAY)], "that this gate has promoted"),
        ([(by("a"), DAY), (by("b"), ZURICH)], "overlaps other rows that another gate promoted"),
        ([(by("a"), ZURICH), (by("b"), SWISS)], "overlaps other rows that another gate promoted"),
        ([(by("a"), ZURICH), (by("a"), SWISS)], "overlaps other rows that this gate has promoted"),
        ([(by(), DAY), (by(), WHOLE)], "the table overlaps other rows that this gate has promoted"),
        ([(by(), ZURICH), (by("b"), OF_ALL)], "the table with store = 'zurich' overlaps"),
        ([(by("a"), WHOLE), (by("b"), DAY)], "overlaps other rows that another gate promoted"),
        ([(by("a"), WHOLE), (by("b"), WHOLE)], "another gate promoted the table"),
        (
            [(by(), WHOLE), (by(), DAY)],
            "the date 2024-03-02 overlaps other rows that this gate has",
        ),
        # What a gate promoted as a whole stays its own when it cuts it up.
        ([(by("a"), DAY), (by("a"), ZURICH), (by("b"), BASEL)], "that another gate promoted"),
    ],
)
def test_a_gate_does_not_replace_promotions_of_another(steps: list[Step], problem: str) -> None:
    *others, last = refusals(steps)
    assert not any(others)
    assert re.search(problem, last)


NOON = "2024-03-02T12:00:00+00:00"
IN_UTC, IN_ZURICH = (
    tuple(f"2024-03-{day:02}T{hour}:00:00+00:00" for day in days)
    for days, hour in (((2, 3), "00"), ((1, 2), "23"))
)


@pytest.mark.parametrize(
    ("bounds", "others", "is_apart", "is_within"),
    [
        ({}, {}, False, True),
        ({"n": "1"}, {}, False, True),
        ({}, {"n": "1"}, False, False),
        ({"n": "1"}, {"n": "2"}, True, False),
        ({"n": "1"}, {"m": "2"}, False, False),
        ({"n": "1", "m": "2"}, {"m": "2"}, False, True),
        ({"at": IN_UTC}, {"at": IN_ZURICH}, False, False),
        ({"at": IN_UTC}, {"at": (IN_UTC[1], "2024-03-04T00:00:00+00:00")}, True, False),
        ({"at": NOON}, {"at": IN_UTC}, False, True),
        ({"at": IN_UTC}, {"at": NOON}, False, False),
        ({"at": IN_UTC[1]}, {"at": IN_UTC}, True, False),
        ({"at": IN_UTC}, {"at": "odd"}, False, False),
        ({"n": None}, {"n": "1"}, False, False),
    ],
)
def test_regions_share_rows_or_not(
    bounds: dict[str, Bounds], others: dict[str, Bounds], is_apart: bool, is_within: bool
) -> None:
    one, other = Region.of(bounds), Region.of(others)
    assert (one.is_apart(other), other.is_apart(one)) == (is_apart, is_apart)
    assert one.is_within(other) is is_within


@pytest.mark.parametrize("gate", ["a", "b"])
def test_rows_that_were_adopted_can_be_replaced_up_to_then(gate: str) -> None:
    table = by(gate).notes(DAY, region(DAY), 5, {})
    for until, is_free in ((4, False), (5, True)):
        objection = objection_to(by("a"), ZURICH, table, adopted={gate: until})
        assert (objection is None) is (is_free or gate == "a")
        objection = objection_to(by("a"), WHOLE, table, adopted={gate: until})
        assert (objection is None) is is_free


def test_promotions_without_recorded_owners_can_be_replaced() -> None:
    table = {f"dqx:promote:{region(DAY).name}": 5}
    assert objection_to(by("b"), DAY, table) is None
    assert objection_to(by("b"), ZURICH, table) is not None
    assert objection_to(by("b"), ZURICH, table, adopted={"b": 5}) is None


def test_a_claim_stands_for_a_gate_and_its_order() -> None:
    table = with_claims({claim("a", region(DAY)): 5, claim("b", region(DAY)): 4})
    assert objection_to(by("a"), DAY, table) is None
    objection = objection_to(by("b"), DAY, table)
    assert objection is not None
    assert gate_of(objection.record.gate, table) == "a"


def number_of(gate: str) -> int:
    """How the log has a gate."""
    return by(gate).notes(DAY, Region(), 0, {})["dqx:gate:{}"]


def region(place: Slice) -> Region:
    on = {"ds": place.on.isoformat()} if place.on else {}
    return Region.of({**on, **dict(place.values)})


def objection_to(
    promoter: Promoter, place: Slice, table: dict[str, int], adopted: dict[str, int] | None = None
) -> Objection | None:
    records = [
        Record(name, Region.of(spelled(name)[1]), notes) for name, notes in recorded(table).items()
    ]
    return promoter.objection(place, region(place), records, adopted or {}, lambda: True)


def refusals(steps: list[Step]) -> list[str]:
    """The objection to each of several promotions into one table; "" if it is done."""
    table: dict[str, int] = {}
    problems = []
    for number, (promoter, place) in enumerate(steps):
        objection = objection_to(promoter, place, table)
        problems.append(objection.problem if objection else "")
        if objection is None:
            table |= promoter.notes(place, region(place), number, table)
    return problems


# On a real Spark, in a real table

STORES = ("zurich", "basel", "bern")


@pytest.fixture
def run(spark: Any) -> Run:
    return lambda gate: run_gates([gate], lambda _: spark)[0]


@pytest.fixture
def gates(tmp_path: Path) -> list[GateRequest]:
    """The mapped instances of a gate over three stores, which promote to one table."""
    made = []
    for index, store in enumerate(STORES):
        table = pa.table(
            {
                "id": pa.array(range(index * 100, index * 100 + 3), pa.int64()),
                "store": [store] * 3,
                "ds": pa.array([TODAY] * 2 + [YESTERDAY], pa.date32()),
            }
        )
        orders = replace(delta(tmp_path / store, "orders", table), date_column="ds")
        gate = request(tmp_path, "assert num_rows() > 0", [orders])
        target = str(tmp_path / "silver" / "orders")
        key = RunKey("shop.gate", TODAY, f"manual[{index}]")
        made.append(replace(gate, run_key=key, promote_to=(("orders", target),)))
    return made


def found(gate: GateRequest) -> list[tuple[int, str, date]]:
    table = DeltaTable(gate.promote_to[0][1]).to_pyarrow_table()
    return sorted((row["id"], row["store"], row["ds"]) for row in table.to_pylist())


def reason(report: GateReport) -> str:
    assert report.outcome is Outcome.BROKEN
    (verdict,) = report.with_status(Status.ERROR)
    return verdict.reason or ""


@pytest.mark.slow
@pytest.mark.spark
def test_mapped_gates_with_one_target_lose_nothing(run: Run, gates: list[GateRequest]) -> None:
    first, second, _ = gates
    assert run(first).outcome is Outcome.PASSED
    kept = found(first)
    refusal = reason(run(second))
    assert "another map index of this run promoted the date 2024-03-02 there" in refusal
    assert "(gate shop.gate, map index 0, in version 0: ds = 2024-03-02" in refusal
    assert 'promote_slice={"store": "zurich"}' in refusal
    assert found(first) == kept
    assert run(replace(first, attempt=Attempt(2, "again"))).outcome is Outcome.PASSED
    assert found(first) == kept


@pytest.mark.more
@pytest.mark.spark
@pytest.mark.parametrize(
    "partition_by",
    [
        [],
        pytest.param(["ds"], marks=pytest.mark.slow),
        pytest.param(["store"], marks=pytest.mark.slow),
    ],
)
def test_each_slice_replaces_its_own_even_at_the_same_time(
    run: Run, gates: list[GateRequest], partition_by: list[str]
) -> None:
    target = gates[0].promote_to[0][1]
    schema = DeltaTable(gates[0].datasets[0].path or "").schema()
    DeltaTable.create(target, schema, partition_by=partition_by or None)
    sliced = [
        replace(gate, promote_slice=(("store", store),))
        for gate, store in zip(gates, STORES, strict=True)
    ]
    outcomes: dict[str, Any] = {}

    def go(gate: GateRequest, name: str) -> None:
        outcomes[name] = run(gate).outcome

    threads = [
        threading.Thread(target=go, args=(gate, store))
        for gate, store in zip(sliced, STORES, strict=True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert outcomes == dict.fromkeys(STORES, Outcome.PASSED)
    whole = sorted(
        (index * 100 + number, store, TODAY)
        for index, store in enumerate(STORES)
        for number in range(2)
    )
    assert found(gates[0]) == whole
    # A later attempt, which finds one row less, and another date in the same files.
    of_yesterday = replace(sliced[0], run_key=replace(sliced[0].run_key, date=YESTERDAY))
    assert run(of_yesterday).outcome is Outcome.PASSED
    DeltaTable(target).optimize.compact()
    less = replace(sliced[0].datasets[0], filter="id > 0")
    again = replace(sliced[0], attempt=Attempt(2, "again"), datasets=(less,))
    assert "other data" in reason(run(again))
    rerun = replace(again, run_key=replace(again.run_key, scheduler_run="next[2]"))
    assert run(rerun).outcome is Outcome.PASSED
    assert found(gates[0]) == sorted([*whole[1:], (2, "zurich", YESTERDAY)])
    commit = DeltaTable(target).history(1)[0]
    assert commit["operationParameters"]["predicate"] == (
        "(`ds` IN (DATE'2024-03-02')) AND (`store` <=> CAST('zurich' AS string))"
    )
    assert commit["isBlindAppend"] is False
    assert (commit["dqx_gate"], commit["dqx_map_index"]) == ("shop.gate", "2")
    assert commit["dqx_scheduler_run"] == "next"


@pytest.mark.spark
def test_rows_outside_of_the_slice_are_not_promoted(run: Run, gates: list[GateRequest]) -> None:
    gate = replace(gates[0], promote_slice=(("store", "basel"),))
    assert "2 of 2 rows do not have the values of promote_slice: store = 'basel'" in reason(
        run(gate)
    )
    assert "has the column 'shop'" in reason(run(replace(gate, promote_slice=(("shop", "b"),))))
    odd = replace(gate, promote_slice=(("id", "many"),))
    assert "'many' is not a value of 'id' (bigint)" in reason(run(odd))
    assert not Path(gate.promote_to[0][1], "_delta_log").exists()


@pytest.mark.not_on_sail("Sail ignores no files")
@pytest.mark.slow
@pytest.mark.since_spark("4.0", "names the file that cannot be read")
@pytest.mark.spark
def test_rows_of_other_gates_survive_a_session_that_ignores_corrupt_files(
    spark: Any, run: Run, gates: list[GateRequest]
) -> None:
    gate, target = gates[0], gates[0].promote_to[0][1]
    table = DeltaTable(gate.datasets[0].path or "").to_pyarrow_table()
    for _ in range(2):
        write_deltalake(target, table, mode="append")
    lost = sorted(Path(target).glob("*.parquet"))[0]
    sound = lost.read_bytes()
    lost.write_bytes(b"PAR1" + bytes(len(sound) - 4))
    spark.conf.set("spark.sql.files.ignoreCorruptFiles", "true")
    try:
        with pytest.raises(PromotionError, match=r"cannot be promoted to .*part-"):
            run(gate)
    finally:
        spark.conf.unset("spark.sql.files.ignoreCorruptFiles")
    assert DeltaTable(target).version() == 1
    lost.write_bytes(sound)
    assert run(replace(gate, attempt=Attempt(2, "again"))).outcome is Outcome.PASSED
    assert [row[0] for row in found(gate)] == [0, 1, 2, 2]


@pytest.mark.slow
@pytest.mark.spark
def test_a_commit_that_replaces_a_date_or_the_table_is_an_overwrite(
    run: Run, gates: list[GateRequest]
) -> None:
    target = gates[0].promote_to[0][1]
    schema = DeltaTable(gates[0].datasets[0].path or "").schema()
    DeltaTable.create(target, schema, partition_by=["ds"])
    for on in (TODAY, YESTERDAY, TODAY):
        key = replace(gates[0].run_key, date=on)
        assert run(replace(gates[0], run_key=key)).outcome is Outcome.PASSED
    commit = DeltaTable(target).history(1)[0]
    assert commit["operationParameters"]["mode"] == "Overwrite"
    assert commit["operationParameters"]["predicate"] == "(`ds` IN (DATE'2024-03-02'))"
    assert [row[0] for row in found(gates[0])] == [0, 1, 2]
    # Without dates it would be the whole table.
    undated = replace(gates[0], datasets=(replace(gates[0].datasets[0], date_column=None),))
    refusal = reason(run(undated))
    assert "the table overlaps other rows that this gate has promoted there" in refusal
    assert "this gate, shop.gate: the whole table); give the same promote_slice" in refusal
    assert f"run `dql tables adopt {target} --gate shop.gate`" in refusal
    assert [row[0] for row in found(gates[0])] == [0, 1, 2]
    assert dql("tables", "adopt", target, "--gate", "shop.gate", "--yes").returncode == 0
    assert run(undated).outcome is Outcome.PASSED


def of_an_earlier_version(
    target: str, gate: str, on: str, values: str = "", **history: str
) -> None:
    """What a gate of an earlier version promoted: an id for each of two stores."""
    name = f"{on}{values}"
    numbers = {f"dqx:promote:{name}": 5, f"dqx:gate:{name}": number_of(gate)}
    rows = {"id": [7, 8], "store": ["zurich", "basel"], "ds": [date.fromisoformat(on)] * 2}
    facts = {"dqx_gate": gate, "dqx_slice": name, "operationParameters": history} if history else {}
    write_deltalake(
        target,
        pa.table(rows),
        mode="append",
        commit_properties=CommitProperties(
            custom_metadata=facts, app_transactions=[Transaction(*one) for one in numbers.items()]
        ),
    )


TODAY_OF_DS = "(`ds` IN (DATE'2024-03-02'))"


@pytest.mark.few(1)
@pytest.mark.spark
@pytest.mark.parametrize(
    ("gate", "on", "history", "problem"),
    [
        # The date of another gate may be one of another column: its rows are there.
        ("old.gate", "2024-03-02", "", "overlaps what another gate promoted there is unknown"),
        ("shop.gate", "2024-03-02", "", None),
        ("shop.gate", "2024-03-02", TODAY_OF_DS, None),
        ("shop.gate", "2024-03-02", "(`at` IN (1))", "this gate promoted there is unknown"),
        ("old.gate", "2024-03-02", TODAY_OF_DS, "another gate promoted the date 2024-03-02"),
        ("old.gate", "2024-03-01", "(`ds` IN (DATE'2024-03-01'))", None),
        ("old.gate", "2024-03-01", "", None),  # there are no rows yet that could be lost
    ],
)
def test_promotions_of_an_earlier_version_are_recognised(
    run: Run, gates: list[GateRequest], gate: str, on: str, history: str, problem: str | None
) -> None:
    of_an_earlier_version(
        gates[0].promote_to[0][1], gate, on, **({"predicate": history} if history else {})
    )
    one = replace(gates[0], run_key=replace(gates[0].run_key, scheduler_run="now"))
    if problem is None:
        assert run(one).outcome is Outcome.PASSED
        assert [row[0] for row in found(one)] == ([0, 1] if on == str(TODAY) else [0, 1, 7, 8])
    else:
        assert problem in reason(run(one))
        assert [row[0] for row in found(one)] == [7, 8]


def test_an_adopted_owner_must_have_promoted(tmp_path: Path) -> None:
    target = str(tmp_path / "orders")
    of_an_earlier_version(target, "old.gate", "2024-03-02")

    def adopt(*arguments: str) -> tuple[int, str]:
        result = dql("tables", "adopt", "--yes", *arguments)
        return result.returncode, result.output

    code, text = adopt(target, "--gate", "new.gate", "--from-gate", "odd.gate")
    assert code == 2
    assert f"gate 'odd.gate' has promoted nothing to {target}" in text
    call = ("--gate", "new.gate", "--from-gate", "old.gate")
    asked = dql("tables", "adopt", target, *call)
    assert (asked.returncode, DeltaTable(target).metadata().configuration) == (2, {})
    assert "let gate new.gate replace what gate old.gate has promoted" in asked.output
    assert adopt(target, *call, "--author", "eve", "--reason", "renamed")[0] == 0
    (commit, *_) = DeltaTable(target).history(1)
    assert (commit["dqx_author"], commit["dqx_reason"]) == ("eve", "renamed")
    properties = DeltaTable(target).metadata().configuration
    assert adopted_by("new.gate", properties).keys() == {"old.gate"}
    assert adopted_by("old.gate", properties) == {}
    code, text = adopt("silver.orders", "--gate", "new.gate")
    assert code == 2
    assert "run in Spark: ALTER TABLE silver.orders SET TBLPROPERTIES ('dqx.adopted." in text
    assert adopt(str(tmp_path / "none"), "--gate", "new.gate")[0] == 2


def test_transactions_are_read_from_checkpoints_and_commits(tmp_path: Path) -> None:
    target = str(tmp_path / "orders")
    for on in ("2024-03-01", "2024-03-02", "2024-03-03"):
        of_an_earlier_version(target, "old.gate", on)
        if on == "2024-03-02":
            DeltaTable(target).create_checkpoint()
    for version, days in ((2, 3), (1, 2)):
        assert len(recorded(transactions(target, version))) == days
    (tmp_path / "orders" / "_delta_log" / f"{2:020}.json").unlink()
    with pytest.raises(ValueError, match="no commit 2"):
        transactions(target, 2)


@pytest.mark.spark
def test_a_range_of_dates_without_a_date_column_is_refused_before_spark_starts(
    gates: list[GateRequest],
) -> None:
    undated = replace(gates[0], datasets=(replace(gates[0].datasets[0], date_column=None),))
    later = replace(undated, run_key=replace(undated.run_key, date=TODAY + timedelta(1)))
    with pytest.raises(RequestError, match="'orders' has no date_column, so each date from"):
        run_gates([undated, later], lambda _: pytest.fail("Spark"))
