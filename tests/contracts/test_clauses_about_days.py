"""A clause about days is judged by days, or by a timestamp; over data that has neither it is an
error, in every dialect and spelling."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone
from typing import Any

import pytest

from dqx_airflow import Contract, MemoryDatabase, Table
from dqx_airflow.contracts.compile.suite import compile_contract
from dqx_airflow.contracts.enforcement.lint import lint
from dqx_airflow.contracts.read import read_contract
from dqx_airflow.errors import SourceError
from dqx_airflow.values import DatasetRef, Outcome, SourceFile

NOW = datetime(2024, 12, 31, 12, tzinfo=timezone.utc)
TODAY = NOW.date()

DCS = """\
dataContractSpecification: 1.2.1
id: k
info: {title: K, version: 1.0.0, owner: o}
models: {t: {fields: {id: {type: integer}%s}}}
servicelevels: {%s}
"""
ODCS = """\
apiVersion: v3.1.0
kind: DataContract
id: k
version: 1.0.0
status: active
schema:
  - name: t
    properties:
      - {name: id, logicalType: integer}
%sslaProperties: [{%s}]
"""
FABRIC = """\
contract:
  id: lake.t
  version: 1.0.0
  schema:
    columns:
      - {name: id, type: int, semantic: the key}
%s%s
"""
PRODUCT = """\
contract: {name: t, version: 1.0.0, owner: o}
schema:
  fields:
    - {name: id, type: integer}
