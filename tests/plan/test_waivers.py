"""Waivers: how long they last, and which values they cover."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import date, datetime, timezone
from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dqx_airflow import MemoryDatabase, Suite
from dqx_airflow.plan.waivers import with_waivers
from dqx_airflow.values import Severity, Status, Verdict
from dqx_airflow.values.report import Waiver
from tests.made_reports import verdict_of

NOW = datetime(2024, 3, 20, 12, tzinfo=timezone.utc)


def waiver(until: date = date(2024, 3, 22), **limits: str | None) -> Waiver:
    return Waiver("g", "c", "a", until, "ticket", "ben", "eve", at=NOW, **limits)  # type: ignore[arg-type]


def verdict(value: object = Fraction(8, 100), **changes: object) -> Verdict:
    return verdict_of("a", **{"status": Status.FAILED, "check": "c", "value": value, **changes})


@pytest.mark.parametrize(
    ("value", "below", "above", "is_waived"),
    [
        (Fraction(8, 100), None, None, True),
        (Fraction(8, 100), "0.1", None, True),
        (Fraction(20, 100), "0.1", None, False),
        (Fraction(10, 100), "0.1", None, False),  # it reaches the limit
        (0.0999, "0.1", None, True),
        (900, None, "800", True),
        (700, None, "800", False),
        (900, "1000", "800", True),
        (None, "0.1", None, False),
        ("2024-03-20", "0.1", None, False),
        (None, None, None, True),
    ],
)
def test_a_waiver_covers_values_within_its_limits(
    value: object, below: str | None, above: str | None, is_waived: bool
) -> None:
    (found,) = with_waivers([verdict(value)], [waiver(below=below, above=above)], NOW)
    assert (found.waived_by is not None) is is_waived
    assert found.can_block(Severity.P1) is not is_waived


HOLDS: dict[str, Callable[[int], bool]] = {
    "> 5": lambda rows: rows > 5,
    "<= 20": lambda rows: rows <= 20,
    "== 7": lambda rows: rows == 7,
    "!= 7": lambda rows: rows != 7,
    "between 10 and 20": lambda rows: 10 <= rows <= 20,
    "not between 10 and 20": lambda rows: not 10 <= rows <= 20,
    # The margin of a group is not its value: the limit is another one in each group.
    ">= 2 * maximum(half)": lambda rows: rows >= 2 * (20 - rows % 20),
}
_LIMITS = st.sampled_from([None, 2, 5, 8, 13, 30, 40, 41])


@example([40, 2], "between 10 and 20", None, 5)
@example([2, 30], "== 7", 30, None)
@example([1, 5], ">= 2 * maximum(half)", 5, None)
@given(
    st.lists(st.sampled_from([1, 2, 7, 12, 15, 30, 39, 40]), min_size=1, max_size=4),
    st.sampled_from([*HOLDS]),
    _LIMITS,
    _LIMITS,
)
def test_a_waiver_covers_a_failure_only_with_all_groups_that_failed(
    counts: list[int], condition: str, below: int | None, above: int | None
) -> None:
    rows = [
        {"store": store, "half": 20 - count % 20}
        for store, count in enumerate(counts)
        for _ in range(count)
    ]
    suite = Suite.from_string(
        f'suite "S" {{ check "c" on o {{assert num_rows() {condition} for each store name "a"}} }}'
    )
    report = suite.run(MemoryDatabase({"o": rows}), NOW.date()).report
    failed = [count for count in counts if not HOLDS[condition](count)]
    (judged,) = (one for one in report.verdicts if one.name == "a")
    assert (judged.status is Status.FAILED) is bool(failed)
    limits = {"below": below, "above": above}
    texts = {name: None if limit is None else str(limit) for name, limit in limits.items()}
    (found,) = with_waivers([judged], [waiver(**texts)], NOW)
    is_within = all(
        (below is None or count < below) and (above is None or count > above) for count in failed
    )
    assert (found.waived_by is not None) is (bool(failed) and is_within)


@pytest.mark.parametrize(
    "expression", ["all { assert num_rows() > 9 }", "any { assert num_rows() > 9 }", "if a then b"]
)
def test_a_limit_does_not_count_the_claims_that_hold(expression: str) -> None:
    composed = verdict(1, expression=expression)
    waived = [with_waivers([composed], [waiver(below=limit)], NOW)[0] for limit in (None, "250")]
    assert [one.waived_by is not None for one in waived] == [True, False]


@pytest.mark.parametrize(
    ("changes", "is_waived"),
    [
        ({}, True),
        ({"expected": "<= maximum(b) (7)"}, True),  # the value of another day
        ({"condition": "<= maximum(c)"}, False),
        ({"condition": "< maximum(b)"}, False),
        ({"condition": "<= maximum(b) for each country"}, False),
        ({"expression": "null_count(x)"}, False),
    ],
)
def test_a_waiver_is_for_the_rule_that_had_this_name(
    changes: dict[str, object], is_waived: bool
) -> None:
    rule = {
        "expression": "maximum(a)",
        "condition": "<= maximum(b)",
        "expected": "<= maximum(b) (3)",
    }
    waived = replace(waiver(), rule=verdict(**rule).rule)
    (found,) = with_waivers([verdict(**{**rule, **changes})], [waived], NOW)
    assert (found.waived_by is not None) is is_waived
    if not is_waived:
        assert found.note is not None
        assert "another rule, `maximum(a) <= maximum(b)`" in found.note
    (before,) = with_waivers([verdict(**{**rule, **changes})], [waiver()], NOW)  # of version 0.2
    assert before.waived_by is not None


TEXTS = ("v", "w (y)", 'q) " for (', "u) and ((", "n (1) for b")


RULES = (
    "num_rows() == 0",
    "num_rows() <= maximum(x) * (2 - 3)",
    "maximum(t) == maximum(s)",
    'maximum(t) == "n (1) for b"',
    'maximum(t) == "n (2) for b"',
    "num_rows() > (maximum(x) + 100)",
    "num_rows() > (maximum(x) + 101)",
    "num_rows() between maximum(x) + 100 and (maximum(x) + 200)",
    "maximum(t) == maximum(s) for each `(g) for (`",
    "maximum(t) == maximum(s) where x > 0",
)


def test_a_rule_is_what_the_suite_has_without_the_values_of_a_day() -> None:
    assertions = "\n".join(f'assert {rule} name "{n}"' for n, rule in enumerate(RULES))
    suite = Suite.from_string(f'suite "S" {{ check "C" on o {{ {assertions} }} }}')
    found: dict[str, set[str]] = {}
    for text in TEXTS:
        rows = [{"x": len(text) + n, "s": text, "t": "z", "(g) for (": "a"} for n in range(2)]
        for verdict in suite.run(MemoryDatabase({"o": rows}), date(2024, 3, 2)).report.verdicts:
            found.setdefault(verdict.name, set()).add(verdict.rule)
    rules = [found[str(n)] for n in range(len(RULES))]
    assert [len(one) for one in rules] == [1] * len(RULES)
    assert len(set().union(*rules)) == len(RULES)
    assert {RULES[0], *RULES[2:5], RULES[8]} < set().union(*rules)


@pytest.mark.parametrize(
    ("at", "is_active"),
    [
        (datetime(2024, 3, 20, 11, 59, tzinfo=timezone.utc), False),
        (NOW, True),
        (datetime(2024, 3, 22, 23, 59, 59, tzinfo=timezone.utc), True),
        (datetime(2024, 3, 23, tzinfo=timezone.utc), False),
    ],
)
def test_a_waiver_ends_by_itself_at_the_end_of_its_day(at: datetime, is_active: bool) -> None:
    (found,) = with_waivers([verdict()], [waiver()], at)
    assert (found.waived_by is not None) is is_active


@pytest.mark.parametrize(
    "changes",
    [
        {"severity": Severity.P0},
        {"is_required": True},
        {"status": Status.ERROR},
        {"status": Status.PASSED},
        {"check": "another"},
    ],
)
def test_a_waiver_is_for_one_assertion_that_failed_and_may_be_waived(
    changes: dict[str, object],
) -> None:
    (found,) = with_waivers([verdict(**changes)], [waiver()], NOW)
    assert found.waived_by is None
