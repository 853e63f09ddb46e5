"""The walk of someone on call over all pages: where each answer stands, and pictures of the pages.

`DQX_PICTURES=FOLDER pytest -m '' tests/ui/test_ui_walk.py` writes the pictures, of a phone and of a
desk, light and dark.
"""

from __future__ import annotations

import base64
import os
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import date, datetime, timedelta, timezone
from itertools import product
from pathlib import Path

import pytest

from dqx_airflow.results.incidents import IncidentNote, write_notes
from dqx_airflow.results.query import StoredResults
from dqx_airflow.tuning.proposals import propose
from dqx_airflow.values import (
    DatasetSnapshot,
    EnforcedContract,
    FailingRow,
    Outcome,
    Promotion,
    Responsible,
    Severity,
    SourceFile,
    Span,
    Status,
    Verdict,
)
from dqx_airflow.values.report import Arrival
from tests.made_reports import verdict_of
from tests.ui.chromium import PROGRAM, Page
from tests.ui.test_ui_review import proposal
from tests.ui.ui_scene import DAY, KEEP, Scene, report_of

pytestmark = [
    pytest.mark.airflow,
    pytest.mark.nightly,
    pytest.mark.skipif(not PROGRAM, reason="needs chromium"),
]

PICTURES = os.environ.get("DQX_PICTURES", "")
UNTIL = datetime.now(timezone.utc) + timedelta(hours=2)
SUITE = SourceFile(
    "orders.dql",
    """suite "Orders" {
  dataset orders
  check "Keys" {
    assert duplicate_count(order_id) == 0 severity P1
  }
  check "Customers" {
    // Without a customer, the invoice cannot be sent.
    assert null_count(customer_id) / num_rows() < 2% severity P1
  }
}
""",
)
EARLIER = SourceFile("orders.dql", SUITE.text.replace("< 2%", "< 3%"))
KNOWN = verdict_of(
    "orders.customer.known",
    check="Customers",
    expression="null_count(customer_id) / num_rows()",
    expected="< 2%",
    severity=Severity.P1,
    value=0.011,
    threshold=0.02,
    span=Span("orders.dql", 8, 12, 8, 54),
    source_line="    assert null_count(customer_id) / num_rows() < 2% severity P1",
)
ROWS = tuple(
    FailingRow(
        "orders",
        "customer_id is null",
        f'{{"order_id": {739935000 + 12 * k}, "store": "basel", "customer_id": null}}',
    )
    for k in range(20)
)
KEYS = verdict_of(
    "orders.key",
    check="Keys",
    expression="duplicate_count(order_id)",
    expected="== 0",
    severity=Severity.P1,
    value=0,
    threshold=0,
    span=Span("orders.dql", 4, 12, 4, 42),
    source_line="    assert duplicate_count(order_id) == 0 severity P1",
)
OTHERS = tuple(
    verdict_of(f"orders.{name}", check="implicit", value=number, expression=text, expected=limit)
    for name, number, text, limit in (
        ("not_empty", 12480, "num_rows()", "> 0"),
        ("rows", 12480, "num_rows()", "> 10000"),
        ("currency.known", 0, "null_count(currency)", "== 0"),
        ("store.there", 3, "unique_count(store)", "== 3"),
        ("amount.usual", 174.52, "average(amount)", "< 200"),
    )
)
CONTRACT = EnforcedContract(
    "shop-orders",
    "1.2.0",
    "odcs",
    checked=7,
    responsible=Responsible(
        "shop-team", ("ada@example.org",), "#shop-data", "https://example.org/r"
    ),
    description="Each order of the shop, once.",
    status="active",
)


def failed(verdict: Verdict, value: float, rows: tuple[FailingRow, ...] = ()) -> Verdict:
    return replace(
        verdict, status=Status.FAILED, value=value, scaled_value=value, failing_rows=rows
    )


def orders(on: date, rows: int, *, promoted: bool, name: str = "shop") -> DatasetSnapshot:
    version = on.toordinal() - DAY.toordinal() + 61
    moment = datetime(on.year, on.month, on.day, 2, 10, tzinfo=timezone.utc) + timedelta(days=1)
    by = "MERGE, userName etl, jobId 17, runId 9"
    arrival = Arrival(str(version), moment, by, files=2, rows=rows, removed=0)
    target = f"s3://lake/silver/{name}"
    return DatasetSnapshot(
        "orders",
        f"s3://lake/bronze/{name}",
        "delta",
        version,
        rows,
        fingerprint=f"{name}{on}",
        promote_to=target,
        arrivals=(arrival,),
        promotion=Promotion(target, version - 3, rows) if promoted else None,
    )


