"""The program with which a gate operator runs a gate over Spark Connect, on the worker."""

from __future__ import annotations

import sys


def main() -> int:
    try:
        from dqx_airflow.engine.session.launch import collect_rarely

        collect_rarely()
        from dqx_airflow.engine.connect_job import main as run
    except ModuleNotFoundError as error:
        print(
            f"error: the Python of this worker ({sys.executable}) has no module '{error.name}'\n"
            "  help: pip install pyspark-client, in the version of the Spark Connect server",
            file=sys.stderr,
        )
        return 4
    return run(sys.argv[1:])


if __name__ == "__main__":
    code = main()
    try:
        from dqx_airflow.engine.session.launch import leave
    except ModuleNotFoundError:
        sys.exit(code)
    leave(code)
