"""The demands of Great Expectations expectations."""

from __future__ import annotations

import pytest
from contract_parts import CASES, show_check
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_cases import Case, cases

from dqx_airflow.contracts.dialects.foreign import Translation
from dqx_airflow.contracts.dialects.foreign.great_expectations import translate

ALL = list(cases(CASES / "great_expectations.md"))
KINDS = sorted({case.title for case in ALL if case.title.startswith("expect_")})
ARGUMENTS = (
    *("column", "column_A", "column_B", "column_list", "value_set", "value", "min_value"),
    *("max_value", "strict_min", "mostly", "regex", "regex_list", "match_on", "like_pattern"),
    *("like_pattern_list", "quantile_ranges", "ignore_row_if", "or_equal", "row_condition"),
)
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=6,
)


@pytest.mark.parametrize("case", ALL, ids=str)
def test_an_expectation_becomes_its_demands(case: Case) -> None:
    case.expect(show_check(case.block("yaml")))


@given(st.sampled_from(KINDS), st.dictionaries(st.sampled_from(ARGUMENTS), ANYTHING))
@settings(max_examples=150, deadline=None)
def test_any_expectation_is_translated_or_refused(kind: str, arguments: dict[str, object]) -> None:
    found = translate({"type": kind, "kwargs": arguments}, "amount")
    assert isinstance(found, Translation | str)
    assert found.demands if isinstance(found, Translation) else found
