"""A `dqx.toml`: how Spark is reached, what holds where a call says nothing, the datasets.

    [connection]
    url = "local[*]"                # or a type with its host, port and http_path
    jvm_archive = "gate.jsa"        # made with `dql package --jvm-archive`

    [connection.conf]               # settings of the Spark session
    "spark.sql.ansi.enabled" = true

    [defaults]
    date = "yesterday"              # also output, results, fail_on, allow_empty,
                                    # require_history, trust_log, unsupported

    [datasets.orders]
    path = "lake/orders"            # beside this file; or table = "catalog.schema.orders"
    date_column = "ds"

    [reader.csv]                    # options of all datasets of this format
    sep = ";"

The nearest `dqx.toml` counts, beside a suite or above it. An editor reads it, too.
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
from dqx_airflow.dataset_settings import SETTINGS, dataset_ref
from dqx_airflow.diagnostics.diagnostic import Diagnostic
from dqx_airflow.reader_options import with_default_options
from dqx_airflow.values import DatasetRef, RunOptions


class Unsupported(str, Enum):
    """What becomes of a clause of a contract that states a check and cannot be enforced."""

    ERROR = "error"
    WARN = "warn"


class Output(str, Enum):
    """How a run is told."""

    TABLE = "table"
    JSON = "json"
    SUMMARY = "summary"
    JUNIT = "junit"


@dataclass(frozen=True, slots=True)
class Defaults(RunOptions):
    """What holds where a call says nothing, also of its `RunOptions`. `results` is the root of a
    results store, `date` None stands for today.

    Without `trust_log`, no dataset trusts the log of its table, whatever its own settings say.
    """

    date: str | None = None
    output: Output = Output.TABLE
    results: str | None = None
    trust_log: bool = True
    unsupported: Unsupported = Unsupported.ERROR


@dataclass(frozen=True, slots=True)
class Settings:
    """What a `dqx.toml` says; without one, what holds anyway.

    `datasets` are tables of settings as they are written, since not all of them can be read by
    Spark: an editor does with the columns. What is a problem is left out, the datasets that have
    one are `unsound`. `reader` are the options of datasets by format.
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

    @property
    def refs(self) -> dict[str, DatasetRef]:
        """The datasets that have a place, a relative path beside the file; with their own options
        alone."""
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
        """The settings of the Spark session, for a JVM that we start with its archive."""
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
        """A relative path from where the file is; a URI, and what begins with `~`, as it is."""
        if self.path is None or "://" in path or path.startswith("~"):
            return path
        return str(self.path.absolute().parent / path)


def date_of(text: str, today: date) -> date | None:
    """The date that is meant by `2024-12-25`, `today` or `yesterday`; None where it is none."""
    if text in ("today", "yesterday"):
        return today - timedelta(days=text == "yesterday")
    try:
        day = date.fromisoformat(text)
    except ValueError:
        return None
    return day if day.isoformat() == text else None
