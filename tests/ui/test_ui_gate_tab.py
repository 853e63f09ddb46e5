"""The tab of a task instance, with and without the results store."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta

import pytest

from dqx_airflow.results.store import ResultsStore
from dqx_airflow.values import (
    DatasetSnapshot,
    EnforcedContract,
    FailingRow,
    Outcome,
    Severity,
    ShadowReport,
    Status,
)
from tests.ui.ui_scene import BAD_NULLS, DAY, NOT_EMPTY, NULLS, Get, Html, Scene, report_of

pytestmark = pytest.mark.airflow


def test_the_tab_shows_the_outcome_and_every_assertion(tab: Get, scene: Scene) -> None:
    report = scene.ran(report_of())
    page = Html(tab().text)
    assert "✕ blocked lake.gate data of 2024-03-20" in page.text
    assert "50% of orders have no id ( limit < MAX_NULLS (10%) )" in page.text
    assert "✕ failed orders.id.null_share P0 50% , limit < MAX_NULLS (10%)" in page.text
    assert "orders.dql :5 null_count(id) / num_rows() < MAX_NULLS (10%)" in page.text
    assert "✓ passed P1 orders.not_empty num_rows() 5,000 rows limit > 0" in page.text
    assert "value from scan" in page.text
    assert report.run_id in page.text
    assert f"dql results show {report.run_id[:8]} --rows --results-root {scene.root}" in page.text


def test_failing_rows_are_shown_as_they_are_stored(tab: Get, scene: Scene) -> None:
    scene.ran(report_of())
    text = Html(tab().text).text
    assert "Each row: id is null day id tax_id 2024-03-20 NULL ***" in text


def test_the_failing_line_of_the_suite_is_marked(tab: Get, scene: Scene) -> None:
    scene.ran(report_of())
    page = Html(tab().text)
    assert "orders.dql 5 assert null_count(id) / num_rows() < MAX_NULLS (failed)" in page.text
    assert page.all("div", class_="at failed")


def test_the_past_is_drawn_with_its_limit_and_the_active_profiles(tab: Get, scene: Scene) -> None:
    scene.dag()
    for days in range(1, 11):
        holiday = {"multiplier": 0.5, "profiles": ("easter",)} if days == 4 else {}
        earlier = replace(NULLS, value=0.01 * days, scaled_value=0.01 * days, **holiday)
        scene.ran(
            report_of(
                days + 1,
                on=DAY - timedelta(days=days),
                verdicts=(earlier, NOT_EMPTY),
                outcome=Outcome.PASSED,
            ),
            number=days + 1,
        )
    scene.ran(report_of())
    page = Html(tab().text)
    labels = [found["aria-label"] for found in page.all("svg")]
    assert (
        "orders.id.null_share: 11 runs from 2024-03-10 to 2024-03-20, from 1% to 50%, "
        "most recently 50%; 1 failed" in labels
    )
    assert page.all("polyline", class_="limit")
    assert page.all("rect", class_="mark failed")
    assert "2024-03-16: 4%, passed, limit 10%, multiplier 0.5, easter" in tab().text
    assert "limit 10% easter failed" in page.text
    assert "last 11 runs" in page.text


@pytest.mark.more
def test_the_history_of_a_run_has_no_later_runs(tab: Get, scene: Scene) -> None:
    scene.ran(report_of())
    scene.ran(report_of(2, on=DAY + timedelta(days=1)), number=2)
    assert "last 2 runs" not in tab().text
    assert "last 2 runs" in tab(run_id="scheduled__2024-03-21").text


def test_a_multiplier_is_shown_with_its_effect(tab: Get, scene: Scene) -> None:
    easter = replace(BAD_NULLS, value=0.5, multiplier=0.5, scaled_value=0.25, profiles=("easter",))
    scene.ran(report_of(verdicts=(easter,)))
    text = Html(tab().text).text
    assert "25% = 50% \N{MULTIPLICATION SIGN}0.5" in text
    assert (
        "value before the multiplier 50% value as compared 25% limit 10%, for the metric value 20%"
        in text
    )


def test_assertions_of_a_contract_name_their_clauses_also_without_the_store(
    tab: Get, scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    contract = EnforcedContract(
        "orders", "2.3.0", "odcs", checked=9, documented=4, unsupported=1, pin="2"
    )
    clause = replace(BAD_NULLS, clause="schema.orders.id.required")
    scene.ran(report_of(verdicts=(clause,), contract=contract))
    for _ in ("with", "without"):
        text = Html(tab().text).text
        assert "clause schema.orders.id.required" in text
        assert (
            "Contract id orders version 2.3.0 pinned to 2 format odcs clauses 9 checked, "
            "4 documented, 1 unsupported" in text
        )
        monkeypatch.delenv("AIRFLOW__DQX__RESULTS_ROOT", raising=False)


def test_an_accepted_clause_shows_owner_and_reason(tab: Get, scene: Scene) -> None:
    contract = EnforcedContract("orders", "2.3.0", "odcs", checked=9, documented=4, accepted=1)
    accepted = replace(
        BAD_NULLS,
        name="orders.custom",
        status=Status.SKIPPED,
        value=None,
        reason="an unknown engine (accepted by data-platform: the vendor alerts on it)",
        clause="models.orders.quality[0]",
        let_by="data-platform: the vendor alerts on it",
    )
    scene.ran(report_of(verdicts=(accepted, NOT_EMPTY), outcome=Outcome.PASSED, contract=contract))
    text = Html(tab().text).text
    assert "accepted by data-platform: the vendor alerts on it" in text
    assert "9 checked, 4 documented, 1 accepted, 0 unsupported" in text


def test_a_failure_below_the_limit_of_the_gate_is_a_warning(tab: Get, scene: Scene) -> None:
    mild = replace(BAD_NULLS, severity=Severity.P3)
    scene.ran(report_of(verdicts=(mild, NOT_EMPTY), outcome=Outcome.WARNED))
    page = Html(tab().text)
    assert "! warned orders.id.null_share P3" in page.text
    assert not page.all("details", open="")


def test_ages_read_as_durations(tab: Get, scene: Scene) -> None:
    late = replace(
        BAD_NULLS, expression="freshness(at)", value=9000.0, scaled_value=9000.0, threshold=7200
    )
    scene.ran(report_of(verdicts=(late,)))
    assert "2 hours 30 minutes" in Html(tab().text).text


@pytest.mark.few(1)
@pytest.mark.parametrize("root", ["", "/nowhere/at/all", "file"])
def test_without_the_store_the_tab_uses_the_task_summary(
    tab: Get, scene: Scene, root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene.ran(report_of())
    if root == "file":
        broken = scene.root.with_name("broken")
        broken.write_text("not a store")
        root = str(broken)
    monkeypatch.setenv("AIRFLOW__DQX__RESULTS_ROOT", root)
    page = Html(tab().text)
    assert "✕ failed orders.id.null_share P0 50% , limit < MAX_NULLS (10%)" in page.text
    assert "What passed or was skipped is in the results store." in page.text
    assert "1 passed 1 failed" in page.text
    messages = {
        "": "This server has no results store",
        "/nowhere/at/all": "does not contain this report",
    }
    assert messages.get(root, "did not respond") in page.text


def test_the_tab_of_a_gate_with_another_store_has_the_command_for_that_one(
    tab: Get, scene: Scene
) -> None:
    from dqx_airflow.operators.summary import summary

    scene.task(pushed={**summary(report_of()), "results_root": "s3://other/lake $(x)"})
    page = Html(tab().text)
    assert "the gate stores it in s3://other/lake $(x) , and the command below" in page.text
    assert "--rows --results-root 's3://other/lake $(x)'" in page.text


def test_without_a_task_summary_the_tab_uses_the_store(tab: Get, scene: Scene) -> None:
    scene.ran(report_of(), pushed=False)
    assert "✕ blocked lake.gate" in Html(tab().text).text


def test_earlier_attempts_can_be_opened(tab: Get, scene: Scene) -> None:
    earlier = "01890000-0000-7000-8000-000000000000"
    blocked = report_of(7, attempt=earlier)
    at = blocked.started_at + timedelta(hours=1)
    scene.ran(report_of(8, verdicts=(NULLS,), outcome=Outcome.PASSED, started_at=at), attempt=2)
    scene.history(earlier)
    ResultsStore(str(scene.root)).write(blocked)
    page = Html(tab().text)
    assert "Attempts: 1 blocked · 2 passed" in page.text
    then = Html(tab(attempt=earlier).text)
    assert "✕ blocked lake.gate" in then.text
    assert "This report is from an earlier attempt." in then.text
    assert "✓ passed lake.gate" in Html(tab(attempt="of another task").text).text


def test_each_report_of_a_range_can_be_opened(tab: Get, scene: Scene) -> None:
    blocked = scene.ran(report_of(7), pushed=False)
    later = report_of(8, on=DAY + timedelta(days=1), verdicts=(NULLS,), outcome=Outcome.PASSED)
    passed = scene.store(replace(later, attempt=blocked.attempt))
    page = Html(tab().text)
    assert "✕ blocked lake.gate" in page.text  # the worst
    assert "2024-03-20 orders.dql blocked · 2024-03-21 orders.dql passed" in page.text
    assert "Attempts:" not in page.text
    then = Html(tab(attempt=f"{passed.attempt.id}/{passed.run_id}").text)
    assert "✓ passed lake.gate" in then.text


@pytest.mark.parametrize(
    ("state", "message"),
    [
        (None, "The gate has not run yet"),
        ("queued", "The gate has not run yet"),
        ("running", "The gate is running"),
        ("up_for_retry", "left no report and will be retried"),
        ("failed", "The gate left no report"),
        ("success", "No report"),
        ("upstream_failed", "The gate did not run"),
    ],
)
def test_a_gate_without_a_report_shows_the_state_of_its_task(
    tab: Get, scene: Scene, state: str | None, message: str
) -> None:
    scene.task(state=state)
    answer = tab()
    assert answer.status_code == 200
    assert message in Html(answer.text).text


@pytest.mark.parametrize("state", ["failed", "up_for_retry"])
def test_a_gate_without_a_report_shows_the_last_error_of_its_job(
    tab: Get, scene: Scene, state: str
) -> None:
    pushed = {"outcome": "no report", "gate": "lake.gate", "error": "Spark: <no> space left"}
    scene.task(state=state, pushed=pushed)
    assert "Spark: <no> space left" in Html(tab().text).text


def test_other_tasks_are_reported_as_not_gates(tab: Get, scene: Scene) -> None:
    scene.task(operator="BashOperator", state="success")
    assert "This task is not a gate" in tab().text


def test_a_missing_task_is_not_found(tab: Get, scene: Scene) -> None:
    scene.dag()
    assert tab().status_code == 404
    assert tab(run_id="", task_id="").status_code == 404


def test_instances_of_a_mapped_gate_are_chosen_from(tab: Get, scene: Scene) -> None:
    good = report_of(1, verdicts=(NULLS,), outcome=Outcome.PASSED)
    scene.ran(good, map_index=0)
    scene.ran(report_of(2), map_index=1)
    page = Html(tab().text)
    assert "A mapped task: 2 instances" in page.text
    assert "0 ✓ passed" in page.text
    assert "1 ✕ blocked 50% of orders have no id orders.id.null_share" in page.text
    assert "map_index=1" in page.links["1"]
    assert "✕ blocked lake.gate" in Html(tab(map_index="1").text).text


@pytest.mark.few(2)
@pytest.mark.parametrize("index", ["{MAP_INDEX}", "%7BMAP_INDEX%7D", "", "-1", "1e3", "x" * 5000])
def test_an_invalid_map_index_is_accepted(tab: Get, scene: Scene, index: str) -> None:
    scene.ran(report_of())
    assert "lake.gate" in tab(map_index=index).text


def test_statuses_are_words_not_only_colours(tab: Get, scene: Scene) -> None:
    verdicts = tuple(replace(NULLS, name=status.value, status=status) for status in Status)
    disabled = replace(NULLS, name="off", status=Status.SKIPPED, disabled_by="easter")
    scene.ran(report_of(verdicts=(*verdicts, disabled)))
    text = Html(tab().text).text
    signs = ("✓ passed", "✕ failed", "\N{EN DASH} skipped", "! not evaluated", "? error")
    for sign in signs:
        assert sign in text


def test_values_have_the_unit_of_their_limit(tab: Get, scene: Scene) -> None:
    share = replace(BAD_NULLS, value=0.507527, scaled_value=0.507527)
    close = replace(share, name="close", value=0.10002, scaled_value=0.10002)
    plain = replace(share, name="plain", expected="< 0.1")
    of_rows = replace(share, name="rows", expected=">= 99.9% of rows", threshold=0.999)
    grouped = replace(share, name="each", expected="< 10% for each country")
    scene.ran(report_of(verdicts=(share, close, plain, of_rows, grouped)))
    text = Html(tab().text).text
    assert "50.8% , limit < MAX_NULLS (10%)" in text
    assert "10.002% , limit < MAX_NULLS (10%)" in text, "what fails does not look like its limit"
    assert "0.507527 , limit < 0.1" in text
    assert "50.8% , limit >= 99.9% of rows" in text
    assert "50.8% , limit < 10% for each country" in text


VIOLATED = replace(
    BAD_NULLS,
    name="orders.price",
    check="Prices",
    expression="each row: price > 0",
    expected="== 0 violating rows",
    metric="violating_rows",
    column="price",
    value=472,
    scaled_value=472,
    threshold=0,
)


def test_failing_rows_have_a_total_and_a_share_and_a_file(get: Get, tab: Get, scene: Scene) -> None:
    rows = (
        FailingRow("orders", "price <= 0", '{"id": 1, "price": -5, "note": "=1+1"}'),
        FailingRow("orders", "price <= 0", '{"id": 2, "price": null, "note": "a, b"}'),
    )
    scene.ran(report_of(verdicts=(replace(VIOLATED, failing_rows=rows), NOT_EMPTY)))
    page = Html(tab().text)
    assert "failing 472 of 5,000 rows (9.4%)" in page.text
    href = page.links["Download 2 stored rows as CSV"]
    answer = get(href)
    assert answer.headers["content-type"].startswith("text/csv")
    assert answer.headers["content-disposition"].startswith("attachment")
    assert answer.text.splitlines() == [
        "dataset,why,id,price,note",
        "orders,price <= 0,1,-5,'=1+1",
        'orders,price <= 0,2,,"a, b"',
    ]
    assert get(href, "ben").status_code == 403
    assert get(href.replace("orders.price", "other")).status_code == 404


def test_a_share_of_rows_has_its_number_of_failing_rows(tab: Get, scene: Scene) -> None:
    measured = {'["orders","null_count",["id"],0]': 308, '["orders","num_rows",[],0]': 3846}
    share = replace(
        BAD_NULLS,
        expression="null_count(id) / num_rows()",
        expected="< 2%",
        value=308 / 3846,
        scaled_value=308 / 3846,
        metric=None,
        measured=json.dumps({"values": measured}),
    )
    scene.ran(report_of(verdicts=(share,)))
    assert "failing 308 of 3,846 rows (8%)" in Html(tab().text).text


def test_the_values_behind_a_compound_value_are_shown(tab: Get, scene: Scene) -> None:
    measured = {
        '["orders","count",["at"],0]': 458,
        '["orders","count",["at"],1]': 928,
        '["orders","num_rows",[],1]': 930,
    }
    volume = replace(
        BAD_NULLS,
        name="orders.volume",
        expression="day_over_day(count(at))",
        expected="<= 0.3",
        measured=json.dumps({"values": measured}),
    )
    scene.ran(report_of(verdicts=(volume,)))
    assert "count(at) 458 count(at), 1 day before 928" in Html(tab().text).text


def test_groups_show_the_number_of_failures_and_the_worst_values(tab: Get, scene: Scene) -> None:
    key = '["orders","count",["at",{"where":"ok"}],%d,["country"]]'
    measured = {
        "values": {'["orders","num_rows",[],0]': 1779},
        "groups": {key % 0: [[["CH"], 300], [["IT"], 11]], key % 1: [[["CH"], 310], [["IT"], 137]]},
    }
    by_country = replace(
        BAD_NULLS,
        expression="day_over_day(count(at, where ok))",
        expected="< 50% for each country",
        measured=json.dumps(measured),
        groups=2,
        failed_groups=1,
        worst_group='"IT"',
    )
    scene.ran(report_of(verdicts=(by_country,)))
    text = Html(tab().text).text
    assert "failing 1 of 2 groups" in text
    assert 'worst group "IT"' in text
    assert "count(at, where ok) 11 count(at, where ok), 1 day before 137" in text
    assert "1779" not in text


def test_the_quarantine_location_is_shown(tab: Get, scene: Scene) -> None:
    place = DatasetSnapshot("orders", "s3://a", "delta", quarantined=5, quarantine="s3://bad")
    scene.ran(report_of(datasets=(place,)))
    assert "5 s3://bad" in Html(tab().text).text


@pytest.mark.more
def test_passed_assertions_are_folded_and_can_be_filtered(get: Get, tab: Get, scene: Scene) -> None:
    good = tuple(replace(NULLS, name=f"good_{i}", column="id") for i in range(5))
    mild = replace(VIOLATED, severity=Severity.P3)
    scene.ran(report_of(verdicts=(BAD_NULLS, mild, *good)))
    page = Html(tab().text)
    assert [fold.get("open") for fold in page.all("details", class_="fold")] == [None]
    assert "1 failed 1 warned 5 passed" in page.text
    warned = Html(get(page.links["1 warned"]).text)
    assert "orders.price" in warned.text
    assert "good_1" not in warned.text
    assert "good_1" in tab(column="id").text
    assert "check Prices" not in Html(tab(column="id", severity="P0").text).text
    assert "No assertion matches." in tab(status="great").text


def test_the_shadow_of_a_gate_is_shown_beside_it(tab: Get, scene: Scene) -> None:
    strict = replace(NULLS, status=Status.FAILED, expected="< 1%")
    extra = replace(NULLS, name="orders.new")
    shadow = ShadowReport("next.dql", "Orders", Outcome.BLOCKED, (strict, NOT_EMPTY, extra))
    passed = {"verdicts": (NULLS, NOT_EMPTY), "outcome": Outcome.PASSED}
    scene.ran(report_of(shadow=shadow, **passed))
    page = Html(tab().text)
    assert (
        "Shadow next.dql The outcome would be ✕ blocked . It has no effect on the gate: 2 "
        "verdicts differ" in page.text
    )
    assert "orders.new missing ✓ passed" in page.text


def test_an_unjudged_shadow_is_reported(tab: Get, scene: Scene) -> None:
    scene.ran(report_of(shadow=ShadowReport("next.dql", problem="an error in next.dql:1")))
    assert (
        "It was not evaluated. The gate is not affected: an error in next.dql:1"
        in Html(tab().text).text
    )
