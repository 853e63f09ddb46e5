"""The messages for CSV headers that Spark rejects."""

from __future__ import annotations

import pytest

from dqx_airflow.engine.sources.text_files import header_fault

_NAMES = (
    "CSV header does not conform to the schema.\n Header: {}\n Schema: {}\nExpected: x but found: y"
)
_LENGTH = (
    "Number of column in CSV header is not equal to number of fields in the schema:\n"
    " Header length: {}, schema size: {}\nCSV file: file:///t/x.csv"
)


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (
            _NAMES.format("a, A", "a0, A1"),
            "its header names the column 'a' twice; rename one of them",
        ),
        (
            _NAMES.format("id, a, a", "id, a1, a2"),
            "its header names the column 'a' twice; rename one of them",
        ),
        (_NAMES.format("a, ", "a, _c1"), "its header has no name for column 2; write one"),
        (
            _NAMES.format("4711, secret", "a, b"),
            "its header is not that of other files: a, b; write the same header into all files",
        ),
        (
            _LENGTH.format(1, 3),
            "its header has 1 column, and that of other files 3; write the same header into all "
            "files",
        ),
        ("Unexpected end of input stream", None),
    ],
)
def test_a_wrong_header_is_explained_without_its_values(message: str, expected: str | None) -> None:
    assert header_fault(message) == expected
