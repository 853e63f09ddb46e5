"""Environments with another Spark or another Airflow, which are kept for later runs."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
CACHE = Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")).expanduser() / "dqx-airflow"


def replace_process(
    program: Path,
    option: str,
    value: str,
    arguments: Sequence[str],
    paths: Sequence[str],
    env: Mapping[str, str],
) -> None:
    """Replaces this process by the pytest of an environment.

    :param option: the option with that value, which the other pytest does not get.
    """
    left = [*arguments]
    for form in ([option, value], [f"{option}={value}"]):
        for at in range(len(left) - len(form), -1, -1):
            if left[at : at + len(form)] == form:
                del left[at : at + len(form)]
    pytest = [str(program), "-m", "pytest", "-n", "0", "-p", "no:cacheprovider"]
    os.execve(str(program), [*pytest, *left, *paths], env)
