"""Hides the differences between the versions of Spark that gates run on. No other module branches
on the version.

Each function gives the same result on all of them. Where a version lacks a feature that a gate
needs, the error lists the versions that have it.
"""

from __future__ import annotations

import re
import sys
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

from dqx_airflow.errors import SparkError

if TYPE_CHECKING:
    from pyspark.errors import PySparkException
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import DataType

T = TypeVar("T")
R = TypeVar("R")

OLDEST = (3, 5)
NEWEST = (4, 3)
SUPPORTED = "Spark 3.5 to 4.3"
INSTALL = "pip install 'pyspark>=3.5,<4.4' 'pandas<3'"

CLIENT_OF_3 = "pip install dqx-airflow 'pyspark[connect]==3.5.*' 'numpy<2' 'pyarrow<20'"
"""A client of Spark 3.5, whose pandas API needs NumPy 1."""
SHARING = ("pyspark", "pyspark-client", "databricks-connect")
"""The packages that own the folder `pyspark`."""
_OWN_ENVIRONMENT = "in an environment of its own, without Airflow: "
_OF_LOCAL_DATA = {
    "SizeLimit": 3 << 30,
    "ChunkSizeRows": 10_000,
    "ChunkSizeBytes": 16 << 20,
    "BatchOfChunksSizeBytes": 1 << 30,
}
_PAIRED: dict[tuple[int, ...], str] = {(4, 0): "4.0.4", (4, 1): "4.1.3", (4, 2): "4.2.0"}
"""The newest versions that both `pyspark` and `pyspark-client` have: Airflow's Spark provider
requires the client, and the two share a folder."""

_TYPES_SINCE = {
    "type variant": (r"\bvariant\b(?!`? \w)", (4, 0)),
    "collations": (r"\bcollate\b", (4, 0)),
}
"""How types are named in a schema, and the first version that has them."""
_ERRORS_BEFORE = (
    (r"VOID.*doesn't support|doesn't support.*VOID", (4, 1), "read and write such a column"),
    (r"keys cannot be map type|because its data type .*\bMAP<", (4, 0), "tell equal maps"),
)
"""Errors that newer versions do not raise: the message, the first such version, and its new
ability."""


def release_of(version: str) -> tuple[int, ...]:
    """The major and minor number of a version: (3, 5) for 3.5.9-amzn-1."""
    return tuple(map(int, re.findall(r"\d+", version)[:2]))


def are_of_one_release(first: str, second: str) -> bool:
    """True if two versions differ in their patch at most."""
    return release_of(first) == release_of(second)


def is_version_of_spark(version: str) -> bool:
    """True if the version that a server reports is a version of Spark, in the form of any platform:
    versions of other engines are below 3.5."""
    return release_of(version) >= OLDEST


def python_release() -> tuple[int, ...]:
    """The major and minor number of the PySpark in this process."""
    import pyspark

    return release_of(pyspark.__version__)


def require_supported(version: str, where: str = "this Spark") -> None:
    """Rejects a version of Spark that is too old.

    :raises SparkError: gates do not run on this version.
    """
    if release_of(version) < OLDEST:
        message = f"{where} has version {version}, and gates run on {SUPPORTED}"
        raise SparkError(message, f"use a newer Spark; in Python: {INSTALL}")


def require_pair(server: str, client: str, where: str) -> None:
    """Compares the versions of a Spark Connect server and its client.

    In Spark 4, any client works with any server. A server of 3.5 does not parse the
    requests of a newer client, and a client of 3.5 does not know the types in newer responses.

    :raises SparkError: gates do not run on the server, or not with this client.
    """
    require_supported(server, where)
    is_old = release_of(server) < (4, 0)
    if is_old is not (release_of(client) < (4, 0)):
        install = CLIENT_OF_3 if is_old else "pip install dqx-airflow 'pyspark-client>=4,<4.3'"
        raise SparkError(
            f"{where} runs Spark {server}: it and pyspark {client} do not understand each other",
            f"{_OWN_ENVIRONMENT}{install}",
        )


