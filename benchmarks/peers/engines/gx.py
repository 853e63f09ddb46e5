"""Great Expectations, with results reduced to the outcome, its cheapest mode."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import great_expectations as gx
import great_expectations.expectations as gxe
from simple_checks import Kind, SimpleCheck, day_by_day
from workload import events


def judge(spark: Any, table: str) -> dict[str, bool]:
    return _verdicts(events(spark, table), _expectations())


@day_by_day
def verify(spark: Any, frame: Any, checks: Sequence[SimpleCheck]) -> dict[str, bool]:
    return _verdicts(frame, {check.name: _EXPECTATIONS[check.kind](check) for check in checks})


_EXPECTATIONS: dict[Kind, Any] = {
    Kind.COMPLETE: lambda it: gxe.ExpectColumnValuesToNotBeNull(column=it.column),
    Kind.BETWEEN: lambda it: gxe.ExpectColumnValuesToBeBetween(
        column=it.column, min_value=it.least, max_value=it.most
    ),
    Kind.LEAST: lambda it: gxe.ExpectColumnMinToBeBetween(column=it.column, min_value=it.least),
    Kind.MOST: lambda it: gxe.ExpectColumnMaxToBeBetween(column=it.column, max_value=it.most),
    Kind.UNIQUE: lambda it: gxe.ExpectCompoundColumnsToBeUnique(column_list=list(it.columns)),
}


def _verdicts(frame: Any, expected: Mapping[str, Any]) -> dict[str, bool]:
    context = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = {"globally": False}
    source = context.data_sources.add_spark("spark")
    asset = source.add_dataframe_asset("events")
    batch = asset.add_batch_definition_whole_dataframe("all")
    suite = context.suites.add(gx.ExpectationSuite("all", expectations=list(expected.values())))
    validation = context.validation_definitions.add(
        gx.ValidationDefinition(name="all", data=batch, suite=suite)
    )
    found = validation.run(batch_parameters={"dataframe": frame}, result_format="BOOLEAN_ONLY")
    names = {expectation.id: name for name, expectation in expected.items()}
    return {names[one.expectation_config.id]: bool(one.success) for one in found.results}


def _expectations() -> dict[str, Any]:
    machines = {"column": "machine_id"}
    wagered, won = {"column": "amount_wagered"}, {"column": "amount_won"}
    return {
        "rows": gxe.ExpectTableRowCountToBeBetween(min_value=1001),
        "machine null": gxe.ExpectColumnValuesToNotBeNull(**machines),
        "casino null": gxe.ExpectColumnValuesToNotBeNull(column="casino_id"),
        "time null": gxe.ExpectColumnValuesToNotBeNull(column="event_ts"),
        "player null rate": gxe.ExpectColumnValuesToNotBeNull(column="player_id", mostly=0.6),
        "tax null rate": gxe.ExpectColumnValuesToNotBeNull(column="tax_id_hashed", mostly=0.4),
        "wagered least": gxe.ExpectColumnMinToBeBetween(**wagered, min_value=0),
        "wagered most": gxe.ExpectColumnMaxToBeBetween(**wagered, max_value=1000, strict_max=True),
        "wagered mean": gxe.ExpectColumnMeanToBeBetween(**wagered, min_value=10, max_value=90),
        "won total": gxe.ExpectColumnSumToBeBetween(**won, min_value=0, strict_min=True),
        "won deviation": gxe.ExpectColumnStdevToBeBetween(**won, max_value=100, strict_max=True),
        "machine format": gxe.ExpectColumnValuesToMatchRegex(**machines, regex="^M[0-9]{4}$"),
        "tax format": gxe.ExpectColumnValuesToMatchRegex(
            column="tax_id_hashed", regex="^[0-9a-f]{64}$"
        ),
        "game": gxe.ExpectColumnValuesToBeInSet(
            column="game_type", value_set=["slots", "poker", "roulette"]
        ),
        "wagered range": gxe.ExpectColumnValuesToBeBetween(**wagered, min_value=0, max_value=1000),
        "won at most": gxe.UnexpectedRowsExpectation(
            unexpected_rows_query="SELECT * FROM {batch} WHERE amount_won > amount_wagered * 100"
        ),
        "machines": gxe.ExpectColumnUniqueValueCountToBeBetween(
            **machines, min_value=5000, max_value=5000
        ),
        "newest": gxe.ExpectColumnMaxToBeBetween(
            column="event_ts", min_value=datetime(2024, 1, 1), strict_min=True
        ),
        "won most": gxe.ExpectColumnMaxToBeBetween(**won, max_value=1000, strict_max=True),
        "key": gxe.ExpectCompoundColumnsToBeUnique(column_list=["machine_id", "event_ts"]),
    }
