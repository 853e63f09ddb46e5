"""The pages as JSON: the same values, for the same people, as their description says."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from jsonschema import Draft202012Validator

from dqx_airflow.tuning.proposals import propose
from dqx_airflow.values import DatasetSnapshot, EnforcedContract, Outcome, Responsible
from tests.json_heads import require_same_head
from tests.markdown_cases import REWRITE
from tests.ui.test_ui_review import proposal
from tests.ui.ui_scene import BAD_NULLS, DAY, NOT_EMPTY, NULLS, ROWS, Get, Scene, report_of

pytestmark = pytest.mark.airflow


ORDERS = EnforcedContract("orders", "2.3.0", "odcs", responsible=Responsible(owner="Sales data"))
TASK = "dag_id=lake&task_id=gate"
REPORT = f"gate?{TASK}&run_id=scheduled__{DAY}"
ANSWERS = {
    "board": ("rows", 0, "worst", "assertion"),
    "slices": ("rows", 0, "incident", "runs", 0, "worst"),
    f"incident?{TASK}": ("faults", 0, "verdict", "assertion"),
    REPORT: ("assertions", 0, "verdict", "assertion"),
    f"runs?{TASK}": ("rows", 0, "worst"),
    "datasets": ("rows", 0, "gates", 0, "worst", "assertion"),
    "dataset?location=s3://lake/orders": ("gates", 0, "assertions", 0, "newest", "assertion"),
    "alerts": ("groups", 0, "gate"),
    "review": ("proposals", 0, "stored", "proposal", "gate"),
    "coverage": ("tables", 0, "checked_by", 0),
    "contracts": ("rows", 0, "gates", 0, "worst", "assertion"),
    "contract?id=orders": ("gates", 0, "row", "worst", "assertion"),
}
"""The addresses below `api/v1/`, with the place of a value that only readers of the DAG may see."""

SECRETS = (BAD_NULLS.name, "lake.gate")


@pytest.fixture
def week(scene: Scene) -> Scene:
    """A gate that passed and then blocked for two days, with failing rows, a target and a
    contract; a mapped gate; a gate that never ran because of the first one."""
    scene.dag()
    orders = DatasetSnapshot(
        "orders", "s3://lake/orders", "delta", 7, 5000, promote_to="s3://lake/silver"
    )
    for place, verdict in enumerate((BAD_NULLS, BAD_NULLS, NULLS)):
        outcome = Outcome.PASSED if verdict is NULLS else Outcome.BLOCKED
        value = replace(verdict, scaled_value=Fraction(1, 3), value=Fraction(1, 3))
        report = report_of(
            place + 1,
            on=DAY - timedelta(days=place),
            verdicts=(value, NOT_EMPTY),
            outcome=outcome,
            contract=ORDERS,
            datasets=(orders,),
        )
        scene.ran(report, number=place + 1)
    scene.task(task_id="next", state="upstream_failed", operator="DqlGateOperator", number=8)
    for index in (0, 1):
        mapped = report_of(10 + index, task_id="many", verdicts=(NULLS,), outcome=Outcome.PASSED)
        scene.ran(mapped, task_id="many", map_index=index, number=10)
    scene.chain("gate", "next")
    propose(str(scene.root), proposal())
    return scene


@pytest.mark.few(4, apart=True)
@pytest.mark.usefixtures("week")
@pytest.mark.parametrize(
    "page",
    [
        *ANSWERS,
        f"gate?dag_id=lake&task_id=next&run_id=scheduled__{DAY}",
        f"gate?dag_id=lake&task_id=many&run_id=scheduled__{DAY}",
    ],
)
def test_an_answer_is_what_its_description_says(get: Get, page: str) -> None:
    answer, described = get(f"api/v1/{page}"), get("api/v1/openapi.json").json()
    assert answer.headers["content-type"] == "application/json"
    require_same_head(answer.json())
    path = described["paths"][f"/api/v1/{page.partition('?')[0]}"]["get"]
    schema = path["responses"]["200"]["content"]["application/json"]["schema"]
    closed = {
        name: {
            **own,
            "additionalProperties": "enum" in own or own.get("additionalProperties", False),
        }
        for name, own in described["components"]["schemas"].items()
    }
    found = Draft202012Validator({**schema, "components": {"schemas": closed}})
    assert [error.message for error in found.iter_errors(answer.json())] == []
    names = {parameter["name"] for parameter in path.get("parameters", ())}
    assert names.issuperset(
        part.partition("=")[0] for part in page.partition("?")[2].split("&") if part
    )


@pytest.mark.few(3, apart=True)
@pytest.mark.usefixtures("week")
@pytest.mark.parametrize("page", ANSWERS)
def test_json_is_for_those_who_may_see_the_page(get: Get, page: str) -> None:
    found: Any = get(f"api/v1/{page}").json()
    assert get(f"api/v1/{page}", "eve").json() == found, "editors and viewers see the same"
    for step in ANSWERS[page]:
        found = found[step]
    assert found in SECRETS
    for user in ("ben", None):
        refused, as_page = get(f"api/v1/{page}", user), get(page, user)
        assert refused.status_code == as_page.status_code
        assert "null_share" not in refused.text
        assert "lake.gate" not in refused.text
        if refused.status_code != 200:
            problem = refused.json()
            assert problem["status"] == refused.status_code
            assert problem["detail"] in as_page.text


@pytest.mark.usefixtures("week")
def test_a_list_has_the_filters_and_the_pages_of_its_page(get: Get) -> None:
    def runs(**query: object) -> Any:
        return get(
            f"api/v1/runs?{urlencode({'dag_id': 'lake', 'task_id': 'gate', **query})}"
        ).json()

    assert [row["outcome"] for row in runs()["rows"]] == ["blocked", "blocked", "passed"]
    assert [row["outcome"] for row in runs(outcome="passed")["rows"]] == ["passed"]
    assert runs(page=9)["paging"] == {"number": 1, "pages": 1, "total": 3, "size": 50, "skipped": 0}
    report = get(f"api/v1/{REPORT}&status=failed").json()
    assert [one["state"] for one in report["assertions"]] == ["failed"]
    assert report["assertions"][0]["verdict"]["value"] == pytest.approx(1 / 3)


@pytest.mark.more
@pytest.mark.usefixtures("week")
def test_hidden_values_are_hidden_and_nothing_can_change_data(get: Get) -> None:
    for page in ANSWERS:
        text = get(f"api/v1/{page}", "eve").text
        assert "token" not in text
        assert '"pushed"' not in text
    (sample, *_) = get(f"api/v1/{REPORT}").json()["assertions"][0]["verdict"]["failing_rows"]
    assert sample["row"] == ROWS[0].row
    assert '"***"' in sample["row"]


def test_what_a_task_made_up_harms_no_answer(get: Get, scene: Scene) -> None:
    scene.task(
        pushed={
            "outcome": "blocked",
            "gate": "la\u202eke\udc80",
            "verdicts": [
                {"status": "failed", "severity": "P0", "assertion": "\udc80" * 9, "value": {}}
            ],
            "contract": {"id": ["x"], "version": 3},
            "date": 17,
            "counts": {"failed": "many"},
        }
    )
    for page in ("board", "datasets", REPORT, f"runs?{TASK}"):
        answer = get(f"api/v1/{page}")
        assert answer.status_code == 200
        assert "\u202e" not in answer.text
    assert get("api/v1/board").json()["rows"][0]["gate"] == "la\ufffdke\ufffd"


@pytest.mark.usefixtures("scene")
@pytest.mark.parametrize("page", ["nowhere", "label"])
def test_what_is_not_there_is_told_as_json(get: Get, page: str) -> None:
    assert get(f"api/v1/{page}").json() == {"status": 404, "title": "Not Found", "detail": ""}


@pytest.mark.usefixtures("scene")
def test_the_members_of_answers_change_only_on_purpose(get: Get) -> None:
    """Programs rely on them: `docs/promises.md`."""
    schemas = get("api/v1/openapi.json").json()["components"]["schemas"]
    lines = [
        f"{name}: {' '.join(sorted(own['properties']))}\n"
        for name, own in sorted(schemas.items())
        if "properties" in own
    ]
    golden = Path(__file__).parent / "json_members.txt"
    if REWRITE:
        golden.write_text("".join(lines), encoding="utf-8")
    assert golden.read_text(encoding="utf-8") == "".join(lines)