def know_local_data(session: Any) -> None:
    """Sets settings that a newer client reads before it sends rows, and that a Spark Connect server
    of 4.0 lacks, to the defaults of later servers."""
    if release_of(session.version) == (4, 0) < python_release():
        for name, value in _OF_LOCAL_DATA.items():
            session.conf.set(f"spark.sql.session.localRelation{name}", str(value))


def equal_pins(version: str) -> str:
    """The command that installs `pyspark` and `pyspark-client` in the same version: this one if
    both have it, or the nearest that both have."""
    paired = _PAIRED.get(release_of(version))
    if paired is None and () < release_of(version) < (4, 0):
        return f"{_OWN_ENVIRONMENT}pip install dqx-airflow 'pyspark==3.5.*'"
    pin = paired or _PAIRED[max(_PAIRED)]
    return f"pip install --force-reinstall --no-deps pyspark=={pin} pyspark-client=={pin}"


def installed_mixture(versions: Mapping[str, str]) -> tuple[str, str] | None:
    """The problem with installed packages of different versions in the folder `pyspark`, and the
    remedy; None without one.

    :param versions: the installed versions by package.

    """
    if len(set(versions.values())) < 2:
        return None
    found = ", ".join(f"{name} {version}" for name, version in versions.items())
    client = versions.get("pyspark-client")
    full = versions.get("pyspark")
    if "databricks-connect" in versions:
        remedy = f"{_OWN_ENVIRONMENT}pip install dqx-airflow databricks-connect"
    elif client and full and release_of(full) < (4, 0):
        remedy = (
            "set SPARK_HOME to that Spark, and leave the client alone: pip uninstall -y pyspark && "
            f"pip install --force-reinstall --no-deps pyspark-client=={client}"
        )
    else:
        remedy = equal_pins(client or full or "")
    return f"mixed versions: {found}", remedy


def objection_to_types(spark: SparkSession, text: str) -> str | None:
    """The reason why a Spark cannot read the types in a schema, or in the error about a schema;
    None if it can."""
    for what, (pattern, since) in _TYPES_SINCE.items():
        if release_of(spark.version) < since and re.search(pattern, text, re.I):
            needed = ".".join(map(str, since))
            return f"Spark {spark.version} has no {what}: that needs Spark {needed} or newer"
    return None


def arrow_table(frame: Any) -> Any:
    """The rows of a frame as a PyArrow table. Spark 3.5 has only the private functions of
    `toPandas`."""
    if hasattr(frame, "toArrow"):
        return frame.toArrow()
    if hasattr(frame, "_plan"):  # over Connect
        client = frame.sparkSession.client
        return client.to_table(frame._plan.to_proto(client))[0]
    import pyarrow as pa
    from pyspark.sql.pandas.types import to_arrow_schema

    return pa.Table.from_batches(frame._collect_as_arrow(), to_arrow_schema(frame.schema))


def has_types_since(spark: SparkSession, release: str) -> bool:
    """True if a Spark has the types that came with a release."""
    return release_of(spark.version) >= release_of(release)


def with_newer(reason: str) -> str:
    """The message of an error; if newer versions of Spark do not raise it, with the first such
    version."""
    for pattern, since, ability in _ERRORS_BEFORE:
        if python_release() < since and re.search(pattern, reason):
            return f"{reason}; Spark {'.'.join(map(str, since))} and newer can {ability}"
    return reason


def package_of(kind: str, version: str) -> str | None:
    """The Maven package by which a Spark reads a format."""
    release = ".".join(map(str, release_of(version)))
    scala = "2.12" if release_of(version) < (4, 0) else "2.13"
    delta = f"io.delta:delta-spark_{release}_{scala}:4.4.0"
    packages = {
        "delta": delta if scala == "2.13" else f"io.delta:delta-spark_{scala}:3.3.2",
        "avro": f"org.apache.spark:spark-avro_{scala}:{version}",
        "iceberg": f"org.apache.iceberg:iceberg-spark-runtime-{release}_{scala}:VERSION",
    }
    return packages.get(kind)


