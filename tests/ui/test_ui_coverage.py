"""The page of coverage: what jobs read and write, and no gate or assertion sees."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dqx_airflow.errors import StoreError
from dqx_airflow.results.query import StoredResults
from dqx_airflow.values import DatasetField, DatasetSnapshot, Outcome
from tests.ui.ui_scene import NULLS, PLACE, Get, Html, Scene, report_of

pytestmark = pytest.mark.airflow


def table(name: str, *columns: str) -> dict[str, Any]:
    fields = [{"name": column} for column in columns]
    return {"namespace": "s3://lake", "name": name, "facets": {"schema": {"fields": fields}}}


def event(job: str, reads: str, writes: str, **facets: Any) -> dict[str, Any]:
    """An event of a job that reads a table and writes another."""
    named = {"namespace": "prod", "name": job}
    tables = {"inputs": [table(reads, "id", "amount")], "outputs": [table(writes, "id")]}
    return {"eventTime": "2024-03-20T06:00:00Z", "job": named, "run": {"facets": facets}, **tables}


def parent(job: str, root: str | None = None) -> Mapping[str, Any]:
    above = {"root": {"job": {"name": root}}} if root else {}
    return {"parent": {"job": {"name": job}, **above}}


def gate_ran(scene: Scene) -> None:
    fields = (DatasetField("id", "string"), DatasetField("amount", "double"))
    dataset = DatasetSnapshot("orders", PLACE, "delta", 7, 5000, fields)
    verdict = replace(NULLS, column="id")
    scene.ran(report_of(verdicts=(verdict,), datasets=(dataset,), outcome=Outcome.PASSED))


@pytest.fixture
def events(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder where the server finds events."""
    folder = tmp_path / "events"
    folder.mkdir()
    monkeypatch.setenv("AIRFLOW__DQX__LINEAGE_EVENTS", str(folder))
    return folder


def sent(folder: Path, *found: dict[str, Any], name: str = "events.jsonl") -> Path:
    path = folder / name
    path.write_text("".join(f"{json.dumps(one)}\n" for one in found))
    return path


def test_tables_of_jobs_are_listed_beside_those_of_gates(
    get: Get, scene: Scene, events: Path
) -> None:
    gate_ran(scene)
    load = event("lake.load", "orders", "mart")
    sent(events, load, event("lake.report", "mart", "sent"))
    answer = get("coverage")
    page = Html(answer.text)
    assert "1 of 3 tables checked by a gate or a test, 1 of 5 columns seen" in page.text
    assert "nothing s3://lake/mart 1 job, no gate 0 of 2 amount , id" in page.text
    assert "lake.gate s3://lake/orders 2 jobs 1 of 2 amount 2024-03-20" in page.text
    assert page.text.index("lake/mart") < page.text.index("lake.gate")
    assert '<a href="dataset?location=s3%3A%2F%2Flake%2Forders">' in answer.text
    unchecked = Html(get("coverage", show="unchecked").text).text
    assert "lake.gate" not in unchecked
    assert "2 of 3 tables" in unchecked
    assert "1 of 3 tables" in Html(get("coverage", search="ORDERS lake.gate").text).text
    assert "No table matches." in get("coverage", search="nowhere").text


def test_without_events_the_page_says_how_to_give_them(get: Get, scene: Scene) -> None:
    gate_ran(scene)
    page = Html(get("coverage").text)
    assert "set lineage_events in section [dqx]" in page.text
    assert "1 of 1 table checked by a gate or a test, 1 of 2 columns seen" in page.text


def test_without_anything_the_page_says_so(get: Get, scene: Scene) -> None:
    page = Html(get("coverage").text)
    assert "0 of 0 tables" in page.text
    assert "has read or written a table yet" in page.text


def test_a_column_that_is_derived_further_is_marked(get: Get, scene: Scene, events: Path) -> None:
    scene.dag()
    load = event("lake.load", "orders", "mart")
    derived = {"namespace": "s3://lake", "name": "orders", "field": "amount"}
    lineage = {"columnLineage": {"fields": {"id": {"inputFields": [derived]}}}}
    load["outputs"][0]["facets"] |= lineage
    sent(events, load)
    assert "amount (read) , id" in Html(get("coverage").text).text


