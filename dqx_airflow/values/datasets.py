"""Where datasets are found, and what is known of their rows and columns."""

from __future__ import annotations

from dataclasses import dataclass

FORMATS = ("delta", "parquet", "csv", "json", "orc", "avro", "iceberg")
"""The formats in which a dataset at a path may be stored."""


JDBC = "jdbc"
"""The format of a table of a database."""


MASK = "***"
"""What is shown of a value that must not be seen."""


@dataclass(frozen=True, slots=True)
class DatasetRef:
    """Where a dataset of a suite is found.

    Exactly one of `path`, `table` and `query` is given; a query is one SELECT over tables of the
    catalog. `date_column` tells which rows belong to a date; without it, the whole dataset belongs
    to every date and metrics cannot be lagged. It holds dates, timestamps, or text that
    `date_format` describes (a pattern of Spark, `yyyyMMdd`; ISO dates without it). `time_zone` is
    the zone in which the days of timestamps are meant, that of the session without it.

    `filter` is a Spark SQL predicate, `schema` the columns of files with their types
    (`id bigint, price double`), where these should not be guessed. Then csv and json are read as
    text, and a text that is no value of its type is NULL and counted as malformed. `version` pins
    a Delta version, `timestamp` the one that was the newest at an ISO moment; without them the
    newest one when the gate starts is read, and pinned for the whole run. `keys` are the columns
    by which people know a row. What `masked` columns hold never leaves Spark: `***` stands for it.
    Without `trust_log`, nothing is taken from the statistics in the transaction log of a Delta
    table: its rows are read. `lineage_name` is the path, URI or table by which lineage knows the
    data; without it, that is its location without dates, partitions and globs at the end.

    With `conn_id` the `table` is one of a database, read over JDBC: it is the id of a connection
    of Airflow, or of an environment variable, which holds the credentials.
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
        """The path or the table; a query is known by the name of the dataset."""
        return self.path or self.table or self.name

    @property
    def is_of_texts(self) -> bool:
        """True for files of text whose columns are declared: their values are cast."""
        return self.path is not None and self.schema is not None and self.format in ("csv", "json")

    @property
    def is_lenient(self) -> bool:
        """True where the options say that values are NULL, or lines left out, that do not fit."""
        options = {name.lower(): value.lower() for name, value in self.options}
        return options.get("mode") in ("permissive", "dropmalformed")


@dataclass(frozen=True, slots=True)
class Field:
    """A column of a dataset, with its type as Spark writes it (`decimal(18,2)`)."""

    name: str
    type: str


@dataclass(frozen=True, slots=True)
class ValidatedRows:
    """Rows that a gate let through: where they are, in which version, told by which condition."""

    location: str
    version: int
    condition: str | None = None
