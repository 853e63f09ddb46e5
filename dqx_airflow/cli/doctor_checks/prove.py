"""`dql doctor --prove`: the conformance cases on the engine of gates. Imports pyspark."""

from __future__ import annotations

import json
import tempfile
from dataclasses import asdict
from pathlib import Path

import typer
from rich.progress import MofNCompleteColumn, TimeElapsedColumn

from dqx_airflow.cli.command import connection_in, settings_here
from dqx_airflow.cli.spark import progress, session_over
from dqx_airflow.cli.stores import storage_options
from dqx_airflow.datasets.spark_address import Connection, ConnectionKind
from dqx_airflow.diagnostics.templates import filled
from dqx_airflow.engine.proof.prove import prove
from dqx_airflow.results.proofs import write_proof
from dqx_airflow.results.query import StoredResults
from dqx_airflow.values import EngineProof

_HERE = ("localhost", "127.0.0.1", "::1")
"""The hosts in addresses that are this machine."""


def prove_engine(
    address: str | None, root: str | None, folder: Path | None, *, as_json: bool
) -> bool:
    """Proves the engine of a connection, prints what differs, and stores the result.

    :param address: the address of the connection; None for the connection in the settings.
    :param root: the results root; without one nothing is stored.
    :param folder: the folder for files of the cases, which Spark must see; without one, the cases
        with files are tried only if Spark runs on this machine.
    :return: True if the values leave no trait of requests in doubt. Errors, and cases that were not
        tried, raise no doubt.
    :raises DqxError: the engine cannot be reached, or the result cannot be stored.
    """
    settings = settings_here()
    connection = connection_in(settings, address)
    session = session_over(connection, settings.session, "dql doctor")
    with tempfile.TemporaryDirectory(dir=folder) as own, session as spark:
        is_seen = folder is not None or _is_on_this_machine(connection)
        columns = MofNCompleteColumn(), TimeElapsedColumn()
        with progress(f"cases on {connection}", *columns) as update:
            proof = prove(spark, Path(own) if is_seen else None, update)
    if root is not None:
        write_proof(StoredResults(root, storage_options()), proof)
    if as_json:
        typer.echo(proof_as_json(proof, connection, root))
    else:
        text = filled(__package__, "proof.txt", proof=proof, connection=connection, root=root)
        typer.echo(text, nl=False)
    return not proof.doubts


def _is_on_this_machine(connection: Connection) -> bool:
    """True if Spark runs on this machine, and so sees its files."""
    if connection.kind in (ConnectionKind.LOCAL, ConnectionKind.SAIL):
        return True
    is_server = connection.kind in (ConnectionKind.CONNECT, ConnectionKind.STANDALONE)
    return is_server and all(host in _HERE for host, _ in connection.servers)


def proof_as_json(proof: EngineProof, connection: Connection, root: str | None) -> str:
    """The proof as the text of a JSON object, whose `engine` is an object with the version, the
    kind of session and the settings."""
    form = asdict(proof) | {
        "connection": str(connection),
        "engine": json.loads(proof.engine),
        "at": proof.at.isoformat(),
        "untried": dict(proof.untried),
        "mark": proof.mark,
        "stored_in": root,
    }
    return json.dumps(form, indent=2, ensure_ascii=False)
