"""A suite of DQL text as a Python object: to look at, to tune, and to run."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeAlias

from dqx_airflow.api.database import Database
from dqx_airflow.api.expressions import number
from dqx_airflow.api.results import Results
from dqx_airflow.api.run import plan_of, raise_errors, run
from dqx_airflow.api.tunables import TunableFloat, TunableInt, TunablePercent, Tunables
from dqx_airflow.diagnostics.diagnostic import Diagnostic
from dqx_airflow.diagnostics.text import draw
from dqx_airflow.dql import nodes
from dqx_airflow.dql.check import Checked, check_source
from dqx_airflow.dql.constants import fold, settle
from dqx_airflow.dql.imports import FileReader, Reader, no_imports, search_path
from dqx_airflow.dql.printer import show_claim, show_text
from dqx_airflow.dql.source import Unreadable, read_source
from dqx_airflow.errors import RequestError, SourceError
from dqx_airflow.exact import nearest_float
from dqx_airflow.plan.model import Plan
from dqx_airflow.plan.profiles import active_profiles
from dqx_airflow.values import MetricValue, Severity, SourceFile

_TEXT_NAME = "<text>"

TunableNumber: TypeAlias = TunableFloat | TunableInt


@dataclass(frozen=True, slots=True)
class Check:
    """A check of a suite: its assertions are names, or what they claim where they have none."""

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
        """By what the profile multiplies metrics, by selector: `{'tag "volume"': 2.0}`."""
        combined: dict[str, Fraction] = {}
        for selector, factor in self._factors:
            combined[selector] = combined.get(selector, Fraction(1)) * factor
        return {selector: float(factor) for selector, factor in combined.items()}


class Suite:
    """A suite without errors, its imports read and its macros expanded.

    Tunable constants can be set within their bounds; nothing is written to the file.
    """

    def __init__(self, checked: Checked) -> None:
        if checked.suite is None:
            raise RequestError("this is no suite", "call Suite.load(path) or Suite.from_string")
        self._checked = checked
        self._suite = checked.suite
        self._constants = settle(checked.suite.constants)
        self._tunables = Tunables(_tunables_in(checked.suite, self._constants))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Suite:
        """The suite of a file.

        Its imports are looked for beside it and in the folders of the environment variable
        DQL_PATH.

        :raises SourceError: there is no such file, or the suite has errors.
        """
        place = Path(path).expanduser()
        source = read_source(place, os.fspath(path))
        if isinstance(source, Unreadable):
            found = (source.diagnostic,)
            drawn = draw(found, {os.fspath(path): source.text} if source.text else {})
            raise SourceError(drawn, diagnostics=found)
        return cls._of(source, _reader(source.name, place))

    @classmethod
    def from_string(cls, text: str, *, folder: str | os.PathLike[str] | None = None) -> Suite:
        """The suite of a text.

        :param folder: where its imports are looked for; without it, a text cannot import.
        :raises SourceError: the suite has errors.
        """
        read = no_imports if folder is None else _reader(_TEXT_NAME, Path(folder) / _TEXT_NAME)
        return cls._of(SourceFile(_TEXT_NAME, text), read)

    @classmethod
    def _of(cls, source: SourceFile, read: Reader) -> Suite:
        checked = check_source(source, read, needs_suite=True)
        raise_errors(checked.errors, checked)
        return cls(checked)

    @property
    def name(self) -> str:
        return self._suite.name.value

    @property
    def checks(self) -> tuple[Check, ...]:
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
        return self._checked.diagnostics

    def get_profiles(self) -> tuple[Profile, ...]:
        return tuple(map(_profile, self._suite.profiles))

    def get_active_profiles(self, on: date) -> tuple[Profile, ...]:
        """The profiles whose period holds the date, in the order of the suite."""
        return tuple(map(_profile, active_profiles(self._suite, on)))

    def is_profile_active(self, name: str, on: date) -> bool:
        """:raises RequestError: the suite has no such profile."""
        names = [profile.name for profile in self.get_profiles()]
        if name not in names:
            listed = ", ".join(map(repr, names)) or "none"
            raise RequestError(f"the suite has no profile {name!r}", f"there are: {listed}")
        return any(profile.name == name for profile in self.get_active_profiles(on))

    def get_tunable_params(self) -> tuple[TunableNumber, ...]:
        """The tunable constants of the suite's own file."""
        return tuple(self._tunables)

    def get_param(self, name: str) -> float:
        """:raises RequestError: there is no such tunable."""
        return self._tunables[name].value

    def set_param(self, name: str, value: float) -> None:
        """Sets a tunable for the runs to come.

        :raises RequestError: there is no such tunable, or the value lies outside of its bounds.
        """
        tunable: Any = self._tunables[name]  # which kind of number it takes, it says itself
        tunable.value = value

    def run(
        self,
        db: Database,
        date: date,
        *,
        fail_on: Severity | str = Severity.P1,
        allow_empty: bool = False,
        require_history: bool = False,
        skip_dates: Collection[date] = (),
        now: datetime | None = None,
    ) -> Results:
        """The results for a date.

        :param fail_on: failures of this severity or a worse one block.
        :param allow_empty: leaves out the implicit assertions that the datasets have rows.
        :param require_history: the outcome is broken where an assertion of `fail_on` or worse
            lacks data of other dates; without it, warned.
        :param skip_dates: dates without data, for lagged metrics.
        :param now: the moment from which ages such as `freshness` are measured.
        :raises SourceError: the suite asks for a dataset or for dates that the database has not.
        """
        checked = replace(self._checked, suite=self._tuned())
        return run(
            checked,
            db,
            date,
            fail_on=fail_on,
            allow_empty=allow_empty,
            require_history=require_history,
            skip_dates=skip_dates,
            now=now,
        )

    def plan(self, db: Database, date: date, *, allow_empty: bool = False) -> Plan:
        """What `run` would measure and decide.

        :raises SourceError: the suite asks for a dataset or for dates that the database has not.
        """
        checked = replace(self._checked, suite=self._tuned())
        return plan_of(checked, db, date, allow_empty=allow_empty)

    def _tuned(self) -> nodes.Suite:
        """The suite with the values that were set; constants computed from them follow."""
        literals = {name: constant.value for name, constant in self._constants.items()}
        changed = {
            tunable.name: _with_value(literals[tunable.name], tunable.value)
            for tunable in self._tunables
            if tunable.value != _as_kept(fold(literals[tunable.name], {}))
        }
        constants = tuple(
            replace(constant, value=changed.get(constant.name.text, constant.value))
            for constant in self._suite.constants
        )
        return replace(self._suite, constants=constants)


