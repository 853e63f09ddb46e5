"""Two descriptions of a column: corrected, reworded, or with another meaning."""

from __future__ import annotations

from pathlib import Path

import pytest
from markdown_cases import rows

from dqx_airflow.contracts.diff.kinds import Wording, compare_wording

TABLES = Path(__file__).with_name("wording.md")


@pytest.mark.parametrize(
    ("old", "new"),
    [*rows(TABLES, "Corrections"), ("the amount\n  of the wager", "The amount of the wager.")],
)
def test_typing_errors_are_corrections(old: str, new: str) -> None:
    assert compare_wording(old, new) is Wording.CORRECTED


@pytest.mark.parametrize(("old", "new"), rows(TABLES, "Other meanings"))
def test_numbers_units_and_negations_change_the_meaning(old: str, new: str) -> None:
    assert compare_wording(old, new) is Wording.OTHER_MEANING


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("The category of the game", "The kind of game that was played"),
        ("The rate of the day", "The date of the day"),
        ("Win of the hand", "Won of the hand"),
        ("Customer who pays", "Customer who receives"),
        ("The machine", "The machine in the hall"),
        ("Cash of players", "Cost of players"),
    ],
)
def test_other_words_are_not_a_correction(old: str, new: str) -> None:
    assert compare_wording(old, new) is Wording.REWORDED


@pytest.mark.parametrize("text", ["", "One line.", "Two\nlines"])
def test_whitespace_is_not_a_change(text: str) -> None:
    assert compare_wording(text, f"  {text}\n") is Wording.SAME


def test_long_strings_are_compared_quickly() -> None:
    long = "word " * 100_000
    assert compare_wording(long, f"{long} 5") is Wording.OTHER_MEANING
