"""What people decide, on a real Spark: waivers until a date, and the acceptance of judged data."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from dqx_airflow.diagnostics.verdicts import headline
from dqx_airflow.engine.outputs import promotion
from dqx_airflow.errors import RequestError
from dqx_airflow.results import store
from dqx_airflow.results.decisions import acceptance_of, new_waiver, write_waivers
from dqx_airflow.results.incidents import stored_incidents, write_notes
from dqx_airflow.results.query import RunsWanted, StoredResults
from dqx_airflow.results.runs import read_report
from dqx_airflow.results.verify import verify_table
from dqx_airflow.values import Attempt, DatasetRef, GateReport, GateRequest, Outcome, Verdict
from tests.engine.lake import ORDERS, TODAY, YESTERDAY, Run, delta, request

pytestmark = pytest.mark.spark

SHARE = 'assert null_count(price) / num_rows() < 5% name "share" severity P1'


@pytest.fixture
def target(tmp_path: Path) -> str:
    return str(tmp_path / "silver")


@pytest.fixture
def gate(tmp_path: Path, target: str) -> GateRequest:
    """A gate whose share of NULLs is 25%, and should be 5%."""
    orders = replace(delta(tmp_path, "orders", ORDERS), date_column="ds")
    quarantine = (("orders", str(tmp_path / "quarantine")),)
    return request(
        tmp_path, SHARE, [orders], promote_to=(("orders", target),), quarantine=quarantine
    )


def again(gate: GateRequest, number: int = 2, **changes: Any) -> GateRequest:
    return replace(gate, attempt=Attempt(number, f"attempt-{number}"), **changes)


def results_of(gate: GateRequest) -> StoredResults:
    return StoredResults(gate.results_root)


def only(report: GateReport, name: str = "share") -> Verdict:
    (verdict,) = (one for one in report.verdicts if one.name == name)
    return verdict


def waive(gate: GateRequest, *, name: str = "share", days: int = 3, **changes: Any) -> None:
    until = datetime.now(timezone.utc).date() + timedelta(days=days)
    results = results_of(gate)
    known = {"reason": "ticket 7", "owner": "ben", "author": "eve"}
    waiver = new_waiver(results, "test.gate", name, until=until, **known, **changes)
    write_waivers(results, [waiver])


@pytest.mark.more
def test_a_waiver_lets_an_assertion_fail_within_its_limit_until_it_ends(
    run: Run, gate: GateRequest, target: str
) -> None:
    blocked = run(gate)
    assert blocked.outcome is Outcome.BLOCKED
    (brought,) = blocked.datasets[0].arrivals
    assert (brought.name, brought.by.partition(",")[0]) == ("0", "WRITE")
    assert read_report(gate.results_root, gate.run_key, "attempt-1") == blocked
    waive(gate, below="20%")  # 25% goes too far
    report = run(again(gate))
    assert report.outcome is Outcome.BLOCKED
    assert "the waiver does not go so far" in str(only(report).note)
    waive(gate, below="30%")
    report = run(again(gate, 3))
    assert report.outcome is Outcome.WARNED
    assert report.datasets[0].arrivals == ()  # only of what an incident is about
    assert "1 of 2 assertions failed, 1 waived" in headline(report)
    assert "owner ben: ticket 7" in str(only(report).waived_by)
    assert len(DeltaTable(target).to_pyarrow_table()) == 4
    assert read_report(gate.results_root, gate.run_key, "attempt-3") == report
    results = results_of(gate)
    (waiver,) = (w for w in _waivers(results) if w.below == "0.3")
    write_waivers(results, [replace(waiver, ended_by="ben")])
    assert run(again(gate, 4)).outcome is Outcome.BLOCKED


def _waivers(results: StoredResults) -> Any:
    from dqx_airflow.results.decisions import waivers_of

    return waivers_of(results)


@pytest.mark.slow
def test_p0_and_required_cannot_be_waived(run: Run, gate: GateRequest) -> None:
    text = gate.suite.text.replace("assert null", "@required assert null")
    strict = replace(gate, suite=replace(gate.suite, text=text))
    run(gate)
    waive(gate)  # while it was not `@required`
    report = run(again(strict))
    assert report.outcome is Outcome.BLOCKED
    assert "the waiver never applies to @required" in str(only(report).note)
    with pytest.raises(RequestError, match="share is @required, which no one can waive"):
        waive(gate)


def accept(gate: GateRequest, report: GateReport, reason: str = "the shop was shut") -> None:
    write_notes(results_of(gate), [acceptance_of(report, "eve", reason)])


def test_accepted_data_is_promoted_and_everything_says_who_and_why(
    run: Run, gate: GateRequest, target: str, tmp_path: Path
) -> None:
    judged = run(gate)
    for blank in (" ", "\u200b"):
        with pytest.raises(RequestError, match="needs a reason"):
            accept(gate, judged, blank)
    accept(gate, judged)
    report = run(again(gate))
    assert report.outcome is Outcome.ACCEPTED
    assert report.accepted is not None
    assert (report.accepted.author, report.accepted.reason) == ("eve", "the shop was shut")
    assert report.accepted.run_id == judged.run_id
    assert only(report).accepted_by == "accepted by eve: the shop was shut"
    assert headline(report).startswith("accepted: by eve: the shop was shut; gate")
    assert report.validated["orders"].location == target
    assert len(DeltaTable(target).to_pyarrow_table()) == 4
    commit = DeltaTable(target).history(1)[0]
    assert commit["dqx_outcome"] == "accepted"
    assert commit["dqx_accepted_by"] == "eve"
    assert commit["dqx_accepted_reason"] == "the shop was shut"
    assert report.datasets[0].quarantined == 0  # it is in the target
    assert read_report(gate.results_root, gate.run_key, "attempt-2") == report
    event = json.loads((tmp_path / "lineage.jsonl").read_text().splitlines()[-1])
    assert [output["name"] for output in event["outputs"]] == [target]
    tags = {tag["key"]: tag["value"] for tag in event["run"]["facets"]["tags"]["tags"]}
    assert tags["dqx_accepted_by"] == "eve"
    (incident,) = stored_incidents(results_of(gate), RunsWanted())
    assert incident.status == "accepted"
    # The answer holds for every later run of the same data.
    assert run(again(gate, 3)).outcome is Outcome.ACCEPTED
    assert DeltaTable(target).to_pyarrow_table().num_rows == 4


def append(gate: GateRequest, on: Any) -> None:
    path = str(gate.datasets[0].path)
    rows = DeltaTable(path).to_pyarrow_table().slice(0, 1).to_pydict()
    table = pa.Table.from_pydict({**rows, "ds": [on]}, schema=ORDERS.schema)
    write_deltalake(path, table, mode="append")


@pytest.mark.slow
def test_changed_data_voids_the_answer_and_another_date_does_not(
    run: Run, gate: GateRequest, target: str
) -> None:
    accept(gate, run(gate))
    path = str(gate.datasets[0].path)
    write_deltalake(path, DeltaTable(path).to_pyarrow_table(), mode="overwrite", partition_by="ds",
                    schema_mode="overwrite")  # fmt: skip
    partitioned = run(again(gate))
    assert partitioned.outcome is Outcome.BLOCKED  # other files, whatever they hold
    accept(gate, partitioned)
    append(gate, YESTERDAY)
    assert run(again(gate, 3)).outcome is Outcome.ACCEPTED
    append(gate, TODAY)
    report = run(again(gate, 4))
    assert report.outcome is Outcome.BLOCKED
    assert "the data of orders has changed since" in str(only(report).note)
    assert DeltaTable(target).to_pyarrow_table().num_rows == 4


@pytest.mark.slow
def test_another_failure_and_another_slice_are_not_accepted(run: Run, gate: GateRequest) -> None:
    accept(gate, run(gate))
    more = gate.suite.text.replace(SHARE, f'{SHARE}\n assert num_rows() > 9 name "rows"')
    report = run(again(gate, suite=replace(gate.suite, text=more)))
    assert report.outcome is Outcome.BLOCKED
    assert "rows had not failed" in str(only(report).note)
    other = again(gate, 3, promote_slice=(("country", "CH"),))
    assert run(other).outcome is Outcome.BLOCKED
    mapped = replace(gate.run_key, scheduler_run="manual[3]")
    assert run(again(gate, 4, run_key=mapped)).outcome is Outcome.BLOCKED


@pytest.mark.slow
def test_p0_needs_the_permission_of_the_gate(run: Run, gate: GateRequest) -> None:
    text = gate.suite.text.replace("severity P1", "severity P0")
    gate = replace(gate, suite=replace(gate.suite, text=text))
    judged = run(gate)
    with pytest.raises(RequestError, match="cannot be accepted"):
        accept(gate, judged)
    allowed = again(gate, accept_required=True)
    accept(gate, run(allowed))
    assert run(again(gate, 3)).outcome is Outcome.BLOCKED  # the gate does not allow it any more
    assert run(again(allowed, 4)).outcome is Outcome.ACCEPTED


def test_data_that_cannot_be_identified_cannot_be_accepted(run: Run, gate: GateRequest) -> None:
    (orders,) = gate.datasets
    unknown = replace(gate, datasets=(replace(orders, filter="price > rand() - 1"),))
    unknown = replace(unknown, promote_to=())
    report = run(unknown)
    with pytest.raises(RequestError, match="cannot be accepted"):
        accept(gate, report)


@pytest.mark.slow
def test_a_parquet_file_that_was_written_again_is_other_data(
    run: Run, tmp_path: Path, target: str
) -> None:
    folder = tmp_path / "landing"
    folder.mkdir()
    pq.write_table(ORDERS, folder / "a.parquet")
    ref = DatasetRef("orders", path=str(folder), format="parquet", date_column="ds")
    gate = request(tmp_path, SHARE, [ref], promote_to=(("orders", target),))
    accept(gate, run(gate))
    assert run(again(gate)).outcome is Outcome.ACCEPTED
    pq.write_table(ORDERS, folder / "a.parquet")
    assert run(again(gate, 3)).outcome is Outcome.BLOCKED


@pytest.mark.slow
def test_a_run_after_an_answer_replaces_the_report_of_its_attempt(
    run: Run, gate: GateRequest
) -> None:
    judged = run(gate)
    accept(gate, judged)
    report = run(replace(gate, answered="a"))
    assert report.outcome is Outcome.ACCEPTED
    results = results_of(gate)
    assert read_report(results, gate.run_key, gate.attempt.id) == report
    (line,) = results.runs(RunsWanted(["test.gate"]))
    assert line.run_id == report.run_id
    (incident,) = stored_incidents(results, RunsWanted())
    assert (incident.first.run_id, incident.status) == (judged.run_id, "accepted")


class Killed(BaseException):
    """The process ends: nothing handles that."""


@pytest.mark.more
@pytest.mark.parametrize("is_after", [False, True], ids=["before", "after"])
def test_accepted_data_is_promoted_once_whichever_commit_is_the_last_of_a_killed_gate(
    run: Run, gate: GateRequest, target: str, tmp_path: Path, is_after: bool
) -> None:
    judged = run(gate)
    commits: list[str] = []
    at = 0

    def dying(owner: Any, name: str) -> Callable[..., Any]:
        commit = getattr(owner, name)

        def commits_or_dies(*given: Any, **named: Any) -> Any:
            commits.append(name)
            if len(commits) == at and not is_after:
                raise Killed
            made = commit(*given, **named)
            if len(commits) == at:
                raise Killed
            return made

        return commits_or_dies

    accept(gate, judged)
    ended = False
    with pytest.MonkeyPatch.context() as patch:
        for owner, name in (
            (DeltaTable, "create_write_transaction"),
            (promotion, "create_table_with_add_actions"),
            (store, "write_deltalake"),
        ):
            patch.setattr(owner, name, dying(owner, name))
        while not ended:
            at, ended = at + 1, True
            commits.clear()
            try:
                report = run(again(gate, at + 1))
            except Killed:
                ended = False
            is_promoted = rows_in(target) == 4
            assert rows_in(target) in (0, 4), (at, commits)
            (incident,) = stored_incidents(results_of(gate), RunsWanted())
            assert incident.status == "blocked" or is_promoted, (at, commits)
    assert at > 5  # the target, the quarantine and the results
    assert report.outcome is Outcome.ACCEPTED
    assert incident.status == "accepted"
    # Until then, what left the quarantine was in the source.
    assert (rows_in(target), rows_in(str(tmp_path / "quarantine"))) == (4, 0)
    assert verify_table(results_of(gate), target).differences == ()


def rows_in(path: str) -> int:
    if not DeltaTable.is_deltatable(path):
        return 0
    return int(DeltaTable(path).to_pyarrow_table().num_rows)
