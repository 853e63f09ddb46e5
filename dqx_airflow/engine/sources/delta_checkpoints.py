"""Facts in the log of a Delta table that deltalake does not expose: which files have loose
statistics, and the values of partitions as they were written.

Writers mark files whose statistics are only bounds by `tightBounds: false` (Delta protocol,
"Per-file Statistics"): the commits and the checkpoint of the log are read for it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake.exceptions import DeltaError

from dqx_airflow.datasets.delta_log import LogFiles, log_files

_TIGHT = "tightBounds"
_AT_ONCE = 10_000


def loose_files(root: str, version: int) -> frozenset[str] | None:
    """The files of a version whose statistics are only bounds, by their paths in the log.

    None if the log cannot be read.

    :param root: the location of the table.
    """
    try:
        return _loose_files(root, version)
    except (
        OSError,
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
        pa.ArrowException,
        DeltaError,
    ):
        return None


def _loose_files(root: str, version: int) -> frozenset[str] | None:
    log = log_files(root, version)
    needed = range(log.start, version + 1)
    if any(at not in log.commits for at in needed):
        return None
    loose: set[str] = set()
    for part in log.checkpoint:
        with log.opened(part) as file:
            loose |= _in_checkpoint(file)
    for text in log.texts(log.commits[at] for at in needed):
        if not loose and _TIGHT.encode() not in text:
            continue
        for path, is_loose in _in_commit(text):
            if is_loose:
                loose.add(path)
            else:
                loose.discard(path)
    return frozenset(loose)


def _in_commit(text: bytes) -> Iterator[tuple[str, bool]]:
    """The files that a commit adds, each with whether its bounds are loose."""
    for line in text.splitlines():
        if b'"add"' in line:
            added = json.loads(line).get("add")
            if added is not None:
                yield added["path"], _is_loose(added.get("stats"))


def _is_loose(statistics: str | None) -> bool:
    if statistics is None or _TIGHT not in statistics:
        return False
    return json.loads(statistics).get(_TIGHT) is not True


def _in_checkpoint(file: Any) -> set[str]:
    """The files with loose bounds.

    :raises ValueError: the checkpoint refers to further files.
    """
    parquet = pq.ParquetFile(file)
    schema = parquet.schema_arrow
    if "sidecar" in schema.names:
        elsewhere = parquet.read(["sidecar.path"]).column("sidecar").combine_chunks()
        if pc.struct_field(elsewhere, "path").null_count < len(elsewhere):
            raise ValueError("the files are listed in sidecars")
    added = schema.field("add").type
    fields = {added.field(number).name for number in range(added.num_fields)}
    columns = [name for name in ("path", "stats") if name in fields]
    parsed = "stats_parsed" in fields and _TIGHT in str(added.field("stats_parsed").type)
    if parsed:
        columns.append(f"stats_parsed.{_TIGHT}")
    paths: set[str] = set()
    # In parts: the statistics of a million files have gigabytes.
    for batch in parquet.iter_batches(_AT_ONCE, columns=[f"add.{name}" for name in columns]):
        rows: pa.Table = pa.Table.from_struct_array(batch.column("add"))
        if "stats" in fields:
            stated = rows.filter(pc.match_substring(rows.column("stats"), _TIGHT))
            paths |= {row["path"] for row in stated.to_pylist() if _is_loose(row["stats"])}
        if parsed:
            tight = pc.struct_field(rows.column("stats_parsed"), _TIGHT)
            loose: list[Any] = rows.filter(pc.equal(tight, False)).column("path").to_pylist()
            paths.update(loose)
    return paths


def partitions_in_checkpoint(log: LogFiles) -> dict[str, Mapping[str, str | None]]:
    """The values of the partitions of the files in the newest checkpoint of a log, by their decoded
    paths.

    :raises OSError: it cannot be read.
    :raises ValueError: it is none.
    """
    found: dict[str, Mapping[str, str | None]] = {}
    names = [*log.checkpoint]
    while names:
        name = names.pop()
        with log.opened(name) as file:
            added, sidecars = _actions_of(file) if name.endswith(".json") else _rows_of(file)
        names += [f"_sidecars/{sidecar['path']}" for sidecar in sidecars]
        found |= {unquote(add["path"]): dict(add["partitionValues"] or {}) for add in added}
    return found


_Actions: TypeAlias = "list[dict[str, Any]]"


def _actions_of(file: Any) -> tuple[_Actions, _Actions]:
    """The files and the sidecars in a checkpoint in JSON."""
    actions = [json.loads(line) for line in file.read().splitlines() if line.strip()]
    return (
        [action["add"] for action in actions if "add" in action],
        [action["sidecar"] for action in actions if "sidecar" in action],
    )


def _rows_of(file: Any) -> tuple[_Actions, _Actions]:
    """The files and the sidecars in a checkpoint in Parquet."""
    parquet = pq.ParquetFile(file)
    names = set(parquet.schema_arrow.names)
    added: _Actions = []
    sidecars: _Actions = []
    if "add" in names:
        added = _rows_in(parquet, ["add.path", "add.partitionValues"])
    if "sidecar" in names:
        sidecars = _rows_in(parquet, ["sidecar.path"])
    return added, sidecars


def _rows_in(parquet: pq.ParquetFile, fields: Sequence[str]) -> _Actions:
    """Some fields of the rows that have an action."""
    rows: _Actions = parquet.read([*fields]).column(0).drop_null().to_pylist()
    return [row for row in rows if row["path"] is not None]
