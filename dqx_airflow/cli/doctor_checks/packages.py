"""Can the compiled packages be imported beside each other? Their metadata may fit while the files
do not: an older numpy, which another package pins, ends the import of a newer pyarrow."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence

from packaging.version import Version

from dqx_airflow.cli.doctor_checks.finding import Answer, installed_version, ok, problem

ALWAYS = ("numpy", "pyarrow", "deltalake")
"""The compiled packages that every installation has."""

WHERE_INSTALLED = ("pandas",)
"""The compiled packages that PySpark imports where it finds them."""

_TIMEOUT_S = 60
_ARROW_OF_NUMPY_1 = "pip install 'pyarrow<26'"
"""The last releases that go with numpy 1, which databricks-connect requires on some Pythons."""


def importable(python: str = sys.executable) -> Answer:
    """Does each of the compiled packages load? They are tried in another process, which may
    crash."""
    names = [*ALWAYS, *(name for name in WHERE_INSTALLED if installed_version(name))]
    if _mistake_of_import(names, python) is None:
        return ok(", ".join(f"{name} {installed_version(name)}" for name in names))
    for name in names:
        if (mistake := _mistake_of_import([name], python)) is not None:
            version = installed_version(name)
            found = f"{name} {version}" if version else name
            return problem(f"{found}: {mistake}", _remedy_for(name))
    return problem(
        f"{', '.join(names)} load one by one, but not in one process",
        f"pip install --force-reinstall {' '.join(names)}",
    )


def _remedy_for(name: str) -> str:
    numpy = installed_version("numpy")
    if name == "pyarrow" and numpy is not None and Version(numpy).major < 2:
        return _ARROW_OF_NUMPY_1
    return f"pip install --force-reinstall {name}"


def _mistake_of_import(names: Sequence[str], python: str) -> str | None:
    """The reason why packages cannot be imported in one process; None if they can."""
    program = "".join(f"import {name}\n" for name in names)
    try:
        done = subprocess.run(  # noqa: S603 (our own program)
            [python, "-c", program], capture_output=True, text=True, timeout=_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    if done.returncode == 0:
        return None
    lines = done.stderr.strip().splitlines()
    return lines[-1] if lines else f"the import ended with code {done.returncode}"
