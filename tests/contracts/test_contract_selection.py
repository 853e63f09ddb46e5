"""Contracts selected by clause, id, dimension and tag: what is left, and the messages."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date

import pytest

from dqx_airflow.api.contract import Contract
from dqx_airflow.api.database import MemoryDatabase
from dqx_airflow.api.run import Results
from dqx_airflow.contracts.demands import Demand, QueryGives, RowsSatisfy
from dqx_airflow.errors import RequestError
from dqx_airflow.values import Outcome

ON = date(2024, 11, 29)
CONTRACT = """\
apiVersion: v3.0.2
kind: DataContract
id: orders
version: 1.0.0
status: active
schema:
  - name: orders
    id: orders_object
    tags: [sales]
    properties:
      - name: id
        id: key_of_orders
        logicalType: integer
        required: true
        unique: true
        tags: [key]
      - name: country
        logicalType: string
        quality:
          - id: country_known
            metric: nullValues
            mustBe: 0
            dimension: accuracy
            tags: ["team:geo"]
          - id: country_odd
            type: custom
            engine: homemade
            implementation: anything
            dimension: accuracy
            severity: P0
            tags: [odd]
slaProperties:
  - property: freshness
    value: 1
    unit: d
    element: orders.id
"""
DB = MemoryDatabase({"orders": [{"id": 1, "country": "CH"}, {"id": 2, "country": None}]})


def _run(**given: object) -> Results:
    return Contract.from_string(CONTRACT, on=ON).run(DB, ON, **given)  # type: ignore[arg-type]


def _names(**given: object) -> list[str]:
    verdicts = _run(**given).report.verdicts
    return [one.name.removeprefix("orders.") for one in verdicts if one.check != "implicit"]


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ({"only": "country_known"}, ["country.country_known"]),
        (
            {"only": "orders.id.*"},
            ["id.exists", "id.type", "id.required", "id.unique", "id.freshness"],
        ),
        ({"only": "schema[0].properties[0].required"}, ["id.required"]),
        ({"only": "schema[0].properties[0]", "dimensions": "uniqueness"}, ["id.unique"]),
        ({"only": "key_of_orders", "dimensions": "uniqueness"}, ["id.unique"]),
        ({"only": "orders_object", "dimensions": "completeness"}, ["id.required"]),
        ({"dimensions": "Completeness"}, ["id.required"]),
        ({"dimensions": "accuracy"}, ["country.country_known", "country.country_odd"]),
        ({"tags": "team:geo"}, ["country.country_known"]),
        ({"tags": "team-geo"}, ["country.country_known"]),
        ({"tags": "key", "exclude_tags": "team:geo", "dimensions": "uniqueness"}, ["id.unique"]),
        ({"min_severity": "P0"}, ["country.country_odd"]),
    ],
)
def test_a_selection_keeps_what_meets_all_criteria(
    given: dict[str, object], kept: list[str]
) -> None:
    assert _names(**given) == kept


def test_an_unenforceable_clause_breaks_the_run_if_selected_else_is_reported() -> None:
    odd = _run(only="country_odd").report
    assert odd.outcome is Outcome.BROKEN
    other = _run(only="orders.id.unique").report
    assert other.outcome is Outcome.PASSED
    assert other.partial is not None
    assert other.partial.protected == ("orders.country.country_odd",)
    assert other.partial.assertions == len(_run().report.verdicts) - 1  # not_empty is implicit


def test_an_unknown_dimension_or_id_is_an_error_with_a_suggestion() -> None:
    for given, problem, hint in (
        ({"dimensions": "acuracy"}, "the dimension 'acuracy'", "did you mean 'accuracy'?"),
        ({"only": "country_know"}, "is named 'country_know'", "did you mean 'country_known'?"),
    ):
        with pytest.raises(RequestError) as caught:
            _run(**given)
        assert problem in caught.value.problem
        assert hint in caught.value.hint


def test_every_demand_has_a_dimension_unless_it_depends_on_the_rule() -> None:
    kinds = [*_leaves(Demand)]
    assert len(kinds) > 20
    assert {kind for kind in kinds if kind.dimension is None} == {RowsSatisfy, QueryGives}


def _leaves(kind: type[Demand]) -> Iterator[type[Demand]]:
    """The kinds of demands that have no kinds of their own."""
    if not kind.__subclasses__():
        yield kind
    for sub in kind.__subclasses__():
        yield from _leaves(sub)
