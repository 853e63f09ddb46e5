"""The Spark session of the job. A session that is handed in is never reconfigured."""

from __future__ import annotations

from pyspark.conf import SparkConf
from pyspark.sql import SparkSession

_DEFAULTS = {
    # Dates and timestamps mean the same wherever the job runs.
    "spark.sql.session.timeZone": "UTC",
    # Spark would put environment variables into SQL that holds ${env:NAME}, even inside quotes.
    "spark.sql.variable.substitute": "false",
    "spark.sql.parquet.enableVectorizedReader": "true",
}

_LOCAL_DEFAULTS = {
    # A gate lives for seconds: a web page about it costs more than it tells.
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # Adaptive execution runs every shuffle as a job of its own and pays off on clusters; here one
    # fused aggregate is one job.
    "spark.sql.adaptive.enabled": "false",
}


def create_session(name: str) -> SparkSession:
    """The session of a gate, with our defaults for whatever spark-submit was not told."""
    given = SparkConf()
    builder = SparkSession.builder.appName(name)
    defaults = dict(_DEFAULTS)
    master = given.get("spark.master", "local[*]") or "local[*]"
    if master.startswith("local"):
        defaults |= _LOCAL_DEFAULTS
        defaults["spark.sql.shuffle.partitions"] = str(_local_cores(master))
    for key, value in defaults.items():
        if not given.contains(key):
            builder = builder.config(key, value)
    return builder.getOrCreate()


def _local_cores(master: str) -> int:
    """How many tasks run at once: `local[2]` says it, `local[*]` means all cores."""
    import os

    cores = master.removeprefix("local").strip("[]").split(",")[0]
    return int(cores) if cores.isdigit() else (os.cpu_count() or 1) if cores else 1
