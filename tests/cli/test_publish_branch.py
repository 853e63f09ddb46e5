"""`dql tables publish`: the branch of an Iceberg table that a gate judged, with PyIceberg."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from dqx_airflow.results.store import ResultsStore
from dqx_airflow.values import (
    Attempt,
    DatasetSnapshot,
    Outcome,
    PartialRun,
    Promotion,
    Selection,
    Severity,
    Status,
)
from tests.command_line import dql
from tests.made_reports import report_at, verdict_of

catalogs = pytest.importorskip("pyiceberg.catalog")
pa = pytest.importorskip("pyarrow")
TABLE = "sales.orders"


def configure(monkeypatch: pytest.MonkeyPatch, **settings: str) -> None:
    """Sets the environment of PyIceberg, which reads it once, when it is imported."""
    for name, value in settings.items():
        monkeypatch.setenv(f"PYICEBERG_CATALOG__LAKE__{name}", value)
    monkeypatch.setattr(catalogs, "_ENV_CONFIG", catalogs.Config())


@pytest.fixture
def table(here: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A table with one snapshot in main, from which the branch `audit` begins."""
    monkeypatch.delenv("DQX_RESULTS_ROOT", raising=False)
    warehouse = f"file://{here}/warehouse"
    configure(monkeypatch, TYPE="sql", URI=f"sqlite:///{here}/lake.db", WAREHOUSE=warehouse)
    catalog = catalogs.load_catalog("lake")
    catalog.create_namespace("sales")
    made = catalog.create_table(TABLE, rows().schema)
    made.append(rows(1))
    made.manage_snapshots().create_branch(head(made), "audit").commit()
    return made


def rows(*ids: int) -> Any:
    return pa.table({"id": pa.array(ids, pa.int64())})


def head(table: Any, branch: str = "main") -> int:
    found: int = table.refresh().refs()[branch].snapshot_id
    return found


def ids(table: Any, branch: str = "main") -> list[int]:
    scan = table.refresh().scan(snapshot_id=head(table, branch))
    return sorted(scan.to_arrow()["id"].to_pylist())


def forward(*arguments: str, code: int = 0, name: str = TABLE) -> str:
    """Publishes `audit`; what no gate has checked, unless a run is given."""
    given = [
        "tables",
        "publish",
        name,
        "--branch",
        "audit",
        "--catalog",
        "lake",
        "--yes",
        *arguments,
    ]
    done = dql(*given, *([] if "--run" in arguments else ["--unjudged"]))
    assert done.returncode == code, done.output
    assert "Traceback" not in done.output
    return " ".join(done.output.split())


RUN_ID = "01939b7e-0000-7000-8000-000000000001"
ABOUT_ORDERS = verdict_of("enough")


def reading(location: str, snapshot: int | None, branch: str | None = "audit") -> DatasetSnapshot:
    """What a report says about an Iceberg table."""
    return DatasetSnapshot("orders", location, "iceberg", snapshot=snapshot, branch=branch)


def ran(table: Any, **changes: Any) -> str:
    """The id of a run that read the branch, as written to the store."""
    read = reading(table.location(), head(table, "audit"))
    given = {"verdicts": (ABOUT_ORDERS,), "datasets": (read,), "run_id": RUN_ID, **changes}
    report = report_at(LONG_AGO, **given)
    ResultsStore("results").write(report)
    return report.run_id[:8]


def test_main_gets_the_snapshots_of_the_branch_and_nothing_is_copied(table: Any) -> None:
    for number in (2, 3):
        table.append(rows(number), branch="audit")
    files = sorted(Path("warehouse").rglob("*.parquet"))
    assert ids(table) == [1]
    assert f"main has snapshot {head(table, 'audit')} of audit" in forward()
    assert ids(table) == ids(table, "audit") == [1, 2, 3]
    assert sorted(Path("warehouse").rglob("*.parquet")) == files
    assert forward() == f"main has snapshot {head(table)} of audit"
    table.append(rows(4), branch="audit")
    forward()
    assert ids(table) == [1, 2, 3, 4]


def test_it_is_refused_if_main_has_moved(table: Any) -> None:
    table.append(rows(2), branch="audit")
    table.append(rows(9))
    before = head(table)
    found = forward(code=1)
    assert found == (
        "refused: branch main has moved since audit began: write audit again from main"
    )
    assert head(table) == before


