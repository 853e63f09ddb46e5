"""The target of a promotion: what it has, what it refuses, who has promoted to it."""

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

from dqx_airflow.dataset_settings import is_table
from dqx_airflow.engine.outputs.promoted_slices import Noted, Promoter, Slice
from dqx_airflow.engine.outputs.replaced_rows import RefusedPromotionError, ReplacedRows
from dqx_airflow.engine.sources.dataset import OpenDataset
from dqx_airflow.errors import PromotionError
from dqx_airflow.metrics.sql import quote_name

RUN_ID, ROWS, GATE, SLICE = "dqx_run_id", "dqx_rows", "dqx_gate", "dqx_slice"
NOTES = "dqx_notes"
"""Where a commit of Spark holds what a commit of deltalake notes as application transactions."""
_MOST_COMMITS = 200


@dataclass(frozen=True, slots=True)
class PromotionTarget:
    """The target of one dataset.

    :param location: the path of a Delta table, or the name of a table of a catalog.
    :param slice: what is replaced.
    :param by: who replaces it.
    :param rows: how many rows were validated, where that is known.
    """

    spark: SparkSession
    dataset: OpenDataset
    location: str
    slice: Slice
    by: Promoter
    rows: int | None
    run_id: str
    started: datetime

    @property
    def replaced(self) -> ReplacedRows:
        """What is replaced there, and by which rows."""
        return ReplacedRows(self.spark, self.dataset, self.slice)

    @property
    def order(self) -> int:
        """Of two runs, the one that started later wins, whoever comes to its end first."""
        return int(self.started.timestamp() * 1000)

    def failed(self, reason: str, hint: str = "") -> PromotionError:
        """The error of a promotion that may succeed another time."""
        name = self.dataset.ref.name
        return PromotionError(
            f"dataset '{name}' passed, but cannot be promoted to {self.location}: {reason}", hint
        )

    def late(self) -> PromotionError:
        """The error of a run that another one has overtaken."""
        return self.failed("a run of a gate that started later has already promoted")

    def outside(self, how_many: str) -> RefusedPromotionError:
        """The error of rows that do not belong to the slice."""
        named = ", ".join(f"{name} = {text!r}" for name, text in self.slice.values)
        return RefusedPromotionError(
            f"{how_many} rows do not have the values of promote_slice: {named}",
            "set promote_slice to the values that the gate reads, or filter the dataset by them",
        )

    def check_columns(self, there: StructType) -> None:
        """:raises RefusedPromotionError: the target has other columns than the dataset."""
        wanted = {field.name: field.dataType.simpleString() for field in self.dataset.struct}
        types = {field.name: field.dataType.simpleString() for field in there}
        odd = [name for name in {**wanted, **types} if wanted.get(name) != types.get(name)]
        if odd:
            raise RefusedPromotionError(
                f"its column '{odd[0]}' is {types.get(odd[0], 'not there')}, "
                f"and that of the dataset is {wanted.get(odd[0], 'not there')}",
                "change the columns of the table first: a promotion does not",
            )

    def check_slice(self, table: DeltaTable | None) -> None:
        """Refuses to replace what another gate, or another map index, has promoted.

        :param table: the target; None where Spark has to tell of it.
        """
        objection = self.by.objection(self.slice, self.noted_in(table))
        if objection is None:
            return
        problem, advice = objection
        who = self._last_promoter(table)
        raise RefusedPromotionError(f"{problem} ({who})" if who else problem, advice)

    def noted_in(self, table: DeltaTable | None) -> Noted:
        """Looks up what earlier promotions noted; arguments as of `check_slice`."""
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
        """Which gate has promoted last to the same date, as far as the history tells."""
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
        """What promotions by Spark have told of themselves, the newest first."""
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
        """Those of a target that is made now."""
        if self.dataset.log is not None:
            return list(self.dataset.log.table.metadata().partition_columns)
        dates = self.dataset.dates
        return [] if dates is None or dates.is_timestamp else [dates.name]

    def table(self) -> DeltaTable | None:
        """The Delta table at the location, None where there is none."""
        try:
            return DeltaTable(self.location)
        except TableNotFoundError:
            return None

    @property
    def named(self) -> str:
        """The target in Spark SQL."""
        return self.location if is_table(self.location) else f"delta.{quote_name(self.location)}"

    def is_there(self) -> bool:
        """Whether the target exists."""
        if is_table(self.location):
            return bool(self.spark.catalog.tableExists(self.location))
        return self.table() is not None

    @property
    def facts(self) -> dict[str, Any]:
        """What a commit tells of itself to those who read the history of the table."""
        index = self.by.map_index
        return {
            RUN_ID: self.run_id,
            GATE: self.by.gate,
            "dqx_scheduler_run": self.by.run,
            **({} if index is None else {"dqx_map_index": str(index)}),
            SLICE: self.slice.name,
        }