def _reader(name: str, place: Path) -> Reader:
    return FileReader(name, place, place.parent, search_path(os.environ))


def _as_kept(value: MetricValue) -> MetricValue:
    """The value of a constant as a tunable has it: a float where it has a point."""
    return nearest_float(value) if isinstance(value, Fraction) else value


def _with_value(literal: nodes.Expression, value: float) -> nodes.Number:
    unit = literal.unit if isinstance(literal, nodes.Number) else nodes.Unit.PLAIN
    return number(value, unit, literal.span)


def _tunables_in(
    suite: nodes.Suite, constants: Mapping[str, nodes.Constant]
) -> Iterator[TunableNumber]:
    """The tunable constants of the suite's own file: those of others are not its to tune."""
    for constant in suite.constants:
        if constant.bounds is None or constant.span.file != suite.span.file:
            continue
        name = constant.name.text
        literal = constants[name].value
        value, low, high = (fold(node, constants) for node in (literal, *constant.bounds))
        is_whole = all(isinstance(number, int) for number in (value, low, high))
        bounds: Any = (low, high)
        known: Any = value
        if isinstance(literal, nodes.Number) and literal.unit is nodes.Unit.PERCENT:
            yield TunablePercent(name, known, bounds)
        else:
            yield (TunableInt if is_whole else TunableFloat)(name, known, bounds)


def _profile(profile: nodes.Profile) -> Profile:
    scales = [rule for rule in profile.rules if isinstance(rule, nodes.Scale)]
    factors = tuple((_selected(rule.selector), rule.factor) for rule in scales)
    return Profile(profile.name.value, profile.type.text if profile.type else "holiday", factors)


def _selected(selector: nodes.Selector) -> str:
    text = f"{selector.kind} {show_text(selector.name.value)}"
    return f"{text} in {show_text(selector.check.value)}" if selector.check else text
