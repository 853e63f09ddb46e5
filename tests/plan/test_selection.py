"""What a selection leaves of a suite, and the messages for words that match nothing."""

from __future__ import annotations

from datetime import date

import pytest

from dqx_airflow.dql.check import check_source
from dqx_airflow.errors import RequestError
from dqx_airflow.metrics.metric import Scan
from dqx_airflow.plan.dataset_needs import check_datasets
from dqx_airflow.plan.model import Chosen, Plan
from dqx_airflow.plan.resolve import resolve
from dqx_airflow.plan.selection import choose
from dqx_airflow.values import DatasetRef, SourceFile
from dqx_airflow.values.request import selection_of

ON = date(2024, 11, 29)
ORDERS = DatasetRef("orders", path="orders", date_column="ds")
SUITE = SourceFile(
    "s.dql",
    """\
suite "Shop" {
    check "Volume" on orders {
        assert num_rows() > 10 name "rows" severity P0 tags [volume, fast]
        assert day_over_day(num_rows()) < 0.5 name "stable" tags [volume, slow]
    }
    check "Quality" on orders {
        assert duplicate_count(id) == 0 name "ids" severity P1 tags [slow]
        @required
        assert null_count(id) == 0 name "id is there" severity P2
        assert num_rows() > 0
        assert values(country) in values(code, dataset countries) name "countries" severity P2
        assert num_rows() >= 10 for each country in ["CH", "DE"] name "per country" severity P3
    }
    check "Refunds" on refunds {
        assert num_rows() > 0 name "rows" severity P3
    }
    profile "Sale" {
        from 2024-11-29 to 2024-11-30
        downgrade assertion "ids" in "Quality" to P3
    }
}
""",
)


def _chosen(**given: object) -> Chosen:
    selection = selection_of(**given)  # type: ignore[arg-type]
    assert selection is not None
    suite = check_source(SUITE, needs_suite=True).suite
    assert suite is not None
    return choose(suite, SUITE, [ORDERS], ON, selection)


def _names(**given: object) -> list[str]:
    return [f"{one.check}::{one.name}" for one in _chosen(**given).kept]


def _plan(**given: object) -> Plan:
    suite = check_source(SUITE, needs_suite=True).suite
    assert suite is not None
    refs = [ORDERS, DatasetRef("countries", path="c"), DatasetRef("refunds", path="r")]
    chosen = _chosen(**given) if given else None
    kept = [ref for ref in refs if chosen is None or ref.name in chosen.datasets]
    return resolve(suite, SUITE, kept, ON, chosen=chosen)


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ({"only": "ids"}, ["Quality::ids"]),
        ({"only": "rows"}, ["Volume::rows", "Refunds::rows"]),
        ({"only": "Refunds::rows"}, ["Refunds::rows"]),
        ({"only": "Volume"}, ["Volume::rows", "Volume::stable"]),
        ({"only": ["*is there", "stab??"]}, ["Volume::stable", "Quality::id is there"]),
        ({"only": "ids, stable"}, ["Volume::stable", "Quality::ids"]),
        ({"only": "Quality", "tags": "slow"}, ["Quality::ids"]),
        ({"tags": ["FAST", "slow"]}, ["Volume::rows", "Volume::stable", "Quality::ids"]),
        ({"tags": "volume", "exclude_tags": "slow"}, ["Volume::rows"]),
        ({"min_severity": "P0"}, ["Volume::rows"]),
        (
            {"min_severity": "P1"},
            ["Volume::rows", "Volume::stable", "Quality::orders.quality.num_rows"],
        ),
    ],
)
def test_each_criterion_has_to_be_met(given: dict[str, object], kept: list[str]) -> None:
    assert _names(**given) == kept


def test_a_severity_is_that_of_the_date() -> None:
    assert "Quality::ids" not in _names(min_severity="P2")
    assert "Quality::ids" in _names(min_severity="P3")


@pytest.mark.parametrize(
    ("given", "problem", "hint"),
    [
        ({"only": "idz"}, "no assertion or check is named 'idz'", "did you mean 'ids'?"),
        ({"only": "Volume::ids"}, "no assertion or check is named 'Volume::ids'", ""),
        ({"tags": "volum"}, "no assertion has the tag 'volum'", "did you mean 'volume'?"),
        ({"tags": "xyz"}, "no assertion has the tag 'xyz'", "available: fast, slow, volume"),
        ({"only": "ids", "exclude_tags": "snow"}, "no assertion has the tag 'snow'", "'slow'?"),
        ({"dimensions": "accuracy"}, "no assertion has the dimension 'accuracy'", "has a dim"),
        ({"only": "stable", "tags": "fast"}, "no assertion is selected: only stable; tag fast", ""),
        ({"only": "Refunds", "min_severity": "P1"}, "severity P1 or worse", "there are 1 P0, 2 P1"),
        ({"min_severity": "P9"}, "min_severity='P9': write P0, P1, P2 or P3", ""),
        ({"only": [3]}, "only=[3]: write a string", ""),
    ],
)
def test_a_criterion_without_a_match_is_an_error_with_a_suggestion(
    given: dict[str, object], problem: str, hint: str
) -> None:
    with pytest.raises(RequestError) as caught:
        _chosen(**given)
    assert problem in caught.value.problem
    assert hint in caught.value.hint


def test_no_criteria_select_everything() -> None:
    assert selection_of(only="", tags=[], min_severity=None) is None


def test_omitted_assertions_are_reported_if_any() -> None:
    partial = _chosen(tags="slow").partial
    assert partial is not None
    assert (partial.selected, partial.assertions) == (2, 8)
    assert partial.protected == ("rows", "id is there")
    assert _chosen(min_severity="P3").partial is None


def test_only_metrics_of_the_selection_are_requested() -> None:
    everything, some = _plan(), _plan(only="ids")
    assert set(some.requests) < set(everything.requests)
    assert {one.metric for one in some.requests} == {"num_rows", "duplicate_count"}
    assert some.lookups == ()
    assert [one.name for one in some.assertions] == ["orders.not_empty", "ids"]
    scans = {one.definition.scan for one in _plan(only="id is there").requests}
    assert scans == {Scan.FLAT}


def test_a_request_is_the_same_whatever_else_is_selected() -> None:
    for name in ("per country", "stable", "orders.quality.num_rows", "countries"):
        assert set(_plan(only=name).requests) <= set(_plan().requests)


def test_datasets_outside_the_selection_may_be_missing() -> None:
    chosen = _chosen(only="Volume")
    assert chosen.datasets == {"orders"}
    assert check_datasets(chosen.suite, [ORDERS]) == ()
    assert _chosen(only="countries").datasets == {"orders", "countries"}
    assert check_datasets(_chosen(only="Refunds").suite, [ORDERS]) != ()
