"""`dql lineage`: sends the lineage events that gates could not send."""

from __future__ import annotations

import json
import logging
import sys
from pathlib import Path
from typing import Annotated

import typer

from dqx_airflow.cli.command_group import EXIT_INFRASTRUCTURE, TextFormatOption, TextOrJson
from dqx_airflow.cli.project import ROOT_VARIABLES
from dqx_airflow.errors import RequestError, StoreError

app = typer.Typer(help="Manage the lineage events of gates.", no_args_is_help=True)

_EACH_S = 5.0


@app.callback()
def lineage() -> None:
    """Manage the lineage events of gates."""


@app.command("flush")
def flush(
    *,
    spool: Annotated[
        Path | None, typer.Option("--spool", envvar="DQX_LINEAGE_SPOOL", help="The spool folder.")
    ] = None,
    root: Annotated[
        str | None,
        typer.Option(
            "--root",
            envvar=ROOT_VARIABLES,
            help="The results root that contains the spool, if --spool is not given.",
        ),
    ] = None,
    timeout: Annotated[
        float, typer.Option("--timeout", min=0.1, help="The maximum duration, in seconds.")
    ] = 60.0,
    output: TextFormatOption = TextOrJson.TEXT,
) -> None:
    """Send the lineage events that gates could not send, with OpenLineage's own configuration.

    Exit code 0 no events are left, 2 an error on the command line, 4 some events are left.
    """
    from dqx_airflow.lineage import spool as spools

    if spool is None and (root is None or "://" in root.removeprefix("file://")):
        raise RequestError(
            "no spool given",
            f"add --spool FOLDER, or --root with a local results store, or set {spools.VARIABLE}",
        )
    folder = spool or spools.beside((root or "").removeprefix("file://"))
    folder = folder.expanduser()
    try:
        waiting = len(spools.kept(folder))
    except OSError as error:
        raise StoreError(f"{folder} cannot be read: {error.strerror or error}") from error
    sent = left = 0
    if waiting:
        logging.basicConfig(format="%(name)s: %(message)s", stream=sys.stderr)
        from dqx_airflow.lineage.emitter import LineageEmitter
        from dqx_airflow.lineage.transport import TimeBudget

        with LineageEmitter(folder, time_budget=TimeBudget(timeout, _EACH_S)) as emitter:
            sent, left = emitter.resend()
    if output is TextOrJson.JSON:
        typer.echo(json.dumps({"spool": str(folder), "sent": sent, "left": left}))
    else:
        typer.echo(f"{sent} sent, {left} left in {folder}")
    if left:
        raise typer.Exit(EXIT_INFRASTRUCTURE)