%s%s
"""
FIELDS = {
    DCS: ", %s: {type: %s}",
    ODCS: "      - {name: %s, logicalType: %s}\n",
    FABRIC: "      - {name: %s, type: %s, semantic: when}\n",
    PRODUCT: "    - {name: %s, type: %s}\n",
}
TIMES = {"ts": "timestamp", "day": "date"}

WORDS = ("hourly", "daily", "weekly", "monthly", "quarterly", "yearly", "annually", "Daily")
DURATIONS = ("15 minutes", "every 2 hours", "every day", "PT1H", "P1D", "24h", "7 days")
CRONS = ("0 6 * * *", "*/15 * * * *", "0 6 * * 1-5", "0 0 1 * *", "0 0 L * *", "@daily", "@hourly")
INTERVALS = (*WORDS, *DURATIONS, *CRONS)
AMOUNTS = ("1, unit: d", "1", "24, unit: h", "P1D", "12, unit: hours")


@dataclass(frozen=True)
class Clause:
    """A clause about time in a document; `has_element` if it names the column `ts`."""

    document: str
    text: str
    has_element: bool = False

    def source(self, column: str | None) -> str:
        """The document, with a column of times beside the key."""
        field = "" if column is None else FIELDS[self.document] % (column, TIMES[column])
        return self.document % (field, self.text)


FREQUENCIES = [
    *(Clause(DCS, f"frequency: {{interval: '{text}'}}") for text in INTERVALS),
    *(Clause(DCS, f"frequency: {{type: batch, cron: '{text}'}}") for text in CRONS),
    *(Clause(DCS, f"frequency: {{interval: daily, cron: '{text}'}}") for text in CRONS[:1]),
    *(Clause(ODCS, f"property: frequency, value: '{text}'") for text in INTERVALS),
    *(Clause(ODCS, f"property: fy, value: '{text}', element: t") for text in INTERVALS[:3]),
    *(
        Clause(ODCS, f"property: frequency, value: '{text}', element: t.ts", has_element=True)
        for text in INTERVALS
    ),
    *(Clause(ODCS, f"property: frequency, value: {amount}") for amount in AMOUNTS),
    *(
        Clause(ODCS, f"property: frequency, value: {amount}, element: t.ts", has_element=True)
        for amount in AMOUNTS
    ),
    *(
        Clause(PRODUCT, f"quality: {{freshness: {{update_frequency: '{text}'}}}}")
        for text in INTERVALS
    ),
    *(
        Clause(
            PRODUCT,
            f"quality: {{freshness: {{update_frequency: '{text}', column: ts}}}}",
            has_element=True,
        )
        for text in INTERVALS
    ),
]
AGES = [
    Clause(DCS, "freshness: {threshold: 1d}"),
    Clause(DCS, "freshness: {threshold: 1d, timestampField: t.ts}", has_element=True),
    Clause(ODCS, "property: freshness, value: 1, unit: d"),
    Clause(ODCS, "property: latency, value: 1, unit: d, element: t"),
    Clause(ODCS, "property: latency, value: 1, unit: d, element: t.ts", has_element=True),
    Clause(PRODUCT, "quality: {freshness: {max_hours: 24}}"),
    Clause(PRODUCT, "quality: {freshness_hours: 24}"),
    Clause(PRODUCT, "quality: {freshness: {max_hours: 24, column: ts}}", has_element=True),
    Clause(FABRIC, "  quality: {freshness: {max_age_minutes: 1440}}"),
    Clause(
        FABRIC,
        "  quality: {freshness: {max_age_minutes: 1440, measured_as: max(ts) vs now()}}",
        has_element=True,
    ),
]
PERIODS = [
    Clause(DCS, "retention: {period: P1Y}"),
    Clause(ODCS, "property: retention, value: 1, unit: y"),
    Clause(ODCS, "property: re, value: P1Y, element: t"),
    Clause(PRODUCT, "usage: {retention_days: 365}"),
    Clause(FABRIC, "  lifecycle: {retention_days: 365}"),
]
VOLUMES = [
    Clause(FABRIC, f"  volume: {{{key}: [0.5, 2.0]{baseline}}}")
    for key in ("alert_band", "alert_if_outside_band")
    for baseline in (", baseline_rows_per_day: 1", "")
]


def run(clause: Clause, rows: list[Any], column: str | None = "ts", *, is_dated: bool) -> Any:
    columns = {"id": "int"} | ({} if column is None else {column: TIMES[column]})
    dates = {"t": column} if column is not None and is_dated else {}
    database = MemoryDatabase({"t": Table.typed(columns, rows)}, date_columns=dates)
    contract = Contract.from_string(clause.source(column))
    return contract.run(database, TODAY, now=NOW, allow_empty=True)


STALE = [(1, NOW - timedelta(days=400))]
YOUNG = [(1, NOW - timedelta(minutes=1))]
RECENT = [(1, NOW - timedelta(minutes=5)), (2, NOW - timedelta(hours=30))]


@pytest.mark.few(16, apart=True)
@pytest.mark.parametrize("clause", [*FREQUENCIES, *AGES], ids=lambda clause: clause.text)
def test_stale_rows_are_found_with_and_without_a_date_column(clause: Clause) -> None:
    for is_dated in (True, False):
        assert run(clause, STALE, is_dated=is_dated).outcome is Outcome.BLOCKED
        assert run(clause, RECENT, is_dated=is_dated).outcome is Outcome.PASSED


@pytest.mark.parametrize(
    "clause", [*FREQUENCIES, *AGES, *PERIODS, *VOLUMES], ids=lambda clause: clause.text
)
def test_data_without_any_time_makes_it_an_error(clause: Clause) -> None:
    if clause.has_element:
        return
    report = run(clause, [(1,)], None, is_dated=False)
    assert report.outcome is Outcome.BROKEN
    assert "date_column" in str(report)


@pytest.mark.few(16, apart=True)
@pytest.mark.parametrize(
    "clause",
    [clause for clause in FREQUENCIES if not clause.has_element],
    ids=lambda clause: clause.text,
)
def test_a_date_is_enough_for_a_frequency(clause: Clause) -> None:
    stale = run(clause, [(1, date(2023, 6, 1))], "day", is_dated=True)
    assert stale.outcome is Outcome.BLOCKED
    recent = run(clause, [(1, TODAY)], "day", is_dated=True)
    assert recent.outcome is Outcome.PASSED


@pytest.mark.parametrize("clause", VOLUMES, ids=lambda clause: clause.text)
def test_a_volume_a_day_needs_days_even_if_there_is_a_timestamp(clause: Clause) -> None:
    report = run(clause, RECENT, is_dated=False)
    assert report.outcome is Outcome.BROKEN


@pytest.mark.parametrize("clause", PERIODS, ids=lambda clause: clause.text)
def test_a_retention_reads_a_timestamp_or_the_date_column(clause: Clause) -> None:
    def claims(column: str, date_column: str | None) -> str:
        contract = read_contract(SourceFile("k.yaml", clause.source(column))).contract
        assert contract is not None
        ref = DatasetRef("t", path="t", format="parquet", date_column=date_column)
        return compile_contract(contract, [ref], on=TODAY).text

    assert "`ts` <" in claims("ts", None)
    assert "`day` <" in claims("day", "day")


@pytest.mark.parametrize(
    "text", ["often", "1 blue moon", "6 * * *", "99 6 * * *", "0 0 30 2 *", "'0 6 * *'", "0", "''"]
)
@pytest.mark.parametrize(
    "clause",
    [
        Clause(DCS, "frequency: {interval: %s}"),
        Clause(ODCS, "property: frequency, value: %s, element: t"),
        Clause(PRODUCT, "quality: {freshness: {update_frequency: %s}}"),
    ],
    ids=["dcs", "odcs", "product"],
)
def test_what_is_no_interval_is_an_error(clause: Clause, text: str) -> None:
    try:
        report = run(Clause(clause.document, clause.text % text), RECENT, is_dated=True)
    except SourceError:
        return
    assert report.outcome is Outcome.BROKEN


NAMES_OF_AGES = """\
dataFreshness data_freshness freshness_sla fresh maxAge maxage dataAge data-age staleness recency
updateFrequency refreshFrequency refreshInterval updateinterval retentionPeriod dataRetention
retainFor dataLatency lag maxLag delay upToDateness loadDelay Freshness-SLA ingestionLatency
"""
OTHER_NAMES = """\
audience coverageOfRegions storage averageOrder language consumers breakingChangeCadence
deprecationNoticeDays cardinality generalAvailability endOfSupport timeOfAvailability flags
"""


@pytest.mark.few(4, apart=True)
@pytest.mark.parametrize("name", NAMES_OF_AGES.split())
def test_an_age_under_another_name_breaks_the_gate_and_names_the_right_one(name: str) -> None:
    for value in ("value: 1, unit: d", "value: P1D", "value: daily", "value: 1"):
        for element in (", element: t.ts", ", element: t", ""):
            clause = Clause(ODCS, f"property: {name}, {value}{element}")
            report = run(clause, STALE, is_dated=True)
            assert report.outcome is Outcome.BROKEN, clause.text
            assert "write `property: " in str(report), clause.text


@pytest.mark.parametrize("name", ["currency", "newestRow", "kept", "lastLoad"])
@pytest.mark.parametrize("value", ["1, unit: d", "24, unit: hours", "P1D", "daily", "1 day"])
def test_a_time_about_a_timestamp_is_an_age_whatever_its_name(name: str, value: str) -> None:
    clause = Clause(ODCS, f"property: {name}, value: {value}, element: t.ts")
    assert run(clause, STALE, is_dated=True).outcome is Outcome.BROKEN
    other = Clause(ODCS, f"property: {name}, value: {value}, element: t.id")
    assert run(other, STALE, is_dated=True).outcome is Outcome.PASSED


WITHOUT_TIME = """\
freshness: {maxAge: 1d} | freshness: {max: P1D, description: young} | freshness: {value: 1}
freshness: {maxAge: 1d, timestampField: t.ts} | retention: {days: 30} | retention: {maxAge: P1Y}
latency: {max: 5 minutes} | frequency: {every: 1 day} | frequency: {type: batch, schedule: daily}
retention: {unlimited: true, period: P1Y} | freshness: {hours: {warn: 1}} | freshness: [1d]
"""
IN_WORDS_ALONE = """\
freshness: {} | freshness: {description: young} | retention: {description: long, x-days: 3}
retention: {unlimited: true} | latency: {} | frequency: {description: often}
"""


def _levels(text: str) -> list[str]:
    return [one.strip() for row in text.splitlines() for one in row.split(" | ")]


@pytest.mark.parametrize("level", _levels(WITHOUT_TIME))
def test_a_service_level_whose_time_is_under_another_key_breaks_the_gate(level: str) -> None:
    try:
        report = run(Clause(DCS, level), STALE, is_dated=True)
    except SourceError:
        return
    assert report.outcome is Outcome.BROKEN


SECOND_TIME = """\
freshness: {threshold: 1000d, maxAge: 1d} | freshness: {threshold: 1000d, maximum: 24 hours}
freshness: {threshold: 1000d, within: P1D} | freshness: {threshold: 1000d, hours: 24}
latency: {threshold: 1000d, max: 5m, sourceTimestampField: t.ts, processedTimestampField: t.ts}
retention: {period: P100Y, minimum: 3y, timestampField: t.ts} | retention: {period: P100Y, keep: 7}
frequency: {interval: yearly, every: 1h} | frequency: {interval: yearly, atLeast: hourly}
frequency: {interval: yearly, schedule: "0 * * * *"} | freshness: {threshold: 1000d, by: {hours: 1}}
"""
SECOND_WORDS = """\
freshness: {threshold: 1000d, x-max: 1d} | freshness: {threshold: 1000d, note: by noon}
freshness: {threshold: 1000d, agreedIn: a meeting} | frequency: {interval: yearly, owner: daily}
"""


@pytest.mark.parametrize("level", _levels(SECOND_TIME))
def test_a_second_time_under_another_key_is_an_error_beside_the_first(level: str) -> None:
    contract = read_contract(SourceFile("k.yaml", Clause(DCS, level).source("ts"))).contract
    assert contract is not None
    assert [item.code for item in lint(contract) if item.code == "E428"] == ["E428"]
    assert run(Clause(DCS, level), YOUNG, is_dated=True).outcome is Outcome.BROKEN


@pytest.mark.parametrize("level", _levels(SECOND_WORDS))
def test_other_words_beside_the_time_of_a_service_level_are_yours(level: str) -> None:
    assert run(Clause(DCS, level), YOUNG, is_dated=True).outcome is Outcome.PASSED


@pytest.mark.parametrize("level", _levels(IN_WORDS_ALONE))
def test_a_service_level_in_words_alone_promises_nothing_and_is_a_warning(level: str) -> None:
    assert run(Clause(DCS, level), STALE, is_dated=True).outcome is Outcome.PASSED
    contract = read_contract(SourceFile("k.yaml", Clause(DCS, level).source("ts"))).contract
    assert contract is not None
    warned = [item.message for item in lint(contract) if item.code == "W020"]
    assert len(warned) == ("unlimited" not in level), warned


@pytest.mark.parametrize("name", OTHER_NAMES.split())
def test_other_properties_of_a_service_level_are_no_ages(name: str) -> None:
    clause = Clause(ODCS, f"property: {name}, value: 5")
    assert run(clause, STALE, is_dated=True).outcome is Outcome.PASSED
