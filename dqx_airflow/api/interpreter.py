"""Runs DQL from Python: a file or a text, over a database, for a date."""

from __future__ import annotations

import os
from collections.abc import Iterable
from datetime import date, datetime
from typing import TYPE_CHECKING

from dqx_airflow.api.database import Database
from dqx_airflow.api.results import DatedResults, Results
from dqx_airflow.api.run import RunKeywords, with_keywords_of
from dqx_airflow.api.suite import Suite

if TYPE_CHECKING:
    from typing_extensions import Unpack


class Interpreter:
    """Runs suites over one database for one date.

        db = SparkDatabase(spark, {"orders": "s3://lake/orders"})
        print(Interpreter(db, date(2026, 1, 1)).run_file("orders.dql"))

    :param db: a `SparkDatabase`, a `MemoryDatabase`, or anything else that can measure a plan.
    :param target_date: the date of the data.
    :param fail_on: failures of this severity or a worse one block.
    :param allow_empty: leaves out the implicit assertions that the datasets have rows.
    :param require_history: an assertion of `fail_on` or worse that lacks data of other dates makes
        the outcome broken; by default, it makes it warned.
    :param skip_dates: dates without data, for lagged metrics.
    :param ansi: the mode of Spark in which SQL of the suite and the datasets is evaluated; in a
        session with the other one, it is an error.
    :param max_clock_skew_hours: by how many hours a timestamp may be in the future and still make
        data fresh.
    :param now: the time from which ages such as `freshness` are measured, with a time zone; by
        default the current time.
    :raises RequestError: `fail_on` is not a severity.
    """

    @with_keywords_of(RunKeywords)
    def __init__(
        self,
        db: Database,
        target_date: date,
        *,
        now: datetime | None = None,
        **options: Unpack[RunKeywords],
    ) -> None:
        self.db = db
        self.target_date = target_date
        self.options = options
        self.now = now

    def run_file(self, path: str | os.PathLike[str]) -> Results:
        """The results of the suite in a file; `Suite.load` describes its imports.

        :raises SourceError: the file does not exist, or the suite has errors.
        """
        return self._run(Suite.load(path))

    def run_string(self, text: str, *, folder: str | os.PathLike[str] | None = None) -> Results:
        """The results of the suite in a string.

        :param folder: the folder in which its imports are searched; without it, it cannot import.
        :raises SourceError: the suite has errors.
        """
        return self._run(Suite.from_string(text, folder=folder))

    def run_dates(self, path: str | os.PathLike[str], dates: str | Iterable[date]) -> DatedResults:
        """The results of the suite in a file for each of several dates; `target_date` is not used.

        Over Spark, all dates are measured in one scan of each dataset.

        :param dates: the dates, or a range as a string, `2026-01-01..2026-03-31`, both ends
            included.
        :raises SourceError: the file does not exist, or the suite has errors.
        :raises RequestError: the dates are invalid.
        """
        return Suite.load(path).run_dates(self.db, dates, now=self.now, **self.options)

    def _run(self, suite: Suite) -> Results:
        return suite.run(self.db, self.target_date, now=self.now, **self.options)
