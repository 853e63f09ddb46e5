"""The demands of Soda checks."""

from __future__ import annotations

import pytest
from contract_parts import CASES, show_check
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_cases import Case, cases

from dqx_airflow.contracts.dialects.foreign import Translation, soda, sodacl

ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=6,
)
KINDS = (
    *("row_count", "no_duplicate_values", "duplicate_percent", "missing_count", "invalid_count"),
    *("no_invalid_values", "avg", "avg_length", "freshness_in_days", "metric_query"),
)
KEYS = (
    *("must_be", "must_be_less_than", "must_be_between", "columns", "missing_values", "name"),
    *("valid_values", "valid_regex", "valid_format", "valid_min", "valid_length", "query_sql"),
    "valid_values_reference_data",
)
WORDS = st.lists(
    st.sampled_from(
        [
            "row_count",
            "freshness",
            "(",
            "id",
            ",",
            ")",
            "<",
            "between",
            "5",
            "24h",
            "%",
            "and",
            "::",
        ]
    )
)


@pytest.mark.parametrize("case", list(cases(CASES / "soda.md")), ids=str)
def test_a_soda_check_becomes_its_demands(case: Case) -> None:
    case.expect(show_check(case.block("yaml")))


@given(st.sampled_from(KINDS), st.dictionaries(st.sampled_from(KEYS), ANYTHING))
@settings(max_examples=150, deadline=None)
def test_any_check_is_translated_or_refused(kind: str, keys: dict[str, object]) -> None:
    found = soda.translate({"type": kind, **keys}, "amount")
    assert found.demands if isinstance(found, Translation) else found


@given(WORDS.map(" ".join) | ANYTHING)
@settings(max_examples=150, deadline=None)
def test_any_sodacl_check_is_translated_or_refused(check: object) -> None:
    found = sodacl.translate(check)
    assert found.demands if isinstance(found, Translation) else found
