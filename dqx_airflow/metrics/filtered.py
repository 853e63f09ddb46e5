"""Aggregates over some of the rows: `FILTER (WHERE ...)` behind every function of an aggregate.

So metrics with many filters share one pass, with each other and with those without.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from dqx_airflow.metrics.metric import Aggregate

FUNCTIONS = (
    *("count", "sum", "try_sum", "min", "max", "first", "min_by", "percentile"),
    *("var_samp", "covar_pop", "stddev_pop"),
)
"""The functions of Spark that the built-in metrics aggregate by."""

_TOKEN = re.compile(
    rf"`(?:[^`]|``)*`|'(?:\\.|[^'\\])*'|(?P<opens>\b(?:{'|'.join(FUNCTIONS)})\()|[()]", re.DOTALL
)


def filtered(item: Aggregate, condition: str) -> Aggregate:
    """The aggregate over the rows for which a condition, in Spark SQL, is true.

    What a transaction log knows is about all rows, so that it cannot answer it.
    """
    if item.over is not None:
        return replace(item, sql=f"{item.sql} where {condition}", where=condition)
    sql = "".join(_with_filters(item.sql, condition))
    return replace(item, sql=sql, statistic=None, shortcut=None, where=condition)


def _with_filters(sql: str, condition: str) -> Iterator[str]:
    """The text in pieces, with the condition behind each call of an aggregate function."""
    done = depth = 0
    for token in _TOKEN.finditer(sql):
        if depth:
            depth += (token[0][-1] == "(") - (token[0] == ")")
            if not depth:
                yield f"{sql[done : token.end()]} FILTER (WHERE {condition})"
                done = token.end()
        elif token["opens"]:
            depth = 1
    yield sql[done:]
