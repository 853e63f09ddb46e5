"""`dql tables verify`: real tables, promoted with receipts, then changed in all ways that a
consumer would like to know of."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, Field, write_deltalake
from deltalake.transaction import AddAction

from dqx_airflow.errors import RequestError
from dqx_airflow.results.query import StoredResults
from dqx_airflow.results.receipts import (
    MASKED,
    RECEIPT,
    Receipt,
    ReceiptWriter,
    receipts_of,
    signing_key,
)
from dqx_airflow.results.report_rows import digest_of
from dqx_airflow.results.store import ResultsStore
from dqx_airflow.results.upkeep import prune
from dqx_airflow.results.verify import Verification, verify_table
from dqx_airflow.values import Attempt, DatasetRef, GateRequest, SourceFile
from tests.command_line import dql
from tests.results.samples import FAILED, PASSED, RUN_KEY, sample_report

SUITE = SourceFile("orders.dql", 'suite "Orders" {}')
DAYS = ("2026-01-01", "2026-01-02")


def rows(day: str, *ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "ds": [day] * len(ids)})


@dataclass
class Lake:
    """A target, and the store of the gate that promotes into it."""

    folder: Path
    key: Any = None
    masked: tuple[str, ...] = ()

    @property
    def target(self) -> str:
        return str(self.folder / "orders")

    @property
    def root(self) -> str:
        return str(self.folder / "results")

    @property
    def table(self) -> DeltaTable:
        return DeltaTable(self.target)

    def promote(
        self,
        day: str,
        *ids: int,
        receipt: bool = True,
        is_release: bool = False,
        more: str | None = None,
        **facts: str,
    ) -> None:
        """What a gate does: a commit that names a statement, and then its receipt. A release adds
        rows, and replaces none. `more` is the value of one more column."""
        data = rows(day, *ids)
        if more is not None:
            data = data.append_column("more", [[more] * len(ids)])
        request = GateRequest(RUN_KEY, Attempt(1, "1"), SUITE, (DatasetRef("o", "p"),), self.root)
        verdict = replace(FAILED, waived_by="until 2026-02-01: known")
        writer = ReceiptWriter(StoredResults(self.root), self.key, [(request, [PASSED, verdict])])
        facts = {"dqx_run_id": str(uuid.uuid4()), "dqx_gate": "etl.check", **facts}
        facts = {"dqx_slice": json.dumps({"ds": day}), **facts}
        about = {
            **facts,
            "target": self.target,
            "columns": data.column_names,
            MASKED: [*self.masked],
        }
        there = DeltaTable.is_deltatable(self.target)
        replaces = there and not is_release
        statement = writer.statement(about, self.table if there else None)
        write_deltalake(
            self.target,
            data,
            mode="overwrite" if replaces else "append",
            predicate=f"ds = '{day}'" if replaces else None,
            partition_by=["ds"],
            commit_properties=CommitProperties(
                custom_metadata={**facts, RECEIPT: digest_of(statement)}
            ),
        )
        if receipt:
            writer.write(statement, self.table)

    @property
    def receipts(self) -> dict[int, Receipt]:
        """The receipt of each version."""
        found = receipts_of(StoredResults(self.root), str(self.table.metadata().id))
        return {one.version: one for one in found}

    def verify(self, version: int | None = None, key: str | None = None) -> Verification:
        return verify_table(StoredResults(self.root), self.target, version, key)

    def change_receipt(self, version: int, **columns: str) -> None:
        """What someone does who can write the store."""
        receipts = DeltaTable(f"{self.root}/receipts")
        new = {name: f"'{value}'" for name, value in columns.items()}
        receipts.update(predicate=f"version = {version}", updates=new)

    def commit(self, version: int) -> tuple[Path, list[dict[str, Any]]]:
        path = Path(self.target, "_delta_log", f"{version:020}.json")
        return path, [json.loads(line) for line in path.read_text().splitlines()]

    def file(self) -> Path:
        return Path(self.target, sorted(self.table.file_uris())[0].removeprefix(self.target + "/"))


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """Two dates, the second one promoted twice."""
    made = Lake(tmp_path)
    for day, ids in ((DAYS[0], (1, 2)), (DAYS[1], (3,)), (DAYS[1], (3, 4))):
        made.promote(day, *ids)
    return made


def test_what_gates_promoted_is_verified_and_the_receipts_say_why(lake: Lake) -> None:
    found = lake.verify()
    assert found.differences == ()
    assert (found.version, found.last and found.last["version"]) == (2, 2)
    known = lake.receipts
    assert [known[at].entries["previous"] for at in known] == [
        None,
        known[0].digest,
        known[1].digest,
    ]
    (judged,) = known[2].entries["judged"]
    assert judged["sources"] == {"orders.dql": digest_of(SUITE.text)}
    assert [one["status"] for one in judged["verdicts"]] == ["passed", "failed"]
    assert judged["verdicts"][1]["waived_by"] == "until 2026-02-01: known"


def append(lake: Lake) -> None:
    write_deltalake(lake.target, rows(DAYS[0], 99), mode="append")


def rewrite_commit(lake: Lake, version: int, change: Callable[[dict[str, Any]], None]) -> None:
    path, actions = lake.commit(version)
    for action in actions:
        change(action)
    path.write_text("".join(json.dumps(action) + "\n" for action in actions))


def other_outcome(action: dict[str, Any]) -> None:
    if "commitInfo" in action:
        action["commitInfo"]["dqx_gate"] = "another.gate"


def other_slice(action: dict[str, Any]) -> None:
    if "commitInfo" in action:
        action["commitInfo"]["dqx_slice"] = "{"


def other_type(action: dict[str, Any]) -> None:
    if "metaData" in action:
        text = action["metaData"]["schemaString"]
        action["metaData"]["schemaString"] = text.replace('"long"', '"integer"')


def other_time(action: dict[str, Any]) -> None:
    if "add" in action:
        action["add"]["modificationTime"] += 1


def mark(action: dict[str, Any]) -> None:
    if "commitInfo" in action:
        action["commitInfo"]["dqx_run_id"] = "x"


def no_mark(action: dict[str, Any]) -> None:
    for name in ("dqx_run_id", RECEIPT):
        action.get("commitInfo", {}).pop(name, None)


def other_file(lake: Lake) -> None:
    """Someone adds a file of the same table to the commit of a gate."""
    path, actions = lake.commit(2)
    (add,) = (action for action in actions if "add" in action)
    shutil.copy(Path(lake.target, add["add"]["path"].replace("%3D", "=")), lake.file().parent)
    copied = {**add["add"], "path": f"ds=2026-01-01/{Path(add['add']['path']).name}"}
    path.write_text("".join(json.dumps(one) + "\n" for one in [*actions, {"add": copied}]))


def restored(lake: Lake) -> None:
    lake.table.restore(1)


def deleted_by_vector(lake: Lake) -> None:
    """Spark deletes a row by a deletion vector, and the table is restored."""
    (add,) = (one["add"] for one in lake.commit(2)[1] if "add" in one)
    vector = {"storageType": "u", "pathOrInlineDv": "ab^-aqEH.-t@S}K{vb[*k^", "offset": 4}
    vector |= {"sizeInBytes": 40, "cardinality": 1}
    remove = {key: add[key] for key in ("path", "size", "partitionValues")} | {"dataChange": True}
    commits(lake, remove=remove, add={**add, "deletionVector": vector})
    commits(lake, remove={**remove, "deletionVector": vector}, add=add)


def compacted(lake: Lake) -> None:
    lake.promote(DAYS[0], 1, 2)
    lake.table.optimize.compact()


def two_files(lake: Lake) -> None:
    append(lake)
    lake.table.optimize.compact()


def moved_by_hand(lake: Lake) -> None:
    """A file that changes no data, says its commit, and replaces none."""
    (add, *_) = pa.table(lake.table.get_add_actions()).to_pylist()
    action = AddAction(
        add["path"] + "x", add["size_bytes"], add["partition"], 0, False, '{"numRecords": 1}'
    )
    lake.table.create_write_transaction(
        [action], mode="append", schema=lake.table.schema(), partition_by=["ds"]
    )


def released(lake: Lake) -> None:
    lake.table.delete("ds = '2026-01-02'")
    lake.promote(DAYS[1], 7, is_release=True, dqx_released_by="ann")


def compacted_then_deleted(lake: Lake) -> None:
    lake.table.optimize.z_order(["id"])
    lake.table.delete("ds = '2026-01-01'")


def without_the_log_of(lake: Lake) -> None:
    """The table keeps a checkpoint, and no commit before it."""
    lake.table.create_checkpoint()
    for version in range(lake.table.version()):
        lake.commit(version)[0].unlink()


def pruned(lake: Lake) -> None:
    ResultsStore(lake.root).write(sample_report())
    later = datetime.now(timezone.utc) + timedelta(days=900)
    assert sum(one.deleted_rows for one in prune(lake.root, timedelta(days=1), now=later)) > 0


def without_newest(lake: Lake, count: int = 1) -> None:
    """A backup is restored: the table has lost its newest commits."""
    newest = lake.table.version()
    for version in range(newest - count + 1, newest + 1):
        lake.commit(version)[0].unlink()


def made_anew(lake: Lake, *promotions: tuple[str, int]) -> None:
    """The table is deleted, and created by the next promotions."""
    shutil.rmtree(lake.target)
    for day, number in promotions:
        lake.promote(day, number)


def commits(lake: Lake, **actions: dict[str, Any]) -> None:
    """Someone commits actions by hand."""
    version = lake.table.version() + 1
    info = {"operation": "SET", "userName": "ann"}
    text = "".join(f"{json.dumps({name: one})}\n" for name, one in actions.items())
    path = Path(lake.target, "_delta_log", f"{version:020}.json")
    path.write_text(json.dumps({"commitInfo": info}) + "\n" + text)


def once_more(lake: Lake, *, is_replaced: bool = False, **changes: Any) -> None:
    """Someone adds a file again, with other values in the log."""
    (add,) = (one["add"] for one in lake.commit(2)[1] if "add" in one)
    is_new = {"dataChange": not is_replaced}
    removed = {"remove": {"path": add["path"], **is_new}} if is_replaced else {}
    commits(lake, **removed, add={**add, **is_new, **changes})


def with_other_partition_in_commit(lake: Lake) -> None:
    path, actions = lake.commit(2)
    for action in actions:
        if "add" in action:
            action["add"]["partitionValues"] = {"ds": "2026-01-09"}
    path.write_text("".join(json.dumps(one) + "\n" for one in actions))


def metadata(lake: Lake, version: int = 0) -> dict[str, Any]:
    (found,) = (one["metaData"] for one in lake.commit(version)[1] if "metaData" in one)
    return dict(found)


def with_columns(lake: Lake, change: Callable[[dict[str, Any]], None], **settings: str) -> None:
    """Someone changes the columns in the metadata."""
    found = metadata(lake)
    struct = json.loads(found["schemaString"])
    for column in struct["fields"]:
        change(column)
    commits(lake, metaData={**found, "schemaString": json.dumps(struct), "configuration": settings})


def as_string(column: dict[str, Any]) -> None:
    column["type"] = "string"


def exchanged(column: dict[str, Any]) -> None:
    other = {"id": "ds", "ds": "id"}[column["name"]]
    column["metadata"] = {"delta.columnMapping.id": 1, "delta.columnMapping.physicalName": other}


def mapped(column: dict[str, Any]) -> None:
    own = column["name"]
    column["metadata"] = {"delta.columnMapping.id": 1, "delta.columnMapping.physicalName": own}


MAPPED = {"delta.columnMapping.mode": "name"}
LOST = r"the promotion of orders_to_silver/2024-02-29/.* is not in the table: "

CASES: dict[str, tuple[Callable[[Lake], object], list[tuple[int, str, str]]]] = {
    "an append": (append, [(3, "foreign", "WRITE by .*delta-rs.*files added: 1, removed: 0")]),
    "a deletion": (
        lambda lake: lake.table.delete("id = 1"),
        [(3, "foreign", "DELETE by .*files added: 1, removed: 1")],
    ),
    "a deletion of a whole file": (
        lambda lake: lake.table.delete("ds = '2026-01-02'"),
        [(3, "foreign", "DELETE by .*files added: 0, removed: 1")],
    ),
    "a restore": (restored, [(3, "foreign", "RESTORE by")]),
    "a compaction of an append": (two_files, [(3, "foreign", "WRITE by")]),
    "a lost file that changes no data": (
        moved_by_hand,
        [(3, "file", "is gone"), (3, "foreign", "files added: 1, removed: 0")],
    ),
    "new columns": (
        lambda lake: lake.table.alter.add_columns([Field("more", "string")]),
        [(3, "columns", "other columns than the promotion in version 2")],
    ),
    "a blocked gate": (
        lambda lake: lake.promote(DAYS[1], 5, dqx_outcome="blocked"),
        [(3, "blocked", "gate etl.check: it was blocked")],
    ),
    "a killed gate": (
        lambda lake: lake.promote(DAYS[1], 5, receipt=False),
        [(3, "receipt", "gate etl.check: there is no receipt; run the gate again")],
    ),
    "a deleted receipt": (
        lambda lake: DeltaTable(f"{lake.root}/receipts").delete("version = 1"),
        [(2, "receipt", "the receipt before its own is missing, or was changed")],
    ),
    "another verdict in a receipt": (
        lambda lake: lake.change_receipt(
            2, statement=lake.receipts[2].statement.replace("failed", "passed")
        ),
        [(2, "receipt", "its entries differ from its receipt")],
    ),
    "other files in a receipt": (
        lambda lake: lake.change_receipt(2, files="{}"),
        [(2, "receipt", "its files differ from its receipt")],
    ),
    "another gate in a commit": (
        lambda lake: rewrite_commit(lake, 2, other_outcome),
        [(2, "receipt", "its entries differ from its receipt")],
    ),
    "no mark in a commit": (
        lambda lake: rewrite_commit(lake, 2, no_mark),
        [(2, "foreign", "no gate passed that")],
    ),
    "one more file in a commit": (
        other_file,
        [(2, "receipt", "its files differ from its receipt")],
    ),
    "no statement in a receipt": (
        lambda lake: lake.change_receipt(2, statement="null"),
        [(2, "columns", "other columns"), (2, "receipt", "its entries differ from its receipt")],
    ),
    "another chain in a receipt": (
        lambda lake: lake.change_receipt(2, statement='{"columns": ["id", "ds"], "previous": [1]}'),
        [(2, "receipt", "its entries differ from its receipt")],
    ),
    "a slice that is none in a commit": (
        lambda lake: rewrite_commit(lake, 2, other_slice),
        [(2, "receipt", "its entries differ from its receipt")],
    ),
    "a deletion before a release": (
        released,
        [(3, "foreign", "DELETE by .*files added: 0, removed: 1")],
    ),
    "a deletion before the log begins": (
        lambda lake: (lake.table.delete("ds = '2026-01-01'"), without_the_log_of(lake)),
        [(3, "unknown", "files of receipts were removed before the log begins")],
    ),
    "a restore before the log begins": (
        lambda lake: (lake.table.restore(1), without_the_log_of(lake)),
        [
            (3, "unknown", "files are older than the log of the table, and in no receipt"),
            (3, "unknown", "files of receipts were removed before the log begins"),
        ],
    ),
    "a table that was put back": (
        without_newest,
        [(2, "lost", LOST + "the log ends at version 1")],
    ),
    "a table that was put back by two versions": (
        lambda lake: without_newest(lake, 2),
        # What version 1 promoted, version 2 replaced.
        [(2, "lost", LOST + "the log ends at version 0; run the gate again for its date")],
    ),
    "a table that was put back, and another date since": (
        lambda lake: (without_newest(lake, 2), lake.promote(DAYS[0], 5)),
        [(2, "lost", LOST + "the log ends at version 1")],
    ),
    "a table that was put back, and two promotions of another date since": (
        lambda lake: (without_newest(lake, 2), lake.promote(DAYS[0], 5), lake.promote(DAYS[0], 6)),
        [(2, "lost", LOST + "the log has another commit of this version")],
    ),
    "a table that was put back, and an append since": (
        lambda lake: (without_newest(lake), append(lake)),
        [(2, "foreign", "WRITE by"), (2, "lost", LOST)],
    ),
    "a table that was put back, and promoted since before the log begins": (
        lambda lake: (
            lake.promote("2026-01-03", 1),
            without_newest(lake, 2),
            lake.promote(DAYS[1], 3, 4),
            lake.promote(DAYS[0], 1, 2),
            without_the_log_of(lake),
        ),
        [(3, "lost", LOST + "the log has another commit of this version")],
    ),
    "a table that was made anew": (
        lambda lake: made_anew(lake, (DAYS[0], 1)),
        [(2, "lost", LOST + "the table was created again since")],
    ),
    "a table that was made anew by others": (
        lambda lake: (
            shutil.rmtree(lake.target),
            write_deltalake(lake.target, rows(DAYS[0], 1, 2), partition_by=["ds"]),
        ),
        [(0, "foreign", "WRITE by"), (0, "lost", LOST), (2, "lost", LOST)],
    ),
    "another type": (
        lambda lake: with_columns(lake, as_string),
        [(3, "columns", "SET by ann .*: column id is string, was long: other columns than")],
    ),
    "columns that were exchanged": (
        lambda lake: with_columns(lake, exchanged, **MAPPED),
        [(3, "columns", r"column id is long \(in files ds\), was long; column ds is string .in")],
    ),
    "another type, and a promotion since": (
        lambda lake: (with_columns(lake, exchanged, **MAPPED), lake.promote(DAYS[1], 5)),
        [(3, "columns", "column id is long .in files ds.")],
    ),
    "another type in the commit of a gate": (
        lambda lake: rewrite_commit(lake, 0, other_type),
        [(at, "receipt", "its files differ from its receipt") for at in (0, 2)],
    ),
    "metadata that say that they are of a gate": (
        lambda lake: (with_columns(lake, as_string), rewrite_commit(lake, 3, mark)),
        [(3, "columns", "SET by gate None: column id is string, was long: other columns than")],
    ),
    "a restore of a part": (
        lambda lake: (
            lake.table.delete("ds = '2026-01-01'"),
            lake.table.delete("id = 4"),
            lake.table.restore(3),
        ),
        [(3, "foreign", "DELETE by")],
    ),
    "a restored file with another time": (
        lambda lake: (
            lake.table.delete("ds = '2026-01-01'"),
            lake.table.restore(2),
            rewrite_commit(lake, 4, other_time),
        ),
        [(3, "foreign", "DELETE by"), (4, "foreign", "RESTORE by")],
    ),
    "a file cut off": (
        lambda lake: os.truncate(lake.file(), 10),
        [(2, "file", r"ds.*parquet has 10 bytes, not \d+")],
    ),
    "a file deleted": (lambda lake: lake.file().unlink(), [(2, "file", "ds.*parquet is gone")]),
    # What is fine:
    "a table that was put back, and promoted again": (
        lambda lake: (without_newest(lake, 2), lake.promote(DAYS[1], 3, 4)),
        [],
    ),
    "a table that was put back twice, and promoted again": (
        lambda lake: (
            without_newest(lake),
            lake.promote(DAYS[1], 5),
            without_newest(lake, 2),
            lake.promote(DAYS[1], 3, 4),
            append(lake),
            lake.promote(DAYS[0], 1, 2),
        ),
        [],
    ),
    "a table that was put back, and promoted again before the log begins": (
        lambda lake: (
            without_newest(lake, 2),
            lake.promote(DAYS[1], 3, 4),
            lake.promote(DAYS[0], 1, 2),
            without_the_log_of(lake),
        ),
        [],
    ),
    "a table that was made anew with all dates": (
        lambda lake: made_anew(lake, (DAYS[0], 1), (DAYS[1], 3)),
        [],
    ),
    "a table that was copied": (
        lambda lake: (
            shutil.copytree(lake.target, lake.folder / "copy"),
            made_anew(lake, (DAYS[0], 1), (DAYS[1], 3)),
            shutil.rmtree(lake.target),
            shutil.move(lake.folder / "copy", lake.target),
            lake.promote(DAYS[0], 1),
            lake.promote(DAYS[1], 3),
        ),
        [],
    ),
    "a restore after a deletion": (
        lambda lake: (lake.table.delete("id = 1"), lake.table.restore(2)),
        [],
    ),
    "a restore after an overwrite": (
        lambda lake: (
            write_deltalake(lake.target, rows(DAYS[0], 5), mode="overwrite"),
            lake.table.restore(2),
        ),
        [],
    ),
    "restores after a deletion and an update": (
        lambda lake: (
            lake.table.delete("id = 1"),
            lake.table.restore(2),
            lake.table.update({"id": "9"}),
            lake.table.restore(4),
        ),
        [],
    ),
    "a restore after a deletion by vectors": (deleted_by_vector, []),
    "a restore of what was deleted": (
        lambda lake: (lake.table.delete("id = 1"), lake.table.restore(2), lake.table.restore(3)),
        [(5, "foreign", "RESTORE by")],
    ),
    "a restore after an append and a deletion": (
        lambda lake: (append(lake), lake.table.delete("ds = '2026-01-02'"), lake.table.restore(2)),
        [],
    ),
    "a restore of what was before an append and a compaction": (
        lambda lake: (two_files(lake), lake.table.restore(2)),
        [],
    ),
    "another value for the partition of a file": (
        lambda lake: once_more(lake, partitionValues={"ds": "2026-01-09"}),
        [(3, "foreign", "SET by ann")],
    ),
    "another value for the partition of a file, as a move": (
        lambda lake: once_more(lake, is_replaced=True, partitionValues={"ds": "2026-01-09"}),
        [(3, "foreign", "SET by ann")],
    ),
    "another value for a partition in the commit of a gate": (
        with_other_partition_in_commit,
        [(2, "receipt", "its files differ from its receipt")],
    ),
    "a file that is added once more": (once_more, []),
    "a restore of what was before compactions": (
        lambda lake: (
            compacted(lake),
            lake.promote(DAYS[1], 7),
            lake.table.optimize.z_order(["id"]),
            lake.table.delete("id = 1"),
            lake.table.restore(5),
        ),
        [],
    ),
    "a restore of what a compaction wrote": (
        lambda lake: (
            lake.table.optimize.z_order(["id"]),
            lake.table.restore(2),
            lake.table.restore(3),
        ),
        [],
    ),
    "a type that was changed back": (
        lambda lake: (with_columns(lake, as_string), with_columns(lake, lambda column: None)),
        [],
    ),
    "names in files as they are": (lambda lake: with_columns(lake, mapped, **MAPPED), []),
    "a new column, and a promotion since": (
        lambda lake: (
            lake.table.alter.add_columns([Field("more", "string")]),
            lake.promote(DAYS[1], 5, more="x"),
        ),
        [],
    ),
    "a vacuum": (
        lambda lake: lake.table.vacuum(
            retention_hours=0, dry_run=False, enforce_retention_duration=False
        ),
        [],
    ),
    "a compaction": (compacted, []),
    "a deletion of what was compacted, which the gate repaired": (
        lambda lake: (compacted_then_deleted(lake), lake.promote(DAYS[0], 1, 2)),
        [],
    ),
    "a deletion that the gate repaired before the log begins": (
        lambda lake: (
            compacted_then_deleted(lake),
            lake.promote(DAYS[0], 1, 2),
            lake.promote(DAYS[1], 3, 4),
            without_the_log_of(lake),
        ),
        [],
    ),
    "a deletion in an odd slice that the gate repaired before the log begins": (
        lambda lake: (
            lake.promote("a b/c:%", 1),
            lake.table.delete("ds = 'a b/c:%'"),
            lake.promote("a b/c:%", 1, 2),
            without_the_log_of(lake),
        ),
        [],
    ),
    "a promotion after a deletion and a compaction before the log begins": (
        lambda lake: (
            compacted_then_deleted(lake),
            without_the_log_of(lake),
            lake.promote(DAYS[0], 1, 2),
            lake.promote(DAYS[1], 3, 4),
        ),
        [],
    ),
    "a property": (
        lambda lake: lake.table.alter.set_table_properties({"delta.appendOnly": "false"}),
        [],
    ),
    "a deletion that the gate repaired": (
        lambda lake: (lake.table.delete("ds = '2026-01-01'"), lake.promote(DAYS[0], 1, 2)),
        [],
    ),
    "a deletion of another date": (
        lambda lake: (lake.table.delete("ds = '2026-01-01'"), lake.promote(DAYS[1], 1, 2)),
        [(3, "foreign", "DELETE by .*files added: 0, removed: 1")],
    ),
    "a restored table that a gate replaced": (
        lambda lake: (lake.table.restore(0), lake.promote(DAYS[0], 1), lake.promote(DAYS[1], 1)),
        [],
    ),
    "an append that the gate replaced": (
        lambda lake: (append(lake), lake.promote(DAYS[0], 1, 2)),
        [],
    ),
    "a pruned store": (pruned, []),
    "another place": (
        lambda lake: (
            shutil.move(lake.target, lake.folder / "moved")
            and Path(lake.target).symlink_to(lake.folder / "moved")
        ),
        [],
    ),
}


@pytest.mark.few(16, apart=True)
@pytest.mark.parametrize("case", CASES)
def test_what_differs_is_named_with_its_version_and_author(lake: Lake, case: str) -> None:
    change, expected = CASES[case]
    change(lake)
    found = lake.verify().differences
    assert [(one.version, one.kind) for one in found] == [(at, kind) for at, kind, _ in expected]
    for one, (*_, text) in zip(found, expected, strict=True):
        assert re.search(text, one.problem), one.problem


def test_an_older_version_is_verified_by_itself(lake: Lake) -> None:
    append(lake)
    assert lake.verify(2).differences == () != lake.verify(3).differences


def test_a_receipt_shows_no_masked_value_of_a_folder_and_verifies_its_files(tmp_path: Path) -> None:
    lake, changed = (Lake(tmp_path / name, masked=("DS",)) for name in ("a", "b"))
    for one, day in product((lake, changed), (*DAYS, DAYS[1])):
        one.promote(day, 1)
    known = lake.receipts.values()
    assert [one.files for one in known if "ds=***/" not in one.files] == []
    assert [one.files for one in known if "2026-01" in one.files] == []
    assert lake.verify().differences == ()
    test_files_older_than_the_log_are_known_by_their_receipts(lake)
    lake.file().unlink()
    (gone,) = (one for one in lake.verify().differences if one.kind == "file")
    assert gone.problem.startswith("ds=***/")
    other_file(changed)
    assert "its files differ from its receipt" in str(changed.verify())


def test_files_older_than_the_log_are_known_by_their_receipts(lake: Lake) -> None:
    lake.table.create_checkpoint()
    append(lake)
    for version in (0, 1):
        lake.commit(version)[0].unlink()
    assert [one.kind for one in lake.verify().differences] == ["foreign"]
    assert lake.verify(2).differences == ()
    lake.table.create_checkpoint()
    for version in (2, 3):
        lake.commit(version)[0].unlink()
    (unknown,) = lake.verify().differences
    assert unknown.kind == "unknown"
    assert "older than the log" in unknown.problem


def pem(folder: Path, name: str, algorithm: str = "ed25519") -> tuple[str, str]:
    """The paths of a new private and public key, made as the docs say."""
    private, public = str(folder / f"{name}.pem"), str(folder / f"{name}.pub")
    for command in (
        ("genpkey", "-algorithm", algorithm, "-out", private),
        ("pkey", "-in", private, "-pubout", "-out", public),
    ):
        subprocess.run(["openssl", *command], check=True)
    return private, public


def test_signatures_hold_for_their_key_and_no_other(tmp_path: Path) -> None:
    (private, public), (_, other) = pem(tmp_path, "own"), pem(tmp_path, "other")
    lake = Lake(tmp_path, signing_key({"DQX_RECEIPT_KEY": private}))
    lake.promote(DAYS[0], 1)
    for key in (None, public):
        assert lake.verify(key=key).differences == ()
    (wrong,) = lake.verify(key=other).differences
    assert wrong.problem.endswith("the signature of its receipt is wrong")
    made = subprocess.run(
        ["openssl", "pkey", "-pubin", "-in", public, "-outform", "DER"],
        check=True,
        capture_output=True,
    )
    fingerprint = hashlib.sha256(made.stdout).hexdigest()
    assert str(lake.verify()).endswith(f", signed by key {fingerprint[:16]}")
    assert lake.verify().signed_by == {fingerprint: 1}
    lake.change_receipt(0, signature="00" * 64)
    assert len(lake.verify().differences) == 1
    DeltaTable(f"{lake.root}/receipts").update(updates={"signature": "NULL"})
    assert str(lake.verify()).endswith(", not signed")
    lake.key = None
    lake.promote(DAYS[0], 1)
    (missing,) = lake.verify(key=public).differences
    assert missing.problem.endswith("its receipt is not signed")


def test_a_key_that_cannot_be_used_stops_before_anything_is_promoted(tmp_path: Path) -> None:
    assert signing_key({}) is None
    (tmp_path / "odd.pem").write_text("odd")
    for path in (
        str(tmp_path / "none.pem"),
        str(tmp_path / "odd.pem"),
        pem(tmp_path, "x", "x25519")[0],
    ):
        with pytest.raises(RequestError, match=f"{path} is not a usable Ed25519PrivateKey"):
            signing_key({"DQX_RECEIPT_KEY": path})


@pytest.mark.more
@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (
            lambda lake: lake.table.alter.set_table_properties({"delta.appendOnly": "false"}),
            "note: version 3: SET TBLPROPERTIES by an unknown user .*: changes delta.appendOnly",
        ),
        (
            lambda lake: commits(lake, protocol={"minReaderVersion": 1, "minWriterVersion": 4}),
            "note: version 3: SET by ann .*: changes the protocol to .*4",
        ),
    ],
)
def test_what_changes_no_row_is_a_note_until_a_gate_promotes(
    lake: Lake, change: Callable[[Lake], object], expected: str
) -> None:
    change(lake)
    found = lake.verify()
    assert found.differences == ()
    assert re.search(expected, str(found)), str(found)
    lake.promote(DAYS[0], 1)
    assert lake.verify().notes == ()


def test_an_older_version_is_whole_even_if_newer_ones_are_lost(lake: Lake) -> None:
    without_newest(lake)
    assert lake.verify(0).differences == () != lake.verify(1).differences


def test_receipts_signed_again_with_another_key_show_it(tmp_path: Path) -> None:
    keys = [signing_key({"DQX_RECEIPT_KEY": pem(tmp_path, name)[0]}) for name in ("own", "other")]
    lake = Lake(tmp_path, keys[0])
    lake.promote(DAYS[0], 1)
    lake.key = keys[1]
    lake.promote(DAYS[1], 1)
    found = lake.verify()
    assert found.differences == ()
    assert [*found.signed_by.values()] == [1, 1]
    assert "keys of the receipts: " in str(found)
    assert str(found).count(" (1)") == 2


@pytest.mark.parametrize("path", ["", " "])
def test_no_key_is_not_an_empty_one(lake: Lake, path: str) -> None:
    with pytest.raises(RequestError, match="public_key is empty"):
        lake.verify(key=path)
    with pytest.raises(RequestError, match="DQX_RECEIPT_KEY is empty"):
        signing_key({"DQX_RECEIPT_KEY": path})


class TestTheCommand:
    def run(self, lake: Lake, *words: str) -> tuple[int, str]:
        done = dql("tables", "verify", *words, "--results-root", lake.root)
        return done.returncode, done.output

    def test_it_ends_with_0_or_1_and_says_why(self, lake: Lake) -> None:
        code, text = self.run(lake, lake.target)
        assert code == 0
        assert text == (
            f"{lake.target}, version 2, is what gates passed\n"
            "  last promotion: version 2, gate etl.check, not signed\n"
        )
        append(lake)
        code, text = self.run(lake, lake.target)
        assert code == 1
        assert f"{lake.target}, version 3, differs from what gates passed" in text
        assert "version 3, foreign: WRITE by" in text
        assert self.run(lake, f"{lake.target}@2")[0] == 0
        code, text = self.run(lake, lake.target, "--format", "json")
        assert code == 1
        assert json.loads(text)["differences"][0]["kind"] == "foreign"

    def test_the_author_of_a_commit_cannot_control_the_terminal(self, lake: Lake) -> None:
        def rename(action: dict[str, Any]) -> None:
            if "commitInfo" in action:
                action["commitInfo"]["userName"] = "ann\n  \x1b[2Jversion 3, fine"

        append(lake)
        rewrite_commit(lake, 3, rename)
        assert len(str(lake.verify()).splitlines()) == 3
        assert "\x1b" not in str(lake.verify())

    @pytest.mark.few(2)
    @pytest.mark.parametrize(
        ("table", "message"),
        [
            ("sales.orders", "DESCRIBE DETAIL shows the path of a catalog"),
            ("./nothing", "./nothing cannot be verified"),
            ("{target}@77", "has no such version"),
            ("{target}@" + "9" * 30, "has no such version"),
            ("{target} --public-key none.pub", "none.pub is not a usable Ed25519PublicKey"),
        ],
    )
    def test_what_is_no_table_ends_with_2(self, lake: Lake, table: str, message: str) -> None:
        code, text = self.run(lake, *table.replace("{target}", lake.target).split())
        assert code == 2, text
        assert message in text

    def test_a_store_that_is_not_there_is_no_proof(self, lake: Lake) -> None:
        done = dql("tables", "verify", lake.target, "--results-root", f"{lake.root}s")
        assert done.returncode == 2
        assert f"no results under {lake.root}s" in done.output
