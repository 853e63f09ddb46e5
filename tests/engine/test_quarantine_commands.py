"""`dql quarantine`: what a gate has set aside is listed, shown with its masks, and discarded with a
trace.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from typer.testing import CliRunner, Result

from dqx_airflow.cli.main import app
from dqx_airflow.engine.job import run_gates
from dqx_airflow.results.decisions import new_waiver, write_waivers
from dqx_airflow.results.incidents import notes_from
from dqx_airflow.results.query import StoredResults
from dqx_airflow.results.verify import verify_table
from dqx_airflow.values import (
    Attempt,
    DatasetRef,
    GateOrigin,
    GatePart,
    GateRequest,
    Outcome,
    Severity,
    SourceFile,
)
from tests.engine.lake import TODAY, YESTERDAY, delta, request
from tests.json_heads import require_same_head
from tests.processes import PROGRAMS, ended, environment

pytestmark = pytest.mark.spark

SUITE = """
assert each row: amount >= 0 name "amount"
assert unique(id) name "id"
"""


def orders(on: date) -> pa.Table:
    return pa.table(
        {
            "id": pa.array([1, 2, 3, 4, 5, 5], pa.int64()),
            "amount": pa.array([1, -2, -3, 4, 5, 6], pa.int32()),
            "name": ["ann", "bob", "cy", "dan", "eve", None],
            "ds": pa.array([on] * 6, pa.date32()),
        }
    )


@pytest.fixture
def gate(tmp_path: Path) -> GateRequest:
    table = pa.concat_tables([orders(on) for on in (TODAY, YESTERDAY)])
    ref = replace(
        delta(tmp_path, "orders", table), date_column="ds", keys=("id",), masked=("Name",)
    )
    asked = request(
        tmp_path,
        SUITE,
        [ref],
        quarantine=(("orders", str(tmp_path / "quarantine")),),
        promote_to=(("orders", str(tmp_path / "silver")),),
        promote_valid="5",
    )
    return replace(asked, more=(GatePart(replace(asked.run_key, date=YESTERDAY)),))


@pytest.fixture
def dql(tmp_path: Path) -> Callable[..., Result]:
    def called(verb: str, *given: str) -> Result:
        place = str(tmp_path / "quarantine")
        return CliRunner().invoke(app, ["quarantine", verb, place, *given])

    return called


def ids(place: Path, on: date = TODAY) -> list[int]:
    rows = DeltaTable(str(place)).to_pyarrow_table().to_pylist()
    return sorted(row["id"] for row in rows if row["ds"] == on)


@pytest.mark.slow
def test_rows_in_quarantine_are_listed_shown_discarded_and_released_with_a_trace(
    spark: Any,
    gate: GateRequest,
    tmp_path: Path,
    dql: Callable[..., Result],
    release: Callable[..., tuple[int, str]],
) -> None:
    for report in run_gates(gate.parts, lambda _: spark):
        assert report.outcome is Outcome.WARNED
    listed = json.loads(dql("list", "--format", "json").stdout)
    require_same_head(listed)
    assert listed == [
        {
            "gate": "test.gate",
            "date": str(on),
            "map_index": -1,
            "row_count": 4,
            "reasons": {"amount": 2, "id": 2},
        }
        for on in (YESTERDAY, TODAY)
    ]
    assert [line.split() for line in dql("list").stdout.splitlines() if "amount" in line] == [
        ["test.gate", str(on), "amount", "2", "4"] for on in (YESTERDAY, TODAY)
    ]
    shown = json.loads(dql("show", "--date", str(TODAY), "--format", "json").stdout)
    found = sorted(((row["id"], row["name"]) for row in shown), key=str)
    assert found == [(2, "***"), (3, "***"), (5, "***"), (5, None)]
    assert "bob" not in dql("show").stdout
    assert len(json.loads(dql("show", "--limit", "1", "--format", "json").stdout)) == 1
    # Nothing is discarded by mistake, or without a trace.
    root = ["--results-root", gate.results_root, "--reason", "ticket 7", "--author", "eve"]
    unasked = dql("discard", "--gate", "test.gate", *root)
    assert unasked.exit_code == 2
    assert "this would delete 8 rows" in unasked.output
    rehearsed = dql("discard", "--gate", "test.gate", *root, "--dry-run")
    assert (rehearsed.exit_code, rehearsed.stdout) == (0, "")
    assert f"4 of test.gate on {TODAY}" in rehearsed.stderr
    assert len(ids(tmp_path / "quarantine")) == len(ids(tmp_path / "quarantine", YESTERDAY)) == 4
    root.append("--yes")
    everything = dql("discard", *root)
    assert everything.exit_code == 2
    assert "add --gate, --date or --older-than 30d" in everything.output
    assert dql("discard", "--date", str(TODAY), "--reason", "no store").exit_code == 2
    assert dql("discard", "--gate", "other", *root).stdout.startswith("0 rows discarded")
    age = (date.today() - TODAY) // timedelta(days=1)
    assert dql("discard", "--older-than", f"{age}d", *root).stdout.startswith("4 rows discarded")
    assert (ids(tmp_path / "quarantine", YESTERDAY), len(ids(tmp_path / "quarantine"))) == ([], 4)
    (note,) = notes_from(gate.results_root, ["test.gate"], YESTERDAY, TODAY)
    assert (note.kind, note.author, note.date) == ("discarded", "eve", YESTERDAY)
    assert note.text.endswith("ticket 7")
    # The gate still finds its own rows there.
    (rerun, _) = run_gates(gate.parts, lambda _: spark)
    assert rerun.datasets[0].quarantined == 4
    assert ids(tmp_path / "quarantine") == [2, 3, 5, 5]
    assert ids(tmp_path / "quarantine", YESTERDAY) == [2, 3, 5, 5]
    repair(tmp_path)
    assert "1 rows released to" in release()[1]
    assert (ids(tmp_path / "silver"), ids(tmp_path / "quarantine")) == ([1, 2, 4], [3, 5, 5])


def test_rows_that_no_gate_has_written_and_numbers_beyond_json_are_no_traceback(
    tmp_path: Path, dql: Callable[..., Result]
) -> None:
    rows = {
        "dqx_run_key": ["shop.gate/2024-05-17/run", None, "by hand"],
        "dqx_reasons": pa.array([["rate"], None, None], pa.list_(pa.string())),
        "rate": [float("nan"), 1.0, 2.0],
    }
    write_deltalake(str(tmp_path / "quarantine"), pa.table(rows))
    (group,) = json.loads(dql("list", "--format", "json").stdout)
    assert (group["gate"], group["row_count"]) == ("shop.gate", 1)
    assert dql("list", "--gate", "shop.gat").stderr.startswith(
        "no rows of gate 'shop.gat': did you mean 'shop.gate'?"
    )
    assert dql("list", "--gate", "shop.gate", "--date", "2024-05-18").stderr == ""
    (row,) = json.loads(dql("show", "--masked", "name", "--format", "json").stdout)
    assert row["rate"] == "NaN"


def test_a_table_that_is_no_quarantine_is_refused(
    tmp_path: Path, dql: Callable[..., Result]
) -> None:
    missing = dql("list")
    assert (missing.exit_code, "no quarantine at" in missing.output) == (2, True)
    delta(tmp_path, "quarantine", orders(TODAY))
    other = dql("show")
    assert (other.exit_code, "is not a quarantine" in other.output) == (2, True)


def repair(tmp_path: Path, where: str = "id = 2") -> None:
    DeltaTable(str(tmp_path / "quarantine")).update({"amount": "7"}, predicate=where)


@pytest.fixture
def release(
    spark: Any, gate: GateRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., tuple[int, str]]:
    """Releases the rows of today into the target, over the session of the tests."""
    monkeypatch.setattr("dqx_airflow.cli.spark.open_session", lambda *_: spark)
    monkeypatch.setattr("dqx_airflow.cli.spark.Spark.close", lambda _: None)
    suite = tmp_path / "suite.dql"
    suite.write_text(gate.suite.text)

    def called(*given: str) -> tuple[int, str]:
        suites = [str(suite), *(name for name in given if name.endswith(".dql"))]
        given = tuple(word for word in given if not word.endswith(".dql"))
        places = [str(tmp_path / "quarantine"), *suites, "--into", str(tmp_path / "silver")]
        dataset = f"orders={tmp_path}/orders?date_column=ds&keys=id"
        who = ["--gate", "test.gate", "--date", str(TODAY), "--reason", "ticket 8"]
        where = ["--dataset", dataset, "--results-root", gate.results_root]
        found = CliRunner().invoke(app, ["quarantine", "release", *places, *who, *where, *given])
        assert found.exception is None or isinstance(found.exception, SystemExit), found.exception
        return found.exit_code, found.output

    return called


@pytest.mark.slow
def test_repaired_rows_return_once_and_the_others_stay(
    spark: Any, gate: GateRequest, tmp_path: Path, release: Callable[..., tuple[int, str]]
) -> None:
    one_date = replace(gate, more=())
    run_gates(one_date.parts, lambda _: spark)
    assert ids(tmp_path / "silver") == [1, 4]
    repair(tmp_path)
    code, said = release()
    assert (code, "1 rows released to" in said, "3 left in quarantine" in said) == (
        1,
        True,
        True,
    ), said
    assert ids(tmp_path / "silver") == [1, 2, 4]
    assert ids(tmp_path / "quarantine") == [3, 5, 5]
    commit = DeltaTable(str(tmp_path / "silver")).history(1)[0]
    assert (commit["dqx_reason"], commit["dqx_rows"]) == ("ticket 8", "1")
    verified = verify_table(StoredResults(gate.results_root), str(tmp_path / "silver"))
    assert (verified.differences, verified.version) == ((), 1)
    assert verified.last is not None
    assert verified.last["dqx_reason"] == "ticket 8"
    # A key that the target already has is not released, and another repair is.
    place = DeltaTable(str(tmp_path / "quarantine"))
    place.update({"id": "4", "amount": "1"}, predicate="id = 3")
    assert release()[0] == 1
    assert ids(tmp_path / "silver") == [1, 2, 4]
    DeltaTable(str(tmp_path / "quarantine")).update({"id": "3"}, predicate="id = 4")
    DeltaTable(str(tmp_path / "quarantine")).update({"id": "6"}, predicate="name IS NULL")
    assert release()[0] == 0
    assert ids(tmp_path / "silver") == [1, 2, 3, 4, 5, 6]
    assert ids(tmp_path / "quarantine") == []
    notes = notes_from(gate.results_root, ["test.gate"], TODAY, TODAY)
    assert [note.kind for note in notes] == ["released"] * 2
    # Rows that pass are held back if another rule then fails for the target.
    run_gates(one_date.parts, lambda _: spark)
    repair(tmp_path)
    suite, few = tmp_path / "suite.dql", 'assert num_rows() < 3 name "few"'
    suite.write_text(gate.suite.text.replace('name "id"', f'name "id"\n{few}'))
    code, said = release()
    assert code == 1
    assert (
        "nothing is released: with the rows that pass, few: num_rows() is 3, expected < 3" in said
    )
    suite.write_text(gate.suite.text)
    # Another gate, and a date that was not promoted, have nothing to add to.
    (rerun,) = run_gates(one_date.parts, lambda _: spark)
    assert rerun.datasets[0].quarantined == 4
    assert (ids(tmp_path / "silver"), ids(tmp_path / "quarantine")) == ([1, 4], [2, 3, 5, 5])
    code, said = release("--promote-slice", "name=ann")
    assert (code, "test.gate has not promoted" in said) == (2, True)


@pytest.mark.slow
def test_rows_that_the_target_has_no_room_for_stay_in_quarantine(
    spark: Any, gate: GateRequest, tmp_path: Path, release: Callable[..., tuple[int, str]]
) -> None:
    """Its demands hold for repaired rows as they do for those of a gate."""
    silver = str(tmp_path / "silver")
    columns = [*orders(TODAY).schema]
    columns[2] = columns[2].with_metadata({"__CHAR_VARCHAR_TYPE_STRING": "varchar(3)"})
    DeltaTable.create(silver, pa.schema(columns))
    run_gates(replace(gate, more=()).parts, lambda _: spark)
    assert ids(tmp_path / "silver") == [1, 4]
    repair(tmp_path)
    held = DeltaTable(str(tmp_path / "quarantine"))
    held.update({"name": "'robert'"}, predicate="id = 2")
    code, said = release()
    assert code != 0
    words = " ".join(said.split())
    assert """'name' is varchar(3), and rows have longer strings: {"id":2}""" in words
    assert (ids(tmp_path / "silver"), ids(tmp_path / "quarantine")) == ([1, 4], [2, 3, 5, 5])
    held = DeltaTable(str(tmp_path / "quarantine"))
    held.update({"name": "'bob'"}, predicate="id = 2")
    release()
    assert (ids(tmp_path / "silver"), ids(tmp_path / "quarantine")) == ([1, 2, 4], [3, 5, 5])


@pytest.mark.slow
@pytest.mark.parametrize("is_after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize(
    "at",
    [
        pytest.param(1, marks=pytest.mark.nightly, id="mark"),
        pytest.param(2, id="target"),
        pytest.param(3, marks=pytest.mark.nightly, id="removal"),
    ],
)
def test_a_release_that_ends_at_any_commit_loses_and_doubles_nothing(
    spark: Any,
    gate: GateRequest,
    tmp_path: Path,
    release: Callable[..., tuple[int, str]],
    at: int,
    is_after: bool,
) -> None:
    run_gates(replace(gate, more=()).parts, lambda _: spark)
    repair(tmp_path)
    commits = []
    commit = DeltaTable.create_write_transaction

    def interrupted(*given: Any, **named: Any) -> None:
        commits.append(given)
        if len(commits) == at and not is_after:
            raise OSError("killed")
        commit(*given, **named)
        if len(commits) == at:
            raise OSError("killed")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DeltaTable, "create_write_transaction", interrupted)
        assert release()[0] != 0
    assert len(commits) == at
    assert {*ids(tmp_path / "silver"), *ids(tmp_path / "quarantine")} == {1, 2, 3, 4, 5}
    release()
    assert (ids(tmp_path / "silver"), ids(tmp_path / "quarantine")) == ([1, 2, 4], [3, 5, 5])


@pytest.mark.slow
def test_slices_undated_data_and_texts_return_as_well(
    spark: Any, gate: GateRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dqx_airflow.cli.spark.open_session", lambda *_: spark)
    monkeypatch.setattr("dqx_airflow.cli.spark.Spark.close", lambda _: None)
    suite = tmp_path / "suite.dql"
    body = 'assert each row: amount >= 0 name "amount"'
    suite.write_text(f'suite "Test" {{\n check "All" on orders {{\n{body}\n }}\n}}\n')
    (tmp_path / "t.csv").write_text("id,amount\n1,1\n2,x\n3,-3\n4,4\n")
    schema = "id int, amount int"
    ref = DatasetRef(
        "orders",
        path=str(tmp_path / "t.csv"),
        format="csv",
        schema=schema,
        options=(("header", "true"),),
    )
    of_texts = replace(
        gate,
        suite=replace(gate.suite, text=suite.read_text()),
        datasets=(ref,),
        more=(),
        run_key=replace(gate.run_key, scheduler_run="manual[3]"),
    )
    # The same gate for another store, and a target with both.
    ours = replace(gate.datasets[0], filter="name = 'bob' OR name = 'ann'")
    of_slice = replace(of_texts, datasets=(ours,), promote_slice=(("ds", str(TODAY)),))
    for request_, folder in ((of_texts, "texts"), (of_slice, "slices")):
        places = {
            "quarantine": (("orders", str(tmp_path / folder / "quarantine")),),
            "promote_to": (("orders", str(tmp_path / folder / "silver")),),
        }
        (report,) = run_gates(replace(request_, **places).parts, lambda _: spark)
        assert report.outcome is Outcome.WARNED
    repaired = {"texts": ("'7'", "id = 2"), "slices": ("7", "id = 2")}
    settings = {
        "texts": f"orders={tmp_path}/t.csv?format=csv&schema={schema}&option.header=true",
        "slices": f"orders={tmp_path}/orders?date_column=ds",
    }
    found = {}
    for folder, (amount, where) in repaired.items():
        place, target = tmp_path / folder / "quarantine", tmp_path / folder / "silver"
        DeltaTable(str(place)).update({"amount": amount}, predicate=where)
        given = ["quarantine", "release", str(place), str(suite), "--gate", "test.gate[3]"]
        given += ["--date", str(TODAY), "--reason", "r", "--into", str(target)]
        given += ["--dataset", settings[folder], "--results-root", gate.results_root]
        given += ["--promote-slice", f"ds={TODAY}"] if folder == "slices" else []
        called = CliRunner().invoke(app, [*given, "--format", "json"])
        rows = DeltaTable(str(target)).to_pyarrow_table().to_pylist()
        found[folder] = (called.output, sorted((row["id"], row["amount"]) for row in rows))
    assert found["texts"][1] == [(1, 1), (2, 7), (4, 4)], found["texts"][0]
    assert found["slices"][1] == [(1, 1), (2, 7)], found["slices"][0]


@pytest.mark.slow
def test_a_waiver_of_one_of_several_suites_holds_for_a_release(
    spark: Any, gate: GateRequest, tmp_path: Path, release: Callable[..., tuple[int, str]]
) -> None:
    late = 'assert num_rows() >= 9 name "late" severity P1'
    later = SourceFile("later.dql", gate.suite.text.replace("Test", "Later").replace(
        'assert unique(id) name "id"', late))  # fmt: skip
    key = gate.run_key
    names = [replace(key, gate=f"{key.gate}/{name}") for name in ("Test", "Later")]
    two = replace(
        gate,
        run_key=names[0],
        origin=GateOrigin(job=key.gate),
        more=(GatePart(names[1], later),),
        fail_on=Severity.P1,
    )
    run_gates(two.parts, lambda _: spark)  # too few rows: nothing is promoted
    results = StoredResults(gate.results_root)
    until = date.today() + timedelta(days=1)
    why = {"until": until, "reason": "r", "owner": "o", "author": "eve"}
    write_waivers(results, [new_waiver(results, names[1].gate, "late", **why)])
    again = replace(two, attempt=Attempt(2, "2"))
    assert {one.outcome for one in run_gates(again.parts, lambda _: spark)} == {Outcome.WARNED}
    assert ids(tmp_path / "silver") == [1, 4]
    repair(tmp_path)
    (tmp_path / "later.dql").write_text(later.text)
    said = release(str(tmp_path / "later.dql"))[1]
    assert "1 rows released to" in said, said
    assert ids(tmp_path / "silver") == [1, 2, 4]


@pytest.mark.slow
def test_rows_return_over_spark_connect(
    gate: GateRequest, tmp_path: Path, server_session: Any, connect_address: str
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPARK_CONNECT_MODE_ENABLED", "1")
        run_gates(replace(gate, more=()).parts, lambda _: server_session)
    repair(tmp_path)
    suite = tmp_path / "suite.dql"
    suite.write_text(gate.suite.text)
    released = ended(
        [
            *(PROGRAMS / "dql", "quarantine", "release", tmp_path / "quarantine", suite),
            *("--gate", "test.gate", "--date", str(TODAY), "--reason", "ticket 8"),
            *("--into", tmp_path / "silver", "--results-root", gate.results_root),
            *("--dataset", f"orders={tmp_path}/orders?date_column=ds&keys=id"),
            *("--connection", connect_address),
        ],
        env=environment(),
    )
    said = f"1 rows released to {tmp_path}/silver, 3 left in quarantine\n"
    assert (released.stdout, released.stderr, released.returncode) == (said, "", 1)
    assert (ids(tmp_path / "silver"), ids(tmp_path / "quarantine")) == ([1, 2, 4], [3, 5, 5])
