"""The page of `dql init` over many tables keeps to WCAG, fits a phone, and can be printed."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from tests.command_line import dql
from tests.small_lakes import write_small_lake
from tests.ui.axe import RUN, axe_script
from tests.ui.chromium import PROGRAM, chromium

pytestmark = [pytest.mark.nightly, pytest.mark.skipif(not PROGRAM, reason="needs chromium")]


def test_the_page_is_accessible_in_both_themes_and_is_printed_whole(tmp_path: Path) -> None:
    script = axe_script()
    write_small_lake(tmp_path / "lake")
    options = ("--dataset", tmp_path / "lake", "--calls-per-month", "20", "--format", "html")
    done = dql("init", tmp_path / "gates", *options)
    assert done.returncode == 0, done.output
    file = tmp_path / "lake.html"
    file.write_text(done.stdout, encoding="utf-8")
    with chromium(PROGRAM or "", tmp_path / "profile") as page:
        page.call("Page.setBypassCSP", enabled=True)  # for the script of the test alone
        for theme in ("light", "dark"):
            feature = {"name": "prefers-color-scheme", "value": theme}
            page.call("Emulation.setEmulatedMedia", features=[feature])
            page.open(file.as_uri())
            page.run(script)
            for width in (390, 1280):
                page.be_wide(width)
                result = page.run(RUN)
                assert result["rules"] > 8
                assert result["found"] == []
                assert page.run("document.documentElement.scrollWidth") <= width
        assert "2 rows have order_id values that are not in orders" in page.text
        printed = page.call("Page.printToPDF", landscape=True)["data"]
        assert base64.b64decode(printed).startswith(b"%PDF")
        page.call("Emulation.setEmulatedMedia", media="print")
        hidden = "getComputedStyle(document.querySelector('.wide')).overflowX"
        assert page.run(hidden) == "visible"
        assert not page.complaints
