"""Samples of failing rows, bounded and masked.

All faults of a dataset share one pass. It keeps only the first rows of each fault, and no value of
a masked column leaves Spark.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from dqx_airflow.diagnostics.diagnostic import did_you_mean
from dqx_airflow.engine.outputs.differing_rows import differing_rows
from dqx_airflow.engine.outputs.fault_conditions import rows_with_faults
from dqx_airflow.engine.outputs.shown_rows import RowDisplay, place_of, with_malformed_texts
from dqx_airflow.engine.scan import frames
from dqx_airflow.engine.scan.frames import ReferenceTables
from dqx_airflow.engine.session.concurrency import jobs_called, side_by_side
from dqx_airflow.engine.session.spark_errors import explain
from dqx_airflow.engine.sources.dataset import OpenDataset
from dqx_airflow.metrics.sql import quote_name
from dqx_airflow.metrics.types import Family, family_of
from dqx_airflow.plan.failing import FailingRows
from dqx_airflow.plan.masks import without_values
from dqx_airflow.plan.model import Plan
from dqx_airflow.values import FailingRow, Verdict

_log = logging.getLogger("dqx.gate")

_FAULT = "dqx: fault"
_RANK = "dqx: rank"
_COUNT = "dqx: count"


def with_failing_rows(
    spark: SparkSession,
    opened: Mapping[str, OpenDataset],
    plan: Plan,
    verdicts: Sequence[Verdict],
    faults: Sequence[tuple[FailingRows, ...]],
    most: int,
) -> tuple[Verdict, ...]:
    """The verdicts with a sample of at most `most` failing rows each.

    An error here does not change a verdict: its note reports the error.

    :param faults: the faults of each verdict.
    """
    distinct: dict[FailingRows, None] = {}  # equal faults of several assertions count as one
    if most > 0:
        distinct = dict.fromkeys(fault for of_verdict in faults for fault in of_verdict)
    references = ReferenceTables(opened, plan.date)
    samples: dict[FailingRows, _Sample] = {}
    for name in dict.fromkeys(fault.request.dataset for fault in distinct):
        if name not in opened:
            continue
        of_rows = []
        for fault in distinct:
            if fault.request.dataset != name:
                continue
            if fault.is_of_two_datasets:
                samples[fault] = _differing(spark, fault, references, plan, most)
            else:
                of_rows.append(fault)
        sampler = _Sampler(spark, opened[name], references, most)
        samples.update(sampler.samples(of_rows))
    return tuple(
        _with_sample(verdict, [samples[fault] for fault in of_verdict if fault in samples], most)
        for verdict, of_verdict in zip(verdicts, faults, strict=True)
    )


@dataclass(frozen=True, slots=True)
class _Sample:
    """Failing rows of one fault, or a note that says why there are none."""

    rows: tuple[FailingRow, ...] = ()
    note: str | None = None


def _with_sample(verdict: Verdict, samples: Sequence[_Sample], most: int) -> Verdict:
    rows = (*verdict.failing_rows, *(row for sample in samples for row in sample.rows))
    all_notes = (verdict.note, *(sample.note for sample in samples))
    notes = dict.fromkeys(note for note in all_notes if note)
    return replace(verdict, failing_rows=rows[:most], note="; ".join(notes) or None)


def _differing(
    spark: SparkSession, fault: FailingRows, references: ReferenceTables, plan: Plan, most: int
) -> _Sample:
    """A sample of the rows that differ between two datasets; an error does not change the
    verdict."""
    for name in fault.request.datasets:
        sampler = _Sampler(spark, references.opened[name], references, most)
        objection = sampler.objection()
        if objection is not None:
            return sampler.failed([fault], objection)[fault]
    try:
        return _Sample(differing_rows(spark, fault.request, references, plan, most))
    except Exception as error:
        masked = [column for columns in plan.masked.values() for column in columns]
        return _failed(fault.request.dataset, _reason(error), masked)


def _reason(error: Exception) -> str:
    return explain(error) if isinstance(error, PySparkException) else type(error).__name__


def _failed(dataset: str, reason: str, masked: Sequence[str]) -> _Sample:
    """A sample without rows, with the reason: it changes no verdict."""
    reason = without_values(reason, masked)
    _log.warning("cannot show failing rows of dataset '%s': %s", dataset, reason)
    return _Sample(note=f"failing rows cannot be shown: {reason}")


@dataclass(frozen=True, slots=True)
class _Sampler:
    """Takes samples of one dataset."""

    spark: SparkSession
    dataset: OpenDataset
    references: ReferenceTables
    most: int

    def samples(self, faults: Sequence[FailingRows]) -> dict[FailingRows, _Sample]:
        objection = self.objection()
        if objection is not None:
            return self.failed(faults, objection)
        passes = [[fault] for fault in faults if fault.repeated]
        of_conditions = [fault for fault in faults if not fault.repeated]
        if of_conditions:
            passes.insert(0, of_conditions)
        samples: dict[FailingRows, _Sample] = {}
        try:
            with jobs_called(self.spark, f"{self.dataset.ref.name}: failing rows"):
                for taken in side_by_side(self.spark, self._attempt, passes):
                    samples.update(taken)
        except Exception as error:  # Spark is gone, and the verdicts are final
            return self.failed(faults, type(error).__name__)
        return samples

    def objection(self) -> str | None:
        """The reason for taking no samples: a masked column is missing, which may be a typo that
        leaves another column unmasked. None without one."""
        schema = self.dataset.schema
        ref = self.dataset.ref
        for purpose, columns in (("to mask", ref.masked), ("for the keys of rows", ref.keys)):
            for column in columns:
                if schema.find(column) is None:
                    hint = did_you_mean(column, schema.types)
                    return f"dataset '{ref.name}' has no column '{column}' {purpose}: {hint}"
        return None

    def _attempt(self, faults: Sequence[FailingRows]) -> dict[FailingRows, _Sample]:
        """The samples of faults of one kind; a failing condition is isolated by halving."""
        try:
            if faults[0].repeated:
                return {faults[0]: self._repeated(faults[0])}
            return self._matching(faults)
        except Exception as error:  # whatever it is, the verdicts are final
            if isinstance(error, PySparkException) and len(faults) > 1:
                half = len(faults) // 2
                return {**self._attempt(faults[:half]), **self._attempt(faults[half:])}
            return self.failed(faults, _reason(error))

    def failed(self, faults: Sequence[FailingRows], reason: str) -> dict[FailingRows, _Sample]:
        ref = self.dataset.ref
        return dict.fromkeys(faults, _failed(ref.name, reason, ref.masked))

    def _matching(self, faults: Sequence[FailingRows]) -> dict[FailingRows, _Sample]:
        """Rows that match the conditions of the faults, in one pass.

        Each partition keeps the first rows of each fault, before anything is shuffled.
        """
        number = quote_name(_FAULT)
        rank = quote_name(_RANK)
        frame = self._first_rows(faults).selectExpr(
            number,
            rank,
            self._rows_as_json(faults),
            self._causes(faults),
            RowDisplay(self.dataset).malformed_texts(faults, number),
        )
        rows: list[list[FailingRow]] = [[] for _ in faults]
        ranked = sorted(frame.collect(), key=lambda row: (row[0], row[1]))
        for position, _, text, cause, malformed in ranked:
            fault = faults[position]
            reason = fault.reason
            if cause is not None:
                reason = f"{fault.causes[cause].words}: {reason}"
            failing = FailingRow(self.dataset.ref.name, reason, text)
            if malformed is not None:
                failing = with_malformed_texts(failing, fault.columns, json.loads(malformed))
            rows[position].append(failing)
        return {fault: _Sample(tuple(sampled)) for fault, sampled in zip(faults, rows, strict=True)}

    def _first_rows(self, faults: Sequence[FailingRows]) -> DataFrame:
        """The first rows of each fault, with its number and the rank of the row in it."""
        frame = rows_with_faults(self.dataset, self.references, faults)
        keys = {key: place_of(self.dataset, key) for key in self.dataset.ref.keys}
        nested = {key: place for key, place in keys.items() if key not in frame.columns}
        conditions = [f"({fault.condition})" for fault in faults]
        broken = [f"CASE WHEN {text} THEN {nr} END" for nr, text in enumerate(conditions)]
        numbers = F.expr(f"array_compact(array({', '.join(broken)}))")
        window = f"PARTITION BY {quote_name(_FAULT)} ORDER BY {self._order()}"
        return (
            frames.with_places(frame, nested)
            .where(" OR ".join(conditions))
            .withColumn(_FAULT, F.explode(numbers))
            .withColumn(_RANK, F.expr(f"row_number() OVER ({window})"))
            .where(f"{quote_name(_RANK)} <= {self.most}")
        )

    def _rows_as_json(self, faults: Sequence[FailingRows]) -> str:
        """The displayed row of its fault, as Spark SQL."""
        display = RowDisplay(self.dataset)
        shown = [f"WHEN {number} THEN {display.row(fault)}" for number, fault in enumerate(faults)]
        return f"CASE {quote_name(_FAULT)} {' '.join(shown)} END"

    def _causes(self, faults: Sequence[FailingRows]) -> str:
        """The number of the first cause of its fault that is true for a row, as Spark SQL."""
        causes = [
            f"WHEN {quote_name(_FAULT)} = {number} AND {cause.sql} THEN {position}"
            for number, fault in enumerate(faults)
            for position, cause in enumerate(fault.causes)
        ]
        return f"CASE {' '.join(causes)} END" if causes else "CAST(NULL AS INT)"

    def _repeated(self, fault: FailingRows) -> _Sample:
        """The combinations that several rows share, the most frequent first."""
        frame = rows_with_faults(self.dataset, self.references, [fault])
        if fault.condition:
            frame = frame.where(fault.condition)
        columns = [F.expr(quote_name(column)) for column in fault.repeated]
        count = quote_name(_COUNT)
        grouped = frame.groupBy(*columns).agg(F.count(F.lit(1)).alias(_COUNT))
        groups = grouped.where(f"{count} > 1").orderBy(F.desc(count), *columns).limit(self.most)
        shown = groups.selectExpr(
            f"{RowDisplay(self.dataset).values(fault.repeated)} AS shown", count
        )
        return _Sample(
            tuple(
                FailingRow(self.dataset.ref.name, f"{times} rows", text)
                for text, times in shown.collect()
            )
        )

    def _order(self) -> str:
        """The order of failing rows as Spark SQL: by the keys, or else by all columns, so that
        equal data give the same sample."""
        schema = self.dataset.schema
        keys = [
            key for key in self.dataset.ref.keys if _is_simple(place_of(self.dataset, key).type)
        ]
        if keys:
            return ", ".join(map(quote_name, keys))
        simple = [quote_name(name) for name, type_ in schema.types.items() if _is_simple(type_)]
        return f"xxhash64({', '.join(simple)})" if simple else "1"


def _is_simple(spark_type: str) -> bool:
    return family_of(spark_type) not in (Family.ARRAY, Family.MAP, Family.OTHER)
