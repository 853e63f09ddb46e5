"""Small Delta tables for the tests of the engine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import write_deltalake

from dqx_airflow.engine.job import run_gates
from dqx_airflow.values import (
    Attempt,
    DatasetRef,
    GateReport,
    GateRequest,
    RunKey,
    SourceFile,
    Verdict,
)

Run = Callable[[GateRequest], GateReport]

TODAY, YESTERDAY = date(2024, 3, 2), date(2024, 3, 1)

ORDERS = pa.table(
    {
        "id": pa.array([1, 2, 3, 3, 5, 6], pa.int64()),
        "price": pa.array([10.0, 20.0, None, 5.0, 2.0, 4.0]),
        "amount": pa.array([1, 2, 3, 4, None, 6], pa.int32()),
        "status": ["new", "paid", None, "paid", "odd", "new"],
        "country": ["CH", "DE", "XX", None, "CH", "CH"],
        "ds": pa.array([TODAY] * 4 + [YESTERDAY] * 2, pa.date32()),
    }
)
COUNTRIES = pa.table(
    {"code": ["CH", "DE", "CH", None], "name": ["Switzerland", "Germany", "x", ""]}
)


def delta(
    folder: Path, name: str, table: pa.Table, *, partition_by: Sequence[str] = ()
) -> DatasetRef:
    path = str(folder / name)
    write_deltalake(path, table, partition_by=list(partition_by) or None)
    return DatasetRef(name, path=path)


def request(
    folder: Path, suite: str, datasets: Sequence[DatasetRef], on: date = TODAY, **changes: Any
) -> GateRequest:
    """A gate request over `suite`: a whole suite, or the body of one check on `orders`."""
    if not suite.lstrip().startswith(("suite", "import")):
        suite = f'suite "Test" {{\n check "All" on orders {{\n{suite}\n }}\n}}\n'
    return GateRequest(
        run_key=RunKey("test.gate", on, "manual"),
        attempt=Attempt(1, "attempt-1"),
        suite=SourceFile("suite.dql", suite),
        datasets=tuple(datasets),
        results_root=str(folder / "results"),
        **changes,
    )


@dataclass
class Gate:
    """Runs gates over datasets; `jobs` are the Spark jobs of the last one."""

    spark: Any
    folder: Path
    jobs: int = 0

    def __call__(
        self, suite: str, *datasets: DatasetRef, on: date = TODAY, **changes: Any
    ) -> GateReport:
        # Programs of the tests with a session of their own import this module without that one.
        from tests.job_count import jobs_so_far

        asked = request(self.folder, suite, datasets, on, **changes)
        before = jobs_so_far(self.spark)
        report = run_gates([asked], lambda _: self.spark)[0]
        self.jobs = jobs_so_far(self.spark) - before
        return report


def verdict(report: GateReport, name: str) -> Verdict:
    (found,) = (item for item in report.verdicts if item.name == name)
    return found
