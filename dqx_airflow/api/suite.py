"""A suite of DQL text as a Python object: to inspect, to tune, and to run; and files of them."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import date, datetime, timezone
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dqx_airflow.api import run as runs
from dqx_airflow.api.database import Database
from dqx_airflow.api.run import DatedResults, Results, RunKeywords, SelectedRunKeywords
from dqx_airflow.diagnostics.diagnostic import Diagnostic
from dqx_airflow.dql import nodes
from dqx_airflow.dql.check import Checked, check_source
from dqx_airflow.dql.import_readers import FileReader, Reader, no_imports, search_path
from dqx_airflow.dql.printer import show_claim, show_selector
from dqx_airflow.errors import RequestError
from dqx_airflow.plan.adjustments import active_profiles
from dqx_airflow.plan.model import Plan
from dqx_airflow.tuning.protection import DEFAULT_AGENT, judge_values
from dqx_airflow.tuning.suite_file import ParamChange, Saved, SuiteFile, refuse
from dqx_airflow.tuning.suite_history import TunableChange
from dqx_airflow.tuning.tunables import TunableNumber, tunables_of, with_values
from dqx_airflow.values import RunOptions, SourceFile
from dqx_airflow.values.blank import require_no_blank
from dqx_airflow.values.request import selection_of

if TYPE_CHECKING:
    from typing_extensions import Unpack

_TEXT_NAME = "<text>"


@dataclass(frozen=True, slots=True)
class Check:
    """A check of a suite. `assertions` are their names, or their text if they have none."""

    name: str
    datasets: tuple[str, ...]
    assertions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Profile:
    """A profile of a suite. `type` is `holiday` or `recurring`."""

    name: str
    type: str
    _factors: tuple[tuple[str, Fraction], ...]

    def get_multipliers(self) -> dict[str, float]:
        """The factors by which the profile multiplies metrics, by selector.

        For example `{'tag "volume"': 2.0}`; empty if it scales nothing.
        """
        combined: dict[str, Fraction] = {}
        for selector, factor in self._factors:
            combined[selector] = combined.get(selector, Fraction(1)) * factor
        return {selector: float(factor) for selector, factor in combined.items()}


class Suite:
    """A suite without errors, with its imports read and its macros expanded.

    >>> from datetime import date
    >>> from dqx_airflow import MemoryDatabase, Suite
    >>> suite = Suite.from_string('suite "A" { check "C" on t { assert num_rows() > 1 } }')
    >>> results = suite.run(MemoryDatabase({"t": [{"id": 1}]}), date(2026, 1, 1))
    >>> results.outcome.value
    'blocked'

    Tunable constants can be set within their bounds, for later runs; `save` writes them into the
    file.
    """

    def __init__(self, checked: Checked, file: SuiteFile | None = None) -> None:
        """:param file: where it was read; a suite from a text has none."""
        if checked.suite is None:
            raise RequestError("this is not a suite", "call Suite.load(path) or Suite.from_string")
        self._file = file
        self._read(checked)

    def _read(self, checked: Checked) -> None:
        self._checked = checked
        self._suite = checked.valid_suite
        self._tunables = tunables_of(checked.valid_suite)
        self._set: dict[str, ParamChange] = {}
        self._changes: list[TunableChange] = []
        self._lines_read = self._file.last_line() if self._file else 0

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Suite:
        """Reads the suite in a file.

        Its imports are searched next to it, from the root of its project, and in the folders of the
        environment variable DQL_PATH.

        :param path: the path of a `.dql` file.
        :raises SourceError: the file does not exist, or the suite has errors; `diagnostics` lists
            them.
        """
        file = SuiteFile.at(path, os.environ)
        return cls(file.read(), file)

    @classmethod
    def from_string(cls, text: str, *, folder: str | os.PathLike[str] | None = None) -> Suite:
        """Reads the suite in a string.

        :param text: the source of the suite.
        :param folder: the folder in which its imports are searched; without it, it cannot import.
        :raises SourceError: the suite has errors.
        :raises RequestError: the folder is empty.
        """
        require_no_blank({"folder": folder})
        read = no_imports if folder is None else _reader(_TEXT_NAME, Path(folder) / _TEXT_NAME)
        checked = check_source(SourceFile(_TEXT_NAME, text), read, needs_suite=True)
        runs.raise_errors(checked.errors, checked)
        return cls(checked)

    @property
    def name(self) -> str:
        """The name of the suite."""
        return self._suite.name.value

    @property
    def checks(self) -> tuple[Check, ...]:
        """The checks in the order of the file, with their datasets and names of assertions."""
        return tuple(
            Check(
                check.name.value,
                tuple(dataset.text for dataset in check.datasets),
                tuple(
                    item.name.value if item.name else show_claim(item.claim)
                    for item in check.assertions
                ),
            )
            for check in self._suite.checks
        )

    @property
    def warnings(self) -> tuple[Diagnostic, ...]:
        """The warnings about the suite."""
        return self._checked.diagnostics

    def get_profiles(self) -> tuple[Profile, ...]:
        """Returns the profiles, in the order of the file."""
        return tuple(map(_profile, self._suite.profiles))

    def get_active_profiles(self, on: date) -> tuple[Profile, ...]:
        """Returns the profiles that are active on a date, in the order of the suite."""
        return tuple(map(_profile, active_profiles(self._suite, on)))

    def is_profile_active(self, name: str, on: date) -> bool:
        """Returns True if a profile is active on a date.

        :raises RequestError: the suite has no profile with this name.
        """
        names = [profile.name for profile in self.get_profiles()]
        if name not in names:
            listed = ", ".join(map(repr, names)) or "none"
            raise RequestError(f"the suite has no profile {name!r}", f"available: {listed}")
        return any(profile.name == name for profile in self.get_active_profiles(on))

    def get_tunable_params(self) -> tuple[TunableNumber, ...]:
        """Returns the tunable constants of the suite's own file, with their current values and
        bounds.

        They are copies: to change a value, call `set_param`.
        """
        return self._tunables.copies()

    def get_param(self, name: str) -> float:
        """Returns the current value of a tunable: a share for a percentage (0.05 for 5%), seconds
        for a duration.

        :raises RequestError: the suite has no tunable with this name.
        """
        return self._tunables[name].value

    def set_param(
        self, name: str, value: float, *, agent: str = DEFAULT_AGENT, reason: str | None = None
    ) -> None:
        """Sets a tunable for later runs, and for `save`.

        :param name: the name of the constant.
        :param value: the new value, in the unit of `get_param`.
        :param agent: who sets it: `human`, or the name of an algorithm, which cannot make a
            required assertion weaker than it is in the file.
        :param reason: the reason, for the history.
        :raises ChangeRefusedError: the suite has no such tunable, the value is outside of its
            bounds, or the agent may not set it; `diagnostics` gives the reason.
        :raises RequestError: the value is not a number, or not a whole number for a tunable that
            needs one.
        """
        if name in self._tunables:
            value = self._tunables[name].number(value)
        require_no_blank({"agent": agent, "reason": reason})
        change = ParamChange(name, value, agent, reason)
        own = dict[str, float]()
        others = dict[str, float]()
        for earlier in self._set.values():
            values = own if earlier.agent == agent else others
            values[earlier.param] = earlier.value
        judgement = judge_values(with_values(self._suite, others), {**own, name: value}, agent)
        refuse(judgement.refusals, self._checked.sources)
        tunable: Any = self._tunables[name]  # the tunable itself defines its kind of number
        timestamp = datetime.now(timezone.utc)
        self._changes.append(TunableChange(timestamp, name, tunable.value, value, agent, reason))
        tunable.value = value
        self._set[name] = change

    def get_param_history(self, name: str) -> tuple[TunableChange, ...]:
        """Returns the changes of a tunable, oldest first: those in the history file, then later
        ones.

        :raises RequestError: the suite has no tunable with this name.
        """
        name = self._tunables[name].name
        stored = self._file.history.changes(name) if self._file else ()
        return (*stored, *(change for change in self._changes if change.param == name))

    def save(self) -> Saved:
        """Writes the values that were set into the file and leaves every other byte as it is.

        Each value is also appended to the history next to the file, unless it is there already. An
        algorithm's change of an assertion marked `@human_review` is not written: it waits in the
        history for `dql tune review`.

        :raises ChangeRefusedError: the file has changed since it was read, and no longer allows a
            value.
        :raises SourceError: the file has errors.
        :raises RequestError: the suite was not read from a file, or the file cannot be written.
        """
        if self._file is None:
            raise RequestError("this suite has no file", "call Suite.load(path)")
        if not self._set:
            return Saved()
        saved = self._file.save(self._set.values(), logged_since=self._lines_read)
        waiting = {name: self._set[name] for name in saved.proposed}
        changes = [change for change in self._changes if change.param in waiting]
        self._read(self._file.read())
        self._changes = changes
        for name, change in waiting.items():
            tunable: Any = self._tunables[name]
            tunable.value = change.value
            self._set[name] = change
        return saved

    @runs.with_keywords_of(SelectedRunKeywords)
    def run(
        self,
        db: Database,
        date: date,
        *,
        now: datetime | None = None,
        **options: Unpack[SelectedRunKeywords],
    ) -> Results:
        """Returns the results for a date.

        :param db: the data: a `SparkDatabase`, a `MemoryDatabase` or a `StoredDatabase`.
        :param date: the date of the data.
        :param fail_on: failures of this severity or a worse one block.
        :param allow_empty: leaves out the implicit assertions that the datasets have rows.
        :param require_history: a blocking assertion that could not be evaluated because earlier
            dates have no data makes the outcome broken; by default, it makes it warned.
        :param skip_dates: dates without data, for lagged metrics.
        :param ansi: the mode of Spark in which SQL of the suite and the datasets is evaluated; in a
            session with the other one, it is an error.
        :param max_clock_skew_hours: by how many hours a timestamp may be in the future and still
            make data fresh.
        :param now: the time from which ages such as `freshness` are measured, with a time zone; by
            default the current time.
        :param only: selects assertions by name, by check, or by `CHECK::NAME`; `*` and `?` are
            wildcards. The report is then partial, as with the following arguments.
        :param tags: selects assertions with one of these tags.
        :param exclude_tags: leaves out assertions with one of these tags.
        :param severity: selects assertions of this severity or a worse one.
        :param dimensions: selects assertions about one of these quality dimensions.
        :raises SourceError: the suite needs a dataset or dates that the database does not have.
        :raises RequestError: the date or another argument is invalid, or no assertion matches the
            selection.
        """
        return runs.run(self._tuned(), db, date, runs.RunSettings.of(options, now))

    @runs.with_keywords_of(SelectedRunKeywords)
    def run_dates(
        self,
        db: Database,
        dates: str | Iterable[date],
        *,
        now: datetime | None = None,
        **options: Unpack[SelectedRunKeywords],
    ) -> DatedResults:
        """Returns the results for each of several dates, each as of a `run` for that date alone.

        Over Spark, all dates are measured in one scan of each dataset.

        :param dates: the dates, or a range as a string, `2026-01-01..2026-03-31`, both ends
            included; the other arguments are the same as for `run`.
        :raises SourceError: the suite needs a dataset or dates that the database does not have.
        :raises RequestError: the dates or another argument are invalid, or no assertion matches the
            selection.
        """
        return runs.run_dates(self._tuned(), db, dates, runs.RunSettings.of(options, now))

    @runs.with_keywords_of(runs.SelectionKeywords)
    def plan(
        self,
        db: Database,
        date: date,
        *,
        allow_empty: bool = False,
        **selected: Unpack[runs.SelectionKeywords],
    ) -> Plan:
        """Returns the plan of a run: the metrics to measure and the assertions to evaluate. Nothing
        is read.

        The arguments are the same as for `run`.

        :raises SourceError: the suite needs a dataset or dates that the database does not have.
        :raises RequestError: an argument is invalid, or no assertion matches the selection.
        """
        options = RunOptions(allow_empty=allow_empty)
        selection = selection_of(**selected)
        settings = runs.RunSettings(options, selection=selection)
        return runs.plan_of(self._tuned(), db, date, settings)

    def _tuned(self) -> Checked:
        """The suite with the values that were set, and constants computed from them."""
        values = {change.param: change.value for change in self._set.values()}
        return replace(self._checked, suite=with_values(self._suite, values))


def _reader(name: str, place: Path) -> Reader:
    return FileReader(name, place, place.parent, search_path(os.environ))


def _profile(profile: nodes.Profile) -> Profile:
    scales = [rule for rule in profile.rules if isinstance(rule, nodes.Scale)]
    factors = tuple((show_selector(rule.selector), rule.factor) for rule in scales)
    return Profile(profile.name.value, profile.type.text if profile.type else "holiday", factors)


class Interpreter:
    """Runs suites over one database for one date.

        db = SparkDatabase(spark, {"orders": "s3://lake/orders"})
        print(Interpreter(db, date(2026, 1, 1)).run_file("orders.dql"))

    :param db: a `SparkDatabase`, a `MemoryDatabase`, or anything else that can measure a plan.
    :param target_date: the date of the data.
    :param fail_on: failures of this severity or a worse one block.
    :param allow_empty: leaves out the implicit assertions that the datasets have rows.
    :param require_history: a blocking assertion that could not be evaluated because earlier dates
        have no data makes the outcome broken; by default, it makes it warned.
    :param skip_dates: dates without data, for lagged metrics.
    :param ansi: the mode of Spark in which SQL of the suite and the datasets is evaluated; in a
        session with the other one, it is an error.
    :param max_clock_skew_hours: by how many hours a timestamp may be in the future and still make
        data fresh.
    :param now: the time from which ages such as `freshness` are measured, with a time zone; by
        default the current time.
    :raises RequestError: `fail_on` is not a severity.
    """

    @runs.with_keywords_of(RunKeywords)
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
        """Returns the results of the suite in a file; `Suite.load` describes its imports.

        :raises SourceError: the file does not exist, or the suite has errors.
        """
        return self._run(Suite.load(path))

    def run_string(self, text: str, *, folder: str | os.PathLike[str] | None = None) -> Results:
        """Returns the results of the suite in a string.

        :param folder: the folder in which its imports are searched; without it, it cannot import.
        :raises SourceError: the suite has errors.
        """
        return self._run(Suite.from_string(text, folder=folder))

    def run_dates(self, path: str | os.PathLike[str], dates: str | Iterable[date]) -> DatedResults:
        """Returns the results of the suite in a file for each of several dates; `target_date` is
        not used.

        Over Spark, all dates are measured in one scan of each dataset.

        :param dates: the dates, or a range as a string, `2026-01-01..2026-03-31`, both ends
            included.
        :raises SourceError: the file does not exist, or the suite has errors.
        :raises RequestError: the dates are invalid.
        """
        return Suite.load(path).run_dates(self.db, dates, now=self.now, **self.options)

    def _run(self, suite: Suite) -> Results:
        return suite.run(self.db, self.target_date, now=self.now, **self.options)
