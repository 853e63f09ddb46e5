"""Suites as tests: one for each assertion, all of a suite measured together by the first of them.

An assertion that fails without blocking is an expected failure, a skipped one a skipped test.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from datetime import date
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

from dqx_airflow.api.database import Database, MemoryDatabase, SparkDatabase
from dqx_airflow.api.run import Result, Results, RunSettings, run
from dqx_airflow.api.suite import Suite
from dqx_airflow.datasets.dqx_toml import Settings, find_settings, read_settings
from dqx_airflow.datasets.spark_address import connection_of
from dqx_airflow.diagnostics.diagnostic import errors_of
from dqx_airflow.diagnostics.renderers import draw
from dqx_airflow.diagnostics.verdicts import draw_verdict
from dqx_airflow.dql.checks.suite import IMPLICIT_CHECK
from dqx_airflow.errors import DqxError, SourceError
from dqx_airflow.tuning.suite_file import SuiteFile
from dqx_airflow.values import Outcome, Status
from dqx_airflow.values.typed_values import DAY_FORMS, typed_day

_SESSION = pytest.StashKey[Any]()
_WORK = pytest.StashKey[Any]()
_IMPLICIT = "implicit assertions"


class AssertionFailure(Exception):  # noqa: N818 (it is what failed, not what went wrong)
    """An assertion that does not hold, or could not be evaluated, in the words of a gate's log."""


class SuiteOfTests(pytest.File):
    """A suite whose assertions are tests. A library has none."""

    def collect(self) -> Iterator[pytest.Item]:
        """A test for each assertion, and one for all implicit assertions."""
        checked = self._checked
        if checked.suite is None:
            return
        yield AssertionTest.from_parent(self, name=_IMPLICIT, line=0, number=None)
        number = 0
        for check, named_check in zip(checked.suite.checks, Suite(checked).checks, strict=True):
            for assertion, name in zip(check.assertions, named_check.assertions, strict=True):
                place = assertion.uses[0] if assertion.uses else assertion.claim.span
                yield AssertionTest.from_parent(
                    self, name=f"{named_check.name}/{name}", line=place.line - 1, number=number
                )
                number += 1

    @cached_property
    def _checked(self) -> Any:
        """The suite, read and checked.

        :raises pytest.Collector.CollectError: it has errors.
        """
        try:
            return SuiteFile.at(self.path, os.environ).read(needs_suite=False)
        except SourceError as error:
            raise self.CollectError(str(error)) from None

    @cached_property
    def _settings(self) -> Settings:
        path = find_settings(self.path.parent)
        settings = Settings() if path is None else read_settings(path)
        problems = errors_of(settings.problems)
        if path is not None and problems:
            raise AssertionFailure(draw(problems, {str(path): settings.text}))
        return settings

    @cached_property
    def _outcome(self) -> Results | DqxError:
        """The results of the suite, or the error that each of its tests reports."""
        settings = self._settings
        try:
            database = self._database(settings)
            on = date_of_run(self.config)
            how = RunSettings(settings.defaults)
            return run(self._checked, database, on, how)
        except DqxError as error:
            return error

    @property
    def results(self) -> Results:
        """The results of the assertions, which are measured once.

        :raises DqxError: the suite could not be run.
        """
        outcome = self._outcome
        if isinstance(outcome, DqxError):
            raise outcome
        return outcome

    def _database(self, settings: Settings) -> Database:
        on = date_of_run(self.config)
        given = self.ihook.pytest_dql_database(path=self.path, on=on, config=self.config)
        if isinstance(given, Mapping):
            return MemoryDatabase(given)
        if given is not None:
            database: Database = given
            return database
        return SparkDatabase(_session(self.config, settings), settings.as_read(settings.refs))


class AssertionTest(pytest.Item):
    """A test of the assertion with a `number` in the suite. Without a number it tests the implicit
    assertions: that the datasets have rows and valid values."""

    def __init__(self, *, line: int, number: int | None, **others: Any) -> None:
        super().__init__(**others)
        self._line = line
        self._number = number

    def runtest(self) -> None:
        """Passes or fails the assertion by the results of its suite, which is run once."""
        assert isinstance(self.parent, SuiteOfTests)
        results = self.parent.results
        implicit = [result for result in results if result.check == IMPLICIT_CHECK]
        stated = [result for result in results if result.check != IMPLICIT_CHECK]
        own_results = implicit if self._number is None else [stated[self._number]]
        self._judge(own_results, results)

    def _judge(self, own_results: list[Result], results: Results) -> None:
        report = results.report
        wrong = [result for result in own_results if result.status in (Status.FAILED, Status.ERROR)]
        text = "\n\n".join(draw_verdict(result, report) for result in wrong)
        if any(result.can_block(report.fail_on) for result in wrong):
            raise AssertionFailure(text)
        if wrong:
            pytest.xfail(text)
        if own_results and all(result.status is Status.SKIPPED for result in own_results):
            if report.outcome is Outcome.BROKEN and own_results[0].can_block(report.fail_on):
                raise AssertionFailure(draw_verdict(own_results[0], report))
            pytest.skip(own_results[0].reason or "skipped")

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """The text of the failure, without a traceback if the assertion has failed."""
        if isinstance(excinfo.value, AssertionFailure | DqxError):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int, str]:
        """The file of the suite, the line of the assertion, and the name of the test."""
        # pytest would turn the dots of a name at the end of a test id into two colons.
        return self.path, self._line, f"assertion {self.name}"


def date_of_run(config: pytest.Config) -> date:
    """The date of the data.

    :raises pytest.UsageError: the option is not a date.
    """
    text = config.getoption("dql_date")
    day = typed_day(text, date.today())
    if day is None:
        raise pytest.UsageError(f"--dql-date {text}: write {DAY_FORMS}")
    return day


def _session(config: pytest.Config, settings: Settings) -> Any:
    """The Spark session of the run, opened when the first suite needs it."""
    if _SESSION not in config.stash:
        from dqx_airflow.engine.session.connection import open_session
        from dqx_airflow.engine.session.job_ending import SparkWork
        from dqx_airflow.engine.session.spark_session import earlier_sparks

        session = {**settings.defaults.session_settings, **settings.session}
        address = os.environ.get("DQX_CONNECTION")
        connection = connection_of(address) if address else settings.connection
        earlier = earlier_sparks()
        config.stash[_SESSION] = spark = open_session(connection, "pytest", session)
        config.stash[_WORK] = SparkWork(spark, earlier)
    return config.stash[_SESSION]


def close_session(config: pytest.Config) -> None:
    """Stops the Spark of the run, if there is one, unless the tests had started it before."""
    work = config.stash.get(_WORK, None)
    if work is not None:
        work.close()
