from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import replace
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from openlineage.client.serde import Serde

from dqx_airflow import __version__
from dqx_airflow.lineage import events
from dqx_airflow.plan.clause_verdicts import unenforced_verdicts
from dqx_airflow.values import (
    DatasetField,
    DatasetRef,
    DatasetSnapshot,
    EnforcedContract,
    GateOrigin,
    GateReport,
    GateRequest,
    MetricResult,
    Outcome,
    PartialRun,
    Promotion,
    Responsible,
    RunKey,
    Selection,
    Severity,
    SourceLocation,
    Span,
    Status,
    UnenforcedClause,
    Verdict,
)
from tests.made_reports import verdict_of
from tests.openlineage_schemas import problems

GOLDEN = Path(__file__).parent / "golden"
# DQX_REWRITE_GOLDEN=1 rewrites the golden files; the diff is the review.
REWRITE = os.environ.get("DQX_REWRITE_GOLDEN") == "1"
RUN_ID = "01939b7e-0000-7000-8000-000000000001"
START = datetime(2026, 11, 21, 2, 0, tzinfo=timezone.utc)


def as_dict(event: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(Serde.to_json(event))
    return found


def input_of(event: Any, name: str) -> dict[str, Any]:
    return next(found for found in as_dict(event)["inputs"] if found["name"] == name)


def assertions_of(dataset: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = dataset["facets"]["dataQualityAssertions"]["assertions"]
    return found


def history(request: GateRequest, report: GateReport) -> list[Any]:
    return [
        events.start_event(request, RUN_ID, START, "dq"),
        events.terminal_event(request, report, "dq"),
    ]


@pytest.fixture
def terminal(request_: GateRequest, passed: GateReport) -> Callable[..., Any]:
    def build(*verdicts: Verdict, **changes: Any) -> Any:
        report = replace(passed, **{"verdicts": verdicts, **changes})
        return events.terminal_event(request_, report, "dq")

    return build


@pytest.mark.parametrize("outcome", ["passed", "warned", "blocked", "broken", "crashed"])
def test_each_outcome_emits_its_golden_events(
    outcome: str, request_: GateRequest, reports: dict[str, GateReport]
) -> None:
    start = events.start_event(request_, RUN_ID, START, "dq")
    if outcome == "crashed":
        message = "Py4JJavaError: Job aborted due to stage failure"
        end = events.crash_event(request_, RUN_ID, START + timedelta(minutes=1), message, "dq")
    else:
        report = replace(reports[outcome], spark_version="4.2.0")
        end = events.terminal_event(request_, report, "dq")
    written = [as_dict(start), as_dict(end)]
    path = GOLDEN / f"{outcome}.json"
    text = json.dumps(written, indent=2, sort_keys=True, ensure_ascii=False) + "\n"
    text = text.replace(f'"{__version__}"', '"0.0.0"').replace(f"tree/{__version__}", "tree/0.0.0")
    if REWRITE:
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == text
    assert problems([start, end]) == []


def test_the_validator_does_refuse_a_broken_event(
    request_: GateRequest, passed: GateReport
) -> None:
    event = as_dict(events.terminal_event(request_, passed, "dq"))
    event["inputs"][0]["facets"]["dataQualityAssertions"]["assertions"][0]["actual"] = 1
    assert "is not of type 'string'" in "\n".join(problems([event]))


def test_events_of_a_run_name_the_same_job_and_not_that_of_the_task(
    request_: GateRequest, reports: dict[str, GateReport]
) -> None:
    ends = [events.terminal_event(request_, report, "dq") for report in reports.values()]
    crash = events.crash_event(request_, RUN_ID, START, "boom", "dq")
    start = events.start_event(request_, RUN_ID, START, "dq")
    assert {(e.job.namespace, e.job.name) for e in [start, crash, *ends]} == {
        ("dq", "shop.check_orders.gate")
    }
    assert request_.parent is not None
    assert start.job.name != request_.parent.job


def test_a_partial_run_has_tags(request_: GateRequest, passed: GateReport) -> None:
    some = replace(passed, partial=PartialRun(Selection(tags=("fast",)), 4, 9))
    event = as_dict(events.terminal_event(request_, some, "dq"))
    assert problems(history(request_, some)) == []
    run_tags = {tag["key"]: tag["value"] for tag in event["run"]["facets"]["tags"]["tags"]}
    assert run_tags == {"dqx_partial": "4 of 9 assertions", "dqx_selection": "tag fast"}
    whole = as_dict(events.terminal_event(request_, passed, "dq"))
    assert "tags" not in whole["run"]["facets"]


def test_the_quarantine_is_in_the_run_and_not_an_output(
    request_: GateRequest, reports: dict[str, GateReport]
) -> None:
    blocked = reports["blocked"]
    first, *others = blocked.datasets
    place = "s3://user:hush@lake/quarantine/orders"
    kept = replace(first, quarantined=5, quarantine=place)
    empty = [replace(each, quarantined=0, quarantine=place) for each in others]
    report = replace(blocked, datasets=(kept, *empty))
    event = as_dict(events.terminal_event(request_, report, "dq"))
    assert problems(history(request_, report)) == []
    (tag,) = event["run"]["facets"]["tags"]["tags"]
    assert tag["key"] == f"dqx_quarantine.{first.name}"
    assert tag["value"].endswith("@lake/quarantine/orders")
    assert "hush" not in tag["value"]
    assert event["outputs"] == []


def test_severity_is_error_exactly_where_a_failure_blocks(terminal: Callable[..., Any]) -> None:
    verdicts = [
        Verdict(severity.value, "c", ("orders",), "x > 1", "> 1", severity, Status.FAILED)
        for severity in Severity
    ]
    for limit, errors in (("P0", 1), ("P1", 2), ("P3", 4)):
        event = terminal(*verdicts, fail_on=Severity(limit), outcome=Outcome.BLOCKED)
        found = assertions_of(input_of(event, "silver/orders"))
        assert [a["severity"] for a in found] == ["error"] * errors + ["warn"] * (4 - errors)


def test_a_skipped_assertion_is_a_skipped_test_only(
    terminal: Callable[..., Any], passed: GateReport
) -> None:
    event = terminal(*passed.verdicts)
    names = [a["name"] for a in assertions_of(input_of(event, "silver/orders"))]
    assert "orders.trend.week" not in names
    tests = {t["name"]: t for t in as_dict(event)["run"]["facets"]["test"]["tests"]}
    assert tests["orders.trend.week"]["status"] == "skip"
    assert tests["orders.trend.week"]["description"].startswith("data for 1 of 2 dates")
    assert len(tests) == 4


def test_both_facets_have_the_same_assertions(
    terminal: Callable[..., Any], passed: GateReport
) -> None:
    found = input_of(terminal(*passed.verdicts), "silver/orders")
    facet = found["facets"]["dataQualityAssertions"]
    assert facet == found["inputFacets"]["dataQualityAssertions"]
    assert found["facets"]["dataQualityMetrics"]["rowCount"] == 1500
    assert found["inputFacets"]["dataQualityMetrics"]["columnMetrics"] == {
        "email": {"nullCount": 60},
        "id": {"distinctCount": 1500},
        "amount": {"sum": 99.5, "min": -3},
    }


def test_an_assertion_about_two_datasets_belongs_to_the_first_and_names_both(
    terminal: Callable[..., Any], passed: GateReport
) -> None:
    event = terminal(passed.verdicts[2])
    (found,) = assertions_of(input_of(event, "silver/orders"))
    assert found["params"]["datasets"] == ["orders", "customers"]
    assert "dataQualityAssertions" not in input_of(event, "/data/customers")["facets"]


def test_an_assertion_about_no_dataset_is_a_test_of_the_run(
    terminal: Callable[..., Any], passed: GateReport
) -> None:
    lost = replace(passed.verdicts[0], datasets=())
    event = as_dict(terminal(lost))
    facets = {name for found in event["inputs"] for name in found["facets"]}
    assert "dataQualityAssertions" not in facets
    assert len(event["run"]["facets"]["test"]["tests"]) == 1


def test_a_dataset_that_could_not_be_read_still_carries_its_verdicts(
    request_: GateRequest, passed: GateReport
) -> None:
    error = replace(passed.verdicts[0], status=Status.ERROR, reason="no such path")
    report = replace(passed, outcome=Outcome.BROKEN, verdicts=(error,), datasets=())
    found = input_of(events.terminal_event(request_, report), "silver/orders")
    assert assertions_of(found)[0]["success"] is False
    assert assertions_of(found)[0]["description"] == "no such path"


def test_a_dataset_under_two_names_is_one_input_with_the_verdicts_of_both(
    request_: GateRequest, passed: GateReport
) -> None:
    refs = (DatasetRef("eu", path="/data/orders"), DatasetRef("us", path="file:/data/orders/"))
    verdicts = tuple(
        Verdict(name, "c", (name,), "x > 1", "> 1", Severity.P1, Status.PASSED)
        for name in ("eu", "us")
    )
    request = replace(request_, datasets=refs)
    report = replace(passed, verdicts=verdicts, datasets=())
    written = history(request, report)
    (found,) = as_dict(written[1])["inputs"]
    assert [a["name"] for a in assertions_of(found)] == ["eu", "us"]
    assert len(written[0].inputs) == 1
    assert problems(written) == []


def test_a_catalog_table_is_named_by_its_location_with_the_table_as_symlink(
    request_: GateRequest, passed: GateReport
) -> None:
    request = replace(request_, datasets=(DatasetRef("orders", table="sales.orders"),))
    snapshot = replace(passed.datasets[0], location="file:/warehouse/sales.db/orders")
    report = replace(passed, datasets=(snapshot,))
    end = events.terminal_event(request, report, "dq", catalog="hive://metastore:9083")
    (found,) = as_dict(end)["inputs"]
    assert (found["namespace"], found["name"]) == ("file", "/warehouse/sales.db/orders")
    (link,) = found["facets"]["symlinks"]["identifiers"]
    assert link == {"namespace": "hive://metastore:9083", "name": "sales.orders", "type": "TABLE"}
    # Before the scan the location is unknown, and a run must not name one dataset twice.
    start = events.start_event(request, RUN_ID, START, "dq")
    assert start.inputs == []
    assert problems([start, end]) == []


def test_a_catalog_table_of_unknown_location_is_named_in_its_catalog(
    request_: GateRequest, passed: GateReport
) -> None:
    request = replace(request_, datasets=(DatasetRef("orders", table="sales.orders"),))
    report = replace(passed, datasets=(DatasetSnapshot("orders", "sales.orders", "delta"),))
    written = history(request, report)
    (found,) = as_dict(written[1])["inputs"]
    assert (found["namespace"], found["name"]) == ("dq", "sales.orders")
    assert problems(written) == []


@pytest.mark.parametrize(
    ("outcome", "expected"),
    [("passed", ["silver/orders"]), ("warned", ["silver/orders"]), ("blocked", []), ("broken", [])],
)
def test_outputs_are_the_promoted_tables_and_never_the_results_store(
    outcome: str, expected: list[str], request_: GateRequest, reports: dict[str, GateReport]
) -> None:
    report = reports[outcome]
    orders = replace(report.datasets[0], promotion=Promotion("s3://lake/silver/orders", 7, 1500))
    report = replace(report, datasets=(orders,))
    start, end = history(request_, report)
    assert start.outputs == []
    assert [found.name for found in end.outputs] == expected


def test_dated_folders_are_one_dataset_with_its_given_name(
    request_: GateRequest, passed: GateReport
) -> None:
    refs = (
        DatasetRef("dated", path="/landing/orders/2026-11-20"),
        DatasetRef("globbed", path="/stores/*/2026-11-20/*.csv", format="csv"),
        DatasetRef("named", path="s3a://lake/x/2026-11-20", lineage_name="s3a://lake/returns"),
        DatasetRef("table", table="sales.day_20261120", lineage_name="sales.days"),
    )
    request = replace(request_, datasets=refs)
    start, end = history(request, replace(passed, datasets=()))
    at_start = [("file", "/landing/orders"), ("file", "/stores"), ("s3://lake", "returns")]
    assert [(found.namespace, found.name) for found in start.inputs] == at_start
    at_end = [*at_start, ("dq", "sales.days")]
    assert [(found.namespace, found.name) for found in end.inputs] == at_end
    assert problems([start, end]) == []


def test_a_catalog_learns_the_owner_the_purpose_and_the_source_of_a_gate(
    request_: GateRequest, passed: GateReport
) -> None:
    source = SourceLocation(
        "https://example.com/shop/blob/1a2b/dags/orders.dql",
        "https://example.com/shop",
        "dags/orders.dql",
        "1a2b",
    )
    request = replace(request_, origin=GateOrigin("team shop", "Stops bad orders.", source))
    start, end = history(request, passed)
    assert problems([start, end]) == []
    for event in (start, end):
        facets = as_dict(event)["job"]["facets"]
        assert facets["ownership"]["owners"] == [{"name": "team shop", "type": "OWNER"}]
        assert facets["documentation"]["description"] == (
            "data quality gate: enforces orders.dql; Stops bad orders."
        )
        assert facets["sourceCodeLocation"]["url"] == source.url
        assert facets["sourceCodeLocation"]["version"] == "1a2b"


def test_contacts_of_a_contract_are_in_events_and_failures(
    request_: GateRequest, reports: dict[str, GateReport]
) -> None:
    responsible = Responsible("sales", ("ann@example.com",), "#sales", "docs/r.md", "page", "9x5")
    contract = EnforcedContract("orders", "2.3.0", "odcs", responsible=responsible)
    request = replace(request_, contract=contract)
    events = history(request, replace(reports["blocked"], contract=contract))
    assert problems(events) == []
    contacts = "channel: #sales; incident response: page; runbook: docs/r.md; business hours: 9x5"
    for event in events:
        job = as_dict(event)["job"]["facets"]
        assert job["ownership"]["owners"] == [{"name": "sales", "type": "OWNER"}]
        assert contacts in job["documentation"]["description"]
    error = as_dict(events[-1])["run"]["facets"]["errorMessage"]["message"]
    assert f"owner: sales; contacts: ann@example.com; {contacts}" in error


def test_an_accepted_clause_is_a_skipped_test_with_its_owner(
    terminal: Callable[..., Any], passed: GateReport
) -> None:
    clause = UnenforcedClause(
        "orders.custom",
        "models.orders.quality[0]",
        Span("orders.yaml", 9, 9, 9, 20),
        "- type: custom",
        dataset="orders",
        severity=Severity.P1,
        reason="an unknown engine",
        let_by="data-platform: the vendor alerts on it",
        is_accepted=True,
    )
    contract = EnforcedContract("orders", "2.3.0", "dcs", unenforced=(clause,))
    event = terminal(*passed.verdicts, *unenforced_verdicts(contract))
    tests = {t["name"]: t for t in as_dict(event)["run"]["facets"]["test"]["tests"]}
    accepted = tests["orders.custom"]
    assert accepted["status"] == "skip"
    assert "accepted by data-platform: the vendor alerts on it" in accepted["description"]
    assert accepted["params"]["let_by"] == "data-platform: the vendor alerts on it"


def test_a_failure_has_counts_and_the_worst_assertion(reports: dict[str, GateReport]) -> None:
    assert events.failure_message(reports["blocked"]) == (
        "blocked: 2 of 4 assertions failed, 1 not evaluated; worst: orders.volume.num_rows (P0): "
        "760 is not above 1000"
    )
    assert events.failure_message(reports["broken"]) == (
        "broken: 0 of 4 assertions failed, 1 could not be evaluated, 1 not evaluated; worst: "
        "orders.references.customer (P1): dataset customers: column id is missing"
    )
    empty = replace(reports["broken"], verdicts=())
    assert events.failure_message(empty).endswith("nothing was checked")


def test_a_parent_without_a_run_id_of_openlineage_is_omitted(
    request_: GateRequest, passed: GateReport
) -> None:
    assert request_.parent is not None
    rootless = replace(request_, parent=replace(request_.parent, root_run_id=""))
    parent = as_dict(history(rootless, passed)[0])["run"]["facets"]["parent"]
    assert "root" not in parent
    orphan = replace(request_, parent=replace(request_.parent, run_id="manual__2026"))
    written = history(orphan, passed)
    assert "parent" not in as_dict(written[0])["run"]["facets"]
    assert problems(written) == []


def test_times_are_utc_and_the_nominal_day_is_the_day_of_the_data(
    request_: GateRequest, passed: GateReport
) -> None:
    tokyo = timezone(timedelta(hours=9))
    when = datetime(2026, 11, 21, 11, 0, tzinfo=tokyo)
    event = as_dict(events.start_event(request_, RUN_ID, when))
    assert event["eventTime"] == "2026-11-21T02:00:00Z"
    naive = as_dict(events.start_event(request_, RUN_ID, datetime(2026, 11, 21, 2)))
    assert naive["eventTime"] == "2026-11-21T02:00:00Z"
    nominal = event["run"]["facets"]["nominalTime"]
    assert nominal["nominalStartTime"] == "2026-11-20T00:00:00Z"
    assert nominal["nominalEndTime"] == "2026-11-21T00:00:00Z"


def test_the_last_day_of_the_calendar_has_no_end(request_: GateRequest, passed: GateReport) -> None:
    key = RunKey("g", date.max, "r")
    assert problems(history(replace(request_, run_key=key), replace(passed, run_key=key))) == []


def test_a_run_id_other_than_a_uuid_is_refused(request_: GateRequest) -> None:
    with pytest.raises(ValueError, match="UUID"):
        events.start_event(request_, "not-a-uuid", START)


@pytest.mark.parametrize(
    ("value", "actual", "param"),
    [
        (None, None, None),
        (0, "0", 0),
        (-0.0, "-0.0", -0.0),
        (0.1 + 0.2, "0.30000000000000004", 0.1 + 0.2),
        (2**53 + 1, "9007199254740993", "9007199254740993"),
        (10**40, "1" + "0" * 40, "1" + "0" * 40),
        (1e300, "1e+300", "1e+300"),
        ("2026-11-20", "2026-11-20", "2026-11-20"),
        # Values never hold these; should one slip through, the event is JSON all the same.
        (float("nan"), None, None),
        (float("-inf"), None, None),
        (Decimal("1.50"), "1.50", "1.50"),
        (True, "True", "True"),
    ],
)
def test_any_value_becomes_a_string_and_a_safe_parameter(
    value: Any, actual: str | None, param: Any, terminal: Callable[..., Any]
) -> None:
    verdict = verdict_of("v", status=Status.FAILED, value=value)
    snapshot = DatasetSnapshot(
        "orders",
        "s3://lake/silver/orders",
        "delta",
        metrics=tuple(MetricResult(m, "x", value) for m in ("null_count", "sum", "minimum")),
    )
    event = terminal(verdict, outcome=Outcome.BLOCKED, datasets=(snapshot,))
    (found,) = assertions_of(input_of(event, "silver/orders"))
    assert found.get("actual") == actual
    assert found["params"].get("value") == param
    assert problems([event], lifecycle=False) == []


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (("Amount", "id"), "Amount"),
        (("Amount", "amount"), "AMOUNT"),  # a Spark that does not ignore the case
        ((), "AMOUNT"),
    ],
)
def test_a_column_has_the_name_of_the_schema(
    terminal: Callable[..., Any], names: tuple[str, ...], expected: str
) -> None:
    snapshot = DatasetSnapshot(
        "orders",
        "s3://lake/silver/orders",
        "delta",
        fields=tuple(DatasetField(name, "double") for name in names),
        metrics=(MetricResult("null_count", "AMOUNT", 1), MetricResult("sum", "AMOUNT", 2)),
    )
    event = terminal(verdict_of("a", column="AMOUNT"), datasets=(snapshot,))
    found = input_of(event, "silver/orders")
    assert [one["column"] for one in assertions_of(found)] == [expected]
    metrics = found["facets"]["dataQualityMetrics"]["columnMetrics"]
    assert metrics == {expected: {"nullCount": 1, "sum": 2}}


