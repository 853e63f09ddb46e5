"""Records the verdicts of Great Expectations on types of columns of pandas, in its environment:
`python tests/importing/record_types.py` writes `truth/types.great_expectations.json`.

Each name of a type has the columns of which Great Expectations says that they have it.
"""

from __future__ import annotations

import json
from importlib.metadata import version
from pathlib import Path

import great_expectations as gx
import pandas as pd
from great_expectations.expectations.expectation_configuration import ExpectationConfiguration

NAMES = (
    *("int", "int_", "int8", "int16", "int32", "int64", "integer", "INTEGER", "bool", "boolean"),
    *("float", "float_", "float32", "float64", "str", "bytes", "datetime64", "datetime64[ns]"),
)
LISTS = (
    ["INTEGER", "integer", "int", "int_", "int8", "int16", "int32", "int64", "uint8", "INT"],
    ["FLOAT", "DOUBLE", "FLOAT4", "FLOAT8", "float", "float_", "float32", "float64", "FloatType"],
    ["CHAR", "VARCHAR", "TEXT", "STRING", "string", "StringType", "object", "str"],
    ["BOOLEAN", "boolean", "bool", "BooleanType"],
    ["DATETIME", "DATE", "TIME", "TIMESTAMP", "datetime64", "datetime64[ns]", "Timestamp"],
)
FRAME = pd.DataFrame(
    {
        "bigint": pd.Series([1, 2], dtype="int64"),
        "int": pd.Series([1, 2], dtype="int32"),
        "double": pd.Series([1.5, 2.5], dtype="float64"),
        "float": pd.Series([1.5, 2.5], dtype="float32"),
        "boolean": pd.Series([True, False], dtype="bool"),
        "string": pd.Series(["a", "b"], dtype="object"),
        "timestamp_ntz": pd.to_datetime(pd.Series(["2024-01-01", "2024-01-02"])),
    }
)
"""A column for each type of Spark, by its name."""


def main() -> None:
    context = gx.get_context(mode="ephemeral")
    asset = context.data_sources.add_pandas("memory").add_dataframe_asset("types")
    whole = asset.add_batch_definition_whole_dataframe("all")
    batch = whole.get_batch({"dataframe": FRAME})

    def holding(kind: str, **kwargs: object) -> list[str]:
        found = []
        for column in FRAME:
            configured = ExpectationConfiguration(type=kind, kwargs={"column": column, **kwargs})
            if batch.validate(configured.to_domain_obj()).success:
                found.append(str(column))
        return found

    names = {name: holding("expect_column_values_to_be_of_type", type_=name) for name in NAMES}
    lists = [
        [listed, holding("expect_column_values_to_be_in_type_list", type_list=listed)]
        for listed in LISTS
    ]
    recorded = {
        "versions": {name: version(name) for name in ("great_expectations", "pandas")},
        "names": names,
        "lists": lists,
    }
    path = Path(__file__).parent / "truth" / "types.great_expectations.json"
    path.write_text(json.dumps(recorded, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
