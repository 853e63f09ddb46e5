"""Predicates over rows as Spark SQL: no content of a suite escapes its quotes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dqx_airflow.dql.constants import settle
from dqx_airflow.dql.nodes import Rows
from dqx_airflow.metrics.builtin import METRICS
from dqx_airflow.metrics.metric import COPIES, VALUE, ArgumentKind
from dqx_airflow.metrics.sql import malformed_alias, quote_literal, quote_name
from dqx_airflow.plan.model import MetricRequest
from dqx_airflow.plan.predicates import lookups_of, predicate_sql, settled
from tests.markdown_cases import Case, cases
from tests.sound_suites import sound_suite

CASES = list(cases(*Path(__file__).parent.glob("predicates/*.md")))
HOSTILE = (
    "'; DROP TABLE orders; --",
    "\\",
    "\\'",
    "'\\''",
    "`",
    "``) OR (`1`=`1",
    '"',
    "${env:HOME}",
    "${spark.app.name}",
    "$${x}",
    "{x}",
    "/* */ -- #",
    "a\tb",
    "größe 🦆",
)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_predicate_becomes_the_sql_of_the_case(case: Case) -> None:
    """A line of the case is a predicate, or a constant for those that follow."""
    lines = case.block("dql").text.splitlines()
    constants = [line for line in lines if line.startswith("const ")]
    rows = [f"assert each row: {line}" for line in lines if line and line not in constants]
    text = "\n".join(['suite "S" {', *constants, 'check "C" on orders {', *rows, "}", "}"])
    suite = sound_suite(text)
    constants_of = settle(suite.constants)
    requests = []
    for assertion in suite.checks[0].assertions:
        assert isinstance(assertion.claim, Rows)
        predicate = settled(assertion.claim.predicate, constants_of)
        requests.append(MetricRequest("orders", "violating_rows", (predicate,), None))
    written = [predicate_sql(request.arguments[0].node) for request in requests]
    lookups = dict.fromkeys(lookup for request in requests for lookup in lookups_of(request))
    written += [f"-- joins {lookup.reference} for {lookup.alias}" for lookup in lookups]
    case.expect("\n".join(written))


@pytest.mark.parametrize("text", HOSTILE)
def test_a_literal_is_its_string_and_nothing_else(text: str) -> None:
    written = quote_literal(text)
    assert _unescaped(written) == text
    assert "${" not in written


@pytest.mark.parametrize("name", HOSTILE)
def test_any_name_is_one_identifier(name: str) -> None:
    written = quote_name(name)
    assert "${" not in written
    if written.startswith("identifier("):
        written = _unescaped(written.removeprefix("identifier(").removesuffix(")"))
    assert re.fullmatch(r"`(?:[^`]|``)*`", written)
    assert written[1:-1].replace("``", "`") == name


@pytest.mark.parametrize("name", HOSTILE)
def test_no_metric_lets_an_argument_out_of_its_quotes(name: str) -> None:
    alias = malformed_alias("malformed_count", name)
    quoted = {quote_name(name), quote_literal(name), quote_name(alias), COPIES, VALUE}
    for metric in METRICS.values():
        if not metric.arguments or metric.is_internal or metric.name in ("sql", "query"):
            continue
        given: dict[ArgumentKind, object] = {
            ArgumentKind.COLUMNS: (name, name),
            ArgumentKind.SHARE: 1,
            ArgumentKind.STEP: 1,
        }
        arguments = tuple(
            given.get(argument.kind, name) for argument in (*metric.arguments, *metric.parameters)
        )
        for aggregate in metric.aggregates(arguments):
            for sql in (aggregate.sql, *dict(aggregate.sql_by_type).values()):
                rest = sql
                for part in quoted:
                    rest = rest.replace(part, "")
                assert re.fullmatch(r"[A-Za-z_ (),=1]*|[A-Za-z_ (),&*+/<>=0-9:'.-]*", rest), sql


def _unescaped(literal: str) -> str:
    """What Spark reads: a backslash stands for the character behind it."""
    assert re.fullmatch(r"'(?:[^'\\]|\\.)*'", literal, re.DOTALL)
    return re.sub(r"\\(.)", r"\1", literal[1:-1], flags=re.DOTALL)
