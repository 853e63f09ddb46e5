"""`dql tune`: its commands, each imported when it is called."""

from __future__ import annotations

import typer
from typer.core import TyperGroup

from dqx_airflow.cli.documented import Command, Panels, group_of, with_default


def _propose() -> Command:
    from dqx_airflow.cli.tune.propose import propose

    return propose


def _alerts() -> Command:
    from dqx_airflow.cli.tune.labels import alerts

    return alerts


def _label() -> Command:
    from dqx_airflow.cli.tune.labels import label

    return label


def _backtest() -> Command:
    from dqx_airflow.cli.tune.backtest import backtest

    return backtest


def _review() -> Command:
    from dqx_airflow.cli.tune.review import review

    return review


def _approve() -> Command:
    from dqx_airflow.cli.tune.review import approve

    return approve


def _reject() -> Command:
    from dqx_airflow.cli.tune.review import reject

    return reject


def _apply() -> Command:
    from dqx_airflow.cli.tune.review import apply

    return apply


def _shadow() -> Command:
    from dqx_airflow.cli.tune.shadow import shadow

    return shadow


def _enforce() -> Command:
    from dqx_airflow.cli.tune.shadow import enforce

    return enforce


def _history() -> Command:
    from dqx_airflow.cli.tune.history import history

    return history


def _rollback() -> Command:
    from dqx_airflow.cli.tune.rollback import rollback

    return rollback


PANELS: Panels = {
    "Label": {"alerts": _alerts, "label": _label},
    "Try": {"propose": _propose, "backtest": _backtest, "shadow": _shadow},
    "Decide": {
        "review": _review,
        "approve": _approve,
        "reject": _reject,
        "apply": _apply,
        "enforce": _enforce,
    },
    "Look back": {"history": _history, "rollback": _rollback},
}
"""The imports of the commands, in the order of their use."""

app = typer.Typer(
    cls=with_default(group_of(PANELS, TyperGroup), "propose", ".dql"),
    help="Label failures, and change limits that raise false alarms.\n\n"
    "`dql tune SUITE` is `dql tune propose SUITE`.",
    no_args_is_help=True,
)


@app.callback()
def tune() -> None:
    pass
