"""`dql waivers add` and `dql waivers`."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from dqx_airflow.cli.main import app
from dqx_airflow.results.store import ResultsStore
from dqx_airflow.values import Severity
from tests.results.samples import FAILED, PASSED, sample_report

GATE = "orders_to_silver"


def day(days: int) -> str:
    return (datetime.now(timezone.utc).date() + timedelta(days=days)).isoformat()


@pytest.fixture
def root(tmp_path: Path) -> str:
    clause = replace(FAILED, name="late", severity=Severity.P1, clause="models.orders.late")
    twice = [replace(PASSED, name="twice", check=check) for check in ("a", "b")]
    composed = replace(clause, name="each", clause=None, expression="all { assert num_rows() > 9 }")
    required = replace(PASSED, name="must", is_required=True)
    report = sample_report(verdicts=(FAILED, clause, *twice, required, composed))
    ResultsStore(str(tmp_path / "store")).write(report)
    return str(tmp_path / "store")


def dql(*arguments: str) -> Result:
    variables = {"DQX_RESULTS_ROOT": None, "FORCE_COLOR": None, "NO_COLOR": None}
    return CliRunner().invoke(app, [*arguments], env=variables)


def waive(root: str, assertion: str, *more: str, until: str = "", gate: str = GATE) -> Result:
    words = ["--reason", "ticket 7", "--owner", "ben", "--author", "eve", "--results-root", root]
    return dql("waivers", "add", gate, assertion, "--until", until or day(3), *words, *more)


def test_a_waiver_is_stored_listed_and_ended(root: str) -> None:
    made = waive(root, "models.orders.late", "--below", "10%")
    assert made.exit_code == 0, made.output
    assert made.stdout == (
        f"late of {GATE}: waived until {day(3)}, below 0.1; owner ben: ticket 7\n"
    )
    (one,) = json.loads(dql("waivers", "--results-root", root, "--format", "json").stdout)
    assert (one["assertion"], one["below"], one["author"]) == ("late", "0.1", "eve")
    header, line = dql("waivers", "--results-root", root).stdout.splitlines()
    assert header.split()[-1] == "state"
    assert line.split()[1:6] == [GATE, "late", day(3), "below", "0.1"]
    call = ("waivers", "end", one["id"][:8], "--results-root", root, "--author", "ben")
    assert dql(*call).exit_code == 2
    assert f"would end the waiver {one['id'][:8]} of late" in dql(*call, "--dry-run").output
    ended = dql(*call, "--yes")
    assert ended.stdout == f"ended: late of {GATE}\n"
    assert dql("waivers", "--results-root", root).stdout == "no waiver\n"
    assert "ended by ben" in dql("waivers", "--results-root", root, "--all").stdout
    assert dql("waivers", "end", one["id"], "--results-root", root).exit_code == 2


@pytest.mark.few(3)
@pytest.mark.parametrize(
    ("assertion", "more", "message"),
    [
        ("no_negative_amounts", {}, "no_negative_amounts is P0, which no one can waive"),
        ("must", {}, "must is @required, which no one can waive"),
        ("lat", {}, "has no assertion 'lat'"),
        ("twice", {}, "several assertions are called 'twice'"),
        ("late", {"gate": "orders_to_silve"}, "did you mean 'orders_to_silver'?"),
        ("late", {"until": day(31)}, "would last 31 days, and may last 30"),
        ("late", {"until": day(-1)}, "would have ended"),
    ],
)
def test_what_cannot_be_waived_is_refused(
    root: str, assertion: str, more: dict[str, str], message: str
) -> None:
    refused = waive(root, assertion, **more)
    assert refused.exit_code == 2
    assert message in refused.output
    assert dql("waivers", "--results-root", root).stdout == "no waiver\n"


@pytest.mark.parametrize("zone", ["Etc/GMT+12", "Pacific/Kiritimati"])
def test_the_last_day_is_in_utc_wherever_it_is_typed(
    root: str, monkeypatch: pytest.MonkeyPatch, zone: str
) -> None:
    # One of the two has another day than UTC, whatever the time is.
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        made = waive(root, "late", until="today")
    finally:
        monkeypatch.undo()
        time.tzset()
    assert f"waived until {day(0)};" in made.stdout, made.output


def test_a_limit_needs_a_value(root: str) -> None:
    refused = waive(root, "each", "--below", "250")
    assert refused.exit_code == 2
    assert "each is about several assertions, and has no value of its own" in refused.output
    assert waive(root, "each").exit_code == 0


def test_limits_have_units_and_longer_waivers_are_asked_for(root: str) -> None:
    assert "above 7200" in waive(root, "late", "--above", "2 hours").stdout
    assert "is not a limit" in waive(root, "late", "--below", "ten").output
    assert waive(root, "a::twice", "--longest", "60d", until=day(50)).exit_code == 0
    assert "--reason is empty" in waive(root, "late", "--reason", " ").output