def test_it_is_refused_if_main_moves_at_the_same_time(
    table: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pyiceberg.table import Table

    table.append(rows(2), branch="audit")
    manage = Table.manage_snapshots

    def late(self: Any) -> Any:
        """Another writer is faster."""
        monkeypatch.setattr(Table, "manage_snapshots", manage)
        changes = manage(self)
        catalogs.load_catalog("lake").load_table(TABLE).append(rows(9))
        return changes

    monkeypatch.setattr(Table, "manage_snapshots", late)
    assert "refused: branch main moved at the same time: try again" in forward(code=1)
    assert ids(table) == [1, 9]


def test_any_branch_is_published_and_keeps_its_retention(table: Any) -> None:
    table.append(rows(2), branch="audit")
    forward("--into", "silver")
    assert ids(table, "silver") == [1, 2]
    changes = table.refresh().manage_snapshots()
    changes.create_branch(head(table, "silver"), "silver", max_ref_age_ms=10**9).commit()
    table.append(rows(3), branch="audit")
    forward("--into", "silver")
    assert ids(table, "silver") == [1, 2, 3]
    assert table.refresh().refs()["silver"].max_ref_age_ms == 10**9
    assert ids(table) == [1]


def test_a_snapshot_must_be_that_of_the_branch(table: Any) -> None:
    table.append(rows(2), branch="audit")
    old, judged = head(table), head(table, "audit")
    assert f"refused: branch audit has snapshot {judged}, not {old}" in forward(
        "--snapshot", str(old), code=1
    )
    forward("--snapshot", str(judged))
    assert ids(table) == [1, 2]


def test_the_run_of_a_gate_vouches_for_the_branch(table: Any) -> None:
    table.append(rows(2), branch="audit")
    forward("--run", ran(table), "--results-root", "results")
    assert ids(table) == [1, 2]


def test_the_name_of_the_table_in_spark_is_known(table: Any) -> None:
    judged = head(table, "audit")
    for name in ("lake.sales.orders", "lake.`sales`.orders", "lake.sales.orders.branch_audit"):
        named = (reading(name, judged),)
        forward("--run", ran(table, datasets=named), "--results-root", "results")


def test_a_run_that_compares_both_branches_vouches_for_what_it_read(table: Any) -> None:
    both = (reading(table.location(), head(table), "main"),)
    table.append(rows(2), branch="audit")
    of_audit = reading(table.location(), head(table, "audit"))
    both += (replace(of_audit, name="audited"),)
    verdicts = (verdict_of("same", datasets=("orders", "audited")),)
    forward("--run", ran(table, datasets=both, verdicts=verdicts), "--results-root", "results")
    assert ids(table) == [1, 2]


def test_a_write_after_the_run_is_not_published_with_it(table: Any) -> None:
    table.append(rows(2), branch="audit")
    run, judged = ran(table), head(table, "audit")
    table.append(rows(3), branch="audit")
    found = forward("--run", run, "--results-root", "results", code=1)
    now = head(table, "audit")
    assert f"has read snapshot {judged} of audit, and branch audit has snapshot {now}" in found
    assert ids(table) == [1]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (
            (),
            "no run says that a gate has checked the branch help: add --run RUN_ID, or --unjudged",
        ),
        (("--snapshot", "1"), "no run says that a gate has checked the branch"),
        (("--run", "", "--results-root", "results"), "--run is empty"),
        (("--run", " ", "--results-root", "results"), "--run is empty"),
        (("--run", "", "--unjudged"), "--run is empty"),
        (("--run", "f", "--unjudged"), "--run and --unjudged contradict each other"),
    ],
)
def test_what_no_gate_judged_is_published_only_by_its_name(
    table: Any, arguments: tuple[str, ...], expected: str
) -> None:
    table.append(rows(2), branch="audit")
    done = dql("tables", "publish", TABLE, "--branch", "audit", "--catalog", "lake", *arguments)
    assert done.returncode == 2
    assert expected in " ".join(done.output.split())
    assert ids(table) == [1]


LONG_AGO = datetime(2024, 1, 1, 6, tzinfo=timezone.utc)
OBJECTIONS: dict[str, tuple[Callable[[Any], dict[str, Any]], str]] = {
    "blocked": (lambda _: {"outcome": Outcome.BLOCKED}, "is blocked"),
    "broken": (lambda _: {"outcome": Outcome.BROKEN}, "is broken"),
    "partial": (
        lambda _: {"partial": PartialRun(Selection(severity=Severity.P0), 1, 2)},
        "is passed, and partial",
    ),
    "without the bad rows": (
        lambda table: {
            "outcome": Outcome.WARNED,
            "datasets": (
                replace(
                    reading(table.location(), head(table, "audit")),
                    promotion=Promotion("/silver/orders", 7, 97, left_out=3),
                ),
            ),
        },
        "is warned only without 3 bad rows, which the branch has",
    ),
    "of another table": (
        lambda table: {"datasets": (reading("lake.presales.orders", head(table, "audit")),)},
        "has not read sales.orders",
    ),
    "of another folder": (
        lambda table: {"datasets": (reading("s3://lake/orders", head(table, "audit")),)},
        "has not read sales.orders",
    ),
    "of another branch": (
        lambda table: {"datasets": (reading(table.location(), head(table), "main"),)},
        r"has read snapshot \d+ of main, and branch audit has snapshot \d+",
    ),
    "that only looked up its values": (
        lambda _: {"verdicts": (verdict_of("known_orders", datasets=("items",)),)},
        "has read sales.orders, but no assertion about it was evaluated",
    ),
    "that has only seen its strings": (
        lambda _: {"verdicts": (replace(ABOUT_ORDERS, check="implicit"),)},
        "has read sales.orders, but no assertion about it was evaluated",
    ),
    "whose assertions were skipped": (
        lambda _: {"verdicts": (replace(ABOUT_ORDERS, status=Status.SKIPPED),)},
        "has read sales.orders, but no assertion about it was evaluated",
    ),
    "of a snapshot that is not known": (
        lambda table: {"datasets": (reading(table.location(), None, None),)},
        "does not say which snapshot of sales.orders it has read: let the gate read",
    ),
}


