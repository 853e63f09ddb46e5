"""Versions of contracts: their order, the bump between two of them, and the required bump."""

from __future__ import annotations

from itertools import pairwise

import pytest

from dqx_airflow.contracts.versions import (
    Bump,
    Version,
    bump_between,
    is_enough,
    next_version,
    version_of,
)


def version(text: str) -> Version:
    found = version_of(text)
    assert found is not None
    return found


def test_versions_have_the_order_of_semver() -> None:
    ordered = ["0.9", "1.0.0-2", "1.0.0-11", "1.0.0-alpha", "1.0.0-alpha.1", "1.0.0", "v2", "10.0"]
    for one, other in pairwise(map(version, ordered)):
        assert one < other


@pytest.mark.parametrize("text", [None, "", "newest", "1.2.3.4", "1.2.x", "-1", "1..2", "²"])
def test_an_unordered_string_is_not_a_version(text: str | None) -> None:
    assert version_of(text) is None


@pytest.mark.parametrize(
    ("old", "new", "bump"),
    [
        ("2.3.0", "2.3.1", Bump.PATCH),
        ("2.3.0", "2.4.0", Bump.MINOR),
        ("2.3.0", "3.0.0", Bump.MAJOR),
        ("2.3.0", "4.1.7", Bump.MAJOR),
        ("2.3.0", "2.3", Bump.NONE),
        ("2.3.0", "2.2.9", Bump.NONE),
        ("v1", "v2", Bump.MAJOR),
        ("1", "2", Bump.MAJOR),
        ("1.0", "1.1", Bump.MINOR),
        ("2.0.0-rc.1", "2.0.0", Bump.MAJOR),
        ("2.1.0-rc.1", "2.1.0-rc.2", Bump.MINOR),
        ("2.1.0+5", "2.1.0+6", Bump.NONE),
    ],
)
def test_the_bump_between_two_versions(old: str, new: str, bump: Bump) -> None:
    assert bump_between(version(old), version(new)) is bump


@pytest.mark.parametrize(
    ("old", "new", "enough_for"),
    [
        ("2.3.0", "2.3.0", Bump.NONE),
        ("2.3.0", "2.3.1", Bump.PATCH),
        ("2.3.0", "2.4.0", Bump.MINOR),
        ("2.3.0", "3.0.0", Bump.MAJOR),
        ("0.3.0", "0.3.1", Bump.MINOR),
        ("0.3.0", "0.4.0", Bump.MAJOR),
        ("0.3.0", "1.0.0", Bump.MAJOR),
        ("1", "1", Bump.MINOR),
        ("1", "2", Bump.MAJOR),
        ("1.2", "1.2", Bump.PATCH),
        ("1.2", "1.3", Bump.MINOR),
    ],
)
def test_a_bump_is_enough_for_changes_up_to_its_own(old: str, new: str, enough_for: Bump) -> None:
    for due in Bump:
        assert is_enough(version(old), version(new), due) is (due <= enough_for)


def test_no_bump_is_enough_for_a_version_that_goes_back() -> None:
    assert not is_enough(version("2.3.0"), version("2.2.0"), Bump.NONE)


@pytest.mark.parametrize("old", ["2.3.1", "v2.3.1", "0.3.1", "0.0.1", "v2", "7", "1.2", "0.4"])
@pytest.mark.parametrize("due", [Bump.PATCH, Bump.MINOR, Bump.MAJOR])
def test_the_next_version_is_higher_and_enough(old: str, due: Bump) -> None:
    found = version(next_version(version(old), due))
    assert version(old) < found
    assert is_enough(version(old), found, due)
