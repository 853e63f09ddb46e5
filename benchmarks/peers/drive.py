"""Runs one engine on a table, in its own JVM, and prints the cost as a line of JSON.

Runs in the environment of the engine, which has neither this project nor the other engines. The
clock starts when the engine is imported and the session is open, and stops at the last verdict.

    python benchmarks/peers/drive.py ENGINE TABLE [--warm RUNS] [--faulty TABLE]
"""

from __future__ import annotations

import json
import platform
import sys
from dataclasses import asdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from measuring import java_version, run_of
from peers.opening import arguments, opened
from workload import CHECKS


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--warm", type=int, default=1, help="how often, after the first run")
    parser.add_argument("--faulty", help="another table, to be judged once at the end")
    options = parser.parse_args()
    with opened(options) as its:
        spark = its.spark

        def judged(table: str) -> dict[str, bool]:
            """The verdicts on the checks of the benchmark: ours, for example, also include
            `not_empty`."""
            found = its.engine.judge(spark, table)
            return {name: holds for name, holds in found.items() if name in CHECKS}

        first, verdicts = run_of(spark, lambda: judged(options.table))
        warm = [run_of(spark, lambda: judged(options.table))[0] for _ in range(options.warm)]
        faulty = judged(options.faulty) if options.faulty else {}
        told = {
            "import_s": its.import_s,
            "session_s": its.session_s,
            "first": asdict(first),
            "warm": [asdict(run) for run in warm],
            "verdicts": {"sound": verdicts, "faulty": faulty},
            "spark": spark.version,
            "java": java_version(spark),
            "python": platform.python_version(),
        }
        print(json.dumps(told), flush=True)


if __name__ == "__main__":
    main()
