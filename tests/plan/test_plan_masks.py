"""What a mask covers, and what remains of an error message that may quote it."""

from __future__ import annotations

import re
from urllib.parse import quote

import pytest

from dqx_airflow.dql.checks.read_only_sql import may_read
from dqx_airflow.metrics.builtin import METRICS
from dqx_airflow.metrics.metric import ArgumentKind
from dqx_airflow.plan.masks import is_masked, reveals_parts, without_values
from dqx_airflow.plan.model import MetricRequest


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
        ("/t/Tax_ID=A-1/x is bad: [NO_FILE] A-1", "/t/Tax_ID=***/x is bad: [NO_FILE]"),
    ],
)
def test_an_error_of_spark_is_reduced_to_its_condition(reason: str, left: str) -> None:
    assert without_values(reason, ["tax_id"]) == f"{left} (the rest may quote masked columns)"
    assert without_values(reason, []) == reason


@pytest.mark.parametrize("name", ["Tax Id", "a%/b:c"])
@pytest.mark.parametrize("value", ["A-1", "A 1", "A'1", 'A"1', "A=1", "A, 1", "A\\1", "A%2F1"])
@pytest.mark.parametrize("rest", ["/part-0.parquet is damaged", ""])
def test_the_value_in_the_name_of_a_folder_is_hidden_however_it_is_written(
    name: str, value: str, rest: str
) -> None:
    for folder in (name.replace("/", "%2F").replace("%/", "%25/"), quote(name, safe="")):
        reason = f"cannot read file:/t/{folder}={value}{rest}"
        assert without_values(reason, [name, "x"]) == f"cannot read file:/t/{name}=***{rest}"


def test_our_own_messages_are_kept() -> None:
    reason = "dataset 'orders' has no column 'pricee': did you mean 'price'?"
    assert without_values(reason, ["price"]) == reason


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT count(*) + sum(price) FROM t", False),
        ("SELECT max(price) FROM t WHERE city = 'tax id'", False),
        ('SELECT max("tax_id") FROM t', True),  # with spark.sql.ansi.doubleQuotedIdentifiers
        ('SELECT max(t."TAX_ID") FROM t', True),
        ("SELECT max(TAX_ID) FROM t", True),
        ("SELECT max(`ta\u017f`) FROM t", True),  # Spark takes the long s for an s
        ("SELECT max(home.city) FROM t", True),
        ("SELECT max(to_json(struct(*))) FROM t", True),
        ("SELECT max(b) FROM t AS s(a, b)", True),
        ("SELECT max(b) FROM (TABLE t) s", True),
        ("SELECT max(identifier('tax' || '_id')) FROM t", True),
        ("SELECT max(_metadata.file_path) FROM t", True),
        ("SELECT max(`dqx: text of price`) FROM t", True),
        ("this is no SQL", True),
    ],
)
def test_sql_may_read_a_column_unless_it_certainly_does_not(query: str, expected: bool) -> None:
    assert may_read(query, frozenset({"Tax_Id", "home.street", "tas"})) is expected


def test_of_a_masked_column_only_counts_and_lengths_are_stored() -> None:
    """Whatever a metric is computed from: a number of gaps from the extremes, for example."""
    stored = set()
    for name, metric in METRICS.items():
        if ArgumentKind.COLUMN not in {argument.kind for argument in metric.arguments}:
            continue
        given = ("salary",) * len(metric.arguments) + tuple(
            "salary" if parameter.kind is ArgumentKind.COLUMN else 1
            for parameter in metric.parameters
        )
        if not reveals_parts(MetricRequest("orders", name, given, None), {"orders": ("salary",)}):
            stored |= {aggregate.sql for aggregate in metric.aggregates(given)}
    of_counts = re.compile(r"count\(.*|(min|max)\(char_length\(`salary`\)\)|`salary` \w+ by .*")
    assert [sql for sql in stored if not of_counts.fullmatch(sql)] == []
    assert {"count(`salary`)", "max(char_length(`salary`))"} <= stored
