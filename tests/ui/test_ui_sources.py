"""The sources of a gate on its tab: complete, folded if long, with marked failing lines."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from dqx_airflow.values import Outcome, Severity, SourceFile, Span, Status, Verdict
from tests.ui.ui_scene import BAD_NULLS, DAY, NOT_EMPTY, NULLS, Get, Html, Scene, report_of

pytestmark = pytest.mark.airflow


SUITE = SourceFile(
    "orders.dql",
    'suite "Orders" {\n'
    "    const MAX_NULLS = 10%\n"
    "\n"
    '    check "Completeness" on orders {\n'
    "        assert null_count(id) / num_rows() < MAX_NULLS\n"
    "    }\n"
    "}\n",
)
LIBRARY = SourceFile("common.dql", "export const MOST = 1%\n")


def at(verdict: Verdict, line: int, file: str = "orders.dql", **changes: object) -> Verdict:
    """The verdict in another line."""
    return replace(verdict, span=Span(file, line, 16, line, 43), **changes)  # type: ignore[arg-type]


def test_the_whole_suite_is_shown_with_its_failures(tab: Get, scene: Scene) -> None:
    scene.ran(report_of(), sources=(SUITE,))
    page = Html(tab().text)
    assert (
        'orders.dql 1 suite "Orders" { 2 const MAX_NULLS = 10% '
        '3 4 check "Completeness" on orders { '
        "5 assert null_count(id) / num_rows() < MAX_NULLS (failed) "
        "orders.id.null_share: null_count(id) / num_rows() is 50%, expected < "
        "MAX_NULLS (10%) 6 } 7 }" in page.text
    )
    assert len(page.all("div", class_="at failed")) == 1
    assert "<mark>null_count(id) / num_rows()</mark>" in tab().text


def test_files_without_failures_are_folded_and_last(tab: Get, scene: Scene) -> None:
    scene.ran(report_of(), sources=(LIBRARY, SUITE))
    page = Html(tab().text)
    assert page.text.index("orders.dql 1") < page.text.index("common.dql 1 line 1 export const")
    assert [found.get("open") for found in page.all("details", class_="file")] == [None]


def test_the_suite_of_a_gate_that_passed_is_folded(tab: Get, scene: Scene) -> None:
    scene.ran(report_of(verdicts=(NULLS,), outcome=Outcome.PASSED), sources=(SUITE,))
    page = Html(tab().text)
    assert "orders.dql 7 lines 1 suite" in page.text
    assert len(page.all("div", class_="at passed")) == 1


def test_a_failure_below_the_limit_of_the_gate_is_marked_as_a_warning(
    tab: Get, scene: Scene
) -> None:
    mild = replace(BAD_NULLS, severity=Severity.P3)
    scene.ran(report_of(verdicts=(mild,), outcome=Outcome.WARNED), sources=(SUITE,))
    page = Html(tab().text)
    assert page.all("div", class_="at warned")
    assert not page.all("div", class_="at failed")


def test_long_stretches_without_a_failure_are_folded(tab: Get, scene: Scene) -> None:
    long = SourceFile("orders.dql", "".join(f"line {number}\n" for number in range(1, 201)))
    verdicts = (at(BAD_NULLS, 100), at(BAD_NULLS, 108), at(NULLS, 150))
    scene.ran(report_of(verdicts=verdicts), sources=(long,))
    page = Html(tab().text)
    assert "⋯ lines 1 to 96 1 line 1" in page.text
    assert "⋯ lines 112 to 200 112 line 112" in page.text
    assert "103 line 103 104 line 104 105 line 105" in page.text, (
        "a fold of two lines hides nothing"
    )


def test_failures_are_shown_below_their_line_for_every_assertion(tab: Get, scene: Scene) -> None:
    broken = replace(
        NULLS, name="of_macro_0", status=Status.ERROR, scaled_value=None, reason="no column x"
    )
    verdicts = (*(replace(BAD_NULLS, name=f"of_macro_{n}") for n in range(1, 9)), broken)
    scene.ran(report_of(verdicts=verdicts), sources=(SUITE,))
    text = Html(tab().text).text
    assert (
        "of_macro_5: null_count(id) / num_rows() is 50%, expected < MAX_NULLS (10%) and 4 more 6 }"
        in text
    )


def test_an_assertion_of_several_lines_is_marked_to_its_end(tab: Get, scene: Scene) -> None:
    text = "suite {\n        assert a\n            > b\n            severity P0\n}\n"
    verdict = replace(BAD_NULLS, span=Span("orders.dql", 2, 16, 3, 16))
    scene.ran(report_of(verdicts=(verdict,)), sources=(SourceFile("orders.dql", text),))
    shown = tab().text
    assert "assert <mark>a</mark>" in shown
    assert "            <mark>&gt; b</mark>" in shown
    assert len(Html(shown).all("div", class_="at failed")) == 2


@pytest.mark.more
def test_a_huge_source_is_cut_around_the_failures(tab: Get, scene: Scene) -> None:
    huge = SourceFile("orders.dql", "x\n" * 100_000)
    scene.ran(report_of(verdicts=(at(BAD_NULLS, 90_000),)), sources=(huge,))
    answer = tab()
    text = Html(answer.text).text
    assert "90000 x (failed) orders.id.null_share: null_count(id) / num_rows() is 50%" in text
    assert "⋯ 88003 lines" in text
    assert len(answer.text) < 400_000


def test_without_sources_the_lines_of_the_assertions_are_shown(tab: Get, scene: Scene) -> None:
    verdicts = (BAD_NULLS, at(NOT_EMPTY, 9, source_line="        assert num_rows() > 0"))
    scene.ran(report_of(verdicts=verdicts))
    text = Html(tab().text).text
    assert (
        "orders.dql 5 assert null_count(id) / num_rows() < MAX_NULLS (failed) "
        "orders.id.null_share: null_count(id) / num_rows() is 50%, expected < "
        "MAX_NULLS (10%) ⋯ 3 lines 9 assert num_rows() > 0" in text
    )


@pytest.mark.more
def test_each_attempt_is_shown_with_its_own_source(tab: Get, scene: Scene) -> None:
    earlier = "01890000-0000-7000-8000-000000000000"
    strict = SourceFile(SUITE.name, SUITE.text.replace("10%", "1%"))
    scene.ran(report_of(8, verdicts=(NULLS,), outcome=Outcome.PASSED), sources=(SUITE,), attempt=2)
    scene.history(earlier)
    scene.store(report_of(7, attempt=earlier), (strict,))
    assert "const MAX_NULLS = 10%" in Html(tab().text).text
    assert "const MAX_NULLS = 1%" in Html(tab(attempt=earlier).text).text


def test_without_code_permission_only_lines_of_assertions_are_shown(
    tab: Get, scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    from airflow.api_fastapi.app import get_auth_manager
    from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity

    manager = get_auth_manager()
    allows = manager.is_authorized_dag

    def allows_no_code(*, access_entity: DagAccessEntity | None = None, **asked: object) -> bool:
        return access_entity is not DagAccessEntity.CODE and allows(
            access_entity=access_entity, **asked
        )

    scene.ran(report_of(), sources=(SUITE, LIBRARY))
    monkeypatch.setattr(manager, "is_authorized_dag", allows_no_code)
    answer = tab()
    assert answer.status_code == 200
    assert "assert null_count(id)" in Html(answer.text).text
    assert "const MAX_NULLS" not in answer.text
    assert "common.dql" not in answer.text


EARLIER = SourceFile("orders.dql", SUITE.text.replace("10%", "20%").replace("\n\n", "\n"))


def before_and_after(scene: Scene) -> None:
    """A good run with an earlier text of the suite, and then a bad one."""
    yesterday = DAY - timedelta(days=1)
    good = report_of(1, on=yesterday, verdicts=(NULLS,), outcome=Outcome.PASSED)
    scene.ran(good, number=1, sources=(EARLIER, LIBRARY))
    scene.ran(report_of(2), number=2, sources=(SUITE, LIBRARY))


def test_changed_lines_are_marked_and_linked(tab: Get, scene: Scene) -> None:
    before_and_after(scene)
    page = Html(tab().text)
    changed = [line for line in page.all("div") if "changed" in (line.get("class") or "")]
    assert [line["id"] for line in changed] == ["source-orders.dql-2", "source-orders.dql-3"]
    assert page.links["lines 2 to 3"] == "#source-orders.dql-2"
    assert "source common.dql" not in page.text


def test_the_incident_leads_to_the_changed_lines(get: Get, scene: Scene) -> None:
    before_and_after(scene)
    at = Html(get("incident", dag_id="lake", task_id="gate").text).links["lines"]
    assert at.startswith("gate?dag_id=lake")
    assert at.endswith("#source-orders.dql")
    page = Html(get(at.partition("#")[0]).text)
    assert page.all("div", id="source-orders.dql")


@pytest.mark.more
def test_without_permission_for_the_code_no_line_is_linked(
    tab: Get, get: Get, scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dqx_airflow.ui.airflow_users import Visitor

    before_and_after(scene)
    monkeypatch.setattr(Visitor, "may_read_code", lambda *_: False)
    assert "lines 2 to 3" not in Html(tab().text).links
    assert "lines" not in Html(get("incident", dag_id="lake", task_id="gate").text).links


@pytest.mark.parametrize(
    ("before", "now", "changed"),
    [
        ("a\nb\nc", "a\nb\nc", []),
        ("a\nb\nc", "a\nB\nc", [(2, 2)]),
        ("a\nb\nc", "x\na\nb\nc\ny\nz", [(1, 1), (5, 6)]),
        ("a\nb\nc", "a\nc", [(1, 1)]),
        ("a\nb\nc", "b\nc", [(1, 1)]),
        ("", "a", [(1, 1)]),
        ("a", "", [(1, 1)]),
    ],
)
def test_changed_lines(before: str, now: str, changed: list[tuple[int, int]]) -> None:
    from dqx_airflow.ui.source_view import changed_lines

    found = changed_lines(SourceFile("a.dql", now), SourceFile("a.dql", before))
    assert [(lines[0], lines[-1]) for lines in found] == changed