@pytest.mark.few(3)
@pytest.mark.parametrize("name", OBJECTIONS)
def test_a_run_that_does_not_vouch_is_a_refusal(table: Any, name: str) -> None:
    changes, expected = OBJECTIONS[name]
    table.append(rows(2), branch="audit")
    found = forward("--run", ran(table, **changes(table)), "--results-root", "results", code=1)
    assert re.match(f"refused: run 01939b7e {expected}", found), found
    assert ids(table) == [1]


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("other", "is_refused"),
    [
        ({"outcome": Outcome.BLOCKED}, True),
        ({"outcome": Outcome.BROKEN, "datasets": None}, True),
        ({"outcome": Outcome.BLOCKED, "attempt": Attempt(2, "another")}, False),
        ({"outcome": Outcome.BLOCKED, "datasets": ()}, False),
        ({"outcome": Outcome.WARNED}, False),
    ],
)
def test_all_suites_and_dates_of_an_attempt_vouch_together(
    table: Any, other: dict[str, Any], is_refused: bool
) -> None:
    table.append(rows(2), branch="audit")
    read = (reading(table.location(), head(table, "audit")),)
    if other.get("datasets", ()) is None:  # a table that could not be opened has no snapshot
        other = {**other, "datasets": (reading(table.location(), None, None),)}
    attempt = Attempt(1, "attempt-1")
    run = ran(table, suite="Orders", gate="lake.gate/Orders", attempt=attempt)
    about = {"suite": "Strict", "gate": "lake.gate/Strict", "attempt": attempt, "datasets": read}
    report = report_at(LONG_AGO, run_id=str(uuid4()), **{**about, **other})
    ResultsStore("results").write(report)
    found = forward("--run", run, "--results-root", "results", code=int(is_refused))
    if is_refused:
        of_other = f"run {report.run_id[:8]} of the same attempt, of Strict for 2024-01-01, is"
        assert f"refused: run 01939b7e is passed, and {of_other} {report.outcome}" in found
    assert ids(table) == ([1] if is_refused else [1, 2])


def test_only_an_assertion_that_measures_the_table_vouches_for_it(table: Any) -> None:
    table.append(rows(2), branch="audit")
    of_others = verdict_of("joined", datasets=("items", "preorders"))
    refused = forward(
        "--run", ran(table, verdicts=(of_others,)), "--results-root", "results", code=1
    )
    assert "no assertion about it was evaluated" in refused
    joined = replace(of_others, datasets=("items", "orders"))
    run = ran(table, verdicts=(joined,), run_id=RUN_ID.replace("0", "1", 1))
    forward("--run", run, "--results-root", "results")
    assert ids(table) == [1, 2]


def test_the_rows_that_a_run_has_read_are_named(table: Any) -> None:
    table.append(rows(2), branch="audit")
    read = replace(reading(table.location(), head(table, "audit")), condition="(id > 1)")
    run = ran(table, datasets=(read,))
    words = f"checked by run {run}, which has read its rows where (id > 1)"
    assert words in forward("--run", run, "--results-root", "results")


@pytest.mark.few(4)
@pytest.mark.parametrize(
    ("arguments", "name", "code", "expected"),
    [
        (("--branch", "audits"), TABLE, 2, "no branch 'audits' help: did you mean 'audit'?"),
        (("--into", "v1"), TABLE, 2, "sales.orders has no branch 'v1'"),  # it is a tag
        (("--branch", "v1"), TABLE, 2, "sales.orders has no branch 'v1'"),
        ((), "sales.items", 2, "the catalog has no table sales.items"),
        ((), "gone.items", 2, "the catalog has no table gone.items"),
        (("--run", "ffff", "--results-root", "results"), TABLE, 2, "results"),
        (("--run", "ffff"), TABLE, 2, "no results root given"),
        (("--catalog", "other"), TABLE, 4, "the catalog failed: "),
    ],
)
def test_what_does_not_exist_is_an_error_that_names_it(
    table: Any, arguments: tuple[str, ...], name: str, code: int, expected: str
) -> None:
    table.manage_snapshots().create_tag(head(table), "v1").commit()
    assert expected in forward(*arguments, code=code, name=name)


def test_a_table_without_main_gets_it_from_the_branch(table: Any) -> None:
    table.append(rows(2), branch="audit")
    table.manage_snapshots().remove_branch("main").commit()
    forward()
    assert ids(table) == [1, 2]


def test_no_secret_of_the_catalog_is_printed(table: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    configure(monkeypatch, TYPE="rest", URI="http://ada:s3cret@127.0.0.1:1/?token=s3cret")
    assert "s3cret" not in forward(code=4)
