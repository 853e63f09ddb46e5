"""The application that a gate operator submits: `spark-submit gate_job.py --request ...`.

A service passes `--request-file ADDRESS` instead, perhaps among arguments of its own.
"""

from __future__ import annotations

import sys


def main() -> int:
    taken = None
    try:
        from dqx_airflow.engine.session.launch import collect_rarely

        collect_rarely()
        from dqx_airflow.engine.session.launch import job_arguments, start_spark

        arguments, taken = job_arguments(sys.argv[1:])
        open_session = start_spark(arguments)
        from dqx_airflow.engine.job import main as run
    except ModuleNotFoundError as error:
        print(
            f"error: the Python of this Spark driver ({sys.executable}) has no module "
            f"'{error.name}'\n  help: install dqx-airflow there, point PYSPARK_PYTHON at a Python "
            "that has it, or add the zip of `dql package` to py_files",
            file=sys.stderr,
        )
        if taken is not None:
            taken.end(4, f"the Python of its driver has no module '{error.name}'")
        return 4
    return run(arguments, open_session, taken)


def gate_job() -> None:
    """Runs the gate job, as an entry point of the package."""
    code = main()
    # Some cluster managers show even `sys.exit(0)` as an exception.
    if code:
        sys.exit(code)


if __name__ == "__main__":
    gate_job()
