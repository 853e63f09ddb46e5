"""`dql lineage flush`: sends the lineage events that could not be sent."""

from __future__ import annotations

import json
import logging
import sys
from datetime import timedelta
from pathlib import Path
from typing import Annotated

import typer

from dqx_airflow.cli import command, exit_codes
from dqx_airflow.cli.days import span
from dqx_airflow.cli.stores import HOW_TO_GIVE, ResultsRootOption, known_root, results_of
from dqx_airflow.errors import RequestError, StoreError

_EACH_S = 5.0
_LONGEST = timedelta(seconds=60)


def flush(
    *,
    spool: Annotated[Path | None, typer.Option(envvar="DQX_LINEAGE_SPOOL")] = None,
    results_root: ResultsRootOption = None,
    timeout: Annotated[
        timedelta, typer.Option(parser=span, metavar="SPAN", show_default="60s")
    ] = _LONGEST,
    format: command.TextFormatOption = "text",
) -> None:
    """Send the lineage events that gates could not send.

    They are sent with OpenLineage's own configuration. Exit code 0 no events are left, 2 an error
    on the command line, 4 some events are left.

    :param spool: The spool folder.
    :param results_root: The root of the results store that contains the spool, if --spool is not
        given; default: results_root in dqx.toml, then Airflow's setting.
    :param timeout: The maximum duration.
    """
    from dqx_airflow.lineage import spool as spools

    if spool is None:
        folder = _spool_of(known_root(results_root))
    else:
        folder = spool.expanduser()
        if not folder.parent.is_dir():
            raise RequestError(f"there is no folder {folder.parent}", "check the path of --spool")
    try:
        waiting = len(spools.kept(folder))
    except OSError as error:
        raise StoreError(f"{folder} cannot be read: {error.strerror or error}") from error
    sent = left = 0
    if waiting:
        logging.basicConfig(format="%(name)s: %(message)s", stream=sys.stderr)
        from dqx_airflow.lineage.emitter import LineageEmitter
        from dqx_airflow.lineage.transport import TimeBudget

        with LineageEmitter(
            folder, time_budget=TimeBudget(timeout.total_seconds(), _EACH_S)
        ) as emitter:
            sent, left = emitter.resend()
    if format == "json":
        typer.echo(json.dumps({"spool": str(folder), "sent": sent, "left": left}))
    else:
        typer.echo(f"{sent} sent, {left} left in {folder}")
    if left:
        raise typer.Exit(exit_codes.EXIT_INFRASTRUCTURE)


def _spool_of(root: str | None) -> Path:
    """The spool beside a results store.

    :raises RequestError: there is no root, or it is not a folder of this machine.
    :raises NoStoreError: there is no store at the root.
    """
    from dqx_airflow.lineage import spool as spools
    from dqx_airflow.values.files import local_path

    hint = f"add --spool FOLDER, set {spools.VARIABLE}, or {HOW_TO_GIVE}"
    if root is None:
        raise RequestError("no spool and no results root given", hint)
    if "://" in local_path(root):
        raise RequestError(f"no spool given: {root} is not a local folder", hint)
    folder = spools.beside(local_path(root)).expanduser()
    if not folder.is_dir():
        results_of(root).require_some()
    return folder
