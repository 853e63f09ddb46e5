"""`dql lineage coverage`: from events, suites, contracts and results to what no assertion sees."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from datetime import date, datetime, timezone
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from typer.testing import CliRunner

from dqx_airflow.cli.main import app
from dqx_airflow.lineage.emitter import LineageEmitter
from dqx_airflow.lineage.events import start_event, terminal_event
from dqx_airflow.results.store import ResultsStore
from dqx_airflow.values import (
    Attempt,
    DatasetField,
    DatasetRef,
    DatasetSnapshot,
    GateReport,
    GateRequest,
    Promotion,
    RunKey,
    SourceFile,
)
from tests.command_line import dql_prints
from tests.made_reports import report_at, verdict_of
from tests.odd_values import with_odd_values

BRONZE, SILVER = "s3://lake/bronze/orders", "s3://lake/silver/orders"
SUITE = """\
suite "Orders" {
    check "Orders" on orders {
        assert num_rows() > 0
        assert null_count(id) == 0 where region == "CH"
        assert sql("sum(Amount)") > 0
    }
}
"""
CONTRACT = """\
dataContractSpecification: 1.2.0
id: orders
info: {title: Orders, version: 1.0.0}
models:
  orders:
    fields:
      id: {type: string}
      region: {type: string}
      amount: {type: double}
      note: {type: string}
