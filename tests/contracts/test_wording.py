"""Two descriptions of a column: corrected, reworded, or with another meaning."""

from __future__ import annotations

from pathlib import Path

import pytest

from dqx_airflow.contracts.diff.wording import Wording, compare_wording
from tests.markdown_cases import rows

PAGE = Path(__file__).with_name("wording.md")
KINDS = {
    "Corrections": Wording.CORRECTED,
    "Other meanings": Wording.OTHER_MEANING,
    "Other words": Wording.REWORDED,
}


@pytest.mark.parametrize(
    ("old", "new", "kind"),
    [
        *((*row, kind) for title, kind in KINDS.items() for row in rows(PAGE, title)),
        ("the amount\n  of the wager", "The amount of the wager.", Wording.CORRECTED),
    ],
)
def test_a_description_is_corrected_or_reworded_or_means_something_else(
    old: str, new: str, kind: Wording
) -> None:
    assert compare_wording(old, new) is kind


@pytest.mark.parametrize("text", ["", "One line.", "Two\nlines"])
def test_whitespace_is_not_a_change(text: str) -> None:
    assert compare_wording(text, f"  {text}\n") is Wording.SAME


def test_long_strings_are_compared_quickly() -> None:
    long = "word " * 100_000
    assert compare_wording(long, f"{long} 5") is Wording.OTHER_MEANING
