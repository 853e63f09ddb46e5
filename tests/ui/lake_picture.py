"""Takes the picture of the report about a whole lake for the docs; it is not a test.

python tests/ui/lake_picture.py dqx_airflow/docs/images

The tables are those of `sales` in the lake of the tutorial, which has 40, with faults in seven.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.processes import PROGRAMS
from tests.ui.chromium import PROGRAM, chromium
from tests.ui.screenshots import open_page, shoot

_SCRIPT = Path(__file__).parents[2] / "dags_examples/lake/make_lake.py"
_MOST_CALLS = 3


def main(folder: Path) -> None:
    with TemporaryDirectory() as home, TemporaryDirectory() as profile:
        lake, report = Path(home, "lake"), Path(home, "lake.html")
        subprocess.run([sys.executable, _SCRIPT, lake], check=True)
        report.write_bytes(
            subprocess.run(
                [
                    *(PROGRAMS / "dql", "init", Path(home, "gates"), "--dataset", lake),
                    *("--only", "sales/*"),
                    *("--calls-per-month", str(_MOST_CALLS), "--format", "html"),
                ],
                check=True,
                stdout=subprocess.PIPE,
            ).stdout
        )
        with chromium(PROGRAM, Path(profile)) as page:
            light = [{"name": "prefers-color-scheme", "value": "light"}]
            page.call("Emulation.setEmulatedMedia", features=light)
            open_page(page, report.as_uri(), 1180, 700)
            shoot(page, folder / "lake_report.png")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
