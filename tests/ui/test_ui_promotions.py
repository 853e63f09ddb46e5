"""Promoted rows, on the tab of a gate and in the history of datasets."""

from __future__ import annotations

from datetime import timedelta

import pytest

from dqx_airflow.values import DatasetSnapshot, GateReport, Outcome, Promotion
from tests.ui.ui_scene import DAY, NULLS, PLACE, Get, Html, Scene, report_of

pytestmark = pytest.mark.airflow


BRONZE = "/lake/bronze/orders"


def promoting(number: int, *, passed: bool, days_ago: int = 0) -> GateReport:
    """A report of a gate that is to promote version 7 of its dataset."""
    done = Promotion(BRONZE, 40 + number, 5000) if passed else None
    staged = DatasetSnapshot(
        "orders",
        "s3://lake/orders",
        "delta",
        version=7,
        rows=5000 - days_ago,
        promotion=done,
        promote_to=BRONZE,
    )
    if not passed:
        return report_of(number, on=DAY - timedelta(days=days_ago), datasets=(staged,))
    return report_of(
        number,
        on=DAY - timedelta(days=days_ago),
        verdicts=(NULLS,),
        outcome=Outcome.PASSED,
        datasets=(staged,),
    )


def test_the_tab_shows_source_and_target_versions(tab: Get, scene: Scene) -> None:
    scene.ran(promoting(1, passed=True))
    page = Html(tab().text)
    assert (
        "Promotion dataset from version to version there rows "
        f"orders 7 {BRONZE} 41 5,000" in page.text
    )


def test_the_tab_shows_why_nothing_was_promoted(tab: Get, scene: Scene) -> None:
    scene.ran(promoting(1, passed=False))
    page = Html(tab().text)
    assert f"orders 7 {BRONZE} not promoted: the gate is blocked" in page.text
    assert "No rows were promoted." in page.text


def test_a_tab_of_a_task_that_succeeded_without_its_rows_says_so(tab: Get, scene: Scene) -> None:
    """It was marked as success, or `on_violation` lets it pass."""
    scene.ran(promoting(1, passed=False), state="success")
    assert "The task succeeded, but its rows were not promoted." in Html(tab().text).text


@pytest.mark.parametrize(
    ("passed", "message"),
    [(True, f"orders 7 {BRONZE} 41"), (False, "orders 7 not promoted: the gate is blocked")],
)
def test_promotions_are_shown_from_the_task_summary(
    tab: Get, scene: Scene, passed: bool, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene.ran(promoting(1, passed=passed))
    monkeypatch.delenv("AIRFLOW__DQX__RESULTS_ROOT")
    assert message in Html(tab().text).text


def test_a_gate_without_promotions_has_no_promotion_section(tab: Get, scene: Scene) -> None:
    scene.ran(report_of())
    assert "Promotion" not in Html(tab().text).text


def test_the_history_of_a_dataset_marks_promotions(get: Get, scene: Scene) -> None:
    scene.dag()
    for number, passed in enumerate((True, False, True), 1):
        scene.ran(promoting(number, passed=passed, days_ago=3 - number), number=number)
    answer = get("dataset", location=PLACE)
    page = Html(answer.text)
    assert (
        f"2024-03-20 passed 5,000 7 version 43 of {BRONZE} "
        f"2024-03-19 blocked 4,999 7 no "
        f"2024-03-18 passed 4,998 7 version 41 of {BRONZE}" in page.text
    )
    assert len(page.all("circle", class_="event")) == 2
    assert "2024-03-18: 4998, passed, promoted, version 41" in answer.text


def test_without_promotions_the_history_has_no_column_for_them(get: Get, scene: Scene) -> None:
    scene.dag()
    for number in (1, 2):
        scene.ran(report_of(number, on=DAY - timedelta(days=number)), number=number)
    page = Html(get("dataset", location=PLACE).text)
    assert "date gate rows version 2024-03-19 blocked 5,000 7" in page.text
    assert "promoted" not in page.text
