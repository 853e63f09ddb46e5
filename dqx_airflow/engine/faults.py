"""Judges planted faults with Spark: one scan for all faults of a kind, with a separate date for
each fault."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date
from itertools import groupby
from typing import ClassVar

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from dqx_airflow.engine.measure import measure, measure_plan
from dqx_airflow.engine.scan.dataset_scan import scan
from dqx_airflow.engine.scan.frames import ReferenceTables, rows_of, rows_of_dates
from dqx_airflow.engine.session.spark_versions import arrow_table
from dqx_airflow.engine.sources.dataset import OpenDataset
from dqx_airflow.engine.sources.date_column import DateColumn
from dqx_airflow.engine.sources.open import open_dataset
from dqx_airflow.metrics.metric import Scan
from dqx_airflow.metrics.sql import quote_literal, quote_name
from dqx_airflow.plan.model import Plan, Scanned
from dqx_airflow.plan.predicates import lookups_of
from dqx_airflow.tuning.column_tables import ColumnTable
from dqx_airflow.tuning.day_rows import DAY, DayRows, days_of
from dqx_airflow.tuning.mutation import MemoryJudge
from dqx_airflow.tuning.planted_faults import Planted
from dqx_airflow.values import DatasetRef

_FAULT = quote_name("dqx: fault")
_FIRST = date(2000, 1, 1)
"""The column with the number of a fault, then with its date; and the date of the first one."""


def read_days(
    spark: SparkSession, ref: DatasetRef, on: date, *, days: int, most: int, seed: int
) -> DayRows:
    """Reads the days like `tuning.day_rows.read_days`, but any dataset that Spark reads. If the day
    has more than `most` rows, reads samples of it and of the day before.

    :raises DatasetError: the rows cannot be read.
    """
    opened = open_dataset(spark, ref)
    rows = rows_of(opened, on).count()
    wanted = [on - number * DAY for number in range(days + 1 if opened.dates else 1)]
    if rows > most:
        parts = [rows_of(opened, day).orderBy(F.rand(seed)).limit(most) for day in wanted[:2]]
        frame = parts[0].unionAll(parts[-1]) if len(parts) > 1 else parts[0]
    else:
        wanted = wanted[: 1 + most // max(rows, 1)]
        frame = rows_of_dates(opened, set(wanted))
    read = arrow_table(frame.select(*map(quote_name, opened.struct.names)))
    types = opened.schema.types
    table = ColumnTable(tuple(types), dict(types), read.num_rows, read.column)
    unfiltered = replace(ref, filter=None)
    whole = read.num_rows
    found = days_of(table, unfiltered, on, days=len(wanted) - 1, most=whole, seed=seed)
    return replace(found, rows=rows)


@dataclass(frozen=True, slots=True)
class SparkJudge(MemoryJudge):
    """Judges suites over all rows of a day. The suggested lines for missed faults are tried in
    memory."""

    spark: SparkSession
    is_of_samples: ClassVar[bool] = False

    def fine(self, plan: Plan) -> Scanned:
        """Measures the requests of a plan without faults."""
        return measure(self.spark, self.request.datasets, plan)[1]

    def with_faults(
        self, plan: Plan, planted: Iterable[Planted], fine: Scanned
    ) -> Iterator[tuple[Planted, Scanned]]:
        """Yields each fault with the values measured with it. Faults of one kind share a scan."""
        opened = {ref.name: open_dataset(self.spark, ref) for ref in self.request.datasets}

        def kind(one: Planted) -> tuple[str, str]:
            return one.fault.kind, one.change.retyped or one.change.lost or ""

        for _, of_kind in groupby(sorted(planted, key=kind), kind):
            batch = [*of_kind]
            yield from zip(batch, self._scan(plan, opened, batch, fine), strict=True)

    def _scan(
        self, plan: Plan, opened: dict[str, OpenDataset], batch: list[Planted], fine: Scanned
    ) -> Iterator[Scanned]:
        """Measures the requests with each fault of a kind. Requests that fail or cannot be measured
        for several faults in one scan are measured for each fault alone."""
        name = batch[0].fault.dataset
        asked = [
            request
            for request in plan.requests
            if request.date in (None, plan.date) and request.definition.scan is not Scan.LOG
            if any(one.may_change(request) for one in batch)
        ]
        together = [
            request
            for request in asked
            if request.dataset == name and request.definition.scan is Scan.FLAT
            if not (batch[0].change.lost or batch[0].change.added)
            if all(lookup.reference != name for lookup in lookups_of(request))
        ]
        dates = [_FIRST + number * DAY for number in range(len(batch))]
        faulty = _with_faults(opened[name], plan.date, batch)
        wanted = [replace(request, date=on) for on in dates for request in together]
        found = scan(self.spark, faulty, wanted, ReferenceTables(opened, plan.date))
        for one, on in zip(batch, dates, strict=True):
            places = {request: replace(request, date=on) for request in together}
            known = fine.of(request for request in plan.requests if request not in asked)
            known.add(
                found.moved([(at, it) for it, at in places.items() if at not in found.failures])
            )
            alone = replace(_with_faults(opened[name], plan.date, [one]), dates=None)
            yield measure_plan(self.spark, {**opened, name: alone}, plan, known)


def _with_faults(dataset: OpenDataset, on: date, batch: Sequence[Planted]) -> OpenDataset:
    """A dataset with a copy of the rows of a date for each fault, at a separate date."""
    changes = [one.change for one in batch]
    rows = rows_of(dataset, on - changes[0].is_of_day_before * DAY)
    columns = [
        _by_fault([change.cells.get(name, quote_name(name)) for change in changes])
        + f" AS {quote_name(name)}"
        for name in dataset.struct.names
        if name != changes[0].lost
    ]
    columns += [f"{sql} AS {quote_name(name)}" for name, sql in changes[0].added.items()]
    times = f"explode(array_repeat(0, {_by_fault([change.times for change in changes])}))"
    dates = f"date_add({quote_literal(_FIRST)}, {_FAULT}) AS {_FAULT}"
    frame: DataFrame = (
        rows.selectExpr("*", f"explode(sequence(0, {len(batch) - 1})) AS {_FAULT}")
        .selectExpr(*columns, dates, f"{times} AS `dqx: times`")
        .drop("dqx: times")
    )
    struct = StructType([one for one in frame.schema.fields if quote_name(one.name) != _FAULT])
    return OpenDataset(
        replace(dataset.ref, date_column=None),
        struct,
        lambda _: frame,
        dataset.location,
        DateColumn("dqx: fault", "date"),
        char_types=dataset.char_types,
    )


def _by_fault(sql: Sequence[str]) -> str:
    """A Spark SQL expression that has the value of `sql[n]` in the rows of fault number n."""
    cases = " ".join(f"WHEN {number} THEN {text}" for number, text in enumerate(sql))
    return f"CASE {_FAULT} {cases} END" if len(set(sql)) > 1 else sql[0]
