"""What one of the workers takes as a whole: a file, or all that shares what takes long to make."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from xdist.scheduler import LoadScopeScheduling
from xdist.workermanage import WorkerController

AIRFLOW = "airflow"
IN_AIRFLOW = {"operators", "plugin"}
"""The folders whose tests import Airflow: it reads its home once, when it is first imported."""

WHEEL = "wheel"
FROM_THE_WHEEL = {"tests/e2e/test_demo.py", "tests/e2e/test_distribution.py"}
"""The files whose tests share the environment into which the wheel is installed."""

ROOT = Path(__file__).parents[1]


class WorkUnits(LoadScopeScheduling):
    """Files, since what a module needs is made once for all of its tests; the longest come first.

    A group of pytest-xdist is no use here: from pytest 9.2 on, its workers do not tell the groups
    of their tests. So the unit of a test is told by its file.
    """

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        if file in FROM_THE_WHEEL:
            return WHEEL
        return AIRFLOW if Path(file).parent.name in IN_AIRFLOW else file

    def _assign_work_unit(self, node: WorkerController) -> None:
        longest = min(self.workqueue, key=lambda unit: (_rank(unit), -len(self.workqueue[unit])))
        self.workqueue.move_to_end(longest, last=False)
        super()._assign_work_unit(node)


@cache
def _rank(unit: str) -> int:
    """Airflow and the wheel take longest, then what starts Spark or uses it."""
    if unit in (AIRFLOW, WHEEL):
        return 0
    is_in_spark = "mark.spark" in (ROOT / unit).read_text(encoding="utf-8")
    return 1 if is_in_spark or "/e2e/" in unit else 2
