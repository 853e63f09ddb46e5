"""Clauses that depend on the dataset of the gate: judged, or errors if it lacks something."""

from __future__ import annotations

from datetime import date, datetime, timezone
from typing import Any

import pytest

from dqx_airflow import Contract, MemoryDatabase, Table
from dqx_airflow.contracts.enforcement.enforced_contract import enforce
from dqx_airflow.errors import SourceError
from dqx_airflow.values import GateReport, Outcome, Severity, SourceFile, Status, Verdict, to_json

DAY = date(2024, 11, 29)
NOW = datetime(2024, 11, 29, 12, tzinfo=timezone.utc)
TEXT = """\
contract:
  id: bronze.slots
  version: 1.0.0
  schema:
    columns:
      - {name: id, type: bigint, semantic: the slot}
      - {name: day, type: date, semantic: the day}
%s
"""
FRESH = "  quality: {freshness: {max_age_minutes: 1440}}"
BAND = "  volume: {baseline_rows_per_day: 2, alert_band: [0.5, 2.0]}"
AT = "      - {name: %s, type: timestamp, semantic: a moment}\n"


def report(rest: str, *, dated: bool, days: int = 7) -> GateReport:
    moments = [datetime(2024, 11, 29 - number, 6) for number in range(days)]
    rows = [
        {"id": 2 * number + more, "day": at.date(), "at": at, "seen": at}
        for number, at in enumerate(moments)
        for more in range(2)
    ]
    columns = ["id", "day", *(name for name in ("at", "seen") if f"name: {name}" in rest)]
    table = [{name: row[name] for name in columns} for row in rows]
    database = MemoryDatabase({"slots": table}, date_columns={"slots": "day"} if dated else {})
    return Contract.from_string(TEXT % rest).run(database, DAY, now=NOW).report


def verdict(found: GateReport, name: str) -> Verdict:
    return next(candidate for candidate in found.verdicts if candidate.name.endswith(name))


def test_freshness_without_a_column_takes_the_only_timestamp() -> None:
    found = verdict(report(AT % "at" + FRESH, dated=False), "freshness")
    assert (found.status, found.expression) == (Status.PASSED, "freshness(at)")


@pytest.mark.parametrize("moments", ["", AT % "at" + AT % "seen"], ids=["none", "two"])
def test_freshness_without_a_column_takes_the_date_column_of_the_gate(moments: str) -> None:
    found = verdict(report(moments + FRESH, dated=True), "freshness")
    assert (found.status, found.expression) == (Status.PASSED, "freshness(day)")


@pytest.mark.parametrize("moments", ["", AT % "at" + AT % "seen"], ids=["none", "two"])
def test_freshness_without_a_timestamp_is_an_error(moments: str) -> None:
    broken = report(moments + FRESH, dated=False)
    found = verdict(broken, "freshness")
    assert broken.outcome is Outcome.BROKEN
    assert (found.status, found.datasets) == (Status.ERROR, ("slots",))
    assert "so the column of the age is unknown" in str(found.reason)
    assert found.clause == "contract.quality.freshness.max_age_minutes"
    assert to_json(broken)


def test_a_missing_day_counts_as_zero_rows() -> None:
    assert verdict(report(BAND, dated=True), "volume").value == 2
    blocked = report(BAND.replace("rows_per_day: 2", "rows_per_day: 3"), dated=True, days=3)
    assert blocked.outcome is Outcome.BLOCKED
    assert verdict(blocked, "volume").value == pytest.approx(6 / 7)


def test_a_volume_over_days_is_an_error_without_dates() -> None:
    broken = report(BAND, dated=False)
    found = verdict(broken, "volume")
    assert (broken.outcome, found.status) == (Outcome.BROKEN, Status.ERROR)
    assert "dataset 'slots' has no date_column" in str(found.reason)


# What no rule can be made of ---------------------------------------------------------------------

