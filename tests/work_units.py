"""The unit of work of a test worker: a file, or all files that share something slow to make."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from xdist.scheduler import LoadScopeScheduling
from xdist.workermanage import WorkerController

AIRFLOW = "airflow"
IN_AIRFLOW = {"operators", "ui"}
"""The folders whose tests import Airflow: it reads its home once, when it is first imported."""

WHEEL = "wheel"
FROM_THE_WHEEL = {"tests/e2e/test_demo.py", "tests/e2e/test_distribution.py"}
"""The files whose tests share the environment into which the wheel is installed."""

ROOT = Path(__file__).parents[1]


class WorkUnits(LoadScopeScheduling):
    """Files, since what a module needs is made once for all of its tests; the longest come first.

    One half of the workers begins with what is in Spark and the other with what is not: as long as
    both have enough to do, only one of two workers starts a JVM, and warms it up.

    A group of pytest-xdist is no use here: from pytest 9.2 on, its workers do not tell the groups
    of their tests. So the unit of a test is known by its file.
    """

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        if file in FROM_THE_WHEEL:
            return WHEEL
        return AIRFLOW if Path(file).parent.name in IN_AIRFLOW else file

    def _assign_work_unit(self, node: WorkerController) -> None:
        has_spark = int(node.gateway.id.removeprefix("gw")) % 2 == 1
        first = min(
            self.workqueue,
            key=lambda unit: (
                _is_in_spark(unit) != has_spark,
                _rank(unit),
                -len(self.workqueue[unit]),
            ),
        )
        self.workqueue.move_to_end(first, last=False)
        super()._assign_work_unit(node)


def _rank(unit: str) -> int:
    """Airflow and the wheel take longest, then what starts whole services."""
    return 0 if unit in (AIRFLOW, WHEEL) else 1 if "/e2e/" in unit else 2


@cache
def _is_in_spark(unit: str) -> bool:
    if unit in (AIRFLOW, WHEEL):
        return False
    return "mark.spark" in (ROOT / unit).read_text(encoding="utf-8")
