"""Every page is accessible: WCAG 2.2 AA in both themes, by keyboard, at any width."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from dqx_airflow.results.decisions import new_waiver, write_waivers
from dqx_airflow.results.query import StoredResults
from dqx_airflow.values import (
    EnforcedContract,
    Outcome,
    Responsible,
    Severity,
    SourceFile,
    Span,
    Status,
)
from tests.ui.axe import RUN, axe_script
from tests.ui.chromium import PROGRAM, Page
from tests.ui.ui_scene import BAD_NULLS, DAY, NOT_EMPTY, NULLS, PLACE, Scene, report_of

if TYPE_CHECKING:
    from dqx_airflow.values import GateReport, Verdict

pytestmark = [
    pytest.mark.airflow,
    pytest.mark.slow,
    pytest.mark.skipif(not PROGRAM, reason="needs chromium"),
]

Look = Callable[..., Page]

RUN_OF_DAY = "dag_id=lake&run_id=scheduled__2024-03-20&map_index={MAP_INDEX}&task_id"
PAGES = {
    "gate": f"gate?{RUN_OF_DAY}=gate",
    "mapped gate": f"gate?{RUN_OF_DAY}=mapped",
    "no report": f"gate?{RUN_OF_DAY}=silent",
    "no gate": f"gate?{RUN_OF_DAY}=load",
    "board": "board",
    "datasets": "datasets",
    "contracts": "contracts",
    "coverage": "coverage",
    "dataset": f"dataset?location={PLACE}",
    "contract": "contract?id=orders",
    "runs": "runs?dag_id=lake&task_id=gate",
    "incident": "incident?dag_id=lake&task_id=gate",
    "slices": "slices",
    "alerts": "alerts",
    "review": "review",
    "nowhere": "dataset?location=nowhere",
}
"""A page of each kind, and those that a page shows instead."""
WIDTHS = (390, 768, 1280, 1900)
PHONE, DESK = 390, 1400
HIDDEN_COLUMNS = """
    [...document.querySelectorAll(".scroll")]
        .filter((one) => one.scrollWidth > one.clientWidth).map((one) => one.ariaLabel)
