"""Calls without filters, because they are not about single rows of one dataset."""

from __future__ import annotations

from dqx_airflow.metrics.builtin import METRICS
from dqx_airflow.metrics.derived import AGES, DISTRIBUTION, MOST_COMMON, SHORTCUTS, TIMELINESS
from dqx_airflow.metrics.metric import Scan
from dqx_airflow.metrics.row_functions import QUANTIFIERS, ROW_FUNCTIONS

_OF_ROWS = frozenset((*AGES, *SHORTCUTS, DISTRIBUTION, MOST_COMMON, TIMELINESS, "values"))
"""Calls other than metrics that select rows."""


def takes_where(name: str) -> bool:
    """True for a call that measures rows, and so can measure some of them."""
    return METRICS[name].takes_where if name in METRICS else name in _OF_ROWS


def hint_without_where(name: str) -> str:
    """What to write instead of a filter in a call that takes none."""
    if name == "sql":
        return "write it in the SQL, as in sum(amount) FILTER (WHERE status = 'paid')"
    if name == "query":
        return "write it in the SQL, as in SELECT count(*) FROM orders WHERE status = 'paid'"
    if name in METRICS and METRICS[name].scan is Scan.MATCH:
        return "set a filter on each dataset"
    if name in METRICS and METRICS[name].scan is not Scan.FLAT:
        return "remove it: the result does not depend on the rows"
    if name in ROW_FUNCTIONS or name in QUANTIFIERS:
        return "write it after the assertion"
    return f'write it in the metric: {name}(average(price, where status == "paid"))'
