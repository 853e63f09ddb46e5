"""Files of a Delta table whose statistics are bounds of their values rather than exact extremes.

Writers mark them by `tightBounds: false`, which deltalake does not expose: the log itself is read
(Delta protocol, "Per-file Statistics").
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake.exceptions import DeltaError

from dqx_airflow.delta_log import log_files

_TIGHT = "tightBounds"


def loose_files(root: str, version: int) -> frozenset[str] | None:
    """The files of a version with such statistics, by their paths in the log.

    It is None if the log cannot be read.

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
        for path, is_loose in _in_commit(text):
            (loose.add if is_loose else loose.discard)(path)
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
    columns += [f"stats_parsed.{_TIGHT}"] if parsed else []
    table = parquet.read([f"add.{name}" for name in columns])
    rows: pa.Table = pa.Table.from_struct_array(table.column("add").combine_chunks())
    paths: set[str] = set()
    if "stats" in fields:
        stated = rows.filter(pc.match_substring(rows.column("stats"), _TIGHT))
        paths |= {row["path"] for row in stated.to_pylist() if _is_loose(row["stats"])}
    if parsed:
        tight = pc.struct_field(rows.column("stats_parsed"), _TIGHT)
        loose: list[Any] = rows.filter(pc.equal(tight, False)).column("path").to_pylist()
        paths.update(loose)
    return paths
