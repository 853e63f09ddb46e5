"""The table `dql_results` for SQL of users: the verdicts of the runs that count."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

from dqx_airflow.results import query, schema
from dqx_airflow.results.query import StoredResults, opened

_MAP_INDEX = "regexp_match(\"scheduler_run\", '\\[([0-9]{1,9})\\]$')[1]"
"""The map index at the end of a scheduler run, as SQL; NULL if it is not of a mapped task."""
_VIEW = files(__package__).joinpath("dql_results.sql").read_text(encoding="utf-8")


def query_results(results: StoredResults | str, sql: str) -> list[dict[str, Any]]:
    """The rows of a SELECT over `dql_results`, the verdicts of the last run for each gate, date and
    map index; none if there is no store yet.

    :raises StoreError: the store cannot be read, or the SQL is invalid.
    """
    results = opened(results)
    runs = results.table(schema.RUNS)
    stored = results.table(schema.RESULTS)
    if runs is None or stored is None:
        return []
    is_counted = query.SHADOW in results.columns(schema.RESULTS)
    counting = f'AND stored."{query.SHADOW}" IS NULL' if is_counted else ""
    last = query.last_first(results.columns(schema.RUNS))
    view = _VIEW.format(last=last, counting=counting, index=_MAP_INDEX)
    return results.rows(view + sql, stored=stored, runs=runs)
