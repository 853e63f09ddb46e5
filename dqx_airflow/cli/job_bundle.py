"""The job bundle: our code and the pure Python packages that it imports, as a zip for `--py-files`.

The same packages give the same bytes. Compiled code is left out: `NATIVE` must be installed where
the driver runs, everything else works without its compiled parts.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from itertools import chain
from pathlib import Path, PurePosixPath
from shutil import copyfile
from tempfile import TemporaryDirectory

import dqx_airflow
from dqx_airflow.values.files import replacing, shipped

NATIVE = ("pyarrow", "deltalake", "numpy")

_PURE = ("cattrs", "lark", "openlineage-python", "pyyaml", "sqlglot", "sympy", "tzdata")
# A job has no terminal, no editor and no Airflow, and gets contracts as compiled suites.
_LEFT_OUT = {"api", "cli", "contracts", "dags_examples", "docs", "editor", "importing"}
_LEFT_OUT |= {"operators", "spark_jobs", "tuning", "ui", "plan/in_memory"}
# A gate reads the proofs of `dql doctor --prove`, and proves nothing itself. The cases stay: their
# digest says for which of them a proof holds.
_LEFT_OUT |= {f"engine/proof/{name}.py" for name in ("cases", "differences", "prove")}
# Alerts are shown in the UI, faults planted by `dql mutate`, and templates and formats for CI
# written by commands.
_LEFT_OUT |= {"results/alerts.py", "engine/faults.py"}
_LEFT_OUT |= {f"diagnostics/{name}" for name in ("templates.py", "machine_formats.py")}
_LEFT_OUT |= {f"diagnostics/junit.{ending}" for ending in ("py", "xml")}
_COMPILED = {".so", ".pyd", ".pyx", ".pxd", ".dylib"}
_FOLDERS_LEFT_OUT = {"__pycache__", "tests", "benchmarks", ".."}
# Large, and rarely needed.
_SOURCES_ONLY = "/(sympy|mpmath)/"
_NAME = re.compile(r"[\w.-]+")
# The earliest timestamp in a zip.
_MOMENT = (1980, 1, 1, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class Bundle:
    """A written bundle; `packages` are the names and versions of its contents."""

    path: Path
    size: int
    packages: tuple[tuple[str, str], ...]


def write_bundle(path: Path) -> Bundle:
    """Writes the bundle atomically: a job that starts meanwhile sees the old or the new one."""
    distributions = sorted(_with_required(_PURE), key=lambda package: package.name)
    path.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory() as folder, replacing(path) as part:
        staged = Path(folder)
        for name, file in chain(_our_files(), *map(_files_of, distributions)):
            (staged / name).parent.mkdir(parents=True, exist_ok=True)
            copyfile(file, staged / name)
        _compile(staged)
        _zip(staged, part)
    copyfile(shipped("spark_jobs/gate_job.py"), path.with_name("gate_job.py"))
    own_package = ("dqx-airflow", dqx_airflow.__version__)
    packages = (own_package, *((package.name, package.version) for package in distributions))
    return Bundle(path, path.stat().st_size, packages)


def versions_of_native() -> tuple[tuple[str, str], ...]:
    """The packages that are not in the bundle, in the versions installed here."""
    return tuple((name, distribution(name).version) for name in NATIVE)


def _with_required(names: Iterable[str]) -> Iterable[Distribution]:
    """The installed packages with these names, and everything that they require."""
    distributions: dict[str, Distribution] = {}
    waiting = [*names]
    while waiting:
        try:
            package = distribution(waiting.pop())
        except PackageNotFoundError:
            continue  # required for another Python, or on another system
        if package.name not in distributions:
            distributions[package.name] = package
            required = (text for text in package.requires or () if "extra ==" not in text)
            waiting += [name[0] for text in required if (name := _NAME.match(text))]
    return distributions.values()


def _our_files() -> Iterator[tuple[str, Path]]:
    """Our modules that a job imports, with their names in the bundle."""
    # Copied from the folder: an editable checkout lists no files.
    home = Path(dqx_airflow.__file__).parent
    for file in home.rglob("*"):
        inside = file.relative_to(home)
        is_left_out = any(path.as_posix() in _LEFT_OUT for path in (inside, *inside.parents))
        if file.is_file() and not is_left_out and _is_wanted(inside):
            yield str(PurePosixPath(home.name, *inside.parts)), file


def _files_of(package: Distribution) -> Iterator[tuple[str, Path]]:
    """The files of a package, with their names in the bundle."""
    for file in package.files or ():
        if _is_wanted(file) and not _is_record(file):
            yield str(file), Path(str(file.locate()))


def _compile(folder: Path) -> None:
    """Adds byte code next to the modules: Python recompiles modules in a zip on every import.

    Another version of Python ignores it. The process is fresh, with fixed hashes: the byte code
    depends on what a process has seen before.
    """
    options = ["-m", "compileall", "-b", "-q", "--invalidation-mode", "unchecked-hash"]
    subprocess.run(  # noqa: S603 (this Python, no shell)
        [sys.executable, *options, "-s", str(folder), "-x", _SOURCES_ONLY, str(folder)],
        env={**os.environ, "PYTHONHASHSEED": "0"},
        check=False,  # a file for newer Pythons than this one stays uncompiled
        capture_output=True,
    )


def _zip(folder: Path, path: Path) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for member in sorted(folder.rglob("*")):
            # Folders, too: without an entry, Python does not find a package without modules.
            name = member.relative_to(folder).as_posix() + ("/" if member.is_dir() else "")
            entry = zipfile.ZipInfo(name, _MOMENT)
            entry.create_system = 3  # Unix, wherever it was made
            entry.external_attr = (0o755 if member.is_dir() else 0o644) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, b"" if member.is_dir() else member.read_bytes())


def _is_wanted(file: PurePosixPath | Path) -> bool:
    return file.suffix not in _COMPILED | {".pyi"} and not set(file.parts) & _FOLDERS_LEFT_OUT


def _is_record(file: PurePosixPath) -> bool:
    """True for a record of an installer, but not for the metadata or the license of a package."""
    is_note = file.parts[0].endswith(".dist-info") and file.parts[1] != "licenses"
    return is_note and not file.name.startswith(("METADATA", "LICENSE", "COPYING", "NOTICE"))
