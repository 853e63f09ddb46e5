"""A results store that gates have filled for a year: old months in bulk, as upkeep leaves them.

The caller writes the last runs one by one, as gates do. A store in the format before the partitions
can be made as well, with one file per run in each table.
"""

from __future__ import annotations

import random
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta, timezone
from itertools import groupby
from pathlib import Path

import numpy as np
import pyarrow as pa
from deltalake import CommitProperties, Transaction, write_deltalake

from dqx_airflow.results.compaction import OF_UPKEEP, TableFiles
from dqx_airflow.results.report_rows import failing_rows, results_rows, run_row
from dqx_airflow.results.schema import FAILING_ROWS, RESULTS, RUNS, STATES, TABLES
from dqx_airflow.results.store import arrow_table, open_or_create
from dqx_airflow.results.tables import ResultsRoot, locate
from dqx_airflow.values import (
    Attempt,
    DatasetField,
    DatasetSnapshot,
    EnforcedContract,
    FailingRow,
    GateReport,
    MetricResult,
    Outcome,
    RunKey,
    Severity,
    Span,
    Status,
    Verdict,
)

CONTRACT = EnforcedContract("urn:orders", "1.2.0", "odcs", pin="1")
SCOPE = "delta:s3://lake/orders/"


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a gate; its ids follow from its number."""

    number: int
    gate: str
    finished: datetime

    @property
    def run_id(self) -> str:
        return str(uuid.UUID(int=random.Random(self.number).getrandbits(128), version=4))

    @property
    def attempt_id(self) -> str:
        """An id like those of Airflow, which begin with the time."""
        low = random.Random(-self.number).getrandbits(76)
        return str(uuid.UUID(int=(int(self.finished.timestamp() * 1000) << 80) | low))

    @property
    def date(self) -> date:
        return self.finished.date() - timedelta(days=1)

    @property
    def scheduler_run(self) -> str:
        return f"scheduled__{self.date.isoformat()}T00:00:00+00:00_{self.number}"


def gates(count: int) -> list[str]:
    """The names of gates, in order."""
    return [f"dag_{number:05}.check_the_orders" for number in range(count)]


def runs_of(many: int, until: datetime, gates: Sequence[str], days: int = 400) -> list[Run]:
    """Runs of several gates, spread evenly over the days before a timestamp."""
    step = timedelta(days=days) / many
    return [Run(n, gates[n % len(gates)], until - step * (many - n)) for n in range(many)]


def report_of(run: Run, assertions: int = 20) -> GateReport:
    """The report of a run, in which the last assertion failed."""
    passed = Verdict(
        name="orders.amount.present",
        check="Completeness",
        datasets=("orders",),
        expression="null_count(amount) / num_rows()",
        expected="< 5 %",
        severity=Severity.P1,
        status=Status.PASSED,
        threshold=0.05,
        metric="null_count",
        column="amount",
        span=Span("orders.dql", 3, 5, 3, 50),
        source_line="        assert null_count(amount) / num_rows() < 5%",
        clause="models.orders.fields.amount.required",
    )
    values = random.Random(run.number)
    verdicts = [
        replace(passed, name=f"{passed.name}_{number}", value=(value := values.random()),
                scaled_value=value)
        for number in range(assertions - 1)
    ]  # fmt: skip
    sample = tuple(FailingRow("orders", "NULL", f'{{"id": {number}}}') for number in range(2))
    verdicts.append(replace(passed, name="last", status=Status.FAILED, failing_rows=sample))
    metrics = tuple(MetricResult("null_count", f"column_{n}", n) for n in range(20))
    fields = tuple(DatasetField(f"column_{n}", "decimal(18,2)") for n in range(20))
    return GateReport(
        run_id=run.run_id,
        run_key=RunKey(run.gate, run.date, run.scheduler_run),
        attempt=Attempt(1, run.attempt_id),
        suite="orders.dql",
        fail_on=Severity.P1,
        outcome=Outcome.BLOCKED,
        verdicts=tuple(verdicts),
        datasets=(DatasetSnapshot("orders", "s3://lake/orders", "delta", 1, 5, fields, metrics),),
        started_at=run.finished - timedelta(seconds=30),
        finished_at=run.finished,
        contract=CONTRACT,
    )


def fill(root: str, runs: Sequence[Run], assertions: int = 20) -> None:
    """Stores runs in bulk, in files of one month, as `dql results optimize` leaves them."""
    location = locate(root)
    report = report_of(runs[0], assertions)
    templates = {
        RUNS: [run_row(report)],
        RESULTS: results_rows(report),
        FAILING_ROWS: failing_rows(report),
        STATES: [
            {"scope": SCOPE, "aggregate": f"count(c{n})", "result": "1", "fingerprint": "f" * 64}
            for n in range(10)
        ],
    }
    for name, rows in templates.items():
        template = arrow_table(rows, TABLES[name].schema)
        for some in _portions(runs, OF_UPKEEP.rows // len(rows)):
            _store(location, name, _repeated(template, some))


def fill_as_before(root: str, runs: Sequence[Run], assertions: int = 20) -> None:
    """Appends runs one by one, in the format before the partitions."""
    for run in runs:
        report = report_of(run, assertions)
        tables = {RESULTS: results_rows(report), RUNS: [run_row(report)]}
        once = CommitProperties(app_transactions=[Transaction(f"dqx:{run.run_id}", 1)])
        for name, rows in tables.items():
            write_deltalake(
                str(Path(root) / name),
                arrow_table(rows, TABLES[name].schema).drop_columns(["month"]),
                mode="append",
                configuration={"delta.appendOnly": "true"},
                commit_properties=once,
            )


def _portions(runs: Sequence[Run], most: int) -> Iterator[list[Run]]:
    for _, of_month in groupby(runs, key=lambda run: f"{run.finished:%Y-%m}"):
        found = [*of_month]
        for first in range(0, len(found), most):
            yield found[first : first + most]


def _repeated(template: pa.Table, runs: Sequence[Run]) -> pa.Table:
    """The rows of the template, repeated for each run with its own ids and dates."""
    each = pa.array(np.repeat(np.arange(len(runs)), len(template)))
    table = template.take(pa.array(np.tile(np.arange(len(template)), len(runs))))
    moments = [run.finished for run in runs]
    columns: dict[str, list[object]] = {
        "run_id": [run.run_id for run in runs],
        "gate": [run.gate for run in runs],
        "dataset_date": [run.date for run in runs],
        "scheduler_run": [run.scheduler_run for run in runs],
        "attempt_id": [run.attempt_id for run in runs],
        "scope": [SCOPE + run.gate for run in runs],
        "stored_at": [*moments],
        "finished_at": [*moments],
        "started_at": [moment - timedelta(seconds=30) for moment in moments],
    }
    for name in [name for name in columns if name in table.column_names]:
        place = table.schema.get_field_index(name)
        values = pa.array(columns[name], table.schema.field(name).type).take(each)
        table = table.set_column(place, name, values)
    if "value" in table.column_names:
        numbers = np.random.default_rng(runs[0].number).random(len(table))
        for name, values in (
            ("value", pa.array(numbers)),
            ("value_text", pa.array([repr(float(number)) for number in numbers])),
        ):
            table = table.set_column(table.schema.get_field_index(name), name, values)
    return table


def _store(location: ResultsRoot, name: str, rows: pa.Table) -> None:
    definition = TABLES[name]
    TableFiles(location, definition, open_or_create(location, definition)).replace([], rows)


UNTIL = datetime(2026, 11, 22, tzinfo=timezone.utc)
