"""The changes between two versions of a contract, and the required bump: cases in `diffs`."""

from __future__ import annotations

import re
from collections import Counter
from importlib.resources import files
from pathlib import Path

import pytest

import dqx_airflow
from dqx_airflow.contracts.diff import Change, Diff, diff
from dqx_airflow.contracts.diff.kinds import KINDS, kinds_table
from dqx_airflow.contracts.versions import Bump
from tests.contracts.contract_edits import base_of, contract_of, edited
from tests.markdown_cases import REWRITE, Case, cases

CASES = Path(__file__).parent / "diffs"
PAGE = Path(dqx_airflow.__file__).parent / "docs" / "review-changes.md"
ALL = list(cases(*CASES.glob("*_changes.md")))


@pytest.mark.few(50, apart=True)
@pytest.mark.parametrize("case", ALL, ids=str)
def test_every_change_is_reported_with_the_required_bump(case: Case) -> None:
    case.expect(show_diff(diff_of(case)))


@pytest.mark.few(10, apart=True)
@pytest.mark.parametrize("case", ALL, ids=str)
def test_a_contract_equals_itself(case: Case) -> None:
    found = diff_of(case)
    for contract in (found.old, found.new):
        assert diff(contract, contract).changes == ()


@pytest.mark.few(10, apart=True)
@pytest.mark.parametrize("case", ALL, ids=str)
def test_every_change_points_into_its_file(case: Case) -> None:
    old, new = texts_of(case)
    for change in diff_of(case).changes:
        for span, text in ((change.old_span, old), (change.new_span, new)):
            if span is not None:
                assert 0 < span.line <= len(text.splitlines())
        assert change.old_span or change.new_span


@pytest.mark.slow
def test_every_kind_of_the_table_has_a_case() -> None:
    assert {change.kind.name for case in ALL for change in diff_of(case).changes} == set(KINDS)


def test_the_page_has_the_table_of_all_changes() -> None:
    opening = PAGE.read_text(encoding="utf-8").partition("\n### Columns\n")[0]
    page = f"{opening}\n{kinds_table()}\n"
    if REWRITE:
        PAGE.write_text(page, encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == page


@pytest.mark.parametrize("weight", [Bump.MAJOR, Bump.MINOR, Bump.PATCH])
def test_the_weight_of_a_change_of_meaning_can_be_chosen(weight: Bump) -> None:
    case = next(case for case in ALL if case.title == "Change the meaning of a column")
    assert diff(*map(contract_of, texts_of(case)), semantic=weight).due is weight


@pytest.mark.parametrize("place", ["usage: ", "policies: [{name: use, url: ", "remarks: ["])
def test_a_change_at_the_end_of_a_long_string_is_reported(place: str) -> None:
    long, closing = "for ever and ever " * 100, place.count("{") * "}" + place.count("[") * "]"
    base = base_of(CASES / "dcs_changes.md")
    old, new = (
        contract_of(base.replace("usage: Analytics alone.", f'{place}"{long}{end}"{closing}'))
        for end in ("day", "night")
    )
    (change,) = diff(old, new).changes
    assert change.kind.name == "documented_clause_changed"
    assert (change.old, change.new) == (f"{long}day", f"{long}night")
    assert len(change.path) < 300


def texts_of(case: Case) -> tuple[str, str]:
    old = base_of(case.path)
    for block in case.blocks[:-2]:
        old = edited(old, block.text)
    return old, edited(old, case.blocks[-2].text)


def diff_of(case: Case) -> Diff:
    old, new = texts_of(case)
    return diff(contract_of(old, "old.yaml"), contract_of(new, "new.yaml"))


def show_diff(found: Diff) -> str:
    declared = found.declared.word if found.declared is not None else "unknown"
    lines = [f"due: {found.due.word}, declared: {declared}"]
    lines += [f"falls short: {found.shortfall}"] if found.shortfall else []
    return "\n".join([*lines, *map(line_of, found.changes)])


def line_of(change: Change) -> str:
    breaks = f" breaks {' and '.join(change.breaks)}" if change.breaks else ""
    return f"{change.bump.word} {change.kind.name} {change.path}: {change.message}{breaks}"


def test_a_kind_of_change_has_one_row_and_one_message() -> None:
    """A second one would replace the first one, with the message of another change."""
    folder = files("dqx_airflow.contracts.diff")
    rows = re.findall(r"^\| `(\w+)` \|", folder.joinpath("kinds.md").read_text("utf-8"), re.M)
    messages = re.findall(
        r"^    (\w+) \|", folder.joinpath("messages.txt").read_text("utf-8"), re.M
    )
    for kinds in (rows, messages):
        assert [kind for kind, count in Counter(kinds).items() if count > 1] == []
