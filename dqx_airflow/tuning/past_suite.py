"""A suite for judging past days: some of its assertions, its datasets, its requests."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from dqx_airflow.dql import nodes
from dqx_airflow.dql.checks.assertions import datasets_of
from dqx_airflow.dql.walk import parts_of
from dqx_airflow.metrics.builtin import METRICS
from dqx_airflow.plan.model import (
    Applied,
    Claimed,
    Now,
    Term,
)
from dqx_airflow.tuning.past_days import PastDay
from dqx_airflow.values import DatasetRef


def asks_for_now(term: Term) -> bool:
    if isinstance(term, Claimed):
        sides = (side for part in term.parts for side in (part.term, *part.condition.bounds))
        return any(map(asks_for_now, sides))
    if isinstance(term, Applied):
        return any(map(asks_for_now, term.terms))
    return isinstance(term, Now)


def with_assertions(suite: nodes.Suite, ids: Collection[int]) -> nodes.Suite:
    """The suite with only the assertions of these ids."""
    checks = (
        replace(
            check,
            body=tuple(assertion for assertion in check.assertions if id(assertion) in ids),
        )
        for check in suite.checks
    )
    return replace(suite, checks=tuple(check for check in checks if check.body))


def alone(suite: nodes.Suite, row: int) -> nodes.Suite:
    """The suite with only one of its assertions, by its position among those of all checks."""
    nodes_in_order = [node for check in suite.checks for node in check.assertions]
    return with_assertions(suite, {id(nodes_in_order[row])})


def is_plain(node: nodes.Assertion, constants: Collection[str]) -> bool:
    """True if what is measured contains no constant, and has no filter around it."""
    claim = node.claim
    if not isinstance(claim, nodes.Measure) or node.where is not None:
        return False
    names = (part.text for part in parts_of(claim.expression) if isinstance(part, nodes.Name))
    return not any(name in constants for name in names)


def refs_of(suite: nodes.Suite, days: Sequence[PastDay]) -> tuple[DatasetRef, ...]:
    """The datasets of the suite, with a date column unless they were read without one."""
    undated = {name for day in days[-1:] for key in day.measured.values for name in _undated(key)}
    return tuple(
        DatasetRef(name, table=name, date_column=None if name in undated else "?")
        for name in datasets_of(suite.checks)
    )


def _undated(key: str) -> Iterator[str]:
    """The dataset of a key, if it was read without dates."""
    dataset, metric, _, lag = json.loads(key)
    if lag is None and metric in METRICS and METRICS[metric].scan.has_dates:
        yield dataset
