"""A `dqx.toml`: the connection to Spark, defaults of calls, and the datasets.

    [connection]
    url = "local[*]"                # or a type with its host, port and http_path
    jvm_archive = "gate.jsa"        # made with `dql package --jvm-archive`

    [connection.conf]               # settings of the Spark session
    "spark.sql.ansi.enabled" = true

    [defaults]
    date = "yesterday"              # also output, results, fail_on, allow_empty,
                                    # require_history, trust_log, ansi, unsupported,
                                    # max_clock_skew_hours

    [datasets.orders]
    path = "lake/orders"            # beside this file; or table = "catalog.schema.orders"
    date_column = "ds"

    [contracts]
    environment = ["REGION"]        # variables of the environment that contracts may know

    [contracts.variables]           # other values of `${NAME}` in contracts
    LAKE = "s3://lake"

    [reader.csv]                    # options of all datasets of this format
    sep = ";"

The nearest `dqx.toml` counts, next to a suite or above it. Editors use it, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, timedelta
from enum import Enum
from pathlib import Path
from typing import Any

from dqx_airflow.config.connection import LOCAL, Connection, ConnectionKind
from dqx_airflow.config.jvm_options import DRIVER_OPTIONS, with_archive
from dqx_airflow.datasets.reader_options import with_default_options
from dqx_airflow.datasets.settings import SETTINGS, dataset_ref
from dqx_airflow.diagnostics.diagnostic import Diagnostic
from dqx_airflow.values import DatasetRef, RunOptions


class Unsupported(str, Enum):
    """The treatment of a contract clause that states a check and cannot be enforced."""

    ERROR = "error"
    WARN = "warn"


class Output(str, Enum):
    """The output format of a run."""

    TABLE = "table"
    JSON = "json"
    SUMMARY = "summary"
    JUNIT = "junit"


@dataclass(frozen=True, slots=True)
class Defaults(RunOptions):
    """The defaults of calls, including those of their `RunOptions`. `results` is the root of a
    results store, `date` None means today.

    Without `trust_log`, no dataset trusts the log of its table, whatever its own settings say.
    """

    date: str | None = None
    output: Output = Output.TABLE
    results: str | None = None
    trust_log: bool = True
    unsupported: Unsupported = Unsupported.ERROR


@dataclass(frozen=True, slots=True)
class Settings:
    """The contents of a `dqx.toml`; without one, the built-in defaults.

    `datasets` are tables of settings as written, since Spark need not be able to read all of them:
    an editor only needs the columns. Invalid settings are left out, and their datasets are
    `unsound`. `reader` are the options of datasets by format, `variables` those that contracts may
    know: `NAME=VALUE`, or `NAME` for one of the environment.
    """

    path: Path | None = None
    text: str = ""
    connection: Connection = LOCAL
    conf: Mapping[str, str] = field(default_factory=dict)
    defaults: Defaults = field(default_factory=Defaults)
    datasets: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    problems: tuple[Diagnostic, ...] = ()
    unsound: frozenset[str] = frozenset()
    jvm_archive: Path | None = None
    reader: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    variables: tuple[str, ...] = ()

    @property
    def refs(self) -> dict[str, DatasetRef]:
        """The datasets with a location, relative paths resolved against the file; only with their
        own options."""
        refs = {}
        for name, table in self.datasets.items():
            settings = {key: value for key, value in table.items() if key in SETTINGS}
            if name in self.unsound or not any(map(settings.get, ("path", "table", "query"))):
                continue
            if path := settings.get("path"):
                settings["path"] = self._beside(path)
            refs[name] = dataset_ref(name, settings)
        return refs

    def as_read(self, refs: Mapping[str, DatasetRef]) -> dict[str, DatasetRef]:
        """Datasets with the options of `reader` for their formats; their own options win."""
        return {name: with_default_options(ref, self.reader) for name, ref in refs.items()}

    @property
    def session(self) -> Mapping[str, str]:
        """The settings of the Spark session, with the archive for a JVM that we start."""
        if self.jvm_archive is None or self.connection.kind not in (
            ConnectionKind.LOCAL,
            ConnectionKind.STANDALONE,
        ):
            return self.conf
        options = with_archive(self.conf.get(DRIVER_OPTIONS, ""), str(self.jvm_archive))
        return {**self.conf, DRIVER_OPTIONS: options}

    @property
    def results(self) -> str | None:
        return self._beside(self.defaults.results) if self.defaults.results else None

    def _beside(self, path: str) -> str:
        """A relative path resolved against the file; a URI, and a path with `~`, unchanged."""
        if self.path is None or "://" in path or path.startswith("~"):
            return path
        return str(self.path.absolute().parent / path)


def date_of(text: str, today: date) -> date | None:
    """The date of `2024-12-25`, `today` or `yesterday`; None if it is invalid."""
    if text in ("today", "yesterday"):
        return today - timedelta(days=text == "yesterday")
    try:
        day = date.fromisoformat(text)
    except ValueError:
        return None
    return day if day.isoformat() == text else None