def condition_of(error: PySparkException) -> str:
    """The condition of an error, such as `PATH_NOT_FOUND`; empty if it has none."""
    ask = getattr(error, "getCondition", None) or error.getErrorClass
    return ask() or ""


def inheriting(spark: SparkSession, work: Callable[[T], R]) -> Callable[[T], R]:
    """`work`, for one other thread, with the local properties of this one."""
    from pyspark import inheritable_thread_target

    if python_release() >= (4, 0):
        inherited: Callable[[T], R] = inheritable_thread_target(spark)(work)
        return inherited
    if context_of(spark) is not None:
        with_properties: Callable[[T], R] = inheritable_thread_target(work)
        return with_properties
    tags = spark.getTags()

    def with_tags(item: T) -> R:
        for tag in tags:
            spark.addTag(tag)
        return work(item)

    return with_tags


def context_of(spark: SparkSession) -> Any | None:
    """The Spark context; None over Spark Connect."""
    try:
        return spark.sparkContext
    except (AttributeError, NotImplementedError):
        return None


def interrupt(spark: SparkSession) -> None:
    """Cancels all jobs of a session."""
    context = context_of(spark)
    if context is not None:
        context.cancelAllJobs()
    else:
        spark.interruptAll()


def tag_jobs(spark: SparkSession, tag: str) -> None:
    """Tags the jobs that this thread, and threads that inherit from it, start from now on."""
    context = context_of(spark)
    if context is not None:
        context.addJobTag(tag)
    else:
        spark.addTag(tag)


def untag_jobs(spark: SparkSession, tag: str) -> None:
    """Stops tagging the jobs that this thread starts from now on."""
    context = context_of(spark)
    if context is not None:
        context.removeJobTag(tag)
    else:
        spark.removeTag(tag)


def interrupt_tag(spark: SparkSession, tag: str) -> None:
    """Cancels the running jobs with a tag."""
    context = context_of(spark)
    if context is not None:
        context.cancelJobsWithTag(tag)
    else:
        spark.interruptTag(tag)


def running_sparks() -> list[Any]:
    """The Spark context and the Spark Connect sessions that this process uses now."""
    import pyspark

    found: list[Any] = []
    if (classic := getattr(pyspark, "SparkContext", None)) is not None:
        found.append(classic._active_spark_context)
    if (connect := sys.modules.get("pyspark.sql.connect.session")) is not None:
        remote = connect.SparkSession
        found.append(getattr(remote, "_default_session", None))
        found.append(getattr(getattr(remote, "_active_session", None), "session", None))
    return [one for one in found if one is not None]


@contextmanager
def progress_handled(spark: Any, handler: Callable[..., None]) -> Iterator[None]:
    """Lets a Spark Connect server report its progress, if the client can receive it."""
    if python_release() < (4, 0):
        yield
        return
    spark.registerProgressHandler(handler)
    try:
        yield
    finally:
        spark.removeProgressHandler(handler)


def settings_set(spark: SparkSession) -> dict[str, str]:
    """The settings of a session that were set explicitly, as far as it reports them."""
    every = getattr(spark.conf, "getAll", None)
    if every is None:
        return {row[0]: row[1] for row in spark.sql("SET").collect()}
    return dict(every)


def settings_named(spark: SparkSession, defaults: Mapping[str, str]) -> Mapping[str, str]:
    """The values of settings by name, with these defaults where they are not set, in one
    request."""
    if context_of(spark) is None:
        values = spark.client.get_config_with_defaults(*defaults.items())
        return dict(zip(defaults, values, strict=True))
    return {name: spark.conf.get(name, default) for name, default in defaults.items()}


def formatted(text: str) -> str:
    """Doubles the braces in text that becomes part of a query over frames."""
    return text.replace("{", "{{").replace("}", "}}")


