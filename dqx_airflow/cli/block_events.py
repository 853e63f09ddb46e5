"""Sends the OpenLineage events of blocks and their contracts, and reports unsent ones."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from datetime import datetime, timezone

import typer


def emit_block_events(bindings: Iterable[tuple[str, str, str | None]]) -> None:
    """Sends the events of blocks: for each a START event, and the final one.

    :param bindings: each block with its contract, and its problem if it has one.
    """
    from dqx_airflow.lineage.contracts import block_events
    from dqx_airflow.lineage.emitter import LineageEmitter

    with LineageEmitter() as lineage:
        if not lineage.sends:
            hint = "set OPENLINEAGE__TRANSPORT or OPENLINEAGE_URL, or write an openlineage.yml"
            typer.echo(f"warning: no lineage events are sent: {lineage.why_not}", err=True)
            typer.echo(f"  help: {hint}", err=True)
            return
        sent = [
            lineage.emit(event)
            for block, contract, problem in bindings
            for event in block_events(
                block,
                contract,
                problem,
                str(uuid.uuid4()),
                datetime.now(timezone.utc),
                lineage.namespace,
            )
        ]
    if not all(sent):
        typer.echo("warning: not every event was sent, see the log above", err=True)
