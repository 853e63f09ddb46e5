"""Tunables accept the values that their kind and bounds allow."""

from __future__ import annotations

from typing import Any

import pytest

from dqx_airflow import TunableChoice, TunableFloat, TunableInt, TunablePercent
from dqx_airflow.errors import RequestError


def test_a_tunable_is_set_within_its_bounds_both_included() -> None:
    share = TunablePercent("SHARE", value=0.05, bounds=(0.0, 0.20))
    for value in (0.0, 0.2, 0.1):
        share.value = value
    assert (share.value, share.normalized_value, share.bounds) == (0.1, 0.5, (0.0, 0.2))
    with pytest.raises(RequestError, match=r"SHARE cannot be 0\.21"):
        share.value = 0.21
    assert share.value == 0.1


def test_whole_numbers_stay_whole() -> None:
    rows = TunableInt("ROWS", value=10, bounds=(0, 20))
    rows.value = 12.0  # type: ignore[assignment]
    assert repr(rows) == "TunableInt('ROWS', value=12)"


def test_a_choice_is_one_of_its_choices() -> None:
    method = TunableChoice("METHOD", value="mean", choices=("mean", "median", "max"))
    assert method.normalized_value == 0.0
    method.value = "median"
    assert method.normalized_value == 0.5
    with pytest.raises(RequestError, match="the choices are 'mean', 'median', 'max'"):
        method.value = "min"
    assert TunableChoice("ONE", value="a", choices=["a"]).normalized_value == 0.0


def test_bounds_that_are_equal_leave_one_value() -> None:
    assert TunableFloat("X", value=1.0, bounds=(1.0, 1.0)).normalized_value == 0.0


@pytest.mark.parametrize(
    ("kind", "value", "bounds"),
    [
        (TunableFloat, 2.0, (0.0, 1.0)),
        (TunableFloat, 0.5, (1.0, 0.0)),
        (TunableFloat, float("nan"), (0.0, 1.0)),
        (TunableFloat, "0.5", (0.0, 1.0)),
        (TunableFloat, None, (0.0, 1.0)),
        (TunableInt, 0.5, (0, 1)),
        (TunableInt, True, (0, 1)),
        (TunableInt, 1, (0.5, 2)),
    ],
)
def test_an_invalid_value_or_bound_is_refused(kind: Any, value: Any, bounds: Any) -> None:
    with pytest.raises(RequestError):
        kind("X", value=value, bounds=bounds)


def test_a_tunable_has_the_name_of_a_constant() -> None:
    with pytest.raises(RequestError, match="invalid name of a tunable: 'MAX NULLS'"):
        TunableInt("MAX NULLS", value=1, bounds=(0, 2))


def test_a_tunable_is_a_mapping_of_its_properties() -> None:
    share = TunablePercent("MAX_NULLS", value=0.05, bounds=(0.0, 0.2))
    facts = {"name": "MAX_NULLS", "type": "percent", "value": 0.05, "bounds": (0.0, 0.2)}
    assert dict(share) == {**share} == facts
    assert share.get("unknown") is None
    assert "bounds" in share
    method = TunableChoice("METHOD", value="max", choices=("mean", "median", "max"))
    assert method["bounds"] == ("mean", "max") == (method.min_bound, method.max_bound)
    assert dict(method)["choices"] == ("mean", "median", "max")
    # It is still one object among others, not its content.
    assert len({share, method, TunablePercent("MAX_NULLS", value=0.05, bounds=(0.0, 0.2))}) == 3
