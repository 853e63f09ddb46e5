"""The pages in a real browser: times and theme as chosen, keyboard, content security policy."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timezone
from typing import Any

import pytest

from dqx_airflow.values import SourceFile
from tests.ui.chromium import PROGRAM, Page
from tests.ui.test_ui_hostile import HOSTILE
from tests.ui.ui_scene import BAD_NULLS, NOT_EMPTY, Scene, report_of

pytestmark = [
    pytest.mark.airflow,
    pytest.mark.slow,
    pytest.mark.skipif(not PROGRAM, reason="needs chromium"),
]

TAB = "gate?dag_id=lake&run_id=scheduled__2024-03-20&task_id=gate&map_index={MAP_INDEX}"
SUITE = SourceFile("orders.dql", "".join(f"line {number}\n" for number in range(1, 201)))


def ran(scene: Scene, **changes: Any) -> None:
    scene.ran(report_of(**changes), sources=(SUITE,))


def test_nothing_on_a_page_breaks_its_own_policy(scene: Scene, look: Callable[..., Page]) -> None:
    ran(scene)
    for page in (TAB, "board", "dataset?location=s3://lake/orders"):
        shown = look(page)
        assert "lake.gate" in shown.text
        assert shown.complaints == []


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [
        ({}, "2024-03-20 13:00:40 Europe/Zurich"),
        ({"timezone": '"Asia/Tokyo"'}, "2024-03-20 21:00:40 Asia/Tokyo"),
        ({"timezone": "UTC"}, "2024-03-20 12:00:40 UTC"),
        ({"timezone": '"Mars/Olympus"'}, "2024-03-20 13:00:40 Europe/Zurich"),
        ({"timezone": '"'}, "2024-03-20 13:00:40 Europe/Zurich"),
    ],
    ids=["of the browser", "of Airflow", "bare", "unknown", "broken"],
)
def test_times_are_those_of_the_zone_that_the_reader_chose(
    scene: Scene, look: Callable[..., Page], chosen: dict[str, str], expected: str
) -> None:
    ran(scene)
    page = look(TAB, **chosen)
    assert f"finished {expected}" in page.text
    assert page.run("[...document.querySelectorAll('main time')].pop().title") == (
        "2024-03-20 12:00:40 UTC"
    )


@pytest.mark.parametrize(
    ("hour", "expected"),
    [
        (0, "2024-10-27 02:30:00 Europe/Zurich GMT+2"),
        (1, "2024-10-27 02:30:00 Europe/Zurich GMT+1"),
        (2, "2024-10-27 03:30:00 Europe/Zurich"),
    ],
)
def test_the_hour_that_comes_twice_is_told_apart(
    scene: Scene, look: Callable[..., Page], hour: int, expected: str
) -> None:
    at = datetime(2024, 10, 27, hour, 30, tzinfo=timezone.utc)
    ran(scene, finished_at=at)
    assert f"finished {expected} run id" in look(TAB).text


def test_past_runs_are_shown_in_the_same_time_zone(scene: Scene, look: Callable[..., Page]) -> None:
    ran(scene)
    title = look("board", timezone='"Asia/Tokyo"').run("document.querySelector('.strip a').title")
    assert title == "2024-03-20 21:00:00 Asia/Tokyo: blocked"


@pytest.mark.parametrize(
    ("theme", "system", "is_dark"),
    [
        (None, "light", False),
        (None, "dark", True),
        ("dark", "light", True),
        ("light", "dark", False),
        ("system", "dark", True),
    ],
)
def test_the_theme_is_that_of_airflow_or_of_the_system(
    scene: Scene, look: Callable[..., Page], theme: str | None, system: str, is_dark: bool
) -> None:
    ran(scene)
    look("board").call(
        "Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": system}]
    )
    page = look("board", **({"theme": theme} if theme else {}))
    paper = page.run("getComputedStyle(document.documentElement).backgroundColor")
    assert paper == ("oklch(0.23185 0.0323 266.44)" if is_dark else "rgb(255, 255, 255)")


def test_everything_can_be_reached_and_opened_by_the_keyboard(
    scene: Scene, look: Callable[..., Page]
) -> None:
    ran(scene, verdicts=(BAD_NULLS, NOT_EMPTY))
    page = look(TAB)
    reached = []
    while "⋯ lines 9 to 200" not in reached:
        assert len(reached) < 60, reached
        page.press("Tab")
        text = str(page.run("document.activeElement.innerText")).split("\n")[0]
        reached.append(re.sub(r"^(Gates|Open dates|Alerts) [0-9].*$", r"\1", text))
        if page.run("document.activeElement.matches('details.passed > summary')"):
            page.press("Enter")
    ways = [
        "Skip to the content",
        "Gates",
        "Open dates",
        "Alerts",
        "Datasets",
        "Contracts",
        "Coverage",
        "Review",
    ]
    ways += ["Gates", "Incident", "Task and log", "Run of the DAG", "All runs of this gate"]
    assert reached[:14] == [*ways, "Dataset orders"]
    assert page.run("document.querySelector('details.passed').open")


def test_an_open_page_says_how_old_it_is(scene: Scene, look: Callable[..., Page]) -> None:
    ran(scene)
    page = look("incident?dag_id=lake&task_id=gate", "eve")

    def says(words: str) -> bool:
        """Whether the head of the page says so within some looks of its script."""
        for _ in range(100):
            if words in page.run("document.querySelector('.fresh').innerText"):
                return True
            page.run("new Promise(done => setTimeout(done, 100))")
        return False

    assert says("refreshes every 30 s")
    page.run("document.querySelector('.evidence a').focus()")
    assert says("paused while you are on a link")
    page.run("document.activeElement.blur()")
    assert says("refreshes every 30 s")
    page.run("document.querySelector('details[name=decide]').open = true")
    assert says("paused while a part is open")
    page.run("document.querySelector('details[name=decide]').open = false")
    page.run("document.querySelector('form[aria-label=Comment] input[name=reason]').value = 'x'")
    assert says("paused while you type")
    page.run("document.querySelector('form[aria-label=Comment]').reset()")
    page.run("const real = Date.now.bind(Date); Date.now = () => real() + 7200000")
    page.run("const fetched = fetch; window.fetch = () => Promise.reject(new Error('gone'))")
    assert says("no answer since")
    page.run("window.fetch = fetched; Date.now = () => real() + 14400000")
    assert says("refreshes every 30 s"), "it goes on when the server answers again"


def test_the_way_from_the_board_to_a_gate_and_to_its_dataset(
    scene: Scene, look: Callable[..., Page]
) -> None:
    ran(scene)
    page = look("board")
    page.click("tbody th a")
    assert "Assertions" in page.text
    page.click("a[href^='dataset?']")
    assert "Dataset orders" in page.text
    page.click(".bar a")
    assert page.run("document.querySelector('h1').innerText").startswith("Gates")


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_no_string_of_a_report_runs_as_code(
    scene: Scene, look: Callable[..., Page], text: str
) -> None:
    stored = text.replace("\x00", "")
    verdict = replace(
        BAD_NULLS,
        name=stored,
        expression=stored,
        expected=stored,
        reason=stored,
        profiles=(stored,),
    )
    scene.ran(report_of(verdicts=(verdict,)), sources=(SourceFile("orders.dql", stored),))
    for at in (TAB, "board"):
        page = look(at)
        assert page.dialogs == []
        assert page.complaints == []
        assert page.run("[...document.querySelectorAll('body *')].every(e => !e.onclick)")
        assert page.run("document.scripts.length") == 1
        assert page.run("document.documentElement.scrollWidth <= window.innerWidth"), "it fits"


def test_an_anonymous_user_is_asked_to_sign_in(scene: Scene, look: Callable[..., Page]) -> None:
    ran(scene)
    text = look(TAB, None).text
    assert "Sign in to Airflow first." in text
    assert "null_share" not in text
