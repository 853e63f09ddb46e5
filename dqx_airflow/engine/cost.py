"""Estimates how much the assertions of a plan would read, from the sizes of files, the Delta log
and the footers of Parquet files. No rows are read, and no JVM is started."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from functools import cache
from itertools import chain

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow.fs import FileSystem

from dqx_airflow.datasets.delta_log import table_files
from dqx_airflow.engine.sources.listing import DataFile
from dqx_airflow.engine.sources.unopened import UnopenedDataset
from dqx_airflow.errors import DatasetError, first_line
from dqx_airflow.metrics.metric import Scan
from dqx_airflow.plan.description import columns_read, has_sql
from dqx_airflow.plan.model import MetricRequest, Plan
from dqx_airflow.plan.passes import Pass, UnknownDataset, reads_of
from dqx_airflow.plan.predicates import aggregates_of
from dqx_airflow.values import DatasetRef

HOW = "estimated from file sizes, Delta logs and Parquet footers"
_MOST_FOOTERS = 8


@dataclass(frozen=True, slots=True)
class AssertionCost:
    """The read cost of one assertion: `bytes_read` alone, in `passes` over `columns`, and
    `bytes_more` on top of the other assertions.

    `by_log` and `by_states` count the values that need no read.
    """

    check: str
    name: str
    bytes_read: int
    bytes_more: int
    passes: int
    columns: tuple[str, ...]
    by_log: int
    by_states: int


def _bytes_of(scan_pass: Pass, dataset: UnopenedDataset) -> float:
    """The number of bytes that a pass reads."""
    files = dataset.files_on(scan_pass.dates or (None,))
    size = sum(file.size for file in files)
    named = {*columns_read(scan_pass), *filter(None, [dataset.ref.date_column])}
    # Features such as column mapping name columns differently.
    has_other_names = dataset.log is not None and dataset.log.features
    if has_sql(scan_pass) or "all" in named or dataset.ref.filter or has_other_names:
        return size
    return size * _share(dataset, files, named)


def _share(
    dataset: UnopenedDataset, files: Collection[DataFile], columns: Collection[str]
) -> float:
    """The share of the bytes of Parquet files that belongs to some columns, from the footers of the
    largest files; 1 for other formats, where all columns are read."""
    if dataset.ref.format not in ("delta", "parquet"):
        return 1.0
    largest = sorted(files, key=lambda file: -file.size)[:_MOST_FOOTERS]
    sizes = [_column_sizes(dataset.path, dataset.ref.format, file.path) for file in largest]
    total = sum(of_file.total() for of_file in sizes)
    return sum(of_file[name] for of_file in sizes for name in columns) / total if total else 0.0


@cache
def _column_sizes(root: str, file_format: str, path: str) -> Counter[str]:
    """The compressed bytes of each column of a Parquet file below a root.

    :raises DatasetError: the file has no footer.
    """
    system = table_files(root) if file_format == "delta" else FileSystem.from_uri(root)[0]
    sizes = Counter[str]()
    try:
        groups = pq.read_metadata(path, filesystem=system).to_dict()["row_groups"]
    except (pa.ArrowException, OSError) as error:
        raise DatasetError(f"the footer of {path} cannot be read: {first_line(error)}") from error
    for chunk in chain.from_iterable(group["columns"] for group in groups):
        sizes[chunk["path_in_schema"].partition(".")[0]] += chunk["total_compressed_size"]
    return sizes


def costs_of(plan: Plan, refs: Iterable[DatasetRef]) -> tuple[int, tuple[AssertionCost, ...]]:
    """The bytes that a gate reads on an ordinary day, and the cost of each assertion. Values of
    earlier days are assumed to come from the states of earlier runs, with unchanged files.
    Datasets without a path have no known size, and count as empty.

    :raises DatasetError: a Delta table does not exist, or its log is broken.
    """
    reader = _Reader.of(plan, {ref.name: UnopenedDataset(ref) for ref in refs if ref.path})
    needed = [(*planned.requests, *planned.history) for planned in plan.assertions]
    total = reader.reading(plan.requests).size
    costs = []
    for number, planned in enumerate(plan.assertions):
        own = set(needed[number])
        others = chain(*needed[:number], *needed[number + 1 :])
        alone = reader.reading(own)
        costs.append(
            AssertionCost(
                planned.check,
                planned.name,
                bytes_read=alone.size,
                bytes_more=total - reader.reading(dict.fromkeys(others)).size,
                passes=alone.passes,
                columns=alone.columns,
                by_log=len(own & reader.in_log),
                by_states=len(own & reader.stored - reader.in_log),
            )
        )
    return total, tuple(costs)


@dataclass(frozen=True, slots=True)
class _Reading:
    """The reading for some requests together: the number of bytes and of passes, and the
    columns."""

    size: int
    passes: int
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Reader:
    """Estimates the reading for requests of a plan.

    :param in_log: the requests that the logs of tables answer.
    :param stored: the requests that the states of earlier runs answer.
    """

    date: date
    datasets: Mapping[str, UnopenedDataset]
    in_log: frozenset[MetricRequest]
    stored: frozenset[MetricRequest]

    @classmethod
    def of(cls, plan: Plan, datasets: Mapping[str, UnopenedDataset]) -> _Reader:
        in_log = [one for one in plan.requests if _is_in_log(one, datasets.get(one.dataset))]
        stored = [one for one in plan.requests if one.date and one.date < plan.date]
        return cls(plan.date, datasets, frozenset(in_log), frozenset(stored))

    def reading(self, requests: Iterable[MetricRequest]) -> _Reading:
        left = [one for one in requests if one not in self.in_log and one not in self.stored]
        size = 0.0
        passes = 0
        columns: set[str] = set()
        for name in {request.dataset for request in left}:
            dataset = self.datasets.get(name)
            known = dataset or UnknownDataset(DatasetRef(name))
            for scan_pass in reads_of(left, known, self.date).passes:
                if scan_pass.is_late:
                    continue
                passes += 1
                columns.update(columns_read(scan_pass))
                if has_sql(scan_pass):
                    columns.add("all")
                if dataset is not None:
                    size += _bytes_of(scan_pass, dataset)
        return _Reading(round(size), passes, tuple(sorted(columns)))


def _is_in_log(request: MetricRequest, dataset: UnopenedDataset | None) -> bool:
    if dataset is None or request.definition.scan is not Scan.FLAT:
        return False
    parts = aggregates_of(request)
    answered = dataset.answers_of_log(parts, request.date)
    return bool(parts) and all(part.sql in answered for part in parts)
