"""No number in SQL determines how much memory a gate needs."""

from __future__ import annotations

import pytest

from dqx_airflow.dql.spark_calls import objection_to_calls


@pytest.mark.parametrize(
    "text",
    [
        "max(lpad(id, 10, '0')) || repeat('-', 40) || space(3)",
        "max(size(array_repeat(id, 3)))",
        "count(*) FROM (SELECT explode(sequence(min(day), max(day), INTERVAL 1 DAY)) FROM t)",
        "sum(size(sequence(1, 100))) + size(sequence(1, 1000000, 1000))",
        "sum(aggregate(items, 0, (total, item) -> total + item))",
        "sum(aggregate(items, CAST(0 AS DECIMAL(20, 2)), (total, item) -> total + item))",
        "sum(reduce(items, 0.0D, (a, b) -> a + b)) + sum(aggregate(items, -1, (a, b) -> a))",
        "max(format_string('%05d of %s', id, name))",
        "approx_count_distinct(id) + approx_count_distinct(id, 0.01)",
    ],
)
def test_a_literal_size_is_accepted(text: str) -> None:
    assert objection_to_calls(text) is None


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("max(repeat('x', 2000000000))", "size of repeat()"),
        ("max(REPEAT('x', n))", "size of repeat()"),
        ("max(`repeat`('x', 10001))", "size of repeat()"),
        ("max(repeat('x', 1e9))", "size of repeat()"),
        ("max(repeat('x', 5000 * 5000))", "size of repeat()"),
        ("max(repeat('x', (2000000000)))", "size of repeat()"),
        ("max(repeat(repeat('x', 9999), 9999))", "repeat() within repeat()"),
        ("max(lpad(concat(space(9999), 'x'), 9999))", "space() within lpad()"),
        ("sum(size(array_repeat(1, 2000000000)))", "size of array_repeat()"),
        ("sum(size(transform(array_repeat(1, 9), x -> array_repeat(x, y))))", "array_repeat()"),
        ("sum(size(sequence(1, 2000000000)))", "sequence()"),
        ("sum(size(sequence(a, b)))", "sequence()"),
        ("sum(size(sequence(a, b, INTERVAL 1 MICROSECOND)))", "sequence()"),
        ("sum(size(sequence(0, 1, 0)))", "sequence()"),
        ("max(format_string('%2000000000d', 1))", "format of format_string()"),
        ("max(printf(f, 1))", "format of printf()"),
        ("max(format_number(1, 2000000000))", "size of format_number()"),
        ("stack(2000000000, 1)", "size of stack()"),
        ("max(randstr(2000000000))", "size of randstr()"),
        ("max(aggregate(items, 'x', (a, b) -> concat(a, a)))", "aggregate()"),
        ("max(reduce(items, array(1), (a, b) -> concat(a, a)))", "reduce()"),
        ("max(aggregate(items, CAST(0 AS STRING), (a, b) -> a || a))", "aggregate()"),
        ("approx_count_distinct(id, 0.0000001)", "accuracy"),
        ("count_min_sketch(id, 0.0000000001, 0.9, 1)", "accuracy"),
    ],
)
def test_an_unbounded_size_is_refused(text: str, reason: str) -> None:
    assert reason in (objection_to_calls(text) or "it may run")
