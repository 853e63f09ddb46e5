"""The messages for CSV headers that Spark rejects, and for lines of data in their place."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from dqx_airflow.engine.sources.csv_headers import header_fault, require_declared, require_names
from dqx_airflow.errors import DatasetError
from dqx_airflow.values import DatasetRef

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
            "its header differs from the header of other files: a, b; write the same header into "
            "all files",
        ),
        (
            _LENGTH.format(1, 3),
            "its header has 1 column, other files have 3; write the same header into all files",
        ),
        ("Unexpected end of input stream", None),
    ],
)
def test_a_wrong_header_is_explained_without_its_values(message: str, expected: str | None) -> None:
    assert header_fault(message) == expected


@pytest.mark.parametrize("line", [["1", "4711", "2024-03-02"], ["a", "secret", "x"]])
@pytest.mark.parametrize("schema", [None, "id int, tax_id string"])
def test_a_line_of_data_in_place_of_a_header_is_not_quoted_if_columns_are_masked(
    line: list[str], schema: str | None
) -> None:
    """Nor are its values taken for names of columns, which stand in reports and in lineage."""
    ref = DatasetRef("orders", path="o.csv", format="csv", masked=("tax_id",), schema=schema)
    with pytest.raises(DatasetError) as caught:
        require_names(ref, line, "o.csv") if schema is None else require_declared(
            ref, line, ["id", "tax_id"], "o.csv"
        )
    assert not re.search("4711|secret", str(caught.value))


def test_a_header_names_a_column_to_mask_or_the_folders_do() -> None:
    ref = DatasetRef("orders", path="o.csv", format="csv", masked=("tax_id", "home.street"))
    require_names(ref, ["id", "HOME"], "o.csv")
    require_names(ref, ["id"], "o.csv", ["Tax_Id"])
    require_declared(replace(ref, schema="id int, tax_id int"), ["id"], ["id", "tax_id"], "o.csv")
