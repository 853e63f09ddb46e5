"""Checks the meaning of well-formed assertions: matching units, and an outcome that depends on
data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from dqx_airflow.diagnostics.diagnostic import Diagnostic
from dqx_airflow.dql import nodes
from dqx_airflow.dql.checks.units import Quantity, check_units, constant_quantities
from dqx_airflow.dql.satisfiability.metric_assertions import CertaintyChecker
from dqx_airflow.dql.satisfiability.metric_ranges import constant_ranges
from dqx_airflow.dql.satisfiability.row_predicates import check_filter, check_predicate
from dqx_airflow.dql.walk import filters_over, joined


@dataclass(frozen=True, slots=True)
class MeaningChecker:
    """Checks the assertions of one suite, with the units and ranges of its constants."""

    quantities: Mapping[str, Quantity]
    certainty: CertaintyChecker

    @classmethod
    def of(cls, constants: Iterable[nodes.Constant]) -> MeaningChecker:
        constants = tuple(constants)
        return cls(constant_quantities(constants), CertaintyChecker(constant_ranges(constants)))

    def check(
        self, assertion: nodes.Assertion, check: nodes.Check, *, is_scaled: bool
    ) -> Iterator[Diagnostic]:
        """The diagnostics of a valid assertion of a check.

        :param is_scaled: a profile may multiply the value, which changes its range.
        """
        claim = assertion.claim
        if isinstance(claim, nodes.Composite):
            inner = replace(check, where=joined(check.where, assertion.where))
            for part in claim.parts:
                yield from self.check(part, inner, is_scaled=False)
            return
        for where in filters_over(check, assertion):
            yield from check_filter(where, self.certainty.constants)
        misfits = tuple(check_units(claim, self.quantities))
        yield from misfits
        if misfits or is_scaled:
            return
        if isinstance(claim, nodes.Rows):
            yield from check_predicate(claim, self.certainty.constants)
        else:
            dataset = check.datasets[0].text
            yield from self.certainty.check(claim, assertion.tolerance, dataset)