SEEN = {
    "by the name of the job": (event("lake.load", "a", "a"), {"ada"}),
    "of a whole DAG": (event("lake", "a", "a"), {"ada"}),
    "of a task in a group": (event("lake.group.load", "a", "a"), {"ada"}),
    "of another DAG": (event("pond.load", "a", "a"), {"ben"}),
    "by the job that started it": (event("spark", "a", "a", **parent("lake.load")), {"ada"}),
    "by the first job": (event("spark", "a", "a", **parent("spark", "pond.load")), {"ben"}),
    "of two DAGs": (event("lake.load", "a", "a", **parent("pond.load")), set[str]()),
    "of either of two DAGs": (event("sea.side.load", "a", "a"), set[str]()),
    "of no DAG": (event("spark", "a", "a"), set[str]()),
    "of a DAG with a longer name": (event("lakes.load", "a", "a"), set[str]()),
}


@pytest.mark.parametrize("name", SEEN)
def test_events_are_seen_by_those_who_may_read_the_dag(
    get: Get, scene: Scene, events: Path, name: str
) -> None:
    for dag_id, team in {"lake": "red", "sea": "red", "pond": "blue", "sea.side": "blue"}.items():
        scene.dag(dag_id, team=team)
    found, expected = SEEN[name]
    sent(events, found)
    assert {user for user in ("ada", "ben") if "s3://" in get("coverage", user).text} == expected


def test_events_of_no_dag_are_seen_by_those_who_may_read_all(
    get: Get, scene: Scene, events: Path
) -> None:
    sent(events, event("spark", "a", "a"))
    assert "s3://" not in get("coverage").text  # there is no DAG
    scene.dag()
    assert "s3://lake/a" in get("coverage").text
    assert "s3://" not in get("coverage", "ben").text


def test_gates_of_other_dags_are_hidden(get: Get, scene: Scene) -> None:
    gate_ran(scene)
    text = get("coverage", "ben").text
    assert "lake" not in text
    assert "0 of 0 tables" in text


@pytest.mark.parametrize(
    ("lines", "logged"),
    [
        ("", None),
        ("[]\n", "no event in line 1"),
        ('{"job": 1}\n', "no event in line 1"),
        ('{"job": {"name": [1]}}\n', "no event in line 1"),
        ('{"job": {"name": 1}}\n', "no event in line 1"),
        ("{}\n{\n", "no event in line 2"),
    ],
)
def test_what_is_no_event_is_left_out_and_logged(
    get: Get, scene: Scene, events: Path, caplog: pytest.LogCaptureFixture, lines: str,
    logged: str | None,
) -> None:  # fmt: skip
    scene.dag()
    (events / "wrong.jsonl").write_text(lines)
    sent(events, event("lake.load", "a", "b"))
    with caplog.at_level(logging.WARNING):
        page = get("coverage").text
    assert "s3://lake/a" in page
    assert ("Some events are left out" in page) is (logged is not None)
    assert (logged or "") in caplog.text
    assert str(events) not in page


def test_a_missing_file_is_told(
    get: Get, scene: Scene, events: Path, caplog: pytest.LogCaptureFixture
) -> None:
    scene.dag()
    with caplog.at_level(logging.WARNING):
        assert "Some events are left out" in get("coverage").text
    assert "no such file" in caplog.text


def test_of_many_events_the_newest_are_read(
    get: Get, scene: Scene, events: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dqx_airflow.ui import coverage_page

    scene.dag()
    names = [f"table_{number}" for number in range(3)]
    new = sent(events, *(event("lake.load", name, name) for name in names))
    old = sent(events, event("lake.load", "gone", "gone"), name="a.jsonl")
    os.utime(old, (1, 1))
    # The event in the middle is cut.
    monkeypatch.setattr(coverage_page, "_MOST_BYTES", new.stat().st_size // 2)
    page = get("coverage").text
    shown = {name for name in (*names, "gone") if f"s3://lake/{name}" in page}
    assert shown == {"table_2"}
    assert "Some events are left out" in page


def test_a_store_without_an_answer_is_named_first_and_no_table_is_denied(
    get: Get, scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dqx_airflow.ui import store

    scene.ran(report_of())

    def fails(*_: object) -> None:
        raise StoreError("no permission for the key abc")

    monkeypatch.setattr(StoredResults, "gates_of", fails)
    monkeypatch.setattr(store, "_REST_S", 0.0)
    text = Html(get("coverage").text).text
    assert "The results store did not respond" in text.partition("table or check")[0]
    assert "What this page leaves out The results store" not in text
    assert "has read or written a table yet" not in text
