"""The example Grafana dashboard: each of its queries, run by DuckDB over a real store."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import combinations
from typing import Any

import duckdb
import pytest

from dqx_airflow.values.files import shipped
from tests.results.test_views import views

__all__ = ["views"]

DASHBOARD = json.loads(shipped("dags_examples/grafana/data_quality.json").read_text())
PANELS = DASHBOARD["panels"]
# What Grafana fills in before a query reaches DuckDB.
FILLED_IN = {"${gate:sqlstring}": "'daily','silent','once'", "${assertion:sqlstring}": "'amounts'"}
SINCE = "now() - INTERVAL 276 HOUR"


def filled_in(sql: str) -> str:
    for name, value in FILLED_IN.items():
        sql = sql.replace(name, value)
    for column in ("finished_at", "dataset_date"):
        sql = sql.replace(f"$__timeFilter({column})", f"{column} >= {SINCE} AND {column} <= now()")
    assert "$" not in sql
    return sql


def answer(views: duckdb.DuckDBPyConnection, title: str) -> list[dict[str, Any]]:
    (panel,) = [candidate for candidate in PANELS if candidate["title"] == title]
    found = views.execute(filled_in(panel["targets"][0]["rawSql"]))
    names = [column[0] for column in found.description or ()]
    return [dict(zip(names, row, strict=True)) for row in found.fetchall()]


@pytest.mark.more
@pytest.mark.few(4)
@pytest.mark.parametrize("title", [panel["title"] for panel in PANELS])
def test_each_panel_has_something_to_show(views: duckdb.DuckDBPyConnection, title: str) -> None:
    assert answer(views, title)


def test_each_variable_has_choices(views: duckdb.DuckDBPyConnection) -> None:
    queries = {
        variable["name"]: variable["query"]
        for variable in DASHBOARD["templating"]["list"]
        if variable["type"] == "query"
    }
    found = {
        name: [row[0] for row in views.execute(filled_in(sql)).fetchall()]
        for name, sql in queries.items()
    }
    assert found["gate"] == ["daily", "once", "silent"]
    assert "amounts" in found["assertion"]


def test_the_numbers_are_those_of_the_runs_that_count(views: duckdb.DuckDBPyConnection) -> None:
    now = {"passed": 2, "warned": 0, "blocked": 1, "broken": 0}
    assert answer(views, "Gates now") == [now]
    # Of the last 11.5 days: four runs of `daily`, two of `silent`, of which the last is blocked.
    assert answer(views, "Passed runs") == [{"passed": pytest.approx(5 / 6)}]
    assert answer(views, "Overdue gates") == [{"overdue": 1}]
    assert sum(row["blocked"] for row in answer(views, "Runs by outcome")) == 1


def test_series_have_a_time_that_grafana_can_read(views: duckdb.DuckDBPyConnection) -> None:
    for panel in PANELS:
        (target,) = panel["targets"]
        assert target["format"] == (0 if panel["type"] == "timeseries" else 1)
        if panel["type"] == "timeseries":
            found = views.execute(filled_in(target["rawSql"]))
            assert found.description is not None
            name, kind = found.description[0][:2]
            assert (name, str(kind)) in [("time", "DATETIME"), ("time", "TIMESTAMP")]


def test_no_panel_covers_another() -> None:
    def cells(panel: dict[str, Any]) -> Iterator[tuple[int, int]]:
        at = panel["gridPos"]
        for x in range(at["x"], at["x"] + at["w"]):
            yield from ((x, y) for y in range(at["y"], at["y"] + at["h"]))

    assert len({panel["id"] for panel in PANELS}) == len(PANELS)
    for panel, other in combinations(PANELS, 2):
        assert {*cells(panel)}.isdisjoint(cells(other))
