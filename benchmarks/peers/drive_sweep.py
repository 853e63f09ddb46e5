"""Runs one engine through the steps of a sweep, in one JVM, and prints a line of JSON for each.

Runs in the environment of the engine. Each step runs once to warm up, and is then measured. Its
line is printed when the step is done, so that an engine that is stopped keeps the steps before. A
check that fails, or that the engine does not report, ends the sweep: the table has no faults.

    python benchmarks/peers/drive_sweep.py ENGINE TABLE SWEEP [--runs RUNS]
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from measuring import run_of
from peers.opening import arguments, opened
from sweep_steps import SWEEPS, Step


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("sweep", choices=SWEEPS)
    parser.add_argument("--runs", type=int, default=1, help="how often, after one to warm up")
    options = parser.parse_args()
    with opened(options) as its:
        for name, step in SWEEPS[options.sweep].steps.items():

            def verified(step: Step = step) -> dict[str, bool]:
                found = its.engine.verify(its.spark, options.table, step.dates, step.checks)
                return dict(found)

            _insist(name, step, verified())
            runs = []
            for _ in range(options.runs):
                run, verdicts = run_of(its.spark, verified)
                _insist(name, step, verdicts)
                runs.append(asdict(run))
            print(json.dumps({"step": name, "spark": its.spark.version, "runs": runs}), flush=True)


def _insist(name: str, step: Step, verdicts: dict[str, Any]) -> None:
    bad = [check.name for check in step.checks if not verdicts.get(check.name)]
    if bad:
        sys.exit(f"step {name}: {len(bad)} checks fail or are not told: {', '.join(bad[:5])}")


if __name__ == "__main__":
    main()
