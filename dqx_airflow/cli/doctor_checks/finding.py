"""The findings of checks, and how checks run concurrently; the first of them: the installed
packages, and whether their versions are in the required ranges.

Reads the metadata of packages, imports none of them. The ranges come from our own metadata, so
`pyproject.toml` stays the only place that names them.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from importlib import metadata
from threading import Thread
from typing import TypeAlias

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.version import Version


class FindingLevel(str, Enum):
    """The result of a check. A `WARNING` may be intended, a `PROBLEM` prevents a gate from
    working."""

    OK = "ok"
    WARNING = "warning"
    PROBLEM = "problem"


@dataclass(frozen=True, slots=True)
class Finding:
    """The finding of one check, and how to fix it (empty if there is nothing to fix)."""

    name: str
    level: FindingLevel
    found: str
    remedy: str = ""


Answer: TypeAlias = tuple[FindingLevel, str, str]
"""A finding without its name: the level, the finding, and how to fix it."""

Check: TypeAlias = Callable[[], Answer]


def ok(message: str, remedy: str = "") -> Answer:
    return FindingLevel.OK, message, remedy


def warning(message: str, remedy: str) -> Answer:
    return FindingLevel.WARNING, message, remedy


def problem(message: str, remedy: str) -> Answer:
    return FindingLevel.PROBLEM, message, remedy


def examine(checks: Mapping[str, Check], timeout_s: float = 60.0) -> tuple[Finding, ...]:
    """One finding for each check, in their order. They run concurrently, so each may wait.

    A check that raises, or does not finish in time, yields a finding of its own. No finding shows
    the credentials of a URL.
    """
    answers: dict[str, Answer] = {}

    def answer(name: str, check: Check) -> None:
        answers[name] = _answer(check)

    # Daemon threads: a hanging check, for example of unresponsive storage, must not keep this
    # process alive.
    threads = [
        Thread(target=answer, args=named_check, daemon=True) for named_check in checks.items()
    ]
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + timeout_s
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))
    late = warning(
        f"no response within {timeout_s:g} s", "check the service that it contacts: it may hang"
    )
    answered = {name: answers.get(name, late) for name in checks}
    return tuple(
        Finding(name, level, without_credentials(message), without_credentials(remedy))
        for name, (level, message, remedy) in answered.items()
    )


def without_credentials(text: str) -> str:
    """The text with user and password of every URL in it replaced by stars."""
    return re.sub(r"://[^\s/@]*@", "://***@", text)


def _answer(check: Check) -> Answer:
    try:
        return check()
    except Exception as error:
        message = f"{type(error).__name__}: {error}".strip().splitlines()[0].rstrip(": ")
        return problem(
            f"this check itself failed: {message}",
            "the installation is damaged, or dql doctor has a bug: "
            "reinstall dqx-airflow, and report it if it persists",
        )


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


def installed(package: str, complain: Callable[[str, str], Answer] = problem) -> Answer:
    """Is a package installed, in one of the required versions?"""
    version = installed_version(package)
    wanted = wanted_range(package)
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
    for text in metadata.requires(DISTRIBUTION) or ():
        requirement = Requirement(text)
        if requirement.name.lower() == package:
            return str(requirement.specifier)
    return ""


def is_within(versions: str, version: str) -> bool:
    """Whether `version` is in the range `versions`, such as `>=3.1,<3.4`. Pre-releases count as
    releases."""
    return SpecifierSet(versions).contains(Version(version).base_version)


def in_order(versions: str) -> str:
    """`>=3.1,<3.4` for `<3.4,>=3.1`: metadata sorts the parts, readers expect the lower bound
    first."""
    return ",".join(sorted((part.strip() for part in versions.split(",")), reverse=True))
