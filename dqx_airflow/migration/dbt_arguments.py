"""The arguments of a dbt test: columns, datasets, periods."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from dqx_airflow.contracts.dialects.durations import DAY_S, HOUR_S, MINUTE_S
from dqx_airflow.contracts.dialects.foreign.values import sql_name
from dqx_airflow.migration.dql_text import column_text
from dqx_airflow.migration.foreign_rule import UntranslatableError

PERIOD_S = {"minute": MINUTE_S, "hour": HOUR_S, "day": DAY_S, "week": 7 * DAY_S}
"""The seconds of the periods that dbt names, if their length is constant."""

_REF = re.compile(r"""\{?\{?\s*(?:ref|source)\((?P<names>[^)]*)\)\s*\}?\}?""")


class Arguments(dict[str, Any]):
    """The arguments of a test; `column` is the column that it is attached to, if any."""

    def __init__(self, given: Mapping[str, Any], column: str | None, dataset: str) -> None:
        super().__init__(given)
        self.column = column
        self.dataset = column_text(dataset)

    @property
    def path(self) -> str:
        """:raises UntranslatableError: the test is attached to no column, and names none."""
        return column_text(self.get("column_name") or self.column)

    @property
    def sql(self) -> str:
        return sql_name(self.path)

    def only(self, *known: str) -> None:
        """:raises UntranslatableError: there are others than these."""
        for key in self:
            if key not in known and key != "column_name":
                raise UntranslatableError(f"'{key}' has no counterpart")

    def relation(self, key: str) -> str:
        """The dataset that `ref('orders')` or `source('shop', 'orders')` names."""
        written = str(self.get(key) or "")
        match = _REF.search(written)
        names = match["names"] if match else written
        parts = [part.strip().strip("'\"") for part in re.split(r"[.,]", names)]
        if not parts[-1]:
            raise UntranslatableError(f"it has no {key}")
        # A source with the same name is another dataset.
        is_other = len(parts) > 1 and column_text(parts[-1]) == self.dataset
        return "_".join(parts) if is_other else parts[-1]

    def list_of(self, key: str) -> list[Any]:
        value = self.get(key)
        if not isinstance(value, list) or not value:
            raise UntranslatableError(f"it has no {key}")
        return value
