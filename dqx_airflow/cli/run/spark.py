"""The Spark session of a call, and its progress line. Imports pyspark."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field

from pyspark.sql import SparkSession

from dqx_airflow.datasets.connection import Connection
from dqx_airflow.engine.job import run_gates, try_gates
from dqx_airflow.engine.session.concurrency import import_meanwhile, tasks_reported
from dqx_airflow.engine.session.connection import open_session, spark_errors_explained
from dqx_airflow.engine.session.file_systems import check_file_systems
from dqx_airflow.engine.session.spark_session import without_log
from dqx_airflow.plan.model import Plan, Scanned
from dqx_airflow.values import DatasetRef, GateReport, GateRequest


@dataclass(slots=True)
class Spark:
    """Runs requests over a connection. The session is opened when the first one needs it."""

    connection: Connection
    settings: Mapping[str, str]
    _session: SparkSession | None = field(default=None, compare=False)

    def run(self, requests: Sequence[GateRequest]) -> tuple[GateReport, ...]:
        """The reports of requests that share a scan, stored if these have a results root.

        :raises DqxError: there are none.
        """
        self._check(ref for request in requests for ref in request.datasets)
        run = run_gates if requests[0].results_root else try_gates
        with ExitStack() as display, spark_errors_explained(self.connection):

            def session(_: str) -> SparkSession:
                datasets = (ref for request in requests for ref in request.datasets)
                spark = without_log(self._open(), datasets)
                _show_tasks(spark, requests[0].run_key.gate, display)
                return spark

            return run(requests, session)

    def measure(self, refs: Sequence[DatasetRef], plans: Sequence[Plan]) -> tuple[Scanned, ...]:
        """The results of the requests of each plan.

        :raises DqxError: Spark cannot be reached, or was lost.
        """
        from dqx_airflow.engine.measure import measure_together

        self._check(refs)
        with ExitStack() as display, spark_errors_explained(self.connection):
            spark = without_log(self._open(), refs)
            _show_tasks(spark, plans[0].suite, display)
            return measure_together(spark, refs, plans)[1]

    def _check(self, refs: Iterable[DatasetRef]) -> None:
        """:raises DqxError: the Spark that would start cannot read a dataset."""
        if self._session is None:
            check_file_systems(self.connection, self.settings, refs)

    def close(self) -> None:
        if self._session is not None:
            self._session.stop()
            self._session = None

    def _open(self) -> SparkSession:
        if self._session is None:
            is_seen = sys.stderr.isatty()
            if is_seen:
                sys.stderr.write(f"starting Spark: {self.connection} ...")
                sys.stderr.flush()
            try:
                self._session = open_session(self.connection, "dql run", self.settings)
            finally:
                if is_seen:
                    sys.stderr.write("\r\033[K")
            import_meanwhile("dqx_airflow.cli.run.outputs")
        return self._session


def _show_tasks(spark: SparkSession, title: str, display: ExitStack) -> None:
    """Displays the progress of Spark's tasks, until `display` is closed."""
    if not sys.stderr.isatty():
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TaskProgressColumn, TextColumn

    console = Console(stderr=True)
    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), BarColumn())
    progress = display.enter_context(
        Progress(*columns, TaskProgressColumn(), console=console, transient=True)
    )
    task = progress.add_task(title, total=None)

    def update(done: int, total: int) -> None:
        progress.update(task, completed=done, total=total)

    display.enter_context(tasks_reported(spark, update))