DCS = """\
dataContractSpecification: 1.2.1
id: orders
info: {title: Orders, version: 1.0.0}
%s
models:
  orders:
    fields:
      id: {type: long, required: true%s}
    quality:
      - %s
%s
"""
UNENFORCEABLE = {
    "unknown_engine": "{type: custom, engine: monte-carlo, implementation: {a: 1}, severity: %s}",
    "no_query": "{type: sql, query: SELEC 1, mustBe: 0, severity: %s}",
    "no_threshold": "{type: sql, query: SELECT COUNT(*) FROM orders, severity: %s}",
    "unknown_expectation": (
        "{type: custom, engine: great-expectations, severity: %s, "
        "implementation: {expectation_type: expect_moon_to_be_full, kwargs: {}}}"
    ),
}


def ran(text: str, **settings: Any) -> GateReport:
    database = MemoryDatabase({"orders": [{"id": 1}]})
    return Contract.from_string(text).run(database, DAY, now=NOW, **settings).report


@pytest.mark.parametrize("kind", UNENFORCEABLE)
def test_a_check_that_cannot_be_enforced_is_an_error_of_its_own_severity(kind: str) -> None:
    text = DCS % ("", "", UNENFORCEABLE[kind] % "critical", "")
    broken = ran(text)
    (found,) = broken.with_status(Status.ERROR)
    assert (broken.outcome, found.severity) == (Outcome.BROKEN, Severity.P0)
    assert found.clause
    assert found.clause.startswith("models.orders.quality[0].")
    assert found.name.startswith("orders.")
    assert ran(DCS % ("", "", UNENFORCEABLE[kind] % "info", "")).outcome is Outcome.WARNED
    warned = ran(text, unsupported="warn")
    (let,) = warned.let_through
    assert (warned.outcome, let.status) == (Outcome.WARNED, Status.ERROR)
    assert "unsupported=warn" in str(let.reason)


ACCEPTED = "{owner: platform, reason: seen by the vendor}"


@pytest.mark.parametrize(
    ("head", "rule"),
    [
        ("", f"{{type: custom, engine: monte-carlo, x-dqx-accepted: {ACCEPTED}}}"),
        (
            "x-dqx-accepted: [{clause: 'models.orders.quality[0]', owner: platform, reason: seen}]",
            "{type: custom, engine: monte-carlo}",
        ),
        (
            "x-dqx-accepted: [{clause: orders.custom, owner: platform, reason: seen}]",
            "{type: custom, engine: monte-carlo}",
        ),
    ],
    ids=["beside it", "by its path", "by its name"],
)
def test_an_accepted_clause_is_skipped_and_reported(head: str, rule: str) -> None:
    results = Contract.from_string(DCS % (head, "", rule, "")).run(
        MemoryDatabase({"orders": [{"id": 1}]}), DAY, now=NOW
    )
    assert results.outcome is Outcome.PASSED
    (let,) = results.report.let_through
    assert let.status is Status.SKIPPED
    assert "accepted: models.orders.quality[0]." in str(results)
    assert "platform: seen" in str(results)
    assert results.report.contract is not None
    assert results.report.contract.accepted


def test_an_acceptance_does_not_disable_an_enforced_clause() -> None:
    rule = f"{{type: library, metric: rowCount, mustBe: 5, x-dqx-accepted: {ACCEPTED}}}"
    assert ran(DCS % ("", "", rule, "")).outcome is Outcome.BLOCKED


@pytest.mark.parametrize("missing", ["owner", "reason"])
def test_an_acceptance_needs_an_owner_and_a_reason(missing: str) -> None:
    kept = {"owner": "platform", "reason": "seen"}
    del kept[missing]
    rule = f"{{type: custom, engine: monte-carlo, x-dqx-accepted: {kept}}}"
    with pytest.raises(SourceError, match=f"has no {missing}"):
        Contract.from_string(DCS % ("", "", rule, ""))


