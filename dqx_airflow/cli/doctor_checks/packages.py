"""The installed packages, and whether their versions are in the required ranges.

Reads the metadata of packages, imports none of them. The ranges come from our own metadata, so
`pyproject.toml` stays the only place that names them.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from importlib import metadata

from dqx_airflow.cli.doctor_checks.finding import Answer, ok, problem, warning

DISTRIBUTION = "dqx-airflow"


def python_version() -> Answer:
    """Is this Python one of those that the package is made for?"""
    version = ".".join(map(str, sys.version_info[:3]))
    wanted = str(metadata.metadata(DISTRIBUTION).json.get("requires_python", ""))
    if is_within(wanted, version):
        return ok(f"{version} ({sys.executable})")
    return problem(
        f"{version} ({sys.executable}) is outside the supported range {in_order(wanted)}",
        "create an environment with a supported Python and install dqx-airflow there",
    )


def airflow() -> Answer:
    return _installed("apache-airflow", problem)


def spark_provider() -> Answer:
    return _installed("apache-airflow-providers-apache-spark", problem)


def openlineage_provider() -> Answer:
    """Gates and their own events work without it; only the events of the Airflow task are
    missing."""
    return _installed("apache-airflow-providers-openlineage", warning)


def _installed(package: str, complain: Callable[[str, str], Answer]) -> Answer:
    version, wanted = installed_version(package), wanted_range(package)
    command = f"pip install '{package}{in_order(wanted)}'"
    if version is None:
        return complain(f"{package} is not installed", command)
    if not is_within(wanted, version):
        return complain(f"{package} {version} is outside {in_order(wanted)}", command)
    return ok(version)


def installed_version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def wanted_range(package: str) -> str:
    """The required versions of `package`, such as `<3.4,>=3.1`; empty for any."""
    for requirement in metadata.requires(DISTRIBUTION) or ():
        match = re.match(r"([\w.-]+)\s*(?:\[[^]]*\])?\s*([^;]*)", requirement)
        if match and match[1].lower() == package:
            return match[2].strip(" ()")
    return ""


def is_within(versions: str, version: str) -> bool:
    """Whether `version` is in the range `versions`, such as `>=3.1,<3.4`. Pre-releases count as
    releases."""
    actual = _release(version)
    for part in filter(None, (part.strip() for part in versions.split(","))):
        match = re.fullmatch(r"(>=|<=|==|!=|<|>)\s*([\d.]+)", part)
        if match is None:
            continue  # an operator that our own metadata does not use
        limit = _release(match[2])
        width = max(len(actual), len(limit))
        left, right = (number + (0,) * (width - len(number)) for number in (actual, limit))
        holds = {
            ">=": left >= right,
            "<=": left <= right,
            "==": left == right,
            "!=": left != right,
            "<": left < right,
            ">": left > right,
        }
        if not holds[match[1]]:
            return False
    return True


def in_order(versions: str) -> str:
    """`>=3.1,<3.4` for `<3.4,>=3.1`: metadata sorts the parts, readers expect the lower bound
    first."""
    return ",".join(sorted((part.strip() for part in versions.split(",")), reverse=True))


def _release(version: str) -> tuple[int, ...]:
    numbers = re.match(r"\d+(?:\.\d+)*", version)
    return tuple(map(int, numbers[0].split("."))) if numbers else ()
