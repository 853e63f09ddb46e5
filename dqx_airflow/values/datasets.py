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

    Exactly one of `path`, `table` and `query` is given; a query is a SELECT over catalog tables.
    `date_column` is the column with the date of a row; without it, the whole dataset belongs to
    every date and metrics cannot be lagged. It holds dates, timestamps, or strings in the format
    `date_format` (a pattern of Spark, `yyyyMMdd`; ISO dates by default). `time_zone` is the time
    zone of the days of timestamps, by default that of the session.

    `filter` is a Spark SQL predicate, `schema` the columns of files with their types (`id bigint,
    price double`), unless they are to be inferred. With it csv and json are read as strings, and a
    string that is not a value of its type is NULL and counts as malformed. `version` pins a Delta
    version, `timestamp` the one that was the newest at an ISO timestamp; without them the newest
    version at the start of the gate is read, and pinned for the whole run. `keys` are the columns
    by which users identify a row. The values of `masked` columns never leave Spark: they are
    displayed as `***`. Without `trust_log`, nothing is taken from the statistics in the transaction
    log of a Delta table: its rows are read. `lineage_name` is the path, URI or table name in
    lineage; by default it is the location without trailing dates, partitions and globs.

    With `conn_id` the `table` is a database table, read over JDBC: it is the id of an Airflow
    connection, or of an environment variable, which holds the credentials.
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