@pytest.mark.parametrize(
    "clause", ["minLength: 3", "format: zipcode", "references: somewhere", "enum: []"]
)
def test_a_constraint_of_a_field_that_cannot_be_enforced_is_an_error(clause: str) -> None:
    broken = ran(DCS % ("", f", {clause}", "{type: library, metric: rowCount, mustBe: 1}", ""))
    (found,) = broken.with_status(Status.ERROR)
    assert found.clause == f"models.orders.fields.id.{clause.split(':', maxsplit=1)[0]}"
    assert broken.outcome is Outcome.BROKEN


@pytest.mark.parametrize(
    "level",
    [
        "freshness: {threshold: 1d}",
        "latency: {threshold: 1d}",
        "retention: {period: P1Y}",
        "frequency: {interval: sometimes}",
        "frequency: {interval: daily, cron: 0 0 * * 0}",
    ],
)
def test_a_service_level_that_cannot_be_measured_is_an_error(level: str) -> None:
    rule = "{type: library, metric: rowCount, mustBe: 1}"
    broken = ran(DCS % ("", "", rule, f"servicelevels: {{{level}}}"))
    (found,) = broken.with_status(Status.ERROR)
    name = level.split(":", maxsplit=1)[0]
    assert str(found.clause).startswith(f"servicelevels.{name}.")


def test_clauses_of_other_models_do_not_affect_the_enforced_model() -> None:
    text = DCS % ("", "", "{type: library, metric: rowCount, mustBe: 1}", "")
    text += "  lines:\n    fields: {n: {type: long}}\n    quality: [{type: custom, engine: x}]\n"
    enforced = enforce(SourceFile("c.yaml", text), on=DAY, models=["orders"]).over(())
    assert enforced.contract.unenforced == ()
    whole = enforce(SourceFile("c.yaml", text), on=DAY).over(())
    assert [clause.dataset for clause in whole.contract.unenforced] == ["lines"]


def test_unenforced_clauses_are_reported_in_python_as_in_a_gate() -> None:
    text = DCS % ("", "", "{type: custom, engine: monte-carlo, severity: terrible}", "")
    results = Contract.from_string(text).run(
        MemoryDatabase({"orders": [{"id": 1}]}), DAY, now=NOW, unsupported="warn"
    )
    assert "warning: assertion could not be evaluated: orders.custom" in str(results)
    assert "not checked: models.orders.quality[0].severity" in str(results)


# Who is called -----------------------------------------------------------------------------------


def test_a_failure_shows_owner_channel_runbook_response_and_hours() -> None:
    text = TEXT % (
        "  owner: {team: casino, primary: ann@x.ch, slack: '#casino'}\n"
        "  sla: {incident_response: page, incident_runbook: docs/r.md, business_hours: 24x7}\n"
        "  quality: {completeness: [{column: id, min_pct: 100}]}"
    )
    results = Contract.from_string(text).run(
        MemoryDatabase({"slots": Table.typed({"id": "bigint", "day": "date"}, [(None, DAY)])}), DAY
    )
    contacts = str(results).splitlines()[-2]
    assert contacts == (
        "owner: casino; contacts: ann@x.ch; channel: #casino; incident response: page; "
        "runbook: docs/r.md; business hours: 24x7"
    )


@pytest.mark.parametrize(
    ("head", "word"),
    [
        ("x-dqx-incident: {runbook: docs/r.md, channel: '#orders'}", "runbook: docs/r.md"),
        ("x-dqx-incident: {response: page us, business_hours: 9x5}", "business hours: 9x5"),
    ],
)
def test_other_dialects_declare_contacts_in_an_extension(head: str, word: str) -> None:
    rule = "{type: library, metric: rowCount, mustBe: 5}"
    results = Contract.from_string(DCS % (head, "", rule, "")).run(
        MemoryDatabase({"orders": [{"id": 1}]}), DAY, now=NOW
    )
    assert word in str(results)
