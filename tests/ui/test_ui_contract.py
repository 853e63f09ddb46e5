"""The page of a contract, and the links to it from the board, the tab and the pages of datasets."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from dqx_airflow.values import (
    DatasetSnapshot,
    EnforcedContract,
    GateReport,
    Outcome,
    Responsible,
    Span,
    Status,
    Verdict,
)
from tests.ui.ui_scene import BAD_NULLS, DAY, NOT_EMPTY, NULLS, PLACE, Get, Html, Scene, report_of

pytestmark = pytest.mark.airflow


ORDERS = EnforcedContract(
    "orders", "2.3.0", "odcs", checked=9, documented=4, unsupported=1, pin="2"
)
BROKEN = replace(
    BAD_NULLS, clause="schema.orders.id.required", span=Span("orders.odcs.yaml", 14, 9, 14, 23)
)
KEPT = replace(NULLS, clause="schema.orders.id.required")


def under(
    number: int,
    *verdicts: Verdict,
    days_ago: int = 0,
    contract: EnforcedContract = ORDERS,
    **changes: object,
) -> GateReport:
    """A report about the data of some days ago, of a gate that enforces a contract."""
    is_bad = any(verdict.status is Status.FAILED for verdict in verdicts)
    return report_of(
        number,
        on=DAY - timedelta(days=days_ago),
        verdicts=verdicts,
        outcome=Outcome.BLOCKED if is_bad else Outcome.PASSED,
        contract=contract,
        **changes,
    )


def test_the_index_lists_contracts_worst_first_and_is_searched(get: Get, scene: Scene) -> None:
    paid = replace(ORDERS, id="payments", name="Payments", responsible=Responsible(owner="Finance"))
    scene.ran(under(1, KEPT), number=1)
    scene.ran(under(2, KEPT, contract=paid, dag_id="bank"), dag_id="bank", number=2)
    newer = replace(paid, version="2.4.0")
    scene.ran(under(3, BROKEN, contract=newer, dag_id="till"), dag_id="till", number=3)
    scene.ran(report_of(4, dag_id="none"), dag_id="none", number=4)
    rows = get("api/v1/contracts").json()["rows"]
    assert [(row["id"], row["state"], row["owner"], row["versions"]) for row in rows] == [
        ("payments", "blocked", "Finance", ["2.4.0", "2.3.0"]),
        ("orders", "passed", "", ["2.3.0"]),
    ]
    page = Html(get("contracts").text)
    assert page.links["payments"] == "contract?id=payments"
    assert "2 contracts" in page.text
    for query, found in (({"search": "finance"}, "payments"), ({"outcome": "passed"}, "orders")):
        own = get("api/v1/contracts", **query).json()["rows"]
        assert [row["id"] for row in own] == [found]
    assert "No contract matches" in Html(get("contracts", search="nothing").text).text
    assert get("api/v1/contracts", "ben").json()["rows"] == []


def a_history(scene: Scene, *, stored: bool = True) -> None:
    """Two versions of a contract: four runs of the older, two of the newer, the last one bad."""
    scene.dag()
    older = replace(ORDERS, version="2.2.0", checked=7)
    for days_ago in range(5, 1, -1):
        verdict = BROKEN if days_ago == 4 else KEPT
        report = under(days_ago + 1, verdict, NOT_EMPTY, days_ago=days_ago, contract=older)
        scene.ran(report, number=days_ago + 1, stored=stored)
    scene.ran(under(2, KEPT, NOT_EMPTY, days_ago=1), number=2, stored=stored)
    scene.ran(under(1, BROKEN, NOT_EMPTY), stored=stored)


@pytest.mark.slow
def test_versions_are_listed_with_coverage_and_first_and_last_run(get: Get, scene: Scene) -> None:
    a_history(scene)
    page = Html(get("contract", id="orders").text)
    assert "Contract orders version 2.3.0 format odcs" in page.text
    assert "clauses 9 checked, 4 documented, 1 unsupported" in page.text
    assert (
        "2.3.0 1 passed , 1 blocked 2024-03-19 by lake.gate 2024-03-20 by lake.gate 1 9 4 1 "
        "2.2.0 3 passed , 1 blocked 2024-03-15 by lake.gate 2024-03-18 by lake.gate 1 7 4 1"
    ) in page.text
    runs = "runs?dag_id=lake&task_id=gate"
    assert page.links["2024-03-15"] == f"{runs}&from=2024-03-15&to=2024-03-15"
    assert page.links["3 passed"] == f"{runs}&outcome=passed&from=2024-03-15&to=2024-03-18"


@pytest.mark.more
def test_versions_older_than_the_board_are_listed(get: Get, scene: Scene) -> None:
    a_history(scene)
    first = under(90, KEPT, days_ago=300, contract=replace(ORDERS, version="1.0.0"))
    scene.ran(first, number=90, pushed=False)
    assert "1.0.0 1 passed 2023-05-25 by lake.gate" in Html(get("contract", id="orders").text).text


def test_gates_are_listed_with_the_outcome_of_each_dataset(get: Get, scene: Scene) -> None:
    a_history(scene)
    scene.dag("shop")
    returns = replace(KEPT, name="returns.id", datasets=("returns",))
    datasets = tuple(
        DatasetSnapshot(name, f"s3://lake/{name}", "delta") for name in ("orders", "returns")
    )
    report = under(50, BROKEN, returns, dag_id="shop", datasets=datasets)
    scene.ran(report, dag_id="shop", number=50)
    page = Html(get("contract", id="orders").text)
    assert "✕ blocked lake.gate 50% of orders have no id orders.id.null_share · limit" in page.text
    assert "orders 1 of 1 failed returns 0 of 1 failed" in page.text
    assert "✕ blocked lake.gate" in Html(get(page.links["lake.gate"]).text).text
    assert "Dataset returns" in Html(get(page.links["returns"]).text).text


def test_broken_clauses_are_listed_with_their_location(get: Get, scene: Scene) -> None:
    a_history(scene)
    text = Html(get("contract", id="orders").text).text
    assert "Broken clauses in the last 6 runs" in text
    assert "schema.orders.id.required orders.odcs.yaml :14 P0 2 of 6 runs 2024-03-20 50%" in text


def test_a_broken_clause_links_to_its_last_report(get: Get, scene: Scene) -> None:
    scene.dag()
    for number, days_ago in enumerate((3, 2, 1), 1):
        verdict = KEPT if days_ago == 1 else BROKEN
        scene.ran(under(number, verdict, days_ago=days_ago), number=number)
    page = Html(get("contract", id="orders").text)
    assert "data of 2024-03-18" in Html(get(page.links["lake.gate"]).text).text


@pytest.mark.parametrize(
    ("path", "name", "line", "expected"),
    [
        ("models.orders.fields.amount.minimum", "minimum", "minimum: 5", "minimum 5"),
        (
            "schema[0].properties[1].logicalTypeOptions.minimum",
            "minimum",
            "logicalTypeOptions: {minimum: -0.5, maximum: 9}",
            "minimum -0.5",
        ),
        ("a.maxLength", "max_length", '"maxLength": 9  # letters', "max length 9"),
        ("a.pattern", "pattern", "pattern: '^[a-z]{2,}$'", "pattern '^[a-z]{2,}$'"),
        ("schema[0].properties[1].required", "required", "required: true", "required"),
        ("a.enum", "enum", "enum:", "enum"),
        ("schema[0].properties[1]", "exists", "- name: amount", None),
        ("schema[0].properties[1].quality[0]", "range", "- metric: x", None),
    ],
)
def test_a_clause_is_described_in_plain_words(
    path: str, name: str, line: str, expected: str | None
) -> None:
    from dqx_airflow.ui.verdict_text import clause_line

    verdict = replace(
        BROKEN, name=f"orders.amount.{name}", column="amount", clause=path, source_line=line
    )
    assert clause_line(verdict) == (f"orders.amount: {expected}" if expected else verdict.name)


def test_the_page_shows_the_description_and_contacts_of_the_contract(
    get: Get, scene: Scene
) -> None:
    contract = replace(
        ORDERS,
        name="Orders of the shop",
        description="Each order once.",
        status="active",
        responsible=Responsible("sales", runbook="https://example.org/r", business_hours="9 to 5"),
    )
    scene.ran(under(1, KEPT, contract=contract), stored=False)
    answer = get("contract", id="orders").text
    text = Html(answer).text
    assert "Contract orders Orders of the shop Each order once." in text
    assert "version 2.3.0 status active format odcs" in text
    assert "owner sales runbook https://example.org/r business hours 9 to 5" in text
    assert Html(answer).links["https://example.org/r"] == "https://example.org/r"


def test_without_the_store_the_page_uses_task_summaries(
    get: Get, scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    a_history(scene, stored=False)
    stands = "2.3.0 1 passed , 1 blocked 2024-03-19 by lake.gate 2024-03-20 by lake.gate 1 9 4 1"
    assert stands in Html(get("contract", id="orders").text).text
    monkeypatch.delenv("AIRFLOW__DQX__RESULTS_ROOT")
    page = Html(get("contract", id="orders").text)
    assert "This server has no results store" in page.text
    assert stands in page.text
    assert "schema.orders.id.required P0 2 of 6 runs 2024-03-20 50%" in page.text


def test_only_runs_under_this_contract_are_counted(get: Get, scene: Scene) -> None:
    a_history(scene)
    other = replace(ORDERS, id="invoices", version="9.0.0")
    tomorrow = under(60, replace(BROKEN, clause="invoices.total"), days_ago=-1, contract=other)
    scene.ran(tomorrow, number=60)
    text = Html(get("contract", id="orders").text).text
    assert "9.0.0" not in text
    assert "invoices.total" not in text
    assert "Broken clauses in the last 6 runs" in text


def test_of_a_mapped_gate_the_instances_under_the_contract_are_shown(
    get: Get, scene: Scene
) -> None:
    other = replace(ORDERS, id="invoices")
    scene.ran(under(1, BROKEN, contract=other), map_index=0)
    scene.ran(under(2, KEPT), map_index=1)
    assert "✓ passed lake.gate" in Html(get("contract", id="orders").text).text
    assert "✕ blocked lake.gate" in Html(get("contract", id="invoices").text).text
    for contract in ("orders", "invoices"):
        assert "lake.gate" in Html(get("board", contract=contract).text).text


def test_a_contract_without_a_version_has_none(get: Get, scene: Scene) -> None:
    scene.ran(under(1, KEPT, contract=replace(ORDERS, version=None)))
    text = Html(get("contract", id="orders").text).text
    assert "version none format odcs" in text
    assert "Broken clauses in the last 1 run None." in text


@pytest.mark.slow
def test_every_page_about_a_gate_leads_to_its_contract(get: Get, tab: Get, scene: Scene) -> None:
    a_history(scene)
    pages = (get("board"), get("dataset", location=PLACE), tab())
    for page in pages:
        leads = {str(link["href"]) for link in Html(page.text).all("a")}
        (href,) = {link for link in leads if link.startswith("contract?")}
        assert "Contract orders" in Html(get(href).text).text


@pytest.mark.more
def test_of_many_gates_the_worst_are_shown_and_the_board_has_the_rest(
    get: Get, scene: Scene
) -> None:
    for number in range(12):
        dag_id = f"dag_{number:02}"
        scene.dag(dag_id)
        report = under(number + 1, BROKEN if number == 11 else KEPT, dag_id=dag_id)
        scene.ran(report, dag_id=dag_id, number=number + 1)
    page = Html(get("contract", id="orders").text)
    assert page.text.index("dag_11.gate") < page.text.index("dag_00.gate")
    assert "dag_10.gate" not in page.text
    assert "2 more gates: see the board" in page.text
    assert "dag_10.gate" in Html(get(page.links["board"]).text).text


def test_gates_can_be_filtered_by_contract(get: Get, scene: Scene) -> None:
    a_history(scene)
    scene.dag("shop")
    scene.ran(report_of(70, dag_id="shop"), dag_id="shop", number=70)
    shown = Html(get("board", contract="orders").text).text
    assert "lake.gate" in shown
    assert "shop.gate" not in shown
    assert "No gate matches" in get("board", contract="invoices").text


def test_a_contract_without_gates_is_not_found(get: Get, scene: Scene) -> None:
    a_history(scene)
    assert get("contract", id="invoices").status_code == 404
    assert get("contract").status_code == 404