def query_over(spark: SparkSession, query: str, frames: Mapping[str, DataFrame]) -> DataFrame:
    """The result of a query with the names of frames in braces. Other braces must be doubled."""
    if python_release() >= (4, 0) or context_of(spark) is not None:
        return spark.sql(query, **frames)
    # Spark Connect of 3.5 has no frames in queries: they are views, as long as the session lives,
    # under names that cannot be guessed.
    names = {name: f"dqx_{uuid.uuid4().hex}" for name in frames}
    for name, frame in frames.items():
        frame.createOrReplaceTempView(names[name])
    return spark.sql(query.format(**names))


@cache
def type_named(ddl: str) -> DataType:
    """The type with a name in Spark SQL, such as `array<int>`."""
    from pyspark.sql import types

    if python_release() >= (4, 0):
        return types.StructType.fromDDL(f"c {ddl}")[0].dataType
    from pyspark import SparkContext

    if SparkContext._active_spark_context is not None:
        return types._parse_datatype_string(ddl)
    from pyspark.sql.connect.session import SparkSession as Connected

    client = Connected._default_session.client
    return client._analyze(method="ddl_parse", ddl_string=ddl).parsed


def is_valid_utf8(text: str) -> str:
    """Spark SQL that is true if the bytes of a string are valid UTF-8."""
    if python_release() >= (4, 0):
        return f"is_valid_utf8({text})"
    return f"encode(decode(CAST({text} AS BINARY), 'UTF-8'), 'UTF-8') <=> CAST({text} AS BINARY)"


def objection_to_guessed_json(spark: SparkSession) -> str | None:
    """The reason why the types of JSON cannot be guessed without loss; None if they can."""
    if release_of(spark.version) >= (4, 0):
        return None
    return (
        f"Spark {spark.version} cannot guess the types of JSON without losing digits: that needs "
        "Spark 4.0 or newer"
    )


def interval_types() -> tuple[type[DataType], ...]:
    """The interval types of this PySpark."""
    from pyspark.sql import types

    names = ("DayTimeIntervalType", "YearMonthIntervalType", "CalendarIntervalType")
    return tuple(getattr(types, name) for name in names if hasattr(types, name))


def takes_arrow() -> bool:
    """True if a frame can be made of an Arrow table."""
    return python_release() >= (4, 0)


def arrow_schema(struct: Any) -> Any:
    """The Arrow schema of a Spark schema, with timestamps in UTC."""
    from pyspark.sql.pandas.types import to_arrow_schema

    if python_release() >= (4, 2):
        return to_arrow_schema(struct, timezone="UTC")
    return to_arrow_schema(struct)


def rebalanced(spark: SparkSession, frame: DataFrame, columns: tuple[str, ...]) -> DataFrame:
    """The frame, repartitioned so that equal values of the columns share files of a suitable size.

    :param columns: quoted names.
    """
    by = f"({formatted(', '.join(columns))})" if columns else ""
    query = f"SELECT /*+ REBALANCE{by} */ * FROM {{frame}}"  # noqa: S608 - names are quoted
    return query_over(spark, query, {"frame": frame})


def modules_of_first_call() -> tuple[str, ...]:
    """The modules that PySpark imports in its first call to the JVM."""
    return ("pyspark.testing.utils",) if python_release() >= (4, 0) else ()


def channel_of(address: str) -> Any:
    """The channel builder of the client for the address of a Spark Connect server, with `secure`
    and `host`."""
    from pyspark.sql.connect import client

    builder = getattr(client, "DefaultChannelBuilder", None) or client.ChannelBuilder
    return builder(address)


def connect_packages() -> str:
    """The command that completes the PySpark of this process for Spark Connect."""
    import pyspark

    if python_release() < (4, 0):
        return CLIENT_OF_3
    return f"pip install 'pyspark[connect]=={pyspark.__version__}' 'pandas<3'"


def limit_retries(spark: Any) -> None:
    """Limits how long the calls to a server wait for one that does not respond, to a minute."""
    if python_release() < (4, 0):
        spark.client._retry_policy.update(max_retries=7, max_backoff=20_000)
        return
    from dqx_airflow.engine.session.connect_retries import LimitedRetries

    spark.client.set_retry_policies([LimitedRetries()])
