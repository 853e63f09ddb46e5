"""What a run in Python returns: the report of a gate, under the names of the Python API."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from decimal import Decimal
from fractions import Fraction

from dqx_airflow.diagnostics.diagnostic import Diagnostic
from dqx_airflow.diagnostics.verdicts import draw_report
from dqx_airflow.exact import exact_text, is_decimal, nearest_float
from dqx_airflow.values import DatasetSnapshot, GateReport, Outcome, Status, Verdict


@dataclass(frozen=True, slots=True)
class Result(Verdict):
    """A verdict, for `f"{result.check}/{result.assertion}: {result.status}"`."""

    @property
    def assertion(self) -> str:
        """The name of the assertion."""
        return self.name

    @property
    def passed(self) -> bool:
        return self.status is Status.PASSED

    @property
    def metric_value(self) -> int | Decimal | float | str | None:
        """The value before profiles scaled it; what was compared is `scaled_value`.

        A decimal is a `Decimal`, a quotient without an end the nearest float; `value` has both as
        an exact `Fraction`.
        """
        value = self.value
        if not isinstance(value, Fraction):
            return value
        return Decimal(exact_text(value)) if is_decimal(value) else nearest_float(value)


@dataclass(frozen=True, slots=True)
class Results:
    """The results of a suite in its order, those of the implicit assertions first.

    `report` is the whole as a value with a JSON form; `warnings` are what was said about the suite
    before it ran. As text it is what a gate prints.
    """

    report: GateReport
    warnings: tuple[Diagnostic, ...] = ()

    @property
    def assertions(self) -> tuple[Result, ...]:
        return tuple(
            Result(*(getattr(verdict, field.name) for field in fields(Verdict)))
            for verdict in self.report.verdicts
        )

    @property
    def outcome(self) -> Outcome:
        return self.report.outcome

    @property
    def datasets(self) -> tuple[DatasetSnapshot, ...]:
        """The data that was checked: where, which version, how many rows."""
        return self.report.datasets

    def __iter__(self) -> Iterator[Result]:
        return iter(self.assertions)

    def __len__(self) -> int:
        return len(self.report.verdicts)

    def __str__(self) -> str:
        return draw_report(self.report)
