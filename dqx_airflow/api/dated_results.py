"""The results of a run over several dates in Python, by date."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from dqx_airflow.api.results import Results
from dqx_airflow.errors import UpstreamFailure
from dqx_airflow.values import Outcome, worst_outcome


class DatesFailed(AssertionError):  # noqa: N818 (as `SuiteFailed`)
    """A suite did not pass on all dates.

    `results` has all dates; the message has the report of each date that did not pass.
    """

    def __init__(self, results: DatedResults) -> None:
        super().__init__(f"\n{results}")
        self.results = results


@dataclass(frozen=True, slots=True)
class DatedResults(Mapping[date, Results]):
    """The results of a suite by date, in order, each as of a run for that date alone.

        for day, results in suite.run_dates(db, "2026-01-01..2026-03-31").items():
            print(day, results.outcome)

    `not_run` has the dates for which a `StoredDatabase` has no results, with the reason.
    """

    by_date: Mapping[date, Results]
    not_run: Mapping[date, UpstreamFailure] = field(default_factory=dict)

    def __getitem__(self, on: date) -> Results:
        return self.by_date[on]

    def __iter__(self) -> Iterator[date]:
        return iter(self.by_date)

    def __len__(self) -> int:
        return len(self.by_date)

    @property
    def outcome(self) -> Outcome:
        """The worst outcome; broken if a date was not run."""
        if self.not_run or not self.by_date:
            return Outcome.BROKEN
        return worst_outcome(results.outcome for results in self.by_date.values())

    @property
    def outcomes(self) -> dict[date, Outcome]:
        """The outcome of each date."""
        return {on: results.outcome for on, results in self.by_date.items()}

    def raise_for_failures(self, *, allow_warnings: bool = True) -> DatedResults:
        """Returns these results, unless a gate would stop the task on one of the dates.

        :param allow_warnings: accepts `warned`: failures below `fail_on`, or missing history.
        :raises DatesFailed: a date has another outcome.
        """
        passes = {Outcome.PASSED, Outcome.WARNED} if allow_warnings else {Outcome.PASSED}
        if self.outcome not in passes:
            raise DatesFailed(self)
        return self

    def to_pandas(self) -> Any:
        """A pandas DataFrame with a row per date and assertion, and the columns of the table
        `results`.

        The date is in the column `dataset_date`.

        :raises ImportError: pandas is not installed.
        """
        import pandas  # type: ignore[import-untyped]

        frames = [results.to_pandas() for results in self.by_date.values()]
        return pandas.concat(frames, ignore_index=True) if frames else pandas.DataFrame()

    def __str__(self) -> str:
        lines = [f"{on.isoformat()}: {outcome.value}" for on, outcome in self.outcomes.items()]
        lines += [f"{on.isoformat()}: not run: {why.problem}" for on, why in self.not_run.items()]
        reports = [
            str(results)
            for results in self.by_date.values()
            if results.outcome is not Outcome.PASSED
        ]
        return "\n\n".join(["\n".join(sorted(lines)), *reports])

    def _repr_html_(self) -> str:
        """The outcomes as displayed in a notebook."""
        outcomes = [(on, outcome.value) for on, outcome in self.outcomes.items()]
        outcomes += [(on, "not run") for on in self.not_run]
        rows = "".join(
            f"<tr><td>{on.isoformat()}</td><td>{text}</td></tr>" for on, text in sorted(outcomes)
        )
        head = "<thead><tr><th>date</th><th>outcome</th></tr></thead>"
        return f"<table>{head}<tbody>{rows}</tbody></table>"
