"""Receipts of promotions, and whether a version of a table is what gates passed.

A commit carries the digest of what was known before it, the statement: the rules, the verdicts, who
accepted what. The receipt, written after it, adds the version and the files. Each names the one
before it of the same table, so that none can be taken away, and may be signed (RFC 8032, Ed25519).
Only the log is read, and the sizes of the files: the rows are not.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import unquote

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from dqx_airflow import __version__
from dqx_airflow.datasets import delta_log
from dqx_airflow.datasets.delta_log import log_files
from dqx_airflow.diagnostics.renderers import printable
from dqx_airflow.errors import RequestError, first_line
from dqx_airflow.plan.masks import without_folders
from dqx_airflow.results import schema
from dqx_airflow.results.query import StoredResults, equals
from dqx_airflow.results.schema import digest_of, digests_of
from dqx_airflow.values import GateRequest, Verdict

Key: TypeAlias = Any
"""An Ed25519 key of the package cryptography, which is imported only if there is one."""
KEY = "DQX_RECEIPT_KEY"
"""The environment variable of a driver with the path of the private key that signs receipts."""
RECEIPT = "dqx_receipt"
"""The entry of a commit with the digest of its statement."""
MASKED = "masked"
"""The entry of a statement with the columns whose values the receipt must not show."""
_RUN_ID, _SLICE, _WHOLE_TABLE = "dqx_run_id", "dqx_slice", "{}"
_RELEASED_BY = "dqx_released_by"
"""The entry of a release from a quarantine, which adds rows, and replaces none."""
_RECENT = 50
"""The commit that a gate has just made is among at most these newest ones."""
_OF_VERDICTS = ("check", "name", "status", "severity", "let_by", "waived_by", "accepted_by")


def _canonical(value: object) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), default=str)


@dataclass(frozen=True, slots=True)
class Receipt:
    """A row of the table `receipts`."""

    run_id: str
    table_id: str
    version: int
    statement: str
    files: str
    signature: str | None = None
    public_key: str | None = None
    written_at: datetime = field(default_factory=lambda: datetime.now(timezone.utc))

    @property
    def digest(self) -> str:
        """What the next receipt and the signature name."""
        return digest_of(_canonical([self.table_id, self.version, self.statement, self.files]))

    @property
    def said(self) -> dict[str, Any]:
        """The statement; empty if it was changed into something else."""
        return dict(json.loads(self.statement)) if self.statement.startswith("{") else {}

    def signed(self, key: Key) -> Receipt:
        public = key.public_key().public_bytes_raw().hex()
        return replace(self, signature=key.sign(self.digest.encode()).hex(), public_key=public)

    def is_signed(self, key: Key | None) -> bool:
        """:param key: the key that must have signed it; None for the one that it names."""
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

        try:
            key = key or Ed25519PublicKey.from_public_bytes(bytes.fromhex(self.public_key or ""))
            key.verify(bytes.fromhex(self.signature or ""), self.digest.encode())
        except (InvalidSignature, ValueError):
            return False
        return True


def receipts_of(
    results: StoredResults, table: DeltaTable, order: str = 'ORDER BY "version"'
) -> dict[int, Receipt]:
    """The receipts of a table by the versions that they are about, by default the first one first.

    :raises StoreError: the store cannot be read.
    """
    where = [equals("table_id", str(table.metadata().id))]
    found = results.read(Receipt, schema.RECEIPTS, where, order)
    return {receipt.version: receipt for receipt in found}


@dataclass(frozen=True)
class ReceiptWriter:
    """Writes the receipts of rows that are promoted together.

    :param key: signs them.
    :param judged: each request, with the final verdicts on it.
    """

    results: StoredResults
    key: Key | None
    judged: Sequence[tuple[GateRequest, Sequence[Verdict]]] = ()

    def statement(self, facts: Mapping[str, Any], table: DeltaTable | None) -> str:
        """What a receipt says before its commit.

        :param facts: where the rows come from and go to.
        :param table: the target; None before its first version.
        :raises StoreError: the receipts before it cannot be read.
        """
        last = 'ORDER BY "version" DESC LIMIT 1'
        before = {} if table is None else receipts_of(self.results, table, last)
        judged = [
            {
                "run_key": str(request.run_key),
                "sources": {one.file: one.digest for one in digests_of(request.sources)},
                "contract": request.contract and [request.contract.id, request.contract.version],
                "verdicts": [{key: getattr(one, key) for key in _OF_VERDICTS} for one in verdicts],
            }
            for request, verdicts in self.judged
        ]
        previous = next((receipt.digest for receipt in before.values()), None)
        engine = f"dqx_airflow {__version__}"
        return _canonical({**facts, "engine": engine, "judged": judged, "previous": previous})

    def write(self, statement: str, table: DeltaTable) -> None:
        """Writes the receipt of a commit, signed if there is a key.

        :param table: the target in its newest version.
        :raises OSError: its log cannot be read.
        :raises ValueError: no commit names the statement.
        :raises StoreError: the store cannot be written.
        """
        log, named = log_files(table.table_uri, int(table.version())), digest_of(statement)
        commits = _commits(log, sorted(log.commits)[-_RECENT:])
        commit = next((one for one in commits if one.info.get(RECEIPT) == named), None)
        if commit is None:
            raise ValueError("the commit that a receipt is about cannot be found")
        said, table_id = json.loads(statement), str(table.metadata().id)
        files = commit.files(said[MASKED])
        receipt = Receipt(said[_RUN_ID], table_id, commit.version, statement, files)
        receipt = receipt.signed(self.key) if self.key is not None else receipt
        self.results.write(schema.RECEIPTS, {named: receipt})


def signing_key(environment: Mapping[str, str] = os.environ) -> Key | None:
    """The key that signs receipts; None if there is none.

    :raises RequestError: it cannot be used.
    """
    return _key_at(environment.get(KEY), "Ed25519PrivateKey")


def _key_at(path: str | None, kind: str) -> Key | None:
    """A key in a file in the form PEM; None for no path.

    :param kind: `Ed25519PrivateKey` or `Ed25519PublicKey`.
    :raises RequestError: the file does not contain such a key.
    """
    if not path:
        return None
    try:
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import ed25519

        text, is_private = Path(path).read_bytes(), kind == "Ed25519PrivateKey"
        load = serialization.load_pem_public_key
        key = serialization.load_pem_private_key(text, None) if is_private else load(text)
        if isinstance(key, getattr(ed25519, kind)):
            return key
        why = "it is another kind of key"
    except ImportError:
        raise RequestError(
            f"the key {path} needs the package cryptography",
            "pip install cryptography, where the driver runs",
        ) from None
    except (OSError, ValueError, TypeError) as error:
        why = first_line(error)
    advice = "openssl genpkey -algorithm ed25519 makes a key, openssl pkey -pubout its public key"
    raise RequestError(f"{path} is not a usable {kind}: {why}", advice)


@dataclass(frozen=True, slots=True, order=True)
class Difference:
    """Why a version is not what gates passed. `version` is that of the commit which is responsible,
    `kind` is `foreign`, `receipt`, `blocked`, `columns`, `unknown` or `file`."""

    version: int
    kind: str
    problem: str


@dataclass(frozen=True, slots=True)
class Verification:
    """Whether a version of a table is what gates passed: what the last receipt up to then says, and
    what no gate passed."""

    table: str
    version: int
    last: Mapping[str, Any] | None
    differences: tuple[Difference, ...]

    def __str__(self) -> str:
        is_what = "differs from" if self.differences else "is"
        lines = [f"{self.table}, version {self.version}, {is_what} what gates passed"]
        lines += [f"version {one.version}, {one.kind}: {one.problem}" for one in self.differences]
        if (last := self.last) is not None:
            by = f"gate {last.get('dqx_gate')}"
            by += f", accepted by {last['dqx_accepted_by']}" if "dqx_accepted_by" in last else ""
            by += ", signed" if last["public_key"] else ", not signed"
            lines.append(f"last promotion: version {last['version']}, {by}")
        return "\n  ".join(map(printable, lines))


def _shown(path: str, masked: Collection[str]) -> str:
    """A path without values of masked columns, with its digest instead: Spark gives the files of
    several partitions the same name."""
    hidden = without_folders(path, masked)
    return path if hidden == path else f"{hidden}#{digest_of(path)[:16]}"


@dataclass(frozen=True, slots=True)
class _Commit(delta_log.Commit):
    def files(self, masked: Collection[str]) -> str:
        """The files as a receipt lists them, without values of masked columns in their paths."""
        about = ("size", "modificationTime", "deletionVector")
        shown = partial(_shown, masked=masked)
        added = {shown(path): [add.get(key) for key in about] for path, add in self.added.items()}
        return _canonical({"added": added, "removed": [*map(shown, self.removed)]})

    @property
    def is_of_gate(self) -> bool:
        return _RUN_ID in self.info or RECEIPT in self.info

    def differs(self, kind: str, problem: str) -> Difference:
        """The difference that it makes, with who made it."""
        user = self.info.get("userName") or self.info.get("userId") or "an unknown user"
        by = f"{user} ({self.info.get('engineInfo') or 'unknown engine'})"
        by = f"gate {self.info.get('dqx_gate')}" if self.is_of_gate else by
        return Difference(self.version, kind, f"{self.info.get('operation')} by {by}: {problem}")


@dataclass(frozen=True, slots=True)
class _File:
    """A file of a version, and what is wrong with it. `region` is what the gate replaces together
    with it; None if it may have rows of others."""

    size: int
    region: str | None = None
    fault: Difference | None = None

    def is_replaced(self, by: Mapping[str, Any]) -> bool:
        """Whether a promotion with these entries replaces it."""
        return _RELEASED_BY not in by and by.get(_SLICE) in (_WHOLE_TABLE, self.region)


@dataclass(slots=True)
class _Walk:
    """The files of a table, from commit to commit. `lost` are those that a gate passed and others
    removed, with the fault; `digests` are those of the receipts."""

    receipts: Mapping[int, Receipt]
    digests: Collection[str]
    key: Key | None
    files: dict[str, _File] = field(default_factory=dict)
    lost: dict[str, _File] = field(default_factory=dict)

    def shown(self, path: str) -> str:
        """A path without values of columns that any receipt hides."""
        masked = {name for one in self.receipts.values() for name in one.said.get(MASKED, ())}
        return _shown(path, masked)

    def start(self, table: DeltaTable) -> None:
        """Begins at a version whose commits the log no longer has, by the receipts of these."""
        at, passed = int(table.version()), dict[str, _File]()
        for one in self.receipts.values():
            if one.version <= at and self._fault_of(one) is None:
                files, said = json.loads(one.files), one.said
                passed = {path: file for path, file in passed.items() if not file.is_replaced(said)}
                for path in files["removed"]:
                    passed.pop(self.shown(path), None)
                for path, (size, *_) in files["added"].items():
                    parts = (unquote(part) for part in path.split("/") if "=" in part)
                    within = dict(part.split("=", 1) for part in parts)
                    region = _region_of(path, within, [said[_SLICE]])
                    passed[self.shown(path)] = _File(size, region)
        why = "files are older than the log of the table, and in no receipt"
        unknown = Difference(at, "unknown", why)
        for action in pa.table(table.get_add_actions(flatten=True)).to_pylist():
            path, size = unquote(action["path"]), action["size_bytes"]
            known = passed.pop(self.shown(path), None)
            other = _File(size, fault=unknown)
            self.files[path] = known if known is not None and known.size == size else other
        gone = Difference(at, "unknown", "files of receipts were removed before the log begins")
        self.lost = {path: replace(file, fault=gone) for path, file in passed.items()}

    def follow(self, commit: _Commit) -> None:
        """Applies a commit."""
        removed = {path: self.files.pop(path) for path in commit.removed if path in self.files}
        inherited = next((file.fault for file in removed.values() if file.fault), None)
        fault, regions = self._fault_in(commit), {commit.info.get(_SLICE)}
        if commit.is_move and removed and commit.added and not commit.is_of_gate:
            fault, regions = inherited, {file.region for file in removed.values()}
        elif fault is None:
            # What the gate has replaced with this commit is no longer missing.
            lost = self.lost.items()
            self.lost = {path: file for path, file in lost if not file.is_replaced(commit.info)}
        else:
            passed = {path: file for path, file in removed.items() if file.fault is None}
            self.lost |= {path: replace(file, fault=fault) for path, file in passed.items()}
        for path, add in commit.added.items():
            own = None if fault else _region_of(path, add.get("partitionValues") or {}, regions)
            self.files[path] = _File(add["size"], own, fault or (None if own else inherited))

    def _fault_in(self, commit: _Commit) -> Difference | None:
        """Why the files of a commit that changes data are not those that a gate passed."""
        if not commit.is_of_gate:
            numbers = f"files added: {len(commit.added)}, removed: {len(commit.removed)}"
            return commit.differs("foreign", f"{numbers}; no gate passed that")
        if commit.info.get("dqx_outcome") == "blocked":
            return commit.differs("blocked", "it was blocked, and promoted all the same")
        receipt = self.receipts.get(commit.version)
        why = "there is no receipt; run the gate again for its date"
        if receipt is not None:
            own = {key: one for key, one in receipt.said.items() if key.startswith("dqx_")}
            own[RECEIPT] = digest_of(receipt.statement)
            why = self._fault_of(receipt) or ""
            if own != {key: commit.info.get(key) for key in own}:
                why = "its entries are not those of its receipt"
            elif receipt.files != commit.files(receipt.said.get(MASKED, ())):
                why = "its files are not those of its receipt"
        return commit.differs("receipt", why) if why else None

    def _fault_of(self, receipt: Receipt) -> str | None:
        """What is wrong with a receipt by itself."""
        if (before := receipt.said.get("previous")) and str(before) not in self.digests:
            return "the receipt before its own is missing, or was changed"
        if receipt.signature is None:
            return None if self.key is None else "its receipt is not signed"
        return None if receipt.is_signed(self.key) else "the signature of its receipt is wrong"


def _region_of(path: str, values: Mapping[str, Any], regions: Iterable[str | None]) -> str | None:
    """That of some regions which has all rows of a file, by its partition; None if none is known.

    :param regions: what the gate promoted, or what the files were from which this one was made.
    """

    def is_in(region: str) -> bool:
        bounds = json.loads(region).items()
        return "/rows/" in path or all(values.get(name) == at for name, at in bounds)

    return next((one for one in regions if one is not None and is_in(one)), None)


def verify_table(
    results: StoredResults, location: str, version: int | None = None, public_key: str | None = None
) -> Verification:
    """What a version of a table consists of, and what of it no gate passed.

    :param location: the path or URI of a Delta table, with the storage options of the results.
    :param version: by default the newest.
    :param public_key: the path of the key that must have signed all receipts.
    :raises RequestError: the table, the version or the key does not exist, or cannot be read.
    :raises StoreError: there is no store, or it cannot be read.
    """
    options, key = dict(results.storage_options or {}), _key_at(public_key, "Ed25519PublicKey")
    try:
        table = DeltaTable(location, storage_options=options)
        newest = int(table.version())
        version = newest if version is None else version
        if not 0 <= version <= newest:
            raise RequestError(f"{location} has no such version", f"its newest is {newest}")
        table.load_as_version(version)
        delta_log.require_whole_commits(location, version, options)
        receipts = receipts_of(results, table)
        if not receipts:
            results.require_some()
        walk = _Walk(receipts, {one.digest for one in receipts.values()}, key)
        log = log_files(location, version, options)
        first = 1 + next(at for at in range(version, -2, -1) if at not in log.commits)
        if first > 0:  # the log no longer has the commits before
            start = first - 1 if log.start == first else first
            walk.start(DeltaTable(location, start, storage_options=options))
            first = start + 1
        for commit in _commits(log, range(first, version + 1)):
            walk.follow(commit)
        paths = sorted(path for path in walk.files if "://" not in path)
        found = delta_log.table_files(location, options).get_file_info(paths) if paths else []
    except (DeltaError, OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        advice = "give the path of a Delta table; DESCRIBE DETAIL shows that of a catalog's"
        raise RequestError(f"{location} cannot be verified: {first_line(error)}", advice) from error
    faults = {file.fault for file in (*walk.files.values(), *walk.lost.values())}
    for path, info in zip(paths, found, strict=True):
        if info.size != (size := walk.files[path].size):
            is_now = f"has {info.size} bytes, not {size}" if info.is_file else "is gone"
            faults.add(Difference(version, "file", f"{walk.shown(path)} {is_now}"))
    last = receipts.get(max((number for number in receipts if number <= version), default=-1))
    signed_by = last.public_key if last is not None and last.signature else None
    columns = [column.name for column in table.schema().fields]
    if last is not None and last.said.get("columns") != columns:
        why = f"other columns than those of the promotion in version {last.version}"
        faults.add(Difference(version, "columns", why))
    return Verification(
        location,
        version,
        {"version": last.version, "public_key": signed_by, **last.said} if last else None,
        tuple(sorted(filter(None, faults))),
    )


def _commits(log: delta_log.LogFiles, versions: Sequence[int]) -> Iterator[_Commit]:
    texts = log.texts(log.commits[version] for version in versions)
    return map(_Commit.of, versions, texts)
