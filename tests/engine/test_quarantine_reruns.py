"""A bad row stands in the quarantine once per gate and date, with the reasons of all suites, and a
run replaces only what it judged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import date, datetime, timezone
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder, write_deltalake

from dqx_airflow.engine.job import run_gates
from dqx_airflow.values import Attempt, DatasetRef, GateOrigin, GateReport, RunKey, Selection
from tests.engine.lake import TODAY, YESTERDAY, delta, request

pytestmark = pytest.mark.spark

Run = Callable[..., tuple[GateReport, ...]]

X = 'assert each row: x >= 0 name "x" tags [a]'
Y = 'assert each row: y >= 0 name "y" tags [b]'
ROWS = [
    {"id": 1, "x": 1, "y": -1},
    {"id": 2, "x": -1, "y": 1},
    {"id": 3, "x": -1, "y": -1},
    {"id": 3, "x": -1, "y": -1},
    {"id": 4, "x": 1, "y": 1},
]
BOTH = [(1, "y"), (2, "x"), (3, "x y"), (3, "x y")]


@pytest.fixture
def place(tmp_path: Path) -> str:
    return str(tmp_path / "quarantine")


@pytest.fixture
def run(spark: Any, tmp_path: Path, place: str) -> Run:
    numbers = iter(range(1, 1000))

    def run_suites(
        ref: DatasetRef,
        *bodies: str,
        on: Sequence[date] = (TODAY,),
        by: str = "manual",
        suites: Iterable[str] = "AB",
        is_one: bool | None = None,
        **changes: Any,
    ) -> tuple[GateReport, ...]:
        """Runs a gate with one suite, or with several, as its operator does."""
        is_one = len(bodies) == 1 if is_one is None else is_one
        attempt = Attempt(number := next(numbers), f"attempt-{number}")
        gates = []
        for name, body in zip(suites, bodies, strict=False):
            text = f'suite "{name}" {{\n check "All" on orders {{\n{body}\n }}\n}}\n'
            gate = request(tmp_path, text, [ref], quarantine=(("orders", place),), **changes)
            gates.append((name, replace(gate, attempt=attempt)))
        requests = [
            replace(
                gate,
                run_key=RunKey("g" if is_one else f"g/{name}", day, by),
                origin=None if is_one else GateOrigin(job="g"),
            )
            for day in on
            for name, gate in gates
        ]
        return run_gates(requests, lambda _: spark)

    return run_suites


def table(rows: Sequence[dict[str, Any]] = ROWS, **columns: Any) -> pa.Table:
    return pa.Table.from_pylist([{**row, **columns} for row in rows])


def found(place: str) -> list[tuple[int, str]]:
    """The rows in quarantine, each with its reasons."""
    return [(row["id"], " ".join(sorted(row["dqx_reasons"]))) for row in rows_in(place)]


def rows_in(place: str) -> list[dict[str, Any]]:
    query = "SELECT * FROM q ORDER BY id, dqx_date"
    return pa.table(QueryBuilder().register("q", DeltaTable(place)).execute(query)).to_pylist()


def test_rows_stand_once_with_the_reasons_of_all_suites_and_dates(
    run: Run, place: str, tmp_path: Path
) -> None:
    orders = delta(tmp_path, "orders", table())
    again = X.replace(">= 0", "> -1")  # of the same name
    reports = run(orders, f"{X} {Y}", again, on=(YESTERDAY, TODAY))
    assert found(place) == BOTH
    assert {report.datasets[0].quarantined for report in reports} == {4}
    behind = rows_in(place)[1]["dqx_assertions"]
    assert [list(one.values()) for one in behind] == [["g/A", "All", "x"], ["g/B", "All", "x"]]
    run(orders, f"{X} {Y}", Y)  # of another run, and without an assertion
    assert found(place) == BOTH
    behind = rows_in(place)[1]["dqx_assertions"]
    assert [list(one.values()) for one in behind] == [["g/A", "All", "x"]]


@pytest.mark.slow
def test_a_partial_run_replaces_only_the_reasons_that_it_judged(
    run: Run, place: str, tmp_path: Path
) -> None:
    orders = replace(delta(tmp_path, "orders", table(ds=TODAY)), date_column="ds")
    run(orders, f"{X} {Y}")
    run(orders, f"{X} {Y}", selection=Selection(tags=("a",)))
    assert found(place) == BOTH
    mended = [{**row, "x": 1} if row["id"] == 2 else row for row in ROWS]
    write_deltalake(orders.path or "", table(mended, ds=TODAY), mode="overwrite")
    run(orders, f"{X} {Y}", selection=Selection(tags=("b",)))
    assert found(place) == BOTH  # nobody looked at x
    run(orders, f"{X} {Y}", selection=Selection(tags=("a",)), by="another run")
    assert found(place) == [(1, "y"), (3, "x y"), (3, "x y")]
    run(orders, X, by="a third run")
    assert found(place) == [(3, "x"), (3, "x")]


@pytest.mark.slow
def test_a_suite_that_was_not_selected_keeps_its_reasons(
    run: Run, place: str, tmp_path: Path
) -> None:
    orders = replace(delta(tmp_path, "orders", table(ds=TODAY)), date_column="ds")
    run(orders, X, X.replace("x >= 0", "y >= 0"))
    same = [(1, "x"), (2, "x"), (3, "x"), (3, "x")]
    assert found(place) == same
    write_deltalake(orders.path or "", table([ROWS[-1]], ds=TODAY), mode="overwrite")
    run(orders, X, selection=Selection(tags=("a",)), is_one=False)
    assert found(place) == [(1, "x"), (3, "x"), (3, "x")]  # those of suite B
    run(orders, X, is_one=False)
    assert found(place) == []


@pytest.mark.slow
def test_an_assertion_that_could_not_be_evaluated_keeps_its_rows(
    run: Run, place: str, tmp_path: Path
) -> None:
    orders = replace(delta(tmp_path, "orders", table(ds=TODAY)), date_column="ds")
    run(orders, f"{X} {Y}")
    (report,) = run(orders, f"{X} {Y.replace('y >=', 'missing >=')}")
    assert report.outcome.value == "blocked"
    assert found(place) == BOTH


@pytest.mark.slow
def test_rows_of_an_earlier_version_are_replaced_and_not_doubled(
    run: Run, place: str, tmp_path: Path
) -> None:
    orders = replace(delta(tmp_path, "orders", table(ds=TODAY)), date_column="ds")
    old = [
        {"dqx_run_key": f"{gate}/2024-03-02/{by}", "dqx_run_id": "old", "dqx_date": TODAY,
         "dqx_reasons": reasons, **row, "ds": TODAY}
        for gate, by, reasons in (
            ("g/A", "manual", ["x"]),
            ("g/Removed", "manual", ["y"]),
            ("g/A", "another run", ["x"]),
            ("another.gate", "manual", ["x"]),
        )
        for row in ROWS
        if row[reasons[0]] < 0
    ]  # fmt: skip
    write_deltalake(place, pa.Table.from_pylist(old), partition_by=["dqx_run_key"])
    others = [(2, "x"), (3, "x"), (3, "x")]
    run(orders, X, X, suites="AC", selection=Selection(tags=("a",)))
    assert sorted(found(place)) == sorted([*BOTH, *others])
    run(orders, X, X, suites="AC")
    assert sorted(found(place)) == sorted([*others, *others])


@pytest.mark.not_on_sail("it has options of CSV")
@pytest.mark.slow
def test_a_row_without_a_date_stands_once_whichever_dates_are_judged(
    run: Run, place: str, tmp_path: Path
) -> None:
    (tmp_path / "orders.csv").write_text(
        "id,x,ds\n1,-1,2024-03-01\n2,-1,2024-03-02\n3,-1,soon\n4,-1,2024-03-03\n"
    )
    orders = DatasetRef(
        "orders",
        path=str(tmp_path / "orders.csv"),
        format="csv",
        options=(("header", "true"),),
        schema="id int, x int, ds date",
        date_column="ds",
    )
    run(orders, X, on=(YESTERDAY, TODAY))
    whole = [("1", "x"), ("2", "x"), ("3", "orders.well_formed x")]
    assert found(place) == whole
    run(orders, X, on=(TODAY,), by="another run")
    assert found(place) == whole
    run(orders, X, on=(date(2024, 3, 3),))
    assert found(place) == [*whole, ("4", "x")]


@pytest.mark.more
def test_rows_of_another_batch_stay_and_rows_that_are_read_again_do_not_double(
    run: Run, place: str, tmp_path: Path
) -> None:
    orders = delta(tmp_path, "orders", table())
    run(orders, X)
    write_deltalake(
        orders.path or "", table([{"id": 9, "x": -1, "y": 1}, ROWS[1]]), mode="overwrite"
    )
    run(orders, X, on=(YESTERDAY,), by="the next run")  # the path is the same, its rows are others
    assert found(place) == [(2, "x"), (3, "x"), (3, "x"), (9, "x")]
    elsewhere = replace(delta(tmp_path, "elsewhere", table()), name="orders")
    run(elsewhere, X, by="elsewhere")
    assert [row for row, _ in found(place)] == [2, 2, 3, 3, 3, 3, 9]
    run(elsewhere, X, by="elsewhere[1]")  # of a mapped task
    assert [row for row, _ in found(place)] == [2, 2, 2, 3, 3, 3, 3, 3, 3, 9]


@pytest.mark.slow
def test_another_time_zone_or_spelling_of_a_slice_neither_loses_nor_doubles_rows(
    run: Run, place: str, tmp_path: Path
) -> None:
    hours = [(1, 1, 12), (2, 1, 23), (3, 2, 12), (4, 2, 23)]
    rows = [
        {"id": row, "x": -1, "n": 1, "at": datetime(2024, 3, day, hour, 30, tzinfo=timezone.utc)}
        for row, day, hour in hours
    ]
    orders = replace(delta(tmp_path, "orders", table(rows)), date_column="at", time_zone="UTC")
    to = {"promote_to": (("orders", str(tmp_path / "target")),)}
    one, two = ({"promote_slice": (("n", text),), **to} for text in ("1", "01"))
    run(orders, X, on=(YESTERDAY, TODAY), **one)
    every = [(row, "x") for row, _, _ in hours]
    assert found(place) == every
    run(orders, X, by="again", **two)
    assert found(place) == every
    (report,) = run(replace(orders, time_zone="Europe/Zurich"), X, by="moved", **two)
    assert report.datasets[0].quarantined == 2  # 2 and 3
    assert found(place) == every


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(3))
def test_random_runs_lose_and_double_nothing(
    run: Run, place: str, tmp_path: Path, seed: int
) -> None:
    """Random suites, selections, dates and scheduler runs over rows that change, against sets."""
    random = Random(seed)
    days = (YESTERDAY, TODAY)
    rows = [
        {"id": number, "x": random.choice((-1, 1)), "y": random.choice((-1, 1)), "ds": day}
        for day in days
        for number in (1, 2, 2, 3)
    ]
    orders = replace(delta(tmp_path, "orders", table(rows)), date_column="ds")
    wanted: dict[tuple[Any, ...], set[tuple[str, str]]] = {}
    for step in range(12):
        for row in random.sample(rows, 2):
            row[random.choice("xy")] *= -1
        write_deltalake(orders.path or "", table(rows), mode="overwrite")
        bodies = random.choice(((f"{X} {Y}", f"{X} {Y}"), (f"{X} {Y}", X), (Y, f"{X} {Y}")))
        tag = random.choice(("", "", "a", "b"))
        chosen = [body for body in bodies if f"[{tag}" in body]
        suites = "".join(name for name, body in zip("AB", bodies, strict=True) if body in chosen)
        selection = Selection(tags=(tag,)) if tag else None
        on = random.choice((days, days[:1], days[1:]))
        by = random.choice(("manual", f"run {step}"))
        run(orders, *chosen, suites=suites, on=on, by=by, selection=selection, is_one=False)
        judged = {
            (suite, name)
            for suite, body in zip(suites, chosen, strict=True)
            for name, one_tag in (("x", "a"), ("y", "b"))
            if f'"{name}"' in body and tag in ("", one_tag)
        }
        for row in [*wanted]:
            if row[-1] in on:
                wanted[row] = wanted[row] - judged if tag else set()
        counts: Counter[tuple[Any, ...]] = Counter()
        for row in rows:
            bad = {reason for reason in judged if row[reason[1]] < 0}
            if row["ds"] in on and bad:
                value = tuple(row.values())
                counts[value] += 1
                number = counts[value]
                wanted.setdefault((number, *value), set()).update(bad)
        wanted = {row: reasons for row, reasons in wanted.items() if reasons}
        there = [
            (
                tuple(row[name] for name in ("id", "x", "y", "ds")),
                sorted((one["gate"][2:], one["assertion"]) for one in row["dqx_assertions"]),
            )
            for row in (rows_in(place) if wanted else [])
        ]
        expected = [(row[1:], sorted(reasons)) for row, reasons in wanted.items()]
        assert sorted(there) == sorted(expected), f"step {step}: {suites} {tag} {on} {by}"
