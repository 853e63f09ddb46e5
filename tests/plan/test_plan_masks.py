"""What a mask covers, and what remains of an error message that may quote it."""

from __future__ import annotations

import pytest

from dqx_airflow.plan.masks import is_masked, without_values


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        ("tax_id", True),
        ("TAX_ID", True),
        ("tax_id.digits", True),  # a field of what is masked
        ("home", True),  # it holds what is masked
        ("home.street", True),
        ("Home.Street.number", True),
        ("home.city", False),
        ("tax_ids", False),
        ("street", False),
    ],
)
def test_a_mask_covers_the_column_its_fields_and_its_struct(column: str, expected: bool) -> None:
    assert is_masked(column, ("Tax_Id", "home.street")) is expected


@pytest.mark.parametrize(
    ("reason", "left"),
    [
        ("[CAST_INVALID_INPUT] The value 'A-1' of", "[CAST_INVALID_INPUT]"),
        ("the query failed: [DIVIDE.BY_ZERO] x 'A-1'", "the query failed: [DIVIDE.BY_ZERO]"),
    ],
)
def test_an_error_of_spark_is_reduced_to_its_condition(reason: str, left: str) -> None:
    assert without_values(reason) == f"{left} (the rest may quote masked columns)"


def test_our_own_messages_are_kept() -> None:
    reason = "dataset 'orders' has no column 'pricee': did you mean 'price'?"
    assert without_values(reason) == reason
