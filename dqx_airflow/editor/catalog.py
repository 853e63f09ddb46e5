"""The columns of the datasets in the `dqx.toml` beside a file.

Of tables, only local metadata is read, no data, and nothing before the columns of a dataset are
requested. The setting `columns` names them instead of reading them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dqx_airflow.datasets.dqx_toml import FILE_NAME, find_settings, read_settings
from dqx_airflow.errors import first_line

_READ = ("delta", "parquet")


@dataclass(frozen=True, slots=True)
class KnownColumn:
    """A column of a dataset; the type is empty if it is unknown."""

    name: str
    type: str = ""


@dataclass(slots=True)
class Catalog:
    """The datasets of one `dqx.toml`. `problems` describe what could not be read."""

    tables: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    folder: Path = Path()
    problems: list[str] = field(default_factory=list)
    _known: dict[str, tuple[KnownColumn, ...]] = field(default_factory=dict)

    @property
    def datasets(self) -> tuple[str, ...]:
        return tuple(self.tables)

    def path(self, dataset: str) -> str | None:
        """The path of a dataset, as written."""
        path = self.tables.get(dataset, {}).get("path")
        return path if isinstance(path, str) else None

    def columns(self, dataset: str) -> tuple[KnownColumn, ...]:
        """The columns of a dataset; empty if unknown."""
        if dataset not in self.tables:
            return ()
        if dataset not in self._known:
            try:
                self._known[dataset] = self._read(dataset)
            except Exception as error:  # whatever the libraries raise
                self._known[dataset] = ()
                message = f"the columns of dataset '{dataset}' cannot be read: {first_line(error)}"
                self.problems.append(f"{self.folder / FILE_NAME}: {message}")
        return self._known[dataset]

    def _read(self, dataset: str) -> tuple[KnownColumn, ...]:
        table = self.tables[dataset]
        columns = table.get("columns")
        if isinstance(columns, list):
            return tuple(KnownColumn(str(column)) for column in columns)
        path = self.path(dataset)
        format = table.get("format", "delta")
        if path is None or format not in _READ or "://" in path:
            return ()
        place = self.folder / path
        return _delta_columns(place) if format == "delta" else _parquet_columns(place)


def find_catalog(file: str) -> Catalog:
    """The catalog for a file: of the nearest `dqx.toml`, or else an empty one."""
    place = find_settings(Path(file).parent) if Path(file).is_absolute() else None
    if place is None:
        return Catalog()
    settings = read_settings(place)
    problems = [
        f"{problem.span.file}:{problem.span.line}: {problem.message}"
        for problem in settings.problems
    ]
    return Catalog(settings.datasets, place.parent, problems)


def _delta_columns(place: Path) -> tuple[KnownColumn, ...]:
    from deltalake import DeltaTable

    fields = DeltaTable(str(place)).schema().fields
    # `long` for a primitive type; `struct`, `array` or `map` for a nested one.
    return tuple(KnownColumn(item.name, str(item.type.type)) for item in fields)


def _parquet_columns(place: Path) -> tuple[KnownColumn, ...]:
    """The columns of the first file, and the partition columns in its path."""
    from pyarrow import parquet

    first = place if place.is_file() else next(iter(place.rglob("*.parquet")), None)
    if first is None:
        raise FileNotFoundError(f"there is no .parquet file below {place}")
    columns = [KnownColumn(item.name, str(item.type)) for item in parquet.read_schema(first)]
    folders = first.relative_to(place).parts[:-1] if place.is_dir() else ()
    partitions = [KnownColumn(part.split("=", 1)[0]) for part in folders if "=" in part]
    return (*columns, *partitions)