def shop(scene: Scene) -> None:
    """The gate `shop.gate`: the last two dates are blocked, and one a week ago."""
    for back in range(13, -1, -1):
        on = DAY - timedelta(days=back)
        is_bad = back in (0, 1, 9)
        rows = 12480 - 80 * back
        verdicts = (replace(KNOWN, value=0.009 + 0.001 * (back % 3)), KEYS, *OTHERS)
        if is_bad:
            known = failed(KNOWN, {0: 0.024, 1: 0.0225, 9: 0.031}[back], ROWS)
            keys = failed(KEYS, 10, ROWS[:10]) if back == 0 else KEYS
            verdicts = (known, keys, *OTHERS)
        report = report_of(
            100 + back,
            on=on,
            dag_id="shop",
            verdicts=verdicts,
            outcome=Outcome.BLOCKED if is_bad else Outcome.PASSED,
            datasets=(orders(on, rows, promoted=not is_bad),),
            contract=CONTRACT,
        )
        sources = (SUITE,) if is_bad else (EARLIER,)
        scene.ran(report, dag_id="shop", number=100 + back, sources=sources)
    scene.chain("up", "gate", "publish", "down", dag_id="shop")
    for number, (back, task_id) in enumerate(product((0, 1), ("publish", "down")), 500):
        scene.task(
            "shop",
            task_id,
            on=DAY - timedelta(days=back),
            state="upstream_failed",
            operator="EmptyOperator",
            number=number,
        )
    scene.dag("shop_down")
    scene.due(UNTIL + timedelta(hours=2), "shop")
    scene.updates("publish", "shop_ok", "shop_down", dag_id="shop")


def others(scene: Scene) -> None:
    """Gates in every other state."""
    for number, name in enumerate(("returns", "payments", "customers", "prices")):
        for back in range(13, -1, -1):
            on = DAY - timedelta(days=back)
            now = back == 0
            outcome, verdicts = Outcome.PASSED, (KNOWN, *OTHERS)
            if now and name == "returns":
                outcome, verdicts = Outcome.BLOCKED, (failed(KNOWN, 0.029, ROWS[:12]), *OTHERS)
            if now and name == "payments":
                broken = replace(
                    KNOWN,
                    status=Status.ERROR,
                    value=None,
                    scaled_value=None,
                    reason="no Delta table at s3://lake/bronze/payments",
                )
                outcome, verdicts = Outcome.BROKEN, (broken,)
            if now and name == "customers":
                let = replace(
                    failed(KNOWN, 0.022, ROWS), accepted_by="accepted by op: shop was shut"
                )
                outcome, verdicts = Outcome.ACCEPTED, (let, *OTHERS)
            if now and name == "prices":
                mild = replace(failed(KNOWN, 0.03, ROWS[:3]), severity=Severity.P3)
                outcome, verdicts = Outcome.WARNED, (mild, *OTHERS)
            good = outcome not in (Outcome.BLOCKED, Outcome.BROKEN)
            report = report_of(
                1000 * (number + 2) + back,
                on=on,
                dag_id=name,
                verdicts=verdicts,
                outcome=outcome,
                datasets=(orders(on, 410, promoted=good, name=name),),
            )
            ran = scene.ran(report, dag_id=name, number=1000 * (number + 2) + back)
            if now and name == "returns":
                scene.asks(ran.attempt.id, UNTIL, KEEP)
    for back in range(13, -1, -1):
        on = DAY - timedelta(days=back)
        if back < 2:
            scene.task("stock", on=on, state="failed", number=9000 + back)
            continue
        report = report_of(
            9000 + back,
            on=on,
            dag_id="stock",
            verdicts=(KNOWN, *OTHERS),
            outcome=Outcome.PASSED,
            datasets=(orders(on, 410, promoted=True, name="stock"),),
        )
        scene.ran(report, dag_id="stock", number=9000 + back)
    for number, name in enumerate(("carts", "clicks", "refunds", "visits", "stores")):
        for back in range(6, -1, -1):
            on = DAY - timedelta(days=back)
            report = report_of(
                20000 + 100 * number + back,
                on=on,
                dag_id=name,
                verdicts=(KNOWN, *OTHERS),
                outcome=Outcome.PASSED,
                datasets=(orders(on, 900, promoted=True, name=name),),
            )
            scene.ran(report, dag_id=name, number=20000 + 100 * number + back)


