"""Whether a version of a table is what gates passed, by the receipts of their promotions.

The log is followed commit by commit. The files that gates passed are compared with those that are
there: a foreign commit may take one away, add another, or bring one back. Only the log is read, and
the sizes of the files: the rows are not.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from dqx_airflow.datasets import delta_log
from dqx_airflow.datasets.delta_log import log_files
from dqx_airflow.datasets.locations import is_same_place, is_table
from dqx_airflow.diagnostics.renderers import printable
from dqx_airflow.errors import RequestError, first_line
from dqx_airflow.results import schema
from dqx_airflow.results.query import StoredResults, is_in
from dqx_airflow.results.receipts import (
    COLUMNS,
    MASKED,
    RECEIPT,
    RUN_ID,
    Key,
    Receipt,
    TableCommit,
    columns_in,
    columns_of,
    commits_in,
    identity_of,
    is_same_file,
    key_at,
    receipts_of,
    shown_path,
)
from dqx_airflow.results.report_rows import digest_of

_SLICE, _WHOLE_TABLE = "dqx_slice", "{}"
_RELEASED_BY = "dqx_released_by"
"""The entry of a release from a quarantine, which adds rows, and replaces none."""
_TARGETS = """SELECT DISTINCT "table_id",
    regexp_match("statement", '"target":("(?:[^"\\\\]|\\\\.)*")')[1] AS "target"
    FROM stored"""
"""Selects the promotion targets in all receipts, as JSON strings, with the ids of their tables."""


@dataclass(frozen=True, slots=True, order=True)
class Difference:
    """A difference between a version of a table and the data that gates passed, or a note.

    `version` is the version of the commit or receipt that is responsible. `kind` is `foreign`,
    `receipt`, `blocked`, `columns`, `unknown`, `lost`, `file` or, for a note, `metadata`.
    """

    version: int
    kind: str
    problem: str


@dataclass(frozen=True, slots=True)
class Verification:
    """The result of comparing a version of a table with the receipts of its promotions.

    `last` is the statement of the last promotion up to this version, with its version and key; None
    without one. `differences` are rows, files and columns that no gate passed. `notes` are changes
    since the last promotion that affect no rows. `signed_by` maps the fingerprint of each key to
    the number of receipts that it signed.
    """

    table: str
    version: int
    last: Mapping[str, Any] | None
    differences: tuple[Difference, ...]
    notes: tuple[Difference, ...] = ()
    signed_by: Mapping[str, int] = field(default_factory=dict)

    def __str__(self) -> str:
        is_what = "differs from" if self.differences else "is"
        lines = [f"{self.table}, version {self.version}, {is_what} what gates passed"]
        lines += [f"version {one.version}, {one.kind}: {one.problem}" for one in self.differences]
        lines += [f"note: version {one.version}: {one.problem}" for one in self.notes]
        if (last := self.last) is not None:
            by = f"gate {last.get('dqx_gate')}"
            if "dqx_accepted_by" in last:
                by += f", accepted by {last['dqx_accepted_by']}"
            by += f", {_signed_by(last['fingerprint'])}"
            lines.append(f"last promotion: version {last['version']}, {by}")
        if len(self.signed_by) > 1:
            keys = (f"{key[:16]} ({count})" for key, count in self.signed_by.items())
            lines.append(f"keys of the receipts: {', '.join(keys)}")
        return "\n  ".join(map(printable, lines))


def _signed_by(fingerprint: str | None) -> str:
    return "not signed" if fingerprint is None else f"signed by key {fingerprint[:16]}"


def verify_table(
    results: StoredResults, location: str, version: int | None = None, public_key: str | None = None
) -> Verification:
    """Compares a version of a Delta table with the receipts of its promotions.

    :param location: the path or URI of a Delta table, with the storage options of the results.
    :param version: by default the newest.
    :param public_key: the path of the key that must have signed all receipts.
    :raises RequestError: the table, the version or the key does not exist, or cannot be read.
    :raises StoreError: there is no store, or it cannot be read.
    """
    options = dict(results.storage_options or {})
    key = None if public_key is None else key_at(public_key, "Ed25519PublicKey", "public_key")
    try:
        table = DeltaTable(location, storage_options=options)
        newest = int(table.version())
        version = newest if version is None else version
        if not 0 <= version <= newest:
            raise RequestError(f"{location} has no such version", f"its newest is {newest}")
        table.load_as_version(version)
        delta_log.require_whole_commits(location, version, options)
        receipts = _all_receipts(results, table)
        if not receipts:
            results.require_some()
        log = log_files(location, version, options)
        first = 1 + next(at for at in range(version, -2, -1) if at not in log.commits)
        walk = _Walk(receipts, str(table.metadata().id), version, key)
        if first > 0:  # the log no longer has the commits before
            start = first - 1 if log.start == first else first
            walk.start(DeltaTable(location, start, storage_options=options))
            first = start + 1
        commits = [*commits_in(log, range(first, version + 1))]
        walk.match(commits, first)
        for commit in commits:
            walk.follow(commit)
        if version == newest:
            walk.lose_the_rest()
        paths = sorted(path for path in walk.files if "://" not in path)
        found = delta_log.table_files(location, options).get_file_info(paths) if paths else []
    except (DeltaError, OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        advice = "give the path of a Delta table; DESCRIBE DETAIL shows the path of a catalog's"
        raise RequestError(f"{location} cannot be verified: {first_line(error)}", advice) from error
    faults = {file.fault for file in (*walk.files.values(), *walk.lost.values())}
    for path, info in zip(paths, found, strict=True):
        if info.size != (size := walk.files[path].size):
            is_now = f"has {info.size} bytes, not {size}" if info.is_file else "is gone"
            faults.add(Difference(version, "file", f"{walk.shown(path)} {is_now}"))
    faults.add(walk.fault_of_columns(version, [column.name for column in table.schema().fields]))
    return Verification(
        location,
        version,
        walk.about_the_last,
        tuple(sorted(filter(None, faults))),
        tuple(walk.notes),
        walk.signed_by,
    )


def _all_receipts(results: StoredResults, table: DeltaTable) -> tuple[Receipt, ...]:
    """The receipts of a table and of earlier tables at the same location, oldest first."""
    table_id = str(table.metadata().id)
    own = receipts_of(results, table_id)
    stored = results.table(schema.RECEIPTS)
    if stored is None:
        return own
    named = {one.entries.get("target") for one in own}
    tables = [place for place in named if isinstance(place, str) and is_table(place)]
    others = set()
    for row in results.rows(_TARGETS, stored=stored):
        place = json.loads(row["target"] or "null")
        if row["table_id"] == table_id or not place:
            continue
        if is_table(place):
            is_here = any(is_same_place(place, name) for name in tables)
        else:
            is_here = is_same_place(place, str(table.table_uri))
        if is_here:
            others.add(row["table_id"])
    if not others:
        return own
    rows = results.whole_rows(schema.RECEIPTS, [is_in("table_id", others)])
    earlier = map(Receipt.from_row, rows)
    # A table of a catalog that was renamed has made room for another one.
    began = min((one.written_at for one in own), default=None)
    before = [
        one
        for one in earlier
        if began is None or one.written_at < began or not is_table(str(one.entries.get("target")))
    ]
    return tuple(sorted((*own, *before), key=lambda one: (one.written_at, one.version)))


@dataclass(frozen=True, slots=True)
class _File:
    """A data file of a version, and the difference that it causes, if any.

    `identity` is the result of `identity_of`. `region` is the slice that the gate replaces together
    with the file; None if it may have rows of other slices. `columns` describes how its columns
    were read when a gate passed it.
    """

    identity: list[Any]
    region: str | None = None
    fault: Difference | None = None
    columns: Mapping[str, Any] = field(default_factory=dict)

    @property
    def size(self) -> int:
        return int(self.identity[0])

    def is_replaced(self, by: Mapping[str, Any]) -> bool:
        """Whether a promotion with these entries replaces this file."""
        return _RELEASED_BY not in by and by.get(_SLICE) in (_WHOLE_TABLE, self.region)


@dataclass(frozen=True, slots=True)
class _About:
    """The columns, properties and protocol of a table, as its Delta log declares them.

    `columns` describes how each column is read; None before the first commit. `protocol` is None
    until a commit declares it."""

    columns: Mapping[str, Any] | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    protocol: Mapping[str, Any] | None = None

    @classmethod
    def of(cls, table: DeltaTable) -> _About:
        """Returns the columns and properties of a table in its loaded version."""
        return cls(columns_of(table), table.metadata().configuration)

    def after(self, commit: TableCommit) -> _About:
        """Returns the columns, properties and protocol after a commit."""
        columns = self.columns
        settings = self.settings
        protocol = self.protocol
        if (metadata := commit.metadata) is not None:
            settings = metadata.get("configuration") or {}
            partitions = metadata.get("partitionColumns") or ()
            columns = columns_in(json.loads(metadata["schemaString"]), partitions, settings)
        if commit.protocol is not None:
            protocol = {name: value for name, value in commit.protocol.items() if value}
        return _About(columns, settings, protocol)


@dataclass(frozen=True, slots=True)
class _Move:
    """Files that were rewritten without a change of rows: before and after, by their paths."""

    before: Mapping[str, _File]
    after: Mapping[str, _File]


@dataclass(slots=True)
class _Walk:
    """The files of a table, followed from commit to commit.

    `lost` are files that gates passed and that are missing, with the difference, by their shown
    paths; and promotions that are missing from the log, by the digests of their receipts.
    `of_commits` are the receipts of the commits in the log, by version; `pending` are receipts
    without a commit, oldest first.
    """

    receipts: Sequence[Receipt]
    table_id: str
    version: int
    key: Key | None
    files: dict[str, _File] = field(default_factory=dict)
    lost: dict[str, _File] = field(default_factory=dict)
    moves: list[_Move] = field(default_factory=list)
    of_commits: dict[int, Receipt] = field(default_factory=dict)
    pending: list[Receipt] = field(default_factory=list)
    counted: list[Receipt] = field(default_factory=list)
    about: _About = field(default_factory=_About)
    changed: Difference | None = None
    notes: list[Difference] = field(default_factory=list)
    masked: frozenset[str] = frozenset()
    digests: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        columns = (name for one in self.receipts for name in one.entries.get(MASKED, ()))
        self.masked = frozenset(columns)
        self.digests = frozenset(one.digest for one in self.receipts)

    @property
    def last(self) -> Receipt | None:
        """The receipt of the last promotion."""
        return max(self.counted, key=lambda one: one.version, default=None)

    @property
    def about_the_last(self) -> dict[str, Any] | None:
        """The statement of the last promotion, with its version and its key."""
        last = self.last
        if last is None:
            return None
        key = last.public_key if last.signature is not None else None
        about = {"version": last.version, "public_key": key, "fingerprint": last.fingerprint}
        return {**about, **last.entries}

    @property
    def signed_by(self) -> dict[str, int]:
        """The number of receipts of each key, by its fingerprint."""
        numbers: dict[str, int] = {}
        for one in self.counted:
            if one.fingerprint is not None:
                numbers[one.fingerprint] = numbers.get(one.fingerprint, 0) + 1
        return numbers

    def shown(self, path: str) -> str:
        """A path without values of columns that any receipt hides."""
        return shown_path(path, self.masked)

    def start(self, table: DeltaTable) -> None:
        """Begins at a version whose commits the log no longer has, by the receipts of these."""
        at = int(table.version())
        passed = dict[str, _File]()
        earlier = [one for one in self.receipts if one.version <= at]
        put_back = _put_back([one for one in earlier if one.table_id == self.table_id])
        for one in earlier:
            if one.digest in put_back or one.table_id != self.table_id:
                self._lose(one)
                continue
            self.counted.append(one)
            if self._fault_of(one) is None:
                listed = one.listed
                entries = one.entries
                self._replace_lost(entries)
                passed = {
                    path: file for path, file in passed.items() if not file.is_replaced(entries)
                }
                for path in listed.get("removed", ()):
                    passed.pop(self.shown(path), None)
                for path, identity in listed.get("added", {}).items():
                    parts = (unquote(part) for part in path.split("/") if "=" in part)
                    within = dict(part.split("=", 1) for part in parts)
                    region = _region_of(path, within, [entries.get(_SLICE)])
                    columns = listed.get(COLUMNS, {})
                    passed[self.shown(path)] = _File(identity, region, columns=columns)
        self.about = _About.of(table)
        why = "files are older than the log of the table, and in no receipt"
        unknown = Difference(at, "unknown", why)
        for action in pa.table(table.get_add_actions(flatten=True)).to_pylist():
            path = unquote(action["path"])
            size = action["size_bytes"]
            known = passed.pop(self.shown(path), None)
            other = _File([size, action["modification_time"], None], fault=unknown)
            self.files[path] = known if known is not None and known.size == size else other
        gone = Difference(at, "unknown", "files of receipts were removed before the log begins")
        self.lost |= {path: replace(file, fault=gone) for path, file in passed.items()}

    def match(self, commits: Sequence[TableCommit], first: int) -> None:
        """Finds the receipt of each commit of the log, from version `first` on.

        It is the receipt whose digest the commit contains. Without one, it is the changed receipt
        with the same run or the same files."""
        by_version: dict[int, list[Receipt]] = {}
        for one in self.receipts:
            by_version.setdefault(one.version, []).append(one)
        for commit in commits:
            found = sorted(by_version.get(commit.version, ()), key=lambda one: _fit(one, commit))
            if found and _fit(found[-1], commit) > 0:
                self.of_commits[commit.version] = found[-1]
        chosen = {one.digest for one in self.of_commits.values()}
        self.pending = [
            one for one in self.receipts if one.version >= first and one.digest not in chosen
        ]

    def follow(self, commit: TableCommit) -> None:
        """Applies a commit."""
        receipt = self.of_commits.get(commit.version)
        if receipt is not None:
            self.counted.append(receipt)
            earlier = [one for one in self.pending if one.written_at < receipt.written_at]
            for one in earlier:
                self._lose(one)
                self.pending.remove(one)
        about = self.about.after(commit)
        fault = self._fault_in(commit, receipt, about)
        if fault is not None:
            self._compare(commit, about)
        self.about = about
        removed = {path: self.files.pop(path) for path in commit.removed if path in self.files}
        if fault is None:
            self._promote(commit, removed)
        elif _has_moved(commit, removed):
            self._move(commit, removed)
        else:
            self._change(commit, removed, fault)

    def lose_the_rest(self) -> None:
        """Ends at the newest version: what the log does not have was promoted in vain."""
        for one in self.pending:
            self._lose(one)
        self.pending = []

    def _lose(self, receipt: Receipt) -> None:
        """Notes a promotion that is not in the log, unless its files are there all the same."""
        entries = receipt.entries
        listed = receipt.listed
        if entries.get("dqx_outcome") == "blocked":
            return
        self._replace_lost(entries)
        there = {self.shown(path): file for path, file in self.files.items()}
        added = listed.get("added", {})
        is_there = all(
            path in there and is_same_file(there[path].identity, added[path]) for path in added
        )
        if is_there and not any(path in there for path in listed.get("removed", ())):
            return
        judged = entries.get("judged") or [{}]
        who = judged[0].get("run_key") or entries.get("dqx_gate") or receipt.run_id
        why = "the log has another commit of this version"
        if receipt.table_id != self.table_id:
            why = "the table was created again since"
        elif receipt.version > self.version:
            why = f"the log ends at version {self.version}"
        problem = f"the promotion of {who} is not in the table: {why}; run the gate again"
        gone = Difference(receipt.version, "lost", f"{problem} for its date")
        self.lost[receipt.digest] = _File([0, None, None], entries.get(_SLICE), gone)

    def _replace_lost(self, entries: Mapping[str, Any]) -> None:
        """Removes the lost files that a promotion with these entries replaces."""
        lost = self.lost.items()
        self.lost = {path: file for path, file in lost if not file.is_replaced(entries)}

    def _promote(self, commit: TableCommit, removed: Mapping[str, _File]) -> None:
        """Applies a commit that a gate passed."""
        self._replace_lost(commit.info)
        self.notes.clear()
        inherited = next((file.fault for file in removed.values() if file.fault), None)
        for path, add in commit.added.items():
            values = add.get("partitionValues") or {}
            region = _region_of(path, values, [commit.info.get(_SLICE)])
            fault = None if region else inherited
            columns = self.about.columns or {}
            self.files[path] = _File(identity_of(add), region, fault, columns)

    def _move(self, commit: TableCommit, removed: Mapping[str, _File]) -> None:
        """Applies a commit that writes the same rows into other files."""
        inherited = next((file.fault for file in removed.values() if file.fault), None)
        if inherited is not None:  # a later commit may bring back those that gates passed
            passed = {path: file for path, file in removed.items() if file.fault is None}
            lost = {self.shown(path): replace(one, fault=inherited) for path, one in passed.items()}
            self.lost |= lost
        regions = {file.region for file in removed.values()}
        columns: dict[str, Any] = {}
        for file in removed.values():
            columns |= file.columns
        for path, add in commit.added.items():
            values = add.get("partitionValues") or {}
            region = None if inherited else _region_of(path, values, regions)
            self.files[path] = _File(identity_of(add), region, inherited, columns)
        if inherited is None:
            after = {self.shown(path): self.files[path] for path in commit.added}
            before = {self.shown(path): file for path, file in removed.items()}
            self.moves.append(_Move(before, after))

    def _change(self, commit: TableCommit, removed: Mapping[str, _File], fault: Difference) -> None:
        """Applies a commit that no gate passed. Files that it restores count as passed again."""
        for path, file in removed.items():
            if file.fault is None:
                self.lost[self.shown(path)] = replace(file, fault=fault)
        again = 0
        for path, add in commit.added.items():
            known = self.files.get(path)
            if known is None or not is_same_file(known.identity, identity_of(add)):
                self.files[path] = _File(identity_of(add), fault=fault)
            else:
                again += 1
        if again > 0:
            why = f"adds {again} files once more: readers skip rows by their new statistics"
            self.notes.append(_made_by(commit, "metadata", why))
        self._find_again()
        if self.moves and commit.added:
            self._exchange([*reversed(self.moves)])
            self._exchange([_Move(one.after, one.before) for one in self.moves])

    def _find_again(self) -> None:
        """Counts files that were lost and have come back as passed."""
        for path, file in self.files.items():
            if file.fault is None:
                continue
            known = self.lost.get(self.shown(path))
            if known is not None and is_same_file(known.identity, file.identity):
                del self.lost[self.shown(path)]
                self.files[path] = replace(known, fault=None)

    def _exchange(self, moves: Iterable[_Move]) -> None:
        """Finds lost files that have come back as the files from before some moves, which have the
        same rows."""
        lost = dict(self.lost)
        for move in moves:
            if move.after.keys() <= lost.keys():
                faults = [lost.pop(path).fault for path in move.after]
                lost |= {path: replace(file, fault=faults[0]) for path, file in move.before.items()}
        others = lost.keys() - self.lost.keys()
        there = {self.shown(path): file for path, file in self.files.items()}
        if others and all(
            path in there and is_same_file(there[path].identity, lost[path].identity)
            for path in others
        ):
            self.lost = lost
            self._find_again()

    def _compare(self, commit: TableCommit, about: _About) -> None:
        """Notes what a commit that no gate passed changes about the table itself."""
        before = self.about
        if before.columns is None:
            return
        if about.columns != before.columns:
            changes = "; ".join(_changes(before.columns, about.columns or {}))
            self.changed = _made_by(commit, "columns", changes)
        elif about.settings != before.settings:
            names = {*before.settings, *about.settings}
            changed = (n for n in sorted(names) if before.settings.get(n) != about.settings.get(n))
            self.notes.append(_made_by(commit, "metadata", f"changes {', '.join(changed)}"))
        if before.protocol is not None and about.protocol != before.protocol:
            now = json.dumps(about.protocol, sort_keys=True)
            self.notes.append(_made_by(commit, "metadata", f"changes the protocol to {now}"))

    def fault_of_columns(self, version: int, names: Sequence[str]) -> Difference | None:
        """The difference between the columns of a version and the columns that gates passed; None
        if they are equal."""
        last = self.last
        if last is None:
            return None
        now = self.about.columns or {}
        passed = [file.columns for file in self.files.values() if file.fault is None]
        is_read_otherwise = any(
            now.get(name) != read_as for columns in passed for name, read_as in columns.items()
        )
        if not is_read_otherwise and last.entries.get(COLUMNS) == [*names]:
            return None
        why = f"other columns than the promotion in version {last.version}"
        if self.changed is None:
            return Difference(version, "columns", why)
        return replace(self.changed, problem=f"{self.changed.problem}: {why}")

    def _fault_in(
        self, commit: TableCommit, receipt: Receipt | None, about: _About
    ) -> Difference | None:
        """The difference of a commit whose files no gate passed; None if a gate passed them."""
        if not commit.is_of_gate:
            numbers = f"files added: {len(commit.added)}, removed: {len(commit.removed)}"
            return _made_by(commit, "foreign", f"{numbers}; no gate passed that")
        if commit.info.get("dqx_outcome") == "blocked":
            return _made_by(commit, "blocked", "it was blocked, and promoted although blocked")
        if receipt is None:
            why = (
                "there is no receipt; run the gate again for its date, unless another store has it"
            )
            return _made_by(commit, "receipt", why)
        entries = receipt.entries
        own = {key: one for key, one in entries.items() if key.startswith("dqx_")}
        own[RECEIPT] = digest_of(receipt.statement)
        columns = about.columns if COLUMNS in receipt.listed else None
        fault = self._fault_of(receipt)
        if own != {key: commit.info.get(key) for key in own}:
            fault = "its entries differ from its receipt"
        elif receipt.files != commit.files(entries.get(MASKED, ()), columns):
            fault = "its files differ from its receipt"
        return _made_by(commit, "receipt", fault) if fault else None

    def _fault_of(self, receipt: Receipt) -> str | None:
        """The defect of a receipt: its predecessor is missing, or it is unsigned or has a wrong
        signature; None if it has none."""
        if (before := receipt.entries.get("previous")) and str(before) not in self.digests:
            return "the receipt before its own is missing, or was changed"
        if receipt.signature is None:
            return None if self.key is None else "its receipt is not signed"
        return None if receipt.is_signed(self.key) else "the signature of its receipt is wrong"


def _fit(receipt: Receipt, commit: TableCommit) -> int:
    """How well a receipt matches a commit of its version, from 3 (by digest) to 0 (not at all)."""
    if digest_of(receipt.statement) == commit.info.get(RECEIPT):
        return 3
    if receipt.run_id == commit.info.get(RUN_ID):
        return 2
    masked = receipt.entries.get(MASKED, ())
    listed = receipt.listed
    return int(json.loads(commit.files(masked, listed.get(COLUMNS))) == listed)


def _has_moved(commit: TableCommit, removed: Mapping[str, _File]) -> bool:
    """Whether a commit that no gate passed writes the same rows into other files.

    :param removed: the files that the commit removes.
    """
    if not commit.is_move or commit.is_of_gate or not removed or not commit.added:
        return False
    # A file that stays has its rows; the log has new values for its partition, or statistics.
    return removed.keys().isdisjoint(commit.added)


def _put_back(receipts: Iterable[Receipt]) -> set[str]:
    """The digests of receipts whose versions were undone when the table was restored to an older
    version: later receipts have the same versions again.

    :param receipts: the receipts of a table, in the order in which they were written.
    """
    found: set[str] = set()
    now: dict[int, Receipt] = {}
    for one in receipts:
        if one.version in now:
            gone = [version for version in now if version >= one.version]
            found |= {now.pop(version).digest for version in gone}
        now[one.version] = one
    return found


def _made_by(commit: TableCommit, kind: str, problem: str) -> Difference:
    """The difference that a commit makes; the problem names the operation and the author."""
    info = commit.info
    user = info.get("userName") or info.get("userId") or "an unknown user"
    by = f"{user} ({info.get('engineInfo') or 'unknown engine'})"
    by = f"gate {info.get('dqx_gate')}" if commit.is_of_gate else by
    return Difference(commit.version, kind, f"{info.get('operation')} by {by}: {problem}")


def _changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    """Describes the changes in the columns of a table: one text for each column."""
    for name, read_as in before.items():
        if name not in after:
            yield f"column {name} is gone"
        elif after[name] != read_as:
            yield f"column {name} is {_written(after[name])}, was {_written(read_as)}"
    for name in after:
        if name not in before:
            yield f"column {name} is new"
    if [*before] != [*after] and before.keys() == after.keys():
        yield "the columns are in another order"


def _written(read_as: Mapping[str, Any]) -> str:
    kind = read_as["type"]
    text = kind if isinstance(kind, str) else json.dumps(kind)
    if "file" in read_as:
        text += f" (in files {read_as['file']})"
    return f"{text}, a partition" if "in" in read_as else text


def _region_of(path: str, values: Mapping[str, Any], regions: Iterable[str | None]) -> str | None:
    """The first region that contains all rows of a file, by the file's partition; None without one.

    :param values: the partition values of the file.
    :param regions: the slice that a gate promoted, or the regions of the files that were merged.
    """

    def is_in(region: str) -> bool:
        bounds = json.loads(region).items()
        return "/rows/" in path or all(values.get(name) == at for name, at in bounds)

    return next((one for one in regions if one is not None and is_in(one)), None)
