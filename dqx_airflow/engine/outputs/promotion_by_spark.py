"""A promotion by Spark's Delta source, in one `replaceWhere`."""

from __future__ import annotations

import json
from collections.abc import Mapping

from dqx_airflow.datasets.settings import is_table
from dqx_airflow.engine.outputs.promoted_slices import claim
from dqx_airflow.engine.outputs.promotion_target import NOTES, RUN_ID, PromotionTarget
from dqx_airflow.values import Promotion


def promote_by_spark(target: PromotionTarget) -> Promotion:
    """Spark writes and commits.

    :raises RefusedPromotionError: the target does not take the rows.
    :raises PromotionError: they cannot be promoted as it is now.
    """
    place, region = target.named, target.replaced.region
    is_there = target.is_there()
    version = target.spark_version() if is_there else -1
    writer = target.replaced.frame().write.format("delta")
    # A new table of a catalog records no metadata of its commit in the mode "error".
    writer = writer.mode("overwrite" if is_there or is_table(target.location) else "error")
    numbers: Mapping[str, int] = {}
    if is_there:
        target.check_columns(target.spark.table(place).schema)
        numbers = target.check_slice(None)
        if numbers.get(f"dqx:promote:{region.name}", -1) > target.order:
            raise target.late()
    if target.replaced.of_slice and (
        outside := target.replaced.frame().where(f"NOT ({target.replaced.of_slice})").count()
    ):
        raise target.outside(str(outside))
    if is_there and target.replaced.condition is not None:
        writer = writer.option("replaceWhere", target.replaced.condition)
    if not is_there:
        writer = writer.partitionBy(*target.partition_columns)
    # Spark skips a write whose number is not greater than that of the last one.
    facts = {**target.facts, NOTES: target.by.notes(target.slice, region, target.order, numbers)}
    writer = writer.options(
        txnAppId=claim(target.by.gate, region),
        txnVersion=target.order,
        userMetadata=json.dumps(facts),
    )
    if (change := target.dataset.change) is not None:
        raise target.failed(change)
    if is_table(target.location):
        writer.saveAsTable(place)
    else:
        writer.save(target.location)
    commits = [commit for commit in target.commits_of_spark() if commit[RUN_ID] == target.run_id]
    if not commits:
        raise target.late()
    target.check_since(version, commits[0]["version"])
    rows = (commits[0]["metrics"] or {}).get("numOutputRows")
    return Promotion(target.location, int(commits[0]["version"]), int(rows or 0))
