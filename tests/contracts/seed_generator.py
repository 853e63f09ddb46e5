"""The generator of Great Expectations suites behind the contracts for Fabric, unchanged."""

from __future__ import annotations

from typing import Any


def generate_ge_suite(contract: dict[str, Any]) -> dict[str, Any]:
    c = contract["contract"]
    suite_name = c["id"].replace(".", "_") + "_suite"
    expectations: list[dict[str, Any]] = []

    # Table-level expectations
    expected_cols = [col["name"] for col in c["schema"]["columns"]]
    expectations.append(
        {
            "expectation_type": "expect_table_columns_to_match_set",
            "kwargs": {"column_set": expected_cols, "exact_match": False},
        }
    )

    # Per-column expectations
    for col in c["schema"]["columns"]:
        name = col["name"]
        # Existence
        expectations.append(
            {"expectation_type": "expect_column_to_exist", "kwargs": {"column": name}}
        )
        # Type
        type_map = {
            "string": "StringType",
            "bigint": "LongType",
            "int": "IntegerType",
            "timestamp": "TimestampType",
            "decimal(18,2)": "DecimalType",
            "double": "DoubleType",
            "boolean": "BooleanType",
        }
        if col["type"] in type_map:
            expectations.append(
                {
                    "expectation_type": "expect_column_values_to_be_of_type",
                    "kwargs": {"column": name, "type_": type_map[col["type"]]},
                }
            )
        # Nullability
        if not col.get("nullable", True):
            expectations.append(
                {
                    "expectation_type": "expect_column_values_to_not_be_null",
                    "kwargs": {"column": name},
                }
            )
        # Range
        if "min" in col or "max" in col:
            expectations.append(
                {
                    "expectation_type": "expect_column_values_to_be_between",
                    "kwargs": {
                        "column": name,
                        "min_value": col.get("min"),
                        "max_value": col.get("max"),
                    },
                }
            )
        # Regex
        if "regex" in col:
            expectations.append(
                {
                    "expectation_type": "expect_column_values_to_match_regex",
                    "kwargs": {"column": name, "regex": col["regex"]},
                }
            )
        # Enum
        if "enum" in col:
            expectations.append(
                {
                    "expectation_type": "expect_column_values_to_be_in_set",
                    "kwargs": {"column": name, "value_set": col["enum"]},
                }
            )

    # Quality SLA -> expectations
    for entry in c.get("quality", {}).get("completeness", []):
        expectations.append(
            {
                "expectation_type": "expect_column_values_to_not_be_null",
                "kwargs": {"column": entry["column"], "mostly": entry["min_pct"] / 100.0},
            }
        )
    for entry in c.get("quality", {}).get("uniqueness", []):
        expectations.append(
            {
                "expectation_type": "expect_compound_columns_to_be_unique",
                "kwargs": {"column_list": entry["keys"]},
            }
        )

    return {
        "expectation_suite_name": suite_name,
        "meta": {
            "contract_id": c["id"],
            "contract_version": c["version"],
            "generated_from": "contracts/" + c["id"].split(".")[-1] + ".contract.yaml",
        },
        "expectations": expectations,
    }
