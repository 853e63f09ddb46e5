"""Days, periods, lengths of time, shares and severities: one form of each, with one reader."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path

import pytest
import typer

from dqx_airflow.cli.days import day, day_in_utc, first_and_last, share, span
from dqx_airflow.errors import RequestError
from dqx_airflow.values.request import selection_of
from dqx_airflow.values.typed_values import severity_of, share_of, typed_day
from tests.cli.test_output import COMMANDS
from tests.command_line import dql

CLI = Path(__file__).parents[2] / "dqx_airflow" / "cli"
_DAYS = {"--date", "--from", "--to", "--today", "--until"}
_IN_UTC = {"--today", "--until"}
_RUNS = {"contract test", "explain", "quarantine release", "run"}
"""Commands whose --date may be a range of days."""


def test_every_option_for_a_day_takes_the_same_words() -> None:
    for name, command in COMMANDS.items():
        options = {flag: each for each in command.params for flag in each.opts}
        for flag in _DAYS & options.keys():
            if flag == "--date" and name in _RUNS:
                continue
            expected = day_in_utc if flag in _IN_UTC else day
            assert getattr(options[flag].type, "func", None) is expected, f"{name} {flag}"


def test_a_period_has_three_options_everywhere() -> None:
    period = {"--from", "--to", "--days"}
    of_newest_days = {"init", "suggest"}
    for name, command in COMMANDS.items():
        given = period & {flag for each in command.params for flag in each.opts}
        assert given in (set(), period) or name in of_newest_days | {"contract registry consumers"}


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("2024-12-25", date(2024, 12, 25)),
        ("today", date(2024, 3, 1)),
        ("yesterday", date(2024, 2, 29)),
        ("-3d", date(2024, 2, 27)),
        ("-0d", date(2024, 3, 1)),
        ("3d", None),
        ("-3", None),
        ("-1w", None),
        ("2024-12-25T00:00:00+00:00", None),
        ("20241225", None),
        ("2024-W09-4", None),
        ("2023-02-29", None),
        ("\uff12024-12-25", None),
        ("", None),
    ],
)
def test_a_day_is_a_date_or_said_from_today(text: str, meant: date | None) -> None:
    assert typed_day(text, date(2024, 3, 1)) == meant


def test_a_period_is_given_once() -> None:
    last = date(2024, 3, 10)
    assert first_and_last(None, last, 3, default=90) == (date(2024, 3, 8), last)
    assert first_and_last(date(2024, 3, 1), last, default=90) == (date(2024, 3, 1), last)
    assert first_and_last(None, last, default=10) == (date(2024, 3, 1), last)
    with pytest.raises(RequestError, match="--from and --days contradict"):
        first_and_last(date(2024, 3, 1), last, 3, default=90)
    with pytest.raises(RequestError, match="is after --to"):
        first_and_last(date(2024, 3, 11), last, default=90)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("45s", timedelta(seconds=45)),
        ("0.5s", timedelta(seconds=0.5)),
        ("30m", timedelta(minutes=30)),
        ("2h", timedelta(hours=2)),
        ("7d", timedelta(days=7)),
        ("1w", timedelta(days=7)),
    ],
)
def test_a_length_of_time_has_its_unit(text: str, meant: timedelta) -> None:
    assert span(text) == meant
    with pytest.raises(typer.BadParameter, match="with its unit"):
        span(text[:-1])


@pytest.mark.parametrize(("text", "meant"), [("80%", 0.8), ("0.8", 0.8), ("0", 0), ("100%", 1)])
def test_a_share_says_that_it_is_one(text: str, meant: float) -> None:
    assert share(text) == meant


@pytest.mark.parametrize("text", ["80", "1", "1.0", "101%", "1.1", "-1%", "0,8", "%"])
def test_a_number_that_may_be_a_percentage_is_no_share(text: str) -> None:
    with pytest.raises(typer.BadParameter, match=r"80% or 0\.8"):
        share(text)


@pytest.mark.parametrize(
    "call",
    [
        ("results", "list", "--date", "{}"),
        ("incidents", "accept", "gate", "{}", "--reason", "r"),
        ("quarantine", "list", "held", "--date", "{}"),
        ("tune", "alerts", "orders.dql", "--from", "{}"),
        ("tune", "backtest", "orders.dql", "--to", "{}"),
        ("run", "orders.dql", "--date", "{}"),
    ],
    ids=" ".join,
)
def test_a_wrong_day_says_how_to_write_one(
    tmp_path: Path, call: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    called = dql(*(word.format("tomorrow") for word in call))
    assert called.returncode == 2
    assert "write 2024-12-25, today, yesterday or -3d" in called.output


def test_no_command_reads_days_or_severities_by_itself() -> None:
    by_itself = {
        f"{path.relative_to(CLI)}: {call}"
        for path in CLI.rglob("*.py")
        for call in ("fromisoformat(", "strptime(", "Severity(", "float(text)")
        if call in path.read_text(encoding="utf-8")
    }
    assert by_itself == set()


def test_a_wrong_severity_has_one_message() -> None:
    for given in ({"fail_on": "p1"}, {"min_severity": "p1"}):
        ((name, _),) = given.items()
        with pytest.raises(RequestError, match=rf"{name}='p1': write P0, P1, P2 or P3"):
            severity_of(name, given[name])
    with pytest.raises(RequestError, match="min_severity='p1': write P0, P1, P2 or P3"):
        selection_of(min_severity="p1")


@pytest.mark.parametrize(("given", "meant"), [("0", 0), ("0%", 0), (0.01, 0.01), ("1e-3", 0.001)])
def test_a_share_is_read_alike_in_operators_and_commands(given: object, meant: float) -> None:
    read = share_of(given)
    assert read is not None
    assert float(read) == share(str(given)) == meant
