"""The past of a gate as a database: suites are judged by stored metric values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import TYPE_CHECKING, Any

from dqx_airflow.errors import RequestError, UpstreamFailure
from dqx_airflow.plan.masks import snapshot_of
from dqx_airflow.plan.measured import keys_of
from dqx_airflow.plan.model import Plan, Scanned
from dqx_airflow.values import DatasetRef, DatasetSnapshot

if TYPE_CHECKING:
    from dqx_airflow.tuning.past_days import PastDay


@dataclass(slots=True)
class StoredDatabase:
    """The metric values that gates stored, to judge past days again without Spark.

        suite.run(StoredDatabase("s3://lake/dqx"), date(2026, 1, 1))

    :param root: the root of the results store: a path or a URI.
    :param gate: the gate, if several run the suite.
    :param storage_options: the credentials and settings of the storage.
    :param map_index: the instance, if the gate is mapped.
    """

    root: str
    gate: str | None = None
    storage_options: Mapping[str, str] | None = field(
        default=None, repr=False
    )  # may contain secrets
    map_index: int | None = None
    _days: dict[tuple[str, date], PastDay] = field(default_factory=dict, repr=False)
    _datasets: tuple[DatasetRef, ...] | None = field(default=None, repr=False)

    @property
    def datasets(self) -> tuple[DatasetRef, ...]:
        """The datasets of the runs in the store."""
        if self._datasets is None:
            from dqx_airflow.results.past_days import dataset_names

            names = dataset_names(self.root, storage_options=self.storage_options)
            self._datasets = tuple(DatasetRef(name, table=name, date_column="?") for name in names)
        return self._datasets

    def measure(self, plan: Plan) -> tuple[Scanned, tuple[DatasetSnapshot, ...]]:
        """The stored results of the requests of the plan.

        :raises UpstreamFailure: the gate has no results for the date.
        """
        day = self.day(plan.suite, plan.date)
        keys = keys_of(plan.requests, plan.date)
        scanned = day.measured.scanned(keys)
        for request, key in keys.items():
            if not any(
                request in measured
                for measured in (scanned.values, scanned.groups, scanned.failures)
            ):
                scanned.failures[request] = day.measured.gap(key)
        return scanned, tuple(snapshot_of(ref, plan, scanned) for ref in self.datasets)

    def day(self, suite: str, on: date) -> PastDay:
        """The facts about a day: values, verdicts, labels, and the time of the run.

        :param suite: the name of the suite, as in its file.
        :raises UpstreamFailure: the gate has no results for the date.
        :raises RequestError: the gate is mapped, and no instance is given.
        """
        if (suite, on) not in self._days:
            from dqx_airflow.results.past_days import past_days

            days = past_days(
                self.root,
                suite,
                on,
                on,
                gate=self.gate,
                map_index=self.map_index,
                storage_options=self.storage_options,
            )
            if not days:
                raise UpstreamFailure(
                    f"no results of suite '{suite}' for {on}: the gate did not run",
                    "skip this day, or check what failed before the gate",
                )
            if len(days) > 1:
                listed = ", ".join(str(day.map_index) for day in days)
                raise RequestError(
                    f"several instances of the gate ran on {on}: {listed}", "pass map_index=NUMBER"
                )
            self._days[suite, on] = days[0]
        return self._days[suite, on]

    def query(self, sql: str, *, days: int = 90) -> list[dict[str, Any]]:
        """The rows of a SELECT over `dql_results`.

        The view has a row per assertion that passed or failed, of the last run for each gate, date
        and instance of a mapped gate, with `date`, `assertion_name`, `passed`, `status`, `check`,
        `gate`, `suite`, `severity`, `value` and `map_index` (-1 if the gate is not mapped).

            db.query("SELECT date, value FROM dql_results WHERE assertion_name = 'orders.rows'")

        :param days: the value of `{days}` in the SQL.
        :raises StoreError: the store cannot be read, or the SQL is invalid.
        """
        from dqx_airflow.results.past_days import query_results

        text = sql.replace("{days}", str(int(days)))
        return query_results(self.root, text, storage_options=self.storage_options)
