"""The file systems that a Spark started on this machine has, by its jars.

One that it lacks is reported before its JVM starts: Spark would fail after half a minute, with the
name of a class.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from importlib.util import find_spec
from pathlib import Path

from dqx_airflow.datasets.spark_address import Connection, ConnectionKind
from dqx_airflow.errors import RequestError
from dqx_airflow.values import DatasetRef

_JARS = {
    **dict.fromkeys(("s3", "s3a"), "hadoop-aws"),
    **dict.fromkeys(("abfs", "abfss", "wasb", "wasbs"), "hadoop-azure"),
    "gs": "gcs-connector",
}
"""The jar with the file system of each scheme."""
_PACKAGES = {
    "hadoop-aws": "org.apache.hadoop:hadoop-aws:{hadoop}",
    "hadoop-azure": "org.apache.hadoop:hadoop-azure:{hadoop}",
    "gcs-connector": "com.google.cloud.bigdataoss:gcs-connector:hadoop3-2.2.26",
}
_MORE_JARS = (
    *("spark.jars", "spark.jars.packages", "spark.driver.extraClassPath"),
    "spark.executor.extraClassPath",
)
_MORE_IN_ENVIRONMENT = ("SPARK_DIST_CLASSPATH", "PYSPARK_SUBMIT_ARGS", "SPARK_CONF_DIR")
_HADOOP = re.compile(r"hadoop-client-api-(?P<version>[\d.]+)\.jar")


def check_file_systems(
    connection: Connection, settings: Mapping[str, str], refs: Iterable[DatasetRef]
) -> None:
    """Rejects datasets at paths that a locally started Spark cannot read.

    :raises RequestError: Spark has no file system for a dataset.
    """
    jars = _jars()
    is_plain = settings.keys().isdisjoint(_MORE_JARS)
    if connection.kind is not ConnectionKind.LOCAL or jars is None or not is_plain:
        return
    if any(map(os.environ.get, _MORE_IN_ENVIRONMENT)) or (jars.parent / "conf").exists():
        return
    for ref in refs:
        scheme = (ref.path or "").partition("://")[0].lower()
        jar = _JARS.get(scheme) if "://" in (ref.path or "") else None
        if jar is None or any(jars.glob(f"*{jar}*.jar")):
            continue
        package = _PACKAGES[jar].format(hadoop=_hadoop_version(jars))
        raise RequestError(
            f"dataset '{ref.name}': Spark has no file system for {scheme}://",
            f'set "spark.jars.packages" = "{package}" in [connection.conf] of dqx.toml',
        )


def _jars() -> Path | None:
    """The folder with the jars of the Spark that would start; None if unknown."""
    home = os.environ.get("SPARK_HOME")
    if home:
        return Path(home) / "jars"
    spec = find_spec("pyspark")
    folder = Path(spec.origin).parent / "jars" if spec is not None and spec.origin else None
    return folder if folder is not None and folder.is_dir() else None


def _hadoop_version(jars: Path) -> str:
    for path in jars.glob("hadoop-client-api-*.jar"):
        match = _HADOOP.fullmatch(path.name)
        if match is not None:
            return match["version"]
    return "VERSION"
