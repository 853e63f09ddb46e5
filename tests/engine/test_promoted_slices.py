"""No gate or map index replaces what another one promoted: nothing is lost."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from lake import TODAY, YESTERDAY, delta, request

from dqx_airflow.engine.job import run_gate
from dqx_airflow.engine.outputs.promoted_slices import Promoter, Slice
from dqx_airflow.errors import PromotionError
from dqx_airflow.values import (
    Attempt,
    DatasetRef,
    GateReport,
    GateRequest,
    Outcome,
    RunKey,
    Status,
)

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
        [(by(), WHOLE), (by(), DAY)],
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
        ([(mapped(0), ZURICH), (mapped(0), BASEL), (by("g"), DAY)], "promoted there in slices"),
        ([(by("a"), DAY), (by("b"), ZURICH)], "was promoted there as a whole, by another gate"),
        ([(by("a"), ZURICH), (by("b"), SWISS)], "in slices of other columns"),
        ([(by("a"), ZURICH), (by("a"), SWISS)], "in slices of other columns"),
        ([(by(), DAY), (by(), WHOLE)], "has no date_column and would replace them all"),
        ([(by(), ZURICH), (by("b"), OF_ALL)], "has no date_column"),
        ([(by("a"), WHOLE), (by("b"), DAY)], "another gate promotes the whole table"),
        ([(by("a"), WHOLE), (by("b"), WHOLE)], "another gate promoted the table"),
    ],
)
def test_a_gate_does_not_replace_promotions_of_another(steps: list[Step], problem: str) -> None:
    *others, last = refusals(steps)
    assert not any(others)
    assert re.search(problem, last)


def test_promotions_without_recorded_owners_can_be_replaced() -> None:
    table = {DAY.order: 5}
    assert by("b").objection(DAY, table.get) is None
    assert by("b").objection(ZURICH, table.get) is not None


def refusals(steps: list[Step]) -> list[str]:
    """The objection to each of several promotions into one table; "" if it is done."""
    table: dict[str, int] = {}
    problems = []
    for number, (promoter, place) in enumerate(steps):
        objection = promoter.objection(place, table.get)
        problems.append(objection[0] if objection else "")
        if objection is None:
            table |= promoter.notes(place, number, table.get)
    return problems


# On a real Spark, in a real table

Run = Callable[[GateRequest], GateReport]
STORES = ("zurich", "basel", "bern")


@pytest.fixture
def run(spark: Any) -> Run:
    return lambda gate: run_gate(gate, lambda _: spark)


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


@pytest.mark.spark
def test_mapped_gates_with_one_target_lose_nothing(run: Run, gates: list[GateRequest]) -> None:
    first, second, _ = gates
    assert run(first).outcome is Outcome.PASSED
    kept = found(first)
    refusal = reason(run(second))
    assert "another map index of this run promoted the date 2024-03-02 there" in refusal
    assert "(gate shop.gate, map index 0, in version 0)" in refusal
    assert 'promote_slice={"store": "zurich"}' in refusal
    assert found(first) == kept
    assert run(replace(first, attempt=Attempt(2, "again"))).outcome is Outcome.PASSED
    assert found(first) == kept


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
    assert "has no date_column and would replace them all" in reason(run(undated))
    assert [row[0] for row in found(gates[0])] == [0, 1, 2]
