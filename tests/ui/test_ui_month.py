"""A month of 31 dates, decided on the pages alone, as someone on call would; and how long the lists
of many open dates and alerts are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta, timezone

import pytest

from dqx_airflow.results.incidents import open_slices, stored_incidents
from dqx_airflow.results.query import RunsWanted
from dqx_airflow.values import DatasetSnapshot, Outcome, Severity
from tests.ui.chromium import PROGRAM, Page
from tests.ui.ui_scene import BAD_NULLS, DAY, KEEP, NULLS, Scene, report_of

pytestmark = [
    pytest.mark.airflow,
    pytest.mark.nightly,
    pytest.mark.skipif(not PROGRAM, reason="needs chromium"),
]

UNUSUAL, FIRST, SECOND, GIVEN_UP, SILENT, ASKING = (
    DAY - timedelta(days=k) for k in (26, 19, 18, 11, 7, 0)
)
"""The dates that someone has to decide on: FIRST and SECOND are repaired in the source."""

UNTIL = datetime(2124, 3, 20, 20, tzinfo=timezone.utc)
TWO_SCREENS = 1800


def month(scene: Scene) -> None:
    """31 dates: four blocked, one without a report, and one that waits for an answer."""
    bad = replace(BAD_NULLS, severity=Severity.P1)
    for back in range(31):
        on = DAY - timedelta(days=back)
        if on == SILENT:
            scene.task(on=on, state="failed", number=900)
            continue
        is_bad = on in (UNUSUAL, FIRST, SECOND, GIVEN_UP, ASKING)
        report = report_of(
            1 + back,
            on=on,
            verdicts=(bad if is_bad else NULLS,),
            outcome=Outcome.BLOCKED if is_bad else Outcome.PASSED,
            datasets=(
                DatasetSnapshot(
                    "orders",
                    "s3://lake/orders",
                    "delta",
                    back,
                    5000,
                    fingerprint=f"f{back}",
                    promote_to="s3://lake/silver",
                ),
            ),
        )
        ran = scene.ran(report, number=1 + back)
        if on == ASKING:
            scene.asks(ran.attempt.id, UNTIL, KEEP)


@dataclass(slots=True)
class OnCall:
    """Someone on call: what is clicked and typed is noted."""

    page: Page
    clicks: list[str] = field(default_factory=list)
    typed: list[str] = field(default_factory=list)

    def follow(self, selector: str) -> None:
        """Clicks on something that leads to another page."""
        self.clicks.append(selector)
        self.page.click(selector)

    def open(self, title: str) -> None:
        """Opens a way out."""
        self.clicks.append(title)
        found = f"find(one => one.textContent.includes('{title}'))"
        self.page.run(f"[...document.querySelectorAll('summary')].{found}.click()")

    def type(self, selector: str, text: str) -> None:
        """Types into a field."""
        self.typed.append(text)
        self.page.run(f"document.querySelector('{selector}').value = '{text}'")

    def uncheck(self, on: date) -> None:
        """Takes a date out of the selection."""
        self.clicks.append(f"not {on}")
        self.page.run(f"document.querySelector('input[name=pick][aria-label*=\"{on}\"]').click()")


def repaired(scene: Scene, *dates: date) -> None:
    """The scheduler runs the cleared gates of these dates, and they pass."""
    for number, on in enumerate(dates, start=200 + (DAY - dates[0]).days):
        good = report_of(
            number, on=on, verdicts=(NULLS,), outcome=Outcome.PASSED, attempt=f"again-{on}"
        )
        later = good.started_at + timedelta(hours=3)
        scene.store(replace(good, started_at=later, finished_at=later))


def test_a_month_is_decided_on_the_pages_alone(scene: Scene, look: Callable[..., Page]) -> None:
    month(scene)
    person = OnCall(look("board", "eve"))
    assert "1 gate needs you" in person.page.text
    assert "6 open dates" in person.page.text
    person.follow(".lead a[href=slices]")
    listed = person.page.text
    for on in (UNUSUAL, FIRST, SECOND, GIVEN_UP, SILENT, ASKING):
        assert str(on) in listed
    assert "4 blocked, 1 no report" in listed
    assert "answer in Airflow until" in listed

    # The day of a campaign: unusual, and correct.
    person.follow(f"th a[href*='date={UNUSUAL}']")
    person.open("The data is unusual but correct")
    person.type('form[aria-label="Accept this data"] textarea', "campaign of the shop")
    person.follow('form[aria-label="Accept this data"] button[type=submit]')
    assert "campaign of the shop" in person.page.text

    # No one needs this day any more.
    person.follow("nav.bar a[href=slices]")
    person.follow(f"th a[href*='date={GIVEN_UP}']")
    person.open("This date is not needed")
    person.type("form[aria-label=Close] input[name=reason]", "the shop was closed")
    person.follow("form[aria-label=Close] button[type=submit]")

    # Two days are repaired in the source, and the run of another one had died: clear what is left.
    person.follow("nav.bar a[href=slices]")
    person.uncheck(UNUSUAL)
    person.follow(".selection button")
    repaired(scene, UNUSUAL)
    repaired(scene, FIRST, SECOND)
    repaired(scene, SILENT)
    assert [one.date for one in open_slices(str(scene.root))] == [ASKING]
    kinds = {one.date: one.status for one in stored_incidents(str(scene.root), RunsWanted())}
    assert kinds[GIVEN_UP] == "closed"

    # The last one waits for an answer, which Airflow takes.
    left = look("slices", "eve")
    assert "1 date is open: 1 waiting" in left.text
    href = "document.querySelector('td a[target=_top]').getAttribute('href')"
    assert str(left.run(href)).endswith("/required_actions")
    assert len(person.clicks) <= 11
    assert len(person.typed) == 2


def height(page: Page, width: int) -> int:
    page.be_wide(width)
    return int(page.run("document.querySelector('main').getBoundingClientRect().bottom + scrollY"))


def test_fourteen_open_dates_are_one_screen_and_a_half(
    scene: Scene, look: Callable[..., Page]
) -> None:
    scene.days("b" * 14)
    page = look("slices", "eve")
    assert height(page, 1400) < 1300
    assert height(page, 390) < 2 * TWO_SCREENS


@pytest.mark.parametrize("assertions", [1, 5, 30])
def test_thirty_alerts_are_two_screens(
    scene: Scene, look: Callable[..., Page], assertions: int
) -> None:
    verdicts = tuple(
        replace(BAD_NULLS, name=f"orders.a{k}", value=k / 100) for k in range(assertions)
    )
    scene.days("b" * (30 // assertions), verdicts=verdicts)
    page = look("alerts", "eve")
    assert "30 without a label" in page.text
    assert height(page, 1400) < TWO_SCREENS
    assert height(page, 390) < TWO_SCREENS