def test_large_counts_stay_exact(terminal: Callable[..., Any]) -> None:
    snapshot = DatasetSnapshot(
        "orders",
        "s3://lake/silver/orders",
        "delta",
        rows=2**53 + 1,
        metrics=(MetricResult("null_count", "x", 2**53 + 3),),
    )
    facet = input_of(terminal(datasets=(snapshot,)), "silver/orders")["facets"]
    assert facet["dataQualityMetrics"]["rowCount"] == 2**53 + 1
    assert facet["dataQualityMetrics"]["columnMetrics"]["x"]["nullCount"] == 2**53 + 3


@pytest.mark.few(2)
@pytest.mark.parametrize(
    "text",
    [
        "Größe ≥ 1 — 数量 🦆",
        "",
        "x" * 1_000_000,
        "a\0b",
        "\ud800",
        "line\nline\t\x1b[31m",
        "…" * 5000,
    ],
)
def test_any_text_anywhere_gives_a_valid_small_event(
    text: str, request_: GateRequest, passed: GateReport
) -> None:
    named = dict.fromkeys(("check", "expression", "expected", "value", "reason", "metric"), text)
    verdict = verdict_of(text, **named, column=text, tags=(text,), status=Status.FAILED)
    snapshot = DatasetSnapshot(
        "orders",
        "/data/" + text[:200],
        text,
        fields=(DatasetField(text, text),),
        metrics=(MetricResult("null_count", text, 1),),
    )
    key = replace(passed.run_key, gate=text, scheduler_run=text)
    request = replace(
        request_,
        run_key=key,
        datasets=(DatasetRef("orders", path="/data/" + text[:200]),),
        results_root="/results/" + text[:200],
    )
    report = replace(
        passed,
        suite=text,
        run_key=key,
        verdicts=(verdict,),
        datasets=(snapshot,),
        outcome=Outcome.BLOCKED,
    )
    written = history(request, report)
    crash = events.crash_event(request, RUN_ID, START, text, text)
    for event in [*written, crash]:
        raw = Serde.to_json(event)
        assert len(raw) < 200_000
        assert "\\u0000" not in raw
        json.loads(raw).__repr__().encode("utf-8")  # no lone surrogate is left
    assert problems(written) == []


def test_credentials_in_locations_and_messages_are_not_emitted(
    request_: GateRequest, passed: GateReport
) -> None:
    location = "s3a://AKIA:hunter2@lake/silver/orders"
    request = replace(
        request_, datasets=(DatasetRef("orders", path=location),), results_root=location
    )
    error = replace(passed.verdicts[0], status=Status.ERROR, reason=f"cannot read {location}")
    report = replace(passed, outcome=Outcome.BROKEN, verdicts=(error,), datasets=())
    message = f"cannot read {location}, password=hunter2"
    crash = events.crash_event(request, RUN_ID, START, message)
    for event in [*history(request, report), crash]:
        assert "hunter2" not in Serde.to_json(event)
        assert "AKIA" not in Serde.to_json(event)
