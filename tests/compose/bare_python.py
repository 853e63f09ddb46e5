"""A Python that has only pyspark and the packages that a bundle leaves out."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from dqx_airflow.cli.job_bundle import NATIVE
from tests.processes import output_of


def make_python(folder: Path) -> Path:
    """A fresh environment in a folder, its packages linked to those of this one; its Python."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    python = folder / "bin" / "python"
    ask = "import sysconfig; print(sysconfig.get_path('purelib'))"
    printed = output_of([python, "-c", ask])
    packages = Path(printed.strip())
    waiting = ["pyspark", *NATIVE]
    while waiting:
        try:
            package = distribution(waiting.pop())
        except PackageNotFoundError:
            continue
        for top in {file.parts[0] for file in package.files or ()} - {".."}:
            if not (packages / top).exists():
                (packages / top).symlink_to(Path(str(package.locate_file(top))))
        required = (text for text in package.requires or () if "extra ==" not in text)
        waiting += [re.split(r"[^\w.-]", text)[0] for text in required]
    return python
