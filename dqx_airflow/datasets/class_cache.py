"""The classes of a local Spark in a cache of the user: an archive that the first JVM writes when it
ends, and later ones start from.

To write it takes longer than a small gate, so users ask for it, by naming a folder. A JVM ignores
an archive of another Java or of other jars, but may crash over a truncated one. So the archive is
renamed into place when its JVM has ended well, its name has its size, and the JVM compares its
checksums. Classes are code: the folder must belong to this user alone. Nothing here makes a gate
fail: where there is no cache, Spark starts as ever.
"""

from __future__ import annotations

import hashlib
import os
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dqx_airflow.datasets.jvm_options import (
    DRIVER_OPTIONS,
    SUBMIT_OPTIONS,
    while_archiving,
    with_archive,
)

_SUFFIX = ".jsa"
_MOST_ARCHIVES = 3
_DAY_S = 24 * 3600
_OWN_ARCHIVE = re.compile(r"SharedArchiveFile|ArchiveClassesAtExit|Xshare|AutoCreateShared")
_OF_CLASSES = ("spark.jars", "spark.driver.extra", "spark.driver.memory", "spark.driver.userClass")
"""The settings that change what a JVM loads, or whether it can use an archive."""


@dataclass(frozen=True, slots=True)
class ClassCache:
    """The cached classes of one Java, Spark and set of settings.

    :param key: of the Java, the jars and the settings.
    """

    folder: Path
    key: str

    def archive(self) -> Path | None:
        """The newest complete archive."""
        whole = [file for file in self._archives(self.key) if _is_whole(file)]
        return max(whole, key=lambda file: file.stat().st_mtime_ns, default=None)

    @property
    def _none(self) -> Path:
        """A mark that the JVM wrote no archive."""
        return self.folder / f"{self.key}.none"

    def is_due(self) -> bool:
        """True unless a JVM wrote no archive in the last 30 days: a full disk passes."""
        return not self._none.exists() or _age_s(self._none) > 30 * _DAY_S

    def begun(self) -> Path:
        """The file that the JVM of this process writes."""
        return self.folder / f"{self.key}.{os.getpid()}.tmp"

    def keep(self, made: Path, *, has_ended_well: bool) -> None:
        """Takes the file that a JVM wrote when it ended. Removes the oldest archives, and what
        processes left that were killed."""
        if has_ended_well and made.is_file():
            made.replace(self.folder / f"{self.key}-{made.stat().st_size}{_SUFFIX}")
            by_age = sorted(self._archives("*"), key=lambda file: file.stat().st_mtime_ns)
            for file in by_age[:-_MOST_ARCHIVES]:
                file.unlink(missing_ok=True)
        else:
            made.unlink(missing_ok=True)
            self._none.touch()
        for file in self.folder.glob("*.tmp"):
            if _age_s(file) > _DAY_S:
                file.unlink(missing_ok=True)

    def _archives(self, key: str) -> list[Path]:
        return list(self.folder.glob(f"{key}-*{_SUFFIX}"))

    def start(self, options: str) -> JvmStart:
        """How to start a JVM whose own options these are: from the newest archive, or so that it
        writes one."""
        if (archive := self.archive()) is not None:
            # With checksums: a disk may have lost a part of it.
            shared = f"{with_archive('', str(archive))} -XX:+VerifySharedSpaces {options}"
            return JvmStart(shared.rstrip())
        if not self.is_due():
            return JvmStart(options)
        made = self.begun()
        writing = f"{while_archiving(str(made))} -Xlog:cds=off -Xlog:cds+dynamic=off {options}"
        return JvmStart(writing.rstrip(), made)


@dataclass(frozen=True, slots=True)
class JvmStart:
    """The options of a JVM, and the file that it writes when it ends, if any."""

    options: str
    made: Path | None = None


def class_cache(
    folder: Path, java: Path, spark: Path, settings: Mapping[str, str], env: Mapping[str, str]
) -> ClassCache | None:
    """The cache of the Spark that would start; None if it would be useless, or would not be safe.

    :param java: the home of the Java, and `spark` that of Spark.
    :param settings: of the session.
    :param env: the environment of the JVM.
    :raises OSError: it cannot be read or written, or there is no Spark.
    """
    named = [settings.get(name, "") for name in (DRIVER_OPTIONS, "spark.driver.extraJavaOptions")]
    if _OWN_ARCHIVE.search(" ".join([*named, env.get(SUBMIT_OPTIONS, "")])) is not None:
        return None
    configured = Path(env.get("SPARK_CONF_DIR") or spark / "conf")
    if configured.is_dir() and any(configured.iterdir()):
        return None  # Java takes no folder with files into an archive
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    status = folder.stat()
    if status.st_uid != os.geteuid() or status.st_mode & 0o022:
        return None
    return ClassCache(folder, _key(java, spark, settings))


def _key(java: Path, spark: Path, settings: Mapping[str, str]) -> str:
    """A digest of what an archive must fit."""
    release = java / "release"
    files = [release, *sorted((spark / "jars").iterdir())]
    found: list[Any] = [(str(file), *_stamp(file)) for file in files if file.exists()]
    found.append(str(java.resolve()))
    found += sorted(item for item in settings.items() if item[0].startswith(_OF_CLASSES))
    return hashlib.sha256(repr(found).encode()).hexdigest()[:16]


def _stamp(file: Path) -> tuple[int, int]:
    status = file.stat()
    return status.st_size, status.st_mtime_ns


def _is_whole(file: Path) -> bool:
    return file.stem.rpartition("-")[2] == str(file.stat().st_size)


def _age_s(file: Path) -> float:
    return time.time() - file.stat().st_mtime
