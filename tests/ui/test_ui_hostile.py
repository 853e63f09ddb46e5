"""Hostile names and values remain plain text on every page."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from dataclasses import replace
from hashlib import sha256
from typing import TYPE_CHECKING

import pytest

from dqx_airflow.values import (
    DatasetSnapshot,
    EnforcedContract,
    FailingRow,
    Promotion,
    SourceFile,
    Span,
)
from tests.ui.ui_scene import BAD_NULLS, Get, Html, Scene, report_of

if TYPE_CHECKING:
    from httpx import Response

pytestmark = pytest.mark.airflow


HOSTILE = {
    "script": "<script>alert(1)</script>",
    "attribute": '" onmouseover="alert(1)" x="',
    "template": "{{ 'seven' ~ 'teen' }}{% include 'x' %}",
    "long": "n" * 100_000,
    "override": "\u202eexe.stcudorp\u2066x\u200bx",
    "control": "a\x00b\x1b[31mc\x7f",
    "url": "a/../b?c=d&e=f#g%2e",
    "quote": "' onfocus='alert(1)' '",
    "svg": "</title></svg><img src=x onerror=alert(1)>",
    "style": "</style><style>*{display:none}</style>",
    "entity": "&lt;script&gt;&amp;amp;",
    "wide": "\N{FAMILY}" * 500,
    "arabic": "\u0637\u0644\u0628\u0627\u062a",
    "lines": "a\nb\r\nc\td",
}
STEERING = re.compile("[\u202a-\u202e\u2066-\u2069\u200b-\u200f\x00-\x08\x0b-\x1f\x7f]")


def assert_one_script(answer: Response) -> None:
    """Ours, which the policy knows by its hash; a browser runs no other."""
    scripts = re.findall(r"<script[^>]*>(.*?)</script>", answer.text, re.S | re.I)
    (digest,) = re.findall(
        r"script-src 'sha256-(.+?)'[; ]", answer.headers["content-security-policy"]
    )
    assert [b64encode(sha256(script.encode()).digest()).decode() for script in scripts] == [digest]


def assert_harmless(answer: Response) -> Html:
    assert answer.status_code == 200
    page = Html(answer.text)
    assert not {tag for tag, _ in page.elements} & {"img", "iframe", "object", "base"}
    assert_one_script(answer)
    attributes = {name for _, attributes in page.elements for name in attributes}
    assert not {name for name in attributes if name.startswith("on") or name == "style"}
    assert answer.text.count("<style>") == 1
    assert not STEERING.search(answer.text)
    assert "seventeen" not in page.text  # no number: the path of a results root may hold any
    assert len(answer.text) < 200_000
    return page


@pytest.mark.few(1)
@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_strings_of_a_report_are_escaped(get: Get, tab: Get, scene: Scene, text: str) -> None:
    stored = text.replace("\x00", "")  # neither Delta nor a database keeps it
    verdict = replace(
        BAD_NULLS,
        name=stored,
        check=stored,
        datasets=("orders", stored),
        expression=stored,
        expected=stored,
        scaled_value=stored,
        reason=stored,
        note=stored,
        tags=(stored,),
        profiles=(stored,),
        span=Span(stored[:50], 3, 2, 3, 9),
        source_line=stored,
        failing_rows=(FailingRow(stored, stored, json.dumps({stored: stored, "b": [stored]})),),
        clause=stored,
    )
    scene.dag(owners=stored[:500])
    scene.ran(
        report_of(
            verdicts=(verdict,),
            suite=stored,
            datasets=(
                DatasetSnapshot(stored[:150], stored, "delta", rows=3, promote_to=stored),
                DatasetSnapshot("b", f"/b/{stored}", "delta", promotion=Promotion(stored, 3, 4)),
            ),
            contract=EnforcedContract(stored[:150], stored[:150], stored[:150], checked=1),
        ),
        sources=(SourceFile(stored[:50], f"{stored}\n" * 4), SourceFile(f"{stored[:50]}2", stored)),
    )
    assert assert_harmless(tab()).all("div", class_="at failed")
    board = assert_harmless(get("board"))
    found = {str(link["href"]) for link in board.all("a")}
    pages = [href for href in found if href.startswith(("dataset?", "contract?"))]
    assert len(pages) == 3
    for page in pages:
        assert_harmless(get(page))


@pytest.mark.few(1)
@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_parameters_are_escaped(get: Get, tab: Get, scene: Scene, text: str) -> None:
    text = text[:5000]  # servers refuse longer addresses
    scene.ran(report_of())
    filters = dict.fromkeys(("dag", "dataset", "contract", "outcome", "severity", "owner"), text)
    assert_harmless(get("board", **filters))
    assert_harmless(tab(attempt=text, map_index=text))
    assert_harmless(get("datasets", search=text, outcome=text))
    pages = (
        get("dataset", location=text),
        get("contract", id=text),
        tab(run_id=text),
        tab(task_id=text),
    )
    for answer in pages:
        assert answer.status_code == 404
        assert "img" not in {tag for tag, _ in Html(answer.text).elements}
        assert_one_script(answer)
        assert not STEERING.search(answer.text)


ODD: dict[str, object] = {
    "text": "not a summary",
    "number": 7,
    "list": [{"outcome": "passed"}],
    "empty": {},
    "unknown outcome": {"outcome": "great"},
    "bare": {"outcome": "blocked"},
    "wrong types": {
        "outcome": "blocked",
        "run_id": 7,
        "gate": ["a"],
        "date": {"a": 1},
        "suite": None,
        "headline": 1.5,
        "finished_at": "yesterday",
        "fail_on": "P9",
        "counts": {"failed": "many", "passed": -3, "errors": None},
        "datasets": [{"name": "a"}, None, 3],
        "locations": {"3": {"a": 1}, "None": ["b"]},
        "versions": [1],
        "quarantined": "none",
        "promoted": {"a": "x", "b": None},
        "not_promoted": {"a": 1},
        "validated": {"a": ["x"], "b": {"location": {"c": 1}}},
        "contract": {"id": ["a"], "version": {"b": 1}, "checked": "x", "unsupported": -3},
        "more_verdicts": "x",
        "verdicts": [
            7,
            {},
            {"status": "failed", "severity": "P0"},
            {"status": "failed", "severity": "P0", "assertion": ["a"], "scaled_value": {"a": 1}},
            {"status": "failed", "severity": "P0", "value": 1e308, "multiplier": "2"},
            {"status": ["failed"], "severity": {}},
        ],
    },
    "json in text": json.dumps({"outcome": "blocked", "gate": "lake.gate"}),
    "half a pair": {"outcome": "blocked", "gate": "\ud800", "datasets": ["\udfff"]},
    "deep": json.loads("[" * 200 + "]" * 200),
}


@pytest.mark.few(6, apart=True)
@pytest.mark.parametrize("pushed", ODD.values(), ids=ODD)
@pytest.mark.parametrize("operator", ["DqlGateOperator", "PythonOperator"])
def test_no_task_summary_breaks_a_page(
    get: Get, tab: Get, scene: Scene, pushed: object, operator: str
) -> None:
    scene.task(pushed=pushed, operator=operator)
    assert_harmless(tab())
    board = assert_harmless(get("board"))
    for found in board.all("a"):
        if "contract?" in str(found["href"]):
            assert_harmless(get(str(found["href"])))
