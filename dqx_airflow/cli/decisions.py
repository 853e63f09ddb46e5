"""What commands that decide or delete have in common: who decides and why, a rehearsal, and a
question before it happens."""

from __future__ import annotations

import getpass
import sys
from typing import Annotated, TypeAlias

import typer

from dqx_airflow.errors import RequestError

AuthorOption: TypeAlias = Annotated[
    str | None,
    typer.Option("--author", help="Your name for the audit trail; default: the current user."),
]
ReasonOption: TypeAlias = Annotated[
    str | None, typer.Option("--reason", help="The reason, for the audit trail.")
]
RequiredReasonOption: TypeAlias = Annotated[
    str, typer.Option("--reason", help="The reason, for the audit trail.")
]
DryRunOption: TypeAlias = Annotated[
    bool, typer.Option("--dry-run", help="Only say what would happen.")
]
YesOption: TypeAlias = Annotated[
    bool, typer.Option("--yes", "-y", help="Do not ask. Needed where there is no terminal.")
]


def author_of(given: str | None) -> str:
    """The person who decides, as given, or else the current user.

    :raises RequestError: none is given, and this user has no name, as in some containers.
    """
    if given:
        return given
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):
        raise RequestError("the current user has no name", "add --author NAME") from None


def may_go_on(effect: str, *, dry_run: bool, yes: bool) -> bool:
    """Whether a command may do what its arguments say; asks on a terminal.

    :param effect: what it does, as a sentence without a subject: `delete 3 rows from t`.
    :return: False for a rehearsal, which prints the effect.
    :raises RequestError: no one can be asked, and there is no --yes.
    :raises typer.Abort: the answer is no.
    """
    from dqx_airflow.cli.reports import printable

    shown = printable(effect, keep="\n")
    if dry_run and yes:
        raise RequestError("--dry-run and --yes contradict each other", "leave one of them out")
    if dry_run:
        typer.echo(f"would {shown}", err=True)
        return False
    if yes:
        return True
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise RequestError(
            f"not confirmed: this would {shown}",
            "add --yes to do it, or --dry-run to see only what would happen",
        )
    typer.confirm(f"This will {shown}. Go on?", abort=True, err=True)
    return True
