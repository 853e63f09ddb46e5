"""Two descriptions of a column: corrected, reworded, or with another meaning."""

from __future__ import annotations

import pytest

from dqx_airflow.contracts.diff.kinds import Wording, compare_wording


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Unique slot machine identifer.", "Unique slot machine identifier."),
        ("the amount\n  of the wager", "The amount of the wager."),
        ("Recieved by teh server", "Received by the server"),
        ("Stable accross firmware upates;", "Stable across firmware updates."),
        ("Amount of of the wager", "Amount of the wager"),
        ("Time stamp of the event", "Timestamp of the event"),
        ("Free-play credit", "Free play credit"),
        ("Amount in dollar", "Amount in dollars"),
        ("Exlcudes promotional credit", "Excludes promotional credit"),
        ("Colour of the chip", "Color of the chip"),
        ("The customer's email", "the customer\N{RIGHT SINGLE QUOTATION MARK}s email"),
    ],
)
def test_typing_errors_are_corrections(old: str, new: str) -> None:
    assert compare_wording(old, new) is Wording.CORRECTED


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Includes promotional credit", "Excludes promotional credit"),
        ("Amount in dollars", "Amount in cents"),
        ("Is never NULL", "Is NULL"),
        ("Is not unique", "Is unique"),
        ("Does not include tax", "Does include tax"),
        ("About 35% of the revenue", "About 53% of the revenue"),
        ("A number from 1 to 10", "A number from 1 to 100"),
        ("A change of -5", "A change of 5"),
        ("Rounded to 1.5 hours", "Rounded to 15 hours"),
        ("Before tax", "After tax"),
        ("Daily total", "Weekly total"),
        ("Gross win", "Net win"),
        ("At least one item", "At most one item"),
        ("Price > 0", "Price >= 0"),
        ("The cash of the hand", "The cash of the hand, without free play"),
        ("Isn't counted", "Is counted"),
    ],
)
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
