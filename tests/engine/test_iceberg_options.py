"""What Iceberg refuses about the options of a dataset, in the words of the user."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dqx_airflow.datasets.reader_options import wrong_option
from dqx_airflow.engine.sources.iceberg import refusal_of_options
from dqx_airflow.values import DatasetRef

JAVA = "java.lang.IllegalArgumentException [JAVA_EXCEPTION] "
OWN = "org.apache.iceberg.exceptions.ValidationException [JAVA_EXCEPTION] "
TRAVEL = JAVA + "Time travel option `{}`{} is no longer supported, use Spark built-in `{}` instead"
CASES = {
    "tag": (
        {"tag": "v1"},
        TRAVEL.format("tag", "", "versionAsOf"),
        "has the option 'tag', which this version of Iceberg does not take",
        "write versionAsOf=v1 in place of it",
    ),
    "snapshot": (
        {"snapshot-id": "7"},
        TRAVEL.format("snapshot-id", "", "versionAsOf"),
        "has the option 'snapshot-id', which this version of Iceberg does not take",
        "write versionAsOf=7 in place of it",
    ),
    "milliseconds": (
        {"as-of-timestamp": "1711929600000"},
        TRAVEL.format("as-of-timestamp", " (in millis)", "timestampAsOf"),
        "has the option 'as-of-timestamp', which this version of Iceberg does not take",
        "write timestampAsOf=2024-04-01T00:00:00.000Z in place of it",
    ),
    "no branch": (
        {"branch": "nope"},
        OWN + "Cannot use branch (does not exist): nope",
        "has no branch 'nope'",
        "correct the option 'branch'",
    ),
    "no version": (
        {"versionAsOf": "nope"},
        JAVA + "Cannot find matching snapshot ID or reference name for version nope",
        "has no snapshot, branch or tag 'nope'",
        "correct the option 'versionAsOf'",
    ),
    "both": (
        {"branch": "audit", "versionAsOf": "7"},
        JAVA + "Can't time travel in branch",
        "selects both a branch and a version",
        "remove the option 'branch', 'versionAsOf' or 'timestampAsOf'",
    ),
    "another": (
        {"split-size": "-1", "branch": "audit"},
        JAVA + "Split size must be > 0: -1",
        "cannot be read with its options: Split size must be > 0: -1",
        "check split-size, branch",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_refused_option_is_named_with_what_to_write(name: str) -> None:
    options, message, problem, hint = CASES[name]
    ref = DatasetRef("orders", "/orders", format="iceberg", options=tuple(options.items()))
    refused = refusal_of_options(ref, message)
    assert refused is not None
    assert (refused.problem, refused.hint) == (problem, hint)


def test_other_errors_keep_their_words() -> None:
    without = DatasetRef("orders", "/orders", format="iceberg")
    assert refusal_of_options(without, OWN + "Table does not exist") is None
    given = DatasetRef("orders", "/orders", format="iceberg", options=(("branch", "a"),))
    assert refusal_of_options(given, "[PATH_NOT_FOUND] no such path") is None


@pytest.mark.parametrize("option", ["start-timestamp", "end-timestamp"])
@pytest.mark.parametrize(
    "ref", [DatasetRef("o", "/o", format="iceberg"), DatasetRef("o", table="lake.shop.orders")]
)
def test_an_option_that_a_read_passes_over_is_refused(ref: DatasetRef, option: str) -> None:
    wrong = wrong_option(replace(ref, options=((option, "1711929600000"),)))
    assert wrong is not None
    assert wrong.problem == f"has the option '{option}', by which Iceberg selects no rows"
    assert wrong.hint == "write start-snapshot-id and end-snapshot-id"
