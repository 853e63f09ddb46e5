"""Runs DQL from Python: a file or a text, over a database, for a date."""

from __future__ import annotations

import os
from collections.abc import Collection
from datetime import date, datetime

from dqx_airflow.api.database import Database
from dqx_airflow.api.results import Results
from dqx_airflow.api.suite import Suite
from dqx_airflow.values import Severity


class Interpreter:
    """Runs suites over one database for one date.

    :param db: a `SparkDatabase`, a `MemoryDatabase`, or anything else that can measure a plan.
    :param target_date: the date of the data.
    :param fail_on: failures of this severity or a worse one block.
    :param allow_empty: leaves out the implicit assertions that the datasets have rows.
    :param require_history: the outcome is broken where an assertion of `fail_on` or worse lacks
        data of other dates; without it, warned.
    :param skip_dates: dates without data, for lagged metrics.
    :param now: the moment from which ages such as `freshness` are measured; by default the clock's.
    """

    def __init__(
        self,
        db: Database,
        target_date: date,
        *,
        fail_on: Severity | str = Severity.P1,
        allow_empty: bool = False,
        require_history: bool = False,
        skip_dates: Collection[date] = (),
        now: datetime | None = None,
    ) -> None:
        self.db = db
        self.target_date = target_date
        self.fail_on = fail_on
        self.allow_empty = allow_empty
        self.require_history = require_history
        self.skip_dates = skip_dates
        self.now = now

    def run_file(self, path: str | os.PathLike[str]) -> Results:
        """The results of the suite in a file; for its imports see `Suite.load`.

        :raises SourceError: there is no such file, or the suite has errors.
        """
        return self._run(Suite.load(path))

    def run_string(self, text: str, *, folder: str | os.PathLike[str] | None = None) -> Results:
        """The results of a suite given as text.

        :param folder: where its imports are looked for; without it, a text cannot import.
        :raises SourceError: the suite has errors.
        """
        return self._run(Suite.from_string(text, folder=folder))

    def _run(self, suite: Suite) -> Results:
        return suite.run(
            self.db,
            self.target_date,
            fail_on=self.fail_on,
            allow_empty=self.allow_empty,
            require_history=self.require_history,
            skip_dates=self.skip_dates,
            now=self.now,
        )