"""


@pytest.fixture(autouse=True)
def here(here: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in [*os.environ]:
        if name.startswith(("DQX_", "OPENLINEAGE")):
            monkeypatch.delenv(name)
    Path("dqx.toml").write_text(f'[datasets.orders]\npath = "{BRONZE}/2026-11-23"\n')
    Path("orders.dql").write_text(SUITE)
    Path("orders.yaml").write_text(CONTRACT)
    return here


def dataset(place: str, *columns: str, **facets: Any) -> dict[str, Any]:
    """A dataset of an event. Its place is `s3://BUCKET/NAME`, or `hive://HOST/NAME`."""
    scheme, _, rest = place.partition("://")
    host, _, name = rest.partition("/")
    if columns:
        facets["schema"] = {"fields": [{"name": column} for column in columns]}
    return {"namespace": f"{scheme}://{host}", "name": name, "facets": facets}


def asserts(*columns: str | None) -> dict[str, Any]:
    found = [{"assertion": "x", "success": True, "column": column} for column in columns]
    return {"dataQualityAssertions": {"assertions": found}}


def derives(column: str, place: str, source: str) -> dict[str, Any]:
    named = dataset(place)
    field = {"namespace": named["namespace"], "name": named["name"], "field": source}
    return {"columnLineage": {"fields": {column: {"inputFields": [field]}}}}


def job(name: str, inputs: list[Any], outputs: list[Any], kind: str | None = None) -> str:
    facets = {"jobType": {"integration": "DQX", "jobType": kind}} if kind else {}
    named = {"namespace": "prod", "name": name, "facets": facets}
    when = "2026-11-24T06:00:00Z"
    return json.dumps({"eventTime": when, "job": named, "inputs": inputs, "outputs": outputs})


dql = partial(dql_prints, "lineage", "coverage")


def covered(*arguments: str) -> dict[str, dict[str, Any]]:
    """The tables in their order, by place."""
    tables = json.loads(dql("--format", "json", *arguments))["tables"]
    return {table["location"]: table for table in tables}


def of_events(*events: str) -> dict[str, dict[str, Any]]:
    Path("events.jsonl").write_text("\n".join(events) + "\n")
    return covered("--events", "events.jsonl")


A, B, C, D = (f"s3://lake/{name}" for name in "abcd")
READ_BY_A_MODEL = job("model", [dataset(B)], [dataset(C)])
FLOWS = {
    "a chain without checks": (
        [job("load", [dataset(A)], [dataset(B)]), READ_BY_A_MODEL, job("app", [dataset(C)], [])],
        {A: (3, []), B: (2, []), C: (1, [])},
    ),
    "a check ends the way of what is not checked": (
        [
            job("load", [dataset(A)], [dataset(B)]),
            job("test", [dataset(B, **asserts("id"))], []),
            READ_BY_A_MODEL,
        ],
        {A: (1, []), C: (0, []), B: (1, ["test"])},
    ),
    "what a gate promotes has passed it": (
        [
            job("gate", [dataset(A, "id", **asserts("id"))], [dataset(B, "id")], "GATE"),
            READ_BY_A_MODEL,
        ],
        {C: (0, []), B: (1, ["gate"]), A: (0, ["gate"])},
    ),
    "a job that merges into a table is no reader of it": (
        [job("merge", [dataset(A), dataset(B)], [dataset(B)])],
        {A: (1, []), B: (0, [])},
    ),
    "a test that begins without a result is no reader": (
        [job("test", [dataset(A)], []), job("test", [dataset(A, **asserts("id"))], [])],
        {A: (0, ["test"])},
    ),
    "a circle": (
        [job("one", [dataset(A)], [dataset(B)]), job("two", [dataset(B)], [dataset(A)])],
        {A: (2, []), B: (2, [])},
    ),
    "runs and deliveries are one": (
        [job("load", [dataset(f"{A}/2026-11-{day}")], [dataset(f"{B}/ds=3")]) for day in (23, 24)],
        {A: (1, []), B: (0, [])},
    ),
    "a block reads a contract, not a table": (
        [job("block", [dataset(A)], [], "BLOCK"), job("app", [dataset(B)], [])],
        {B: (1, [])},
    ),
}


@pytest.mark.parametrize("name", FLOWS)
def test_tables_are_ranked_by_the_jobs_that_read_them_unchecked(name: str) -> None:
    events, expected = FLOWS[name]
    found = of_events(*events)
    assert [(place, (one["readers"], one["checked_by"])) for place, one in found.items()] == [
        *expected.items()
    ]


def test_columns_that_are_read_downstream_and_not_asserted_are_told() -> None:
    silver = dataset(B, "total", **derives("total", A, "Amount"))
    bronze = dataset(A, "id", "amount", "note", **asserts("ID", None))
    found = of_events(job("test", [bronze], []), job("load", [dataset(A)], [silver]))[A]
    assert (found["columns"], found["unseen"], found["unseen_but_read"]) == (
        3,
        ["amount", "note"],
        ["amount"],
    )
    assert found["last_run"] == "2026-11-24"


@pytest.mark.parametrize(
    ("settings", "place"),
    [
        (f'path = "{BRONZE}/2026-11-23"', BRONZE),
        ('path = "s3a://lake/bronze/orders"', BRONZE),
        ('table = "sales.orders"', BRONZE),  # its name in the symlink
        ('table = "spark_catalog.sales.orders"', BRONZE),
        ('table = "sales.items"', "hive://meta:9083/sales.items"),
        ('table = "sales.other"', "sales.other"),
        ('path = "/tmp/x"\nlineage_name = "s3://lake/bronze/orders"', BRONZE),
    ],
)
def test_a_suite_checks_the_table_that_lineage_names(settings: str, place: str) -> None:
    link = {"identifiers": [{"namespace": "hive://meta:9083", "name": "sales.orders"}]}
    columns = ("id", "region", "amount", "note")
    events = [
        job("app", [dataset(BRONZE, *columns, symlinks=link)], []),
        job("other", [dataset("hive://meta:9083/sales.items", *columns)], []),
    ]
    Path("events.json").write_text("\n".join(events))
    Path("dqx.toml").write_text(f"[datasets.orders]\n{settings}\n")
    found = covered("orders.dql", "--events", "events.json")
    assert [name for name, one in found.items() if one["checked_by"]] == [place]
    assert found[place]["unseen"] == ([] if place == "sales.other" else ["note"])
    assert found[BRONZE]["readers"] == 1


def test_columns_of_one_dataset_are_not_taken_for_those_of_another() -> None:
    Path("dqx.toml").write_text('[datasets]\na.path = "/a"\nb.path = "/b"\n')
    Path("two.dql").write_text(
        'suite "Two" { check "A" on a { assert null_count(x) == 0 }\n'
        'check "B" on b { assert null_count(y) == 0 } }\n'
    )
    events = [{"namespace": "file", "name": name} for name in ("/a", "/b")]
    for event in events:
        event["facets"] = {"schema": {"fields": [{"name": "X"}, {"name": "Y"}]}}
    Path("events.json").write_text(job("app", events, []))
    found = covered("two.dql", "--events", "events.json")
    assert [(place, one["unseen"]) for place, one in found.items()] == [
        ("/a", ["y"]),
        ("/b", ["x"]),
    ]


def test_a_dataset_may_be_given_on_the_command_line() -> None:
    assert covered("orders.dql", "--dataset", f"orders={A}").keys() == {A}


def test_a_contract_names_columns_and_checks_none_unless_it_is_enforced() -> None:
    known = covered("--contract", "orders.yaml")[BRONZE]
    assert (known["checked_by"], known["columns"], len(known["unseen"])) == ([], 4, 4)
    both = covered("orders.dql", "--contract", "orders.yaml")[BRONZE]
    assert (both["checked_by"], both["unseen"]) == (["Orders"], ["note"])
    enforced = covered("orders.yaml", "--contract", "orders.yaml")[BRONZE]
    assert (enforced["checked_by"], enforced["unseen"]) == (["Orders"], [])


@pytest.fixture
def gate() -> tuple[GateRequest, GateReport]:
    """A gate on two tables of a lake, of which it promoted one."""
    key = RunKey("dag.gate", date(2026, 11, 23), "run")
    request = GateRequest(
        key, Attempt(1, "a"), SourceFile("x", ""), (DatasetRef("orders", BRONZE),), "/results"
    )
    fields = (DatasetField("id", "string"), DatasetField("amount", "double"))
    snapshot = DatasetSnapshot(
        "orders", f"{BRONZE}/2026-11-23", "delta", 3, 9, fields, promotion=Promotion(SILVER, 4, 9)
    )
    verdict = verdict_of("ids", metric="null_count", column="id")
    at = datetime(2026, 11, 24, 6, tzinfo=timezone.utc)
    report = report_at(at, verdict, run_key=key, attempt=request.attempt, datasets=(snapshot,))
    return request, replace(report, run_id="01939b7e-0000-7000-8000-000000000001")


def summary(*arguments: str) -> dict[str, Any]:
    return {
        place: (one["checked_by"], one["last_run"], one["unseen"], one["readers"])
        for place, one in covered(*arguments).items()
    }


def test_the_events_that_a_gate_sends_tell_what_it_checks_and_promotes(
    gate: tuple[GateRequest, GateReport], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    request, report = gate
    path = tmp_path / "sent" / "events.jsonl"
    path.parent.mkdir()
    config = {"type": "file", "log_file_path": str(path), "append": True}
    monkeypatch.setenv("OPENLINEAGE__TRANSPORT", json.dumps(config))
    with LineageEmitter(tmp_path / "spool") as emitter:
        assert emitter.emit(start_event(request, report.run_id, report.started_at))
        assert emitter.emit(terminal_event(request, report))
    expected = (["dag.gate"], "2026-11-24", ["amount"], 0)
    assert summary("--events", str(path.parent)) == {BRONZE: expected, SILVER: expected}


def test_the_gates_of_a_results_store_count_with_the_day_of_their_last_run(
    gate: tuple[GateRequest, GateReport], tmp_path: Path
) -> None:
    _, report = gate
    root = str(tmp_path / "results")
    earlier = replace(
        report,
        run_id="01939b7e-0000-7000-8000-000000000002",
        run_key=replace(report.run_key, date=date(2026, 11, 1)),
        started_at=datetime(2026, 11, 2, tzinfo=timezone.utc),
        finished_at=datetime(2026, 11, 2, tzinfo=timezone.utc),
    )
    for one in (earlier, report):
        ResultsStore(root).write(one)
    expected = (["dag.gate"], "2026-11-24", ["amount"], 0)
    assert summary("--results-root", root) == {BRONZE: expected, SILVER: expected}


def test_the_share_of_checked_tables_decides_the_exit_code() -> None:
    Path("events.jsonl").write_text(job("app", [dataset(A, "x"), dataset(BRONZE, "id")], []))
    arguments = ("orders.dql", "--events", "events.jsonl")
    assert [line.rstrip() for line in dql(*arguments, "--min", "50%").splitlines()] == [
        "place                    read by         checked by  last run  columns seen  not seen",
        "s3://lake/a              1 job, no gate  nothing               0 of 1        x",
        "s3://lake/bronze/orders  1 job           Orders                1 of 1",
        "",
        "1 of 2 tables checked, 1 of 2 columns seen",
    ]
    dql(*arguments, "--min", "51%", code=1)
    Path("nothing.jsonl").write_text("")
    dql("--events", "nothing.jsonl", "--min", "1%", code=1)
    assert "0 of 0 tables checked" in dql("--events", "nothing.jsonl")


@pytest.mark.parametrize(
    ("arguments", "sources", "expected"),
    [
        ((), (), "no flow given\n  help: give suites, --events"),
        (("--events", "gone"), (), "no events found at gone"),
        (("--events", "1.json"), ("[1, 2]",), "1.json:1"),
        (("--events", "1.json"), ('{"job": {"namespace": "n", "name": 5}}',), "1.json:1"),
        (("--events", "1.json"), (READ_BY_A_MODEL + "\nx\n{}\n",), "1.json:3"),
        (
            ("--events", "1.json"),
            (job("x", [{"name": "a"}], []),),
            "no OpenLineage event at 1.json:1\n  help: give",
        ),
        (
            ("--events", ".", "--events", "1.json"),
            ("1", '"a"', "{"),
            "1.json:1, 2.json:1, 3.json:1",
        ),
        (("orders.dql", "--config", "empty.toml"), (), "add --dataset orders=PATH"),
        (("--contract", "gone.yaml"), (), "gone.yaml"),
    ],
)
def test_what_cannot_be_read_is_an_error_that_names_the_place(
    arguments: tuple[str, ...], sources: tuple[str, ...], expected: str
) -> None:
    Path("empty.toml").write_text("")
    for number, text in enumerate(sources, start=1):
        Path(f"{number}.json").write_text(text)
    output = dql(*arguments, code=2)
    assert expected in output
    assert "Traceback" not in output


def test_the_help_tells_it_from_the_coverage_of_a_contract() -> None:
    assert "`dql contract clauses` is about the clauses" in " ".join(dql("--help").split())


EVENT = {
    "eventTime": "2026-11-20T03:00:00Z",
    "job": {"namespace": "n", "name": "j", "facets": {"jobType": {"jobType": "TASK"}}},
    "inputs": [
        {
            "namespace": "s3://lake",
            "name": "bronze/orders",
            "facets": {
                "schema": {"fields": [{"name": "id"}]},
                "symlinks": {"identifiers": [{"name": "lake.orders"}]},
                "dataQualityAssertions": {"assertions": [{"column": "id"}]},
            },
        }
    ],
    "outputs": [
        {
            "namespace": "s3://lake",
            "name": "silver/orders",
            "facets": {
                "columnLineage": {
                    "fields": {
                        "id": {
                            "inputFields": [
                                {"namespace": "s3://lake", "name": "bronze/orders", "field": "id"}
                            ]
                        }
                    }
                }
            },
        }
    ],
}


@pytest.mark.more
@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(event=with_odd_values(EVENT))
def test_any_value_in_an_event_is_a_message(event: Any, tmp_path: Path) -> None:
    file = tmp_path / "events.json"
    file.write_text(json.dumps(event, default=str))
    result = CliRunner().invoke(app, ["lineage", "coverage", "--events", str(file)])
    assert result.exit_code in (0, 2), result.output
    assert result.exit_code == 0 or f"no OpenLineage event at {file}:" in result.output
