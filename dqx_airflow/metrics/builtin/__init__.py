"""The table of built-in metrics: one entry for each, with its Python counterpart beside it.

A new metric is an entry in one of the modules (`metrics.metric.Metric` describes its fields), and a
line in a case of `engine/proof/cases`. The reference page, completions, editor colours and
the list in the docs are generated from the entries.
"""

from __future__ import annotations

from dqx_airflow.metrics.builtin.columns import COLUMNS
from dqx_airflow.metrics.builtin.conditions import CONDITIONS, SPARK_SQL
from dqx_airflow.metrics.builtin.counts import COUNTS, KEYS
from dqx_airflow.metrics.builtin.dataset_differences import MATCHING
from dqx_airflow.metrics.builtin.frequencies import FREQUENCIES
from dqx_airflow.metrics.builtin.sequences import SEQUENCES
from dqx_airflow.metrics.builtin.values import STATISTICS, VALUES
from dqx_airflow.metrics.metric import Metric

TABLES = (
    COUNTS,
    VALUES,
    KEYS,
    FREQUENCIES,
    STATISTICS,
    SEQUENCES,
    CONDITIONS,
    COLUMNS,
    MATCHING,
    SPARK_SQL,
)
"""The metrics by topic, in the order of the reference page."""

METRICS: dict[str, Metric] = {metric.name: metric for table in TABLES for metric in table}
"""All metrics by name."""

CALLABLE: tuple[str, ...] = tuple(m.name for m in METRICS.values() if not m.is_internal)
"""The names that a suite may call."""
