"""Exports a contract as a suite of Great Expectations, for version 1 and for earlier versions.

First the existence of columns, then for each of them its type, NULL, range, pattern and values,
then completeness and unique keys, and finally all other demands of the contract.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from dqx_airflow.contracts import demands
from dqx_airflow.contracts.compile.expectations import Expectation, ExportedRule
from dqx_airflow.contracts.demands.columns import type_name
from dqx_airflow.contracts.demands.values import bounds_of
from dqx_airflow.contracts.dialects import reader_of
from dqx_airflow.contracts.export.exported import Exported, ModelWriter
from dqx_airflow.contracts.model import Contract, Field, Rule, plain_name
from dqx_airflow.errors import NoCounterpartError

# Only SQL can express these: the rows that must not exist -----------------------------------------


_OLDER_TYPES = ("string", "bigint", "int", "timestamp", "decimal(18,2)", "double", "boolean")
_STRICTER = "exported stricter than it is: Great Expectations permits no share of duplicates"


def suite(contract: Contract) -> Exported:
    """The suite as Great Expectations 1 loads it: `ExpectationSuite(**json.load(file))`."""
    writer = _SuiteWriter(contract, contract.models[0])
    expectations = [*writer.generated(), *writer.further()]
    return writer.suite("name", [expectation.as_plain() for expectation in expectations])


def older_suite(contract: Contract) -> Exported:
    """The suite in the form before version 1, limited to what the generator of seed 003
    supports."""
    writer = _SuiteWriter(contract, contract.models[0], is_older=True)
    expectations = [
        {"expectation_type": expectation.type, "kwargs": expectation.kwargs}
        for expectation in writer.generated()
    ]
    writer.leave_the_rest()
    return writer.suite("expectation_suite_name", expectations)


@dataclass(slots=True)
class _SuiteWriter(ModelWriter):
    """Writes the rules of a model as expectations. `written` holds the `id` of finished rules."""

    is_older: bool = False
    written: set[int] = field(default_factory=set)

    def suite(self, name: str, expectations: list[dict[str, Any]]) -> Exported:
        """The suite; `name` is the key of its name."""
        contract = self.contract
        meta = {
            "contract_id": contract.id,
            "contract_version": contract.version,
            "generated_from": f"contracts/{contract.id.split('.')[-1]}.contract.yaml",
        }
        named = {name: f"{contract.id.replace('.', '_')}_suite", "meta": meta}
        return self.exported({**named, "expectations": expectations})

    def generated(self) -> Iterator[Expectation]:
        """The expectations of the generator, in its order."""
        model = self.model
        if model.fields:
            closing = [rule for rule in model.rules if isinstance(rule.demand, demands.OnlyColumns)]
            self._mark_written(*closing)
            names = [item.name for item in model.fields]
            kwargs = {"column_set": names, "exact_match": bool(closing)}
            yield Expectation("expect_table_columns_to_match_set", kwargs)
        for item in model.fields:
            yield from self._of_column(item)
        for kinds in ((demands.Complete,), (demands.Unique, demands.Distinct)):
            for owner, rule in self._written_in_order(kinds):
                yield self._promise(owner, rule)

    def further(self) -> Iterator[Expectation]:
        """The expectations that the generator does not support."""
        for item, rule in self._left():
            try:
                yield ExportedRule(self.model, item, rule).expectation()
            except NoCounterpartError as error:
                self.lose(item, rule, str(error))

    def leave_the_rest(self) -> None:
        for item, rule in self._left():
            self.lose(item, rule, "the generator knows no such expectation")

    def _of_column(self, item: Field) -> Iterator[Expectation]:
        rules = [rule for rule in item.rules if rule.share >= 1]
        for kind in (
            *(demands.Presence, demands.OfType, demands.Required),
            *(demands.Bound, demands.Pattern, demands.OneOf),
        ):
            if kind is demands.Bound:
                yield from self._range(item.name, rules)
            elif kind is not demands.OfType or self._has_type(item):
                for rule in rules:
                    if isinstance(rule.demand, kind):
                        yield from self._as_expectation(item, rule)

    def _as_expectation(self, item: Field, rule: Rule) -> Iterator[Expectation]:
        with suppress(NoCounterpartError):
            expectation = ExportedRule(self.model, item, rule).expectation()
            self._mark_written(rule)
            yield expectation

    def _has_type(self, item: Field) -> bool:
        if self.is_older:
            written = item.written_type if self._keeps_types else item.type
            return written in _OLDER_TYPES
        return type_name(item.type) is not None

    def _range(self, column: str, rules: list[Rule]) -> Iterator[Expectation]:
        """The expectation for the first lower and the first upper bound together. A bound with a
        severity stays separate."""
        ends: dict[str, Rule] = {}
        for rule in rules:
            if not isinstance(rule.demand, demands.Bound) or not rule.demand.is_range:
                continue
            if rule.severity is None:
                ends.setdefault(rule.demand.op[0], rule)
        if not ends:
            return
        self._mark_written(*ends.values())
        lowest, highest = (ends[sign].demand if sign in ends else None for sign in "><")
        assert isinstance(lowest, demands.Bound | None)
        assert isinstance(highest, demands.Bound | None)
        yield bounds_of(column, lowest, highest)

    def _promise(self, item: Field | None, rule: Rule) -> Expectation:
        self._mark_written(rule)
        demand = rule.demand
        if isinstance(demand, demands.Distinct) and demand.duplicates > 0:
            self.lose(item, rule, _STRICTER)
            rule = replace(rule, demand=demands.Distinct(demand.columns, 0))
        if isinstance(demand, demands.Unique | demands.Distinct):
            columns = [plain_name(column) for column in demand.columns]
            # A key as written by the generator; the current form requires two columns.
            if self.is_older or (self._keeps_types and len(columns) > 1):
                return Expectation("expect_compound_columns_to_be_unique", {"column_list": columns})
        return ExportedRule(self.model, None, rule).expectation()

    @property
    def _keeps_types(self) -> bool:
        return reader_of(self.contract.dialect).names_types_as_written

    def _written_in_order(self, kinds: tuple[type, ...]) -> list[tuple[Field | None, Rule]]:
        pairs = [pair for pair in self._left() if isinstance(pair[1].demand, kinds)]
        pairs = [pair for pair in pairs if pair[0] is None or pair[0] in self.model.fields]
        return sorted(pairs, key=lambda pair: _line(pair[1]))

    def _left(self) -> Iterator[tuple[Field | None, Rule]]:
        for _, item, rule in self.contract.rules():
            if id(rule) not in self.written:
                yield item, rule

    def _mark_written(self, *rules: Rule) -> None:
        self.written.update(map(id, rules))


def _line(rule: Rule) -> tuple[int, int]:
    span = rule.clauses[0].span if rule.clauses else None
    return (span.line, span.column) if span is not None else (0, 0)
