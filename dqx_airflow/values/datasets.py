"""The locations of datasets, and known facts about their rows and columns."""

from __future__ import annotations

from dataclasses import dataclass

FORMATS = ("delta", "parquet", "csv", "json", "orc", "avro", "iceberg")
"""The storage formats of a dataset at a path."""


JDBC = "jdbc"
"""The format of a database table."""


MASK = "***"
"""The display of a masked value."""


@dataclass(frozen=True, slots=True)
class DatasetRef:
    """The location of a dataset of a suite, and how to read it.

        DatasetRef("orders", path="s3://lake/orders", date_column="ds")

    :param name: the name of the dataset in the suite.
    :param path: the path or URI of files or of a Delta table. Exactly one of `path`, `table` and
        `query` is given.
    :param table: a table of the catalog; with `conn_id`, a table of a database.
    :param query: a SELECT over catalog tables.
    :param format: the format of a path, such as `delta`, `parquet` or `csv`.
    :param date_column: the column with the date of a row: a date, a timestamp or a string. Without
        it, the whole dataset belongs to every date, and metrics cannot be lagged.
    :param date_format: the Spark pattern of dates in strings, such as `yyyyMMdd`; ISO dates by
        default.
    :param time_zone: the time zone of the days of timestamps, by default that of the session.
    :param filter: a Spark SQL predicate that selects rows.
    :param options: options of Spark's reader, as pairs.
    :param schema: the columns of files with their types, `id bigint, price double`; inferred by
        default. With it, CSV and JSON are read as strings; a string that does not match its type
        becomes NULL and counts as malformed.
    :param version: the Delta version to read. By default, the newest version at the start of the
        gate, which is pinned for the whole run.
    :param timestamp: an ISO timestamp; reads the Delta version that was the newest at that time.
    :param keys: the columns that identify a row for users.
    :param masked: columns whose values never leave Spark; they are displayed as `***`.
    :param trust_log: whether the statistics in the log of a Delta table may answer metrics;
        otherwise, the rows are read.
    :param lineage_name: the path, URI or table name in lineage; by default the location without
        trailing dates, partitions and globs.
    :param conn_id: the id of an Airflow connection, or of an environment variable, with the
        credentials of a database, whose `table` is read over JDBC.
    """

    name: str
    path: str | None = None
    table: str | None = None
    format: str = "delta"
    date_column: str | None = None
    filter: str | None = None
    options: tuple[tuple[str, str], ...] = ()
    version: int | None = None
    keys: tuple[str, ...] = ()
    masked: tuple[str, ...] = ()
    timestamp: str | None = None
    query: str | None = None
    schema: str | None = None
    date_format: str | None = None
    time_zone: str | None = None
    trust_log: bool = True
    lineage_name: str | None = None
    conn_id: str | None = None

    @property
    def location(self) -> str:
        """The path or the table; the name of the dataset for a query."""
        return self.path or self.table or self.name

    @property
    def is_of_texts(self) -> bool:
        """True for text files with declared columns: their values are cast."""
        return self.path is not None and self.schema is not None and self.format in ("csv", "json")

    @property
    def is_lenient(self) -> bool:
        """True if the options turn values that do not fit into NULL, or drop their lines."""
        options = {name.lower(): value.lower() for name, value in self.options}
        return options.get("mode") in ("permissive", "dropmalformed")


@dataclass(frozen=True, slots=True)
class DatasetField:
    """A column of a dataset, with its type as Spark writes it (`decimal(18,2)`)."""

    name: str
    type: str


@dataclass(frozen=True, slots=True)
class ValidatedRows:
    """Rows that a gate let through: their location and version, and the condition that selects
    them."""

    location: str
    version: int
    condition: str | None = None
