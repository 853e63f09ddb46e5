"""The target of a promotion: its state, what it rejects, and which gate promoted to it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any

from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from dqx_airflow.datasets.settings import is_table
from dqx_airflow.delta_log import require_whole_commits
from dqx_airflow.engine.outputs.promoted_slices import Noted, Promoter, Slice
from dqx_airflow.engine.outputs.replaced_rows import RefusedPromotionError, ReplacedRows
from dqx_airflow.engine.sources.dataset import OpenDataset
from dqx_airflow.errors import PromotionError
from dqx_airflow.metrics.sql import quote_name

RUN_ID, ROWS, GATE, SLICE = "dqx_run_id", "dqx_rows", "dqx_gate", "dqx_slice"
NOTES = "dqx_notes"
"""The commit entry in which Spark records what deltalake records as application transactions."""
_MOST_COMMITS = 200


@dataclass(frozen=True, slots=True)
class PromotionTarget:
    """The target of one dataset.

    :param location: the path of a Delta table, or the name of a catalog table.
    :param slice: the rows to replace.
    :param by: the gate that replaces them.
    :param rows: the number of validated rows, if known.
    """

    spark: SparkSession
    dataset: OpenDataset
    location: str
    slice: Slice
    by: Promoter
    rows: int | None
    run_id: str
    started: datetime
    is_blocked: bool = False

    @property
    def replaced(self) -> ReplacedRows:
        """The rows that are replaced in the target, and those that replace them."""
        return ReplacedRows(self.spark, self.dataset, self.slice)

    @property
    def order(self) -> int:
        """Of two runs, the one that started later wins, in whatever order they end."""
        return int(self.started.timestamp() * 1000)

    def failed(self, reason: str, hint: str = "") -> PromotionError:
        """The error of a promotion that may succeed later."""
        name, passed = self.dataset.ref.name, "" if self.is_blocked else "passed, but "
        return PromotionError(
            f"dataset '{name}' {passed}cannot be promoted to {self.location}: {reason}", hint
        )

    def late(self) -> PromotionError:
        """The error of a run that a later one has overtaken."""
        return self.failed("a run of a gate that started later has already promoted")

    def outside(self, how_many: str) -> RefusedPromotionError:
        """The error of rows that do not belong to the slice."""
        named = ", ".join(f"{name} = {text!r}" for name, text in self.slice.values)
        return RefusedPromotionError(
            f"{how_many} rows do not have the values of promote_slice: {named}",
            "set promote_slice to the values that the gate reads, or filter the dataset by them",
        )

    def check_columns(self, struct: StructType) -> None:
        """:raises RefusedPromotionError: the target has other columns than the dataset."""
        wanted = {field.name: field.dataType.simpleString() for field in self.dataset.struct}
        types = {field.name: field.dataType.simpleString() for field in struct}
        differing = [name for name in {**wanted, **types} if wanted.get(name) != types.get(name)]
        if differing:
            raise RefusedPromotionError(
                f"its column '{differing[0]}' is {types.get(differing[0], 'not there')}, "
                f"and that of the dataset is {wanted.get(differing[0], 'not there')}",
                "change the columns of the table first: a promotion does not",
            )

    def check_slice(self, table: DeltaTable | None) -> None:
        """Rejects a replacement of what another gate, or another map index, has promoted.

        :param table: the target; None if only Spark can read it.
        """
        objection = self.by.objection(self.slice, self.noted_in(table))
        if objection is None:
            return
        problem, advice = objection
        promoter = self._last_promoter(table)
        raise RefusedPromotionError(f"{problem} ({promoter})" if promoter else problem, advice)

    def noted_in(self, table: DeltaTable | None) -> Noted:
        """Looks up the records of earlier promotions; arguments as for `check_slice`."""
        counts: dict[str, int] = {}
        if table is None:
            for commit in reversed(self.commits_of_spark()):
                counts |= commit.get(NOTES, {})
            if not is_table(self.location):
                table = self.table()

        @cache
        def noted(name: str) -> int | None:
            return counts[name] if name in counts else table and table.transaction_version(name)

        return noted

    def _last_promoter(self, table: DeltaTable | None) -> str:
        """The gate that last promoted to the same date, if the history still has it."""
        commits = self.commits_of_spark() if table is None else table.history(_MOST_COMMITS)
        day = self.slice.whole.name
        for commit in commits:
            if GATE in commit and str(commit.get(SLICE, "")).startswith(day):
                at = commit.get("version")
                index = commit.get("dqx_map_index")
                mapped = f", map index {index}" if index is not None else ""
                return f"gate {commit[GATE]}{mapped}, in version {at}"
        return ""

    def commits_of_spark(self) -> list[dict[str, Any]]:
        """The entries of promotions by Spark, newest first."""
        commits = (
            self.spark.sql(f"DESCRIBE HISTORY {self.named}")
            .where(f"get_json_object(userMetadata, '$.{RUN_ID}') IS NOT NULL")
            .orderBy("version", ascending=False)
            .select("version", "userMetadata", "operationMetrics")
            .collect()
        )
        return [{**json.loads(row[1]), "version": row[0], "metrics": row[2]} for row in commits]

    @property
    def partition_columns(self) -> list[str]:
        """The partition columns of a new target."""
        if self.dataset.log is not None:
            return list(self.dataset.log.table.metadata().partition_columns)
        dates = self.dataset.dates
        return [] if dates is None or dates.is_timestamp else [dates.name]

    def table(self) -> DeltaTable | None:
        """The Delta table at the location, or None."""
        try:
            table = DeltaTable(self.location)
        except TableNotFoundError:
            return None
        require_whole_commits(self.location, table.version())
        return table

    @property
    def named(self) -> str:
        """The name of the target in Spark SQL."""
        return self.location if is_table(self.location) else f"delta.{quote_name(self.location)}"

    def is_there(self) -> bool:
        """Whether the target exists."""
        if is_table(self.location):
            return bool(self.spark.catalog.tableExists(self.location))
        return self.table() is not None

    @property
    def facts(self) -> dict[str, Any]:
        """The information of a commit for readers of the table history."""
        index = self.by.map_index
        return {
            RUN_ID: self.run_id,
            GATE: self.by.gate,
            "dqx_scheduler_run": self.by.run,
            **({} if index is None else {"dqx_map_index": str(index)}),
            SLICE: self.slice.name,
            **({"dqx_outcome": "blocked"} if self.is_blocked else {}),
        }