RUN = f"run_id=scheduled__{DAY}&task_id=gate&map_index=-1"
PAGES = {
    "board": "board",
    "gate": f"gate?dag_id=shop&{RUN}",
    "gate-waiting": f"gate?dag_id=returns&{RUN}",
    "gate-broken": f"gate?dag_id=payments&{RUN}",
    "gate-accepted": f"gate?dag_id=customers&{RUN}",
    "gate-passed": f"gate?dag_id=carts&{RUN}",
    "no-report": f"gate?dag_id=stock&{RUN}",
    "incident": "incident?dag_id=shop&task_id=gate",
    "incident-ended": f"incident?dag_id=shop&task_id=gate&date={DAY - timedelta(days=9)}",
    "slices": "slices",
    "alerts": "alerts",
    "datasets": "datasets",
    "dataset": "dataset?location=s3://lake/bronze/shop",
    "contracts": "contracts",
    "contract": "contract?id=shop-orders",
    "coverage": "coverage",
    "review": "review",
    "runs": "runs?dag_id=stock&task_id=gate",
    "mapped": f"gate?dag_id=sales&run_id=scheduled__{DAY}&task_id=gate",
}


@pytest.fixture
def furnished(scene: Scene) -> Scene:
    shop(scene)
    others(scene)
    gate, on = "shop.gate", DAY - timedelta(days=9)
    store = StoredResults(str(scene.root))
    ended = IncidentNote(gate, on, "closed", "op", "the shop was shut, no one needs this date", -1)
    write_notes(store, [ended])
    mapped(scene)
    propose(str(scene.root), proposal(gate="shop.gate", suite="Orders"))
    scene.go_on()
    return scene


def mapped(scene: Scene) -> None:
    """A mapped gate, whose instances differ by the rows that they read."""
    for index, country in enumerate(("CH", "DE", "FR")):
        dataset = orders(DAY, 410, promoted=True, name="sales")
        dataset = replace(dataset, condition=f"country = '{country}'")
        report = report_of(
            30000 + index,
            dag_id="sales",
            verdicts=(failed(KNOWN, 0.05, ROWS[:2]) if index == 1 else KNOWN, *OTHERS),
            outcome=Outcome.BLOCKED if index == 1 else Outcome.PASSED,
            datasets=(dataset,),
        )
        key = replace(report.run_key, scheduler_run=f"scheduled__{DAY}[{index}]")
        report = replace(report, run_key=key)
        scene.ran(report, dag_id="sales", number=30000, map_index=index)


def shoot(page: Page, file: Path, width: int) -> None:
    """Takes a picture of the whole page."""
    end = time.monotonic() + 5
    while not page.run("document.querySelector('.bar .n')") and time.monotonic() < end:
        time.sleep(0.1)  # the numbers in the bar come later
    height = int(page.run("document.documentElement.scrollHeight"))
    page.call(
        "Emulation.setDeviceMetricsOverride",
        width=width,
        height=min(height, 6000),
        deviceScaleFactor=1,
        mobile=False,
    )
    page.run("document.documentElement.style.scrollbarWidth = 'none'")
    file.write_bytes(base64.b64decode(page.call("Page.captureScreenshot", format="png")["data"]))


ANSWERS = {
    "what is wrong": (150, 290),
    "since": (260, 560),
    "how bad": (260, 560),
    "rows held back": (260, 560),
    "brought by": (260, 560),
    "waits": (260, 560),
    "owner": (260, 560),
    "what can I do": (340, 680),
}
"""The pixels from the top of a page above which each answer has to begin, at 1,400 and at 390
pixels of width."""

TOPS = """
    Object.fromEntries([...document.querySelectorAll("[data-answer]")].map(
        (one) => [one.dataset.answer, Math.round(one.getBoundingClientRect().top + scrollY)]))
"""


@pytest.mark.parametrize("name", ["gate", "gate-waiting", "gate-broken", "no-report", "incident"])
def test_each_answer_is_found_at_the_top(
    furnished: Scene, look: Callable[..., Page], name: str
) -> None:
    page = look(PAGES[name], "eve")
    late = {}
    try:
        for place, width in enumerate((1400, 390)):
            page.be_wide(width)
            tops = page.run(TOPS)
            for answer, most in ANSWERS.items():
                # A gate that waits has its question before them.
                banner = 60 if name == "gate-waiting" and answer == "what can I do" else 0
                if tops[answer] > most[place] + banner:
                    late[answer, width] = tops[answer]
    finally:
        page.call("Emulation.clearDeviceMetricsOverride")
    assert late == {}


@pytest.mark.skipif(not PICTURES, reason="DQX_PICTURES is not set")
def test_pictures(furnished: Scene, look: Callable[..., Page]) -> None:
    folder = Path(PICTURES)
    for theme in ("light", "dark"):
        for name, at in PAGES.items():
            page = look(at, "eve", theme=theme)
            for width in (390, 1400):
                page.be_wide(width)
                shoot(page, folder / f"{name}-{width}-{theme}.png", width)
            page.call("Emulation.clearDeviceMetricsOverride")
