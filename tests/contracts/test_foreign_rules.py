"""The demands of Soda checks, and of expectations of Great Expectations."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dqx_airflow.contracts.dialects.foreign import Translation, great_expectations, soda, sodacl
from dqx_airflow.errors import NoCounterpartError
from tests.contracts.contract_parts import CASES, show_check
from tests.markdown_cases import Case, cases

ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=6,
)
SODA_KINDS = (
    *("row_count", "no_duplicate_values", "duplicate_percent", "missing_count", "invalid_count"),
    *("no_invalid_values", "avg", "avg_length", "freshness_in_days", "metric_query"),
)
SODA_KEYS = (
    *("must_be", "must_be_less_than", "must_be_between", "columns", "missing_values", "name"),
    *("valid_values", "valid_regex", "valid_format", "valid_min", "valid_length", "query_sql"),
    "valid_values_reference_data",
)
SODACL_WORDS = st.lists(
    st.sampled_from(
        (
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
        )
    )
)
EXPECTATIONS = list(cases(CASES / "great_expectations.md"))
EXPECTATION_KINDS = sorted(
    {case.title for case in EXPECTATIONS if case.title.startswith("expect_")}
)
ARGUMENTS = (
    *("column", "column_A", "column_B", "column_list", "value_set", "value", "min_value"),
    *("max_value", "strict_min", "mostly", "regex", "regex_list", "match_on", "like_pattern"),
    *("like_pattern_list", "quantile_ranges", "ignore_row_if", "or_equal", "row_condition"),
)


@pytest.mark.parametrize("case", [*cases(CASES / "soda.md"), *EXPECTATIONS], ids=str)
def test_a_rule_becomes_its_demands(case: Case) -> None:
    case.expect(show_check(case.block("yaml")))


def _is_translated_or_refused(translate: Callable[[], Translation]) -> bool:
    try:
        return bool(translate().demands)
    except NoCounterpartError as error:
        return bool(error.problem)


@pytest.mark.slow
@given(st.sampled_from(SODA_KINDS), st.dictionaries(st.sampled_from(SODA_KEYS), ANYTHING))
@settings(max_examples=150, deadline=None)
def test_any_soda_check_is_translated_or_refused(kind: str, keys: dict[str, object]) -> None:
    assert _is_translated_or_refused(lambda: soda.translate({"type": kind, **keys}, "amount"))


@pytest.mark.more
@given(SODACL_WORDS.map(" ".join) | ANYTHING)
@settings(max_examples=150, deadline=None)
def test_any_sodacl_check_is_translated_or_refused(check: object) -> None:
    assert _is_translated_or_refused(lambda: sodacl.translate_sodacl(check))


SODA_4_KINDS = ("missing", "invalid", "duplicate", "row_count", "aggregate", "metric", "schema")
SODA_4_KEYS = ("threshold", "filter", "valid_format", "missing_format", "columns", "function")


@given(
    st.dictionaries(
        st.sampled_from(SODA_4_KINDS), st.dictionaries(st.sampled_from(SODA_4_KEYS), ANYTHING)
    )
    | st.lists(SODACL_WORDS.map(" ".join) | ANYTHING, max_size=2)
    | ANYTHING
)
@settings(max_examples=150, deadline=None)
def test_checks_of_soda_in_any_form_are_translated_or_refused(checks: object) -> None:
    with suppress(NoCounterpartError):
        sodacl.translations_of(checks, "amount", ("orders",))


@pytest.mark.slow
@given(st.sampled_from(EXPECTATION_KINDS), st.dictionaries(st.sampled_from(ARGUMENTS), ANYTHING))
@settings(max_examples=150, deadline=None)
def test_any_expectation_is_translated_or_refused(kind: str, arguments: dict[str, object]) -> None:
    expectation = {"type": kind, "kwargs": arguments}
    assert _is_translated_or_refused(lambda: great_expectations.translate(expectation, "amount"))
