#!/usr/bin/env python
"""A job that takes its stored request as a real one does, and then does what a file says.

A service calls it in the place of `spark-submit`. The folder in DQX_TAKING has the files: `will`,
what the job does once it may (`passed`: it writes that report; a number: it ends with that exit
code); `go`, which it waits for; `took-PID`, which it writes when it has the request.
"""

import os
import sys
import time
from pathlib import Path

from dqx_airflow.engine.session import job_ending
from dqx_airflow.engine.session.launch import job_arguments
from dqx_airflow.results import stored_requests
from dqx_airflow.results.store import ResultsStore
from dqx_airflow.values import GateRequest
from dqx_airflow.values.json_form import from_arguments
from tests.operators.spark_submit_stub import canned_report

_EVERY_S = 0.3


def main(given: list[str]) -> int:
    stored_requests.SIGN_EVERY_S = job_ending.SIGN_EVERY_S = _EVERY_S
    folder = Path(os.environ["DQX_TAKING"])
    arguments, taken = job_arguments(given)
    (folder / f"took-{os.getpid()}").touch()
    ending = job_ending.JobEnding()
    with job_ending.signs_of_life(taken, ending) as note:
        while not (folder / "go").exists() and ending.code is None:
            time.sleep(0.05)
        will = (folder / "will").read_text()
        if ending.code is not None:
            note(ending.code)
            return ending.code
        if will.isdigit():
            ending.reason = "the catalog does not answer"
            note(int(will))
            return int(will)
        request = from_arguments(arguments)
        assert isinstance(request, GateRequest)
        ResultsStore(request.results_root).write(canned_report(request, will))
        note(0)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