"""
CONTRACT = EnforcedContract(
    "orders",
    "2.3.0",
    "odcs",
    checked=9,
    unsupported=1,
    pin="2",
    responsible=Responsible("sales", ("ada@example.org",), "#sales", "https://example.org/r"),
    description="Each order of the shop, once.",
    status="active",
)
SUITE = SourceFile("orders.dql", "".join(f"line {number}\n" for number in range(1, 201)))


def verdicts(is_bad: bool) -> tuple[Verdict, ...]:
    """One of each status, and many that pass."""
    bad = replace(
        BAD_NULLS if is_bad else NULLS,
        clause="schema[0].properties[1].required",
        column="id",
        severity=Severity.P1,  # what a person may accept and waive
    )
    scaled = replace(
        NOT_EMPTY, value=634, scaled_value=951, multiplier=1.5, profiles=("Thanksgiving",)
    )
    broken = replace(NULLS, name="orders.idd", status=Status.ERROR, reason="no column idd")
    late = replace(NULLS, name="orders.week", status=Status.SKIPPED, reason="no data of other days")
    mild = replace(BAD_NULLS, name="orders.mild", severity=Severity.P3, failing_rows=())
    span = Span("orders.dql", 90, 5, 90, 9)
    many = [replace(NULLS, name=f"orders.column_{n}.share", span=span) for n in range(8)]
    return (bad, scaled, *([broken, late, mild] if is_bad else []), *many)


def report(number: int, *, days_ago: int = 0, is_bad: bool = True, **changes: Any) -> GateReport:
    outcome = Outcome.BLOCKED if is_bad else Outcome.PASSED
    on = DAY - timedelta(days=days_ago)
    contract = changes.pop("contract", CONTRACT)
    made = report_of(
        number, on=on, verdicts=verdicts(is_bad), outcome=outcome, contract=contract, **changes
    )
    datasets = tuple(replace(dataset, fingerprint="f") for dataset in made.datasets)
    return replace(made, datasets=datasets)


@pytest.fixture
def furnished(scene: Scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Scene:
    """An Airflow in which something is on every page."""
    scene.dag(owners="ada, ben")
    for days_ago in range(12, -1, -1):
        gate_report = report(days_ago + 1, days_ago=days_ago, is_bad=days_ago in (0, 1, 7))
        scene.ran(gate_report, number=days_ago + 1, sources=(SUITE,) if days_ago == 0 else ())
    scene.ran(report(40, is_bad=False, task_id="later"), task_id="later", number=40)
    for index in range(3):
        gate_report = report(
            50 + index, is_bad=index == 1, task_id="mapped", dataset=f"part_{index}"
        )
        key = replace(gate_report.run_key, scheduler_run=f"scheduled__{DAY}[{index}]")
        scene.ran(
            replace(gate_report, run_key=key), task_id="mapped", number=50 + index, map_index=index
        )
    scene.task(task_id="silent", state="failed", number=60)
    scene.task(task_id="load", operator="BashOperator", state="success", number=61)
    results = StoredResults(str(scene.root))
    until = datetime.now(timezone.utc).date() + timedelta(days=3)
    why = {"reason": "ticket 7", "owner": "ben", "author": "eve", "below": "60%"}
    waiver = new_waiver(results, "lake.gate", "orders.id.null_share", until=until, **why)
    write_waivers(results, [waiver])
    fields = [{"name": f"a_column_with_a_long_name_{number}"} for number in range(30)]
    facets = {"schema": {"fields": fields}}
    table = {"namespace": "s3://lake", "name": "silver/" + "part" * 20, "facets": facets}
    event = {"job": {"namespace": "prod", "name": "lake.load"}, "inputs": [table]}
    (tmp_path / "events.jsonl").write_text(json.dumps(event))
    monkeypatch.setenv("AIRFLOW__DQX__LINEAGE_EVENTS", str(tmp_path / "events.jsonl"))
    return scene


def test_every_page_is_in_the_list(api_environment: None) -> None:
    from dqx_airflow.ui import site

    addresses = {page.partition("?")[0] for page in PAGES.values()}
    assert addresses == {page.address for page in site.PAGES}


@pytest.mark.parametrize("theme", ["light", pytest.param("dark", marks=pytest.mark.nightly)])
def test_every_page_keeps_to_wcag(furnished: Scene, look: Look, theme: str) -> None:
    script = axe_script()
    found: dict[str, list[str]] = {}
    for name, at in PAGES.items():
        page = look(at, "eve", theme=theme)
        page.run("document.querySelectorAll('details').forEach(one => { one.open = true })")
        page.run(script)
        try:
            for width in (PHONE, DESK):
                page.be_wide(width)
                result = page.run(RUN)
                assert result["rules"] > 8, (name, result)
                if result["found"]:
                    found[f"{name} {width}"] = result["found"][:5]
        finally:
            page.call("Emulation.clearDeviceMetricsOverride")
    assert found == {}


def test_every_page_fits_from_a_phone_to_a_wide_screen(furnished: Scene, look: Look) -> None:
    wider: dict[tuple[str, int], Any] = {}
    for name, at in PAGES.items():
        page = look(at, "eve")
        page.run("document.querySelectorAll('details').forEach(one => { one.open = true })")
        try:
            for width in WIDTHS:
                page.be_wide(width)
                taken = page.run("document.documentElement.scrollWidth")
                if taken > width:
                    wider[name, width] = taken
                if width == PHONE and (hidden := page.run(HIDDEN_COLUMNS)):
                    wider[name, width] = hidden
        finally:
            page.call("Emulation.clearDeviceMetricsOverride")
    assert wider == {}


def test_every_control_is_reachable_by_tab(furnished: Scene, look: Look) -> None:
    """Each control is reached once and shows it; bars and points lead where a list leads, too."""
    missed: dict[str, Any] = {}
    for name, at in PAGES.items():
        page = look(at, "eve")
        # A field of several parts, such as a date, has the focus several times in a row.
        # Of the choices of a group, Tab reaches one, and the arrow keys the others.
        wanted = page.run(
            "[...document.querySelectorAll('a[href], button:enabled, select, summary, "
            "input:not([type=hidden])')].filter(one => one.tabIndex >= 0 && "
            "!one.closest('label')?.previousElementSibling?.querySelector('[type=radio]') && "
            "one.checkVisibility() && one.getClientRects().length).length"
        )
        page.run("window.reached = new Set(); window.unseen = []")
        for _ in range(wanted + 60):
            page.press("Tab")
            is_over = page.run(
                "(() => { const one = document.activeElement; "
                "if (one === window.last) return false; "
                "if (one === document.body || reached.has(one)) return true; "
                "reached.add(one); window.last = one; "
                "const style = getComputedStyle(one); "
                "if (style.outlineStyle === 'none') unseen.push(one.outerHTML.slice(0, 100)); "
                "return false; })()"
            )
            if is_over:
                break
        result = page.run(
            "({reached: [...reached].filter(one => one.matches('a, button, select, summary, "
            "input')).length, unseen})"
        )
        if result["reached"] < wanted or result["unseen"]:
            missed[name] = {"wanted": wanted, **result}
    assert missed == {}


def test_the_rules_detect_low_contrast(furnished: Scene, look: Look) -> None:
    page = look("board", theme="light")
    page.run(axe_script())
    page.run("document.querySelector('tbody th a').style.color = '#c8c8c8'")
    (found,) = page.run(RUN)["found"]
    assert found.startswith("color-contrast")
