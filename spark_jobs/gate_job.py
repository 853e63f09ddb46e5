"""The application that a gate operator submits: `spark-submit gate_job.py --request ...`."""

from __future__ import annotations

import sys


def main() -> int:
    try:
        from dqx_airflow.engine.session.launch import start_spark

        open_session = start_spark(sys.argv[1:])
        from dqx_airflow.engine.job import main as run
    except ModuleNotFoundError as error:
        print(
            f"error: the Python of this Spark driver ({sys.executable}) has no module "
            f"'{error.name}'\n  help: install dqx-airflow there, point PYSPARK_PYTHON at a Python "
            "that has it, or take along in py_files what `dql package` writes",
            file=sys.stderr,
        )
        return 4
    return run(sys.argv[1:], open_session)


if __name__ == "__main__":
    code = main()
    # Without a word, `sys.exit(0)` would still be drawn as an exception by some cluster managers.
    if code:
        sys.exit(code)
