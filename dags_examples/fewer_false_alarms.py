"""The weekly loop against false alarms: promote, shadow, tune, and an email with what to review.

promote -> stage_shadow -> tune

The gate runs with `suite=SUITE, shadow=PROPOSED`. You label alerts and approve proposals on the
pages Alerts and Review. Approved proposals run as a shadow for a week before they take effect. The
DAG promotes values of tunables; copy a profile from PROPOSED by hand. The commands take the results
root from DQX_RESULTS_ROOT on the worker, or from the `dqx.toml` above the suite.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from datetime import datetime
from pathlib import Path

from airflow.providers.smtp.notifications.smtp import SmtpNotifier
from airflow.sdk import DAG, task

SUITE = Path(os.environ.get("ORDERS_SUITE", "/data/suites/orders.dql"))
PROPOSED = SUITE.with_name("proposed.dql")
FEWEST_DAYS = 5


def dql(*arguments: object) -> str:
    """The output of a `dql` command. Its errors go to the task log."""
    program = "from dqx_airflow.cli.main import app; app()"
    command = [sys.executable, "-c", program, *map(str, arguments)]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


@task
def promote() -> list[str]:
    """Adopts the values with which the shadow raised fewer alarms and missed no more issues."""
    if not PROPOSED.exists():
        return []
    compared = json.loads(dql("tune", "shadow", SUITE, "--name", PROPOSED.name, "--format", "json"))
    if len(compared["days"]) < FEWEST_DAYS:
        return []
    better = [
        one["assertion"]
        for one in compared["assertions"]
        if one["shadow"]["alarms"] < one["own"]["alarms"]
        and one["shadow"]["missed"] <= one["own"]["missed"]
    ]
    for name in better:
        print(dql("tune", "enforce", SUITE, "--assertion", name, "--shadow", PROPOSED))
    return better


@task
def stage_shadow() -> None:
    """Copies the suite to the shadow and applies the approved proposals to the copy."""
    shutil.copyfile(SUITE, PROPOSED)
    print(dql("tune", "apply", PROPOSED))


@task(
    on_success_callback=SmtpNotifier(
        to="data-team@example.com",
        subject="Thresholds to review",
        html_content="<pre>{{ ti.xcom_pull(task_ids='tune') }}</pre>",
    )
)
def tune() -> str:
    """Proposes thresholds from the labels. Its output is the body of the email to the reviewers."""
    return dql("tune", "propose", SUITE, "--queue") + dql("tune", "review", SUITE)


with DAG(
    "fewer_false_alarms",
    description="Tunes, notifies, shadows and promotes the thresholds of a suite every week.",
    start_date=datetime(2026, 1, 1),
    schedule="@weekly",
    catchup=False,
    max_active_runs=1,
    tags=["dqx", "example"],
):
    promote() >> stage_shadow() >> tune()
