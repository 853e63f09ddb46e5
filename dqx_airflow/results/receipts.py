"""Receipts of promotions, their chain and their signatures.

A commit carries the digest of its statement, which is written before it: the rules, the verdicts,
who accepted which data. The receipt, written after it, adds the version and the files. Each receipt
contains the digest of the previous receipt of the table, so that none can be removed unnoticed, and
may be signed (RFC 8032, Ed25519).
`results/verify.py` compares them with the log of a table.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeAlias

from deltalake import DeltaTable

from dqx_airflow import __version__
from dqx_airflow.datasets import delta_log
from dqx_airflow.datasets.delta_log import log_files
from dqx_airflow.errors import RequestError, first_line
from dqx_airflow.plan.masks import without_folders
from dqx_airflow.results import schema
from dqx_airflow.results.query import StoredResults, equals
from dqx_airflow.results.report_rows import digest_of, digests_of
from dqx_airflow.results.schema import as_utc
from dqx_airflow.values import GateRequest, Verdict
from dqx_airflow.values.blank import require_no_blank

Key: TypeAlias = Any
"""An Ed25519 key of the package cryptography, which is imported only if a key is configured."""
KEY = "DQX_RECEIPT_KEY"
"""The environment variable of a driver with the path of the private key that signs receipts."""
RECEIPT = "dqx_receipt"
"""The entry of a commit with the digest of its statement."""
MASKED = "masked"
"""The entry of a statement with the columns whose values the receipt must not show."""
COLUMNS = "columns"
"""The entry of a statement with the names of the columns, and of the files of a receipt with how
they were read."""
RUN_ID = "dqx_run_id"
_OF_THE_FILE = ("size", "modificationTime", "deletionVector")
"""The keys of an `add` action that identify a file together with its path."""
_DER_OF_ED25519 = bytes.fromhex("302a300506032b6570032100")
"""The bytes before the 32 bytes of a public key in DER (RFC 8410, section 4)."""
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
    def row(self) -> dict[str, Any]:
        """The row to write."""
        return {
            "run_id": self.run_id,
            "table_id": self.table_id,
            "version": self.version,
            "statement": self.statement,
            "files": self.files,
            "signature": self.signature,
            "public_key": self.public_key,
            "written_at": as_utc(self.written_at),
        }

    @classmethod
    def from_row(cls, row: schema.Row) -> Receipt:
        """The receipt of a stored row."""
        return cls(
            run_id=row["run_id"],
            table_id=row["table_id"],
            version=row["version"],
            statement=row["statement"],
            files=row["files"],
            signature=row.get("signature"),
            public_key=row.get("public_key"),
            written_at=as_utc(row["written_at"]),
        )

    @property
    def digest(self) -> str:
        """The digest that the next receipt and the signature refer to."""
        return digest_of(_canonical([self.table_id, self.version, self.statement, self.files]))

    @property
    def entries(self) -> dict[str, Any]:
        """The entries of the statement; empty if it was tampered with and is no JSON object."""
        return _object_in(self.statement)

    @property
    def listed(self) -> dict[str, Any]:
        """The files that the commit added and removed, and the columns of the table; empty if the
        stored text was tampered with and is no JSON object."""
        return _object_in(self.files)

    @property
    def fingerprint(self) -> str | None:
        """The fingerprint of the public key in the receipt; None without a signature."""
        return fingerprint_of(self.public_key or "") if self.signature is not None else None

    def signed(self, key: Key) -> Receipt:
        public = key.public_key().public_bytes_raw().hex()
        return replace(self, signature=key.sign(self.digest.encode()).hex(), public_key=public)

    def is_signed(self, key: Key | None) -> bool:
        """Whether the receipt has a valid signature.

        :param key: the key that must have signed it; None for the public key in the receipt.
        :raises RequestError: the package is missing that verifies signatures.
        """
        try:
            from cryptography.exceptions import InvalidSignature
            from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
        except ImportError:
            message = "signed receipts need the package cryptography"
            raise RequestError(message, "pip install cryptography") from None
        try:
            key = key or Ed25519PublicKey.from_public_bytes(bytes.fromhex(self.public_key or ""))
            key.verify(bytes.fromhex(self.signature or ""), self.digest.encode())
        except (InvalidSignature, ValueError):
            return False
        return True


def _object_in(text: str) -> dict[str, Any]:
    """The object in a JSON text; empty for any other text."""
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def fingerprint_of(public_key: str) -> str:
    """The SHA-256 of a public key in DER, as `openssl pkey -pubin -outform DER` writes it.

    :param public_key: its bytes in hexadecimal digits.
    """
    try:
        return sha256(_DER_OF_ED25519 + bytes.fromhex(public_key)).hexdigest()
    except ValueError:
        return "unknown"


def receipts_of(
    results: StoredResults, table_id: str, order: str = 'ORDER BY "written_at", "version"'
) -> tuple[Receipt, ...]:
    """The receipts of a table, by default the one written first first.

    :param table_id: the id in its metadata.
    :raises StoreError: the store cannot be read.
    """
    rows = results.whole_rows(schema.RECEIPTS, [equals("table_id", table_id)], order)
    return tuple(map(Receipt.from_row, rows))


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
        """The statement of a receipt, as canonical JSON: its contents that precede the commit.

        :param facts: where the rows come from and go to.
        :param table: the target; None before its first version.
        :raises StoreError: the receipts before it cannot be read.
        """
        # By time: a log that was put back has lower versions than receipts of before.
        last = 'ORDER BY "written_at" DESC, "version" DESC LIMIT 1'
        table_id = None if table is None else str(table.metadata().id)
        before = () if table_id is None else receipts_of(self.results, table_id, last)
        judged = [
            {
                "run_key": str(request.run_key),
                "sources": {one.file: one.digest for one in digests_of(request.sources)},
                "contract": request.contract and [request.contract.id, request.contract.version],
                "verdicts": [{key: getattr(one, key) for key in _OF_VERDICTS} for one in verdicts],
            }
            for request, verdicts in self.judged
        ]
        previous = before[0].digest if before else None
        engine = f"dqx_airflow {__version__}"
        return _canonical({**facts, "engine": engine, "judged": judged, "previous": previous})

    def write(self, statement: str, table: DeltaTable) -> None:
        """Writes the receipt of a commit, signed if there is a key.

        :param table: the target in its newest version.
        :raises OSError: its log cannot be read.
        :raises ValueError: no commit has the digest of the statement.
        :raises StoreError: the store cannot be written.
        """
        log = log_files(table.table_uri, int(table.version()))
        named = digest_of(statement)
        commits = commits_in(log, sorted(log.commits)[-_RECENT:])
        commit = next((one for one in commits if one.info.get(RECEIPT) == named), None)
        if commit is None:
            raise ValueError("the commit that a receipt is about cannot be found")
        if commit.version != table.version():  # another writer was as fast
            table.load_as_version(commit.version)
        entries = json.loads(statement)
        table_id = str(table.metadata().id)
        files = commit.files(entries[MASKED], columns_of(table))
        receipt = Receipt(entries[RUN_ID], table_id, commit.version, statement, files)
        receipt = receipt.signed(self.key) if self.key is not None else receipt
        self.results.write(schema.RECEIPTS, {named: receipt.row})


def signing_key(environment: Mapping[str, str] = os.environ) -> Key | None:
    """The key that signs receipts; None if there is none.

    :raises RequestError: it cannot be used, or the variable is set and empty.
    """
    path = environment.get(KEY)
    return None if path is None else key_at(path, "Ed25519PrivateKey", KEY)


def key_at(path: str, kind: str, named: str) -> Key:
    """Reads a key from a PEM file.

    :param kind: `Ed25519PrivateKey` or `Ed25519PublicKey`.
    :param named: the option or the variable with the path.
    :raises RequestError: the path is empty, or the file does not contain such a key.
    """
    require_no_blank({named: path})
    try:
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import ed25519

        text = Path(path).read_bytes()
        is_private = kind == "Ed25519PrivateKey"
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


def columns_of(table: DeltaTable) -> dict[str, Any]:
    """Descriptions of how the columns of a table are read in its loaded version, by name."""
    metadata = table.metadata()
    schema_of_table = json.loads(table.schema().to_json())
    return columns_in(schema_of_table, metadata.partition_columns, metadata.configuration)


def columns_in(
    struct: Mapping[str, Any], partitioned_by: Collection[str], settings: Mapping[str, Any]
) -> dict[str, Any]:
    """Descriptions of how columns are read, by name: the type, whether the column is a partition,
    and its name or number in files if the table maps it (Delta protocol, "Schema Serialization
    Format" and "Column Mapping")."""
    mode = settings.get("delta.columnMapping.mode", "none")
    found = {}
    for column in struct["fields"]:
        read_as = _read_as(column, mode)
        if column["name"] in partitioned_by:
            read_as["in"] = "log"
        found[column["name"]] = read_as
    return found


def _read_as(column: Mapping[str, Any], mode: str) -> dict[str, Any]:
    about = column.get("metadata") or {}
    read_as = {"type": _type_of(column["type"], mode)}
    own = about.get("delta.columnMapping.physicalName", column["name"])
    if mode != "none" and own != column["name"]:
        read_as["file"] = own
    if mode == "id":
        read_as["id"] = about.get("delta.columnMapping.id")
    return read_as


def _type_of(kind: Any, mode: str) -> Any:
    """A type without what does not change how its values are read."""
    if not isinstance(kind, dict):
        return kind
    match kind.get("type"):
        case "struct":
            return [[column["name"], _read_as(column, mode)] for column in kind["fields"]]
        case "array":
            return {"array": _type_of(kind["elementType"], mode)}
        case "map":
            return {"map": [_type_of(kind[part], mode) for part in ("keyType", "valueType")]}
    return kind


def shown_path(path: str, masked: Collection[str]) -> str:
    """A path without values of masked columns, with its digest instead: Spark gives the files of
    several partitions the same name."""
    hidden = without_folders(path, masked)
    return path if hidden == path else f"{hidden}#{digest_of(path)[:16]}"


def identity_of(add: Mapping[str, Any]) -> list[Any]:
    """The size, modification time and deletion vector of a file, from its `add` action, and the
    digest of its partition values, which only the log contains."""
    partition = digest_of(_canonical(add.get("partitionValues") or {}))
    return [*(add.get(key) for key in _OF_THE_FILE), partition[:16]]


def is_same_file(one: Sequence[Any], other: Sequence[Any]) -> bool:
    """Whether two identities at the same path belong to the same file. A receipt of an earlier
    version does not have the partition."""
    return all(part == own for part, own in zip(one, other, strict=False))


@dataclass(frozen=True, slots=True)
class TableCommit(delta_log.Commit):
    """A commit of a table to which gates promote."""

    def files(self, masked: Collection[str], columns: Mapping[str, Any] | None) -> str:
        """The files as a receipt lists them, without values of masked columns in their paths.

        :param columns: how the columns are read; None as in a receipt of an earlier version.
        """
        shown = partial(shown_path, masked=masked)
        parts = len(_OF_THE_FILE) if columns is None else None
        added = {shown(path): identity_of(add)[:parts] for path, add in self.added.items()}
        listed: dict[str, Any] = {"added": added, "removed": [*map(shown, self.removed)]}
        if columns is not None:
            listed[COLUMNS] = columns
        return _canonical(listed)

    @property
    def is_of_gate(self) -> bool:
        return RUN_ID in self.info or RECEIPT in self.info


def commits_in(log: delta_log.LogFiles, versions: Sequence[int]) -> Iterator[TableCommit]:
    """Commits of a log, in order.

    :raises OSError: an entry of the log cannot be read.
    :raises ValueError: an entry of the log is not a commit.
    """
    texts = log.texts(log.commits[version] for version in versions)
    return map(TableCommit.of, versions, texts)
